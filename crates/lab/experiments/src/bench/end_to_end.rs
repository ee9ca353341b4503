//! `pares bench end-to-end`: client to client through a gateway, racing venues and recorders; with `--stages` what a request costs there.

mod samples;
mod stage;
mod stages;

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use pares_config::{LaneConfig, SignOnSetting, TlsSetting};
use pares_load::{LabError, LabResult, Load, LoadPlan, Observed, Rate, ScratchSystem, print_figures, setup};
use pares_node::{NodeError, SystemConfig};
use pares_os::CountersReader;
use serde::Serialize;

/// Arguments of `pares bench end-to-end`.
#[derive(clap::Args)]
#[group(id = "end_to_end")]
#[command(mut_arg("rate", |rate| rate.default_value_if("stages", "true", "max")))]
pub struct Args {
    #[command(flatten)]
    setup: setup::Args,
    /// Over TLS
    #[arg(long)]
    tls: bool,
    /// Members sign on with keys, and every limit is set
    #[arg(long)]
    sign_on: bool,
    /// With taps; fails if a tap loses entries
    #[arg(long)]
    tap: bool,
    /// Number of lanes, among which shards and venues are divided by turns [default: every venue executes every shard]
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    lanes: Option<u16>,
    /// Instead, what a request costs: nanoseconds of processor time by role and by stage of its way; at the highest rate unless told
    #[arg(long)]
    stages: bool,
}

/// What a run gave.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Figures {
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

/// Runs the benchmark and prints what it gave.
///
/// # Errors
/// If the system does not come up, or something was lost or answered twice.
pub fn run(args: &Args) -> LabResult {
    if args.stages {
        print_figures(args.setup.json, &stages::measure(args)?);
        return Ok(());
    }
    let figures = measure(args)?;
    print_figures(args.setup.json, &figures);
    match (figures.lost, figures.duplicated) {
        (0, 0) => Ok(()),
        (lost, duplicated) => Err(LabError::Failed(format!("{lost} lost, {duplicated} duplicated"))),
    }
}

/// Runs the benchmark.
///
/// # Errors
/// If the system does not come up or a connection is lost.
pub(crate) fn measure(args: &Args) -> Result<Figures, LabError> {
    let (mut system, plan) = start(args)?;
    let seconds = args.setup.seconds;
    let plan = LoadPlan { duration: Some(Duration::from_secs(seconds)), ..plan };
    let progress = pares_text::progress::seconds("measuring", seconds);
    let begun = Instant::now();
    let load = Load::start(plan)?;
    while !load.is_finished() {
        std::thread::sleep(Duration::from_millis(100));
        system.supervisor.tick();
        progress.set_position((begun.elapsed().as_millis() as u64).min(seconds * 1_000));
    }
    let observed = load.finish()?;
    progress.finish_and_clear();
    check_taps(&system)?;
    Ok(Figures::of(&observed, seconds as f64))
}

/// The system, and the load to put on it.
fn start(
    Args { setup: args, tls, sign_on, tap, lanes, .. }: &Args,
) -> Result<(ScratchSystem, LoadPlan), LabError> {
    let whole = args.config();
    let config = SystemConfig {
        lanes: lanes.map(|count| in_lanes(&whole, count)).transpose()?.unwrap_or_default(),
        tls: if *tls { TlsSetting::On } else { TlsSetting::Off },
        sign_on: if *sign_on { SignOnSetting::Required } else { SignOnSetting::Open },
        tap: *tap,
        ..whole
    };
    let system = ScratchSystem::start(&config, args.dir.clone())?;
    let mut plan = LoadPlan::new(system.supervisor.config(), system.addresses()?, args.rate);
    (plan.seed, plan.tls) = (args.seed, system.tls()?);
    if *sign_on {
        plan.credentials = system.let_in(plan.members)?;
    }
    if args.rate == Rate::Max {
        plan.in_flight_max = args.in_flight;
    }
    Ok((system, plan))
}

/// So many lanes, each with every so-manyth shard and venue.
fn in_lanes(config: &SystemConfig, count: u16) -> Result<Vec<LaneConfig>, LabError> {
    let shards: Vec<u16> =
        config.shards().map_err(NodeError::from)?.into_keys().map(|shard| shard.0).collect();
    let lane = |lane: u16| LaneConfig {
        shards: shards.iter().copied().skip(lane.into()).step_by(count.into()).collect(),
        venues: (lane..config.venues).step_by(count.into()).collect(),
    };
    Ok((0..count).map(lane).collect())
}

/// A tap that loses would cost nothing.
fn check_taps(system: &ScratchSystem) -> LabResult {
    let (config, layout) = (system.supervisor.config(), system.supervisor.layout());
    for gateway in config.gateway_ids() {
        let counters = CountersReader::open(&layout.counters(&format!("gateway-{gateway}")));
        let lost = counters.ok().and_then(|counters| counters.get("tap_lost_entries")).unwrap_or_default();
        if lost > 0 {
            return Err(LabError::Failed(format!("the tap of gateway-{gateway} lost {lost} entries")));
        }
    }
    Ok(())
}
