//! The things a fast book is made of, and the lists that run through them.
//!
//! An order is in two lists at once: the queue of its price, oldest first, and its member's orders,
//! oldest first. The links lie in the order's own node, so joining and leaving a list allocates
//! nothing and a node is one cache line.
//!
//! ```text
//!            head                                tail
//!  level --> [node] <-QUEUE-> [node] <-QUEUE-> [node]
//!                               ^
//!                            MEMBER
//!                               v
//!  account ----------------> [node] ...
//! ```

use super::slab::{Slab, Slot};
use pares_types::{ClientOrderId, MemberId, OrderId, Price, Quantity, Side};

use crate::Priority;

/// Which of a node's two lists: the queue of its price ...
pub(super) const QUEUE: usize = 0;
/// ... or the orders of its member.
pub(super) const MEMBER: usize = 1;

/// A resting order: one cache line. Price and side are its level's, the member is its account's.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub(super) struct Node {
    pub(super) order: OrderId,
    pub(super) client_order_id: ClientOrderId,
    pub(super) remaining: Quantity,
    pub(super) executed: Quantity,
    pub(super) priority: Priority,
    pub(super) level: Slot<PriceLevel>,
    pub(super) account: Slot<Account>,
    pub(super) links: [Links; 2],
}

const _: () = assert!(size_of::<Node>() == 64);

/// The neighbours of a node in one of its lists.
#[derive(Clone, Copy, Debug)]
pub(super) struct Links {
    prev: Slot<Node>,
    next: Slot<Node>,
}

impl Links {
    /// Of a node that is in no list.
    pub(super) const NONE: Self = Self { prev: Slot::NONE, next: Slot::NONE };
}

/// One price of one side that has orders.
#[derive(Clone, Debug)]
pub(super) struct PriceLevel {
    pub(super) price: Price,
    pub(super) side: Side,
    /// Shares of all its orders.
    pub(super) quantity: Quantity,
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
    head: Slot<Node>,
    tail: Slot<Node>,
}

impl<const WHICH: usize> List<WHICH> {
    /// No nodes.
    pub(super) const EMPTY: Self = Self { head: Slot::NONE, tail: Slot::NONE };

    /// The first node.
    pub(super) fn front(self) -> Option<Slot<Node>> {
        self.head.some()
    }

    /// The node after `slot`.
    pub(super) fn after(nodes: &Slab<Node>, slot: Slot<Node>) -> Option<Slot<Node>> {
        nodes[slot].links[WHICH].next.some()
    }

    /// Appends a node.
    pub(super) fn push_back(&mut self, nodes: &mut Slab<Node>, slot: Slot<Node>) {
        nodes[slot].links[WHICH] = Links { prev: self.tail, next: Slot::NONE };
        match self.tail.some() {
            Some(tail) => nodes[tail].links[WHICH].next = slot,
            None => self.head = slot,
        }
        self.tail = slot;
    }

    /// Takes a node of this list out of it.
    pub(super) fn unlink(&mut self, nodes: &mut Slab<Node>, slot: Slot<Node>) {
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
