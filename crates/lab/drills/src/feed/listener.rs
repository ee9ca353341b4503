//! A receiver that notes everything it receives, with what its books showed whenever it called them current.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pares_feed::books::ReceivedBooks;
use pares_feed::publication::Session;
use pares_load::{LabError, Worker};
use pares_receiver::{FeedEvent, FeedLines, FeedReceiver, Received, ReceiverConfig, SubscriptionState};
use pares_types::{ShardId, Side};

/// Between two looks at the books.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// What a receiver received of a shard.
#[derive(Clone, Debug, Default)]
pub(super) struct Heard {
    /// The session that it is in.
    pub(super) session: Option<Session>,
    /// The number of the next message.
    pub(super) next: u64,
    /// Messages that came, by session and number: their checksums.
    pub(super) messages: BTreeMap<([u8; 10], u64), u32>,
    /// Messages that came behind a gap that nobody told of.
    pub(super) skipped: u64,
    /// What the books showed when they were called current, by session and next number.
    pub(super) current: BTreeMap<([u8; 10], u64), u32>,
    /// Snapshots taken.
    pub(super) snapshots: u64,
}

impl Heard {
    fn on_event(&mut self, event: &FeedEvent<'_>) {
        match *event {
            FeedEvent::Session(session) => (self.session, self.next) = (Some(session), 1),
            FeedEvent::Message { number, bytes } => {
                self.skipped += number.abs_diff(self.next);
                self.next = number + 1;
                if let Some(session) = self.session {
                    self.messages.insert((session.0, number), crc32c::crc32c(bytes));
                }
            }
            FeedEvent::Reset { next } => {
                self.next = next;
                self.snapshots += 1;
            }
            FeedEvent::Unfilled { .. } => {}
        }
    }
}

/// What all orders that are displayed add up to.
pub(super) fn digest(books: &ReceivedBooks) -> u32 {
    let mut sum = 0;
    for (locate, book) in books.all() {
        sum = crc32c::crc32c_append(sum, &locate.to_be_bytes());
        sum = crc32c::crc32c_append(sum, &[book.state]);
        for side in [Side::Buy, Side::Sell] {
            for (price, shares, reference) in book.orders(side) {
                let words = [price.0.cast_unsigned(), shares.0, reference].map(u64::to_be_bytes);
                sum = crc32c::crc32c_append(sum, words.as_flattened());
            }
        }
    }
    sum
}

/// How it receives.
pub(super) struct Means {
    pub(super) shards: Vec<ShardId>,
    /// Where its lines come in, by shard; nowhere: all by TCP.
    pub(super) lines: Option<Vec<(SocketAddr, SocketAddr)>>,
    pub(super) replayers: Vec<SocketAddr>,
}

/// An active receiver.
pub(super) struct Listener {
    heard: Arc<Mutex<BTreeMap<ShardId, Heard>>>,
    worker: Worker<Result<(), LabError>>,
}

impl Listener {
    pub(super) fn start(means: &Means) -> Result<Self, LabError> {
        let config = ReceiverConfig {
            shards: means.shards.clone(),
            lines: means.lines.clone().map_or(FeedLines::None, FeedLines::Each),
            requests: means.replayers.clone(),
            tcp: means.replayers.clone(),
            ..ReceiverConfig::default()
        };
        let receiver = FeedReceiver::open(&config).map_err(failed)?;
        let heard = Arc::new(Mutex::new(BTreeMap::new()));
        let notes = Arc::clone(&heard);
        let worker = Worker::start("receiver", move |stop| listen(receiver, stop, &notes))?;
        Ok(Self { heard, worker })
    }

    /// Whether it is in that session and has all before that number.
    pub(super) fn has(&self, shard: ShardId, session: Session, next: u64) -> bool {
        let heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        let of = heard.get(&shard);
        of.is_some_and(|of| {
            of.session == Some(session) && of.next >= next && of.current.contains_key(&(session.0, of.next))
        })
    }

    /// Ends it, and gives what it heard.
    pub(super) fn stop(self) -> Result<BTreeMap<ShardId, Heard>, LabError> {
        self.worker.finish()?;
        let mut heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(std::mem::take(&mut *heard))
    }
}

fn failed(error: pares_receiver::ReceiverError) -> LabError {
    LabError::Failed(format!("receiving: {error}"))
}

fn listen(
    mut receiver: FeedReceiver,
    stop: &AtomicBool,
    heard: &Mutex<BTreeMap<ShardId, Heard>>,
) -> Result<(), LabError> {
    while !stop.load(Ordering::Relaxed) {
        let mut heard_now = heard.lock().unwrap_or_else(PoisonError::into_inner);
        let polled = receiver.poll(LOOK_EVERY, |from| {
            if let Received::Event(event) = &from.received {
                heard_now.entry(from.shard).or_default().on_event(event);
            }
        });
        polled.map_err(failed)?;
        for (&shard, of) in &mut *heard_now {
            let is_current =
                matches!(receiver.state(shard), Some(SubscriptionState::Current | SubscriptionState::Over));
            if let (true, Some(session), Some(books)) = (is_current, of.session, receiver.books(shard)) {
                of.current.entry((session.0, of.next)).or_insert_with(|| digest(books));
            }
        }
        drop(heard_now);
        std::thread::yield_now();
    }
    Ok(())
}
