//! Books over WebSocket through a whole exchange, a thousand subscribers of one server.
//!
//! ```text
//!   amends --> exchange --> market data --> server --WebSocket--> subscribers
//!     the quantity is the time of sending ........................ until its delta is read
//! ```
//! Each order is amended over and over, and its new quantity is the clock when that was sent, in microseconds: so a subscriber reads off any delta how old it is, and no message needs
//! a field for this. All subscribers look at all books. In the second part some subscribers hardly read; the same others are measured without and with them. The yardstick is
//! a server that does nothing but hand the same bytes, made once, to as many connections.

mod changes;
mod subscribers;
mod yardstick;

use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use pares_config::{DurabilitySetting, FeedConfig, InstrumentConfig, SignOnSetting};
use pares_load::{LabError, Load, LoadPlan, Rate, ScratchSystem, WebProcess, setup};
use pares_node::SystemConfig;
use serde::Serialize;

use super::Args;
use changes::changes;
use subscribers::{Read, Subscribers};

pub(crate) use yardstick::serve;

/// Between two turns of the yardstick, as of the exchange's server.
const TURN: Duration = Duration::from_millis(5);

/// What the benchmark gave.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Figures {
    /// Changes of books that the exchange answered, a second.
    changes_per_s: u64,
    /// Messages about books that all subscribers together received, a second.
    deliveries_per_s: u64,
    /// From sending the amend to reading its delta, microseconds.
    p50_us: f64,
    p99_us: f64,
    /// 99th percentile of four fifths of the subscribers, with one fifth that hardly reads by without.
    slow_ratio: f64,
    /// What they received, likewise.
    slow_deliveries_ratio: f64,
    /// A server that hands out the same bytes and does nothing else.
    yardstick_deliveries_per_s: u64,
    yardstick_p50_us: f64,
    yardstick_p99_us: f64,
}

pub(super) fn measure(args: &Args) -> Result<Figures, LabError> {
    let lasting = Duration::from_secs(args.seconds);
    let (changes_per_s, [whole, without, with]) = at_exchange(args, lasting)?;
    let yardstick = yardstick::measure(args, lasting)?;
    Ok(Figures {
        changes_per_s,
        deliveries_per_s: whole.per_s(lasting),
        p50_us: whole.quantile_us(0.5),
        p99_us: whole.quantile_us(0.99),
        slow_ratio: with.quantile_us(0.99) / without.quantile_us(0.99),
        slow_deliveries_ratio: with.deliveries as f64 / without.deliveries as f64,
        yardstick_deliveries_per_s: yardstick.per_s(lasting),
        yardstick_p50_us: yardstick.quantile_us(0.5),
        yardstick_p99_us: yardstick.quantile_us(0.99),
    })
}

/// Changes a second, and what was read: by all subscribers, by four fifths of them, by the same beside those that hardly read.
fn at_exchange(args: &Args, lasting: Duration) -> Result<(u64, [Read; 3]), LabError> {
    // Nobody reads them.
    let (_lines, feed) = crate::bench::feed::lines()?;
    let mut system = ScratchSystem::start(&config(args, feed), None)?;
    let server = WebProcess::start(system.supervisor.layout(), ([127, 0, 0, 1], 0).into())?;
    let plan = LoadPlan::new(system.supervisor.config(), system.addresses()?, Rate::PerSecond(args.changes));
    let changes = Box::new(changes(&plan));
    let (load, begun) = (Load::start_with(plan, changes)?, Instant::now());
    let read = read_all(args, lasting, server.address(), &mut || _ = system.supervisor.tick())?;
    let lasted = begun.elapsed().as_secs_f64();
    let changed = load.finish()?;
    match changed.rejected.load(Ordering::Relaxed) {
        0 => Ok(((changed.completed.load(Ordering::Relaxed) as f64 / lasted) as u64, read)),
        rejected => Err(LabError::Failed(format!("{rejected} changes rejected"))),
    }
}

fn read_all(
    args: &Args,
    lasting: Duration,
    server: SocketAddr,
    look: &mut impl FnMut(),
) -> Result<[Read; 3], LabError> {
    let few = args.connections() / 5;
    let mut subscribers = Subscribers::of_books(server, args.connections(), args.books)?;
    let whole = subscribers.read(lasting, look)?;
    subscribers.leave(few);
    let without = subscribers.read(lasting, look)?;
    subscribers.join_slow(few)?;
    let with = subscribers.read(lasting, look)?;
    Ok([whole, without, with])
}

/// All books of one shard, since each shard has lines of its own.
fn config(args: &Args, feed: FeedConfig) -> SystemConfig {
    let instrument =
        |id| InstrumentConfig { shard: Some(0), quantity_max: changes::CLOCK_US, ..setup::instrument(id) };
    SystemConfig {
        durability: DurabilitySetting::Os,
        sign_on: SignOnSetting::Open,
        gateways: vec![([127, 0, 0, 1], 0).into()],
        instruments: (1..=args.books).map(instrument).collect(),
        feed: Some(feed),
        ..SystemConfig::default()
    }
}

impl Read {
    fn per_s(&self, lasting: Duration) -> u64 {
        (self.deliveries as f64 / lasting.as_secs_f64()) as u64
    }

    fn quantile_us(&self, quantile: f64) -> f64 {
        self.age_us.value_at_quantile(quantile) as f64
    }
}
