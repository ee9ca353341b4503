//! The prices of one side that have orders, as a tree of bitmaps.
//!
//! A sorted vector is the fastest ladder as long as the book is dense, and collapses when it is thin: a
//! crash through thousands of prices moves kilobytes at each new one. A flat array by tick needs
//! gigabytes where one instrument trades from a cent to a hundred thousand dollars. So prices are numbered by their distance
//! from the best possible one, 64 neighbours share a *leaf*, and leaves hang in a tree of 64-way
//! nodes, each with one word that says which children exist. A search is a few bit
//! operations a layer; the tree holds only what is used, and its height depends on the
//! range alone (10 million ticks: four layers).
//!
//! ```text
//!   number of a price:  | layer 2 | layer 1 | leaf | bit in leaf |      6 bits each
//!
//!   root  [..1..1....]
//!             |   \
//!       [1.......]  [....1...]          inner nodes
//!        |               |
//!     leaf 0: 1.11....   leaf 68: .1..  each set bit: a level
//! ```
//! Numbers count away from the best price on both sides (bids downwards, offers upwards), so that the
//! best level is always the lowest number. Trading happens near the touch, so a few leaves
//! are remembered by page and found without going down the tree.

use super::node::PriceLevel;
use super::slab::{Slab, Slot};
use crate::Instrument;
use pares_types::{Price, Side};

/// Leaves remembered; a power of two.
const REMEMBERED: usize = 16;
/// Bits of a price number that one layer decides.
const BITS: u32 = 6;
/// The most layers above the leaves: 64-bit numbers.
const LAYERS_MAX: usize = 10;

/// 64 neighbouring prices.
#[derive(Clone, Debug)]
struct Leaf {
    /// Which of them have a level; zero only in a free leaf.
    occupied: u64,
    /// The number of its first price, divided by 64.
    page: u64,
    levels: [Slot<PriceLevel>; 64],
}

/// 64 neighbouring nodes or leaves of the layer below.
#[derive(Clone, Debug)]
struct Inner {
    /// Which of them exist.
    occupied: u64,
    children: [u32; 64],
}

/// From prices to their numbers, for one side of one instrument.
#[derive(Clone, Copy, Debug)]
pub(super) struct Numbering {
    side: Side,
    /// The best possible price: number 0.
    origin: i64,
    /// The grid is `odd << shift`; `inverse` undoes a multiplication by `odd` modulo 2^64
    /// (Granlund and Montgomery, Division by Invariant Integers Using Multiplication, section 9).
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
        let origin = match side {
            Side::Buy => instrument.price_max.0,
            Side::Sell => instrument.price_min.0,
        };
        Self { side, origin, inverse, shift, last: range / grid }
    }

    /// The number of a price; above `last` for any price outside the range or off the grid.
    #[inline]
    pub(super) fn of(&self, price: Price) -> u64 {
        let away = match self.side {
            Side::Buy => self.origin.wrapping_sub(price.0),
            Side::Sell => price.0.wrapping_sub(self.origin),
        };
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
    /// Layers of inner nodes above the leaves.
    layers: usize,
    root: u32,
    inners: Slab<Inner>,
    leaves: Slab<Leaf>,
    /// Leaves by the lowest bits of their page. May name free or other leaves: a leaf knows its page.
    remembered: [Slot<Leaf>; REMEMBERED],
    /// The lowest number that has a level, [`u64::MAX`] for none ...
    best_number: u64,
    /// ... and its level and price.
    best_level: Slot<PriceLevel>,
    best_price: Price,
}

const NOTHING: u32 = u32::MAX;

impl Ladder {
    /// No levels.
    pub(super) fn new(instrument: &Instrument, side: Side) -> Self {
        let numbering = Numbering::new(instrument, side);
        let bits = u64::BITS - numbering.last.leading_zeros();
        Self {
            numbering,
            layers: (bits.div_ceil(BITS).max(1) - 1) as usize,
            root: NOTHING,
            inners: Slab::with_capacity(0),
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
        if number == self.best_number {
            return Some(self.best_level);
        }
        let leaf = &self.leaves[self.leaf(number)?];
        let bit = number as usize % 64;
        if leaf.occupied >> bit & 1 == 1 { Some(leaf.levels[bit]) } else { None }
    }

    /// Adds the level at a price that has none.
    pub(super) fn insert(&mut self, price: Price, level: Slot<PriceLevel>) {
        let number = self.numbering.of(price);
        assert!(number <= self.numbering.last, "price {price} is on the grid of the instrument");
        let slot = match self.leaf(number) {
            Some(slot) => slot,
            None => self.add_leaf(number),
        };
        let leaf = &mut self.leaves[slot];
        leaf.occupied |= 1 << (number % 64);
        leaf.levels[number as usize % 64] = level;
        self.remembered[(number / 64) as usize % REMEMBERED] = slot;
        if number < self.best_number {
            (self.best_number, self.best_level, self.best_price) = (number, level, price);
        }
    }

    /// Removes the level at a price. `price_of` tells the price of the level that becomes the best.
    ///
    /// # Panics
    /// If there is none.
    pub(super) fn remove(&mut self, price: Price, price_of: impl Fn(Slot<PriceLevel>) -> Price) {
        let number = self.numbering.of(price);
        let slot = self.leaf(number).expect("a level that empties is on the ladder");
        let leaf = &mut self.leaves[slot];
        assert!(leaf.occupied >> (number % 64) & 1 == 1, "a level that empties is on the ladder");
        leaf.occupied &= !(1 << (number % 64));
        let left = leaf.occupied;
        if number == self.best_number {
            // The rest of the leaf first: it is nearly always there.
            let next = if left == 0 {
                self.after(number)
            } else {
                let bit = left.trailing_zeros();
                Some((number / 64 * 64 + u64::from(bit), leaf.levels[bit as usize]))
            };
            (self.best_number, self.best_level) = next.unwrap_or((u64::MAX, Slot::NONE));
            self.best_price = next.map_or(Price(0), |(_, level)| price_of(level));
        }
        if left == 0 {
            self.leaves.remove(slot);
            self.drop_path(number);
        }
    }

    /// The levels, best first.
    pub(super) fn best_first(&self) -> impl Iterator<Item = Slot<PriceLevel>> {
        let best = self.best().map(|(_, level)| (self.best_number, level));
        core::iter::successors(best, |(number, _)| self.after(*number)).map(|(_, level)| level)
    }

    /// What a look-up of a price will touch first, to call it to the cache.
    #[inline]
    pub(super) fn near(&self, price: Price) -> Option<Slot<PriceLevel>> {
        let number = self.numbering.of(price);
        let slot = self.remembered[(number / 64) as usize % REMEMBERED];
        let leaf = self.leaves.get(slot)?;
        (leaf.occupied >> (number % 64) & 1 == 1).then(|| leaf.levels[number as usize % 64])
    }

    #[inline]
    fn leaf(&self, number: u64) -> Option<Slot<Leaf>> {
        let page = number / 64;
        let slot = self.remembered[page as usize % REMEMBERED];
        match self.leaves.get(slot) {
            Some(leaf) if leaf.page == page && leaf.occupied != 0 => Some(slot),
            _ => self.descend(page),
        }
    }

    /// Finds a leaf from the root.
    #[cold]
    fn descend(&self, page: u64) -> Option<Slot<Leaf>> {
        let mut at = self.root;
        for layer in (0..self.layers).rev() {
            let inner = self.inners.get(Slot::new(at))?;
            let child = child_at(page, layer);
            if inner.occupied >> child & 1 == 0 {
                return None;
            }
            at = inner.children[child];
        }
        let leaf = self.leaves.get(Slot::new(at))?;
        (leaf.page == page && leaf.occupied != 0).then(|| Slot::new(at))
    }

    /// Adds the leaf of a number, and the nodes above it.
    #[cold]
    fn add_leaf(&mut self, number: u64) -> Slot<Leaf> {
        let page = number / 64;
        let leaf = self.leaves.insert(Leaf { occupied: 0, page, levels: [Slot::NONE; 64] });
        if self.layers == 0 {
            self.root = leaf.number();
            return leaf;
        }
        if self.root == NOTHING {
            self.root = self.add_inner();
        }
        let mut at = Slot::new(self.root);
        for layer in (0..self.layers).rev() {
            let child = child_at(page, layer);
            let exists = self.inners[at].occupied >> child & 1 == 1;
            let below = match layer {
                0 => leaf.number(),
                _ if exists => self.inners[at].children[child],
                _ => self.add_inner(),
            };
            self.inners[at].occupied |= 1 << child;
            self.inners[at].children[child] = below;
            at = Slot::new(below);
        }
        leaf
    }

    fn add_inner(&mut self) -> u32 {
        self.inners.insert(Inner { occupied: 0, children: [NOTHING; 64] }).number()
    }

    /// Takes the freed leaf of a number out of the tree, and the nodes that lead nowhere then.
    #[cold]
    fn drop_path(&mut self, number: u64) {
        let page = number / 64;
        let (path, _) = self.path(page);
        for layer in 0..self.layers {
            let at = path[layer];
            self.inners[at].occupied &= !(1 << child_at(page, layer));
            if self.inners[at].occupied != 0 {
                return;
            }
            self.inners.remove(at);
        }
        self.root = NOTHING;
    }

    /// The inner nodes on the way to a page as far as they exist, by layer, and the lowest layer that does.
    fn path(&self, page: u64) -> ([Slot<Inner>; LAYERS_MAX], usize) {
        let mut path = [Slot::NONE; LAYERS_MAX];
        let (mut at, mut lowest) = (self.root, self.layers);
        for layer in (0..self.layers).rev() {
            if at == NOTHING {
                break;
            }
            (path[layer], lowest) = (Slot::new(at), layer);
            let inner = &self.inners[path[layer]];
            let child = child_at(page, layer);
            at = if inner.occupied >> child & 1 == 1 { inner.children[child] } else { NOTHING };
        }
        (path, lowest)
    }

    /// The first level behind a number, whether that has one or not.
    fn after(&self, number: u64) -> Option<(u64, Slot<PriceLevel>)> {
        if let Some(slot) = self.leaf(number) {
            let behind = self.leaves[slot].occupied & above(number as usize % 64);
            if behind != 0 {
                return Some(self.in_leaf(slot, behind));
            }
        }
        let page = number / 64;
        let (path, lowest) = self.path(page);
        for layer in lowest..self.layers {
            let behind = self.inners[path[layer]].occupied & above(child_at(page, layer));
            if behind != 0 {
                return Some(self.first_below(path[layer], layer, behind));
            }
        }
        None
    }

    /// The first level below one of the children in `among` of a node.
    fn first_below(&self, node: Slot<Inner>, layer: usize, among: u64) -> (u64, Slot<PriceLevel>) {
        let mut at = self.inners[node].children[among.trailing_zeros() as usize];
        for _ in 0..layer {
            let inner = &self.inners[Slot::new(at)];
            at = inner.children[inner.occupied.trailing_zeros() as usize];
        }
        let leaf = Slot::new(at);
        self.in_leaf(leaf, self.leaves[leaf].occupied)
    }

    fn in_leaf(&self, slot: Slot<Leaf>, among: u64) -> (u64, Slot<PriceLevel>) {
        let bit = among.trailing_zeros();
        let leaf = &self.leaves[slot];
        (leaf.page * 64 + u64::from(bit), leaf.levels[bit as usize])
    }
}

/// Which child of a node leads to a page.
fn child_at(page: u64, layer: usize) -> usize {
    (page >> (BITS as usize * layer)) as usize % 64
}

/// All bits above this one.
fn above(bit: usize) -> u64 {
    (u64::MAX << bit) << 1
}
