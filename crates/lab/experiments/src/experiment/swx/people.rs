//! Those who speak and those who listen, each a thread: the source that emits messages on a schedule, and traders that take a time for each.
//!
//! A delay counts from the instant at which a message was due, which is written in it, until a trader has read it: a server that stalls
//! delays what waits at its door, too.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use pares_desk::item::{ItemBody, OrderedItem, TraderId};
use pares_load::{LabError, Worker};
use pares_member::{TraderClient, TraderNews, TraderOptions};
use pares_os::clock::mono_ns;
use serde::Serialize;

/// Digits that say when a message was due.
const DIGITS: usize = 16;
/// Messages that were submitted and are not in the stream yet: as many as a source has that is as fast as it can, and bytes of them otherwise.
const AHEAD_MAX: usize = 256;
const BEHIND_BYTES_MAX: usize = 32 << 20;
/// Between two looks at whether to stop.
const LOOK: Duration = Duration::from_millis(20);
/// What is due within so long goes out together, nanoseconds: a system call for each would be most of the work.
const TOGETHER_NS: u64 = 100_000;
/// Who the source is; traders count up from the next.
const SOURCE: TraderId = TraderId(2);

/// An active worker, and what it has counted so far.
struct Counting<T> {
    count: Arc<AtomicU64>,
    worker: Worker<T>,
}

impl<T: Send + 'static> Counting<T> {
    fn start(
        name: &str,
        work: impl FnOnce(&AtomicBool, &AtomicU64) -> T + Send + 'static,
    ) -> Result<Self, LabError> {
        let count = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&count);
        Ok(Self { count, worker: Worker::start(name, move |stop| work(stop, &counter))? })
    }

    fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }
}

/// Signs a trader on, to be told what comes from now on.
///
/// # Errors
/// If it is not let in.
pub(super) fn connect(server: SocketAddr, trader: TraderId) -> Result<TraderClient, LabError> {
    let options = TraderOptions { from: None, books: false };
    TraderClient::connect_with(&[server], trader, options).map_err(LabError::io("signing a trader on"))
}

/// Emits messages.
pub(super) struct Source(Counting<()>);

impl Source {
    /// Emits messages of so many bytes at that rate, or as fast as it can.
    ///
    /// # Errors
    /// If it is not let in.
    pub(super) fn start(server: SocketAddr, rate: Option<u64>, bytes: usize) -> Result<Self, LabError> {
        let client = connect(server, SOURCE)?;
        let work = move |stop: &AtomicBool, count: &AtomicU64| emit(client, rate, bytes, stop, count);
        Ok(Self(Counting::start("source", work)?))
    }

    /// Messages that the server took in, ordered and told.
    pub(super) fn emitted(&self) -> u64 {
        self.0.count()
    }

    /// Ends it.
    pub(super) fn finish(self) {
        self.0.worker.finish();
    }
}

fn emit(mut client: TraderClient, rate: Option<u64>, bytes: usize, stop: &AtomicBool, count: &AtomicU64) {
    let filling = "x".repeat(bytes.saturating_sub(DIGITS));
    let (begun_ns, mut sent) = (mono_ns(), 0);
    let due_ns = |n: u64| rate.map_or(0, |rate| begun_ns + n * 1_000_000_000 / rate);
    let ahead_max = if rate.is_some() { BEHIND_BYTES_MAX / bytes.max(1_024) } else { AHEAD_MAX };
    while !stop.load(Ordering::Relaxed) {
        let now_ns = mono_ns();
        while due_ns(sent) <= now_ns && client.unplaced() < ahead_max {
            let since_ns = if rate.is_some() { due_ns(sent) } else { now_ns };
            let text = format!("{since_ns:0DIGITS$x}{filling}");
            client
                .submit(&ItemBody::Message { to: TraderId(0), text: &text })
                .expect("no message is that long");
            sent += 1;
        }
        client.poll(|news| {
            if matches!(news, TraderNews::Item(ordered) if ordered.item.name.trader == SOURCE) {
                count.fetch_add(1, Ordering::Relaxed);
            }
        });
        let next_ns = TOGETHER_NS.max(due_ns(sent).saturating_sub(mono_ns()));
        let is_full = client.unplaced() >= ahead_max;
        client.wait(if is_full { LOOK } else { LOOK.min(Duration::from_nanos(next_ns)) });
    }
}

/// A message that a trader has read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Read {
    /// When it was due.
    pub(super) due_ns: u64,
    /// When it was read.
    pub(super) read_ns: u64,
}

impl Read {
    fn of(ordered: &OrderedItem<'_>, read_ns: u64) -> Option<Self> {
        let Ok(ItemBody::Message { text, .. }) = ordered.item.says() else { return None };
        let due_ns = u64::from_str_radix(text.get(..DIGITS)?, 16).ok()?;
        Some(Self { due_ns, read_ns })
    }
}

/// Reads messages.
pub(super) struct Trader(Counting<Vec<Read>>);

impl Trader {
    /// Signs on, and takes so long for each message.
    ///
    /// # Errors
    /// If it is not let in.
    pub(super) fn start(server: SocketAddr, index: u32, takes: Duration) -> Result<Self, LabError> {
        let mut client = connect(server, TraderId(SOURCE.0 + 1 + index))?;
        Ok(Self(Counting::start("trader", move |stop, count| {
            let mut reads = Vec::new();
            while !stop.load(Ordering::Relaxed) {
                client.wait(LOOK);
                reads_of(&mut client, takes, |read| {
                    count.fetch_add(1, Ordering::Relaxed);
                    reads.extend(read);
                    !stop.load(Ordering::Relaxed)
                });
            }
            reads
        })?))
    }

    /// So many of those who read at once.
    ///
    /// # Errors
    /// If one is not let in.
    pub(super) fn start_quick(server: SocketAddr, count: u32) -> Result<Vec<Self>, LabError> {
        (0..count).map(|index| Self::start(server, index, Duration::ZERO)).collect()
    }

    /// Messages it has read.
    pub(super) fn received(&self) -> u64 {
        self.0.count()
    }

    /// Ends it: what it has read.
    pub(super) fn finish(self) -> Vec<Read> {
        self.0.worker.finish()
    }
}

/// Ends traders: what all of them have read.
pub(super) fn read_by(traders: Vec<Trader>) -> Vec<Read> {
    traders.into_iter().flat_map(Trader::finish).collect()
}

/// Hands out what has come, takes so long for each, and breaks off when `on` has had enough.
pub(super) fn reads_of(client: &mut TraderClient, takes: Duration, mut on: impl FnMut(Option<Read>) -> bool) {
    let mut goes_on = true;
    client.poll(|news| {
        let TraderNews::Item(ordered) = news else { return };
        let read = Read::of(&ordered, mono_ns());
        if goes_on {
            goes_on = on(read);
            std::thread::sleep(takes);
        }
    });
}

/// How long messages took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(super) struct Delays {
    pub(super) messages: usize,
    pub(super) p50_us: f64,
    pub(super) p99_us: f64,
    pub(super) max_us: f64,
}

impl Delays {
    /// Of messages that were due in one of these stretches.
    pub(super) fn within<'a>(
        reads: impl IntoIterator<Item = &'a Read>,
        stretches: &[std::ops::Range<u64>],
    ) -> Self {
        let is_within = |read: &&Read| stretches.iter().any(|stretch| stretch.contains(&read.due_ns));
        let reads = reads.into_iter().filter(is_within);
        let mut delays: Vec<u64> = reads.map(|read| read.read_ns.saturating_sub(read.due_ns)).collect();
        delays.sort_unstable();
        let us = |index: usize| delays.get(index).map_or(0.0, |&ns| ns as f64 / 1e3);
        let last = delays.len().saturating_sub(1);
        Self { messages: delays.len(), p50_us: us(last / 2), p99_us: us(last * 99 / 100), max_us: us(last) }
    }
}
