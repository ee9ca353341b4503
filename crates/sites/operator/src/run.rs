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
    /// Which site: cluster and number there, as in 0.1
    #[arg(long, value_parser = sites::parse)]
    site: SiteId,
    /// End when the process of this number, which started this one, ends
    #[arg(long, hide = true)]
    with_parent: Option<u32>,
}

/// Runs a site that executes `application` until it is told to stop.
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
    pares_text::tell!("{}: clients at {}, other sites at {}", args.site, place.clients, place.peers);
    let mut apart = None;
    while !stop.load(Ordering::Relaxed) {
        process.turn(WAIT_MAX).map_err(ended)?;
        tell_apart(args.site, &process, &mut apart);
        for refused in process.refusals() {
            pares_text::tell!("{}: {refused}", args.site);
        }
        for notice in process.notices() {
            pares_text::tell!("{}: {}", args.site, told(&notice));
        }
    }
    pares_text::tell!("{}: stopped", args.site);
    Ok(())
}

/// Says why a site takes no part, when that changes.
fn tell_apart<A: Application + Clone>(site: SiteId, process: &Process<A>, told: &mut Option<String>) {
    let now = process.apart();
    if now != *told {
        match &now {
            Some(why) => pares_text::tell!("{site}: {why}"),
            None => pares_text::tell!("{site}: takes part"),
        }
        *told = now;
    }
}

fn ended(site: SiteId, dir: &Path, error: &ProcessError) -> OperatorError {
    let told = format!("{site}, in {}: {error}", directory_of(dir, site).display());
    match error.is_damage() {
        true => OperatorError::Damaged(told),
        false if error.lacks_descriptors() => OperatorError::Failed(format!(
            "{told}: this process may have too few files open: raise that (`ulimit -n`, or LimitNOFILE of its service), and start it again"
        )),
        false => OperatorError::Failed(told),
    }
}

/// Makes the kernel kill this process when its parent ends; a polite signal would not reach one that is stopped.
fn end_with(parent: u32) -> OperatorResult {
    set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(|error| OperatorError::io("binding the site to its parent")(error.into()))?;
    let is_there = rustix::process::getppid().is_some_and(|id| id.as_raw_nonzero().get() as u32 == parent);
    if is_there { Ok(()) } else { Err(usage("the process that started this one is gone")) }
}

fn told(notice: &Notice) -> String {
    match notice {
        Notice::Era(configuration) => {
            let live: Vec<String> = configuration.live.iter().map(|cluster| cluster.0.to_string()).collect();
            format!(
                "era {} has begun: clusters {} live, {} certifies",
                configuration.era,
                live.join(" and "),
                configuration.certifier
            )
        }
        Notice::Discarded(version) => {
            format!(
                "versions above {version} are discarded: the other clusters went on without them; none was answered"
            )
        }
        Notice::Split(cluster) => format!(
            "{cluster} has answered clients for versions that the others do not have: two histories. Stop one side, and compare"
        ),
        Notice::NeedsCopy(cluster) => {
            format!("{cluster} lacks versions that are not kept any more: its sites take copies of a store")
        }
        Notice::Differs(site, version) => format!(
            "site {}.{} has applied something else than this one, up to version {version}. A site that is alone with it ends by itself; \
             if none does, nobody knows who is right (docs/operations.md, Sites)",
            site.cluster.0, site.number
        ),
    }
}
