//! One site, as a process: what a bank would run on each of its servers.

use std::error::Error;
use std::path::Path;
use std::time::Duration;

use pares_site::{Process, SitesConfig};
use pares_wice::SiteId;
use rustix::process::{Pid, Signal};

use crate::bank::Bank;

/// Runs the site until it is killed, or the process `parent` ends.
pub fn run(dir: &Path, site: SiteId, parent: u32) -> Result<(), Box<dyn Error>> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    if rustix::process::getppid() != i32::try_from(parent).ok().and_then(Pid::from_raw) {
        return Err("the parent process has ended".into());
    }
    let config = SitesConfig::load(dir)?;
    let mut process = Process::open(&config, site, dir, Bank)?;
    loop {
        process.turn(Duration::from_millis(100))?;
        for notice in process.notices() {
            eprintln!("{notice:?}");
        }
    }
}
