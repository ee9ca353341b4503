//! Versions become part of a site's database, in the order either protocol delivers them.
//!
//! The initiator has the values already and writes its log; other sites take the rows from their holders (such a
//! transaction could not pass certification any more), do a share of the work, and write theirs. Several versions are
//! installed at a time, and seen in order.

use std::rc::Rc;

use super::execution::Stage;
use super::{Event, World};
use crate::locks::Holder;
use crate::network::Site;
use crate::server::{Executed, Job, locked};
use crate::setting::Release;

impl World {
    /// `site` delivers `version`.
    pub(super) fn deliver(&mut self, site: Site, version: u64, executed: &Rc<Executed>) {
        let Executed { number, attempt, snapshot, ref writes, .. } = **executed;
        self.checker.delivers(site, version, Some((number, attempt, snapshot, writes)));
        if version > self.delivered_at.len() as u64 {
            self.delivered_at.push(self.now());
        }
        self.servers[site].installing.insert(version, Rc::clone(executed));
        let own = executed.site == site;
        match self.running.get_mut(&executed.holder) {
            Some(running) if own => {
                assert_ne!(running.stage, Stage::Doomed, "who lost a row cannot pass");
                running.stage = Stage::Certified;
                self.log_version(site, version);
            }
            _ => self.begin_update(site, version, executed),
        }
    }

    /// A version without a transaction.
    pub(super) fn deliver_nothing(&mut self, site: Site, version: u64) {
        self.checker.delivers(site, version, None);
        if version > self.delivered_at.len() as u64 {
            self.delivered_at.push(self.now());
        }
        self.see(site, version);
    }

    fn begin_update(&mut self, site: Site, version: u64, executed: &Rc<Executed>) {
        let mut overrun: Vec<Holder> = Vec::new();
        for item in locked(&executed.writes) {
            overrun.extend(self.servers[site].locks.begin_update(item));
        }
        for holder in overrun {
            self.overrun(holder);
        }
        let now = self.now();
        self.servers[site].processor.begin_urgent(now, executed.apply_work, Job::Apply(version));
        self.ask_processor(site);
    }

    pub(super) fn log_version(&mut self, site: Site, version: u64) {
        let now = self.now();
        let at = self.servers[site].disk.take(now, self.setting.write_set_bytes.into());
        self.queue.push(at, Event::Logged { site, version });
    }

    /// `version` is in the database of `site`. Rows are given up when it is *seen*: one that took them before could only
    /// fail, since its snapshot would lack the version.
    pub(super) fn see(&mut self, site: Site, version: u64) {
        self.checker.installs(site, version);
        for seen in self.servers[site].install(version) {
            if let Some(executed) = self.servers[site].installing.remove(&seen) {
                self.on_seen(site, &executed);
            }
        }
    }

    fn on_seen(&mut self, site: Site, executed: &Executed) {
        let holder = executed.holder;
        match self.running.get_mut(&holder) {
            Some(running) if executed.site == site => {
                running.installed = true;
                let request = Rc::clone(&running.ask.request);
                self.books.note(&request);
                if self.setting.release == Release::Installed {
                    self.give_rows(holder);
                }
                self.answer_if_done(holder);
            }
            _ => {
                let mut waited = Vec::new();
                for item in locked(&executed.writes) {
                    waited.append(&mut self.servers[site].locks.end_update(item));
                }
                self.end_waiting(waited);
            }
        }
    }

    fn give_rows(&mut self, holder: Holder) {
        let running = &self.running[&holder];
        let waited = self.servers[running.site].locks.give(holder, locked(&running.writes));
        self.end_waiting(waited);
    }

    /// All versions up to `version` are stable, as far as `site` knows.
    pub(super) fn on_stable(&mut self, site: Site, version: u64) {
        self.servers[site].stable = version;
        self.answer_readers(site);
    }

    /// The commit of a transaction is stable.
    pub(super) fn on_stable_commit(&mut self, holder: Holder) {
        if let Some(running) = self.running.get_mut(&holder) {
            running.stable = true;
            self.answer_if_done(holder);
        }
    }

    fn answer_if_done(&mut self, holder: Holder) {
        let running = &self.running[&holder];
        if !(running.installed && running.stable) {
            return;
        }
        if self.setting.release == Release::Stable {
            self.give_rows(holder);
        }
        let running = self.running.remove(&holder).expect("found above");
        self.checker.acknowledges(running.ask.number);
        self.answer(running.site, running.answer());
    }
}
