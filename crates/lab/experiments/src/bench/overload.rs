//! `pares bench overload`: more than the exchange takes. How much of it is answered, how long does that wait, and what does a refusal cost?
//!
//! ```text
//!   as fast as it is answered       -> highest rate; processor time of an answer, all nodes
//!   a multiple of that, open loop   -> answered, refused, latency of what is answered, of cancels
//!   the same, to venues that sleep  -> processor time of a refusal: the gateway's, without what its few answers cost
//!   most of the time
//! ```
//! Each on a system of its own.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use pares_load::{
    Excess, ExcessPlan, ExcessTally, LabError, LabResult, Load, LoadPlan, Rate, ScratchSystem, Stolen, setup,
};
use pares_node::{NodeId, SystemConfig};
use pares_text::grouped;
use rustix::process::Signal;
use serde::Serialize;

use super::processor;

/// Sessions that offer, each its share.
const SESSIONS: u32 = 8;
/// Before anything is measured: caches, indexes and logs are as they stay, and the gateway knows what the exchange takes.
const WARM_UP: Duration = Duration::from_secs(1);
/// Where all but a few are to be refused, venues sleep for so long and then work for so long, by turns.
const SLEEPS: Duration = Duration::from_millis(9);
const WORKS: Duration = Duration::from_millis(1);

/// Arguments of `pares bench overload`.
#[derive(clap::Args)]
#[group(id = "overload")]
#[command(mut_arg("rate", |rate| rate.hide(true)))]
pub struct Args {
    #[command(flatten)]
    setup: setup::Args,
    /// What is offered, as a multiple of the highest rate
    #[arg(long, default_value_t = 2.0)]
    times: f64,
    /// Milliseconds that requests may wait before orders are refused; 0 for no target
    #[arg(long, default_value_t = SystemConfig::default().wait_target_ms)]
    wait_target_ms: u64,
}

/// What a run gave.
#[derive(Clone, Debug, Serialize)]
struct Figures {
    /// Answers per second, asked as fast as answered.
    highest_rate: u64,
    /// Requests that were due in a second.
    due_rate: u64,
    /// Of those sent: the connections took no more.
    offered_rate: u64,
    /// Answers per second meanwhile.
    answered_rate: u64,
    /// Refusals per second meanwhile.
    refused_rate: u64,
    /// Of refused requests, cancels.
    cancels_refused: u64,
    /// Latency of what was answered, from the time it was due, microseconds.
    p50_us: f64,
    /// 99th percentile.
    p99_us: f64,
    /// 99th percentile of cancels.
    cancel_p99_us: f64,
    /// Processor time that the host of a virtual machine kept meanwhile, of all processors together, milliseconds a second.
    stolen_ms_per_s: f64,
    /// Processor time of an answer at the highest rate, of all nodes, nanoseconds.
    answer_ns: f64,
    /// The gateway's part of it.
    answer_gateway_ns: f64,
    /// Processor time of a refusal, nanoseconds.
    refusal_ns: f64,
    /// What a refusal costs, answers.
    refusal_cost: f64,
}

/// Runs the benchmark and prints what it gave.
///
/// # Errors
/// If a system does not come up or a connection is lost.
pub fn run(args: &Args) -> LabResult {
    let figures = measure(args)?;
    if args.setup.json {
        pares_text::say!("{}", serde_json::to_string(&figures).expect("figures are plain numbers"));
    } else {
        print(args, &figures);
    }
    Ok(())
}

fn measure(args: &Args) -> Result<Figures, LabError> {
    let config = SystemConfig { wait_target_ms: args.wait_target_ms, ..args.setup.config() };
    let highest = highest(args, &config)?;
    let due_rate = (highest.rate as f64 * args.times) as u64;
    let over = overload(args, &config, due_rate, false)?;
    let refused = overload(args, &config, due_rate, true)?;
    let us = |of: &Histogram<u64>, quantile| of.value_at_quantile(quantile) as f64 / 1_000.0;
    let answers_ns = refused.answered as f64 * highest.answer_gateway_ns;
    let refusal_ns = (refused.used.as_nanos() as f64 - answers_ns) / refused.rejected.max(1) as f64;
    let a_second = |count: u64| (count as f64 / over.took.as_secs_f64()) as u64;
    Ok(Figures {
        highest_rate: highest.rate,
        due_rate,
        offered_rate: a_second(over.sent),
        answered_rate: a_second(over.answered),
        refused_rate: a_second(over.rejected),
        cancels_refused: over.cancels_rejected,
        p50_us: us(&over.latencies.all, 0.5),
        p99_us: us(&over.latencies.all, 0.99),
        cancel_p99_us: us(&over.latencies.cancels, 0.99),
        stolen_ms_per_s: over.stolen_ms / over.took.as_secs_f64(),
        answer_ns: highest.answer_ns,
        answer_gateway_ns: highest.answer_gateway_ns,
        refusal_ns,
        refusal_cost: refusal_ns / highest.answer_ns,
    })
}

struct Highest {
    rate: u64,
    answer_ns: f64,
    answer_gateway_ns: f64,
}

/// A system in a directory of its own below the one that is given.
fn start(args: &Args, config: &SystemConfig, name: &str) -> Result<ScratchSystem, LabError> {
    ScratchSystem::start(config, args.setup.dir.as_ref().map(|dir| dir.join(name)))
}

/// Asks as fast as it is answered.
fn highest(args: &Args, config: &SystemConfig) -> Result<Highest, LabError> {
    let system = start(args, config, "highest")?;
    let mut plan = LoadPlan::new(config, system.addresses()?, Rate::Max);
    (plan.seed, plan.in_flight_max) = (args.setup.seed, args.setup.in_flight);
    let load = Load::start(plan)?;
    std::thread::sleep(WARM_UP);
    let answered = || load.observed().completed.load(Ordering::Relaxed);
    let used = || (used(&system, |_| true), used(&system, is_gateway));
    let (before, first, begun) = (used(), answered(), Instant::now());
    std::thread::sleep(Duration::from_secs(args.setup.seconds));
    let (after, answers, took) = (used(), (answered() - first).max(1), begun.elapsed());
    load.finish()?;
    let each = |after: Duration, before: Duration| (after - before).as_nanos() as f64 / answers as f64;
    Ok(Highest {
        rate: (answers as f64 / took.as_secs_f64()) as u64,
        answer_ns: each(after.0, before.0),
        answer_gateway_ns: each(after.1, before.1),
    })
}

/// What became of what was offered in the time.
struct Offered {
    stolen_ms: f64,
    sent: u64,
    answered: u64,
    rejected: u64,
    cancels_rejected: u64,
    took: Duration,
    /// Processor time of the gateways.
    used: Duration,
    latencies: pares_load::Latencies,
}

/// Offers so much, perhaps to venues that sleep most of the time.
fn overload(args: &Args, config: &SystemConfig, rate: u64, sleep: bool) -> Result<Offered, LabError> {
    let mut system = start(args, config, if sleep { "refusing" } else { "overload" })?;
    let LoadPlan { addresses, instruments, .. } = LoadPlan::new(config, system.addresses()?, Rate::Max);
    let (sessions, seed) = (SESSIONS, args.setup.seed);
    let offer = Excess::start(ExcessPlan { addresses, instruments, sessions, rate, seed })?;
    pass(&mut system, WARM_UP, sleep)?;
    let counts = |tally: &ExcessTally| {
        let all = [&tally.sent, &tally.answered, &tally.rejected, &tally.cancels_rejected];
        all.map(|count: &AtomicU64| count.load(Ordering::Relaxed))
    };
    let kept = Stolen::begin();
    let (before, first, begun) = (used(&system, is_gateway), counts(&offer.tally), Instant::now());
    pass(&mut system, Duration::from_secs(args.setup.seconds), sleep)?;
    let stolen_ms = kept.ms();
    let (after, last, took) = (used(&system, is_gateway), counts(&offer.tally), begun.elapsed());
    let latencies = offer.finish()?;
    let [sent, answered, rejected, cancels_rejected] = std::array::from_fn(|n| last[n] - first[n]);
    Ok(Offered {
        sent,
        answered,
        rejected,
        cancels_rejected,
        took,
        used: after - before,
        stolen_ms,
        latencies,
    })
}

/// Waits for so long, and has the venues sleep most of it if they are to.
fn pass(system: &mut ScratchSystem, time: Duration, sleep: bool) -> Result<(), LabError> {
    let begun = Instant::now();
    while sleep && begun.elapsed() < time {
        signal(system, Signal::STOP)?;
        std::thread::sleep(SLEEPS);
        signal(system, Signal::CONT)?;
        std::thread::sleep(WORKS);
    }
    std::thread::sleep(time.saturating_sub(begun.elapsed()));
    Ok(())
}

fn signal(system: &mut ScratchSystem, signal: Signal) -> Result<(), LabError> {
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

fn print(args: &Args, figures: &Figures) {
    let us = |us: f64| grouped(us as u64);
    pares_text::say!("highest rate {:>12} answers a second", grouped(figures.highest_rate));
    pares_text::say!(
        "due          {:>12} a second for {} s; sent {} a second",
        grouped(figures.due_rate),
        args.setup.seconds,
        grouped(figures.offered_rate)
    );
    pares_text::say!(
        "answered     {:>12} a second; p50 {} us, p99 {} us; cancels p99 {} us",
        grouped(figures.answered_rate),
        us(figures.p50_us),
        us(figures.p99_us),
        us(figures.cancel_p99_us)
    );
    pares_text::say!(
        "             the host kept {:.0} ms of the processors each second",
        figures.stolen_ms_per_s
    );
    pares_text::say!(
        "refused      {:>12} a second; cancels among them {}",
        grouped(figures.refused_rate),
        grouped(figures.cancels_refused)
    );
    pares_text::say!(
        "a refusal    {:>12.0} ns of the processor; an answer {:.0} ns, {:.0} ns of it the gateway's: {:.2} of an answer",
        figures.refusal_ns,
        figures.answer_ns,
        figures.answer_gateway_ns,
        figures.refusal_cost
    );
}
