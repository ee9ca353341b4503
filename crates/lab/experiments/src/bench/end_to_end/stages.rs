//! What a request costs, by the stages of its way.
//!
//! Two readings of a clock take as long as most stages, so nothing is timed. The kernel knows exactly how much processor time each thread
//! used, for how many requests the load generator knows; and where a thread was while it used it `perf` knows, if it is installed: 499
//! times a second it notes each thread's function, and a stage is the share of its functions (`stage.rs`). Without `perf` only the times
//! by role are reported.

use std::collections::BTreeMap;
use std::process::id;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use pares_load::processor::{self, Spent};
use pares_load::{LabError, Load, ScratchSystem};
use pares_node::NodeId;
use serde::Serialize;

use super::stage::{Stage, Who};
use super::{Args, samples};

/// Before anything is measured: caches, indexes and logs are as they stay.
const WARM_UP: Duration = Duration::from_secs(1);

/// What a run gave. All nanoseconds are of processor time for each request, of all processes together.
#[derive(Debug, Serialize)]
pub(super) struct Figures {
    /// Requests answered while it was measured.
    requests: u64,
    /// Of them in a second.
    throughput: u64,
    /// By role; the client is the load generator.
    roles: BTreeMap<Who, f64>,
    /// In the kernel, as far as it is known without `perf`.
    kernel_ns: f64,
    /// All of it.
    total_ns: f64,
    /// By stage; nothing without `perf`.
    stages: Option<BTreeMap<Stage, f64>>,
}

pub(super) fn measure(args: &Args) -> Result<Figures, LabError> {
    let (system, plan) = super::start(args)?;
    let load = Load::start(plan)?;
    std::thread::sleep(WARM_UP);
    let processes = processes(&system);
    let answered = || load.observed().completed.load(Ordering::Relaxed);
    let (before, first, begun) = (used(&processes), answered(), Instant::now());
    let samples = samples::take(processes.keys().copied(), Duration::from_secs(args.setup.seconds))?;
    let (after, requests, took) = (used(&processes), answered() - first, begun.elapsed());
    load.finish()?;
    drop(system);
    let spent = after.into_iter().map(|(key, spent)| {
        let earlier = before.get(&key).copied().unwrap_or_default();
        (key, spent.since(earlier))
    });
    let counts = samples.map(|samples| samples.counts()).transpose()?;
    Ok(figures((requests, took), &processes, &spent.collect(), counts.as_ref()))
}

/// The processes of the system, and this one.
fn processes(system: &ScratchSystem) -> BTreeMap<u32, Who> {
    let supervisor = &system.supervisor;
    let nodes = NodeId::all(supervisor.config()).into_iter().filter_map(|node| {
        let pid = std::fs::read_to_string(supervisor.layout().pid(node)).ok()?.trim().parse().ok()?;
        Some((pid, Who::of(node)?))
    });
    nodes.chain([(id(), Who::Client)]).collect()
}

/// By process and name of thread. Of this process only the load generator counts.
type Threads = BTreeMap<(u32, String), Spent>;

fn used(processes: &BTreeMap<u32, Who>) -> Threads {
    let mut all = Threads::new();
    for (&process, &who) in processes {
        let threads = processor::used_by_threads_of(process).into_iter();
        let counted = threads.filter(|(name, _)| who != Who::Client || name == "load");
        all.extend(counted.map(|(name, spent)| ((process, name), spent)));
    }
    all
}

fn figures(
    (requests, took): (u64, Duration),
    processes: &BTreeMap<u32, Who>,
    spent: &Threads,
    counts: Option<&samples::Counts>,
) -> Figures {
    let each = |time: Duration| time.as_nanos() as f64 / requests.max(1) as f64;
    let mut roles = BTreeMap::<Who, f64>::new();
    for ((process, _), spent) in spent {
        *roles.entry(processes[process]).or_default() += each(spent.all());
    }
    Figures {
        requests,
        throughput: (requests as f64 / took.as_secs_f64()) as u64,
        kernel_ns: spent.values().map(|spent| each(spent.kernel)).sum(),
        total_ns: roles.values().sum(),
        roles,
        stages: counts.map(|counts| by_stage(processes, spent, counts, each)),
    }
}

/// Gives each thread's time to the stages by the places where it was met.
fn by_stage(
    processes: &BTreeMap<u32, Who>,
    spent: &Threads,
    counts: &samples::Counts,
    each: impl Fn(Duration) -> f64,
) -> BTreeMap<Stage, f64> {
    let mut stages = BTreeMap::<Stage, f64>::new();
    for (key, spent) in spent {
        let Some(places) = counts.get(key) else { continue };
        let (process, thread) = key;
        let all: u64 = places.values().sum();
        for (function, count) in places {
            let stage = Stage::of(processes[process], thread, function);
            *stages.entry(stage).or_default() += each(spent.all()) * *count as f64 / all as f64;
        }
    }
    stages
}
