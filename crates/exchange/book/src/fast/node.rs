//! The things a fast book is made of, and the lists that run through them.
//!
//! An order is in two lists at once: the queue of its price, oldest first, and its member's orders.
//! The links lie in the order's own node, so joining and leaving a list allocates
//! nothing and a node is one cache line. What few orders have (an iceberg's display, a trigger, a date) lies
//! elsewhere, in a [`Special`], so that it costs the others nothing.
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
use super::store::Terms;
use crate::Priority;
use pares_table::{Slab, SlabIndex};
use pares_types::{
    ClientOrderId, MemberId, OrderId, OrderKind, Price, Quantity, SelfTrade, Side, TimeInForce, Timestamp,
};

/// Which of a node's two lists: the queue of its price ...
pub(super) const QUEUE: usize = 0;
/// ... or the orders of its member.
pub(super) const MEMBER: usize = 1;

/// An order: one cache line. Its price is its level's, the member is its account's.
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
    /// [`SlabIndex::NONE`] while it is held.
    pub(super) level: SlabIndex<PriceLevel>,
    pub(super) account: SlabIndex<Account>,
    pub(super) links: [Links; 2],
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

    /// Whether it has a [`Special`].
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

/// The neighbours of a node in one of its lists.
#[derive(Clone, Copy, Debug)]
pub(super) struct Links {
    pub(super) prev: SlabIndex<Node>,
    pub(super) next: SlabIndex<Node>,
}

impl Links {
    /// Of a node that is in no list.
    pub(super) const NONE: Self = Self { prev: SlabIndex::NONE, next: SlabIndex::NONE };
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
    pub(super) queue: List<QUEUE>,
}

/// A member that has orders.
#[derive(Clone, Debug)]
pub(super) struct Account {
    pub(super) member: MemberId,
    pub(super) orders: List<MEMBER>,
}

/// The ends of a doubly linked list through the nodes' `WHICH`-th links.
#[derive(Clone, Copy, Debug)]
pub(super) struct List<const WHICH: usize> {
    head: SlabIndex<Node>,
    tail: SlabIndex<Node>,
}

impl<const WHICH: usize> List<WHICH> {
    /// No nodes.
    pub(super) const EMPTY: Self = Self { head: SlabIndex::NONE, tail: SlabIndex::NONE };

    /// The first node.
    #[inline]
    pub(super) fn front(self) -> Option<SlabIndex<Node>> {
        self.head.some()
    }

    /// The node after `slot`.
    #[inline]
    pub(super) fn after(nodes: &Slab<Node>, slot: SlabIndex<Node>) -> Option<SlabIndex<Node>> {
        nodes[slot].links[WHICH].next.some()
    }

    /// The nodes, first to last.
    pub(super) fn iter(self, nodes: &Slab<Node>) -> impl Iterator<Item = SlabIndex<Node>> {
        core::iter::successors(self.front(), |&slot| Self::after(nodes, slot))
    }

    /// Appends a node.
    #[inline]
    pub(super) fn push_back(&mut self, nodes: &mut Slab<Node>, slot: SlabIndex<Node>) {
        nodes[slot].links[WHICH] = Links { prev: self.tail, next: SlabIndex::NONE };
        match self.tail.some() {
            Some(tail) => nodes[tail].links[WHICH].next = slot,
            None => self.head = slot,
        }
        self.tail = slot;
    }

    /// Takes a node of this list out of it.
    #[inline]
    pub(super) fn unlink(&mut self, nodes: &mut Slab<Node>, slot: SlabIndex<Node>) {
        let Links { prev, next } = nodes[slot].links[WHICH];
        match prev.some() {
            Some(prev) => nodes[prev].links[WHICH].next = next,
            None => self.head = next,
        }
        match next.some() {
            Some(next) => nodes[next].links[WHICH].prev = prev,
            None => self.tail = prev,
        }
    }
}
