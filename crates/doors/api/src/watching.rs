//! What one socket watches of the market, and what it received last of each.
//!
//! Nothing is queued for it. It receives books, tickers and candles as they are now, as what changed since the last time, and trades one by one from where the socket stands on
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

impl Watched {
    /// The message that there are no data of this.
    pub(crate) fn not(&self, reason: &'static str) -> Utf8Bytes {
        text(&MarketNot { channel: self.channel.not(), symbol: self.symbol.clone(), reason })
    }
}

impl MarketChannel {
    /// The channels that say why something is not watched.
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

/// What a socket was sent last of something.
enum Last {
    Book(Arc<BookNow>),
    /// Its place on the tape.
    Trades(u64),
    /// Its text.
    Ticker(Utf8Bytes),
    Candles(Option<Candle>),
}

/// What a socket sends of trades, tickers and candles.
#[derive(Serialize, ToSchema)]
#[serde(tag = "channel", rename_all = "snake_case")]
pub(crate) enum MarketMessage {
    /// The next of an instrument's tape.
    Trades {
        symbol: String,
        #[serde(flatten)]
        news: TapeShown,
    },
    /// From here on the tape is sent; `last` is the number of the last trade before.
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

/// Nothing of that is sent.
#[derive(Serialize, ToSchema)]
pub(crate) struct MarketNot {
    /// `book_not`, `trades_not`, `ticker_not`, `candles_not`.
    channel: &'static str,
    symbol: String,
    /// `unknown_instrument`, `no_market_data`; of trades `not_kept`; `too_many`.
    reason: &'static str,
}

/// Why nothing more is sent.
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
    serde_json::to_string(message).expect("updates are plain").into()
}

impl Watching {
    /// Begins to watch; gives the first messages, or why there are none; nothing if there are no data of that symbol. Trades follow that number, or begin now.
    pub(crate) fn begin(
        &mut self,
        market: Option<&ReceivedMarket>,
        watched: &Watched,
        after: Option<&str>,
    ) -> Option<Vec<Utf8Bytes>> {
        let not = |reason| Some(vec![watched.not(reason)]);
        if self.last.len() >= WATCHED_MAX && !self.last.contains_key(watched) {
            return not("too_many");
        }
        let begun = market
            .filter(|market| {
                market.listen(&watched.symbol, &self.rung, watched.channel == MarketChannel::Book)
            })
            .and_then(|market| market.of(&watched.symbol, |shelf| first(shelf, watched, after)));
        match begun {
            None if market.is_none() => not("no_market_data"),
            None => None,
            Some(Err(NotKept)) => not("not_kept"),
            Some(Ok((last, texts))) => {
                self.last.insert(watched.clone(), last);
                // Trades that are there already are sent in the next turn.
                self.rung.notify_one();
                Some(texts)
            }
        }
    }

    /// What changed since it was sent last.
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

/// The first messages, and what counts as told then.
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
            let ticker = ticker(&symbol, shelf);
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
            let ticker = ticker(symbol, shelf);
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
    *place = tape.begun().max(*place);
    for entry in tape.from(*place)?.take(TRADES_AT_ONCE) {
        *place += 1;
        texts.push(text(&MarketMessage::Trades { symbol: symbol.to_owned(), news: entry.into() }));
    }
    Ok(*place < tape.end())
}

/// How an instrument trades now, as it is sent: written once for all who look.
fn ticker<'a>(symbol: &str, shelf: &'a Shelf) -> &'a Utf8Bytes {
    shelf.ticker.get_or_init(|| text(&MarketMessage::Ticker(TickerShown::of(symbol, shelf))))
}

fn candle_text(symbol: &str, interval: Interval, candle: &Candle) -> Utf8Bytes {
    let (symbol, interval) = (symbol.to_owned(), interval.word());
    text(&MarketMessage::Candles { symbol, interval, candle: candle.into() })
}

#[cfg(test)]
mod tests;
