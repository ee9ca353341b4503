//! A site's turns: what its process does, and what is looked at after each.

use std::time::Duration;

use pares_cluster::ReplicaError;
use pares_site::ProcessError;
use pares_wice::{Notice, SiteId};

use super::machine::Sent;
use super::sites::{Event, Sites};
use super::{Broken, Defect, Verdict, must};

impl Sites {
    pub(super) fn soon(&mut self, site: SiteId) {
        let after = self.random.below(100);
        let node = self.nodes.get_mut(&site).expect("all sites exist");
        if !std::mem::replace(&mut node.due, true) {
            let life = node.life;
            self.schedule(after, Event::Turn { site, life });
        }
    }

    pub(super) fn turn(&mut self, site: SiteId) -> Verdict {
        let node = self.nodes.get_mut(&site).expect("all sites exist");
        node.due = false;
        let Some(cycle) = &mut node.cycle else { return Ok(()) };
        let ended = cycle.turn(Duration::ZERO);
        let notices: Vec<Notice> = cycle.notices().collect();
        self.look(site)?;
        for notice in notices {
            self.noticed(site, &notice)?;
        }
        for sent in self.nodes[&site].machine.sent.take() {
            match sent {
                Sent::Site(to, bytes) => {
                    self.passes_on(site, &bytes)?;
                    self.is_understood(site, to, &bytes)?;
                    self.send(site, to, &bytes);
                }
                Sent::Client(client, bytes) => self.replied(site, client, &bytes)?,
            }
        }
        ended.or_else(|error| self.ended(site, error))
    }

    pub(super) fn noticed(&mut self, site: SiteId, notice: &Notice) -> Verdict {
        self.note(|| format!("{site}: {notice:?}"));
        match notice {
            Notice::Era(configuration) => {
                self.summary.eras = self.summary.eras.max(u64::from(configuration.era.number));
            }
            Notice::Split(cluster) => {
                return Err((Broken::Split, format!("{site} sees a split from {cluster}")));
            }
            // Where no store errs, none differs: not for a moment either.
            Notice::Differs(other, version) if self.plan.defect != Some(Defect::StoresWrongValues) => {
                let what = format!("{site} finds that {other} has applied something else up to {version}");
                return Err((Broken::Differs, what));
            }
            _ => {}
        }
        Ok(())
    }

    /// What its log has handed out and its store has taken.
    pub(super) fn look(&mut self, site: SiteId) -> Verdict {
        let machine = &self.nodes[&site].machine;
        for (index, payload) in machine.committed.take() {
            self.committed[usize::from(site.cluster.0)].on_handed_out(index, payload)?;
        }
        let written = machine.store().take_written();
        written.into_iter().try_for_each(|written| self.checker.on_written(site, written))
    }

    /// A site that ends is started again, as its operator would. It may end only for what has happened to it.
    pub(super) fn ended(&mut self, site: SiteId, error: ProcessError) -> Verdict {
        self.note(|| format!("{site} ends: {error}"));
        let has_erred = self.nodes[&site].machine.store().has_erred();
        if let (ProcessError::Differs { .. }, true) = (&error, has_erred) {
            self.summary.alone += 1;
            self.replace_disk(site);
            return Ok(());
        }
        if matches!(error, ProcessError::Expelled) && self.is_leaving(site) {
            self.end(site);
            return Ok(());
        }
        let expected = match &error {
            ProcessError::Spent | ProcessError::Refused(_) => true,
            ProcessError::Open(ReplicaError::Journal(_)) => true,
            ProcessError::Log(log) => matches!(log, pares_cluster::LogError::Journal(_)),
            ProcessError::Io(_) | ProcessError::Unread { .. } | ProcessError::Unwritten { .. } => {
                self.nodes[&site].machine.exhausted.get()
            }
            _ => false,
        };
        must(expected, Broken::Ended, || format!("{site}: {error}"))?;
        self.end(site);
        let after = self.random.between(1_000, 50_000);
        self.schedule(after, Event::Restart { site });
        Ok(())
    }

    pub(super) fn write(&mut self, site: SiteId, life: u64) -> Verdict {
        let after = self.random.between(1_000, 30_000);
        self.schedule(after, Event::Write { site, life });
        let machine = &self.nodes[&site].machine;
        let (written, read) = (machine.write_store(), machine.read_store());
        if written || read {
            self.soon(site);
        }
        self.look(site)
    }
}
