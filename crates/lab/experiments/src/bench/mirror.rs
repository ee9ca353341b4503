//! `pares bench mirror`: a log at another host: how many records a second, and how long until one is there.
//!
//! Both ends as they ship, over TCP on loopback, as threads of this process. The rate is that of a log that lies there as the receiver comes: a writer has a host of its
//! own, and here would be measured with it. Then records are written one by one, each stamped and rung for as a gateway does; a reader of the mirror that never sleeps
//! looks at the stamps.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use pares_load::{LabResult, ScratchDirectory, print_figures};
use pares_log::{Config, Reader, Writer};
use pares_node::world::HostRinger;
use pares_node::{HostWorld, Layout, NodeError, NodeId, mirrors};
use pares_os::clock::mono_ns;
use pares_roles::world::{Ring, World};
use pares_types::{GatewayId, VenueId};
use serde::Serialize;

const LOG: NodeId = NodeId::Gateway(GatewayId(0));
const READ_BY: NodeId = NodeId::Venue(VenueId(0));
/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// Arguments of `pares bench mirror`.
#[derive(clap::Args, Clone, Debug)]
pub struct Args {
    /// Records to copy as fast as possible
    #[arg(long, default_value_t = 2_000_000, value_parser = clap::value_parser!(u64).range(1_000..=50_000_000))]
    records: u64,
    /// Bytes of a record
    #[arg(long, default_value_t = 256, value_parser = clap::value_parser!(u64).range(16..=65_536))]
    bytes: u64,
    /// Records to measure the delay of, one by one
    #[arg(long, default_value_t = 5_000, value_parser = clap::value_parser!(u64).range(10..=1_000_000))]
    delays: u64,
    /// How many of these a second
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    rate: u64,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// What the benchmark gave.
#[derive(Clone, Debug, Default, Serialize)]
struct Figures {
    records: u64,
    bytes: u64,
    rate: u64,
    /// Copied, verified, stored and readable, each second.
    mirror_records_per_s: f64,
    /// From publishing a record to reading it in the mirror, microseconds.
    mirror_p50_us: f64,
    mirror_p99_us: f64,
}

/// Runs the benchmark and prints what it gave.
///
/// # Errors
/// If a record does not arrive.
pub fn run(args: &Args) -> LabResult {
    let scratch = ScratchDirectory::create(None)?;
    let [here, there] = ["here", "there"].map(|host| Layout::new(scratch.path().join(host)));
    let (stop, (tell, listening)) = (AtomicBool::new(false), mpsc::channel());
    let figures = std::thread::scope(|scope| {
        let (stop, here, there) = (&stop, &here, &there);
        scope.spawn(move || mirrors::serve(here, ([127, 0, 0, 1], 0).into(), stop, |at| _ = tell.send(at)));
        let at = listening.recv_timeout(PATIENCE).map_err(|error| NodeError::Refused(error.to_string()));
        let figures = at.and_then(|at| {
            measure(args, here, there, || {
                scope.spawn(move || mirrors::receive(there, &at.into(), stop, |_| {}));
            })
        });
        stop.store(true, Ordering::Relaxed);
        figures
    })?;
    print_figures(args.json, &figures);
    Ok(())
}

/// A log that is written here and read there.
struct Pair {
    bytes: usize,
    writer: Writer,
    ringer: HostRinger,
    mirror: HostWorld,
}

impl Pair {
    fn append(&mut self, count: u64) -> Result<u64, NodeError> {
        let stamp = mono_ns();
        for _ in 0..count {
            self.writer.append_with(self.bytes, |bytes| bytes[..8].copy_from_slice(&stamp.to_le_bytes()))?;
        }
        self.writer.publish();
        self.ringer.ring(READ_BY);
        Ok(stamp)
    }

    /// Waits until the mirror has everything: a reader at its end.
    fn copied(&self) -> Result<Reader, NodeError> {
        let (begun, end) = (Instant::now(), self.writer.tail());
        loop {
            match self.mirror.read_log(LOG, end) {
                Ok(reader) => return Ok(reader),
                Err(error) if begun.elapsed() > PATIENCE => return Err(error.into()),
                Err(_) => std::thread::sleep(Duration::from_millis(1)),
            }
        }
    }

    /// From publishing one record to reading it there, ns.
    fn delay(&mut self, reader: &mut Reader) -> Result<u64, NodeError> {
        let (stamp, begun) = (self.append(1)?, Instant::now());
        while reader.next()?.is_none() {
            if begun.elapsed() > PATIENCE {
                return Err(NodeError::Refused("a record does not arrive".into()));
            }
            std::thread::yield_now();
        }
        Ok(mono_ns() - stamp)
    }
}

fn measure(args: &Args, here: &Layout, there: &Layout, receive: impl FnOnce()) -> Result<Figures, NodeError> {
    let (source, mirror) = (HostWorld::new(here)?, HostWorld::new(there)?);
    let writer = source.write_log(LOG, Config::default())?;
    let mut pair = Pair { bytes: args.bytes as usize, writer, ringer: source.ringer(), mirror };
    pair.append(args.records)?;
    let begun = Instant::now();
    receive();
    let mut reader = pair.copied()?;
    let mirror_records_per_s = args.records as f64 / begun.elapsed().as_secs_f64();
    let mut delays: Histogram<u64> = Histogram::new_with_max(u64::MAX / 2, 3).expect("three digits");
    let pause = Duration::from_nanos(1_000_000_000 / args.rate);
    for _ in 0..args.delays {
        let begun = Instant::now();
        delays.saturating_record(pair.delay(&mut reader)?);
        std::thread::sleep(pause.saturating_sub(begun.elapsed()));
    }
    let [mirror_p50_us, mirror_p99_us] = [0.5, 0.99].map(|at| delays.value_at_quantile(at) as f64 / 1e3);
    let (records, bytes, rate) = (args.records, args.bytes, args.rate);
    Ok(Figures { records, bytes, rate, mirror_records_per_s, mirror_p50_us, mirror_p99_us })
}
