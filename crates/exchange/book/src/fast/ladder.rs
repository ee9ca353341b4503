//! The prices of one side that have orders.
//!
//! A sorted vector is the fastest ladder as long as the book is dense, and collapses when it is thin: a
//! crash through thousands of prices moves kilobytes at each new one. So prices are numbered by their distance
//! from the best possible one ([`super::numbering`]), and levels stand in a tree by their number ([`super::tree`]), as soon as there are more of
//! them than fit a cache line ([`super::few`]). A book that once needed the tree keeps it.
//!
//! Numbers count away from the best price on both sides (bids downwards, offers upwards), so that the
//! best level is always the lowest number.

use super::few::Few;
use super::node::PriceLevel;
use super::numbering::Numbering;
use super::tree::{Leaf, Tree};
use crate::Instrument;
use pares_table::SlabIndex;
use pares_types::{Price, Side};

/// Where a level is on its ladder; good as long as it is there.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    number: u64,
    /// Of the tree; none as long as there is none.
    leaf: SlabIndex<Leaf>,
}

/// The levels of one side in price order.
#[derive(Clone, Debug)]
#[repr(C, align(64))] // as a look-up goes, in two lines
pub(super) struct Ladder {
    pub(super) numbering: Numbering,
    /// All levels once there were too many for `few`, which is empty from then on.
    tree: Option<Box<Tree>>,
    /// No level has a lower number; [`u64::MAX`] if there are none.
    best_number: u64,
    /// Its price.
    best_price: Price,
    /// Its level; [`SlabIndex::NONE`] once that is gone, until a caller has to know which is the next one.
    best_level: SlabIndex<PriceLevel>,
    few: Few,
}

const _: () = assert!(size_of::<Ladder>() == 128);

impl Ladder {
    /// No levels.
    pub(super) fn new(instrument: &Instrument, side: Side) -> Self {
        Self {
            numbering: Numbering::new(instrument, side),
            tree: None,
            best_number: u64::MAX,
            best_price: Price(0),
            best_level: SlabIndex::NONE,
            few: Few::EMPTY,
        }
    }

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
    /// and an order hardly ever asks for what is behind it: no better price than the last best one's is enough to know.
    #[inline(always)]
    pub(super) fn is_met(&mut self, side: Side, limit: Price) -> bool {
        self.best_number != u64::MAX
            && side.crosses(limit, self.best_price)
            && self.settle().is_some_and(|(best, _)| side.crosses(limit, best))
    }

    pub(super) fn get(&self, price: Price) -> Option<SlabIndex<PriceLevel>> {
        let number = self.numbering.of(price);
        self.tree.as_ref().map_or_else(|| self.few.get(number), |tree| tree.get(number))
    }

    /// The place of a price. Its level is to be looked up ([`at`](Self::at)), or put there, at once.
    ///
    /// # Panics
    /// If the price is not the instrument's.
    #[inline]
    pub(super) fn place(&mut self, price: Price) -> Place {
        let number = self.numbering.of(price);
        assert!(number <= self.numbering.last(), "prices are on the grid of the instrument");
        let leaf = self.tree.as_mut().map_or(SlabIndex::NONE, |tree| tree.leaf_of(number));
        Place { number, leaf }
    }

    #[inline]
    pub(super) fn at(&self, place: Place) -> Option<SlabIndex<PriceLevel>> {
        let Place { number, leaf } = place;
        self.tree.as_ref().map_or_else(|| self.few.get(number), |tree| tree.at(leaf, number))
    }

    /// Whether there is no room for one level more before they [`spread`](Self::spread).
    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.few.is_full()
    }

    /// Sees to it that the next level moves no others.
    #[inline]
    pub(super) fn make_room(&mut self) {
        self.tree.iter_mut().for_each(|tree| tree.make_room());
    }

    /// Makes a tree of the levels, and tells the new place of each.
    #[cold]
    pub(super) fn spread(&mut self, mut moved: impl FnMut(SlabIndex<PriceLevel>, Place)) {
        let mut tree = Box::new(Tree::new(self.numbering.last()));
        for (number, level) in self.few.iter() {
            let leaf = tree.leaf_of(number);
            tree.insert(leaf, number, level);
            moved(level, Place { number, leaf });
        }
        (self.tree, self.few) = (Some(tree), Few::EMPTY);
    }

    #[inline]
    pub(super) fn insert(&mut self, place: Place, price: Price, level: SlabIndex<PriceLevel>) {
        let Place { number, leaf } = place;
        match &mut self.tree {
            Some(tree) => tree.insert(leaf, number, level),
            None => self.few.insert(number, level),
        }
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
        let Place { number, leaf } = place;
        match &mut self.tree {
            Some(tree) => tree.remove(leaf, number),
            None => self.few.remove(number),
        }
        if number == self.best_number {
            self.best_level = SlabIndex::NONE;
        }
    }

    pub(super) fn best_first(&self) -> impl Iterator<Item = SlabIndex<PriceLevel>> {
        core::iter::successors(self.first(), |(number, _)| self.after(*number)).map(|(_, level)| level)
    }

    /// The first level behind a number, whether that has one or not.
    fn after(&self, number: u64) -> Option<(u64, SlabIndex<PriceLevel>)> {
        self.tree.as_ref().map_or_else(|| self.few.after(number), |tree| tree.after(number))
    }
}

#[cfg(test)]
mod tests {
    use super::super::few::FEW;
    use super::*;
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

    /// Levels come and the best one goes, over and over, in a book that never needs the tree.
    #[test]
    fn a_thin_side_needs_no_tree() {
        let (mut ladder, mut there) = (ladder(Side::Sell, &[]), BTreeMap::new());
        for step in 0..5_000_i64 {
            let price = Price((step * step % 9_973 + 1) * 100);
            let place = ladder.place(price);
            if ladder.at(place).is_none() {
                ladder.insert(place, price, SlabIndex::new(price.0 as u32));
                there.insert(price, place);
            }
            if there.len() == FEW || step % 3 == 0 {
                let best = ladder.settle().map(|(price, _)| price).unwrap();
                ladder.remove(there.remove(&best).unwrap());
            }
            assert_eq!(ladder.best().map(|(price, _)| price), there.keys().next().copied());
            assert!(numbers(&ladder).into_iter().map(i64::from).eq(there.keys().map(|price| price.0)));
        }
        assert!(ladder.tree.is_none());
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
                if ladder.is_full() {
                    ladder.spread(|level, place| {
                        model.insert(Price(level.number().into()), place);
                    });
                }
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
            assert!(
                ladder.tree.as_ref().is_none_or(|tree| tree.leaves_len() <= model.len() + Tree::REMEMBERED)
            );
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
