//! Orders over a standard protocol through a whole exchange, and over the exchange's own: what the benchmarks of protocols have in common.
//!
//! All get the same orders from the same generator, in pairs that trade with each other. Latency counts from the scheduled send time to the first report of
//! the order; each part has a system of its own.

mod pairs;

use std::hint::black_box;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use pares_load::{FixPlan, LabError, LabResult, Load, LoadPlan, LoadProtocol, OuchPlan, Rate, ScratchSystem};
use pares_node::SystemConfig;
use pares_node::config::SignOnSetting;
use pares_text::grouped;
use serde::Serialize;

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

/// What members get over a standard protocol and over the exchange's own, one gateway.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Compared {
    /// Highest sustained rate over the standard protocol.
    orders_per_s: u64,
    /// At 1,000/s over it, microseconds.
    p50_us: f64,
    p99_us: f64,
    /// The same three over the exchange's own protocol.
    binary_orders_per_s: u64,
    binary_p50_us: f64,
    binary_p99_us: f64,
    /// Orders without an answer, in all parts.
    lost: u64,
    /// Orders that were not taken in, in all parts.
    rejected: u64,
}

impl Compared {
    /// Both by turns: at 1,000/s, and as fast as the exchange answers.
    pub(super) fn measure(args: &Args, config: &SystemConfig, spoken: Spoken) -> Result<Self, LabError> {
        let part = |spoken, rate| exchange(args, config.clone(), (spoken, rate));
        let standard = part(spoken, Rate::PerSecond(RATE))?;
        let binary = part(Spoken::Binary, Rate::PerSecond(RATE))?;
        let standard_max = part(spoken, Rate::Max)?;
        let binary_max = part(Spoken::Binary, Rate::Max)?;
        let mut compared = Self {
            orders_per_s: standard_max.throughput,
            p50_us: standard.p50_us,
            p99_us: standard.p99_us,
            binary_orders_per_s: binary_max.throughput,
            binary_p50_us: binary.p50_us,
            binary_p99_us: binary.p99_us,
            lost: 0,
            rejected: 0,
        };
        [standard, binary, standard_max, binary_max].iter().for_each(|part| compared.count(part));
        Ok(compared)
    }

    /// Counts what a part lost too.
    pub(super) fn count(&mut self, part: &end_to_end::Figures) {
        self.lost += part.lost;
        self.rejected += part.rejected;
    }

    /// The highest rate over the standard protocol by that over the exchange's own.
    pub(super) fn ratio(&self) -> f64 {
        self.orders_per_s as f64 / self.binary_orders_per_s as f64
    }

    fn print(&self, protocol: &str, connections: u32) {
        let Self { p50_us, p99_us, binary_p50_us, binary_p99_us, .. } = self;
        let own = "its own protocol";
        pares_text::say!("the whole exchange, one gateway, {connections} connections");
        pares_text::say!(
            "  order to report at 1,000/s over {protocol:<16} {p50_us:>8.1} us (p99 {p99_us:.1})"
        );
        pares_text::say!(
            "                             over {own} {binary_p50_us:>8.1} us (p99 {binary_p99_us:.1})"
        );
        let (standard, binary) = (grouped(self.orders_per_s), grouped(self.binary_orders_per_s));
        pares_text::say!(
            "  highest rate               over {protocol:<16} {standard:>8}/s ({:.2} of the next)",
            self.ratio()
        );
        pares_text::say!("                             over {own} {binary:>8}/s");
    }
}

/// Prints what a benchmark gave: as one JSON object, or the times of its messages, the rates and latencies side by side, and the rest.
///
/// # Errors
/// If something was lost or not taken in.
pub(super) fn tell(
    (protocol, args, json): (&str, &Args, bool),
    figures: &impl Serialize,
    (times, compared): ([(&str, f64); 2], &Compared),
    rest: impl FnOnce(),
) -> LabResult {
    if json {
        pares_text::say!("{}", serde_json::to_string(figures).expect("plain numbers"));
    } else {
        pares_text::say!("one message of each kind in the nearest cache");
        for (what, ns) in times {
            pares_text::say!("  {what:<38} {ns:>8.0} ns");
        }
        compared.print(protocol, args.connections);
        rest();
    }
    match (compared.lost, compared.rejected) {
        (0, 0) => Ok(()),
        (lost, rejected) => Err(LabError::Failed(format!("{lost} lost, {rejected} rejected"))),
    }
}

/// The exchange that `config` describes, with a gateway and ports for everything, under load.
fn exchange(
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
