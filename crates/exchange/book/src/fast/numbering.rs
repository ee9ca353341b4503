//! From a price to its number: how many ticks it is away from the best possible one.
//!
//! A division would do, and takes longer than all else that a ladder does. The grid is known beforehand, so a multiplication and a rotation
//! do, and whatever is off the grid or out of the range gets a number higher than all that are legal.

use crate::Instrument;
use pares_types::{Price, Side};

/// From prices to their numbers, for one side of one instrument.
#[derive(Clone, Copy, Debug)]
pub(super) struct Numbering {
    /// The best possible price: number 0.
    origin: i64,
    /// The grid is `odd << shift`; `inverse` undoes a multiplication by `odd` modulo 2^64
    /// (Granlund and Montgomery, Division by Invariant Integers Using Multiplication, section 9).
    /// Negative for bids, whose numbers rise as prices fall: no branch asks for the side.
    inverse: u64,
    shift: u32,
    /// The number of the worst possible price.
    last: u32,
    /// From a number to the next one's price.
    step: i64,
}

impl Numbering {
    pub(super) fn new(instrument: &Instrument, side: Side) -> Self {
        let grid = instrument.ticks.grid().0.unsigned_abs();
        let shift = grid.trailing_zeros();
        let odd = grid >> shift;
        // Newton's iteration doubles the number of right bits: 3, 6, 12, 24, 48, 96.
        let inverse = (0..5).fold(odd, |x: u64, _| x.wrapping_mul(2_u64.wrapping_sub(odd.wrapping_mul(x))));
        let range = instrument.price_max.0.abs_diff(instrument.price_min.0);
        let last = u32::try_from(range / grid).expect("an instrument has fewer than 2^30 prices");
        let step = instrument.ticks.grid().0;
        let (origin, inverse, step) = match side {
            Side::Buy => (instrument.price_max.0, inverse.wrapping_neg(), -step),
            Side::Sell => (instrument.price_min.0, inverse, step),
        };
        Self { origin, inverse, shift, step, last }
    }

    /// The number of a price; above `last` for any price outside the range or off the grid.
    #[inline]
    pub(super) fn of(&self, price: Price) -> u64 {
        let away = price.0.wrapping_sub(self.origin);
        away.cast_unsigned().wrapping_mul(self.inverse).rotate_right(self.shift)
    }

    /// The number of the worst possible price.
    #[inline]
    pub(super) fn last(&self) -> u64 {
        self.last.into()
    }

    #[inline]
    pub(super) fn price(&self, number: u64) -> Price {
        Price(self.origin + number.cast_signed() * self.step)
    }

    /// Whether a price is in the range and on the grid.
    #[inline]
    pub(super) fn is_legal(&self, price: Price) -> bool {
        self.of(price) <= self.last()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TickTable;
    use pares_types::{InstrumentId, Symbol};

    #[test]
    fn prices_off_the_grid_or_out_of_range_have_no_number() {
        for tick in [1, 3, 100, 250] {
            let wide = Instrument {
                ticks: TickTable::flat(Price(tick)),
                price_min: Price(-tick * 10),
                price_max: Price(tick * 90),
                ..Instrument::listed(InstrumentId(1), Symbol::new("X").unwrap())
            };
            for side in [Side::Buy, Side::Sell] {
                let numbering = Numbering::new(&wide, side);
                for price in -tick * 12..tick * 92 {
                    let legal = price % tick == 0 && (-tick * 10..=tick * 90).contains(&price);
                    assert_eq!(numbering.is_legal(Price(price)), legal, "{price} in steps of {tick}");
                }
                let away = if side == Side::Sell { 15 } else { 85 };
                assert_eq!(numbering.of(Price(tick * 5)), away);
            }
        }
    }
}
