//! The prices of one side that have orders, best last.
//!
//! A tree reaches every price equally well, but trading does not: nearly all of it happens a few
//! ticks from the best price. A sorted vector with the best price at its end makes that the cheap
//! place: the best is the last element, a new best is a push, and a price near it is found by looking
//! back a few elements of one or two cache lines. Prices far away cost a binary search, and the first
//! order at a new far price a move of the elements above it, 16 bytes each.

use super::node::PriceLevel;
use super::slab::Slot;
use pares_types::{Price, Side};

/// How many prices from the best are tried one by one before a binary search: two cache lines.
const NEAR: usize = 8;

#[derive(Clone, Copy, Debug)]
struct Rung {
    price: Price,
    level: Slot<PriceLevel>,
}

/// The levels of one side in price order.
#[derive(Clone, Debug)]
pub(super) struct Ladder {
    side: Side,
    /// Worst price first.
    rungs: Vec<Rung>,
}

impl Ladder {
    /// No levels, with room for `capacity` of them.
    pub(super) fn with_capacity(side: Side, capacity: usize) -> Self {
        Self { side, rungs: Vec::with_capacity(capacity) }
    }

    /// The best price and its level.
    pub(super) fn best(&self) -> Option<(Price, Slot<PriceLevel>)> {
        self.rungs.last().map(|rung| (rung.price, rung.level))
    }

    /// The level at a price.
    pub(super) fn get(&self, price: Price) -> Option<Slot<PriceLevel>> {
        self.find(price).ok().map(|place| self.rungs[place].level)
    }

    /// The level at a price; if there is none, the one that `create` makes.
    pub(super) fn get_or_insert_with(
        &mut self,
        price: Price,
        create: impl FnOnce() -> Slot<PriceLevel>,
    ) -> Slot<PriceLevel> {
        match self.find(price) {
            Ok(place) => self.rungs[place].level,
            Err(place) => {
                let level = create();
                self.rungs.insert(place, Rung { price, level });
                level
            }
        }
    }

    /// Removes the level at a price.
    ///
    /// # Panics
    /// If there is none.
    pub(super) fn remove(&mut self, price: Price) {
        let place = self.find(price).expect("a level that empties is on the ladder");
        self.rungs.remove(place);
    }

    /// The levels, best first.
    pub(super) fn best_first(&self) -> impl Iterator<Item = Slot<PriceLevel>> {
        self.rungs.iter().rev().map(|rung| rung.level)
    }

    /// The place of a price, or the place where it belongs.
    fn find(&self, price: Price) -> Result<usize, usize> {
        let near = self.rungs.len().saturating_sub(NEAR);
        for place in (near..self.rungs.len()).rev() {
            let here = self.rungs[place].price;
            if here == price {
                return Ok(place);
            }
            if self.is_worse(here, price) {
                return Err(place + 1);
            }
        }
        let far = &self.rungs[..near];
        let place = far.partition_point(|rung| self.is_worse(rung.price, price));
        if far.get(place).is_some_and(|rung| rung.price == price) { Ok(place) } else { Err(place) }
    }

    fn is_worse(&self, a: Price, b: Price) -> bool {
        match self.side {
            Side::Buy => a < b,
            Side::Sell => a > b,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The ladder of these prices, each level numbered by its price.
    fn ladder(side: Side, prices: &[i64]) -> Ladder {
        let mut ladder = Ladder::with_capacity(side, 0);
        for &price in prices {
            ladder.get_or_insert_with(Price(price), || Slot::new(price as u32));
        }
        ladder
    }

    fn numbers(ladder: &Ladder) -> Vec<u32> {
        ladder.best_first().map(Slot::number).collect()
    }

    #[test]
    fn bids_are_best_at_the_highest_price() {
        assert_eq!(numbers(&ladder(Side::Buy, &[5, 9, 1, 5, 7])), [9, 7, 5, 1]);
    }

    #[test]
    fn offers_are_best_at_the_lowest_price() {
        assert_eq!(numbers(&ladder(Side::Sell, &[5, 9, 1, 5, 7])), [1, 5, 7, 9]);
    }

    #[test]
    fn far_prices_are_found_added_and_removed() {
        let mut ladder = ladder(Side::Sell, &(0..100).step_by(2).collect::<Vec<i64>>());
        assert_eq!(ladder.get(Price(90)), Some(Slot::new(90)));
        assert_eq!(ladder.get(Price(91)), None);
        ladder.get_or_insert_with(Price(91), || Slot::new(91));
        ladder.remove(Price(90));
        assert_eq!(ladder.get(Price(90)), None);
        assert_eq!(numbers(&ladder)[44..47], [88, 91, 92]);
    }
}
