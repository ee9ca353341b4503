//! All displayed orders, each in the queue of its price.
//!
//! ```text
//!   reference --table--> order <--> order <--> order      in the order in which they joined
//!                            \        |        /
//!                              level: price, shares, how many
//! ```
//! What a message costs here is cache misses: the table's word, the order, its level, its two neighbours. So an order and a level are half a
//! cache line each and begin at one, and what messages need that come together is touched
//! before the first is applied (`ahead`): then these misses do not wait for each other.
//!
//! References come from strangers. The table mixes a seed into them that only the receiver knows, so that nobody can choose references
//! which all meet in one place; how many orders there may be is limited; and nothing else here takes longer for one message than for another.

use pares_table::{IndexTable, Slab, SlabIndex};
use pares_types::{Price, Quantity, Side};

/// An order in its queue.
#[derive(Clone, Copy, Debug)]
#[repr(align(32))]
pub(super) struct Order {
    pub(super) reference: u64,
    before: SlabIndex<Order>,
    after: SlabIndex<Order>,
    pub(super) level: SlabIndex<Level>,
    /// Above zero.
    pub(super) shares: u32,
}

/// The queue of a price. It has an order.
#[derive(Clone, Copy, Debug)]
#[repr(align(32))]
pub(super) struct Level {
    shares: u64,
    first: SlabIndex<Order>,
    last: SlabIndex<Order>,
    orders: u32,
    pub(super) price: u32,
    pub(super) locate: u16,
    pub(super) side: Side,
    /// Whether references rise along the queue, as those of a publisher do.
    ascends: bool,
}

const _: () = assert!(size_of::<Order>() == 32 && size_of::<Level>() == 32);

/// The displayed orders of all books.
#[derive(Clone, Debug)]
pub(super) struct Queues {
    orders: Slab<Order>,
    levels: Slab<Level>,
    table: IndexTable,
    orders_max: usize,
    seed: u64,
}

impl Queues {
    pub(super) fn new(orders_max: usize, seed: u64) -> Self {
        let (orders, levels) = (Slab::with_capacity(0), Slab::with_capacity(0));
        Self { orders, levels, table: IndexTable::new(), orders_max, seed }
    }

    pub(super) fn is_full(&self) -> bool {
        self.orders.len() >= self.orders_max
    }

    /// The order of that reference.
    #[inline]
    pub(super) fn find(&self, reference: u64) -> Option<SlabIndex<Order>> {
        self.table.get(reference ^ self.seed, |slot| self.orders[slot].reference == reference)
    }

    #[inline]
    pub(super) fn order(&self, slot: SlabIndex<Order>) -> &Order {
        &self.orders[slot]
    }

    #[inline]
    pub(super) fn level(&self, slot: SlabIndex<Level>) -> &Level {
        &self.levels[slot]
    }

    /// A level without orders, which must get one.
    pub(super) fn open(&mut self, locate: u16, side: Side, price: u32) -> SlabIndex<Level> {
        let (first, last) = (SlabIndex::NONE, SlabIndex::NONE);
        self.levels.insert(Level { shares: 0, first, last, orders: 0, price, locate, side, ascends: true })
    }

    /// Adds an order, whose reference is not there, behind the others of its level.
    #[inline]
    pub(super) fn push(&mut self, reference: u64, shares: u32, level: SlabIndex<Level>) {
        let at = &mut self.levels[level];
        let before = at.last;
        let slot = self.orders.insert(Order { reference, before, after: SlabIndex::NONE, level, shares });
        at.shares += u64::from(shares);
        at.orders += 1;
        at.last = slot;
        match before.some() {
            Some(before) => {
                let before = &mut self.orders[before];
                before.after = slot;
                at.ascends &= before.reference < reference;
            }
            None => at.first = slot,
        }
        self.table.insert(reference ^ self.seed, slot, |slot| self.orders[slot].reference ^ self.seed);
    }

    /// Takes shares off an order, fewer than it has.
    #[inline]
    pub(super) fn reduce(&mut self, slot: SlabIndex<Order>, shares: u32) {
        let order = &mut self.orders[slot];
        order.shares -= shares;
        self.levels[order.level].shares -= u64::from(shares);
    }

    /// Removes an order. Its level, if that was its last one: it is gone too.
    #[inline]
    pub(super) fn remove(&mut self, slot: SlabIndex<Order>) -> Option<Level> {
        let Order { reference, before, after, level, shares } = self.orders[slot];
        self.table.remove(reference ^ self.seed, slot);
        self.orders.remove(slot);
        let at = &mut self.levels[level];
        at.shares -= u64::from(shares);
        at.orders -= 1;
        match before.some() {
            Some(before) => self.orders[before].after = after,
            None => at.first = after,
        }
        match after.some() {
            Some(after) => self.orders[after].before = before,
            None => at.last = before,
        }
        if at.orders > 0 {
            return None;
        }
        self.levels.remove(level);
        Some(self.levels[level])
    }

    /// What a level offers: price, shares, orders.
    pub(super) fn told(&self, level: SlabIndex<Level>) -> (Price, Quantity, u64) {
        let Level { price, shares, orders, .. } = self.levels[level];
        (Price(price.into()), Quantity(shares), orders.into())
    }

    /// The orders of a level by reference, which is the order of their queue: price, shares, reference.
    pub(super) fn queue(&self, level: SlabIndex<Level>) -> Vec<(Price, Quantity, u64)> {
        let Level { first, price, ascends, .. } = self.levels[level];
        let next = |slot: &SlabIndex<Order>| self.orders[*slot].after.some();
        let slots = std::iter::successors(first.some(), next);
        let mut queue: Vec<_> = slots
            .map(|slot| {
                let Order { reference, shares, .. } = self.orders[slot];
                (Price(price.into()), Quantity(shares.into()), reference)
            })
            .collect();
        if !ascends {
            queue.sort_unstable_by_key(|(_, _, reference)| *reference);
        }
        queue
    }

    /// Touches where the search for a reference begins: see [`super::ahead`].
    #[inline]
    pub(super) fn glance(&self, reference: u64) -> u64 {
        self.table.glance(reference ^ self.seed)
    }

    /// The order that has most likely that reference: another one with its hash is as good to be touched.
    #[inline]
    pub(super) fn likely(&self, reference: u64) -> Option<SlabIndex<Order>> {
        self.table.get(reference ^ self.seed, |_| true)
    }

    /// What a message about that order will need.
    #[inline]
    pub(super) fn around(&self, slot: SlabIndex<Order>) -> [SlabIndex<Order>; 2] {
        let Order { before, after, .. } = self.orders[slot];
        [before, after]
    }

    /// Whom the next order of that level will join.
    #[inline]
    pub(super) fn last(&self, level: SlabIndex<Level>) -> SlabIndex<Order> {
        self.levels[level].last
    }

    /// Touches an order, if it is one.
    #[inline]
    pub(super) fn touch(&self, slot: SlabIndex<Order>) -> u64 {
        self.orders.get(slot).map_or(0, |order| order.reference)
    }
}
