//! The rules of an instrument as words: in checkpoints, and in publications that are stored.
//!
//! ```text
//! instrument  id | symbol, 16 bytes | tick rows n | (from, tick)* | lot | quantity_max | value_max |
//!             price_min | price_max | orders_max | step_max | static_band, its least | dynamic_band, its least | call_ns |
//!             extension_ns | extensions_max | extends_for_market | random_end_ns | auction_min |
//!             tie_break | pressure_limit | display_decrease_keeps | iceberg_refill_fresh | market_remainder_rests |
//!             schedule rows n | (at_ns, phase)*
//! ```

use pares_types::{Band, InstrumentId, Phase, Price, Quantity, TieBreak};

use crate::{Instrument, Symbol, TickRow, TickTable, Timetable, TimetableRow};

impl Instrument {
    /// Words of an instrument with one tick and no timetable: none has fewer.
    pub const WORDS_MIN: usize = 29;

    /// Hands the rules out, word by word.
    pub fn write(&self, put: &mut impl FnMut(u64)) {
        let Instrument {
            id,
            symbol,
            ticks,
            lot,
            quantity_max,
            value_max,
            price_min,
            price_max,
            orders_max,
            step_max,
            static_band,
            dynamic_band,
            call_ns,
            extension_ns,
            extensions_max,
            extends_for_market,
            random_end_ns,
            auction_min,
            tie_break,
            pressure_limit,
            display_decrease_keeps,
            iceberg_refill_fresh,
            market_remainder_rests,
            timetable,
        } = self;
        put(id.0.into());
        symbol_words(*symbol).into_iter().for_each(&mut *put);
        write_ticks(ticks, put);
        [lot.0, quantity_max.0, *value_max].into_iter().for_each(&mut *put);
        [price_min, price_max].into_iter().for_each(|price| put(price.0.cast_unsigned()));
        [orders_max, step_max].into_iter().for_each(|limit| put(u64::from(*limit)));
        for Band { width, least } in [static_band, dynamic_band] {
            put(u64::from(*width));
            put(least.0.cast_unsigned());
        }
        let extension = [*extension_ns, u64::from(*extensions_max), u64::from(*extends_for_market)];
        [*call_ns].into_iter().chain(extension).for_each(&mut *put);
        [*random_end_ns, auction_min.0, *tie_break as u64].into_iter().for_each(&mut *put);
        put(u64::from(*pressure_limit));
        let choices = [display_decrease_keeps, iceberg_refill_fresh, market_remainder_rests];
        choices.into_iter().for_each(|choice| put(u64::from(*choice)));
        write_timetable(timetable, put);
    }

    /// The rules that [`Instrument::write`] handed out; `None` if `next` ends before, or no instrument is like that.
    #[must_use]
    pub fn read(next: &mut impl FnMut() -> Option<u64>) -> Option<Self> {
        let id = InstrumentId(narrow(next()?)?);
        let instrument = Self {
            symbol: symbol(next()?, next()?)?,
            ticks: read_ticks(next)?,
            lot: Quantity(next()?),
            quantity_max: Quantity(next()?),
            value_max: next()?,
            price_min: price(next()?),
            price_max: price(next()?),
            orders_max: narrow(next()?)?,
            step_max: narrow(next()?)?,
            static_band: Band { width: narrow(next()?)?, least: price(next()?) },
            dynamic_band: Band { width: narrow(next()?)?, least: price(next()?) },
            call_ns: next()?,
            extension_ns: next()?,
            extensions_max: next()?.try_into().ok()?,
            extends_for_market: flag(next()?)?,
            random_end_ns: next()?,
            auction_min: Quantity(next()?),
            tie_break: match next()? {
                0 => TieBreak::Latest,
                1 => TieBreak::NearestLimit,
                _ => return None,
            },
            pressure_limit: narrow(next()?)?,
            display_decrease_keeps: flag(next()?)?,
            iceberg_refill_fresh: flag(next()?)?,
            market_remainder_rests: flag(next()?)?,
            timetable: read_timetable(next)?,
            id,
        };
        Self::new(instrument).ok()
    }
}

fn write_ticks(ticks: &TickTable, put: &mut impl FnMut(u64)) {
    put(ticks.rows().len() as u64);
    for row in ticks.rows() {
        put(row.from.0.cast_unsigned());
        put(row.tick.0.cast_unsigned());
    }
}

fn read_ticks(next: &mut impl FnMut() -> Option<u64>) -> Option<TickTable> {
    let rows = count(next()?, TickTable::ROWS_MAX)?;
    let row = |_| Some(TickRow { from: price(next()?), tick: price(next()?) });
    TickTable::from_rows(&(0..rows).map(row).collect::<Option<Vec<TickRow>>>()?)
}

fn write_timetable(timetable: &Timetable, put: &mut impl FnMut(u64)) {
    put(timetable.rows().len() as u64);
    for row in timetable.rows() {
        put(row.at_ns);
        put(row.phase as u64);
    }
}

fn read_timetable(next: &mut impl FnMut() -> Option<u64>) -> Option<Timetable> {
    let rows = count(next()?, Timetable::ROWS_MAX)?;
    let row = |_| Some(TimetableRow { at_ns: next()?, phase: phase(next()?)? });
    let rows: Vec<TimetableRow> = (0..rows).map(row).collect::<Option<_>>()?;
    Timetable::from_rows(&rows).filter(|timetable| timetable.rows() == rows)
}

fn symbol_words(symbol: Symbol) -> [u64; 2] {
    let bytes = symbol.to_bytes();
    let (low, high) = bytes.split_at(8);
    [low, high].map(|half| u64::from_le_bytes(half.try_into().expect("half of sixteen bytes")))
}

fn symbol(low: u64, high: u64) -> Option<Symbol> {
    let bytes = u128::from(low) | u128::from(high) << 64;
    Symbol::from_bytes(bytes.to_le_bytes()).ok()
}

fn price(word: u64) -> Price {
    Price(word.cast_signed())
}

fn phase(code: u64) -> Option<Phase> {
    u8::try_from(code).ok().and_then(Phase::of)
}

fn narrow(word: u64) -> Option<u32> {
    word.try_into().ok()
}

fn flag(word: u64) -> Option<bool> {
    (word <= 1).then_some(word == 1)
}

fn count(word: u64, max: usize) -> Option<usize> {
    usize::try_from(word).ok().filter(|&count| count <= max)
}

#[cfg(test)]
mod tests {
    use super::*;

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
