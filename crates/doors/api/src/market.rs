//! Books of the market, as a receiver of market data tells them, for all who look.
//!
//! A thousand who look at a book would have its change written a thousand times. Here it is written once, when it happens, and all share the text; who is some changes behind
//! gets their texts, one after the other. Only who is further behind has a difference of his own written, so that nothing is queued.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, Weak};

use axum::extract::ws::Utf8Bytes;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use pares_http::problem::Problem;
use pares_resources::book::Levels;
use pares_resources::decimal::price_text;
use pares_types::{Price, Quantity, Reason};
use serde::Serialize;
use tokio::sync::Notify;
use utoipa::ToSchema;

use crate::app::{Caller, Shared};
use crate::refused;
use crate::spoken::Spoken;

/// A book as it is told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BookTold {
    /// The number of the shard's market data that comes next: what lies before it is in the book.
    pub number: u64,
    /// Whether the book is the market's: not while data are missing.
    pub is_current: bool,
    /// Its prices.
    pub levels: Levels,
}

/// The texts of a book's last changes are kept up to so many bytes together: who is further behind is better off with one difference.
const STEPS_BYTES_MAX: usize = 4 << 10;

/// A book, and who wants to hear of it.
#[derive(Default)]
struct Shelf {
    now: Arc<BookNow>,
    listeners: Vec<Weak<Notify>>,
}

/// A book, and what those who look are told of it.
#[derive(Debug, Default)]
pub(crate) struct BookNow {
    pub(crate) told: BookTold,
    /// How often it has changed.
    changes: u64,
    /// The texts of its last changes, the newest at the end.
    steps: VecDeque<Utf8Bytes>,
}

impl BookNow {
    /// The book behind this one, with the text of the change.
    fn next(&self, symbol: &str, told: BookTold) -> Self {
        let mut steps = self.steps.clone();
        steps.push_back(step_text(symbol, &self.told, &told).into());
        let mut bytes: usize = steps.iter().map(|text| text.len()).sum();
        while bytes > STEPS_BYTES_MAX {
            bytes -= steps.pop_front().map_or(bytes, |text| text.len());
        }
        Self { told, changes: self.changes + 1, steps }
    }

    /// What is to be told to one who was told `before` last.
    fn since(&self, symbol: &str, before: &Self, texts: &mut Vec<Utf8Bytes>) {
        let behind = usize::try_from(self.changes - before.changes).unwrap_or(usize::MAX);
        match self.steps.len().checked_sub(behind) {
            Some(known) => texts.extend(self.steps.range(known..).cloned()),
            None => texts.push(step_text(symbol, &before.told, &self.told).into()),
        }
    }
}

/// Books by symbol, and those that have changed since their listeners were rung.
#[derive(Default)]
struct Shelves {
    books: BTreeMap<String, Shelf>,
    changed: Vec<String>,
}

/// All books, by symbol.
#[derive(Default)]
pub struct MarketBooks(RwLock<Shelves>);

impl MarketBooks {
    fn shelves(&self) -> RwLockReadGuard<'_, Shelves> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes in how a book is now; who listens is told when all of this turn are taken in: see [`MarketBooks::ring`].
    pub fn tell(&self, symbol: &str, told: BookTold) {
        let before = self.book(symbol).unwrap_or_default();
        let is_same = before.told.levels == told.levels && before.told.is_current == told.is_current;
        if is_same && before.changes > 0 {
            return;
        }
        let now = Arc::new(before.next(symbol, told));
        let mut shelves = self.0.write().unwrap_or_else(PoisonError::into_inner);
        shelves.changed.push(symbol.to_owned());
        shelves.books.entry(symbol.to_owned()).or_default().now = now;
    }

    /// Rings who listens to the books that have changed: once, however many of them there are.
    pub fn ring(&self) {
        let mut shelves = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let Shelves { books, changed } = &mut *shelves;
        for symbol in changed.drain(..) {
            let Some(shelf) = books.get_mut(&symbol) else { continue };
            shelf.listeners.retain(|listener| listener.upgrade().map(|one| one.notify_one()).is_some());
        }
    }

    /// The book of that symbol.
    pub(crate) fn book(&self, symbol: &str) -> Option<Arc<BookNow>> {
        self.shelves().books.get(symbol).map(|shelf| Arc::clone(&shelf.now))
    }

    /// What is new of the books that are in `told`, which has them as they are afterwards.
    pub(crate) fn news(&self, told: &mut BTreeMap<String, Arc<BookNow>>) -> Vec<Utf8Bytes> {
        let (mut changed, mut texts) = (Vec::new(), Vec::new());
        {
            let shelves = self.shelves();
            for (symbol, told) in told {
                let Some(shelf) = shelves.books.get(symbol) else { continue };
                if !Arc::ptr_eq(&shelf.now, told) {
                    changed.push((symbol, std::mem::replace(told, Arc::clone(&shelf.now)), &*told));
                }
            }
        }
        for (symbol, before, now) in changed {
            now.since(symbol, &before, &mut texts);
        }
        texts
    }

    /// Rings `listener` whenever that book changes. Whether there is one.
    pub(crate) fn listen(&self, symbol: &str, listener: &Arc<Notify>) -> bool {
        let mut shelves = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let shelf = shelves.books.get_mut(symbol);
        let is_there = shelf.is_some();
        shelf.into_iter().for_each(|shelf| shelf.listeners.push(Arc::downgrade(listener)));
        is_there
    }
}

/// A price and the shares shown there.
#[derive(Serialize, ToSchema)]
pub(crate) struct LevelShown {
    price: String,
    /// Shares; in a difference 0 for a price that is gone.
    quantity: String,
}

/// A book.
#[derive(Serialize, ToSchema)]
pub(crate) struct BookShown {
    symbol: String,
    /// The number of the shard's market data that comes next.
    number: String,
    /// Whether the book is the market's: not while data are missing.
    is_current: bool,
    /// The highest first, 100 at most.
    bids: Vec<LevelShown>,
    /// The lowest first, 100 at most.
    offers: Vec<LevelShown>,
    /// CRC-32 of the ten best of each side.
    checksum: String,
}

/// What a socket is told of a book.
#[derive(Serialize)]
struct BookMessage<'a> {
    channel: &'static str,
    #[serde(rename = "type")]
    kind: &'static str,
    symbol: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    previous: Option<String>,
    number: String,
    is_current: bool,
    bids: Vec<LevelShown>,
    offers: Vec<LevelShown>,
    checksum: String,
}

fn shown(side: &[(Price, Quantity)]) -> Vec<LevelShown> {
    let level = |(price, shares): &(Price, Quantity)| LevelShown {
        price: price_text(*price),
        quantity: shares.to_string(),
    };
    side.iter().map(level).collect()
}

fn checksum(levels: &Levels) -> String {
    format!("{:08x}", levels.sum())
}

fn text(symbol: &str, previous: Option<u64>, changes: &Levels, told: &BookTold) -> String {
    let message = BookMessage {
        channel: "book",
        kind: if previous.is_some() { "delta" } else { "snapshot" },
        symbol,
        previous: previous.map(|number| number.to_string()),
        number: told.number.to_string(),
        is_current: told.is_current,
        bids: shown(&changes.bids),
        offers: shown(&changes.offers),
        checksum: checksum(&told.levels),
    };
    serde_json::to_string(&message).expect("a book is plain")
}

/// The whole book as a message.
pub(crate) fn snapshot_text(symbol: &str, told: &BookTold) -> String {
    text(symbol, None, &told.levels, told)
}

/// What changed since `before` as a message.
pub(crate) fn step_text(symbol: &str, before: &BookTold, told: &BookTold) -> String {
    text(symbol, Some(before.number), &told.levels.since(&before.levels), told)
}

/// The book of an instrument, as this server has received it.
#[utoipa::path(get, path = "/v1/instruments/{symbol}/book", tag = "market", params(("symbol" = String, Path)), responses(
    (status = 200, description = "The best 100 prices of each side", body = BookShown),
    (status = "default", description = "a problem", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn book(
    State(app): State<Shared>,
    Path(symbol): Path<String>,
    Caller(_): Caller,
    spoken: Spoken,
) -> Result<Response, Problem> {
    let market = app.settings.market.as_ref().ok_or_else(no_market_data)?;
    let unknown = || refused::refused(Reason::UnknownInstrument);
    let now = market.book(&symbol).ok_or_else(unknown)?;
    let BookTold { number, is_current, ref levels } = now.told;
    let shown = BookShown {
        symbol,
        number: number.to_string(),
        is_current,
        bids: shown(&levels.bids),
        offers: shown(&levels.offers),
        checksum: checksum(levels),
    };
    Ok(spoken.ok("book", &shown))
}

fn no_market_data() -> Problem {
    Problem::of(StatusCode::NOT_FOUND, "the exchange publishes no market data").reason("no_market_data")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(number: u64, shares: u64) -> BookTold {
        let bids = vec![(Price(10_000), Quantity(shares))];
        BookTold { number, is_current: true, levels: Levels { bids, offers: Vec::new() } }
    }

    /// A reader of one book, who was told it as it is.
    fn reader(market: &MarketBooks) -> BTreeMap<String, Arc<BookNow>> {
        BTreeMap::from([("ALFA".to_owned(), market.book("ALFA").unwrap())])
    }

    #[test]
    fn all_share_the_texts_of_the_changes_that_they_have_not_been_told() {
        let market = MarketBooks::default();
        market.tell("ALFA", told(1, 1));
        let [mut one, mut other] = [(), ()].map(|()| reader(&market));
        market.tell("ALFA", told(2, 2));
        market.tell("ALFA", told(2, 2));
        market.tell("ALFA", told(3, 3));
        let [first, second] = [&mut one, &mut other].map(|told| market.news(told));
        assert_eq!(first.len(), 2, "{first:?}");
        assert!(first[0].contains("\"previous\":\"1\",\"number\":\"2\""), "{first:?}");
        assert!(first.iter().zip(&second).all(|(one, other)| one.as_ptr() == other.as_ptr()));
        assert!(market.news(&mut one).is_empty());
    }

    #[test]
    fn who_is_far_behind_is_told_one_difference_on_what_he_was_told() {
        let market = MarketBooks::default();
        market.tell("ALFA", told(1, 1));
        let mut far = reader(&market);
        (2..=1_000).for_each(|number| market.tell("ALFA", told(number, number)));
        let texts = market.news(&mut far);
        assert_eq!(texts.len(), 1, "{texts:?}");
        assert!(texts[0].contains("\"previous\":\"1\",\"number\":\"1000\""), "{texts:?}");
        let kept: usize = market.book("ALFA").unwrap().steps.iter().map(|text| text.len()).sum();
        assert!(kept <= STEPS_BYTES_MAX, "{kept}");
    }

    #[test]
    fn listeners_are_rung_when_a_turn_is_whole() {
        let (market, listener) = (MarketBooks::default(), Arc::new(Notify::new()));
        assert!(!market.listen("ALFA", &listener));
        market.tell("ALFA", told(1, 1));
        assert!(market.listen("ALFA", &listener));
        market.tell("ALFA", told(2, 2));
        let mut rung = std::pin::pin!(listener.notified());
        let is_rung = |rung: std::pin::Pin<&mut tokio::sync::futures::Notified<'_>>| {
            let mut context = std::task::Context::from_waker(std::task::Waker::noop());
            std::future::Future::poll(rung, &mut context).is_ready()
        };
        market.ring();
        assert!(is_rung(rung.as_mut()));
    }
}
