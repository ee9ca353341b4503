//! `pares bench site`: what a transaction costs at a site, of one cluster alone.
//!
//! All sites of the cluster run in this process, so what is measured is their work and not how processes take turns on few cores. A broker's transaction (reads three items, changes two, writes two new ones, and its reply) is executed by an application that runs in the
//! site's own process, as a broker's would: from the request to the answer there is the certification, the cluster's log on
//! disk, and with three sites a majority of them. Conflicts are rare: each client trades on its own account.
//!
//! ```text
//!   at full speed:  N open requests, one answered, one begun   --> transactions per second
//!   at a rate:      begun on schedule, late or not             --> latency from the scheduled time to the answer
//! ```
//! At a rate all counts that was due while it was measured, also what is answered later; what could not be begun by the end is reported as `overdue`.
//!
//! Where the time goes at full speed is reported by thread: what the first site, the other sites, and all sites' readers, stores
//! and log files use of processors for each transaction.
//!
//! Nothing measured is no measurement: a cluster that does not certify, and transactions without an answer, fail.

mod load;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use pares_load::{LabError, LabResult, ScratchDirectory, Worker, none_of, print_figures};
use pares_operator::init::promise;
use pares_site::config::{Place, Promise, SiteLimits, SitesConfig};
use pares_site::items::Items;
use pares_site::{Process, ProcessError};
use pares_wice::{Isolation, SiteId};
use serde::Serialize;

use self::load::{Load, Pass};
use pares_load::processor;

/// Until the sites are up and certifying, and until what is open has an answer.
const PATIENCE: Duration = Duration::from_secs(20);
/// Open requests at full speed; 64 of them are one client's.
const IN_FLIGHT: u64 = 4_096;
/// The name of the other sites' threads.
const OTHER_SITE: &str = "other-site";

/// Arguments of `pares bench site`.
#[derive(clap::Args, Clone, Debug)]
pub struct Args {
    /// Number of sites in the cluster
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..=5))]
    sites: u8,
    /// What an answer survives: `os` the death of processes, `disk` a power loss
    #[arg(long, default_value = "os", value_parser = promise)]
    durability: Promise,
    /// Measuring time of each part, seconds
    #[arg(long, default_value_t = 10.0)]
    seconds: f64,
    /// Transactions per second in the fixed-rate part
    #[arg(long, default_value_t = 5_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    rate: u64,
    /// The parent directory of the sites' temporary directories [default: the temporary directory]
    #[arg(long)]
    dir: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Processor time of a transaction at full speed, microseconds.
#[derive(Clone, Copy, Debug, Serialize)]
struct Spent {
    /// By the duty cycle of the first site, where the transactions begin; what the load costs is in it.
    first_site_us: f64,
    /// By those of the others.
    other_sites_us: f64,
    /// By the threads that answer reads, of all sites.
    readers_us: f64,
    /// By the threads that write the stores.
    stores_us: f64,
    /// By those that prepare and sync files of logs.
    logs_us: f64,
}

/// What it costs.
#[derive(Clone, Debug, Serialize)]
struct Figures {
    sites: u8,
    durability: Promise,
    /// As many as possible, with `in_flight` open requests.
    transactions_per_s: f64,
    in_flight: u64,
    full_speed: Pass,
    spent: Spent,
    /// At the given rate.
    rate: u64,
    at_rate: Pass,
    /// Answers that were not *done*.
    not_done: u64,
}

/// Measures what a transaction costs at the first of so many sites, and prints it.
///
/// # Errors
/// If a site ends, or says no, or nothing is done.
pub fn run(args: &Args) -> LabResult {
    if !(0.2..=3_600.0).contains(&args.seconds) {
        return Err(LabError::Usage("--seconds must be between 0.2 and 3600".into()));
    }
    let scratch = ScratchDirectory::create(args.dir.as_deref())?;
    let figures = measure(args, scratch.path())?;
    print_figures(args.json, &figures);
    none_of([(figures.not_done, "transactions not done")])
}

fn measure(args: &Args, dir: &Path) -> Result<Figures, LabError> {
    let Args { sites, durability, rate, .. } = *args;
    let config = prepare(durability, sites, dir).map_err(LabError::io("making the directories of sites"))?;
    let (first, part) = (SiteId::new(0, 0), Duration::from_secs_f64(args.seconds));
    let mut site = Process::open(&config, first, dir, Items).map_err(failed)?;
    let others = others(&config, dir)?;
    wait_until_certifying(&mut site, PATIENCE)?;
    let mut load = Load::new(IN_FLIGHT);
    let before = processor::used_by_threads();
    let full_speed = load.run(&mut site, None, part)?;
    let spent = spent(&before, &processor::used_by_threads(), load.begun_of_all());
    let at_rate = load.run(&mut site, Some(rate), part)?;
    others.into_iter().try_for_each(Worker::finish)?;
    Ok(Figures {
        sites,
        durability,
        transactions_per_s: full_speed.transactions_per_s,
        in_flight: IN_FLIGHT,
        full_speed,
        spent,
        rate,
        at_rate,
        not_done: load.not_done,
    })
}

/// The directories of so many sites, none of which has begun.
fn prepare(durability: Promise, sites: u8, dir: &Path) -> std::io::Result<SitesConfig> {
    let config = configuration(durability, sites)?;
    std::fs::write(dir.join("sites.toml"), config.to_text())?;
    config.make_directories(dir)?;
    Ok(config)
}

fn failed(error: ProcessError) -> LabError {
    LabError::Failed(error.to_string())
}

/// What threads used meanwhile for each of so many transactions.
fn spent(
    before: &BTreeMap<String, Duration>,
    after: &BTreeMap<String, Duration>,
    transactions: u64,
) -> Spent {
    let used = |is_such: &dyn Fn(&str) -> bool| {
        let of = |all: &BTreeMap<String, Duration>| {
            all.iter().filter(|(name, _)| is_such(name)).map(|(_, used)| *used).sum::<Duration>()
        };
        (of(after).saturating_sub(of(before))).as_secs_f64() * 1e6 / transactions.max(1) as f64
    };
    let rest = [OTHER_SITE, "applier", "reader"];
    Spent {
        first_site_us: used(&|name| !rest.contains(&name) && !name.starts_with("log-")),
        other_sites_us: used(&|name| name == OTHER_SITE),
        readers_us: used(&|name| name == "reader"),
        stores_us: used(&|name| name == "applier"),
        logs_us: used(&|name| name.starts_with("log-")),
    }
}

fn configuration(durability: Promise, sites: u8) -> std::io::Result<SitesConfig> {
    let free = || std::net::TcpListener::bind("127.0.0.1:0")?.local_addr();
    let place = |number| Ok(Place::new(0, number, free()?, free()?));
    let places: std::io::Result<Vec<Place>> = (0..sites).map(place).collect();
    Ok(SitesConfig {
        system: "bench".into(),
        identity: SitesConfig::draw_identity(),
        durability,
        isolation: Isolation::Snapshot,
        certifier: 0,
        begins: 0,
        tls: None,
        store: None,
        limits: SiteLimits::default(),
        plain: false,
        witness: None,
        sites: places?,
    })
}

/// The cluster's other sites, a thread each.
fn others(config: &SitesConfig, dir: &Path) -> Result<Vec<Worker<LabResult>>, LabError> {
    let start = |place: &Place| {
        let (config, dir, site) = (config.clone(), dir.to_owned(), place.id());
        Worker::start(OTHER_SITE, move |stop| {
            let mut site = Process::open(&config, site, &dir, Items).map_err(failed)?;
            while !stop.load(Ordering::Relaxed) {
                site.turn(Duration::from_millis(50)).map_err(failed)?;
            }
            Ok(())
        })
    };
    config.sites.iter().skip(1).map(start).collect()
}

/// Until this site knows which of its cluster certifies.
fn wait_until_certifying(site: &mut Process<Items>, patience: Duration) -> LabResult {
    let began = Instant::now();
    let mut report = site.report();
    while report.recalling || report.heard.is_empty() {
        if began.elapsed() >= patience {
            let why = report.apart.unwrap_or_else(|| "it has heard of nobody who certifies".into());
            return Err(LabError::Failed(format!("the site did not begin within {patience:?}: {why}")));
        }
        site.turn(Duration::from_millis(10)).map_err(failed)?;
        report = site.report();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_site_without_its_cluster_does_is_no_measurement() {
        let scratch = tempfile::tempdir().unwrap();
        let config = prepare(Promise::Os, 3, scratch.path()).unwrap();
        let mut site = Process::open(&config, SiteId::new(0, 0), scratch.path(), Items).unwrap();
        let patience = Duration::from_millis(100);
        let refused = wait_until_certifying(&mut site, patience).unwrap_err();
        assert!(refused.to_string().contains("did not begin"), "{refused}");
        let mut load = Load::new(2);
        while load.begin(&mut site, Instant::now()) {}
        let unanswered = load.drain(&mut site, patience, |_| {});
        assert!(unanswered.is_err() || load.not_done == 2, "{unanswered:?}");
    }
}
