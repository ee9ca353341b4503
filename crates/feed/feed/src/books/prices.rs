//! The prices of one side of a book, and the level of each.
//!
//! Nearly all that happens, happens at the best prices. So those lie in a plain array, the best last, where a look-up compares a few neighbours
//! and a new level moves a few words. But strangers send these messages, and an array of a million levels would move a million words for
//! each new one. So the array holds at most 512; what is worse than all of those is in a tree.

use std::collections::BTreeMap;

use pares_table::SlabIndex;
use pares_types::Side;

use super::queues::Level;

const NEAR_MAX: usize = 512;
/// So many of the best are compared one by one, before the others are searched.
const TOP: usize = 8;

/// How good a price is on its side: more is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rank(u32);

impl Rank {
    #[inline]
    pub(super) fn of(side: Side, price: u32) -> Self {
        Self(if side == Side::Buy { price } else { !price })
    }
}

/// The levels of one side.
#[derive(Clone, Debug, Default)]
pub(super) struct Prices {
    /// The best, worst first.
    near: Vec<(Rank, SlabIndex<Level>)>,
    /// Those that are worse than all of these. None if there are none of these.
    #[expect(clippy::box_collection, reason = "most have none, and two sides are one cache line")]
    far: Option<Box<BTreeMap<Rank, SlabIndex<Level>>>>,
}

impl Prices {
    /// The levels, best first.
    pub(super) fn iter(&self) -> impl Iterator<Item = SlabIndex<Level>> + '_ {
        let far = self.far.iter().flat_map(|far| far.values().rev().copied());
        self.near.iter().rev().map(|(_, level)| *level).chain(far)
    }

    /// The best level.
    #[inline]
    pub(super) fn best(&self) -> Option<SlabIndex<Level>> {
        self.near.last().map(|(_, level)| *level)
    }

    /// Touches the best prices, so that they are in the cache: what it gives means nothing.
    #[inline]
    pub(super) fn glance(&self) -> u64 {
        let len = self.near.len();
        let rank = |place: usize| self.near.get(place).map_or(0, |(Rank(rank), _)| u64::from(*rank));
        rank(len.wrapping_sub(1)) ^ rank(len.wrapping_sub(TOP)) ^ rank(len.wrapping_sub(2 * TOP))
    }

    /// The level of a price.
    #[inline]
    pub(super) fn get(&self, rank: Rank) -> Option<SlabIndex<Level>> {
        let place = self.place(rank);
        match self.near.get(place) {
            Some((there, level)) if *there == rank => Some(*level),
            _ if place == 0 => self.far.as_ref()?.get(&rank).copied(),
            _ => None,
        }
    }

    /// Where it is among the near ones, or would be: behind all that are worse.
    #[inline]
    fn place(&self, rank: Rank) -> usize {
        let mut place = self.near.len();
        let top = place.saturating_sub(TOP);
        while place > top {
            if self.near[place - 1].0 < rank {
                return place;
            }
            place -= 1;
        }
        self.near[..place].partition_point(|(there, _)| *there < rank)
    }

    /// Adds a price that is not there.
    pub(super) fn insert(&mut self, rank: Rank, level: SlabIndex<Level>) {
        let place = self.place(rank);
        if place == 0
            && let Some(far) = &mut self.far
        {
            far.insert(rank, level);
            return;
        }
        self.near.insert(place, (rank, level));
        if self.near.len() > NEAR_MAX {
            self.far.get_or_insert_default().extend(self.near.drain(..NEAR_MAX / 2));
        }
    }

    /// Removes a price that is there.
    pub(super) fn remove(&mut self, rank: Rank) {
        let place = self.place(rank);
        if self.near.get(place).is_some_and(|(there, _)| *there == rank) {
            self.near.remove(place);
        } else if let Some(far) = &mut self.far {
            far.remove(&rank);
        }
        if self.near.is_empty() {
            self.bring_near();
        }
        self.far.take_if(|far| far.is_empty());
    }

    #[cold]
    fn bring_near(&mut self) {
        let Some(far) = &mut self.far else { return };
        let best = match far.keys().rev().nth(NEAR_MAX / 2 - 1).copied() {
            Some(split) => far.split_off(&split),
            None => std::mem::take(&mut **far),
        };
        self.near.extend(best);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The levels as their numbers.
    fn numbers(prices: &Prices) -> Vec<u32> {
        prices.iter().map(SlabIndex::number).collect()
    }

    #[test]
    fn the_best_come_first_on_both_sides() {
        for (side, best) in [(Side::Buy, [30, 20, 10]), (Side::Sell, [10, 20, 30])] {
            let mut prices = Prices::default();
            for price in [20, 30, 10] {
                prices.insert(Rank::of(side, price), SlabIndex::new(price));
            }
            assert_eq!(numbers(&prices), best);
            assert_eq!(prices.best().map(SlabIndex::number), Some(best[0]));
        }
    }

    #[test]
    fn any_number_of_prices_come_and_go_as_in_a_tree() {
        let (mut prices, mut tree) = (Prices::default(), BTreeMap::new());
        let mut seed = 7_u64;
        for step in 0..40_000 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            // More and more, then fewer and fewer, down to none.
            let grows = (seed >> 60) < if step < 20_000 { 11 } else { 5 };
            let price = (seed >> 33) as u32 % 3_000;
            let rank = Rank::of(Side::Buy, price);
            let worst = tree.first_key_value().map(|(rank, _)| *rank);
            assert_eq!(prices.get(rank), tree.get(&rank).copied());
            if grows && !tree.contains_key(&rank) {
                prices.insert(rank, SlabIndex::new(price));
                tree.insert(rank, SlabIndex::new(price));
            } else if let Some(gone) = if seed & 1 << 59 == 0 { worst } else { tree.keys().last().copied() }
                && !grows
            {
                prices.remove(gone);
                tree.remove(&gone);
            }
            assert_eq!(prices.best(), tree.values().last().copied());
            if step % 500 == 0 {
                assert!(prices.iter().eq(tree.values().rev().copied()), "step {step}");
                assert!(prices.near.len() <= NEAR_MAX && (prices.far.is_none() || !prices.near.is_empty()));
            }
        }
    }
}
