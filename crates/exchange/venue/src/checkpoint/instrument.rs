//! The rules of one instrument in a checkpoint.
//!
//! ```text
//! instrument  id | symbol, 16 bytes | tick rows n | (from, tick)* | lot | quantity_max | value_max |
//!             price_min | price_max | orders_max | step_max | static_band, its least | dynamic_band, its least | call_ns |
//!             extension_ns | extensions_max | extends_for_market | random_end_ns | auction_min |
//!             tie_break | pressure_limit | display_decrease_keeps | iceberg_refill_fresh | market_remainder_rests |
//!             schedule rows n | (at_ns, phase)*
//! ```

use pares_book::{Instrument, Symbol, TickRow, TickTable, Timetable, TimetableRow};
use pares_types::{Band, InstrumentId, Quantity, TieBreak};

use super::book::{phase, put_price};
use super::{CheckpointError, Input, put};

pub(super) fn put_instrument(out: &mut Vec<u8>, instrument: &Instrument) {
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
    } = instrument;
    put(out, u64::from(id.0));
    out.extend_from_slice(&symbol.to_bytes());
    put(out, ticks.rows().len() as u64);
    for row in ticks.rows() {
        put_price(out, row.from);
        put_price(out, row.tick);
    }
    put(out, lot.0);
    put(out, quantity_max.0);
    put(out, *value_max);
    put_price(out, *price_min);
    put_price(out, *price_max);
    for limit in [orders_max, step_max] {
        put(out, u64::from(*limit));
    }
    for Band { width, least } in [static_band, dynamic_band] {
        put(out, u64::from(*width));
        put_price(out, *least);
    }
    put(out, *call_ns);
    put(out, *extension_ns);
    put(out, u64::from(*extensions_max));
    put(out, u64::from(*extends_for_market));
    put(out, *random_end_ns);
    put(out, auction_min.0);
    put(out, *tie_break as u64);
    put(out, u64::from(*pressure_limit));
    for choice in [display_decrease_keeps, iceberg_refill_fresh, market_remainder_rests] {
        put(out, u64::from(*choice));
    }
    put(out, timetable.rows().len() as u64);
    for row in timetable.rows() {
        put(out, row.at_ns);
        put(out, row.phase as u64);
    }
}

impl Input<'_> {
    pub(super) fn instrument(&mut self) -> Result<Instrument, CheckpointError> {
        let invalid = CheckpointError::InvalidField;
        let id = InstrumentId(self.u32("instrument")?);
        let (low, high) = (self.u64()?.to_le_bytes(), self.u64()?.to_le_bytes());
        let mut symbol = [0; Symbol::LENGTH_MAX];
        symbol[..8].copy_from_slice(&low);
        symbol[8..].copy_from_slice(&high);
        let ticks = self.list(16, |input| Ok(TickRow { from: input.price()?, tick: input.price()? }))?;
        let mut instrument = Instrument {
            ticks: TickTable::from_rows(&ticks).ok_or(invalid("tick rows"))?,
            lot: Quantity(self.u64()?),
            quantity_max: Quantity(self.u64()?),
            value_max: self.u64()?,
            price_min: self.price()?,
            price_max: self.price()?,
            orders_max: self.u32("orders_max")?,
            step_max: self.u32("step_max")?,
            static_band: Band { width: self.u32("static_band")?, least: self.price()? },
            dynamic_band: Band { width: self.u32("dynamic_band")?, least: self.price()? },
            call_ns: self.u64()?,
            extension_ns: self.u64()?,
            extensions_max: self.u8("extensions_max")?,
            extends_for_market: self.u8("extends_for_market")? == 1,
            random_end_ns: self.u64()?,
            auction_min: Quantity(self.u64()?),
            tie_break: match self.u64()? {
                0 => TieBreak::Latest,
                1 => TieBreak::NearestLimit,
                _ => return Err(invalid("tie_break")),
            },
            pressure_limit: self.u32("pressure_limit")?,
            display_decrease_keeps: self.u8("display_decrease_keeps")? == 1,
            iceberg_refill_fresh: self.u8("iceberg_refill_fresh")? == 1,
            market_remainder_rests: self.u8("market_remainder_rests")? == 1,
            ..Instrument::listed(id, Symbol::from_bytes(symbol).map_err(|_| invalid("symbol"))?)
        };
        let row = |input: &mut Self| Ok(TimetableRow { at_ns: input.u64()?, phase: phase(input.u64()?)? });
        let rows = self.list(16, row)?;
        instrument.timetable = Timetable::from_rows(&rows).ok_or(invalid("schedule"))?;
        Instrument::new(instrument).map_err(|error| CheckpointError::Instrument(id, error))
    }
}
