//! Which orders a member has.
//!
//! Each order is in its member's list, so that a mass cancel costs what it cancels and not what the book holds. The member's
//! account is found by a table, and for most orders without it: accounts are remembered by the lowest bits of the member's number.
//! Four lines of memory for each order that comes, though, are a lot in a book of ten orders among ten thousand such books; there, looking at
//! all ten is cheaper than knowing. So a book keeps this only once there were more than [`SEARCHED`].

use super::ladder::Ladder;
use super::node::{Account, Chain, List, Node};
use super::store::Store;
use pares_table::{IndexTable, Slab, SlabIndex};
use pares_types::MemberId;

/// Orders of a book that are looked through for those of a member.
const SEARCHED: usize = 16;

/// Accounts remembered; a power of two.
const REMEMBERED: usize = 128;

/// The orders of all members.
#[derive(Clone, Debug)]
pub(super) struct Holdings {
    chain: Chain,
    accounts: Slab<Account>,
    /// Accounts by member.
    members: IndexTable,
    /// Accounts by the lowest bits of the member's number.
    remembered: [SlabIndex<Account>; REMEMBERED],
}

impl Holdings {
    /// No orders, beside so many nodes, with room for those of `capacity`.
    pub(super) fn new(nodes: usize, capacity: usize) -> Self {
        Self {
            chain: Chain::new(nodes, capacity),
            accounts: Slab::with_capacity(0),
            members: IndexTable::new(),
            remembered: [SlabIndex::NONE; REMEMBERED],
        }
    }

    /// Adds an order of a member; says which account it is in.
    #[inline(always)]
    pub(super) fn add(&mut self, slot: SlabIndex<Node>, member: MemberId) -> SlabIndex<Account> {
        let account = self.account_of(member);
        self.accounts[account].orders.push_back(&mut self.chain, slot);
        account
    }

    /// Takes an order out of its account, which stays: there are few members, and they come back.
    #[inline(always)]
    pub(super) fn remove(&mut self, slot: SlabIndex<Node>, account: SlabIndex<Account>) {
        let links = *self.chain.at(slot);
        self.accounts[account].orders.unlink(&mut self.chain, links);
    }

    pub(super) fn of(&self, member: MemberId) -> impl Iterator<Item = SlabIndex<Node>> + '_ {
        let account = self.account(member).map(|account| self.accounts[account].orders);
        account.unwrap_or(List::EMPTY).iter(&self.chain)
    }

    fn account(&self, member: MemberId) -> Option<SlabIndex<Account>> {
        self.members.get(u64::from(member.0), |slot: SlabIndex<Account>| self.accounts[slot].member == member)
    }

    /// The account of a member, a new one if need be.
    #[inline(always)]
    fn account_of(&mut self, member: MemberId) -> SlabIndex<Account> {
        let account = self.remembered[member.0 as usize % REMEMBERED];
        let is_it = self.accounts.get(account).is_some_and(|account| account.member == member);
        if is_it { account } else { self.recall(member) }
    }

    #[inline(never)]
    fn recall(&mut self, member: MemberId) -> SlabIndex<Account> {
        let account = self.account(member).unwrap_or_else(|| self.add_account(member));
        self.remembered[member.0 as usize % REMEMBERED] = account;
        account
    }

    fn add_account(&mut self, member: MemberId) -> SlabIndex<Account> {
        let account = self.accounts.insert(Account { member, orders: List::EMPTY });
        let accounts = &self.accounts;
        self.members.insert(u64::from(member.0), account, |slot| u64::from(accounts[slot].member.0));
        account
    }
}

impl Store {
    /// Sees to it that the next order moves no others.
    pub(super) fn make_room(&mut self) {
        self.nodes.make_room();
        self.queues.make_room();
        self.levels.make_room();
        self.ladders.iter_mut().for_each(Ladder::make_room);
        self.holdings.iter_mut().for_each(|holdings| holdings.chain.make_room());
    }

    /// Makes room for a node in a new place. It is not among the orders yet.
    #[inline(always)]
    pub(super) fn add_holding(&mut self, slot: SlabIndex<Node>) {
        match &mut self.holdings {
            Some(holdings) => holdings.chain.add(),
            None if slot.number() as usize == SEARCHED => self.keep_holdings(),
            None => {}
        }
    }

    /// From now on it is known which orders a member has.
    #[cold]
    fn keep_holdings(&mut self) {
        let mut holdings = Box::new(Holdings::new(SEARCHED + 1, 0));
        for slot in self.ids.slots() {
            let node: &mut Node = &mut self.nodes[slot];
            node.account = holdings.add(slot, node.member);
        }
        self.holdings = Some(holdings);
    }

    /// A new order joins its member's others.
    #[inline(always)]
    pub(super) fn belong(&mut self, slot: SlabIndex<Node>, member: MemberId) {
        if let Some(holdings) = &mut self.holdings {
            self.nodes[slot].account = holdings.add(slot, member);
        }
    }

    pub(super) fn orders_of(&self, member: MemberId) -> impl Iterator<Item = SlabIndex<Node>> + '_ {
        let searched = if self.holdings.is_none() { Some(self.ids.slots()) } else { None };
        let is_own = move |slot: &SlabIndex<Node>| self.nodes[*slot].member == member;
        let kept = self.holdings.iter().flat_map(move |holdings| holdings.of(member));
        kept.chain(searched.into_iter().flatten().filter(is_own))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Instrument, Priority, Symbol, hash};
    use pares_types::{ClientOrderId, GatewayId, InstrumentId, OrderId, Price, Quantity, RequestId, Side};

    /// Orders come and go while there are few, and while there are many.
    #[test]
    fn a_member_has_its_orders_however_many_there_are() {
        let instrument = Instrument::listed(InstrumentId(1), Symbol::new("X").unwrap());
        let mut store = Store::new(&instrument);
        for number in 1..=4 * SEARCHED as u64 {
            let order = OrderId(RequestId::new(GatewayId(1), number));
            store.add_plain(&hash::Plain {
                order,
                priority: Priority(number),
                member: MemberId(number as u32 % 3),
                side: Side::Buy,
                client_order_id: ClientOrderId(number),
                price: Price(100 * number.cast_signed()),
                remaining: Quantity(1),
                executed: Quantity::ZERO,
            });
            if number % 5 == 0 {
                store.remove_plain(store.find(order).unwrap());
            }
            let mut own: Vec<u64> =
                store.orders_of(MemberId(1)).map(|slot| store.nodes[slot].order.0.sequence()).collect();
            own.sort_unstable();
            assert_eq!(own, Vec::from_iter((1..=number).filter(|n| n % 3 == 1 && n % 5 != 0)));
        }
        assert!(store.holdings.is_some());
    }
}
