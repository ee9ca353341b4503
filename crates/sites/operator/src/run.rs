//! `pares site run`: one site in this process.

use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;

use pares_os::process::stop_on_signals;
use pares_site::config::directory_of;
use pares_site::{Application, Process, ProcessError, SitesConfig};
use pares_wice::{Notice, SiteId};
use rustix::process::{Signal, set_parent_process_death_signal};

use crate::error::usage;
use crate::error::{OperatorError, OperatorResult};
use crate::sites;

/// Longest wait for something to do, so that a signal is noticed.
const WAIT_MAX: Duration = Duration::from_millis(20);

/// Arguments of `pares site run`.
#[derive(clap::Args)]
pub struct Args {
    /// The site: CLUSTER.NUMBER, as in 0.1
    #[arg(long, value_parser = sites::parse)]
    site: SiteId,
    /// End when this parent process ends
    #[arg(long, hide = true)]
    with_parent: Option<u32>,
}

/// Runs a site that executes `application` until it is stopped.
///
/// # Errors
/// Whatever ends it otherwise.
pub fn one<A: Application + Clone>(args: &Args, dir: &Path, application: A) -> OperatorResult {
    if let Some(parent) = args.with_parent {
        end_with(parent)?;
    }
    let stop = stop_on_signals().map_err(OperatorError::io("installing a signal handler"))?;
    let config = SitesConfig::load(dir)?;
    let place = config.place(args.site)?.clone();
    let ended = |error| ended(args.site, dir, &error);
    let mut process = Process::open(&config, args.site, dir, application).map_err(ended)?;
    let sql = place.sql.map_or(String::new(), |sql| format!(", SQL clients at {sql}"));
    pares_text::tell!("{}: clients at {}{sql}, other sites at {}", args.site, place.clients, place.peers);
    let mut spoken = Spoken::default();
    while !stop.load(Ordering::Relaxed) {
        process.turn(WAIT_MAX).map_err(ended)?;
        for refused in process.refusals() {
            pares_text::tell!("{}: {refused}", args.site);
        }
        let notices: Vec<Notice> = process.notices().collect();
        let (apart, is_recalling) = (process.apart(), process.is_recalling());
        for line in spoken.of(&notices, apart, is_recalling) {
            pares_text::tell!("{}: {line}", args.site);
        }
    }
    pares_text::tell!("{}: stopped", args.site);
    Ok(())
}

/// What was said of a site.
#[derive(Default)]
struct Spoken {
    /// Why it takes no part, or that it does; nothing as long as it reads its log for the first time.
    part: Option<Option<String>>,
    /// The newest era of the log, while that is read: those before are of the past.
    era: Option<String>,
}

impl Spoken {
    /// What is to be said now.
    fn of(&mut self, notices: &[Notice], apart: Option<String>, is_recalling: bool) -> Vec<String> {
        let (eras, others): (Vec<&Notice>, Vec<&Notice>) =
            notices.iter().partition(|notice| matches!(notice, Notice::Era(_)));
        self.era = eras.last().map(|newest| told(newest)).or(self.era.take());
        let mut lines: Vec<String> = others.into_iter().map(told).collect();
        if !is_recalling {
            lines.extend(self.era.take());
        } else if apart.is_none() {
            return lines;
        }
        if self.part.as_ref() != Some(&apart) {
            lines.push(apart.clone().unwrap_or_else(|| "participates".into()));
            self.part = Some(apart);
        }
        lines
    }
}

fn ended(site: SiteId, dir: &Path, error: &ProcessError) -> OperatorError {
    let told = format!("{site}, in {}: {error}", directory_of(dir, site).display());
    match error.is_damage() {
        true => OperatorError::Damaged(told),
        false if error.lacks_descriptors() => OperatorError::Failed(format!(
            "{told}: this process has reached its limit of open files: raise it (`ulimit -n`, or LimitNOFILE of its service) and restart"
        )),
        false => OperatorError::Failed(told),
    }
}

/// Makes the kernel kill this process when its parent ends; a polite signal would not reach one that is stopped.
///
/// # Errors
/// If the kernel refuses, or the parent is gone.
pub fn end_with(parent: u32) -> OperatorResult {
    set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(|error| OperatorError::io("binding the site to its parent")(error.into()))?;
    let is_there = rustix::process::getppid().is_some_and(|id| id.as_raw_nonzero().get() as u32 == parent);
    if is_there { Ok(()) } else { Err(usage("the parent process has ended")) }
}

fn told(notice: &Notice) -> String {
    match notice {
        Notice::Era(configuration) => {
            let live: Vec<String> = configuration.live.iter().map(|cluster| cluster.0.to_string()).collect();
            format!(
                "era {} has begun: clusters {} are live, {} certifies",
                configuration.era,
                live.join(" and "),
                configuration.certifier
            )
        }
        Notice::Discarded(version) => {
            format!(
                "discarding versions above {version}: the other clusters continued without them, and clients never got answers for them"
            )
        }
        Notice::Split(cluster) => format!(
            "{cluster} has answered clients for versions that the other clusters do not have: two histories. Stop one side, and compare them"
        ),
        Notice::NeedsCopy(cluster) => {
            format!("{cluster} lacks versions that are no longer kept: its sites copy another store")
        }
        Notice::Differs(site, version) => format!(
            "site {}.{} and this one differ up to version {version}. A site in the minority ends itself; if \
             none does, there is no majority (docs/operations/sites.md)",
            site.cluster.0, site.number
        ),
    }
}

#[cfg(test)]
mod tests {
    use pares_wice::{ClusterId, ClusterSet, Configuration};

    use super::*;

    fn eras(numbers: &[u32]) -> Vec<Notice> {
        let first = Configuration::first(ClusterSet::default().with(ClusterId(0)), ClusterId(0));
        let begun = |number: &u32| {
            let mut configuration = first;
            configuration.era.number = *number;
            Notice::Era(configuration)
        };
        numbers.iter().map(begun).collect()
    }

    #[test]
    fn recovered_site_reports_once_with_newest_era() {
        let mut spoken = Spoken::default();
        assert!(spoken.of(&eras(&[1, 2]), None, true).is_empty());
        assert!(spoken.of(&eras(&[3]), None, true).is_empty());
        let lines = spoken.of(&[], None, false);
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert!(lines[0].contains(&told(&eras(&[3])[0])) && lines[1] == "participates", "{lines:?}");
        assert!(spoken.of(&[], None, false).is_empty());
        assert_eq!(spoken.of(&eras(&[4]), None, false).len(), 1, "what is new is said at once");
    }

    #[test]
    fn why_a_site_takes_no_part_is_said_while_it_reads_its_log_too() {
        let mut spoken = Spoken::default();
        let waits = || Some("waits".to_owned());
        assert_eq!(spoken.of(&[], waits(), true), ["waits"]);
        assert!(spoken.of(&[], waits(), true).is_empty());
        assert!(spoken.of(&[], None, true).is_empty(), "it still reads its log");
        assert_eq!(spoken.of(&[], None, false), ["participates"]);
    }
}
