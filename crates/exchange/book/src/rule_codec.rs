//! The rules of an instrument as words: in checkpoints, and in publications that are stored.
//!
//! ```text
//! instrument  id | symbol, 16 bytes | tick rows n | (from, tick)* | lot | quantity_max | value_max |
//!             price_min | price_max | orders_max | step_max | static_band, its least | dynamic_band, its least | call_ns |
//!             extension_ns | extensions_max | extends_for_market | random_end_ns | auction_min |
//!             tie_break | pressure_limit | display_decrease_keeps | iceberg_refill_fresh | market_remainder_rests |
//!             schedule rows n | (at_ns, phase)*
//! ```

use pares_types::{Words, read_all, words, write_all};

use crate::{Instrument, TickRow, TickTable, Timetable, TimetableRow};

words! { Instrument {
    id symbol ticks lot quantity_max value_max price_min price_max orders_max step_max static_band dynamic_band
    call_ns extension_ns extensions_max extends_for_market random_end_ns auction_min tie_break pressure_limit
    display_decrease_keeps iceberg_refill_fresh market_remainder_rests timetable
} }
words! { TickRow { from tick } }
words! { TimetableRow { at_ns phase } }

impl Instrument {
    /// Words of an instrument with one tick and no timetable: none has fewer.
    pub const WORDS_MIN: usize = 29;

    /// Hands the rules out, word by word.
    pub fn write(&self, put: &mut impl FnMut(u64)) {
        Words::write(self, put);
    }

    /// The rules that [`Instrument::write`] handed out; `None` if `next` ends before, or no instrument is like that.
    #[must_use]
    pub fn read(next: &mut impl FnMut() -> Option<u64>) -> Option<Self> {
        Self::new(Words::read(next)?).ok()
    }
}

impl Words for TickTable {
    fn write(&self, put: &mut impl FnMut(u64)) {
        write_all(self.rows().iter(), put);
    }

    fn read(next: &mut impl FnMut() -> Option<u64>) -> Option<Self> {
        Self::from_rows(&read_all(Self::ROWS_MAX, next)?)
    }
}

impl Words for Timetable {
    fn write(&self, put: &mut impl FnMut(u64)) {
        write_all(self.rows().iter(), put);
    }

    fn read(next: &mut impl FnMut() -> Option<u64>) -> Option<Self> {
        let rows: Vec<TimetableRow> = read_all(Self::ROWS_MAX, next)?;
        Self::from_rows(&rows).filter(|timetable| timetable.rows() == rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Symbol;
    use pares_types::{Band, InstrumentId, Phase, Price, TieBreak};

    fn rich() -> Instrument {
        let rows = [TickRow { from: Price(0), tick: Price(1) }, TickRow { from: Price(10), tick: Price(5) }];
        let timetable = [TimetableRow { at_ns: 7, phase: Phase::OpeningCall }];
        Instrument {
            ticks: TickTable::from_rows(&rows).unwrap(),
            static_band: Band { width: 500, least: Price(3) },
            tie_break: TieBreak::NearestLimit,
            timetable: Timetable::from_rows(&timetable).unwrap(),
            ..Instrument::listed(InstrumentId(9), Symbol::new("SIXTEENLETTERSXX").unwrap())
        }
    }

    fn words(instrument: &Instrument) -> Vec<u64> {
        let mut words = Vec::new();
        instrument.write(&mut |word| words.push(word));
        words
    }

    fn read(words: &[u64]) -> Option<Instrument> {
        let mut words = words.iter().copied();
        Instrument::read(&mut || words.next())
    }

    #[test]
    fn what_is_written_is_read() {
        let plain = Instrument::listed(InstrumentId(1), Symbol::new("A").unwrap());
        assert_eq!(words(&plain).len(), Instrument::WORDS_MIN);
        for instrument in [plain, rich()] {
            assert_eq!(read(&words(&instrument)), Some(instrument));
        }
    }

    #[test]
    fn short_or_impossible_instrument_words_are_refused() {
        let words = words(&rich());
        for length in 0..words.len() {
            assert_eq!(read(&words[..length]), None, "{length} words");
        }
        for at in 0..words.len() {
            let mut wrong = words.clone();
            wrong[at] = u64::MAX;
            // A few fields may be anything.
            if let Some(read) = read(&wrong) {
                assert_ne!(read, rich(), "word {at}");
            }
        }
    }
}
