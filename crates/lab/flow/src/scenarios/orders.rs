//! Where the orders are placed: along a random walk, some ticks behind it, then shuffled.

use pares_types::Side;

use super::SCENARIO_START_TICKS;
use pares_random::Random;

/// The largest order, in shares.
const QUANTITY_MAX: u64 = 1_000;
/// Of 100 orders so many are placed by the power law, the others on the hump.
const TAIL_PERCENT: u64 = 11;
/// The middle of the hump, in ticks behind the walk.
const HUMP_TICKS: i64 = 8;
/// The deepest octave of the power law: ticks 255 to 510 behind the walk.
const OCTAVE_MAX: u64 = 8;
/// Fraction bits of the walk.
const FRACTION_BITS: u32 = 24;

/// An order, before anything has happened to it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Placed {
    /// From 1; has nothing to do with when it arrives.
    pub(super) id: u32,
    pub(super) side: Side,
    /// At least 1.
    pub(super) price_ticks: i64,
    pub(super) quantity: u32,
}

/// The orders as they arrive: as many bids as offers.
pub(super) fn placed(swing_percent: u32, orders: u32, random: &mut Random) -> Vec<Placed> {
    let mut walk = Walk::new(swing_percent, orders);
    let mut placed: Vec<Placed> = (1..=orders)
        .map(|id| {
            let middle_ticks = walk.step(random);
            let depth_ticks = depth(random);
            let side = if id <= orders / 2 { Side::Buy } else { Side::Sell };
            let price_ticks = match side {
                Side::Buy => middle_ticks - depth_ticks - 1,
                Side::Sell => middle_ticks + depth_ticks + 1,
            };
            let quantity = 1 + random.below(QUANTITY_MAX) as u32;
            Placed { id, side, price_ticks: price_ticks.max(1), quantity }
        })
        .collect();
    shuffle(&mut placed, random);
    placed
}

/// A walk whose steps are a fraction of the price, so that it never gets to zero.
struct Walk {
    /// In ticks, with [`FRACTION_BITS`].
    middle: i64,
    /// The longest step at the starting price, with as many.
    step_max: i64,
}

impl Walk {
    fn new(swing_percent: u32, orders: u32) -> Self {
        // Steps are uniform, so their standard deviation is the longest one's over the root of 3 (1.732).
        let swing = (SCENARIO_START_TICKS << FRACTION_BITS) * i64::from(swing_percent) / 100;
        let step_max = swing * 1_732 / 1_000 / i64::from(orders.isqrt());
        Self { middle: SCENARIO_START_TICKS << FRACTION_BITS, step_max }
    }

    fn step(&mut self, random: &mut Random) -> i64 {
        let drawn = random.below(2 * self.step_max.cast_unsigned() + 1).cast_signed() - self.step_max;
        self.middle += drawn * (self.middle >> FRACTION_BITS) / SCENARIO_START_TICKS;
        self.middle >> FRACTION_BITS
    }
}

/// Ticks behind the walk: mostly about [`HUMP_TICKS`] with a deviation of 1, the others with a
/// density that falls with the square of the distance.
fn depth(random: &mut Random) -> i64 {
    if random.percent(TAIL_PERCENT) {
        let first = (1_u64 << random.geometric().min(OCTAVE_MAX)) - 1;
        return (first + random.below(first + 1)).cast_signed();
    }
    HUMP_TICKS - 2 + i64::from((random.below(16) as u8).count_ones())
}

/// Fisher and Yates: every order of arrival is as likely as any other.
fn shuffle(placed: &mut [Placed], random: &mut Random) {
    for last in (1..placed.len()).rev() {
        placed.swap(last, random.below(last as u64 + 1) as usize);
    }
}
