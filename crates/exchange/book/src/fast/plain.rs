//! Plain orders come, move and go: what the short way ([`super::calm`]) does to the [`Store`].
//!
//! It must come to the same as creating, attaching, detaching and discarding them, and leaves out what only other orders have.

use super::node::{Node, PriceLevel, Rank, Traits};
use super::store::Store;
use crate::{Priority, hash};
use pares_table::SlabIndex;
use pares_types::{Quantity, Side};

impl Store {
    /// Creates a plain order and puts it behind all others at its price.
    #[inline(always)]
    pub(super) fn add_plain(&mut self, order: &hash::Plain) {
        let (level, hash) = (self.level_at(order.side, order.price), hash::plain(order));
        let slot = self.nodes.insert(Node {
            order: order.order,
            client_order_id: order.client_order_id,
            remaining: order.remaining,
            executed: order.executed,
            rank: Rank::new(order.priority, Traits::plain(order.side)),
            hash,
            level,
            account: SlabIndex::NONE,
            member: order.member,
        });
        if self.queues.lacks(slot) {
            self.queues.add();
            self.add_holding(slot);
        }
        let nodes = &self.nodes;
        self.ids.insert(order.order.0.to_bits(), slot, |slot| nodes[slot].order.0.to_bits());
        self.belong(slot, order.member);
        self.join(slot, level, order.remaining, hash);
    }

    /// Moves a plain order that is on the book behind all others at another price, or at its own.
    #[inline]
    pub(super) fn move_plain(&mut self, slot: SlabIndex<Node>, order: &hash::Plain) {
        self.leave(slot);
        let (level, hash) = (self.level_at(order.side, order.price), hash::plain(order));
        let node = &mut self.nodes[slot];
        node.remaining = order.remaining;
        node.rank = Rank::new(order.priority, Traits::plain(order.side));
        (node.hash, node.level) = (hash, level);
        self.join(slot, level, order.remaining, hash);
    }

    #[inline]
    fn join(&mut self, slot: SlabIndex<Node>, level: SlabIndex<PriceLevel>, shares: Quantity, hash: u64) {
        let level = &mut self.levels[level];
        level.queue.push_back(&mut self.queues, slot);
        level.orders += 1;
        level.shown = level.shown.plus(shares);
        self.hash_sum = self.hash_sum.wrapping_add(hash);
    }

    /// Takes a plain order out of its level and out of the hash.
    #[inline]
    fn leave(&mut self, slot: SlabIndex<Node>) {
        let Node { remaining, rank, hash, level: at, .. } = self.nodes[slot];
        let links = *self.queues.at(slot);
        self.hash_sum = self.hash_sum.wrapping_sub(hash);
        let level = &mut self.levels[at];
        level.queue.unlink(&mut self.queues, links);
        level.orders -= 1;
        level.shown = level.shown.minus(remaining);
        if level.orders == 0 {
            self.drop_level(rank.traits().side(), at);
        }
    }

    /// Takes a plain order off the book and forgets it.
    #[inline(always)]
    pub(super) fn remove_plain(&mut self, slot: SlabIndex<Node>) {
        self.leave(slot);
        self.forget(slot);
    }

    /// Takes up to `left` shares of a level, order by order from its front, and tells each: the order as it was, and its shares. It
    /// ends with the first that is not plain or not older than `older_than`, and after `orders_max` of them. Returns how many gave shares.
    ///
    /// Taken one by one, every order would change its neighbour, its level and the ladder; here those change once.
    #[inline]
    pub(super) fn take_plain(
        &mut self,
        (side, at): (Side, SlabIndex<PriceLevel>),
        left: &mut Quantity,
        (orders_max, older_than): (u32, Priority),
        mut tell: impl FnMut(&Node, Quantity),
    ) -> u32 {
        let (mut gone, mut taken, mut partly) = (0, Quantity::ZERO, None);
        let mut front = self.levels[at].queue.front();
        while let Some(slot) = front {
            let node = &self.nodes[slot];
            let fits = node.rank.traits().is_plain() && node.rank.priority() < older_than;
            if gone == orders_max || left.is_zero() || !fits {
                break;
            }
            let quantity = node.remaining.min(*left);
            tell(node, quantity);
            *left = left.minus(quantity);
            if quantity < node.remaining {
                partly = Some((slot, quantity));
                break;
            }
            (gone, taken) = (gone + 1, taken.plus(quantity));
            self.hash_sum = self.hash_sum.wrapping_sub(node.hash);
            front = self.queues.after(slot);
            self.forget(slot);
        }
        self.shorten((side, at), front, (gone, taken));
        partly.inspect(|&(slot, quantity)| self.reduce(slot, quantity, Quantity::ZERO));
        gone + u32::from(partly.is_some())
    }

    /// So many orders with so many shares are gone from a level, all before `front`.
    #[inline(always)]
    fn shorten(
        &mut self,
        (side, at): (Side, SlabIndex<PriceLevel>),
        front: Option<SlabIndex<Node>>,
        (orders, shares): (u32, Quantity),
    ) {
        let level = &mut self.levels[at];
        level.queue.cut(&mut self.queues, front);
        level.orders -= orders;
        level.shown = level.shown.minus(shares);
        if front.is_none() {
            self.drop_level(side, at);
        }
    }
}
