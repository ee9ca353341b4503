//! An instrument's trades as they are received: the newest of them, and what they sum up to.
//!
//! A queue of trades for each reader grows with the slow ones, and one who joins later has a queue that says nothing of before. Here the newest trades are kept once. Each names
//! the one before it, a reader has a place among them, and one whose place is not kept any more learns it.

use std::collections::VecDeque;

use pares_types::{BusinessDay, Price, Quantity, Side, Timestamp};

use crate::candles::{Candle, Candles, Interval};

/// The fewest that are kept of an instrument, however many instruments there are.
const KEPT_MIN: usize = 100;
/// The most that are kept of an instrument.
pub const KEPT_MAX: usize = 1_000;
/// Kept of all instruments together, while they are not too many for [`KEPT_MIN`].
const KEPT_IN_ALL: usize = 1_000_000;

/// How many trades, or candles, are kept of each of so many instruments.
#[must_use]
pub fn kept_of_each(instruments: usize) -> usize {
    (KEPT_IN_ALL / instruments.max(1)).clamp(KEPT_MIN, KEPT_MAX)
}

/// A trade of the market.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MarketTrade {
    /// Rises within the shard, is never used twice, and is the same at every server.
    pub number: u64,
    /// When.
    pub at: Timestamp,
    /// Its price.
    pub price: Price,
    /// Its shares.
    pub quantity: Quantity,
    /// The side of the order that came in; of an auction none.
    pub taker: Option<Side>,
}

/// What happens on a tape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TapeNews {
    /// A trade.
    Trade(MarketTrade),
    /// The trade of that number was declared void.
    Busted(u64),
    /// Trades may be missing here.
    Gap,
}

/// An entry of the tape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TapeEntry {
    /// What happened.
    pub news: TapeNews,
    /// The number of the trade before this one; none if trades may be missing between.
    pub previous: Option<u64>,
    /// Whether it is a trade that was declared void later.
    pub is_busted: bool,
}

/// What an instrument traded in a business day.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DayFigures {
    /// Which.
    pub day: BusinessDay,
    /// Whether all of its trades were received.
    pub is_whole: bool,
    /// Its prices and shares; none before the first trade.
    pub traded: Option<Candle>,
}

/// The tape of an instrument.
#[derive(Clone, Debug, Default)]
pub struct TradeTape {
    /// The newest, the oldest first.
    kept: VecDeque<TapeEntry>,
    /// How many were there before those.
    dropped: u64,
    /// The place at which it begins.
    begun: u64,
    /// How many of those that are kept are trades.
    trades: usize,
    /// The last trade.
    last: Option<MarketTrade>,
    /// The number of the trade before what comes next, if none can be missing between.
    previous: Option<u64>,
    day: DayFigures,
    candles: Candles,
}

/// What a reader asked for is not kept any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotKept;

impl TradeTape {
    /// The tape of another instrument, behind this one: who reads this one reads that one's from its beginning, after a gap.
    #[must_use]
    pub fn of_another(&self) -> Self {
        let end = self.end();
        let mut other = Self { dropped: end, begun: end, ..Self::default() };
        other.push(TapeNews::Gap);
        other
    }

    /// The place at which it begins. Who stands before it was at another tape.
    #[must_use]
    pub fn begun(&self) -> u64 {
        self.begun
    }

    /// That business day is on. If another one was, its figures begin; `is_whole` says whether all of its trades are received.
    pub fn on_day(&mut self, day: BusinessDay, is_whole: bool) {
        if self.day.day != day {
            self.day = DayFigures { day, is_whole, traded: None };
        }
        self.day.is_whole &= is_whole;
    }

    /// The next of it; `keep` is how much is kept. What came before, as after a reconnect, changes nothing.
    pub fn take(&mut self, news: TapeNews, keep: usize) {
        match news {
            TapeNews::Trade(trade) if self.last.is_some_and(|last| trade.number <= last.number) => return,
            TapeNews::Trade(trade) => self.trade(trade, keep),
            TapeNews::Busted(number) => {
                // A reader that has the trade hears of it, also when that is not kept any more.
                let bust = self.kept.iter_mut().find(|entry| entry.number() == Some(number));
                let was_told = self.last.is_some_and(|last| number <= last.number);
                if !was_told || bust.is_some_and(|bust| std::mem::replace(&mut bust.is_busted, true)) {
                    return;
                }
                self.push(news);
            }
            TapeNews::Gap => {
                self.previous = None;
                self.push(news);
            }
        }
        // Beside so many trades, as much of other things.
        while self.trades > keep || self.kept.len() > 2 * keep {
            let oldest = self.kept.pop_front();
            self.trades -= usize::from(oldest.is_some_and(|oldest| oldest.number().is_some()));
            self.dropped += 1;
        }
    }

    fn trade(&mut self, trade: MarketTrade, keep: usize) {
        self.push(TapeNews::Trade(trade));
        (self.previous, self.last) = (Some(trade.number), Some(trade));
        self.candles.take(&trade, keep);
        match &mut self.day.traded {
            Some(traded) => traded.take(&trade),
            none => *none = Some(Candle::begin(trade.at, &trade)),
        }
    }

    fn push(&mut self, news: TapeNews) {
        let entry = TapeEntry { news, previous: self.previous, is_busted: false };
        self.trades += usize::from(entry.number().is_some());
        self.kept.push_back(entry);
    }

    /// The last trade.
    #[must_use]
    pub fn last(&self) -> Option<MarketTrade> {
        self.last
    }

    /// What was traded in the business day.
    #[must_use]
    pub fn day(&self) -> DayFigures {
        self.day
    }

    /// What the trades of each interval were.
    #[must_use]
    pub fn candles(&self, interval: Interval) -> &VecDeque<Candle> {
        self.candles.of(interval)
    }

    /// The newest trades that are kept, the newest first.
    pub fn newest(&self) -> impl Iterator<Item = &TapeEntry> {
        self.kept.iter().rev().filter(|entry| entry.number().is_some())
    }

    /// The place behind all that is there.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.dropped + self.kept.len() as u64
    }

    /// The place behind the trade of that number.
    ///
    /// # Errors
    /// If that trade is not kept.
    pub fn behind(&self, number: u64) -> Result<u64, NotKept> {
        let at = self.kept.iter().position(|entry| entry.number() == Some(number)).ok_or(NotKept)?;
        Ok(self.dropped + at as u64 + 1)
    }

    /// What lies from a place on.
    ///
    /// # Errors
    /// If that is not kept any more.
    pub fn from(&self, place: u64) -> Result<impl Iterator<Item = &TapeEntry>, NotKept> {
        let skipped = place.checked_sub(self.dropped).ok_or(NotKept)?;
        Ok(self.kept.iter().skip(usize::try_from(skipped).unwrap_or(usize::MAX)))
    }
}

impl TapeEntry {
    /// The trade's number, if it is a trade.
    #[must_use]
    pub fn number(&self) -> Option<u64> {
        match self.news {
            TapeNews::Trade(trade) => Some(trade.number),
            TapeNews::Busted(_) | TapeNews::Gap => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trade(number: u64) -> TapeNews {
        let (price, quantity) = (Price(number.cast_signed() * 100), Quantity(10));
        TapeNews::Trade(MarketTrade { number, at: Timestamp(number), price, quantity, taker: None })
    }

    fn tape(news: impl IntoIterator<Item = TapeNews>) -> TradeTape {
        let mut tape = TradeTape::default();
        tape.on_day(BusinessDay(9), true);
        news.into_iter().for_each(|news| tape.take(news, 4));
        tape
    }

    #[test]
    fn each_trade_names_the_one_before_and_none_across_a_gap() {
        let tape = tape([trade(3), trade(5), TapeNews::Gap, trade(9)]);
        let told: Vec<_> = tape.newest().map(|entry| (entry.number(), entry.previous)).collect();
        assert_eq!(told, [(Some(9), None), (Some(5), Some(3)), (Some(3), None)]);
        assert!(tape.day().is_whole, "it may lie before the day: whether that is whole is told with it");
    }

    #[test]
    fn what_comes_again_after_a_reconnect_changes_nothing() {
        let mut tape = tape([trade(3), trade(5)]);
        let before = (tape.end(), tape.day());
        [trade(3), trade(5)].into_iter().for_each(|news| tape.take(news, 4));
        assert_eq!((tape.end(), tape.day()), before);
    }

    #[test]
    fn who_stands_where_nothing_is_kept_is_told_so() {
        let mut tape = tape((1..=4).map(trade));
        let place = tape.behind(1).unwrap();
        tape.take(trade(5), 4);
        assert_eq!(tape.from(place).unwrap().count(), 4);
        tape.take(trade(6), 4);
        assert_eq!((tape.from(place).err(), tape.behind(1)), (Some(NotKept), Err(NotKept)));
        assert_eq!(tape.from(tape.end()).unwrap().count(), 0);
    }

    #[test]
    fn what_is_declared_void_costs_no_trade_its_place() {
        let void = [TapeNews::Busted(1), TapeNews::Busted(2)];
        let busy = tape((1..=4).map(trade).chain(void));
        assert_eq!((busy.newest().count(), busy.end()), (4, 6));
        assert_eq!(tape((0..20).map(|_| TapeNews::Gap)).kept.len(), 8, "and there is an end to it");
    }

    #[test]
    fn tape_of_other_instrument_restarts_after_gap() {
        let before = tape((1..=4).map(trade));
        let mut other = before.of_another();
        other.on_day(BusinessDay(9), true);
        other.take(trade(2), 4);
        assert_eq!((other.newest().count(), other.day().is_whole), (1, true));
        let told: Vec<_> =
            other.from(before.end()).unwrap().map(|entry| (entry.news, entry.previous)).collect();
        assert_eq!(told, [(TapeNews::Gap, None), (trade(2), None)]);
        assert_eq!((other.begun(), other.behind(4)), (before.end(), Err(NotKept)));
    }

    #[test]
    fn a_trade_is_void_once_and_stays_where_it_is() {
        let tape = tape([trade(3), TapeNews::Busted(3), TapeNews::Busted(3), TapeNews::Busted(8)]);
        assert_eq!(tape.newest().map(|entry| entry.is_busted).collect::<Vec<_>>(), [true]);
        assert_eq!(tape.end(), 2);
    }

    #[test]
    fn a_trade_that_is_not_kept_any_more_is_told_to_be_void() {
        let mut tape = tape((1..=6).map(trade));
        tape.take(TapeNews::Busted(1), 4);
        assert_eq!(tape.from(6).unwrap().map(|entry| entry.news).collect::<Vec<_>>(), [TapeNews::Busted(1)]);
    }

    #[test]
    fn day_starts_empty_and_whole_until_a_miss() {
        let mut tape = tape([trade(3)]);
        assert_eq!(tape.day().traded.unwrap().volume, Quantity(10));
        tape.on_day(BusinessDay(10), true);
        assert_eq!(tape.day(), DayFigures { day: BusinessDay(10), is_whole: true, traded: None });
        tape.on_day(BusinessDay(10), false);
        assert!(!tape.day().is_whole);
    }
}
