//! Twice as much as the exchange can take, for minutes. Does it go on answering, and does it stay as large
//! as it is?
//!
//! ```text
//!   a short run finds the highest rate, and what a request takes on the disk | does the long one fit?
//!   sessions offer twice that ..................................... | the last answers
//!   every second: anonymous memory of every node
//! ```
//! | module | what |
//! |---|---|
//! | [`memory`] | what nodes hold in memory of their own |
//! | [`room`] | whether it fits this machine |

pub(super) mod memory;
mod room;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use pares_load::{
    Excess, ExcessPlan, ExcessTally, LabError, LabResult, Load, LoadPlan, Rate, ScratchDirectory,
    ScratchSystem,
};
use pares_node::SystemConfig;
use pares_text::grouped;
use pares_text::progress;
use serde::Serialize;

use super::Args;
use memory::Sample;
use room::Room;

/// The longest flood.
const SECONDS_MAX: u64 = 36_000;
/// The longest look for the highest rate.
const SEARCH_SECONDS_MAX: u64 = 10;
/// Sessions that offer, each its share.
const SESSIONS: u32 = 8;
/// Requests the gateway may have in flight; beyond it it refuses.
const IN_FLIGHT_MAX: usize = 32_768;

/// What too much for minutes gave.
#[derive(Clone, Debug, Serialize)]
pub struct Endurance {
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
    /// What the gateway's names took in between, KiB: the latest `names_max` are kept.
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

/// Offers too much for so many minutes and prints what it gave.
///
/// # Errors
/// If it does not fit this machine, the system fails, or something was lost or answered twice.
pub(super) fn run(args: &Args, minutes: f64) -> LabResult {
    let seconds = (minutes * 60.0) as u64;
    let figures = measure(args, seconds.clamp(1, SECONDS_MAX))?;
    if args.load.json {
        pares_text::say!("{}", serde_json::to_string(&figures).expect("figures are plain numbers"));
    } else {
        print(&figures);
    }
    match (figures.lost, figures.duplicated) {
        (0, 0) => Ok(()),
        (lost, duplicated) => Err(LabError::Failed(format!("{lost} lost, {duplicated} duplicated"))),
    }
}

fn measure(args: &Args, seconds: u64) -> Result<Endurance, LabError> {
    let scratch = ScratchDirectory::create(args.load.dir.as_deref())?;
    let config = SystemConfig { in_flight_max: IN_FLIGHT_MAX, ..args.config() };
    let (highest_rate, request_bytes) =
        search(&config, (seconds / 10).clamp(1, SEARCH_SECONDS_MAX), &scratch.path().join("search"))?;
    let gateways = config.gateways.len() as u64;
    let names_max = Room::measure(scratch.path(), request_bytes)?.names(highest_rate, seconds, gateways)?;
    let config = SystemConfig { names_max: names_max.max(config.names_max), ..config };
    let mut system = ScratchSystem::start(&config, Some(scratch.path().join("system")))?;
    let plan = LoadPlan::new(&config, system.addresses()?, Rate::Max);
    let offer = Excess::start(ExcessPlan {
        addresses: plan.addresses,
        instruments: plan.instruments,
        sessions: SESSIONS,
        rate: 2 * highest_rate,
        seed: 1,
    })?;
    let tally = std::sync::Arc::clone(&offer.tally);
    let watched = watch(&mut system, &offer, seconds, scratch.path())?;
    let latencies = offer.finish()?.all;
    let us = |quantile| latencies.value_at_quantile(quantile) as f64 / 1_000.0;
    Ok(figures(&watched, &tally, highest_rate, request_bytes, [us(0.5), us(0.99)]))
}

/// The highest rate, and what a request takes on the disk, from a short run on a system of its own.
fn search(config: &SystemConfig, seconds: u64, dir: &Path) -> Result<(u64, u64), LabError> {
    let mut system = ScratchSystem::start(config, Some(dir.to_owned()))?;
    let mut plan = LoadPlan::new(system.supervisor.config(), system.addresses()?, Rate::Max);
    plan.duration = Some(Duration::from_secs(seconds));
    let bar = progress::seconds("highest rate", seconds);
    let begun = Instant::now();
    let before = room::recorded_bytes(system.supervisor.layout(), system.supervisor.config());
    let load = Load::start(plan)?;
    while !load.is_finished() {
        std::thread::sleep(Duration::from_millis(100));
        system.supervisor.tick();
        bar.set_position((begun.elapsed().as_millis() as u64).min(seconds * 1_000));
    }
    let observed = load.finish()?;
    bar.finish_and_clear();
    let answered = observed.completed.load(Ordering::Relaxed).max(1);
    let recorded = room::recorded_bytes(system.supervisor.layout(), system.supervisor.config());
    drop(system);
    std::fs::remove_dir_all(dir).map_err(LabError::io("removing the files of the short run"))?;
    Ok(((answered / seconds.max(1)).max(1), recorded.saturating_sub(before).div_ceil(answered)))
}

/// What was seen while too much was offered.
struct Watched {
    samples: Vec<Sample>,
    seconds: f64,
    sent: u64,
    answered: u64,
}

/// Looks at every node once a second until the time is over.
fn watch(system: &mut ScratchSystem, offer: &Excess, seconds: u64, dir: &Path) -> Result<Watched, LabError> {
    let bar = progress::seconds("twice the highest rate", seconds);
    let begun = Instant::now();
    let mut samples = Vec::new();
    while begun.elapsed() < Duration::from_secs(seconds) && !offer.is_finished() {
        std::thread::sleep(Duration::from_millis(20));
        if let Some(death) = system.supervisor.tick().first() {
            let why = death.complaint.as_deref().unwrap_or("it said nothing");
            return Err(LabError::Failed(format!("{} died ({}): {why}", death.node, death.how)));
        }
        bar.set_position(begun.elapsed().as_millis() as u64);
        if begun.elapsed().as_secs() > samples.len() as u64 {
            samples.push(Sample::take(system.supervisor.layout(), system.supervisor.config())?);
            if room::free_bytes(dir)? < room::DISK_RESERVE / 2 {
                return Err(LabError::Failed(format!("the disk is full after {} s", samples.len())));
            }
        }
    }
    bar.finish_and_clear();
    let [sent, answered] = [&offer.tally.sent, &offer.tally.answered].map(|n| n.load(Ordering::Relaxed));
    Ok(Watched { samples, seconds: begun.elapsed().as_secs_f64(), sent, answered })
}

fn figures(
    watched: &Watched,
    tally: &ExcessTally,
    highest_rate: u64,
    request_bytes: u64,
    [p50_us, p99_us]: [f64; 2],
) -> Endurance {
    let [sent, answered, rejected, duplicated, withheld] =
        [&tally.sent, &tally.answered, &tally.rejected, &tally.duplicated, &tally.withheld]
            .map(|counter| counter.load(Ordering::Relaxed));
    let changes = memory::changes(&watched.samples);
    let each =
        |of: fn(&memory::Change) -> u64| changes.iter().map(|(node, c)| (node.clone(), of(c))).collect();
    Endurance {
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

fn print(figures: &Endurance) {
    pares_text::say!("highest rate   {:>12} answers a second", grouped(figures.highest_rate));
    pares_text::say!(
        "offered        {:>12} a second for {} s; withheld {}",
        grouped(figures.offered_rate),
        figures.seconds,
        grouped(figures.withheld)
    );
    pares_text::say!(
        "answered       {:>12} a second; p50 {:.0} us, p99 {:.0} us",
        grouped(figures.answered_rate),
        figures.p50_us,
        figures.p99_us
    );
    pares_text::say!("rejected       {:>12}", grouped(figures.rejected));
    pares_text::say!("lost           {:>12}", figures.lost);
    pares_text::say!("duplicated     {:>12}", figures.duplicated);
    for (node, start) in &figures.anon_kib_start {
        let end = figures.anon_kib_end[node];
        pares_text::say!("{node:<14} {:>12} KiB, then {} KiB", grouped(*start), grouped(end));
    }
    pares_text::say!(
        "growth         {:>11.1} % beside {} KiB of names",
        figures.growth_percent,
        grouped(figures.names_kib)
    );
}
