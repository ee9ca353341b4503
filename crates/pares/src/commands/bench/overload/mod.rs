//! `pares bench overload`: twice as much as the exchange can take, for minutes. Does it go on answering, and does it stay as large
//! as it is?
//!
//! ```text
//!   a short run finds the highest rate, and what a request takes on the disk | does the long one fit?
//!   sessions offer twice that ..................................... | the last answers
//!   every second: anonymous memory of every node
//! ```
//! | module | what |
//! |---|---|
//! | [`offer`] | more than the exchange takes, on a schedule |
//! | [`memory`] | what nodes hold in memory of their own |
//! | [`room`] | whether it fits this machine |

mod memory;
mod offer;
mod room;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use pares_node::SystemConfig;
use pares_node::config::DurabilitySetting;
use serde::Serialize;

use super::ScratchDirectory;
use super::end_to_end::{self, durability};
use crate::error::{CommandError, CommandResult};
use crate::load::{Load, LoadPlan, Rate};
use crate::progress;
use crate::system::ScratchSystem;
use crate::text::grouped;
use memory::Sample;
use offer::{Offer, Plan, Tally};
use room::Room;

/// Arguments of `pares bench overload`.
#[derive(clap::Args, Clone, Debug)]
pub struct Args {
    /// How long to offer too much
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=600))]
    minutes: u64,
    /// The same in seconds, for a short look
    #[arg(long, conflicts_with = "minutes", value_parser = clap::value_parser!(u64).range(1..=36_000))]
    seconds: Option<u64>,
    /// How long to look for the highest rate, seconds
    #[arg(long, default_value_t = 10)]
    search_seconds: u64,
    /// Sessions that offer, each its share
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    sessions: u32,
    /// How many venues race
    #[arg(long, default_value_t = 2)]
    venues: u16,
    /// How many recorders; each keeps all that is taken in
    #[arg(long, default_value_t = 2)]
    recorders: u16,
    /// What an answer promises: `os` or `disk`
    #[arg(long, default_value = "os", value_parser = durability)]
    durability: DurabilitySetting,
    /// Requests the gateway may have in flight; beyond it it refuses
    #[arg(long, default_value_t = 32_768)]
    in_flight_max: usize,
    /// Where to keep the system's files (default: a temporary directory)
    #[arg(long)]
    dir: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// What the benchmark gave.
#[derive(Clone, Debug, Serialize)]
pub struct Figures {
    /// Answers per second of the short run, which asks as fast as it is answered.
    pub highest_rate: u64,
    /// Requests sent per second; twice the highest rate but for what was withheld.
    pub offered_rate: u64,
    /// Answers per second meanwhile.
    pub answered_rate: u64,
    /// For how long, seconds.
    pub seconds: u64,
    /// Requests sent.
    pub sent: u64,
    /// Requests the gateway did not take in, each with a reason.
    pub rejected: u64,
    /// Requests that were due and not sent: the connection was full, or the load generator had no processor.
    pub withheld: u64,
    /// Requests neither answered nor rejected.
    pub lost: u64,
    /// Requests told more than once what became of them.
    pub duplicated: u64,
    /// The most anonymous memory that each node held in the second tenth of the time, KiB; empty if it was under ten seconds. By then
    /// recent names have filled their rings and checkpoints are as large as they get, if the time is minutes.
    pub anon_kib_start: BTreeMap<String, u64>,
    /// The same in the last tenth.
    pub anon_kib_end: BTreeMap<String, u64>,
    /// What the gateway's names took in between, KiB: each is remembered for life, up to `names_max`.
    pub names_kib: u64,
    /// How much the node that grew most has grown beside names, percent.
    pub growth_percent: f64,
    /// Bytes on the disk for each request taken in, over all recorders, in the short run.
    pub request_bytes: u64,
    /// Median of what was answered, from the time it was due, microseconds.
    pub p50_us: f64,
    /// 99th percentile.
    pub p99_us: f64,
}

/// Runs the benchmark and prints what it gave.
///
/// # Errors
/// If it does not fit this machine, the system fails, or something was lost or answered twice.
pub fn run(args: &Args) -> CommandResult {
    let figures = measure(args)?;
    if args.json {
        println!("{}", serde_json::to_string(&figures).expect("figures are plain numbers"));
    } else {
        print(&figures);
    }
    match (figures.lost, figures.duplicated) {
        (0, 0) => Ok(()),
        (lost, duplicated) => Err(CommandError::Failed(format!("{lost} lost, {duplicated} duplicated"))),
    }
}

fn measure(args: &Args) -> Result<Figures, CommandError> {
    let scratch = ScratchDirectory::create(args.dir.as_deref())?;
    let seconds = args.seconds.unwrap_or(args.minutes * 60);
    let (highest_rate, request_bytes) = search(args, &scratch.path().join("search"))?;
    let config = args.config();
    let gateways = config.gateways.len() as u64;
    let names_max = Room::measure(scratch.path(), request_bytes)?.names(highest_rate, seconds, gateways)?;
    let config = SystemConfig { names_max: names_max.max(config.names_max), ..config };
    let mut system = ScratchSystem::start(&config, Some(scratch.path().join("system")))?;
    let plan = LoadPlan::new(&config, system.addresses()?, Rate::Max);
    let offer = Offer::start(Plan {
        addresses: plan.addresses,
        instruments: plan.instruments,
        sessions: args.sessions,
        rate: 2 * highest_rate,
        seed: 1,
    })?;
    let tally = std::sync::Arc::clone(&offer.tally);
    let watched = watch(&mut system, &offer, seconds, scratch.path())?;
    let latencies = offer.finish()?;
    let us = |quantile| latencies.value_at_quantile(quantile) as f64 / 1_000.0;
    Ok(figures(&watched, &tally, highest_rate, request_bytes, [us(0.5), us(0.99)]))
}

/// The highest rate, and what a request takes on the disk, from a short run on a system of its own.
fn search(args: &Args, dir: &Path) -> Result<(u64, u64), CommandError> {
    let mut system = ScratchSystem::start(&args.config(), Some(dir.to_owned()))?;
    let mut plan = LoadPlan::new(system.supervisor.config(), system.addresses()?, Rate::Max);
    plan.duration = Some(Duration::from_secs(args.search_seconds));
    let bar = progress::seconds("highest rate", args.search_seconds);
    let begun = Instant::now();
    let before = room::recorded_bytes(system.supervisor.layout(), system.supervisor.config());
    let load = Load::start(plan)?;
    while !load.is_finished() {
        std::thread::sleep(Duration::from_millis(100));
        system.supervisor.tick()?;
        bar.set_position((begun.elapsed().as_millis() as u64).min(args.search_seconds * 1_000));
    }
    let observed = load.finish()?;
    bar.finish_and_clear();
    let answered = observed.completed.load(Ordering::Relaxed).max(1);
    let recorded = room::recorded_bytes(system.supervisor.layout(), system.supervisor.config());
    drop(system);
    std::fs::remove_dir_all(dir).map_err(CommandError::io("removing the files of the short run"))?;
    Ok(((answered / args.search_seconds.max(1)).max(1), recorded.saturating_sub(before).div_ceil(answered)))
}

/// What was seen while too much was offered.
struct Watched {
    samples: Vec<Sample>,
    seconds: f64,
    sent: u64,
    answered: u64,
}

/// Looks at every node once a second until the time is over.
fn watch(
    system: &mut ScratchSystem,
    offer: &Offer,
    seconds: u64,
    dir: &Path,
) -> Result<Watched, CommandError> {
    let bar = progress::seconds("twice the highest rate", seconds);
    let begun = Instant::now();
    let mut samples = Vec::new();
    while begun.elapsed() < Duration::from_secs(seconds) && !offer.is_finished() {
        std::thread::sleep(Duration::from_millis(20));
        if let Some(death) = system.supervisor.tick()?.first() {
            let why = death.complaint.as_deref().unwrap_or("it said nothing");
            return Err(CommandError::Failed(format!("{} died ({}): {why}", death.role, death.how)));
        }
        bar.set_position(begun.elapsed().as_millis() as u64);
        if begun.elapsed().as_secs() > samples.len() as u64 {
            samples.push(Sample::take(system.supervisor.layout(), system.supervisor.config())?);
            if room::free_bytes(dir)? < room::DISK_RESERVE / 2 {
                return Err(CommandError::Failed(format!("the disk is full after {} s", samples.len())));
            }
        }
    }
    bar.finish_and_clear();
    let [sent, answered] = [&offer.tally.sent, &offer.tally.answered].map(|n| n.load(Ordering::Relaxed));
    Ok(Watched { samples, seconds: begun.elapsed().as_secs_f64(), sent, answered })
}

fn figures(
    watched: &Watched,
    tally: &Tally,
    highest_rate: u64,
    request_bytes: u64,
    [p50_us, p99_us]: [f64; 2],
) -> Figures {
    let [sent, answered, rejected, duplicated, withheld] =
        [&tally.sent, &tally.answered, &tally.rejected, &tally.duplicated, &tally.withheld]
            .map(|counter| counter.load(Ordering::Relaxed));
    let changes = memory::changes(&watched.samples);
    let each =
        |of: fn(&memory::Change) -> u64| changes.iter().map(|(node, c)| (node.clone(), of(c))).collect();
    Figures {
        highest_rate,
        offered_rate: (watched.sent as f64 / watched.seconds) as u64,
        answered_rate: (watched.answered as f64 / watched.seconds) as u64,
        seconds: watched.seconds as u64,
        sent,
        rejected,
        withheld,
        lost: sent - answered - rejected,
        duplicated,
        anon_kib_start: each(|change| change.start_kib),
        anon_kib_end: each(|change| change.end_kib),
        names_kib: changes.values().map(|change| change.names_kib).sum(),
        growth_percent: changes.values().map(memory::Change::growth_percent).fold(0.0, f64::max),
        request_bytes,
        p50_us,
        p99_us,
    }
}

impl Args {
    /// The system: that of `pares bench end-to-end`.
    fn config(&self) -> SystemConfig {
        SystemConfig {
            durability: self.durability,
            venues: self.venues,
            recorders: self.recorders,
            in_flight_max: self.in_flight_max,
            gateways: vec![([127, 0, 0, 1], 0).into()],
            instruments: (1..=10).map(end_to_end::instrument).collect(),
            ..SystemConfig::default()
        }
    }
}

fn print(figures: &Figures) {
    println!("highest rate   {:>12} answers a second", grouped(figures.highest_rate));
    println!(
        "offered        {:>12} a second for {} s; withheld {}",
        grouped(figures.offered_rate),
        figures.seconds,
        grouped(figures.withheld)
    );
    println!(
        "answered       {:>12} a second; p50 {:.0} us, p99 {:.0} us",
        grouped(figures.answered_rate),
        figures.p50_us,
        figures.p99_us
    );
    println!("rejected       {:>12}", grouped(figures.rejected));
    println!("lost           {:>12}", figures.lost);
    println!("duplicated     {:>12}", figures.duplicated);
    for (node, start) in &figures.anon_kib_start {
        let end = figures.anon_kib_end[node];
        println!("{node:<14} {:>12} KiB, then {} KiB", grouped(*start), grouped(end));
    }
    println!(
        "growth         {:>11.1} % beside {} KiB of names",
        figures.growth_percent,
        grouped(figures.names_kib)
    );
}
