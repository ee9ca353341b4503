//! Several times as much as the exchange can take, for minutes. Does it continue to answer, what does a refusal cost, and does it stay as
//! large as it is?
//!
//! ```text
//!   as fast as it is answered       -> highest rate; what an answer takes of the disk, and of processors | does the long run fit?
//!   a multiple of that, open loop   -> answered, refused, latency of what is answered, of cancels; every second: anonymous memory
//!                                      of every node
//!   the same, to venues that sleep  -> processor time of a refusal: the gateway's, without what its few answers cost
//!   most of the time
//! ```
//! Each on a system of its own.
//!
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

use hdrhistogram::Histogram;
use pares_load::{
    LabError, LabResult, Latencies, Load, LoadPlan, OpenLoopLoad, OpenLoopPlan, Rate, ScratchDirectory,
    ScratchSystem, Stolen, none_of, print_figures, processor,
};
use pares_node::{NodeId, SystemConfig};
use pares_text::progress;
use rustix::process::Signal;
use serde::Serialize;

use super::Args;
use memory::Sample;
use room::Room;

/// The longest flood.
const SECONDS_MAX: u64 = 36_000;
/// The longest look for the highest rate, and at refusals.
const PART_SECONDS_MAX: u64 = 10;
/// Sessions that offer, each its share.
const SESSIONS: u32 = 8;
/// Before anything is measured: caches, indexes and logs are as they stay, and the gateway knows what the exchange takes.
const WARM_UP: Duration = Duration::from_secs(1);
/// Where all but a few are to be refused, venues sleep for so long and then work for so long, by turns.
const SLEEPS: Duration = Duration::from_millis(9);
const WORKS: Duration = Duration::from_millis(1);

/// What too much for minutes gave.
#[derive(Clone, Debug, Serialize)]
pub struct Endurance {
    /// Answers per second, asked as fast as answered.
    pub highest_rate: u64,
    /// Requests that were due in a second.
    pub due_rate: u64,
    /// Of those sent: the connections took no more.
    pub offered_rate: u64,
    /// Answers per second meanwhile.
    pub answered_rate: u64,
    /// Refusals per second meanwhile.
    pub refused_rate: u64,
    /// For how long, seconds.
    pub seconds: u64,
    /// Requests sent, until the last was answered.
    pub sent: u64,
    /// Requests the gateway did not take in, each with a reason.
    pub rejected: u64,
    /// Of those, cancels, while rates were measured.
    pub cancels_refused: u64,
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
    /// 99th percentile of cancels.
    pub cancel_p99_us: f64,
    /// Processor time that the host of a virtual machine kept meanwhile, of all processors together, milliseconds a second.
    pub stolen_ms_per_s: f64,
    /// Processor time of an answer at the highest rate, of all nodes, nanoseconds.
    pub answer_ns: f64,
    /// The gateway's part of it.
    pub answer_gateway_ns: f64,
    /// Processor time of a refusal, nanoseconds.
    pub refusal_ns: f64,
    /// What a refusal costs, answers.
    pub refusal_cost: f64,
}

/// Offers too much for so many minutes and prints what it gave.
///
/// # Errors
/// If it does not fit this machine, the system fails, or something was lost or answered twice.
pub(super) fn run(args: &Args, minutes: f64) -> LabResult {
    let seconds = (minutes * 60.0) as u64;
    let figures = measure(args, seconds.clamp(1, SECONDS_MAX))?;
    print_figures(args.load.json, &figures);
    none_of([(figures.lost, "lost"), (figures.duplicated, "duplicated")])
}

fn measure(args: &Args, seconds: u64) -> Result<Endurance, LabError> {
    let scratch = ScratchDirectory::create(args.load.dir.as_deref())?;
    let config = SystemConfig { wait_target_ms: args.wait_target_ms, ..args.config() };
    let part = (seconds / 10).clamp(1, PART_SECONDS_MAX);
    let highest = search(args, &config, part, &scratch.path().join("search"))?;
    let (room, gateways) =
        (Room::measure(scratch.path(), highest.request_bytes)?, config.gateways.len() as u64);
    let names_max = room.names(highest.rate, seconds, gateways)?.max(config.names_max);
    let config = SystemConfig { names_max, ..config };
    let rate = (highest.rate as f64 * args.times) as u64;
    let over = Offered::measure(args, &config, (rate, seconds, false), &scratch.path().join("system"))?;
    let refused = Offered::measure(args, &config, (rate, part, true), &scratch.path().join("refusing"))?;
    Ok(figures(&over, rate, &highest, refused.refusal_ns(&highest)))
}

/// What it was asked for as fast as it answers.
struct Highest {
    rate: u64,
    request_bytes: u64,
    answer_ns: f64,
    answer_gateway_ns: f64,
}

/// The highest rate, and what an answer takes, from a short run on a system of its own.
fn search(args: &Args, config: &SystemConfig, seconds: u64, dir: &Path) -> Result<Highest, LabError> {
    let mut system = ScratchSystem::start(config, Some(dir.to_owned()))?;
    let mut plan = LoadPlan::new(system.supervisor.config(), system.addresses()?, Rate::Max);
    (plan.seed, plan.in_flight_max) = (args.load.seed, args.load.in_flight);
    let recorded =
        |system: &ScratchSystem| room::recorded_bytes(system.supervisor.layout(), system.supervisor.config());
    let (bytes, bar) = (recorded(&system), progress::seconds("highest rate", seconds));
    let load = Load::start(plan)?;
    let answered = || load.observed().completed.load(Ordering::Relaxed);
    pass(&mut system, WARM_UP, false)?;
    let used = |system: &ScratchSystem| (used(system, |_| true), used(system, is_gateway));
    let (before, first, begun) = (used(&system), answered(), Instant::now());
    while begun.elapsed() < Duration::from_secs(seconds) && !load.is_finished() {
        pass(&mut system, Duration::from_millis(100), false)?;
        bar.set_position(begun.elapsed().as_millis() as u64);
    }
    let (after, answers, took) = (used(&system), (answered() - first).max(1), begun.elapsed());
    let all = load.finish()?.completed.load(Ordering::Relaxed).max(1);
    bar.finish_and_clear();
    let bytes = recorded(&system).saturating_sub(bytes);
    drop(system);
    std::fs::remove_dir_all(dir).map_err(LabError::io("removing the files of the short run"))?;
    let each = |after: Duration, before: Duration| (after - before).as_nanos() as f64 / answers as f64;
    Ok(Highest {
        rate: ((answers as f64 / took.as_secs_f64()) as u64).max(1),
        request_bytes: bytes.div_ceil(all),
        answer_ns: each(after.0, before.0),
        answer_gateway_ns: each(after.1, before.1),
    })
}

/// What became of what was offered.
struct Offered {
    samples: Vec<Sample>,
    took: Duration,
    stolen_ms: f64,
    /// In that time: sent, answered, rejected, cancels rejected.
    counts: [u64; 4],
    /// Processor time of the gateways.
    used: Duration,
    /// When all was answered: sent, answered, rejected, duplicated, withheld.
    ends: [u64; 5],
    latencies: Latencies,
}

impl Offered {
    /// Offers so much, perhaps to venues that sleep most of the time.
    fn measure(
        args: &Args,
        config: &SystemConfig,
        (rate, seconds, sleep): (u64, u64, bool),
        dir: &Path,
    ) -> Result<Self, LabError> {
        let mut system = ScratchSystem::start(config, Some(dir.to_owned()))?;
        let LoadPlan { addresses, instruments, .. } = LoadPlan::new(config, system.addresses()?, Rate::Max);
        let plan = OpenLoopPlan { addresses, instruments, sessions: SESSIONS, rate, seed: args.load.seed };
        let offer = OpenLoopLoad::start(plan)?;
        let tally = std::sync::Arc::clone(&offer.tally);
        pass(&mut system, WARM_UP, sleep)?;
        let count = || {
            let all = [&tally.sent, &tally.answered, &tally.rejected, &tally.cancels_rejected];
            all.map(|count| count.load(Ordering::Relaxed))
        };
        let (kept, before, first, begun) =
            (Stolen::begin(), used(&system, is_gateway), count(), Instant::now());
        let samples = watch(&mut system, &offer, (seconds, sleep), dir)?;
        let (stolen_ms, after, last, took) = (kept.ms(), used(&system, is_gateway), count(), begun.elapsed());
        let latencies = offer.finish()?;
        let ends = [&tally.sent, &tally.answered, &tally.rejected, &tally.duplicated, &tally.withheld];
        Ok(Self {
            samples,
            took,
            stolen_ms,
            counts: std::array::from_fn(|n| last[n] - first[n]),
            used: after.saturating_sub(before),
            ends: ends.map(|count| count.load(Ordering::Relaxed)),
            latencies,
        })
    }

    /// Processor time of a refusal at the gateway.
    fn refusal_ns(&self, highest: &Highest) -> f64 {
        let [_, answered, rejected, _] = self.counts;
        let answers_ns = answered as f64 * highest.answer_gateway_ns;
        (self.used.as_nanos() as f64 - answers_ns) / rejected.max(1) as f64
    }
}

/// Looks at every node once a second until the time is over.
fn watch(
    system: &mut ScratchSystem,
    offer: &OpenLoopLoad,
    (seconds, sleep): (u64, bool),
    dir: &Path,
) -> Result<Vec<Sample>, LabError> {
    let bar = progress::seconds("more than the highest rate", seconds);
    let begun = Instant::now();
    let mut samples = Vec::new();
    while begun.elapsed() < Duration::from_secs(seconds) && !offer.is_finished() {
        pass(system, Duration::from_millis(20), sleep)?;
        bar.set_position(begun.elapsed().as_millis() as u64);
        if begun.elapsed().as_secs() > samples.len() as u64 {
            samples.push(Sample::take(system.supervisor.layout(), system.supervisor.config())?);
            if room::free_bytes(dir)? < room::DISK_RESERVE / 2 {
                return Err(LabError::Failed(format!("the disk is full after {} s", samples.len())));
            }
        }
    }
    bar.finish_and_clear();
    Ok(samples)
}

/// Waits for so long, and has the venues sleep most of it if they are to.
///
/// # Errors
/// If a node has died.
fn pass(system: &mut ScratchSystem, time: Duration, sleep: bool) -> LabResult {
    let begun = Instant::now();
    while sleep && begun.elapsed() < time {
        signal(system, Signal::STOP)?;
        std::thread::sleep(SLEEPS);
        signal(system, Signal::CONT)?;
        std::thread::sleep(WORKS);
    }
    std::thread::sleep(time.saturating_sub(begun.elapsed()));
    match system.supervisor.tick().first() {
        None => Ok(()),
        Some(death) => {
            let why = death.complaint.as_deref().unwrap_or("it said nothing");
            Err(LabError::Failed(format!("{} died ({}): {why}", death.node, death.how)))
        }
    }
}

fn signal(system: &mut ScratchSystem, signal: Signal) -> LabResult {
    for venue in system.supervisor.config().clone().venue_ids() {
        system.supervisor.signal(NodeId::Venue(venue), signal)?;
    }
    Ok(())
}

fn is_gateway(node: NodeId) -> bool {
    matches!(node, NodeId::Gateway(_))
}

/// Processor time that these nodes have used so far.
fn used(system: &ScratchSystem, which: impl Fn(NodeId) -> bool) -> Duration {
    let nodes = NodeId::all(system.supervisor.config()).into_iter().filter(|&node| which(node));
    let pid = |node| std::fs::read_to_string(system.supervisor.layout().pid(node)).ok()?.trim().parse().ok();
    nodes.filter_map(pid).filter_map(processor::used).sum()
}

fn figures(over: &Offered, due_rate: u64, highest: &Highest, refusal_ns: f64) -> Endurance {
    let changes = memory::changes(&over.samples);
    let each =
        |of: fn(&memory::Change) -> u64| changes.iter().map(|(node, c)| (node.clone(), of(c))).collect();
    let us = |of: &Histogram<u64>, quantile| of.value_at_quantile(quantile) as f64 / 1_000.0;
    let a_second = |count: u64| (count as f64 / over.took.as_secs_f64()) as u64;
    let ([sent, answered, rejected, duplicated, withheld], latencies) = (over.ends, &over.latencies);
    Endurance {
        highest_rate: highest.rate,
        due_rate,
        offered_rate: a_second(over.counts[0]),
        answered_rate: a_second(over.counts[1]),
        refused_rate: a_second(over.counts[2]),
        seconds: over.took.as_secs(),
        sent,
        rejected,
        cancels_refused: over.counts[3],
        withheld,
        lost: sent - answered - rejected,
        duplicated,
        anon_kib_start: each(|change| change.start_kib),
        anon_kib_end: each(|change| change.end_kib),
        names_kib: changes.values().map(|change| change.names_kib).sum(),
        growth_percent: changes.values().map(memory::Change::growth_percent).fold(0.0, f64::max),
        request_bytes: highest.request_bytes,
        p50_us: us(&latencies.all, 0.5),
        p99_us: us(&latencies.all, 0.99),
        cancel_p99_us: us(&latencies.cancels, 0.99),
        stolen_ms_per_s: over.stolen_ms / over.took.as_secs_f64(),
        answer_ns: highest.answer_ns,
        answer_gateway_ns: highest.answer_gateway_ns,
        refusal_ns,
        refusal_cost: refusal_ns / highest.answer_ns,
    }
}
