//! The levels of one side by the number of their price, as a tree of bitmaps.
//!
//! A flat array by tick needs gigabytes where one instrument trades from a cent to a hundred thousand dollars. So
//! 64 neighbours share a *leaf*, 64 leaves a *branch*, and branches hang on the
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
//! Trading happens near the touch, so a few leaves
//! are remembered and found without going down the tree. In a thin book most orders make a level and take it away with them: a
//! remembered leaf stays when its last level goes, so that the tree is not rebuilt each time.

use super::node::PriceLevel;
use super::trunk::{Trunk, above};
use pares_table::{Slab, SlabIndex};

/// Leaves remembered: those of 8,192 prices around the touch; a power of two.
const REMEMBERED: usize = 128;
/// The page of a free leaf.
const NOWHERE: u64 = u64::MAX;

/// 64 neighbours: prices of a leaf, or leaves of a branch.
#[derive(Clone, Debug)]
struct Joint<T> {
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

/// All levels of a side.
#[derive(Clone, Debug)]
pub(super) struct Tree {
    /// Leaves by the lowest bits of their page.
    remembered: [SlabIndex<Leaf>; REMEMBERED],
    leaves: Slab<Leaf>,
    /// What is needed only beyond the leaves remembered.
    trunk: Trunk,
    /// The highest number there can be.
    last: u64,
}

impl Tree {
    /// Sees to it that the next level's leaf and branch move no others.
    pub(super) fn make_room(&mut self) {
        self.leaves.make_room();
        self.trunk.branches.make_room();
    }

    /// See [`REMEMBERED`].
    #[cfg(test)]
    pub(super) const REMEMBERED: usize = REMEMBERED;

    /// No levels; no number will be higher than `last`.
    pub(super) fn new(last: u64) -> Self {
        let remembered = [SlabIndex::NONE; REMEMBERED];
        Self { remembered, leaves: Slab::with_capacity(0), trunk: Trunk::new(), last }
    }

    /// The leaf of a number, a new one if need be.
    #[inline]
    pub(super) fn leaf_of(&mut self, number: u64) -> SlabIndex<Leaf> {
        let page = number / 64;
        self.known(page).unwrap_or_else(|| self.recall(page))
    }

    pub(super) fn get(&self, number: u64) -> Option<SlabIndex<PriceLevel>> {
        self.at(self.leaf(number / 64)?, number)
    }

    #[inline]
    fn known(&self, page: u64) -> Option<SlabIndex<Leaf>> {
        let slot = self.remembered[page as usize % REMEMBERED];
        self.leaves.get(slot).is_some_and(|leaf| leaf.prices.page == page).then_some(slot)
    }

    #[inline]
    pub(super) fn at(&self, leaf: SlabIndex<Leaf>, number: u64) -> Option<SlabIndex<PriceLevel>> {
        self.leaves[leaf].prices.get(number)
    }

    #[inline]
    pub(super) fn insert(&mut self, leaf: SlabIndex<Leaf>, number: u64, level: SlabIndex<PriceLevel>) {
        let leaf = &mut self.leaves[leaf];
        if leaf.prices.occupied == 0 {
            self.trunk.branches[leaf.branch].leaves.occupied |= bit(number / 64);
        }
        leaf.prices.occupied |= bit(number);
        leaf.prices.children[(number % 64) as usize] = level;
    }

    /// Removes the level of a number from its leaf.
    ///
    /// # Panics
    /// If there is none.
    #[inline]
    pub(super) fn remove(&mut self, slot: SlabIndex<Leaf>, number: u64) {
        let prices = &mut self.leaves[slot].prices;
        assert!(prices.get(number).is_some(), "a level that empties is on the ladder");
        prices.occupied &= !bit(number);
        if prices.occupied == 0 {
            self.empty_leaf(slot, number / 64);
        }
    }

    /// How many leaves there are, those without levels included.
    #[cfg(test)]
    pub(super) fn leaves_len(&self) -> usize {
        self.leaves.len()
    }

    /// The leaf of a page, with levels or without.
    fn leaf(&self, page: u64) -> Option<SlabIndex<Leaf>> {
        self.trunk.branches[self.trunk.get(page / 64)?].get(page)
    }

    /// Finds or adds the leaf of a page and remembers it, in place of another.
    #[inline(never)]
    fn recall(&mut self, page: u64) -> SlabIndex<Leaf> {
        let slot = self.leaf(page).unwrap_or_else(|| self.add_leaf(page));
        let other = core::mem::replace(&mut self.remembered[page as usize % REMEMBERED], slot);
        if self.leaves.get(other).is_some_and(|leaf| leaf.prices.occupied == 0) {
            self.drop_leaf(other);
        }
        slot
    }

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
        self.trunk.set(page, branch, self.last / 4_096);
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
    pub(super) fn after(&self, number: u64) -> Option<(u64, SlabIndex<PriceLevel>)> {
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

#[inline]
fn bit(number: u64) -> u64 {
    1 << (number % 64)
}
