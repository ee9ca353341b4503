//! Market data for those who ask by HTTP: received on a thread of its own, and handed on 200 times a second: books as they look then, and every trade.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use pares_api::{BookTold, MarketTold, ReceivedMarket};
use pares_feed::itch::{self, FeedMessage};
use pares_feed::publication::Session;
use pares_node::{Layout, SystemConfig};
use pares_receiver::{FeedEvent, FeedReceiver, Received, ReceivedFrom, SubscriptionState};
use pares_resources::tape::{MarketTrade, TapeNews};
use pares_types::{BusinessDay, DAY_NS, ShardId, Side, Timestamp};

use crate::commands::market::{self, WAIT, levels};
use crate::error::CommandError;

/// Between two looks at what changed.
const EVERY: Duration = Duration::from_millis(5);
/// A business day with more messages is received from now on: books would be late for what is over.
const REPLAYED_MAX: u64 = 5_000_000;

/// Begins to receive, if the exchange publishes market data.
///
/// # Errors
/// If there is no room for another thread.
pub(super) fn receive(
    layout: &Layout,
    config: &SystemConfig,
) -> Result<Option<Arc<ReceivedMarket>>, CommandError> {
    let Some(feed) = &config.feed else { return Ok(None) };
    let market = Arc::<ReceivedMarket>::default();
    let (layout, config, feed, told) = (layout.clone(), config.clone(), feed.clone(), Arc::clone(&market));
    let run = move || loop {
        // Replayers may come up later than this, or elsewhere: then all begins anew.
        if let Some(receiver) = market::open(&layout, &config, &feed, REPLAYED_MAX) {
            Watch::new(receiver, Arc::clone(&told)).run();
        }
        std::thread::sleep(WAIT);
    };
    let name = std::thread::Builder::new().name("market".into());
    name.spawn(run).map_err(CommandError::io("starting to receive market data"))?;
    Ok(Some(market))
}

struct Watch {
    receiver: FeedReceiver,
    market: Arc<ReceivedMarket>,
    noted: Noted,
    next: Instant,
}

/// What came since it was handed on.
#[derive(Default)]
struct Noted {
    standing: BTreeMap<ShardId, Standing>,
    /// Of each instrument that changed what its tape says: by shard, locate.
    changed: BTreeMap<(ShardId, u16), Vec<TapeNews>>,
}

/// How far the data of a shard have come.
#[derive(Clone, Copy, Default)]
struct Standing {
    day: BusinessDay,
    /// What comes next.
    number: u64,
    /// Whether all of the day has come.
    is_whole: bool,
}

impl Watch {
    fn new(receiver: FeedReceiver, market: Arc<ReceivedMarket>) -> Self {
        Self { receiver, market, noted: Noted::default(), next: Instant::now() }
    }

    /// Until the system does not say any more which sockets are ready.
    fn run(&mut self) {
        loop {
            let wait = if self.noted.changed.is_empty() { WAIT } else { EVERY };
            let noted = &mut self.noted;
            if self.receiver.poll(wait, |from| noted.note(&from)).is_err() {
                break;
            }
            if !self.noted.changed.is_empty() && Instant::now() >= self.next {
                self.next = Instant::now() + EVERY;
                self.hand_on();
            }
        }
    }

    fn hand_on(&mut self) {
        for ((shard, locate), news) in std::mem::take(&mut self.noted.changed) {
            let Some(book) = self.receiver.books(shard).and_then(|books| books.book(locate)) else {
                continue;
            };
            let is_current = self.receiver.state(shard) == Some(SubscriptionState::Current);
            let Standing { day, number, is_whole } =
                self.noted.standing.get(&shard).copied().unwrap_or_default();
            let (symbol, phase) = (book.symbol, book.phase());
            let book = BookTold { number, is_current, levels: levels(&book) };
            self.market.tell(symbol, &MarketTold { instrument: locate, book, phase, day, is_whole, news });
        }
        self.market.ring();
    }
}

impl Noted {
    fn note(&mut self, from: &ReceivedFrom<'_>) {
        let shard = from.shard;
        let standing = self.standing.entry(shard).or_default();
        match from.received {
            Received::Event(FeedEvent::Message { number, bytes }) => {
                standing.number = number + 1;
                let Some(locate) = itch::about(bytes) else { return };
                let news = self.changed.entry((shard, locate)).or_default();
                news.extend(news_of(from, bytes, standing.day));
            }
            Received::Event(FeedEvent::Session(session)) => *standing = Standing::of(session),
            Received::Event(FeedEvent::Unfilled { .. }) => self.note_gap(from),
            Received::Event(FeedEvent::Reset { next }) => {
                standing.number = next;
                self.note_gap(from);
            }
            Received::State(_) => {
                for (locate, _) in from.books.all() {
                    self.changed.entry((shard, locate)).or_default();
                }
            }
        }
    }

    /// Trades were not to be had.
    fn note_gap(&mut self, from: &ReceivedFrom<'_>) {
        self.standing.entry(from.shard).or_default().is_whole = false;
        for (locate, _) in from.books.all() {
            self.changed.entry((from.shard, locate)).or_default().push(TapeNews::Gap);
        }
    }
}

impl Standing {
    fn of(session: Session) -> Self {
        Self { day: session.day().unwrap_or_default(), number: 1, is_whole: true }
    }
}

/// What a message says of its instrument's tape.
fn news_of(from: &ReceivedFrom<'_>, bytes: &[u8], day: BusinessDay) -> Option<TapeNews> {
    match FeedMessage::read(bytes)? {
        FeedMessage::Broken(of) => Some(TapeNews::Busted(of.match_number.get())),
        message => {
            let trade = from.books.traded(bytes)?;
            Some(TapeNews::Trade(MarketTrade {
                number: trade.number,
                at: time_of(day, message.head().time_ns()),
                price: trade.price,
                quantity: trade.shares,
                taker: trade.resting.map(Side::opposite),
            }))
        }
    }
}

/// Messages tell the time of day alone, their session the day. Before the first business day it is the day on which it is nearest to now.
fn time_of(day: BusinessDay, time_ns: u64) -> Timestamp {
    if day != BusinessDay::NONE {
        return Timestamp(day.midnight().0 + time_ns);
    }
    let now_ns = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_nanos();
    let now_ns = u64::try_from(now_ns).unwrap_or(u64::MAX);
    let half = DAY_NS / 2;
    let day = now_ns.saturating_add(half).saturating_sub(time_ns) / DAY_NS;
    Timestamp(day * DAY_NS + time_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_without_a_day_is_of_the_day_on_which_it_is_nearest() {
        let now_ns =
            u64::try_from(SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_nanos());
        let now_ns = now_ns.unwrap();
        for away_ns in [0, DAY_NS / 3] {
            let at = now_ns - away_ns;
            assert_eq!(time_of(BusinessDay::NONE, at % DAY_NS), Timestamp(at));
        }
        assert_eq!(time_of(BusinessDay(2), 5), Timestamp(2 * DAY_NS + 5));
    }
}
