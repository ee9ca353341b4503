//! `pares bench entry`: orders over a standard protocol through a whole exchange, beside the exchange's own protocol.
//!
//! ```text
//!   fix     codec;        FIX and binary by turns, sign-on required;  acceptors without an exchange: ours, QuickFIX/J's
//!   ouch    translation;  OUCH and binary by turns, no proof of identity, all instruments of one shard: a session receives the stream of one
//!   http    through one server: as fast as each connection is answered, and at 10,000/s
//!   ws      books of one server to a thousand subscribers
//! ```
//! All get the same orders from the same generator, in pairs that trade with each other. Latency counts from the scheduled send time to the first report of
//! the order; each part has a system of its own.

mod codec;
mod fix;
mod pairs;
mod translation;
mod ws;

use std::hint::black_box;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::ValueEnum;
use pares_config::{DurabilitySetting, InstrumentConfig, SignOnSetting};
use pares_load::{
    FixPlan, FrontTold, LabError, LabResult, Load, LoadPlan, LoadProtocol, OuchPlan, Rate, ScratchSystem,
    WebPlan, WebProcess, WebSharing, print_figures, setup,
};
use pares_node::SystemConfig;
use serde::Serialize;

use super::end_to_end;
use crate::experiment::stage::median;
use pairs::pairs;

pub(crate) use fix::serve_echo;
pub(crate) use ws::serve as serve_broadcast;

/// Orders a second where latency is measured.
const RATE: u64 = 1_000;
/// The same over HTTP.
const HTTP_RATE: u64 = 10_000;
/// What counts from then on.
const WARM_UP: Duration = Duration::from_millis(500);
const BATCHES: usize = 101;

/// Arguments of `pares bench entry`.
#[derive(clap::Args, Clone, Debug)]
pub struct Args {
    /// What members speak
    #[arg(long)]
    protocol: Protocol,
    /// How long each part lasts
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=600))]
    seconds: u64,
    /// Connections: 8 over FIX and OUCH, of a member each; 64 over HTTP; 1,000 over WebSocket that subscribe to all books
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1_900))]
    connections: Option<u32>,
    /// FIX, OUCH: orders in flight over all connections where the highest rate is sought
    #[arg(long, default_value_t = 2_048)]
    in_flight: usize,
    /// FIX: where `cargo xtask setup` has built QuickFIX/J; without it there is no figure of it
    #[arg(long, default_value = "target/quickfixj")]
    quickfixj: std::path::PathBuf,
    /// HTTP: sessions that share the connections, each of a member of its own
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=64))]
    sessions: u32,
    /// WebSocket: books
    #[arg(long, default_value_t = 12, value_parser = clap::value_parser!(u32).range(1..=100))]
    books: u32,
    /// WebSocket: changes a second, over all books by turns
    #[arg(long, default_value_t = 4_000, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    changes: u64,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// What members speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Protocol {
    /// FIX 4.4
    Fix,
    /// OUCH 5.0
    Ouch,
    /// HTTP and JSON
    Http,
    /// WebSocket: books
    Ws,
}

impl Args {
    fn connections(&self) -> u32 {
        self.connections.unwrap_or(match self.protocol {
            Protocol::Fix | Protocol::Ouch => 8,
            Protocol::Http => 64,
            Protocol::Ws => 1_000,
        })
    }

    /// The exchange as it ships, with ten instruments; over FIX sessions prove who they are.
    fn config(&self) -> SystemConfig {
        let shard = (self.protocol == Protocol::Ouch).then_some(0);
        let instrument = |id| InstrumentConfig { shard, ..setup::instrument(id) };
        let proves = self.protocol == Protocol::Fix;
        SystemConfig {
            durability: DurabilitySetting::Os,
            sign_on: if proves { SignOnSetting::Required } else { SignOnSetting::Open },
            instruments: (1..=10).map(instrument).collect(),
            ..SystemConfig::default()
        }
    }
}

/// What members get over a standard protocol and over the exchange's own, one gateway.
#[derive(Clone, Debug, Serialize)]
struct Compared {
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

/// What orders over OUCH gave.
#[derive(Clone, Debug, Serialize)]
struct OuchFigures {
    /// Nanoseconds from the packet of an Enter Order to its frame.
    enter_order_ns: f64,
    /// Nanoseconds from a trade to the packet of its Order Executed.
    report_ns: f64,
    /// The highest rate over OUCH by that over the exchange's own protocol.
    ratio: f64,
    #[serde(flatten)]
    compared: Compared,
}

/// What orders over HTTP gave.
#[derive(Clone, Debug, Serialize)]
struct HttpFigures {
    /// As fast as each connection is answered.
    orders_per_s: u64,
    /// At 10,000/s, microseconds from the scheduled send time to the whole answer.
    p50_us: f64,
    p99_us: f64,
    /// What was answered there, a second.
    answered_per_s: u64,
    /// Orders that were refused, in both parts; those that the server asks to send again are, and wait that much longer.
    rejected: u64,
}

/// Runs the benchmark and prints what it gave.
///
/// # Errors
/// If a system does not come up, something was lost or not taken in, or a subscriber that reads is cut off.
pub fn run(args: &Args) -> LabResult {
    let (lost, rejected) = match args.protocol {
        Protocol::Fix => tell(args, &fix::measure(args)?, |figures| figures.compared.failed()),
        Protocol::Ouch => tell(args, &ouch(args)?, |figures| figures.compared.failed()),
        Protocol::Http => tell(args, &http(args)?, |figures| (0, figures.rejected)),
        Protocol::Ws => tell(args, &ws::measure(args)?, |_| (0, 0)),
    };
    match (lost, rejected) {
        (0, 0) => Ok(()),
        (lost, rejected) => Err(LabError::Failed(format!("{lost} lost, {rejected} rejected"))),
    }
}

/// Prints figures. Says what was lost and what was not taken in.
fn tell<F: Serialize>(args: &Args, figures: &F, failed: impl FnOnce(&F) -> (u64, u64)) -> (u64, u64) {
    print_figures(args.json, figures);
    failed(figures)
}

fn ouch(args: &Args) -> Result<OuchFigures, LabError> {
    let (enter_order_ns, report_ns) = translation::measure();
    let compared = Compared::measure(args)?;
    let ratio = compared.orders_per_s as f64 / compared.binary_orders_per_s as f64;
    Ok(OuchFigures { enter_order_ns, report_ns, ratio, compared })
}

fn http(args: &Args) -> Result<HttpFigures, LabError> {
    let fast = exchange(args, Some(Protocol::Http), Rate::Max)?;
    let paced = exchange(args, Some(Protocol::Http), Rate::PerSecond(HTTP_RATE))?;
    Ok(HttpFigures {
        orders_per_s: fast.throughput,
        p50_us: paced.p50_us,
        p99_us: paced.p99_us,
        answered_per_s: paced.throughput,
        rejected: fast.rejected + paced.rejected,
    })
}

impl Compared {
    /// Both by turns: at 1,000/s, and as fast as the exchange answers.
    fn measure(args: &Args) -> Result<Self, LabError> {
        let standard = exchange(args, Some(args.protocol), Rate::PerSecond(RATE))?;
        let binary = exchange(args, None, Rate::PerSecond(RATE))?;
        let standard_max = exchange(args, Some(args.protocol), Rate::Max)?;
        let binary_max = exchange(args, None, Rate::Max)?;
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
    fn count(&mut self, part: &end_to_end::Figures) {
        self.lost += part.lost;
        self.rejected += part.rejected;
    }

    fn failed(&self) -> (u64, u64) {
        (self.lost, self.rejected)
    }
}

/// The exchange, with a gateway and ports for everything, under load; without a protocol over its own.
fn exchange(args: &Args, protocol: Option<Protocol>, rate: Rate) -> Result<end_to_end::Figures, LabError> {
    let any: SocketAddr = ([127, 0, 0, 1], 0).into();
    let port = |of| if protocol == Some(of) { vec![any] } else { Vec::new() };
    let (fix, ouch) = (port(Protocol::Fix), port(Protocol::Ouch));
    let config = SystemConfig { gateways: vec![any], fix, ouch, ..args.config() };
    let mut system = ScratchSystem::start(&config, None)?;
    let proves = config.sign_on == SignOnSetting::Required;
    let credentials = if proves { system.let_in(args.connections())? } else { Vec::new() };
    let (mut server, told) = (None, Arc::new(FrontTold::default()));
    let (addresses, protocol) = match protocol {
        None => (system.addresses()?, LoadProtocol::Binary),
        Some(Protocol::Fix) => (system.fix_addresses()?, LoadProtocol::Fix(FixPlan::default())),
        Some(Protocol::Ouch) => (system.ouch_addresses()?, LoadProtocol::Ouch(OuchPlan::default())),
        Some(Protocol::Http | Protocol::Ws) => {
            let server = server.insert(WebProcess::start(system.supervisor.layout(), any)?);
            let (told, sharing) = (Some(Arc::clone(&told)), Some(WebSharing::of(args.sessions)));
            (vec![server.address()], LoadProtocol::Web(WebPlan { told, sharing, ..WebPlan::default() }))
        }
    };
    let plan = LoadPlan::new(system.supervisor.config(), addresses, rate);
    let mut figures =
        load(args, LoadPlan { credentials, protocol, ..plan }, || _ = system.supervisor.tick())?;
    // Over HTTP an order that is refused is answered too.
    figures.rejected += told.refused().len() as u64;
    Ok(figures)
}

/// A load of pairs; `look` is called now and then.
fn load(args: &Args, plan: LoadPlan, mut look: impl FnMut()) -> Result<end_to_end::Figures, LabError> {
    let in_flight_max = match (plan.rate, &plan.protocol) {
        (Rate::PerSecond(_), _) => plan.in_flight_max,
        // Each connection the next one when it is answered.
        (Rate::Max, LoadProtocol::Web(_)) => args.connections() as usize,
        (Rate::Max, _) => args.in_flight,
    };
    let duration = Some(Duration::from_secs(args.seconds));
    let plan = LoadPlan { members: args.connections(), in_flight_max, duration, ..plan };
    let pairs = Box::new(pairs(&plan));
    let (load, begun) = (Load::start_with(plan, pairs)?, Instant::now());
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
fn median_ns<T>(batch: u32, mut once: impl FnMut() -> T) -> f64 {
    median((0..BATCHES).map(|_| {
        let begun = Instant::now();
        (0..batch).for_each(|_| _ = black_box(once()));
        begun.elapsed().as_nanos() as f64 / f64::from(batch)
    }))
}
