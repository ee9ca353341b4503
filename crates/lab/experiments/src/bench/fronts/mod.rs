//! Orders over a standard protocol through a whole exchange, and over the exchange's own: what the benchmarks of protocols have in common.
//!
//! All get the same orders from the same generator, in pairs that trade with each other. Latency counts from the scheduled send time to the first report of
//! the order; each part has a system of its own.

mod pairs;

use std::hint::black_box;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use pares_load::{FixPlan, LabError, Load, LoadPlan, LoadProtocol, OuchPlan, Rate, ScratchSystem};
use pares_node::SystemConfig;
use pares_node::config::SignOnSetting;

use super::end_to_end;
use pairs::Pairs;

/// Orders a second where latency is measured.
pub(super) const RATE: u64 = 1_000;
/// What counts from then on.
const WARM_UP: Duration = Duration::from_millis(500);
const BATCHES: usize = 101;

/// How long and how much.
#[derive(clap::Args, Clone, Debug)]
pub(super) struct Args {
    /// How long each part lasts
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=600))]
    seconds: u64,
    /// Members, one connection each
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(super) connections: u32,
    /// Orders in flight over all connections where the highest rate is sought
    #[arg(long, default_value_t = 2_048)]
    in_flight: usize,
}

/// What members speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spoken {
    Binary,
    Fix,
    Ouch,
}

/// The exchange that `config` describes, with a gateway and ports for everything, under load.
pub(super) fn exchange(
    args: &Args,
    config: SystemConfig,
    (spoken, rate): (Spoken, Rate),
) -> Result<end_to_end::Figures, LabError> {
    let gateways: Vec<SocketAddr> = vec![([127, 0, 0, 1], 0).into()];
    let (mut fix, mut ouch) = (Vec::new(), Vec::new());
    match spoken {
        Spoken::Binary => {}
        Spoken::Fix => fix.clone_from(&gateways),
        Spoken::Ouch => ouch.clone_from(&gateways),
    }
    let proves = config.sign_on == SignOnSetting::Required;
    let mut system = ScratchSystem::start(&SystemConfig { gateways, fix, ouch, ..config }, None)?;
    let credentials = if proves { system.let_in(args.connections)? } else { Vec::new() };
    let (addresses, protocol) = match spoken {
        Spoken::Binary => (system.addresses()?, LoadProtocol::Binary),
        Spoken::Fix => (system.fix_addresses()?, LoadProtocol::Fix(FixPlan::default())),
        Spoken::Ouch => (system.ouch_addresses()?, LoadProtocol::Ouch(OuchPlan::default())),
    };
    let plan = LoadPlan::new(system.supervisor.config(), addresses, rate);
    load(args, LoadPlan { credentials, protocol, ..plan }, || _ = system.supervisor.tick())
}

/// A load of pairs; `look` is called now and then.
pub(super) fn load(
    args: &Args,
    plan: LoadPlan,
    mut look: impl FnMut(),
) -> Result<end_to_end::Figures, LabError> {
    let in_flight_max = if plan.rate == Rate::Max { args.in_flight } else { plan.in_flight_max };
    let duration = Some(Duration::from_secs(args.seconds));
    let plan = LoadPlan { members: args.connections, in_flight_max, duration, ..plan };
    let pairs = Pairs::of(&plan);
    let (load, begun) = (Load::start_with(plan, Box::new(pairs))?, Instant::now());
    let mut is_warm = false;
    while !load.is_finished() {
        std::thread::sleep(Duration::from_millis(100));
        look();
        if !is_warm && begun.elapsed() > WARM_UP {
            is_warm = true;
            load.observed().forget_latencies();
        }
    }
    Ok(end_to_end::Figures::of(&*load.finish()?, args.seconds as f64))
}

/// Nanoseconds that it takes once: the median of 101 batches.
pub(super) fn median_ns<T>(batch: u32, mut once: impl FnMut() -> T) -> f64 {
    let mut batches: Vec<f64> = (0..BATCHES)
        .map(|_| {
            let begun = Instant::now();
            (0..batch).for_each(|_| _ = black_box(once()));
            begun.elapsed().as_nanos() as f64 / f64::from(batch)
        })
        .collect();
    batches.sort_by(f64::total_cmp);
    batches[BATCHES / 2]
}
