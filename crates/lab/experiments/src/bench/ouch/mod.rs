//! `pares bench ouch`: orders over OUCH through a whole exchange, beside the exchange's own protocol.
//!
//! ```text
//!   translation          one Enter Order to a frame, one trade to an Order Executed
//!   the exchange         OUCH and binary by turns: at 1,000/s, and as fast as it answers, one gateway
//! ```
//! Both systems are alike: nobody proves who he is, and all instruments are of one shard, since a session over OUCH is told the stream of one.

mod translation;

use pares_load::{LabError, LabResult, Rate, setup};
use pares_node::SystemConfig;
use pares_node::config::{DurabilitySetting, InstrumentConfig, SignOnSetting};
use pares_text::grouped;
use serde::Serialize;

use super::fronts::{self, RATE, Spoken};

/// Arguments of `pares bench ouch`.
#[derive(clap::Args, Clone, Debug)]
#[group(skip)] // its name would be that of the flattened one
pub struct Args {
    #[command(flatten)]
    load: fronts::Args,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// What the benchmark gave.
#[derive(Clone, Debug, Serialize)]
struct Figures {
    /// Nanoseconds from the packet of an Enter Order to its frame.
    enter_order_ns: f64,
    /// Nanoseconds from a trade to the packet of its Order Executed.
    report_ns: f64,
    /// Highest sustained rate over OUCH, one gateway.
    orders_per_s: u64,
    /// The same over the exchange's own protocol.
    binary_orders_per_s: u64,
    /// The first by the second.
    ratio: f64,
    /// At 1,000/s over OUCH, microseconds.
    p50_us: f64,
    p99_us: f64,
    /// The same over the exchange's own protocol.
    binary_p50_us: f64,
    binary_p99_us: f64,
    /// Orders without an answer, in all parts.
    lost: u64,
    /// Orders that were not taken in, in all parts.
    rejected: u64,
}

/// Runs the benchmark and prints what it gave.
///
/// # Errors
/// If a system does not come up, or something was lost.
pub fn run(args: &Args) -> LabResult {
    let figures = measure(args)?;
    if args.json {
        pares_text::say!("{}", serde_json::to_string(&figures).expect("plain numbers"));
    } else {
        print(args, &figures);
    }
    match (figures.lost, figures.rejected) {
        (0, 0) => Ok(()),
        (lost, rejected) => Err(LabError::Failed(format!("{lost} lost, {rejected} rejected"))),
    }
}

fn measure(args: &Args) -> Result<Figures, LabError> {
    let (enter_order_ns, report_ns) = translation::measure();
    let parts = [
        (Spoken::Ouch, Rate::PerSecond(RATE)),
        (Spoken::Binary, Rate::PerSecond(RATE)),
        (Spoken::Ouch, Rate::Max),
        (Spoken::Binary, Rate::Max),
    ];
    let [ouch, binary, ouch_max, binary_max] = parts.map(|part| fronts::exchange(&args.load, config(), part));
    let (ouch, binary, ouch_max, binary_max) = (ouch?, binary?, ouch_max?, binary_max?);
    let all = [&ouch, &binary, &ouch_max, &binary_max];
    let (lost, rejected) =
        all.iter().fold((0, 0), |(lost, rejected), one| (lost + one.lost, rejected + one.rejected));
    Ok(Figures {
        enter_order_ns,
        report_ns,
        orders_per_s: ouch_max.throughput,
        binary_orders_per_s: binary_max.throughput,
        ratio: ouch_max.throughput as f64 / binary_max.throughput as f64,
        p50_us: ouch.p50_us,
        p99_us: ouch.p99_us,
        binary_p50_us: binary.p50_us,
        binary_p99_us: binary.p99_us,
        lost,
        rejected,
    })
}

fn config() -> SystemConfig {
    let instrument = |id| InstrumentConfig { shard: Some(0), ..setup::instrument(id) };
    SystemConfig {
        durability: DurabilitySetting::Os,
        sign_on: SignOnSetting::Open,
        instruments: (1..=10).map(instrument).collect(),
        ..SystemConfig::default()
    }
}

fn print(args: &Args, figures: &Figures) {
    let Figures { p50_us, p99_us, binary_p50_us, binary_p99_us, .. } = figures;
    pares_text::say!("the translation, one message of each kind in the nearest cache");
    pares_text::say!("  Enter Order: packet to frame           {:>8.0} ns", figures.enter_order_ns);
    pares_text::say!("  Order Executed: trade to packet        {:>8.0} ns", figures.report_ns);
    pares_text::say!("the whole exchange, one gateway, one shard, {} connections", args.load.connections);
    pares_text::say!("  at 1,000/s, order to report over OUCH  {p50_us:>8.1} us (p99 {p99_us:.1})");
    pares_text::say!(
        "              over its own protocol      {binary_p50_us:>8.1} us (p99 {binary_p99_us:.1})"
    );
    pares_text::say!(
        "  highest rate over OUCH                 {:>8}/s ({:.2} of the next)",
        grouped(figures.orders_per_s),
        figures.ratio
    );
    pares_text::say!(
        "               over its own protocol     {:>8}/s",
        grouped(figures.binary_orders_per_s)
    );
}
