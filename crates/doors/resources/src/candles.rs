//! Trades by intervals: the first, highest, lowest and last price of each, and how much was traded.

use std::collections::VecDeque;

use pares_types::{DAY_NS, Price, Quantity, Timestamp};

use crate::tape::MarketTrade;

const MINUTE_NS: u64 = 60_000_000_000;

/// How long a candle is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Interval {
    /// `1m`.
    Minute,
    /// `5m`.
    FiveMinutes,
    /// `1h`.
    Hour,
    /// `1d`, from midnight UTC.
    Day,
}

impl Interval {
    /// All of them, the shortest first.
    pub const ALL: [Self; 4] = [Self::Minute, Self::FiveMinutes, Self::Hour, Self::Day];

    /// `1m`, `5m`, `1h` or `1d`.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Minute => "1m",
            Self::FiveMinutes => "5m",
            Self::Hour => "1h",
            Self::Day => "1d",
        }
    }

    /// The interval of that word.
    #[must_use]
    pub fn of(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|interval| interval.word() == word)
    }

    /// When the one begins in which that time lies.
    fn start(self, at: Timestamp) -> Timestamp {
        let length_ns = match self {
            Self::Minute => MINUTE_NS,
            Self::FiveMinutes => 5 * MINUTE_NS,
            Self::Hour => 60 * MINUTE_NS,
            Self::Day => DAY_NS,
        };
        Timestamp(at.0 - at.0 % length_ns)
    }
}

/// Some trades in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candle {
    /// When it begins.
    pub start: Timestamp,
    /// The first price.
    pub open: Price,
    /// The highest price.
    pub high: Price,
    /// The lowest price.
    pub low: Price,
    /// The last price.
    pub close: Price,
    /// Shares.
    pub volume: Quantity,
    /// How many trades; an auction is one.
    pub trades: u64,
}

impl Candle {
    /// One that begins then, with that trade.
    pub(crate) fn begin(start: Timestamp, trade: &MarketTrade) -> Self {
        let price = trade.price;
        let (open, high, low, close) = (price, price, price, price);
        Self { start, open, high, low, close, volume: trade.quantity, trades: 1 }
    }

    /// The next trade of it.
    pub(crate) fn take(&mut self, trade: &MarketTrade) {
        (self.high, self.low) = (self.high.max(trade.price), self.low.min(trade.price));
        self.close = trade.price;
        self.volume = Quantity(self.volume.0.saturating_add(trade.quantity.0));
        self.trades += 1;
    }
}

/// The newest candles of each interval, the oldest first. An interval without a trade has none.
#[derive(Clone, Debug, Default)]
pub(crate) struct Candles([VecDeque<Candle>; Interval::ALL.len()]);

impl Candles {
    pub(crate) fn of(&self, interval: Interval) -> &VecDeque<Candle> {
        &self.0[interval as usize]
    }

    /// The next trade. One that is stamped earlier than the newest candle is counted there: what was sent does not change.
    pub(crate) fn take(&mut self, trade: &MarketTrade, keep: usize) {
        for (candles, interval) in self.0.iter_mut().zip(Interval::ALL) {
            let start = interval.start(trade.at);
            match candles.back_mut().filter(|newest| newest.start >= start) {
                Some(newest) => newest.take(trade),
                None => candles.push_back(Candle::begin(start, trade)),
            }
            while candles.len() > keep {
                candles.pop_front();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trades_are_gathered_by_when_they_were() {
        let mut candles = Candles::default();
        let at = |second: u64, price, shares| MarketTrade {
            number: second,
            at: Timestamp(second * 1_000_000_000),
            price: Price(price),
            quantity: Quantity(shares),
            taker: None,
        };
        for trade in [at(61, 5, 1), at(90, 9, 2), at(119, 4, 3), at(200, 6, 4), at(170, 1, 5)] {
            candles.take(&trade, 2);
        }
        let shown = |candle: &Candle| {
            let Candle { start, open, high, low, close, volume, trades } = *candle;
            (start.0 / 1_000_000_000, [open.0, high.0, low.0, close.0], volume.0, trades)
        };
        let minutes: Vec<_> = candles.of(Interval::Minute).iter().map(shown).collect();
        assert_eq!(minutes, [(60, [5, 9, 4, 4], 6, 3), (180, [6, 6, 1, 1], 9, 2)], "the late one too");
        assert_eq!(
            candles.of(Interval::Day).iter().map(shown).collect::<Vec<_>>(),
            [(0, [5, 9, 1, 1], 15, 5)]
        );
        candles.take(&at(300, 6, 4), 2);
        assert_eq!(candles.of(Interval::Minute).len(), 2);
    }

    #[test]
    fn intervals_have_words() {
        for interval in Interval::ALL {
            assert_eq!(Interval::of(interval.word()), Some(interval));
        }
        assert_eq!(Interval::of("2m"), None);
    }
}
