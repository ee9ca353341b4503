//! `pares bench end-to-end`: client to client through a gateway, racing venues and recorders.

use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use pares_node::SystemConfig;
use pares_node::config::{DurabilitySetting, InstrumentConfig};
use serde::Serialize;

use crate::error::{CommandError, CommandResult};
use crate::load::{Load, LoadPlan, Observed, Rate};
use crate::system::ScratchSystem;

/// Arguments of `pares bench end-to-end`.
#[derive(clap::Args, Clone, Debug)]
pub struct Args {
    /// Requests per second, or `max` for the highest sustained rate
    #[arg(long, default_value = "10000")]
    pub rate: Rate,
    /// How long to measure
    #[arg(long, default_value_t = 10)]
    pub seconds: u64,
    /// How many gateways
    #[arg(long, default_value_t = 1)]
    pub gateways: u16,
    /// How many venues race
    #[arg(long, default_value_t = 2)]
    pub venues: u16,
    /// How many recorders
    #[arg(long, default_value_t = 2)]
    pub recorders: u16,
    /// How many instruments
    #[arg(long, default_value_t = 10)]
    pub symbols: u32,
    /// How many total orders they share; without it each has its own
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    pub shards: Option<u16>,
    /// Whether venues agree through the window; off is legal with one gateway only
    #[arg(long, default_value = "on", value_parser = on_off, action = clap::ArgAction::Set)]
    pub sequencer: bool,
    /// What an answer promises: `os` survives the death of any process, `disk` the loss of power
    #[arg(long, default_value = "os", value_parser = durability)]
    pub durability: DurabilitySetting,
    /// Requests in flight with `--rate max`
    #[arg(long, default_value_t = 2_048)]
    pub in_flight: usize,
    /// The flow's seed
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Where to keep the system's files (default: a temporary directory)
    #[arg(long)]
    pub dir: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// What a run gave.
#[derive(Clone, Debug, Serialize)]
pub struct Figures {
    /// Requests due in the time.
    pub offered: u64,
    /// Requests answered.
    pub completed: u64,
    /// Requests sent and never answered.
    pub lost: u64,
    /// Answers beyond the first to a request.
    pub duplicated: u64,
    /// Requests a gateway did not take in (too many in flight).
    pub rejected: u64,
    /// Answers per second over the run.
    pub throughput: u64,
    /// Latency from the scheduled send time to the answer, microseconds.
    pub p50_us: f64,
    /// 90th percentile.
    pub p90_us: f64,
    /// 99th percentile.
    pub p99_us: f64,
    /// 99.9th percentile.
    pub p999_us: f64,
    /// The worst.
    pub max_us: f64,
}

impl Figures {
    /// The figures of a finished run.
    #[must_use]
    pub fn of(observed: &Observed, seconds: f64) -> Self {
        let latencies = observed.all_latencies();
        let us = |quantile| latencies.value_at_quantile(quantile) as f64 / 1_000.0;
        let completed = observed.completed.load(Ordering::Relaxed);
        let rejected = observed.rejected.load(Ordering::Relaxed);
        Self {
            offered: observed.offered.load(Ordering::Relaxed),
            completed,
            lost: observed.sent.load(Ordering::Relaxed) - completed - rejected,
            duplicated: observed.duplicated.load(Ordering::Relaxed),
            rejected,
            throughput: (completed as f64 / seconds) as u64,
            p50_us: us(0.5),
            p90_us: us(0.9),
            p99_us: us(0.99),
            p999_us: us(0.999),
            max_us: latencies.max() as f64 / 1_000.0,
        }
    }
}

fn on_off(text: &str) -> Result<bool, String> {
    match text {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err("`on` or `off`".into()),
    }
}

/// Reads `os` or `disk`.
///
/// # Errors
/// If it is neither.
pub fn durability(text: &str) -> Result<DurabilitySetting, String> {
    match text {
        "os" => Ok(DurabilitySetting::Os),
        "disk" => Ok(DurabilitySetting::Disk),
        _ => Err("`os` or `disk`".into()),
    }
}

impl Args {
    /// The system this benchmark runs on.
    #[must_use]
    pub fn config(&self) -> SystemConfig {
        SystemConfig {
            durability: self.durability,
            venues: self.venues,
            recorders: self.recorders,
            sequencer: self.sequencer,
            gateways: (0..self.gateways).map(|_| ([127, 0, 0, 1], 0).into()).collect(),
            instruments: (1..=self.symbols).map(|id| self.instrument(id)).collect(),
            ..SystemConfig::default()
        }
    }

    /// The busiest instruments lie in different shards.
    fn instrument(&self, id: u32) -> InstrumentConfig {
        let shard = self.shards.map(|shards| (id % u32::from(shards)) as u16);
        InstrumentConfig { shard, ..instrument(id) }
    }
}

/// An instrument of a benchmark, in a shard of its own.
#[must_use]
pub fn instrument(id: u32) -> InstrumentConfig {
    InstrumentConfig::new(id, &format!("SYM{id}"))
}

/// Runs the benchmark and prints what it gave.
///
/// # Errors
/// If the system does not come up, or something was lost or answered twice.
pub fn run(args: &Args) -> CommandResult {
    let figures = measure(args)?;
    if args.json {
        println!("{}", serde_json::to_string(&figures).expect("figures are plain numbers"));
    } else {
        print(args, &figures);
    }
    match (figures.lost, figures.duplicated) {
        (0, 0) => Ok(()),
        (lost, duplicated) => Err(CommandError::Failed(format!("{lost} lost, {duplicated} duplicated"))),
    }
}

/// Runs the benchmark.
///
/// # Errors
/// If the system does not come up or a connection is lost.
pub fn measure(args: &Args) -> Result<Figures, CommandError> {
    let mut system = ScratchSystem::start(&args.config(), args.dir.clone())?;
    let mut plan = LoadPlan::new(system.supervisor.config(), system.addresses()?, args.rate);
    plan.duration = Some(Duration::from_secs(args.seconds));
    plan.seed = args.seed;
    if args.rate == Rate::Max {
        plan.in_flight_max = args.in_flight;
    }
    let progress = crate::progress::seconds("measuring", args.seconds);
    let begun = Instant::now();
    let load = Load::start(plan)?;
    while !load.is_finished() {
        std::thread::sleep(Duration::from_millis(100));
        system.supervisor.tick()?;
        progress.set_position((begun.elapsed().as_millis() as u64).min(args.seconds * 1_000));
    }
    let observed = load.finish()?;
    progress.finish_and_clear();
    Ok(Figures::of(&observed, args.seconds as f64))
}

fn print(args: &Args, figures: &Figures) {
    println!(
        "{} gateways, {} venues, {} recorders, {} symbols, sequencer {}, durability {:?}",
        args.gateways,
        args.venues,
        args.recorders,
        args.symbols,
        if args.sequencer { "on" } else { "off" },
        args.durability,
    );
    println!("offered     {:>12}", figures.offered);
    println!("completed   {:>12}   {} per second", figures.completed, figures.throughput);
    println!("lost        {:>12}", figures.lost);
    println!("duplicated  {:>12}", figures.duplicated);
    println!("rejected    {:>12}", figures.rejected);
    println!(
        "latency us  p50 {:.1}   p90 {:.1}   p99 {:.1}   p99.9 {:.1}   max {:.1}",
        figures.p50_us, figures.p90_us, figures.p99_us, figures.p999_us, figures.max_us
    );
}
