//! What one socket watches of the market, and what it was told last of each.
//!
//! Nothing is queued for it. Books, tickers and candles are told as they are now, as what changed since the last time. Trades are told one by one from where the socket stands on
//! the tape; one who stands where nothing is kept any more has read too slowly.

use std::collections::BTreeMap;
use std::sync::Arc;

use pares_http::problem::Problem;
use pares_resources::candles::{Candle, Interval};
use pares_resources::decimal::natural;
use pares_resources::tape::{NotKept, Tape};
use serde::Serialize;
use tokio::sync::Notify;
use utoipa::ToSchema;

use crate::books::{BookNow, snapshot_text, step_text};
use crate::market::{Market, Shelf};
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
}

/// What a socket was told last of something.
enum Last {
    Book(Arc<BookNow>),
    /// Its place on the tape.
    Trades(u64),
    Ticker(TickerShown),
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
    /// `unknown_instrument`, also where there are no market data; of trades `not_kept`; `too_many`.
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

fn text(message: &impl Serialize) -> String {
    serde_json::to_string(message).expect("what is told is plain")
}

impl Watching {
    /// Begins to watch: what is said at once. Trades come from behind that number on, or from now on.
    pub(crate) fn begin(
        &mut self,
        market: Option<&Market>,
        watched: Watched,
        after: Option<&str>,
    ) -> Vec<String> {
        let not = |reason| {
            let channel = match watched.channel {
                MarketChannel::Book => "book_not",
                MarketChannel::Trades => "trades_not",
                MarketChannel::Ticker => "ticker_not",
                MarketChannel::Candles(_) => "candles_not",
            };
            vec![text(&MarketNot { channel, symbol: watched.symbol.clone(), reason })]
        };
        if self.last.len() >= WATCHED_MAX && !self.last.contains_key(&watched) {
            return not("too_many");
        }
        let begun = market.and_then(|market| {
            market.listen(&watched.symbol, &self.rung);
            market.of(&watched.symbol, |shelf| first(shelf, &watched, after))
        });
        match begun {
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
    pub(crate) fn look(&mut self, market: &Market) -> Result<Vec<String>, TooSlow> {
        let mut texts = Vec::new();
        for (watched, last) in &mut self.last {
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
fn first(shelf: &Shelf, watched: &Watched, after: Option<&str>) -> Result<(Last, Vec<String>), NotKept> {
    let symbol = watched.symbol.clone();
    Ok(match watched.channel {
        MarketChannel::Book => {
            let text = snapshot_text(&symbol, &shelf.book.told);
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
            let ticker = TickerShown::of(&symbol, shelf);
            (Last::Ticker(ticker.clone()), vec![text(&MarketMessage::Ticker(ticker))])
        }
        MarketChannel::Candles(interval) => {
            let newest = shelf.tape.candles(interval).back();
            let texts = newest.map(|candle| candle_text(&symbol, interval, candle)).into_iter().collect();
            (Last::Candles(newest.copied()), texts)
        }
    })
}

/// Adds what changed. Whether there is more.
fn next(shelf: &Shelf, watched: &Watched, last: &mut Last, texts: &mut Vec<String>) -> Result<bool, NotKept> {
    let symbol = &watched.symbol;
    match (last, watched.channel) {
        (Last::Book(told), _) if !Arc::ptr_eq(told, &shelf.book) => {
            texts.push(match &shelf.book.step {
                Some((previous, text)) if *previous == told.told.number => text.to_string(),
                _ => step_text(symbol, &told.told, &shelf.book.told),
            });
            *told = Arc::clone(&shelf.book);
        }
        (Last::Trades(place), _) => return next_trades(&shelf.tape, symbol, place, texts),
        (Last::Ticker(told), _) => {
            let ticker = TickerShown::of(symbol, shelf);
            if *told != ticker {
                told.clone_from(&ticker);
                texts.push(text(&MarketMessage::Ticker(ticker)));
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

fn next_trades(tape: &Tape, symbol: &str, place: &mut u64, texts: &mut Vec<String>) -> Result<bool, NotKept> {
    for entry in tape.from(*place)?.take(TRADES_AT_ONCE) {
        *place += 1;
        texts.push(text(&MarketMessage::Trades { symbol: symbol.to_owned(), news: entry.into() }));
    }
    Ok(*place < tape.end())
}

fn candle_text(symbol: &str, interval: Interval, candle: &Candle) -> String {
    let (symbol, interval) = (symbol.to_owned(), interval.word());
    text(&MarketMessage::Candles { symbol, interval, candle: candle.into() })
}
