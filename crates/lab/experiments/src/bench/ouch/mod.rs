//! `pares bench ouch`: orders over OUCH through a whole exchange, beside the exchange's own protocol.
//!
//! ```text
//!   translation          one Enter Order to a frame, one trade to an Order Executed
//!   the exchange         OUCH and binary by turns: at 1,000/s, and as fast as it answers, one gateway
//! ```
//! Both systems are alike: nobody proves who he is, and all instruments are of one shard, since a session over OUCH is told the stream of one.

mod translation;

use pares_load::{LabResult, setup};
use pares_node::SystemConfig;
use pares_node::config::{DurabilitySetting, InstrumentConfig, SignOnSetting};
use serde::Serialize;

use super::fronts::{self, Compared, Spoken};

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
    /// The highest rate over OUCH by that over the exchange's own protocol.
    ratio: f64,
    #[serde(flatten)]
    compared: Compared,
}

/// Runs the benchmark and prints what it gave.
///
/// # Errors
/// If a system does not come up, or something was lost.
pub fn run(args: &Args) -> LabResult {
    let (enter_order_ns, report_ns) = translation::measure();
    let compared = Compared::measure(&args.load, &config(), Spoken::Ouch)?;
    let figures = Figures { enter_order_ns, report_ns, ratio: compared.ratio(), compared };
    let times =
        [("Enter Order: packet to frame", enter_order_ns), ("Order Executed: trade to packet", report_ns)];
    fronts::tell(("OUCH", &args.load, args.json), &figures, (times, &figures.compared), || {})
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
