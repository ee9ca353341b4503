//! `pares site up`: all sites of a directory as children of this process.
//!
//! What dies is started again. When `sites.toml` changes, the sites are restarted one after the other, each only when its cluster has a majority without it. (One of two
//! has none without the other: there answers pause while a site restarts.) Those that are named no more are stopped last. A site whose filling fails is not waited for,
//! except where its cluster needs it for a majority.

use std::collections::VecDeque;
use std::path::Path;
use std::process::ExitStatus;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use pares_os::process::{Lock, stop_on_signals};
use pares_site::{Access, SiteReport, SitesConfig};
use pares_wice::SiteId;

use crate::error::{OperatorError, OperatorResult, usage};
use crate::init::OPERATOR;
use crate::sites::{self, ChildOutput, Processes, SITE_RUN};

/// Between two looks at the children, so that a signal is noticed.
const PAUSE: Duration = Duration::from_millis(20);
/// Between two looks at `sites.toml`, and at a site that was restarted because of it.
const LOOK_PAUSE: Duration = Duration::from_secs(1);
/// Sites that die are not started again more often than this.
const LIFE_MIN: Duration = Duration::from_secs(1);
/// Time between two starts of a site that has to be repaired; so it comes back by itself once it is.
const REPAIR_PAUSE: Duration = Duration::from_secs(30);
/// How long a restarted site that cannot be asked is waited for.
const UNASKED: Duration = Duration::from_secs(10);

/// Runs all sites until Ctrl-C.
///
/// # Errors
/// If another process does it, or one cannot be started.
pub fn up(config: SitesConfig, dir: &Path) -> OperatorResult {
    let stop = stop_on_signals().map_err(OperatorError::io("installing a signal handler"))?;
    let _lock = take_lock(dir)?;
    let mut supervisor = Supervisor::start(config, dir)?;
    pares_text::tell!(
        "Ctrl-C stops everything. `pares site status --dir {}` shows the state.",
        dir.display()
    );
    while !stop.load(Ordering::Relaxed) {
        supervisor.revive()?;
        if supervisor.looked.elapsed() >= LOOK_PAUSE {
            supervisor.looked = Instant::now();
            supervisor.look()?;
        }
        std::thread::sleep(PAUSE);
    }
    supervisor.processes.stop();
    pares_text::tell!("stopped");
    Ok(())
}

/// The lock of the sites in that directory. A second supervisor would start all of them again, each time without success.
fn take_lock(dir: &Path) -> Result<Lock, OperatorError> {
    let lock = Lock::take(&dir.join("lock"));
    lock.map_err(OperatorError::io("locking the sites' directory (does its file system support locks?)"))?
        .ok_or_else(|| {
            usage(format!(
                "another `pares site up` is running the sites in {}: stop it, or use another --dir",
                dir.display()
            ))
        })
}

struct Supervisor<'a> {
    dir: &'a Path,
    config: SitesConfig,
    processes: Processes,
    /// What died, and when it is started again.
    due: Vec<(SiteId, Instant)>,
    started: Instant,
    looked: Instant,
    /// What is wrong, or waited for, as was said last.
    complaint: Option<String>,
    /// Sites still to be restarted, the one that is waited for, and those to be stopped in the end.
    left: VecDeque<SiteId>,
    awaited: Option<(SiteId, Instant)>,
    gone: Vec<SiteId>,
}

impl<'a> Supervisor<'a> {
    fn start(config: SitesConfig, dir: &'a Path) -> Result<Self, OperatorError> {
        let mut processes = Processes::new(dir, ChildOutput::Here, SITE_RUN)?;
        for site in sites::all(&config) {
            processes.start(site)?;
        }
        let (started, due, left, gone) = (Instant::now(), Vec::new(), VecDeque::new(), Vec::new());
        let (complaint, awaited) = (None, None);
        Ok(Self { dir, config, processes, due, started, looked: started, complaint, left, awaited, gone })
    }

    /// Starts again what has died.
    fn revive(&mut self) -> OperatorResult {
        for (site, how) in self.processes.ended()? {
            // A site that cannot live is not tried more often than once a second.
            let pause = pause_after(site, how).unwrap_or(LIFE_MIN.saturating_sub(self.started.elapsed()));
            self.due.push((site, Instant::now() + pause));
        }
        for (site, _) in self.due.extract_if(.., |(_, at)| *at <= Instant::now()) {
            self.started = Instant::now();
            self.processes.start(site)?;
        }
        Ok(())
    }

    /// Heeds what `sites.toml` says now.
    fn look(&mut self) -> OperatorResult {
        match SitesConfig::load(self.dir) {
            Ok(config) if !self.is_alike(&config) => {
                self.complain(
                    "sites.toml has changed in a setting that all sites must share (only [[site]], [limits] \
                     and store may change while sites run): the sites keep their old settings; stop all of \
                     them first"
                        .to_owned(),
                );
                return Ok(());
            }
            Ok(config) if config != self.config => {
                pares_text::tell!("sites.toml has changed: restarting the sites one after the other");
                self.change(config);
            }
            Ok(_) => {}
            Err(error) => {
                self.complain(format!("{error}; the sites keep their old settings"));
                return Ok(());
            }
        }
        self.go_on()
    }

    /// Whether sites with this configuration and those that run let each other in.
    fn is_alike(&self, config: &SitesConfig) -> bool {
        let SitesConfig { sites, limits, store, .. } = self.config.clone();
        SitesConfig { sites, limits, store, ..config.clone() } == self.config
    }

    /// Says it, if it was not said last.
    fn complain(&mut self, what: String) {
        if self.complaint.as_ref() != Some(&what) {
            pares_text::tell!("{what}");
            self.complaint = Some(what);
        }
    }

    /// Those that run are restarted, those that are new come after them, those that are no more are stopped last.
    fn change(&mut self, config: SitesConfig) {
        let (before, now) = (sites::all(&self.config), sites::all(&config));
        let is_new = |site: &SiteId| !before.contains(site);
        self.gone.extend(before.iter().copied().filter(|site| !now.contains(site)));
        self.gone.retain(|site| !now.contains(site));
        self.left = now.iter().copied().filter(|site| !is_new(site)).collect();
        self.left.extend(now.iter().copied().filter(is_new));
        self.config = config;
        self.complaint = None;
    }

    fn go_on(&mut self) -> OperatorResult {
        if let Some((site, since)) = self.awaited {
            if let Some(why) = self.in_vain(site) {
                self.complain(format!("{site} {why}. Restarting the others without waiting for it"));
            } else if !now_gone(site, &self.config) && !self.is_well(site, since) {
                self.complain(format!("waiting until {site} participates, before the next restart"));
                return Ok(());
            }
            self.awaited = None;
        }
        let Some(&site) = self.left.front() else { return self.end_roll() };
        if let Some(mate) = self.ill_mate(site) {
            let why = self.in_vain(mate).map_or(String::new(), |why| format!(": it {why}"));
            self.complain(match now_gone(mate, &self.config) {
                true => format!(
                    "waiting until `pares site remove {}` has taken its vote, before restarting {site}",
                    sites::name(mate)
                ),
                false => format!("waiting until {mate} participates, before restarting {site}{why}"),
            });
            return Ok(());
        }
        self.left.pop_front();
        self.processes.stop_those(&[site]);
        self.due.retain(|(due, _)| *due != site);
        self.processes.start(site)?;
        self.awaited = Some((site, Instant::now()));
        Ok(())
    }

    /// Who would have to participate first, so that the cluster has a majority without this site; or all others, where only all are one.
    fn ill_mate(&self, site: SiteId) -> Option<SiteId> {
        let access = Access::named(self.config.clone(), self.dir, &[OPERATOR]).ok()?;
        let mut reports = sites::reports(&access);
        reports.retain(|(other, _)| other.cluster == site.cluster);
        let knows = reports.iter().find(|(_, report)| report.delegate).or(reports.first());
        let (_, SiteReport { voters, .. }) =
            knows.filter(|(_, report)| report.voters.contains(&site.number))?;
        let others = voters.iter().filter(|number| **number != site.number);
        let is_ill = |number: &&u8| {
            !reports.iter().any(|(mate, report)| mate.number == **number && takes_part(report))
        };
        let ill: Vec<&u8> = others.clone().filter(is_ill).collect();
        let is_safe = (others.count() - ill.len()) * 2 > voters.len();
        ill.first().filter(|_| !is_safe).map(|number| SiteId::new(site.cluster.0, **number))
    }

    fn end_roll(&mut self) -> OperatorResult {
        if !self.gone.is_empty() {
            let gone = std::mem::take(&mut self.gone);
            self.processes.stop_those(&gone);
            self.due.retain(|(site, _)| !gone.contains(site));
        }
        if self.complaint.take().is_some() {
            pares_text::tell!("all sites now follow sites.toml");
        }
        Ok(())
    }

    /// Why a site that does not participate will not soon, if its filling fails.
    fn in_vain(&self, site: SiteId) -> Option<String> {
        let access = Access::named(self.config.clone(), self.dir, &[OPERATOR]).ok()?;
        filled_in_vain(sites::report(&access, site)?)
    }

    /// Whether a site participates again.
    fn is_well(&self, site: SiteId, since: Instant) -> bool {
        let Ok(access) = Access::named(self.config.clone(), self.dir, &[OPERATOR]) else {
            return since.elapsed() >= UNASKED;
        };
        sites::report(&access, site).is_some_and(|report| takes_part(&report))
    }
}

fn takes_part(report: &SiteReport) -> bool {
    report.apart.is_none() && !report.recalling
}

fn filled_in_vain(report: SiteReport) -> Option<String> {
    report.apart.filter(|_| report.fills_failed > 0)
}

fn now_gone(site: SiteId, config: &SitesConfig) -> bool {
    config.place(site).is_err()
}

/// Says that a site has ended; how long to wait before it is started again, if that is long.
fn pause_after(site: SiteId, how: ExitStatus) -> Option<Duration> {
    let is_damaged = how.code() == Some(i32::from(OperatorError::DAMAGED));
    if is_damaged {
        pares_text::tell!("{site} needs repair; trying again every {} s", REPAIR_PAUSE.as_secs());
    } else {
        pares_text::tell!("{site} ended ({how}); restarting it");
    }
    is_damaged.then_some(REPAIR_PAUSE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn site_failing_to_fill_differs_from_filling_one() {
        let filling = SiteReport { apart: Some("is being filled".into()), ..SiteReport::default() };
        assert_eq!(filled_in_vain(filling.clone()), None);
        let failing = SiteReport { fills_failed: 2, ..filling };
        assert_eq!(filled_in_vain(failing.clone()), Some("is being filled".into()));
        assert_eq!(filled_in_vain(SiteReport { apart: None, ..failing }), None);
    }
}
