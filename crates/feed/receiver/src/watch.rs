//! Books as they look now and then, for programs that show them instead of following each message.
//!
//! A book changes a hundred times while a person looks at it once. What changed is noted as it comes, and handed on when it is time, as it is then; of trades each.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use pares_feed::books::{BookTrade, ReceivedBook};
use pares_feed::itch::{self, FeedMessage};
use pares_feed::publication::Session;
use pares_feed::subscription::{FeedEvent, SubscriptionState};
use pares_types::{BusinessDay, ShardId};

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
    /// How far its shard's data have come.
    pub standing: FeedStanding,
    /// What happened to its trades since it was handed on last.
    pub news: &'a [BookNews],
}

/// How far the data of a shard have come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FeedStanding {
    /// The business day that they are of.
    pub day: BusinessDay,
    /// The number of the next message.
    pub number: u64,
    /// Whether all of the day has come.
    pub is_whole: bool,
}

/// What happens to an instrument's trades.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BookNews {
    /// A trade.
    Traded {
        /// Itself.
        trade: BookTrade,
        /// The business day that was on.
        day: BusinessDay,
        /// The time of day.
        time_ns: u64,
    },
    /// The trade of that number was declared void.
    Busted(u64),
    /// Trades may be missing here.
    Gap,
}

/// Watches all books of a receiver.
pub struct BookWatch {
    receiver: FeedReceiver,
    every: Duration,
    noted: Noted,
    next: Instant,
}

/// What came since it was handed on.
#[derive(Default)]
struct Noted {
    standing: BTreeMap<ShardId, FeedStanding>,
    /// Books that changed, by shard and locate, and what happened to their trades.
    changed: BTreeMap<(ShardId, u16), Vec<BookNews>>,
    /// What happened to trades of books that were not there when it was time: it is handed on once they are.
    owed: BTreeMap<(ShardId, u16), Vec<BookNews>>,
    /// Books that were handed on.
    known: BTreeSet<(ShardId, u16)>,
    /// Shards whose session has ended, and came as a whole to its end.
    over: BTreeSet<ShardId>,
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
        for ((shard, locate), news) in std::mem::take(&mut noted.changed) {
            let book = receiver.books(shard).and_then(|books| books.book(locate));
            let news = noted.due((shard, locate), news, book.is_some());
            let Some(book) = book else { continue };
            let is_current = receiver.state(shard) == Some(SubscriptionState::Current);
            let standing = noted.standing.get(&shard).copied().unwrap_or_default();
            each(&WatchedBook { book, locate, is_current, standing, news: &news });
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
        let standing = self.standing.entry(from.shard).or_default();
        match from.received {
            Received::Event(FeedEvent::Message { number, bytes }) => {
                standing.number = number.saturating_add(1);
                if let Some(locate) = itch::about(bytes) {
                    let news = news_of(from, bytes, standing.day);
                    self.changed.entry((from.shard, locate)).or_default().extend(news);
                }
            }
            Received::Event(FeedEvent::Session(session)) => {
                let before = std::mem::replace(standing, FeedStanding::of(session));
                // Of a day between two sessions nothing may have come.
                let is_next = standing.day.0 == before.day.0.saturating_add(1);
                if !(self.over.remove(&from.shard) && is_next) {
                    self.note_gap(from.shard);
                }
                self.note_all(from, None);
            }
            Received::Event(FeedEvent::Unfilled { .. }) => {
                standing.is_whole = false;
                self.note_all(from, Some(BookNews::Gap));
            }
            Received::Event(FeedEvent::Reset { next }) => {
                (standing.number, standing.is_whole) = (next, false);
                self.note_all(from, Some(BookNews::Gap));
            }
            Received::State(state) => {
                if state == SubscriptionState::Over {
                    self.over.insert(from.shard);
                }
                self.note_all(from, None);
            }
        }
    }

    /// Of all books that were handed on trades may be missing, also of those that are not there yet.
    fn note_gap(&mut self, of: ShardId) {
        for key in self.known.iter().filter(|(shard, _)| *shard == of) {
            self.changed.entry(*key).or_default().push(BookNews::Gap);
        }
    }

    /// What is to be handed on of a book with that news. If it is not there that waits; of one that never comes again, each once.
    fn due(&mut self, key: (ShardId, u16), news: Vec<BookNews>, is_there: bool) -> Vec<BookNews> {
        let mut due = self.owed.remove(&key).unwrap_or_default();
        due.extend(news);
        if is_there {
            self.known.insert(key);
            return due;
        }
        due.dedup();
        if !due.is_empty() {
            self.owed.insert(key, due);
        }
        Vec::new()
    }

    /// Books began again, or are worth something else: all of them are what they are now.
    fn note_all(&mut self, from: &ReceivedFrom<'_>, news: Option<BookNews>) {
        for (locate, _) in from.books.all() {
            self.changed.entry((from.shard, locate)).or_default().extend(news);
        }
    }
}

impl FeedStanding {
    fn of(session: Session) -> Self {
        Self { day: session.day().unwrap_or_default(), number: 1, is_whole: true }
    }
}

impl BookNews {
    /// The trade, if it is one.
    #[must_use]
    pub fn trade(&self) -> Option<BookTrade> {
        match self {
            Self::Traded { trade, .. } => Some(*trade),
            Self::Busted(_) | Self::Gap => None,
        }
    }
}

/// What a message says of its instrument's trades.
fn news_of(from: &ReceivedFrom<'_>, bytes: &[u8], day: BusinessDay) -> Option<BookNews> {
    match FeedMessage::read(bytes)? {
        FeedMessage::Broken(of) => Some(BookNews::Busted(of.match_number.get())),
        message => {
            let (trade, time_ns) = (from.books.traded(bytes)?, message.head().time_ns());
            Some(BookNews::Traded { trade, day, time_ns })
        }
    }
}

#[cfg(test)]
mod tests {
    use pares_feed::books::ReceivedBooks;
    use pares_types::{Price, Quantity, Side};

    use super::*;

    const SHARD: ShardId = ShardId(0);

    /// A message of instrument 1, at 5 ns.
    fn message(kind: u8, body: &[&[u8]]) -> Vec<u8> {
        [&[kind, 0, 1, 0, 0, 0, 0, 0, 0, 0, 5], &body.concat()[..]].concat()
    }

    #[test]
    fn each_trade_noted_with_day_and_possible_gaps() {
        let (mut noted, mut books) = (Noted::default(), ReceivedBooks::with_seed(0));
        let mut event = |books: &ReceivedBooks, event| {
            noted.note(&ReceivedFrom { shard: SHARD, books, received: Received::Event(event) });
        };
        let session = Session(*b"0000000002");
        event(&books, FeedEvent::Session(session));
        let (reference, traded) = (7_u64.to_be_bytes(), 99_u64.to_be_bytes());
        let said = [
            message(b'R', &[b"ACME    ", &[0; 20]]),
            message(b'A', &[&reference, b"B", &10_u32.to_be_bytes(), b"ACME    ", &500_u32.to_be_bytes()]),
            message(b'E', &[&reference, &4_u32.to_be_bytes(), &traded]),
        ];
        for (number, bytes) in (1..).zip(&said) {
            books.on_message(bytes);
            event(&books, FeedEvent::Message { number, bytes });
        }
        event(&books, FeedEvent::Reset { next: 9 });
        event(&books, FeedEvent::Message { number: 9, bytes: &message(b'B', &[&traded]) });

        let trade =
            BookTrade { number: 99, price: Price(500), shares: Quantity(4), resting: Some(Side::Buy) };
        let day = session.day().unwrap();
        let news = [BookNews::Traded { trade, day, time_ns: 5 }, BookNews::Gap, BookNews::Busted(99)];
        assert_eq!(noted.changed[&(SHARD, 1)], news);
        assert_eq!(noted.standing[&SHARD], FeedStanding { day, number: 10, is_whole: false });
    }

    /// What is reported of a book when one session follows another, of which the end came or not.
    fn between(first: &[u8; 10], is_over: bool, second: &[u8; 10]) -> Vec<BookNews> {
        let (mut noted, books) = (Noted::default(), ReceivedBooks::with_seed(0));
        let happened =
            |noted: &mut Noted, received| noted.note(&ReceivedFrom { shard: SHARD, books: &books, received });
        happened(&mut noted, Received::Event(FeedEvent::Session(Session(*first))));
        assert_eq!(noted.due((SHARD, 1), Vec::new(), true), []);
        if is_over {
            happened(&mut noted, Received::State(SubscriptionState::Over));
        }
        happened(&mut noted, Received::Event(FeedEvent::Session(Session(*second))));
        let news = noted.changed.remove(&(SHARD, 1)).unwrap_or_default();
        // It is not listed yet in the new session.
        assert_eq!(noted.due((SHARD, 1), news, false), []);
        noted.due((SHARD, 1), Vec::new(), true)
    }

    #[test]
    fn session_follows_gap_unless_previous_day_ended() {
        assert_eq!(between(b"0000000002", true, b"0000000003"), []);
        assert_eq!(between(b"0000000002", false, b"0000000003"), [BookNews::Gap]);
        assert_eq!(between(b"0000000002", true, b"0000000004"), [BookNews::Gap]);
    }
}
