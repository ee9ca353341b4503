//! What one socket watches of the market, and what it was told last of each.
//!
//! Nothing is queued for it. Books, tickers and candles are told as they are now, as what changed since the last time. Trades are told one by one from where the socket stands on
//! the tape; one who stands where nothing is kept any more has read too slowly.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::ws::Utf8Bytes;
use pares_http::problem::Problem;
use pares_resources::candles::{Candle, Interval};
use pares_resources::decimal::natural;
use pares_resources::tape::{NotKept, TradeTape};
use serde::Serialize;
use tokio::sync::Notify;
use utoipa::ToSchema;

use crate::books::{BookNow, snapshot_text};
use crate::market::{ReceivedMarket, Shelf};
use crate::trades::{CandleShown, TapeShown, TickerShown, interval};

/// What one socket may watch.
const WATCHED_MAX: usize = 400;
/// Trades of an instrument in one turn.
const TRADES_AT_ONCE: usize = 100;

/// A market channel and the instrument.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Watched {
    pub(crate) channel: MarketChannel,
    pub(crate) symbol: String,
}

/// What can be watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum MarketChannel {
    Book,
    Trades,
    Ticker,
    Candles(Interval),
}

impl MarketChannel {
    /// What is said of those that cannot be watched.
    pub(crate) const NOT: [&str; 4] = ["book_not", "trades_not", "ticker_not", "candles_not"];

    /// The channel of that name; candles of an interval.
    pub(crate) fn of(name: &str, asked: Option<&str>) -> Result<Self, Problem> {
        match (name, asked) {
            ("candles", asked) => interval(asked).map(Self::Candles),
            ("book", None) => Ok(Self::Book),
            ("trades", None) => Ok(Self::Trades),
            ("ticker", None) => Ok(Self::Ticker),
            _ => Err(Problem::bad("there is no such channel")),
        }
    }

    fn not(self) -> &'static str {
        let [book, trades, ticker, candles] = Self::NOT;
        match self {
            Self::Book => book,
            Self::Trades => trades,
            Self::Ticker => ticker,
            Self::Candles(_) => candles,
        }
    }
}

/// What a socket was told last of something.
enum Last {
    Book(Arc<BookNow>),
    /// Its place on the tape.
    Trades(u64),
    /// Its text.
    Ticker(Utf8Bytes),
    Candles(Option<Candle>),
}

/// What a socket is told of trades, tickers and candles.
#[derive(Serialize, ToSchema)]
#[serde(tag = "channel", rename_all = "snake_case")]
pub(crate) enum MarketMessage {
    /// The next of an instrument's tape.
    Trades {
        symbol: String,
        #[serde(flatten)]
        news: TapeShown,
    },
    /// From here on the tape is told; `last` is the number of the last trade before.
    TradesLive {
        symbol: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        last: Option<String>,
    },
    /// How an instrument trades now.
    Ticker(TickerShown),
    /// A candle as it is now: told again whenever it changes.
    Candles { symbol: String, interval: &'static str, candle: CandleShown },
}

/// Of that nothing is told.
#[derive(Serialize, ToSchema)]
pub(crate) struct MarketNot {
    /// `book_not`, `trades_not`, `ticker_not`, `candles_not`.
    channel: &'static str,
    symbol: String,
    /// `unknown_instrument`, `no_market_data`; of trades `not_kept`; `too_many`.
    reason: &'static str,
}

/// Why nothing more is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooSlow;

/// All that a socket watches.
#[derive(Default)]
pub(crate) struct Watching {
    /// Something of it has changed.
    pub(crate) rung: Arc<Notify>,
    last: BTreeMap<Watched, Last>,
}

fn text(message: &impl Serialize) -> Utf8Bytes {
    serde_json::to_string(message).expect("what is told is plain").into()
}

impl Watching {
    /// Begins to watch: what is said at once. Trades come from behind that number on, or from now on.
    pub(crate) fn begin(
        &mut self,
        market: Option<&ReceivedMarket>,
        watched: Watched,
        after: Option<&str>,
    ) -> Vec<Utf8Bytes> {
        let not = |reason| {
            vec![text(&MarketNot { channel: watched.channel.not(), symbol: watched.symbol.clone(), reason })]
        };
        if self.last.len() >= WATCHED_MAX && !self.last.contains_key(&watched) {
            return not("too_many");
        }
        let begun = market
            .filter(|market| {
                market.listen(&watched.symbol, &self.rung, watched.channel == MarketChannel::Book)
            })
            .and_then(|market| market.of(&watched.symbol, |shelf| first(shelf, &watched, after)));
        match begun {
            None if market.is_none() => not("no_market_data"),
            None => not("unknown_instrument"),
            Some(Err(NotKept)) => not("not_kept"),
            Some(Ok((last, texts))) => {
                self.last.insert(watched, last);
                // What is there already of trades is told in the next turn.
                self.rung.notify_one();
                texts
            }
        }
    }

    /// What changed since it was told last.
    pub(crate) fn look(&mut self, market: &ReceivedMarket) -> Result<Vec<Utf8Bytes>, TooSlow> {
        let mut texts = Vec::new();
        for (watched, last) in &mut self.last {
            if let Last::Book(told) = last {
                look_at_book(market, &watched.symbol, told, &mut texts);
                continue;
            }
            let told = market.of(&watched.symbol, |shelf| next(shelf, watched, last, &mut texts));
            match told {
                Some(Ok(true)) => self.rung.notify_one(),
                Some(Ok(false)) | None => {}
                Some(Err(NotKept)) => return Err(TooSlow),
            }
        }
        Ok(texts)
    }
}

/// What is said at first, and what counts as told then.
fn first(shelf: &Shelf, watched: &Watched, after: Option<&str>) -> Result<(Last, Vec<Utf8Bytes>), NotKept> {
    let symbol = watched.symbol.clone();
    Ok(match watched.channel {
        MarketChannel::Book => {
            let text = snapshot_text(&symbol, &shelf.book.told).into();
            (Last::Book(Arc::clone(&shelf.book)), vec![text])
        }
        MarketChannel::Trades => {
            let place = match after {
                Some(number) => shelf.tape.behind(natural(number).ok_or(NotKept)?)?,
                None => shelf.tape.end(),
            };
            let last = after.map(str::to_owned).or(shelf.tape.last().map(|trade| trade.number.to_string()));
            (Last::Trades(place), vec![text(&MarketMessage::TradesLive { symbol, last })])
        }
        MarketChannel::Ticker => {
            let ticker = shelf.ticker(&symbol);
            (Last::Ticker(ticker.clone()), vec![ticker.clone()])
        }
        MarketChannel::Candles(interval) => {
            let newest = shelf.tape.candles(interval).back();
            let texts = newest.map(|candle| candle_text(&symbol, interval, candle)).into_iter().collect();
            (Last::Candles(newest.copied()), texts)
        }
    })
}

/// Adds what changed in a book. It is written while all may look.
fn look_at_book(market: &ReceivedMarket, symbol: &str, told: &mut Arc<BookNow>, texts: &mut Vec<Utf8Bytes>) {
    let now = market.of(symbol, |shelf| Arc::clone(&shelf.book));
    if let Some(now) = now.filter(|now| !Arc::ptr_eq(now, told)) {
        now.since(symbol, told, texts);
        *told = now;
    }
}

/// Adds what changed. Whether there is more.
fn next(
    shelf: &Shelf,
    watched: &Watched,
    last: &mut Last,
    texts: &mut Vec<Utf8Bytes>,
) -> Result<bool, NotKept> {
    let symbol = &watched.symbol;
    match (last, watched.channel) {
        (Last::Trades(place), _) => return next_trades(&shelf.tape, symbol, place, texts),
        (Last::Ticker(told), _) => {
            let ticker = shelf.ticker(symbol);
            if told != ticker {
                told.clone_from(ticker);
                texts.push(ticker.clone());
            }
        }
        (Last::Candles(told), MarketChannel::Candles(interval)) => {
            let changed =
                shelf.tape.candles(interval).iter().rev().take_while(|candle| {
                    told.is_none_or(|told| candle.start >= told.start && **candle != told)
                });
            let changed: Vec<_> = changed.collect();
            texts.extend(changed.iter().rev().map(|candle| candle_text(symbol, interval, candle)));
            *told = changed.first().map_or(*told, |newest| Some(**newest));
        }
        _ => {}
    }
    Ok(false)
}

fn next_trades(
    tape: &TradeTape,
    symbol: &str,
    place: &mut u64,
    texts: &mut Vec<Utf8Bytes>,
) -> Result<bool, NotKept> {
    for entry in tape.from(*place)?.take(TRADES_AT_ONCE) {
        *place += 1;
        texts.push(text(&MarketMessage::Trades { symbol: symbol.to_owned(), news: entry.into() }));
    }
    Ok(*place < tape.end())
}

/// How an instrument trades, as it is told.
pub(crate) fn ticker_text(symbol: &str, shelf: &Shelf) -> Utf8Bytes {
    text(&MarketMessage::Ticker(TickerShown::of(symbol, shelf)))
}

fn candle_text(symbol: &str, interval: Interval, candle: &Candle) -> Utf8Bytes {
    let (symbol, interval) = (symbol.to_owned(), interval.word());
    text(&MarketMessage::Candles { symbol, interval, candle: candle.into() })
}

#[cfg(test)]
mod tests {
    use pares_resources::book::Levels;
    use pares_resources::tape::{KEPT_MAX, MarketTrade, TapeNews};
    use pares_types::{BusinessDay, Phase, Price, Quantity, Timestamp};
    use serde_json::Value;

    use super::*;
    use crate::books::BookTold;
    use crate::market::MarketTold;

    /// Trades of these numbers, each at its number, a minute after the one before.
    fn tell(market: &ReceivedMarket, numbers: std::ops::Range<u64>) {
        let trade = |number: u64| {
            let (at, price) = (Timestamp(number * 60_000_000_000), Price(number.cast_signed() * 10_000));
            TapeNews::Trade(MarketTrade { number, at, price, quantity: Quantity(1), taker: None })
        };
        let (book, phase) = (BookTold::default(), Some(Phase::Continuous));
        let news = numbers.map(trade).collect();
        market.tell(
            "ABC",
            &MarketTold { instrument: 1, book, phase, day: BusinessDay(1), is_whole: true, news },
        );
    }

    fn watching(market: &ReceivedMarket, name: &str) -> (Watching, Vec<Value>) {
        let mut watching = Watching::default();
        let channel = MarketChannel::of(name, None).unwrap();
        let texts = watching.begin(Some(market), Watched { channel, symbol: "ABC".into() }, None);
        (watching, values(&texts))
    }

    fn values(texts: &[Utf8Bytes]) -> Vec<Value> {
        texts.iter().map(|text| serde_json::from_str(text).unwrap()).collect()
    }

    fn told(watching: &mut Watching, market: &ReceivedMarket, field: &str) -> Vec<String> {
        let texts = watching.look(market).unwrap();
        let told = values(&texts);
        told.iter().map(|one| one.pointer(field).unwrap().as_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn a_slow_reader_of_trades_gets_each_once_until_what_it_has_not_read_is_gone() {
        let market = ReceivedMarket::default();
        tell(&market, 1..3);
        let (mut watching, first) = watching(&market, "trades");
        assert_eq!(first[0]["last"], "2");
        let few = TRADES_AT_ONCE as u64;
        tell(&market, 3..13 + few);
        let numbers = |from, to| (from..to).map(|number: u64| number.to_string()).collect::<Vec<_>>();
        assert_eq!(told(&mut watching, &market, "/number"), numbers(3, 3 + few), "a turn's");
        assert_eq!(told(&mut watching, &market, "/number"), numbers(3 + few, 13 + few));
        let (next, most) = (13 + few, KEPT_MAX as u64);
        tell(&market, next..next + most);
        tell(&market, next + most..next + most + 1);
        assert_eq!(watching.look(&market), Err(TooSlow));
    }

    #[test]
    fn a_symbol_is_that_of_its_newest_instrument() {
        let market = ReceivedMarket::default();
        tell(&market, 5..6);
        let trades = |instrument, numbers: std::ops::Range<u64>| {
            let at = |number: u64| (Timestamp(number), Price(10_000), Quantity(1));
            let trade = |number| {
                let (at, price, quantity) = at(number);
                TapeNews::Trade(MarketTrade { number, at, price, quantity, taker: None })
            };
            let (book, news) = (BookTold::default(), numbers.map(trade).collect());
            market.tell(
                "ABC",
                &MarketTold { instrument, book, phase: None, day: BusinessDay(1), is_whole: true, news },
            );
        };
        trades(9, 2..3);
        trades(1, 7..8);
        let last = market.of("ABC", |shelf| shelf.tape.last().map(|trade| trade.number));
        assert_eq!(last, Some(Some(2)), "of instrument 9, whose shard has lower numbers");
    }

    #[test]
    fn a_slow_reader_of_tickers_gets_the_last_and_of_candles_all_that_changed() {
        let market = ReceivedMarket::default();
        tell(&market, 1..2);
        let (mut ticker, first) = watching(&market, "ticker");
        assert_eq!(first[0]["last"], "1");
        let (mut candles, first) = watching(&market, "candles");
        assert_eq!(first[0]["candle"]["close"], "1");
        tell(&market, 2..4);
        tell(&market, 4..5);
        assert_eq!(told(&mut ticker, &market, "/last"), ["4"]);
        assert_eq!(told(&mut candles, &market, "/candle/close"), ["2", "3", "4"]);
        assert_eq!(ticker.look(&market).unwrap().len() + candles.look(&market).unwrap().len(), 0);
    }

    #[test]
    fn what_is_told_is_written_once_for_all_who_look_and_for_nobody_not_at_all() {
        let market = ReceivedMarket::default();
        let book = |price: i64| {
            let levels = Levels { bids: vec![(Price(price), Quantity(1))], offers: Vec::new() };
            let book = BookTold { number: 1, is_current: true, levels };
            let (phase, news) = (Some(Phase::Continuous), Vec::new());
            let told = MarketTold { instrument: 1, book, phase, day: BusinessDay(1), is_whole: true, news };
            market.tell("ABC", &told);
        };
        let steps = || market.of("ABC", |shelf| shelf.book.steps()).unwrap();
        book(1);
        let (mut ticker, mut other) = (watching(&market, "ticker").0, watching(&market, "ticker").0);
        book(2);
        assert_eq!(steps(), 0, "of books nobody wants to hear");
        let [text, same] = [&mut ticker, &mut other].map(|one| one.look(&market).unwrap().remove(0));
        assert_eq!(text.as_ptr(), same.as_ptr());
        let (mut looking, _) = watching(&market, "book");
        (3..5).for_each(book);
        assert_eq!((steps(), looking.look(&market).unwrap().len()), (2, 2));
        drop(looking);
        book(5);
        assert_eq!(steps(), 0, "nobody looks any more");
    }

    #[test]
    fn what_is_not_there_is_said() {
        let market = ReceivedMarket::default();
        let (_, first) = watching(&market, "candles");
        assert_eq!(
            (&first[0]["channel"], &first[0]["reason"]),
            (&"candles_not".into(), &"unknown_instrument".into())
        );
        assert!(MarketChannel::of("orders", None).is_err() && MarketChannel::of("book", Some("1m")).is_err());
    }
}
