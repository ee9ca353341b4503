//! The prices of one side that have orders, as a tree of bitmaps.
//!
//! A sorted vector is the fastest ladder as long as the book is dense, and collapses when it is thin: a
//! crash through thousands of prices moves kilobytes at each new one. A flat array by tick needs
//! gigabytes where one instrument trades from a cent to a hundred thousand dollars. So prices are numbered by their distance
//! from the best possible one, 64 neighbours share a *leaf*, 64 leaves a *branch*, and branches hang in a flat
//! array, the *trunk*, of one word for 4,096 prices. At every joint a bitmap says which children exist, so that a
//! level is found, added and removed, and the next one found, in a few bit operations without a loop; leaves and
//! branches exist only where there are orders.
//!
//! ```text
//!   number of a price:   | trunk, up to 18 bits | branch, 6 | leaf, 6 |
//!
//!   trunk   [ . . 1 . . . . . . 1 . . ]   which branches exist: a bitmap, a bitmap of its words, and of theirs
//!                 |             |
//!   branch     [1.......]   [....1...]
//!                |               |
//!   leaf      [1.11....]     [.1......]   each set bit: a level
//! ```
//! Numbers count away from the best price on both sides (bids downwards, offers upwards), so that the
//! best level is always the lowest number. Trading happens near the touch, so a few leaves
//! are remembered and found without going down the tree.

use super::node::PriceLevel;
use super::slab::{Slab, Slot};
use crate::Instrument;
use pares_types::{Price, Side};

/// Leaves remembered; a power of two.
const REMEMBERED: usize = 16;

/// 64 neighbours: prices of a leaf, or leaves of a branch.
#[derive(Clone, Debug)]
struct Joint<T> {
    /// Which of them exist; zero only in a free joint.
    occupied: u64,
    /// The number of its first price, divided by the prices it spans.
    page: u64,
    /// What does not exist means nothing.
    children: [Slot<T>; 64],
}

type Leaf = Joint<PriceLevel>;
type Branch = Joint<Leaf>;

impl<T> Joint<T> {
    const EMPTY: Self = Self { occupied: 0, page: 0, children: [Slot::NONE; 64] };

    #[inline]
    fn get(&self, number: u64) -> Option<Slot<T>> {
        let at = (number % 64) as usize;
        (self.occupied >> at & 1 == 1).then(|| self.children[at])
    }

    #[inline]
    fn set(&mut self, number: u64, child: Slot<T>) {
        let at = (number % 64) as usize;
        self.occupied |= 1 << at;
        self.children[at] = child;
    }

    /// Removes a child; says whether none is left.
    #[inline]
    fn clear(&mut self, number: u64) -> bool {
        self.occupied &= !(1 << (number % 64));
        self.occupied == 0
    }

    /// The first child behind a number, whether that has one or not.
    #[inline]
    fn after(&self, number: u64) -> Option<(u64, Slot<T>)> {
        self.first_of(self.occupied & above(number))
    }

    #[inline]
    fn first(&self) -> Option<(u64, Slot<T>)> {
        self.first_of(self.occupied)
    }

    #[inline]
    fn first_of(&self, among: u64) -> Option<(u64, Slot<T>)> {
        if among == 0 {
            return None;
        }
        let at = among.trailing_zeros() as usize;
        Some((self.page * 64 + at as u64, self.children[at % 64]))
    }
}

/// Which branches exist, and where they are. Empty until the first order comes.
#[derive(Clone, Debug)]
struct Trunk {
    branches: Vec<Slot<Branch>>,
    /// A bit for each branch, a bit for each word of those, a bit for each word of these.
    bitmaps: [Vec<u64>; 3],
}

impl Trunk {
    /// Room for numbers up to `last`.
    #[cold]
    fn grow(&mut self, last: u64) {
        let branches = (last / 4_096 + 1) as usize;
        self.branches = vec![Slot::NONE; branches];
        let mut bits = branches;
        for bitmap in &mut self.bitmaps {
            bits = bits.div_ceil(64);
            *bitmap = vec![0; bits];
        }
    }

    #[inline]
    fn get(&self, number: u64) -> Option<Slot<Branch>> {
        self.branches.get(number as usize)?.some()
    }

    #[cold]
    fn set(&mut self, number: u64, branch: Slot<Branch>) {
        self.branches[number as usize] = branch;
        let mut at = number;
        for bitmap in &mut self.bitmaps {
            bitmap[at as usize / 64] |= 1 << (at % 64);
            at /= 64;
        }
    }

    #[cold]
    fn clear(&mut self, number: u64) {
        self.branches[number as usize] = Slot::NONE;
        let mut at = number;
        for bitmap in &mut self.bitmaps {
            bitmap[at as usize / 64] &= !(1 << (at % 64));
            if bitmap[at as usize / 64] != 0 {
                return;
            }
            at /= 64;
        }
    }

    /// The first branch behind a number.
    #[cold]
    fn after(&self, number: u64) -> Option<Slot<Branch>> {
        let mut at = number;
        for tier in 0..self.bitmaps.len() {
            let behind = self.bitmaps[tier][at as usize / 64] & above(at);
            if behind != 0 {
                at = at / 64 * 64 + u64::from(behind.trailing_zeros());
                for below in self.bitmaps[..tier].iter().rev() {
                    at = at * 64 + u64::from(below[at as usize].trailing_zeros());
                }
                return Some(self.branches[at as usize]);
            }
            at /= 64;
        }
        None
    }
}

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
    last: u64,
}

impl Numbering {
    pub(super) fn new(instrument: &Instrument, side: Side) -> Self {
        let grid = instrument.ticks.grid().0.unsigned_abs();
        let shift = grid.trailing_zeros();
        let odd = grid >> shift;
        // Newton's iteration doubles the number of right bits: 3, 6, 12, 24, 48, 96.
        let inverse = (0..5).fold(odd, |x: u64, _| x.wrapping_mul(2_u64.wrapping_sub(odd.wrapping_mul(x))));
        let range = instrument.price_max.0.abs_diff(instrument.price_min.0);
        let (origin, inverse) = match side {
            Side::Buy => (instrument.price_max.0, inverse.wrapping_neg()),
            Side::Sell => (instrument.price_min.0, inverse),
        };
        Self { origin, inverse, shift, last: range / grid }
    }

    /// The number of a price; above `last` for any price outside the range or off the grid.
    #[inline]
    pub(super) fn of(&self, price: Price) -> u64 {
        let away = price.0.wrapping_sub(self.origin);
        away.cast_unsigned().wrapping_mul(self.inverse).rotate_right(self.shift)
    }

    /// Whether a price is in the range and on the grid.
    #[inline]
    pub(super) fn is_legal(&self, price: Price) -> bool {
        self.of(price) <= self.last
    }
}

/// The levels of one side in price order.
#[derive(Clone, Debug)]
pub(super) struct Ladder {
    pub(super) numbering: Numbering,
    trunk: Trunk,
    branches: Slab<Branch>,
    leaves: Slab<Leaf>,
    /// Leaves by the lowest bits of their page. May name free or other leaves: a leaf knows its page.
    remembered: [Slot<Leaf>; REMEMBERED],
    /// The lowest number that has a level, [`u64::MAX`] for none ...
    best_number: u64,
    /// ... and its level and price.
    best_level: Slot<PriceLevel>,
    best_price: Price,
}

impl Ladder {
    /// No levels.
    pub(super) fn new(instrument: &Instrument, side: Side) -> Self {
        Self {
            numbering: Numbering::new(instrument, side),
            trunk: Trunk { branches: Vec::new(), bitmaps: [const { Vec::new() }; 3] },
            branches: Slab::with_capacity(0),
            leaves: Slab::with_capacity(0),
            remembered: [Slot::NONE; REMEMBERED],
            best_number: u64::MAX,
            best_level: Slot::NONE,
            best_price: Price(0),
        }
    }

    /// The best price and its level.
    #[inline]
    pub(super) fn best(&self) -> Option<(Price, Slot<PriceLevel>)> {
        (self.best_number != u64::MAX).then_some((self.best_price, self.best_level))
    }

    /// The level at a price.
    #[inline]
    pub(super) fn get(&self, price: Price) -> Option<Slot<PriceLevel>> {
        let number = self.numbering.of(price);
        self.leaves[self.leaf(number)?].get(number)
    }

    /// Adds the level at a price that has none.
    #[inline]
    pub(super) fn insert(&mut self, price: Price, level: Slot<PriceLevel>) {
        let number = self.numbering.of(price);
        assert!(number <= self.numbering.last, "prices are on the grid of the instrument");
        let slot = match self.leaf(number) {
            Some(slot) => slot,
            None => self.add_leaf(number),
        };
        self.leaves[slot].set(number, level);
        self.remembered[(number / 64) as usize % REMEMBERED] = slot;
        if number < self.best_number {
            (self.best_number, self.best_level, self.best_price) = (number, level, price);
        }
    }

    /// Removes the level at a price. `price_of` tells the price of the level that becomes the best.
    ///
    /// # Panics
    /// If there is none.
    #[inline]
    pub(super) fn remove(&mut self, price: Price, price_of: impl Fn(Slot<PriceLevel>) -> Price) {
        let number = self.numbering.of(price);
        let slot = self.leaf(number).expect("a level that empties is on the ladder");
        let leaf = &mut self.leaves[slot];
        assert!(leaf.get(number).is_some(), "a level that empties is on the ladder");
        if leaf.clear(number) {
            self.drop_leaf(number, slot);
        }
        if number == self.best_number {
            let next = self.after(number);
            (self.best_number, self.best_level) = next.unwrap_or((u64::MAX, Slot::NONE));
            self.best_price = next.map_or(Price(0), |(_, level)| price_of(level));
        }
    }

    /// The levels, best first.
    pub(super) fn best_first(&self) -> impl Iterator<Item = Slot<PriceLevel>> {
        let best = self.best().map(|(_, level)| (self.best_number, level));
        core::iter::successors(best, |(number, _)| self.after(*number)).map(|(_, level)| level)
    }

    #[inline]
    fn leaf(&self, number: u64) -> Option<Slot<Leaf>> {
        let page = number / 64;
        let slot = self.remembered[page as usize % REMEMBERED];
        match self.leaves.get(slot) {
            Some(leaf) if leaf.page == page && leaf.occupied != 0 => Some(slot),
            _ => self.branches[self.trunk.get(number / 4_096)?].get(page),
        }
    }

    /// Adds the leaf of a number, and its branch.
    fn add_leaf(&mut self, number: u64) -> Slot<Leaf> {
        let page = number / 64;
        let leaf = self.leaves.reuse(&Joint::EMPTY);
        self.leaves[leaf].page = page;
        let branch = match self.trunk.get(page / 64) {
            Some(branch) => branch,
            None => self.add_branch(page / 64),
        };
        self.branches[branch].set(page, leaf);
        leaf
    }

    #[cold]
    fn add_branch(&mut self, page: u64) -> Slot<Branch> {
        if self.trunk.branches.is_empty() {
            self.trunk.grow(self.numbering.last);
        }
        let branch = self.branches.reuse(&Joint::EMPTY);
        self.branches[branch].page = page;
        self.trunk.set(page, branch);
        branch
    }

    /// Drops the leaf of a number, which is empty, and its branch if it was the last one there.
    fn drop_leaf(&mut self, number: u64, leaf: Slot<Leaf>) {
        self.leaves.remove(leaf);
        let branch = self.trunk.get(number / 4_096).expect("a leaf hangs on a branch");
        if self.branches[branch].clear(number / 64) {
            self.branches.remove(branch);
            self.trunk.clear(number / 4_096);
        }
    }

    /// The first level behind a number, whether that has one or not.
    #[inline]
    fn after(&self, number: u64) -> Option<(u64, Slot<PriceLevel>)> {
        let page = number / 64;
        if let Some(branch) = self.trunk.get(page / 64) {
            let branch = &self.branches[branch];
            let here = branch.get(page).and_then(|leaf| self.leaves[leaf].after(number));
            if here.is_some() {
                return here;
            }
            if let Some((_, leaf)) = branch.after(page) {
                return self.leaves[leaf].first();
            }
        }
        let branch = self.trunk.after(page / 64)?;
        let (_, leaf) = self.branches[branch].first()?;
        self.leaves[leaf].first()
    }
}

/// All bits of a word above the one of a number.
#[inline]
fn above(number: u64) -> u64 {
    (u64::MAX << (number % 64)) << 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TickTable;
    use pares_types::{InstrumentId, Symbol};
    use std::collections::BTreeMap;

    /// Prices from 0.01 to 100,000.00.
    fn instrument() -> Instrument {
        Instrument::listed(InstrumentId(1), Symbol::new("X").unwrap())
    }

    fn ladder(side: Side, cents: &[i64]) -> Ladder {
        let mut ladder = Ladder::new(&instrument(), side);
        cents.iter().for_each(|&at| ladder.insert(Price(at * 100), Slot::new(at as u32)));
        ladder
    }

    fn numbers(ladder: &Ladder) -> Vec<u32> {
        ladder.best_first().map(Slot::number).collect()
    }

    #[test]
    fn bids_are_best_at_the_highest_price() {
        assert_eq!(numbers(&ladder(Side::Buy, &[5, 10_000_000, 1, 70_000])), [10_000_000, 70_000, 5, 1]);
    }

    #[test]
    fn offers_are_best_at_the_lowest_price() {
        assert_eq!(numbers(&ladder(Side::Sell, &[5, 10_000_000, 1, 70_000])), [1, 5, 70_000, 10_000_000]);
    }

    #[test]
    fn prices_off_the_grid_or_out_of_range_have_no_number() {
        for tick in [1, 3, 100, 250] {
            let wide = Instrument {
                ticks: TickTable::flat(Price(tick)),
                price_min: Price(-tick * 10),
                price_max: Price(tick * 90),
                ..instrument()
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

    /// A random walk of levels that come and go near and far, against an ordered map.
    #[test]
    fn agrees_with_an_ordered_map() {
        let (mut ladder, mut model) = (Ladder::new(&instrument(), Side::Sell), BTreeMap::new());
        let mut seed = 1_u64;
        for step in 0..50_000_u32 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let span = [70, 5_000, 10_000_000][step as usize % 3];
            let price = Price(((seed >> 33) as i64 % span + 1) * 100);
            if model.remove(&price).is_some() {
                let prices = |slot: Slot<PriceLevel>| Price(i64::from(slot.number()));
                ladder.remove(price, prices);
            } else {
                model.insert(price, ());
                ladder.insert(price, Slot::new(price.0 as u32));
            }
            assert_eq!(ladder.best().map(|(price, _)| price), model.keys().next().copied());
            if step % 512 == 0 {
                assert!(
                    ladder.best_first().map(|slot| i64::from(slot.number())).eq(model.keys().map(|p| p.0))
                );
                model.retain(|price, ()| {
                    let keep = price.0 % 300 != 0;
                    if !keep {
                        ladder.remove(*price, |slot| Price(i64::from(slot.number())));
                    }
                    keep
                });
            }
        }
    }
}
