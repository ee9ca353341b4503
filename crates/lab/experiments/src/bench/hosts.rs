//! `pares bench hosts`: what an order over several hosts costs: decisions, answers, the highest rate.
//!
//! All hosts are on this machine and share its processors and its loopback, so latencies have neither a network in them nor a processor for each node. Of a
//! rate that is kept the answers' latencies are taken at the members, those of decisions at the orderers (from reading a request to knowing its position).

use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use pares_config::DurabilitySetting;
use pares_load::{
    LabError, LabResult, Load, LoadPlan, Observed, Rate, ScratchHosts, check_patience, print_figures, setup,
};
use pares_node::{NodeId, SystemConfig};
use serde::Serialize;

/// How long the first answer may take.
const PATIENCE: Duration = Duration::from_secs(60);
const WARM_UP: Duration = Duration::from_secs(1);

/// Arguments of `pares bench hosts`.
#[derive(clap::Args, Clone, Debug)]
pub struct Args {
    /// Number of hosts
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u8).range(3..=5))]
    hosts: u8,
    /// Requests per second while latencies are measured
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    rate: u64,
    /// Measuring time at that rate, and at the highest, seconds
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=600))]
    seconds: u64,
    /// Number of instruments, each a shard
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=100))]
    symbols: u32,
    /// Requests in flight at the highest rate
    #[arg(long, default_value_t = 2_048)]
    in_flight: usize,
    /// What an answer survives: `os` the death of any process, `disk` a power loss
    #[arg(long, default_value = "os", value_parser = setup::durability)]
    durability: DurabilitySetting,
    /// The directory for the hosts' files [default: a temporary directory]
    #[arg(long)]
    dir: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// What the benchmark gave.
#[derive(Clone, Debug, Serialize)]
struct Figures {
    hosts: u8,
    rate: u64,
    /// From an orderer's reading a request to its knowing the position, microseconds: the slowest orderer's.
    decision_p50_us: u64,
    decision_p99_us: u64,
    /// From the moment a request is due to its answer, microseconds.
    e2e_p50_us: f64,
    e2e_p99_us: f64,
    /// Answers a second with so many in flight as the arguments say.
    e2e_per_s: f64,
    /// Requests ordered a second then, by one orderer: each host orders all.
    decided_per_s: f64,
    /// Elections in all, and those that nobody's death called for: nobody dies here.
    elections: u64,
    needless_elections: u64,
}

/// Runs the benchmark and prints what it gave.
///
/// # Errors
/// If the hosts do not come up, or a gateway is lost.
pub fn run(args: &Args) -> LabResult {
    let settings = SystemConfig {
        durability: args.durability,
        instruments: (1..=args.symbols).map(setup::instrument).collect(),
        ..SystemConfig::default()
    };
    let mut hosts = ScratchHosts::start(args.hosts, settings, args.dir.clone())?;
    let stretch = Duration::from_secs(args.seconds);
    let (latencies, decisions) = {
        let load = Load::start(plan(args, &hosts, Rate::PerSecond(args.rate), 1))?;
        pass(&mut hosts, &load, WARM_UP)?;
        load.observed().forget_latencies();
        pass(&mut hosts, &load, stretch)?;
        (
            load.finish()?.all_latencies(),
            ["decision_p50_us", "decision_p99_us"].map(|name| slowest(&hosts, name)),
        )
    };
    let load = Load::start(plan(args, &hosts, Rate::Max, 1 << 40))?;
    pass(&mut hosts, &load, WARM_UP)?;
    let before = (completed(load.observed()), slowest(&hosts, "ordered"), Instant::now());
    pass(&mut hosts, &load, stretch)?;
    let took = before.2.elapsed().as_secs_f64();
    let e2e_per_s = (completed(load.observed()) - before.0) as f64 / took;
    let decided_per_s = (slowest(&hosts, "ordered") - before.1) as f64 / took;
    load.finish()?;
    let us = |part| latencies.value_at_quantile(part) as f64 / 1e3;
    print_figures(
        args.json,
        &Figures {
            hosts: args.hosts,
            rate: args.rate,
            decision_p50_us: decisions[0],
            decision_p99_us: decisions[1],
            e2e_p50_us: us(0.5),
            e2e_p99_us: us(0.99),
            e2e_per_s,
            decided_per_s,
            elections: of_all(&hosts, "elections").sum(),
            needless_elections: of_all(&hosts, "needless").sum(),
        },
    );
    Ok(())
}

fn plan(args: &Args, hosts: &ScratchHosts, rate: Rate, first_client_order_id: u64) -> LoadPlan {
    let plan = LoadPlan::new(&hosts.config, hosts.config.gateways.clone(), rate);
    let in_flight_max = if rate == Rate::Max { args.in_flight } else { plan.in_flight_max };
    LoadPlan { first_client_order_id, in_flight_max, ..plan }
}

/// Lets time pass, from the first answer on.
fn pass(hosts: &mut ScratchHosts, load: &Load, stretch: Duration) -> Result<(), LabError> {
    let begun = Instant::now();
    while completed(load.observed()) == 0 {
        check_patience(begun, PATIENCE, "no request was answered")?;
        std::thread::sleep(Duration::from_millis(1));
    }
    let begun = Instant::now();
    while begun.elapsed() < stretch {
        if let Some(death) = hosts.tick().pop() {
            return Err(LabError::Failed(format!("{} ended: {}", death.node, death.how)));
        }
        load.goes_on()?;
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}

fn completed(observed: &Observed) -> u64 {
    observed.completed.load(Ordering::Relaxed)
}

fn of_all<'a>(hosts: &'a ScratchHosts, counter: &'a str) -> impl Iterator<Item = u64> + 'a {
    hosts.config.host_ids().map(move |host| hosts.counter(NodeId::Orderer(host), counter))
}

/// The highest of the orderers' counters.
fn slowest(hosts: &ScratchHosts, counter: &str) -> u64 {
    of_all(hosts, counter).max().unwrap_or(0)
}
