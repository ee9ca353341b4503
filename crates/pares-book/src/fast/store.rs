//! The resting orders of a fast book, and every index that leads to one.
//!
//! ```text
//!  order id --ids--> node <--queue-- level <--ladder-- side, price
//!                     ^
//!                     +----orders--- account <--members-- member id
//! ```
//! This module keeps the five structures and the hash in step; it knows nothing of matching.

use super::ladder::Ladder;
use super::node::{Account, Links, List, Node, PriceLevel, QUEUE};
use super::slab::{Slab, Slot};
use super::table::Table;
use crate::{RestingOrder, hash};
use pares_types::{MemberId, OrderId, Price, Quantity, Side};

/// Orders whose nodes are reserved (unless the instrument's limit is lower): 64 MiB of addresses, of
/// which only the part ever used becomes memory.
const ORDERS_RESERVED: usize = 1 << 20;
/// Orders the id table has room for at first, 512 KiB. It doubles when it is half full, because a
/// table larger than needed costs a cache miss and a page walk more on every look-up.
const IDS: usize = 16_384;
/// Price levels per side a new book has room for.
const LEVELS: usize = 1_024;
/// Members with orders a new book has room for.
const MEMBERS: usize = 256;

/// All resting orders.
#[derive(Clone, Debug)]
pub(super) struct Store {
    pub(super) nodes: Slab<Node>,
    pub(super) levels: Slab<PriceLevel>,
    accounts: Slab<Account>,
    bids: Ladder,
    offers: Ladder,
    ids: Table<Node>,
    members: Table<Account>,
    /// The wrapping sum of the hashes of all orders.
    pub(super) hash_sum: u64,
}

impl Store {
    /// No orders.
    pub(super) fn new(orders_max: u32) -> Self {
        let orders_max = orders_max as usize;
        let (levels, members) = (LEVELS.min(orders_max), MEMBERS.min(orders_max));
        Self {
            nodes: Slab::with_capacity(ORDERS_RESERVED.min(orders_max)),
            levels: Slab::with_capacity(2 * levels),
            accounts: Slab::with_capacity(members),
            bids: Ladder::with_capacity(Side::Buy, levels),
            offers: Ladder::with_capacity(Side::Sell, levels),
            ids: Table::with_capacity(IDS.min(orders_max)),
            members: Table::with_capacity(members),
            hash_sum: 0,
        }
    }

    pub(super) fn ladder(&self, side: Side) -> &Ladder {
        match side {
            Side::Buy => &self.bids,
            Side::Sell => &self.offers,
        }
    }

    fn ladder_mut(&mut self, side: Side) -> &mut Ladder {
        match side {
            Side::Buy => &mut self.bids,
            Side::Sell => &mut self.offers,
        }
    }

    /// The node of an order.
    pub(super) fn find(&self, order: OrderId) -> Option<Slot<Node>> {
        self.ids.get(order.0.to_bits())
    }

    /// The order of a node.
    pub(super) fn order(&self, slot: Slot<Node>) -> RestingOrder {
        let node = &self.nodes[slot];
        let level = &self.levels[node.level];
        RestingOrder {
            order: node.order,
            member: self.accounts[node.account].member,
            client_order_id: node.client_order_id,
            side: level.side,
            price: level.price,
            remaining: node.remaining,
            executed: node.executed,
            priority: node.priority,
        }
    }

    /// The member's oldest order.
    pub(super) fn oldest_of(&self, member: MemberId) -> Option<Slot<Node>> {
        let account = self.members.get(u64::from(member.0))?;
        self.accounts[account].orders.front()
    }

    /// Puts an order behind all others at its price.
    ///
    /// # Panics
    /// If its id is there already.
    pub(super) fn insert(&mut self, order: &RestingOrder) {
        let level = self.level_at(order.side, order.price);
        let account = self.account_of(order.member);
        let slot = self.nodes.insert(Node {
            order: order.order,
            client_order_id: order.client_order_id,
            remaining: order.remaining,
            executed: order.executed,
            priority: order.priority,
            level,
            account,
            links: [Links::NONE; 2],
        });
        self.ids.insert(order.order.0.to_bits(), slot);
        let level = &mut self.levels[level];
        level.queue.push_back(&mut self.nodes, slot);
        level.orders += 1;
        level.quantity = level.quantity.plus(order.remaining);
        self.accounts[account].orders.push_back(&mut self.nodes, slot);
        self.hash_sum = self.hash_sum.wrapping_add(hash::order(order));
    }

    /// Takes an order off the book. `order` is the order of `slot`.
    pub(super) fn remove(&mut self, slot: Slot<Node>, order: &RestingOrder) {
        let Node { level, account, .. } = self.nodes[slot];
        self.hash_sum = self.hash_sum.wrapping_sub(hash::order(order));
        self.ids.remove(order.order.0.to_bits());
        self.leave_level(slot, level, order);
        self.leave_account(slot, account);
        self.nodes.remove(slot);
    }

    /// Changes what is left and executed of an order whose other fields stay. `order` is the order
    /// of `slot`.
    pub(super) fn change(
        &mut self,
        slot: Slot<Node>,
        order: &RestingOrder,
        remaining: Quantity,
        executed: Quantity,
    ) {
        let after = RestingOrder { remaining, executed, ..*order };
        let delta = hash::order(&after).wrapping_sub(hash::order(order));
        self.hash_sum = self.hash_sum.wrapping_add(delta);
        let node = &mut self.nodes[slot];
        node.remaining = remaining;
        node.executed = executed;
        let level = &mut self.levels[node.level];
        level.quantity = level.quantity.minus(order.remaining).plus(remaining);
    }

    fn leave_level(&mut self, slot: Slot<Node>, at: Slot<PriceLevel>, order: &RestingOrder) {
        let level = &mut self.levels[at];
        level.queue.unlink(&mut self.nodes, slot);
        level.orders -= 1;
        level.quantity = level.quantity.minus(order.remaining);
        if level.orders == 0 {
            assert!(level.quantity.is_zero(), "a level without orders has no shares");
            self.ladder_mut(order.side).remove(order.price);
            self.levels.remove(at);
        }
    }

    fn leave_account(&mut self, slot: Slot<Node>, at: Slot<Account>) {
        let account = &mut self.accounts[at];
        account.orders.unlink(&mut self.nodes, slot);
        if account.orders.front().is_none() {
            self.members.remove(u64::from(account.member.0));
            self.accounts.remove(at);
        }
    }

    fn level_at(&mut self, side: Side, price: Price) -> Slot<PriceLevel> {
        let empty = PriceLevel { price, side, quantity: Quantity::ZERO, orders: 0, queue: List::EMPTY };
        let levels = &mut self.levels;
        let ladder = match side {
            Side::Buy => &mut self.bids,
            Side::Sell => &mut self.offers,
        };
        ladder.get_or_insert_with(price, || levels.insert(empty))
    }

    fn account_of(&mut self, member: MemberId) -> Slot<Account> {
        if let Some(account) = self.members.get(u64::from(member.0)) {
            return account;
        }
        let account = self.accounts.insert(Account { member, orders: List::EMPTY });
        self.members.insert(u64::from(member.0), account);
        account
    }

    /// The nodes of a level, oldest first.
    pub(super) fn queue(&self, level: Slot<PriceLevel>) -> impl Iterator<Item = Slot<Node>> {
        let front = self.levels[level].queue.front();
        core::iter::successors(front, |&slot| List::<QUEUE>::after(&self.nodes, slot))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Priority;
    use pares_types::{ClientOrderId, RequestId};

    /// The `number`-th of a run of orders by five members at seven prices a side.
    fn order(number: u64) -> RestingOrder {
        RestingOrder {
            order: OrderId(RequestId::from_bits(number + 1).unwrap()),
            member: MemberId((number % 5) as u32),
            client_order_id: ClientOrderId(number),
            side: if number.is_multiple_of(2) { Side::Buy } else { Side::Sell },
            price: Price((number % 7) as i64),
            remaining: Quantity(number + 1),
            executed: Quantity::ZERO,
            priority: Priority(number),
        }
    }

    #[test]
    fn a_book_that_empties_keeps_nothing_of_what_it_held() {
        let mut store = Store::new(1_000);
        (0..100).for_each(|number| store.insert(&order(number)));
        assert_eq!((store.nodes.len(), store.levels.len(), store.accounts.len()), (100, 14, 5));
        for number in (0..100).map(|n| n * 37 % 100) {
            store.remove(store.find(order(number).order).unwrap(), &order(number));
        }
        assert_eq!((store.nodes.len(), store.levels.len(), store.accounts.len()), (0, 0, 0));
        assert_eq!(store.hash_sum, 0);
        assert_eq!(store.oldest_of(MemberId(1)), None);
    }
}
