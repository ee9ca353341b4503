//! Sites of two neighbouring versions: replaced one after the other while requests come.
#![allow(clippy::unwrap_used)] // a test fails by panicking

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;

use common::{Engine, PATIENCE, Sites, configuration_over, done, report, scratch, until};
use pares_link::{SPEAKS, UNDERSTANDS};
use pares_site::items::Items;
use pares_site::{CallError, Client};
use pares_wice::SiteId;

/// A client that adds 1 again and again; how often the answer was that it is done.
struct Load {
    stop: Arc<AtomicBool>,
    done: Arc<AtomicU64>,
    thread: JoinHandle<()>,
}

impl Load {
    fn start(mut client: Client) -> Self {
        let (stop, done) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (stopped, counted) = (Arc::clone(&stop), Arc::clone(&done));
        let thread = std::thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                let mut said = client.execute(b"add total 1", PATIENCE);
                while matches!(said, Err(CallError::Silence(_))) {
                    said = client.execute_again(b"add total 1", PATIENCE);
                }
                counted.fetch_add(u64::from(said.is_ok()), Ordering::Relaxed);
            }
        });
        Self { stop, done, thread }
    }

    /// Until it has been told so much more.
    fn goes_on(&self) {
        let before = self.done.load(Ordering::Relaxed);
        until(|| self.done.load(Ordering::Relaxed) > before + 20);
    }

    fn end(self) -> u64 {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap();
        self.done.load(Ordering::Relaxed)
    }
}

fn spoken(sites: &Sites, all: &[SiteId]) -> Vec<(u16, u16)> {
    let reports = all.iter().map(|site| report(&mut sites.client(u64::MAX, &[*site])));
    reports.map(|report| (report.speaks, report.all_speak)).collect()
}

/// Stops a site, and starts it as a build of that version.
fn replace(sites: &mut Sites, site: SiteId, speaks: u16) {
    sites.stop(site);
    sites.speaks = speaks;
    sites.run(site);
    let mut client = sites.client(u64::MAX, &[site]);
    until(|| {
        let report = report(&mut client);
        report.apart.is_none() && !report.recalling && report.votes
    });
}

#[test]
fn sites_upgrade_in_turn_under_load_one_downgrades() {
    let (dir, config) = (scratch(), configuration_over(Engine::Redb, 2, 3).unwrap());
    config.make_directories(dir.path()).unwrap();
    let mut sites = Sites::begin_speaking(UNDERSTANDS, dir, config, Items);
    let all: Vec<SiteId> = sites.config.sites.iter().map(pares_site::config::Place::id).collect();
    let load = Load::start(sites.client(1, &all));
    load.goes_on();
    for (count, site) in (1..).zip(&all) {
        replace(&mut sites, *site, SPEAKS);
        load.goes_on();
        let now = spoken(&sites, &all);
        assert_eq!(now.iter().filter(|(speaks, _)| *speaks == SPEAKS).count(), count);
        assert!(count == all.len() || now.iter().all(|(_, all)| *all == UNDERSTANDS), "{now:?}");
    }
    until(|| spoken(&sites, &all).iter().all(|spoken| *spoken == (SPEAKS, SPEAKS)));
    replace(&mut sites, all[4], UNDERSTANDS);
    until(|| spoken(&sites, &all).iter().all(|(_, all)| *all == UNDERSTANDS));
    load.goes_on();
    let told = load.end();
    for site in &all {
        let mut client = sites.client(2, &[*site]);
        assert_eq!(done(client.read_latest(b"get total", PATIENCE)), told.to_string(), "{site}");
    }
}
