//! The things a fast book is made of, and the lists that run through them.
//!
//! An order is in two lists at once: the queue of its price, oldest first, and its member's orders. The links could lie in the
//! order's own node. But its neighbours are cold where the book is deep: an order that leaves would call four lines from far away to
//! change a link in each, and a sweep would learn of each order only from the one before. So the links of each
//! kind lie together in a [`Chain`], eight nodes to a cache line: those of 40,000 orders stay near the processor. What few
//! orders have (an iceberg's display, a trigger, a date) lies in a [`Special`].
//!
//! ```text
//!            head                                tail
//!  level --> [node] <-QUEUE-> [node] <-QUEUE-> [node]
//!                               ^
//!                            MEMBER
//!                               v
//!  account ----------------> [node] ...
//! ```

use super::ladder::Place;
use super::terms::Terms;
use crate::Priority;
use pares_table::SlabIndex;
use pares_types::{
    ClientOrderId, MemberId, OrderId, OrderKind, Price, Quantity, SelfTrade, Side, TimeInForce, Timestamp,
};

/// An order: one cache line. Its price is its level's.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub(super) struct Node {
    pub(super) order: OrderId,
    pub(super) client_order_id: ClientOrderId,
    /// Shares left, an iceberg's hidden ones included.
    pub(super) remaining: Quantity,
    pub(super) executed: Quantity,
    /// Priority and traits in one word.
    pub(super) rank: Rank,
    /// What it adds to the state hash where it is; means nothing while it is detached.
    pub(super) hash: u64,
    /// [`SlabIndex::NONE`] while it is held.
    pub(super) level: SlabIndex<PriceLevel>,
    /// [`SlabIndex::NONE`] as long as the book keeps no holdings.
    pub(super) account: SlabIndex<Account>,
    /// Its account's.
    pub(super) member: MemberId,
}

const _: () = assert!(size_of::<Node>() == 64);

/// An order's priority and its [`Traits`].
///
/// ```text
///  63                      8 7        0
/// +-------------------------+----------+
/// | priority                | traits   |
/// +-------------------------+----------+
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rank(u64);

impl Rank {
    #[inline]
    pub(super) fn new(priority: Priority, traits: Traits) -> Self {
        Self(priority.0 << 8 | u64::from(traits.0))
    }

    #[inline]
    pub(super) fn priority(self) -> Priority {
        Priority(self.0 >> 8)
    }

    #[inline]
    pub(super) fn traits(self) -> Traits {
        Traits(self.0 as u8)
    }
}

/// What is particular about an order, in a byte.
///
/// ```text
///   7      6         5           4..0
/// +------+---------+-----------+--------------------------------+
/// | sell | special | post-only | self-trade x 5 + time in force |
/// +------+---------+-----------+--------------------------------+
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Traits(u8);

impl Traits {
    const SELL: u8 = 0x80;
    const SPECIAL: u8 = 0x40;
    const POST_ONLY: u8 = 0x20;
    const REST: u8 = 0x1f;
    const STAYS: u8 = 5;

    #[inline]
    pub(super) fn new(terms: &Terms, special: bool) -> Self {
        let stay = match terms.time_in_force {
            TimeInForce::Day | TimeInForce::Ioc | TimeInForce::Fok => 0,
            TimeInForce::Gtc => 1,
            TimeInForce::Gtd { .. } => 2,
            TimeInForce::AtOpen => 3,
            TimeInForce::AtClose => 4,
        };
        let mark = |is: bool, mark: u8| if is { mark } else { 0 };
        let marks = mark(terms.side == Side::Sell, Self::SELL)
            | mark(special, Self::SPECIAL)
            | mark(terms.post_only, Self::POST_ONLY);
        Self(marks | (terms.self_trade as u8 * Self::STAYS + stay))
    }

    /// Of a plain day order.
    #[inline]
    pub(super) fn plain(side: Side) -> Self {
        Self(if side == Side::Sell { Self::SELL } else { 0 })
    }

    /// Whether it is a plain day order: nothing but its side is particular.
    #[inline]
    pub(super) fn is_plain(self) -> bool {
        self.0 & !Self::SELL == 0
    }

    #[inline]
    pub(super) fn is_special(self) -> bool {
        self.0 & Self::SPECIAL != 0
    }

    #[inline]
    pub(super) fn side(self) -> Side {
        if self.0 & Self::SELL == 0 { Side::Buy } else { Side::Sell }
    }

    pub(super) fn is_post_only(self) -> bool {
        self.0 & Self::POST_ONLY != 0
    }

    pub(super) fn self_trade(self) -> SelfTrade {
        match (self.0 & Self::REST) / Self::STAYS {
            0 => SelfTrade::Allow,
            1 => SelfTrade::CancelResting,
            2 => SelfTrade::CancelIncoming,
            3 => SelfTrade::CancelBoth,
            _ => SelfTrade::Decrement,
        }
    }

    /// How long it stays; `until` is for the one that has a date.
    pub(super) fn time_in_force(self, until: Timestamp) -> TimeInForce {
        match (self.0 & Self::REST) % Self::STAYS {
            0 => TimeInForce::Day,
            1 => TimeInForce::Gtc,
            2 => TimeInForce::Gtd { until },
            3 => TimeInForce::AtOpen,
            _ => TimeInForce::AtClose,
        }
    }
}

/// What few orders have: icebergs, pegs, stops, market orders that wait, orders with a date.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Special {
    pub(super) kind: OrderKind,
    pub(super) display: Quantity,
    /// Shares left and not shown.
    pub(super) hidden: Quantity,
    pub(super) until: Timestamp,
    pub(super) trigger: Option<Price>,
    pub(super) elected: bool,
}

/// The neighbours of a node in a list.
#[derive(Clone, Copy, Debug)]
pub(super) struct Links {
    prev: SlabIndex<Node>,
    next: SlabIndex<Node>,
}

impl Links {
    /// Of a node that is in no list.
    pub(super) const NONE: Self = Self { prev: SlabIndex::NONE, next: SlabIndex::NONE };

    #[inline]
    pub(super) fn next(self) -> Option<SlabIndex<Node>> {
        self.next.some()
    }
}

/// The links of lists of one kind, by the number of the node.
#[derive(Clone, Debug)]
pub(super) struct Chain(Vec<Links>);

impl Chain {
    /// The links of so many nodes, which are in no list, with room for those of `capacity`.
    pub(super) fn new(nodes: usize, capacity: usize) -> Self {
        let mut links = Vec::with_capacity(capacity.max(nodes));
        links.resize(nodes, Links::NONE);
        Self(links)
    }

    /// Sees to it that the next node's links move no others.
    #[inline]
    pub(super) fn make_room(&mut self) {
        self.0.reserve(1);
    }

    /// Whether there never was a node in this place.
    #[inline]
    pub(super) fn lacks(&self, slot: SlabIndex<Node>) -> bool {
        slot.number() as usize == self.0.len()
    }

    /// Makes room for the links of one node more.
    #[inline]
    pub(super) fn add(&mut self) {
        self.0.push(Links::NONE);
    }

    #[inline]
    pub(super) fn at(&self, slot: SlabIndex<Node>) -> &Links {
        &self.0[slot.number() as usize]
    }

    #[inline]
    pub(super) fn at_mut(&mut self, slot: SlabIndex<Node>) -> &mut Links {
        &mut self.0[slot.number() as usize]
    }

    #[inline]
    pub(super) fn after(&self, slot: SlabIndex<Node>) -> Option<SlabIndex<Node>> {
        self.at(slot).next()
    }
}

/// One price of one side that has orders.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub(super) struct PriceLevel {
    pub(super) price: Price,
    /// Where it is on its ladder.
    pub(super) place: Place,
    /// Shares shown by all its orders.
    pub(super) shown: Quantity,
    /// Shares not shown.
    pub(super) hidden: Quantity,
    pub(super) orders: u32,
    pub(super) queue: List,
}

#[derive(Clone, Debug)]
pub(super) struct Account {
    pub(super) member: MemberId,
    pub(super) orders: List,
}

/// The ends of a doubly linked list.
#[derive(Clone, Copy, Debug)]
pub(super) struct List {
    head: SlabIndex<Node>,
    tail: SlabIndex<Node>,
}

impl List {
    /// No nodes.
    pub(super) const EMPTY: Self = Self { head: SlabIndex::NONE, tail: SlabIndex::NONE };

    #[inline]
    pub(super) fn front(self) -> Option<SlabIndex<Node>> {
        self.head.some()
    }

    /// The nodes, first to last.
    pub(super) fn iter(self, chain: &Chain) -> impl Iterator<Item = SlabIndex<Node>> {
        core::iter::successors(self.front(), |&slot| chain.after(slot))
    }

    #[inline]
    pub(super) fn push_back(&mut self, chain: &mut Chain, slot: SlabIndex<Node>) {
        *chain.at_mut(slot) = Links { prev: self.tail, next: SlabIndex::NONE };
        match self.tail.some() {
            Some(tail) => chain.at_mut(tail).next = slot,
            None => self.head = slot,
        }
        self.tail = slot;
    }

    /// Takes the node with these links, one of this list, out of it.
    #[inline]
    pub(super) fn unlink(&mut self, chain: &mut Chain, Links { prev, next }: Links) {
        match prev.some() {
            Some(prev) => chain.at_mut(prev).next = next,
            None => self.head = next,
        }
        match next.some() {
            Some(next) => chain.at_mut(next).prev = prev,
            None => self.tail = prev,
        }
    }

    /// Takes out all nodes before `slot`, which is in it; all nodes for `None`.
    #[inline]
    pub(super) fn cut(&mut self, chain: &mut Chain, slot: Option<SlabIndex<Node>>) {
        match slot {
            Some(slot) => (self.head, chain.at_mut(slot).prev) = (slot, SlabIndex::NONE),
            None => *self = Self::EMPTY,
        }
    }
}
