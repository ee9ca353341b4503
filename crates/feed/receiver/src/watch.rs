//! Books as they look now and then, for programs that show them instead of following each message.
//!
//! A book changes a hundred times while somebody looks at it once. What changed is noted as it comes, and handed on when it is time, as it is then.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use pares_feed::books::ReceivedBook;
use pares_feed::itch::{self, FeedMessage};
use pares_feed::subscription::{FeedEvent, SubscriptionState};
use pares_types::ShardId;

use crate::config::ReceiverError;
use crate::receiver::{FeedReceiver, Received, ReceivedFrom};

/// The longest wait for anything.
const WAIT: Duration = Duration::from_millis(100);

/// A book that changed.
#[derive(Clone, Copy, Debug)]
pub struct WatchedBook<'a> {
    /// As it is now.
    pub book: ReceivedBook<'a>,
    /// Its instrument's number.
    pub locate: u16,
    /// Whether it is the market's: not while data are missing.
    pub is_current: bool,
    /// Trades since the last time that it was handed on.
    pub trades: u64,
}

/// Watches all books of a receiver.
pub struct BookWatch {
    receiver: FeedReceiver,
    every: Duration,
    noted: Noted,
    next: Instant,
}

#[derive(Default)]
struct Noted {
    /// Books that changed since they were handed on: shard, locate; and trades of them.
    changed: BTreeMap<(ShardId, u16), u64>,
}

impl BookWatch {
    /// Hands on what changed once in each `every`, at most.
    #[must_use]
    pub fn new(receiver: FeedReceiver, every: Duration) -> Self {
        Self { receiver, every, noted: Noted::default(), next: Instant::now() }
    }

    /// Waits for what comes, and hands on what changed if it is time. Says whether it was.
    ///
    /// # Errors
    /// As [`FeedReceiver::poll`].
    pub fn turn(&mut self, mut each: impl FnMut(&WatchedBook<'_>)) -> Result<bool, ReceiverError> {
        let Self { receiver, every, noted, next } = self;
        let wait = if noted.changed.is_empty() { WAIT } else { *every };
        receiver.poll(wait, |from| noted.note(&from))?;
        if noted.changed.is_empty() || Instant::now() < *next {
            return Ok(false);
        }
        *next = Instant::now() + *every;
        for ((shard, locate), trades) in std::mem::take(&mut noted.changed) {
            let Some(book) = receiver.books(shard).and_then(|books| books.book(locate)) else { continue };
            let is_current = receiver.state(shard) == Some(SubscriptionState::Current);
            each(&WatchedBook { locate, book, is_current, trades });
        }
        Ok(true)
    }

    /// Whether all that changed was handed on.
    #[must_use]
    pub fn has_handed_on(&self) -> bool {
        self.noted.changed.is_empty()
    }

    /// Whether the books of these shards are all the market's.
    pub fn are_current(&self, mut shards: impl Iterator<Item = ShardId>) -> bool {
        shards.all(|shard| self.receiver.state(shard) == Some(SubscriptionState::Current))
    }
}

impl Noted {
    fn note(&mut self, from: &ReceivedFrom<'_>) {
        let shard = from.shard;
        match from.received {
            Received::Event(FeedEvent::Message { bytes, .. }) => {
                if let Some(locate) = itch::about(bytes) {
                    *self.changed.entry((shard, locate)).or_default() += u64::from(is_trade(bytes));
                }
                return;
            }
            Received::Event(_) | Received::State(_) => {}
        }
        // Books began anew, or are worth something else: all of them are what they are now.
        for (locate, _) in from.books.all() {
            self.changed.entry((shard, locate)).or_default();
        }
    }
}

/// Whether it tells a trade that counts as the last one.
fn is_trade(message: &[u8]) -> bool {
    match message.first() {
        Some(b'E' | b'P' | b'Q') => true,
        Some(b'C') => {
            matches!(FeedMessage::read(message), Some(FeedMessage::ExecutedAt(of)) if of.printable == b'Y')
        }
        _ => false,
    }
}
