//! The prices of one side that have orders, as a tree of bitmaps.
//!
//! A sorted vector is the fastest ladder as long as the book is dense, and collapses when it is thin: a
//! crash through thousands of prices moves kilobytes at each new one. A flat array by tick needs
//! gigabytes where one instrument trades from a cent to a hundred thousand dollars. So prices are numbered by their distance
//! from the best possible one, 64 neighbours share a *leaf*, 64 leaves a *branch*, and branches hang on the
//! *trunk*, which has a place for every 4,096 prices. At every joint a bitmap says which children exist, so that a
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
//! are remembered and found without going down the tree. In a thin book most orders make a level and take it away with them: a
//! remembered leaf stays when its last level goes, so that the tree is not built anew each time.

use super::node::PriceLevel;
use super::trunk::{Trunk, above};
use crate::Instrument;
use pares_table::{Slab, SlabIndex};
use pares_types::{Price, Side};

/// Leaves remembered: those of 8,192 prices around the touch; a power of two.
const REMEMBERED: usize = 128;
/// The page of a free leaf.
const NOWHERE: u64 = u64::MAX;

/// 64 neighbours: prices of a leaf, or leaves of a branch.
#[derive(Clone, Debug)]
pub(super) struct Joint<T> {
    /// Which of them have levels.
    occupied: u64,
    /// The number of its first price, divided by the prices it spans.
    page: u64,
    /// What does not exist means nothing.
    children: [SlabIndex<T>; 64],
}

/// 64 prices.
#[derive(Clone, Debug)]
pub(super) struct Leaf {
    prices: Joint<PriceLevel>,
    /// Where it hangs.
    branch: SlabIndex<Branch>,
}

/// 4,096 prices.
#[derive(Clone, Debug)]
pub(super) struct Branch {
    leaves: Joint<Leaf>,
    /// Which leaves exist, those without levels included; zero only in a free branch.
    existing: u64,
}

impl<T> Joint<T> {
    const fn at(page: u64) -> Self {
        Self { occupied: 0, page, children: [SlabIndex::NONE; 64] }
    }

    #[inline]
    fn get(&self, number: u64) -> Option<SlabIndex<T>> {
        (self.occupied & bit(number) != 0).then(|| self.children[(number % 64) as usize])
    }

    /// The first child behind a number, whether that has one or not.
    #[inline]
    fn after(&self, number: u64) -> Option<(u64, SlabIndex<T>)> {
        self.first_of(self.occupied & above(number))
    }

    #[inline]
    fn first(&self) -> Option<(u64, SlabIndex<T>)> {
        self.first_of(self.occupied)
    }

    #[inline]
    fn first_of(&self, among: u64) -> Option<(u64, SlabIndex<T>)> {
        if among == 0 {
            return None;
        }
        let at = among.trailing_zeros() as usize;
        Some((self.page * 64 + at as u64, self.children[at % 64]))
    }
}

impl Leaf {
    const FREE: Self = Self { prices: Joint::at(NOWHERE), branch: SlabIndex::NONE };
}

impl Branch {
    const FREE: Self = Self { leaves: Joint::at(NOWHERE), existing: 0 };

    /// A leaf, with levels or without.
    #[inline]
    fn get(&self, page: u64) -> Option<SlabIndex<Leaf>> {
        (self.existing & bit(page) != 0).then(|| self.leaves.children[(page % 64) as usize])
    }
}

/// Where a level is on its ladder; good as long as it is there.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    number: u64,
    leaf: SlabIndex<Leaf>,
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
    /// From a number to the next one's price.
    step: i64,
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
        let step = instrument.ticks.grid().0;
        let (origin, inverse, step) = match side {
            Side::Buy => (instrument.price_max.0, inverse.wrapping_neg(), -step),
            Side::Sell => (instrument.price_min.0, inverse, step),
        };
        Self { origin, inverse, shift, step, last: range / grid }
    }

    /// The number of a price; above `last` for any price outside the range or off the grid.
    #[inline]
    pub(super) fn of(&self, price: Price) -> u64 {
        let away = price.0.wrapping_sub(self.origin);
        away.cast_unsigned().wrapping_mul(self.inverse).rotate_right(self.shift)
    }

    /// The price of a number that has one.
    #[inline]
    fn price(&self, number: u64) -> Price {
        Price(self.origin + number.cast_signed() * self.step)
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
    /// What is needed only beyond the leaves remembered.
    trunk: Box<Trunk>,
    leaves: Slab<Leaf>,
    /// Leaves by the lowest bits of their page; empty as long as there never was a level.
    remembered: Vec<SlabIndex<Leaf>>,
    /// No level has a lower number; [`u64::MAX`] if there are none.
    best_number: u64,
    /// Its level; [`SlabIndex::NONE`] once that is gone, until somebody has to know which is the next one.
    best_level: SlabIndex<PriceLevel>,
    /// Its price.
    best_price: Price,
}

impl Ladder {
    /// No levels.
    pub(super) fn new(instrument: &Instrument, side: Side) -> Self {
        Self {
            numbering: Numbering::new(instrument, side),
            trunk: Box::new(Trunk::new()),
            leaves: Slab::with_capacity(0),
            remembered: Vec::new(),
            best_number: u64::MAX,
            best_level: SlabIndex::NONE,
            best_price: Price(0),
        }
    }

    /// The best price and its level.
    #[inline]
    pub(super) fn best(&self) -> Option<(Price, SlabIndex<PriceLevel>)> {
        let (number, level) = self.first()?;
        Some((self.numbering.price(number), level))
    }

    fn first(&self) -> Option<(u64, SlabIndex<PriceLevel>)> {
        match self.best_level.some() {
            Some(level) => Some((self.best_number, level)),
            None => self.next(),
        }
    }

    /// What is behind a best level that is gone.
    fn next(&self) -> Option<(u64, SlabIndex<PriceLevel>)> {
        if self.best_number == u64::MAX { None } else { self.after(self.best_number) }
    }

    /// The same as [`best`](Self::best), and looked for only once.
    #[inline]
    pub(super) fn settle(&mut self) -> Option<(Price, SlabIndex<PriceLevel>)> {
        if self.best_level == SlabIndex::NONE {
            self.look();
        }
        self.best_level.some().map(|level| (self.best_price, level))
    }

    #[inline(never)]
    fn look(&mut self) {
        let next = self.next();
        (self.best_number, self.best_level) = next.unwrap_or((u64::MAX, SlabIndex::NONE));
        self.best_price = next.map_or(Price(0), |(number, _)| self.numbering.price(number));
    }

    /// Whether an order of `side` with this limit would meet a level here. In a thin book the best level goes with most messages,
    /// and hardly ever does anybody ask for what is behind it: no better price than the last best one's is enough to know.
    #[inline(always)]
    pub(super) fn is_met(&mut self, side: Side, limit: Price) -> bool {
        self.best_number != u64::MAX
            && side.crosses(limit, self.best_price)
            && self.settle().is_some_and(|(best, _)| side.crosses(limit, best))
    }

    /// The level at a price.
    pub(super) fn get(&self, price: Price) -> Option<SlabIndex<PriceLevel>> {
        let number = self.numbering.of(price);
        self.leaves[self.leaf(number / 64)?].prices.get(number)
    }

    /// The place of a price. Its level is to be looked up ([`at`](Self::at)), or put there, at once.
    ///
    /// # Panics
    /// If the price is not the instrument's.
    #[inline]
    pub(super) fn place(&mut self, price: Price) -> Place {
        let number = self.numbering.of(price);
        assert!(number <= self.numbering.last, "prices are on the grid of the instrument");
        let page = number / 64;
        let leaf = self.known(page).unwrap_or_else(|| self.recall(page));
        Place { number, leaf }
    }

    /// The leaf of a page, if it is remembered.
    #[inline]
    fn known(&self, page: u64) -> Option<SlabIndex<Leaf>> {
        let slot = *self.remembered.get(page as usize % REMEMBERED)?;
        self.leaves.get(slot).is_some_and(|leaf| leaf.prices.page == page).then_some(slot)
    }

    /// The level at a place.
    #[inline]
    pub(super) fn at(&self, place: Place) -> Option<SlabIndex<PriceLevel>> {
        self.leaves[place.leaf].prices.get(place.number)
    }

    /// Puts the level of a price at its place, which has none.
    #[inline]
    pub(super) fn insert(&mut self, place: Place, price: Price, level: SlabIndex<PriceLevel>) {
        let Place { number, leaf } = place;
        let leaf = &mut self.leaves[leaf];
        if leaf.prices.occupied == 0 {
            self.trunk.branches[leaf.branch].leaves.occupied |= bit(number / 64);
        }
        leaf.prices.occupied |= bit(number);
        leaf.prices.children[(number % 64) as usize] = level;
        if number <= self.best_number {
            (self.best_number, self.best_level, self.best_price) = (number, level, price);
        }
    }

    /// Removes the level at a place.
    ///
    /// # Panics
    /// If there is none.
    #[inline]
    pub(super) fn remove(&mut self, place: Place) {
        let Place { number, leaf: slot } = place;
        let prices = &mut self.leaves[slot].prices;
        assert!(prices.get(number).is_some(), "a level that empties is on the ladder");
        prices.occupied &= !bit(number);
        if prices.occupied == 0 {
            self.empty_leaf(slot, number / 64);
        }
        if number == self.best_number {
            self.best_level = SlabIndex::NONE;
        }
    }

    /// The levels, best first.
    pub(super) fn best_first(&self) -> impl Iterator<Item = SlabIndex<PriceLevel>> {
        core::iter::successors(self.first(), |(number, _)| self.after(*number)).map(|(_, level)| level)
    }

    /// The leaf of a page, with levels or without.
    fn leaf(&self, page: u64) -> Option<SlabIndex<Leaf>> {
        self.trunk.branches[self.trunk.get(page / 64)?].get(page)
    }

    /// Finds or adds the leaf of a page and remembers it, in place of another.
    #[inline(never)]
    fn recall(&mut self, page: u64) -> SlabIndex<Leaf> {
        self.remembered.resize(REMEMBERED, SlabIndex::NONE);
        let slot = self.leaf(page).unwrap_or_else(|| self.add_leaf(page));
        let other = core::mem::replace(&mut self.remembered[page as usize % REMEMBERED], slot);
        if self.leaves.get(other).is_some_and(|leaf| leaf.prices.occupied == 0) {
            self.drop_leaf(other);
        }
        slot
    }

    /// Adds the leaf of a page, and its branch.
    fn add_leaf(&mut self, page: u64) -> SlabIndex<Leaf> {
        let branch = self.trunk.get(page / 64).unwrap_or_else(|| self.add_branch(page / 64));
        let slot = self.leaves.reuse(&Leaf::FREE);
        let leaf = &mut self.leaves[slot];
        (leaf.prices.page, leaf.branch) = (page, branch);
        let branch = &mut self.trunk.branches[branch];
        branch.existing |= bit(page);
        branch.leaves.children[(page % 64) as usize] = slot;
        slot
    }

    #[cold]
    fn add_branch(&mut self, page: u64) -> SlabIndex<Branch> {
        let branch = self.trunk.branches.reuse(&Branch::FREE);
        self.trunk.branches[branch].leaves.page = page;
        self.trunk.set(page, branch, self.numbering.last / 4_096);
        branch
    }

    /// The last level of a leaf is gone.
    fn empty_leaf(&mut self, slot: SlabIndex<Leaf>, page: u64) {
        self.trunk.branches[self.leaves[slot].branch].leaves.occupied &= !bit(page);
        if self.remembered[page as usize % REMEMBERED] != slot {
            self.drop_leaf(slot);
        }
    }

    /// Drops a leaf without levels, and its branch if it was the last one there.
    fn drop_leaf(&mut self, slot: SlabIndex<Leaf>) {
        let leaf = &mut self.leaves[slot];
        let page = core::mem::replace(&mut leaf.prices.page, NOWHERE);
        let at = leaf.branch;
        self.leaves.remove(slot);
        let branch = &mut self.trunk.branches[at];
        branch.existing &= !bit(page);
        if branch.existing == 0 {
            self.trunk.branches.remove(at);
            self.trunk.clear(page / 64);
        }
    }

    /// The first level behind a number, whether that has one or not.
    fn after(&self, number: u64) -> Option<(u64, SlabIndex<PriceLevel>)> {
        let page = number / 64;
        let Some(leaf) = self.known(page).or_else(|| self.leaf(page)) else {
            return self.after_leaf(page, self.trunk.get(page / 64));
        };
        let leaf = &self.leaves[leaf];
        leaf.prices.after(number).or_else(|| self.after_leaf(page, Some(leaf.branch)))
    }

    /// The first level in the leaves behind a page, whose branch is this one, or was: one just dropped has no levels.
    #[inline]
    fn after_leaf(
        &self,
        page: u64,
        branch: Option<SlabIndex<Branch>>,
    ) -> Option<(u64, SlabIndex<PriceLevel>)> {
        let here = branch.and_then(|branch| self.trunk.branches[branch].leaves.after(page));
        let (_, leaf) = here.or_else(|| self.after_branch(page / 64))?;
        self.leaves[leaf].prices.first()
    }

    /// The first leaf with levels in the branches behind a number.
    #[inline(never)]
    fn after_branch(&self, mut number: u64) -> Option<(u64, SlabIndex<Leaf>)> {
        loop {
            let branch = &self.trunk.branches[self.trunk.after(number)?].leaves;
            // None has levels if all leaves of a branch are only remembered; those are few.
            let first = branch.first();
            if first.is_some() {
                return first;
            }
            number = branch.page;
        }
    }
}

/// The bit of a number in its word.
#[inline]
fn bit(number: u64) -> u64 {
    1 << (number % 64)
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
        for &at in cents {
            let (price, level) = (Price(at * 100), SlabIndex::new(at as u32));
            let place = ladder.place(price);
            ladder.insert(place, price, level);
        }
        ladder
    }

    fn numbers(ladder: &Ladder) -> Vec<u32> {
        ladder.best_first().map(SlabIndex::number).collect()
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
            if let Some(place) = model.remove(&price) {
                assert_eq!(ladder.get(price).map(SlabIndex::number), Some(price.0 as u32));
                ladder.remove(place);
            } else {
                let place = ladder.place(price);
                assert!(ladder.at(place).is_none() && ladder.get(price).is_none());
                ladder.insert(place, price, SlabIndex::new(price.0 as u32));
                model.insert(price, place);
            }
            let best = model.keys().next().copied();
            assert_eq!(ladder.best().map(|(price, _)| price), best);
            if seed & 1 << 40 == 0 {
                assert_eq!(ladder.settle().map(|(price, _)| price), best);
            }
            let limit = Price((seed >> 41) as i64 % span * 100);
            assert_eq!(ladder.is_met(Side::Buy, limit), best.is_some_and(|best| best <= limit));
            assert!(ladder.leaves.len() <= model.len() + REMEMBERED);
            if step % 512 == 0 {
                assert!(
                    ladder.best_first().map(|slot| i64::from(slot.number())).eq(model.keys().map(|p| p.0))
                );
                model.retain(|price, place| {
                    let keep = price.0 % 300 != 0;
                    if !keep {
                        ladder.remove(*place);
                    }
                    keep
                });
            }
        }
    }
}
