//! The market as it is asked for: books, trades, and what they sum up to.

use std::sync::Arc;

use axum::extract::Path;
use axum::http::StatusCode;
use pares_http::problem::Problem;
use pares_resources::candles::{Candle, Interval};
use pares_resources::decimal::price_text;
use pares_resources::order_terms::{BadField, phase_word, side_word};
use pares_resources::tape::{KEPT_MAX, MarketTrade, TapeEntry, TapeNews};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::books::{BookTold, LevelShown, checksum, level_shown, shown};
use crate::caller::{Answered, Call};
use crate::forms::told_of;
use crate::market::Shelf;
use crate::refused;
use crate::spoken::Queried;

/// Trades or candles in an answer.
const PAGE: usize = 100;

/// A trade of the market.
#[derive(Serialize, ToSchema)]
pub(crate) struct TradeShown {
    /// Rises within the shard, and is the same at every server: 65,536 times the position, and the event of that position.
    number: String,
    /// The number of the instrument's trade before it; absent if trades may be missing between.
    #[serde(skip_serializing_if = "Option::is_none")]
    previous: Option<String>,
    /// When, ns since 1970.
    time_ns: String,
    price: String,
    /// Shares.
    quantity: String,
    /// `buy` or `sell`: the order that came in; absent in an auction.
    #[serde(skip_serializing_if = "Option::is_none")]
    taker: Option<&'static str>,
    /// Whether it was declared void.
    is_busted: bool,
}

impl TradeShown {
    fn new(trade: &MarketTrade, entry: &TapeEntry) -> Self {
        Self {
            number: trade.number.to_string(),
            previous: entry.previous.map(|number| number.to_string()),
            time_ns: trade.at.0.to_string(),
            price: price_text(trade.price),
            quantity: trade.quantity.to_string(),
            taker: trade.taker.map(side_word),
            is_busted: entry.is_busted,
        }
    }

    fn of(entry: &TapeEntry) -> Option<Self> {
        match entry.news {
            TapeNews::Trade(trade) => Some(Self::new(&trade, entry)),
            TapeNews::Busted(_) | TapeNews::Gap => None,
        }
    }
}

/// What happens on an instrument's tape.
#[derive(Serialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum TapeShown {
    /// A trade.
    Trade(TradeShown),
    /// The trade of that number was declared void.
    Busted { number: String },
    /// Trades may be missing here.
    Gap,
}

impl From<&TapeEntry> for TapeShown {
    fn from(entry: &TapeEntry) -> Self {
        match entry.news {
            TapeNews::Trade(trade) => Self::Trade(TradeShown::new(&trade, entry)),
            TapeNews::Busted(number) => Self::Busted { number: number.to_string() },
            TapeNews::Gap => Self::Gap,
        }
    }
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

/// Trades.
#[derive(Serialize, ToSchema)]
pub(crate) struct TradesShown {
    symbol: String,
    /// The newest first.
    trades: Vec<TradeShown>,
}

told_of! {
    /// An interval's trades.
    #[derive(Clone, PartialEq, Eq)]
    CandleShown(candle: &Candle) {
        /// When it begins, ns since 1970.
        start_ns: String = candle.start.0.to_string(),
        open: String = price_text(candle.open),
        high: String = price_text(candle.high),
        low: String = price_text(candle.low),
        close: String = price_text(candle.close),
        /// Shares.
        volume: String = candle.volume.to_string(),
        /// How many; an auction is one.
        trades: String = candle.trades.to_string(),
    }
}

/// Candles.
#[derive(Serialize, ToSchema)]
pub(crate) struct CandlesShown {
    symbol: String,
    /// `1m`, `5m`, `1h` or `1d`.
    interval: &'static str,
    /// The oldest first; of an interval without a trade there is none.
    candles: Vec<CandleShown>,
}

/// How an instrument trades.
#[derive(Clone, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct TickerShown {
    symbol: String,
    /// As of an instrument; absent before it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    phase: Option<&'static str>,
    /// Whether the best bid and offer are the market's: not while data are missing.
    is_current: bool,
    /// The price of the last trade; absent if none was received.
    #[serde(skip_serializing_if = "Option::is_none")]
    last: Option<String>,
    /// Its shares.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_quantity: Option<String>,
    /// Its time, ns since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_time_ns: Option<String>,
    /// The best bid.
    #[serde(skip_serializing_if = "Option::is_none")]
    bid: Option<LevelShown>,
    /// The best offer.
    #[serde(skip_serializing_if = "Option::is_none")]
    offer: Option<LevelShown>,
    /// The business day, as a date; absent before the first one.
    #[serde(skip_serializing_if = "Option::is_none")]
    day: Option<String>,
    /// What traded in it; absent before the first trade.
    #[serde(skip_serializing_if = "Option::is_none")]
    traded: Option<CandleShown>,
    /// Whether `traded` has all of the day: not if trades were missed.
    is_whole_day: bool,
}

impl TickerShown {
    pub(crate) fn of(symbol: &str, shelf: &Shelf) -> Self {
        let (book, last, day) = (&shelf.book.told, shelf.tape.last(), shelf.tape.day());
        Self {
            symbol: symbol.to_owned(),
            phase: shelf.phase.map(phase_word),
            is_current: book.is_current,
            last: last.map(|trade| price_text(trade.price)),
            last_quantity: last.map(|trade| trade.quantity.to_string()),
            last_time_ns: last.map(|trade| trade.at.0.to_string()),
            bid: book.levels.bids.first().map(level_shown),
            offer: book.levels.offers.first().map(level_shown),
            day: Some(day.day)
                .filter(|day| *day != pares_types::BusinessDay::NONE)
                .map(|day| day.to_string()),
            traded: day.traded.as_ref().map(CandleShown::from),
            is_whole_day: day.is_whole,
        }
    }
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct Newest {
    /// So many at most, 1 to 1,000; 100 if nothing is said.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct OfInterval {
    /// `1m` (if nothing is said), `5m`, `1h` or `1d`.
    interval: Option<String>,
    /// So many at most, the newest; 1 to 1,000; 100 if nothing is said.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
}

fn limit(asked: Option<usize>) -> Result<usize, Problem> {
    let limit = asked.unwrap_or(PAGE);
    let bad = || refused::bad_field(BadField { field: "limit", why: "1 to 1000" });
    (1..=KEPT_MAX).contains(&limit).then_some(limit).ok_or_else(bad)
}

/// The interval of a word; the shortest if nothing is said.
pub(crate) fn interval(asked: Option<&str>) -> Result<Interval, Problem> {
    let bad = || refused::bad_field(BadField { field: "interval", why: "1m, 5m, 1h or 1d" });
    asked.map_or(Some(Interval::Minute), Interval::of).ok_or_else(bad)
}

impl Call {
    /// Looks at that instrument, if market data of it have come.
    async fn of_market<T>(&self, symbol: &str, look: impl FnOnce(&Shelf) -> T) -> Result<T, Problem> {
        let none = || no_market_data("the exchange publishes no market data");
        match self.app.settings.market.as_ref().ok_or_else(none)?.of(symbol, look) {
            Some(seen) => Ok(seen),
            None => Err(self.not_told(symbol).await),
        }
    }

    /// Why there are no data of that symbol: market data are silent on some that are listed.
    async fn not_told(&self, symbol: &str) -> Problem {
        match self.app.instrument(&self.session, symbol).await {
            Ok(_) => no_market_data("no market data of that instrument have been published yet"),
            Err(problem) => problem,
        }
    }
}

fn no_market_data(detail: &str) -> Problem {
    Problem::of(StatusCode::NOT_FOUND, detail).reason("no_market_data")
}

/// The book of an instrument, as this server has received it.
#[utoipa::path(get, path = "/v1/instruments/{symbol}/book", tag = "market", params(("symbol" = String, Path)), responses(
    (status = 200, description = "The best 100 prices of each side", body = BookShown)))]
pub(crate) async fn book(Path(symbol): Path<String>, call: Call) -> Answered {
    let now = call.of_market(&symbol, |shelf| Arc::clone(&shelf.book)).await?;
    let BookTold { number, is_current, ref levels } = now.told;
    let shown = BookShown {
        symbol,
        number: number.to_string(),
        is_current,
        bids: shown(&levels.bids),
        offers: shown(&levels.offers),
        checksum: checksum(levels),
    };
    call.ok("book", &shown)
}

/// The newest trades of an instrument that this server has received.
#[utoipa::path(get, path = "/v1/instruments/{symbol}/trades", tag = "market", params(("symbol" = String, Path), Newest), responses(
    (status = 200, description = "The newest first", body = TradesShown)))]
pub(crate) async fn trades(
    Path(symbol): Path<String>,
    call: Call,
    Queried(asked): Queried<Newest>,
) -> Answered {
    let limit = limit(asked.limit)?;
    let newest = |shelf: &Shelf| shelf.tape.newest().filter_map(TradeShown::of).take(limit).collect();
    let trades = call.of_market(&symbol, newest).await?;
    call.ok("trades", &TradesShown { symbol, trades })
}

/// The trades of an instrument by intervals, as this server has received them.
#[utoipa::path(get, path = "/v1/instruments/{symbol}/candles", tag = "market", params(("symbol" = String, Path), OfInterval), responses(
    (status = 200, description = "The newest, the oldest of them first", body = CandlesShown)))]
pub(crate) async fn candles(
    Path(symbol): Path<String>,
    call: Call,
    Queried(asked): Queried<OfInterval>,
) -> Answered {
    let (limit, interval) = (limit(asked.limit)?, interval(asked.interval.as_deref())?);
    let newest = |shelf: &Shelf| {
        let candles = shelf.tape.candles(interval);
        candles.iter().skip(candles.len().saturating_sub(limit)).map(CandleShown::from).collect()
    };
    let candles = call.of_market(&symbol, newest).await?;
    call.ok("candles", &CandlesShown { symbol, interval: interval.word(), candles })
}

/// How an instrument trades: last, best bid and offer, the day.
#[utoipa::path(get, path = "/v1/instruments/{symbol}/ticker", tag = "market", params(("symbol" = String, Path)), responses(
    (status = 200, description = "How it trades", body = TickerShown)))]
pub(crate) async fn ticker(Path(symbol): Path<String>, call: Call) -> Answered {
    let ticker = call.of_market(&symbol, |shelf| TickerShown::of(&symbol, shelf)).await?;
    call.ok("ticker", &ticker)
}
