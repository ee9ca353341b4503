//! The levels of one side of a thin book, side by side in a cache line.
//!
//! Most instruments of an exchange have a handful of orders, and whatever is asked of their books finds them cold. Going down a
//! tree is then a wait for memory at each joint, on a page of its own. A look at each of eight neighbours is one.

use super::node::PriceLevel;
use pares_table::SlabIndex;

/// As many as fit.
pub(super) const FEW: usize = 8;

/// Up to [`FEW`] levels by the number of their price, in no order.
#[derive(Clone, Debug)]
pub(super) struct Few {
    levels: [(u32, SlabIndex<PriceLevel>); FEW],
    len: u32,
}

impl Few {
    pub(super) const EMPTY: Self = Self { levels: [(0, SlabIndex::NONE); FEW], len: 0 };

    #[inline]
    fn there(&self) -> &[(u32, SlabIndex<PriceLevel>)] {
        &self.levels[..self.len as usize]
    }

    /// Whether no more fit.
    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.len as usize == FEW
    }

    #[inline]
    pub(super) fn get(&self, number: u64) -> Option<SlabIndex<PriceLevel>> {
        self.iter().find(|&(at, _)| at == number).map(|(_, level)| level)
    }

    #[inline]
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, SlabIndex<PriceLevel>)> + '_ {
        self.there().iter().map(|&(number, level)| (number.into(), level))
    }

    /// The first level behind a number, whether that has one or not.
    #[inline]
    pub(super) fn after(&self, number: u64) -> Option<(u64, SlabIndex<PriceLevel>)> {
        self.iter().filter(|&(at, _)| at > number).min_by_key(|&(at, _)| at)
    }

    /// Adds the level of a number that has none.
    ///
    /// # Panics
    /// If they are full.
    #[inline]
    pub(super) fn insert(&mut self, number: u64, level: SlabIndex<PriceLevel>) {
        self.levels[self.len as usize] = (u32::try_from(number).expect("fewer than 2^30 prices"), level);
        self.len += 1;
    }

    /// Removes the level of a number.
    ///
    /// # Panics
    /// If there is none.
    #[inline]
    pub(super) fn remove(&mut self, number: u64) {
        let at = self.iter().position(|(at, _)| at == number).expect("a level that empties is on the ladder");
        self.len -= 1;
        self.levels[at] = self.levels[self.len as usize];
    }
}
