//! `pares bench http`: orders over HTTP through a whole exchange, one server, connections that are kept.
//!
//! ```text
//!   callers --HTTP--> server --frames--> gateway ... and all the way back
//!     as fast as each connection is answered;   then at a rate, latency from the scheduled send time
//! ```
//! Each part has a system and a server process of its own. Orders come in pairs that trade with each other, so that books stay as they are.

mod callers;

use std::net::SocketAddr;
use std::time::Duration;

use pares_load::{LabError, LabResult, ScratchSystem, WebProcess, setup};
use pares_node::SystemConfig;
use pares_node::config::{DurabilitySetting, SignOnSetting};
use pares_text::grouped;
use serde::Serialize;

use callers::Callers;

/// Orders a second where latency is measured.
const RATE: u64 = 10_000;

/// Arguments of `pares bench http`.
#[derive(clap::Args, Clone, Debug)]
pub struct Args {
    /// How long each part lasts
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=600))]
    seconds: u64,
    /// Connections
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    connections: u32,
    /// Sessions that share them, each of a member of its own
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=64))]
    sessions: u32,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// What the benchmark gave.
#[derive(Clone, Debug, Serialize)]
struct Figures {
    /// As fast as each connection is answered.
    orders_per_s: u64,
    /// At 10,000/s, microseconds from the scheduled send time to the whole answer.
    p50_us: f64,
    p99_us: f64,
    /// What was answered there, a second.
    answered_per_s: u64,
    /// Orders that were answered by anything but 201, in both parts.
    rejected: u64,
}

/// Runs the benchmark and prints what it gave.
///
/// # Errors
/// If a system does not come up, or an order was not taken in.
pub fn run(args: &Args) -> LabResult {
    let fast = part(args, None)?;
    let paced = part(args, Some(RATE))?;
    let seconds = args.seconds as f64;
    let figures = Figures {
        orders_per_s: (fast.answered as f64 / seconds) as u64,
        p50_us: paced.quantile_us(0.5),
        p99_us: paced.quantile_us(0.99),
        answered_per_s: (paced.answered as f64 / seconds) as u64,
        rejected: fast.rejected + paced.rejected,
    };
    if args.json {
        pares_text::say!("{}", serde_json::to_string(&figures).expect("plain numbers"));
    } else {
        let Figures { p50_us, p99_us, .. } = figures;
        pares_text::say!("{} connections, {} sessions, one server", args.connections, args.sessions);
        pares_text::say!("  as fast as they are answered   {:>8}/s", grouped(figures.orders_per_s));
        pares_text::say!("  at 10,000/s                    {p50_us:>8.1} us (p99 {p99_us:.1})");
    }
    match figures.rejected {
        0 => Ok(()),
        rejected => Err(LabError::Failed(format!("{rejected} rejected"))),
    }
}

fn part(args: &Args, rate: Option<u64>) -> Result<callers::Called, LabError> {
    let gateways: Vec<SocketAddr> = vec![([127, 0, 0, 1], 0).into()];
    let config = SystemConfig {
        durability: DurabilitySetting::Os,
        sign_on: SignOnSetting::Open,
        gateways,
        instruments: (1..=10).map(setup::instrument).collect(),
        ..SystemConfig::default()
    };
    let mut system = ScratchSystem::start(&config, None)?;
    let server = WebProcess::start(system.supervisor.layout(), ([127, 0, 0, 1], 0).into())?;
    let mut callers = Callers::connect(server.address(), args.connections, args.sessions)?;
    callers.call(rate, Duration::from_secs(args.seconds), || _ = system.supervisor.tick())
}
