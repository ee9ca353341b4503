//! A member server and its traders: how much it delivers, and how late, with traders that stop reading and without.
//!
//! The server is the one that ships, on its own thread with its own logs and sockets. All traders' connections are read on one thread, every item
//! counted; every tenth trader may stop reading. A delay is from the server's stamp on an item, when it was submitted, to its being read, of one
//! trader in so many that ten are measured.

mod cast;
mod readers;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use pares_desk::item::{ItemBody, TraderId};
use pares_load::{LabError, Worker};
use pares_member::{MemberConfig, TraderClient};

pub(super) use cast::{Cast, measure as cast};
use readers::Reader;

use crate::member::Desk;

/// How long a server may take to start, and traders to be told everything.
const PATIENCE: Duration = Duration::from_secs(30);
/// Items on their way: one who submits more than a server takes waits.
const UNPLACED_MAX: usize = 512;
/// The server.
const ONLY: u16 = 0;
/// Who submits.
const SUBMITTER: TraderId = TraderId(1);
/// An item as people write it.
const TEXT: &str = "forty bytes of words, as people write";

/// How traders are connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// Packets by TCP.
    Stream,
    /// JSON by WebSocket.
    Web,
}

/// Which traders there are, and what they receive.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    pub(super) way: Way,
    pub(super) traders: u32,
    /// Every tenth stops reading.
    pub(super) slow: bool,
    /// Items a second.
    pub(super) rate: u64,
    pub(super) seconds: u64,
}

/// What the traders that read received.
pub(super) struct Served {
    pub(super) deliveries_per_s: u64,
    /// Nanoseconds.
    pub(super) delays: Histogram<u64>,
}

impl Plan {
    pub(super) fn is_slow(&self, trader: u32) -> bool {
        self.slow && trader % 10 == 5
    }

    /// Whether the delays of its items are measured.
    fn is_measured(&self, trader: u32) -> bool {
        trader.is_multiple_of((self.traders / 10).max(1)) && !self.is_slow(trader)
    }
}

/// Serves traders for so many seconds.
///
/// # Errors
/// If the server does not come up, or a trader who reads is not told everything.
pub(super) fn measure(plan: &Plan) -> Result<Served, LabError> {
    // A connection has two ends here.
    pares_os::descriptors::raise_limit();
    let mut desk = Desk::of(MemberConfig::local(1))?;
    desk.start(ONLY)?;
    let server = desk.address(ONLY)?;
    let told = Arc::new(AtomicU64::new(0));
    let reader = Reader::connect(server, *plan, Arc::clone(&told));
    let reader = reader.map_err(LabError::io("connecting traders"))?;
    let reader = Worker::start("traders", move |stop| reader.run(stop))?;
    let fast = (0..plan.traders).filter(|&trader| !plan.is_slow(trader)).count() as u64;
    let submitted = submit(server, plan.rate, plan.seconds).map(|items| {
        let begun = Instant::now();
        while told.load(Ordering::Relaxed) < items * fast && begun.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(2));
        }
        items * fast
    });
    let (read, due) = (reader.finish(), submitted?);
    let read = read.map_err(LabError::io("reading what traders are told"))?;
    desk.end(ONLY)?;
    match read.items {
        items if items < due => {
            Err(LabError::Failed(format!("traders were told {items} items, and not {due}")))
        }
        items => {
            let took = read.took.as_secs_f64().max(1e-9);
            Ok(Served { deliveries_per_s: (items as f64 / took) as u64, delays: read.delays })
        }
    }
}

/// Submits at that rate for so many seconds. How many that was.
fn submit(server: SocketAddr, rate: u64, seconds: u64) -> Result<u64, LabError> {
    let mut client =
        TraderClient::connect(&[server], SUBMITTER).map_err(LabError::io("connecting a trader"))?;
    let (begun, mut sent, mut placed) = (Instant::now(), 0, Instant::now());
    while begun.elapsed() < Duration::from_secs(seconds) {
        let due = begun.elapsed().as_micros() as u64 * rate / 1_000_000;
        while sent < due && client.unplaced() < UNPLACED_MAX {
            client.submit(&ItemBody::Message { to: TraderId(0), text: TEXT }).expect("no text is that long");
            sent += 1;
        }
        client.poll(|_| placed = Instant::now());
        std::thread::sleep(Duration::from_micros(500));
    }
    while client.unplaced() > 0 {
        client.poll(|_| placed = Instant::now());
        if placed.elapsed() > PATIENCE {
            return Err(LabError::Failed("what was submitted is not ordered".into()));
        }
        client.wait(Duration::from_millis(1));
    }
    Ok(sent)
}
