//! All orders of a book, and every way to find them.
//!
//! ```text
//!   id --ids--> node <--queue--- level <--ladder--- best price, price
//!                |  \
//!         special    member list
//!                |    \
//!   side lists (held, stops, pegs, dates)   account <--members-- member id
//! ```
//! An order is *created* (it has a node, an id, an owner), *attached* to the queue of a price or *held*,
//! *detached* again, and *discarded*. This module keeps the structures and the hash in step; it knows nothing of
//! matching.

use super::ladder::Ladder;
use super::node::{Account, Chain, List, Node, PriceLevel, Rank, Special, Traits};
use super::side_lists::SideLists;
use crate::{Instrument, Priority, RestingOrder, hash};
use pares_table::IndexTable;
use pares_table::{Slab, SlabIndex};
use pares_types::{
    ClientOrderId, MemberId, OrderId, OrderKind, Price, Quantity, SelfTrade, Side, TimeInForce, Timestamp,
};

/// A book of so many orders or fewer grows as it fills; a larger one reserves its addresses at once, so that it
/// need never move a great many nodes in one step.
const GROWS: usize = 131_072;
/// Nodes reserved at once, at most: some 400 MB of addresses. The limit may be any number below 2^32, and comes with a
/// checkpoint; a book that really holds more moves its nodes a few times in its life.
const RESERVED_MAX: usize = 1 << 22;

/// Accounts remembered; a power of two.
const REMEMBERED: usize = 128;

/// Where a side's ladder is.
#[inline]
fn index(side: Side) -> usize {
    (side as usize - 1) & 1
}

/// What an order is, apart from its place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Terms {
    pub(super) order: OrderId,
    pub(super) member: MemberId,
    pub(super) client_order_id: ClientOrderId,
    pub(super) side: Side,
    pub(super) kind: OrderKind,
    pub(super) remaining: Quantity,
    pub(super) executed: Quantity,
    pub(super) display: Quantity,
    pub(super) time_in_force: TimeInForce,
    pub(super) self_trade: SelfTrade,
    pub(super) trigger: Option<Price>,
    pub(super) elected: bool,
    pub(super) post_only: bool,
}

impl Terms {
    /// What it has beyond a node's fields, if anything.
    #[inline]
    fn special(&self) -> Option<Special> {
        let plain_stay = matches!(self.time_in_force, TimeInForce::Day | TimeInForce::Gtc);
        if matches!(self.kind, OrderKind::Limit { .. })
            && plain_stay
            && self.display.is_zero()
            && self.trigger.is_none()
        {
            return None;
        }
        let until = match self.time_in_force {
            TimeInForce::Gtd { until } => until,
            _ => Timestamp::NEVER,
        };
        let Self { kind, display, trigger, elected, .. } = *self;
        Some(Special { kind, display, hidden: Quantity::ZERO, until, trigger, elected })
    }
}

/// What few orders have, found by the number of the order's node.
#[derive(Clone, Debug)]
struct Specials {
    values: Slab<Special>,
    places: IndexTable,
    /// The node of each, by the number of its place.
    owners: Vec<SlabIndex<Node>>,
}

impl Specials {
    fn place(&self, node: SlabIndex<Node>) -> SlabIndex<Special> {
        let owner = |special: SlabIndex<Special>| self.owners[special.number() as usize] == node;
        self.places.get(u64::from(node.number()), owner).expect("a special order has its special")
    }

    fn get(&self, node: SlabIndex<Node>) -> &Special {
        &self.values[self.place(node)]
    }

    fn get_mut(&mut self, node: SlabIndex<Node>) -> &mut Special {
        let place = self.place(node);
        &mut self.values[place]
    }

    fn add(&mut self, node: SlabIndex<Node>, special: Special) {
        let place = self.values.insert(special);
        let number = place.number() as usize;
        if number == self.owners.len() {
            self.owners.push(node);
        }
        self.owners[number] = node;
        let owners = &self.owners;
        self.places.insert(u64::from(node.number()), place, |special| {
            u64::from(owners[special.number() as usize].number())
        });
    }

    fn remove(&mut self, node: SlabIndex<Node>) {
        let place = self.place(node);
        self.places.remove(u64::from(node.number()), place);
        self.values.remove(place);
    }
}

/// All orders.
#[derive(Clone, Debug)]
pub(super) struct Store {
    pub(super) nodes: Slab<Node>,
    /// Orders of a price.
    queues: Chain,
    /// Orders of a member.
    pub(super) holdings: Chain,
    pub(super) levels: Slab<PriceLevel>,
    pub(super) accounts: Slab<Account>,
    /// Bids, offers.
    ladders: [Ladder; 2],
    ids: IndexTable,
    members: IndexTable,
    /// Accounts by the lowest bits of the member's number; empty as long as there never was one.
    remembered: Vec<SlabIndex<Account>>,
    specials: Box<Specials>,
    pub(super) lists: Box<SideLists>,
    /// The wrapping sum of the hashes of all orders that are attached or held.
    pub(super) hash_sum: u64,
}

impl Store {
    /// No orders.
    pub(super) fn new(instrument: &Instrument) -> Self {
        let orders_max = instrument.orders_max as usize;
        let reserved = if orders_max > GROWS { orders_max.min(RESERVED_MAX) } else { 0 };
        Self {
            nodes: Slab::with_capacity(reserved),
            queues: Chain::with_capacity(reserved),
            holdings: Chain::with_capacity(reserved),
            levels: Slab::with_capacity(0),
            accounts: Slab::with_capacity(0),
            ladders: [Ladder::new(instrument, Side::Buy), Ladder::new(instrument, Side::Sell)],
            ids: IndexTable::new(),
            members: IndexTable::new(),
            remembered: Vec::new(),
            specials: Box::new(Specials {
                values: Slab::with_capacity(0),
                places: IndexTable::new(),
                owners: Vec::new(),
            }),
            lists: Box::default(),
            hash_sum: 0,
        }
    }

    /// Sees to it that the next order moves no others.
    #[inline]
    pub(super) fn make_room(&mut self) {
        self.nodes.make_room();
        self.queues.make_room();
        self.holdings.make_room();
    }

    #[inline]
    pub(super) fn ladder(&self, side: Side) -> &Ladder {
        &self.ladders[index(side)]
    }

    #[inline]
    pub(super) fn ladder_mut(&mut self, side: Side) -> &mut Ladder {
        &mut self.ladders[index(side)]
    }

    /// The node of an order.
    #[inline(always)]
    pub(super) fn find(&self, order: OrderId) -> Option<SlabIndex<Node>> {
        self.ids.get(order.0.to_bits(), |slot: SlabIndex<Node>| self.nodes[slot].order == order)
    }

    /// The owner of an order.
    #[inline]
    pub(super) fn member(&self, slot: SlabIndex<Node>) -> MemberId {
        self.nodes[slot].member
    }

    /// The account of a member with orders.
    #[inline]
    pub(super) fn account(&self, member: MemberId) -> Option<SlabIndex<Account>> {
        self.members.get(u64::from(member.0), |slot: SlabIndex<Account>| self.accounts[slot].member == member)
    }

    /// What is particular about an order, if its traits say that there is something.
    pub(super) fn special(&self, slot: SlabIndex<Node>) -> Option<&Special> {
        if !self.nodes[slot].rank.traits().is_special() {
            return None;
        }
        Some(self.specials.get(slot))
    }

    /// Shares of an order that trade in its turn; of a held one, all that would.
    #[inline]
    pub(super) fn shown(&self, slot: SlabIndex<Node>) -> Quantity {
        let remaining = self.nodes[slot].remaining;
        self.special(slot).map_or(remaining, |special| remaining.minus(special.hidden))
    }

    /// The order of a node.
    pub(super) fn order(&self, slot: SlabIndex<Node>) -> RestingOrder {
        let node = &self.nodes[slot];
        let traits = node.rank.traits();
        let held = node.level == SlabIndex::NONE;
        let price = if held { Price(0) } else { self.levels[node.level].price };
        let plain = Special {
            kind: OrderKind::Limit { price },
            display: Quantity::ZERO,
            hidden: Quantity::ZERO,
            until: Timestamp::NEVER,
            trigger: None,
            elected: false,
        };
        let special = self.special(slot).copied().unwrap_or(plain);
        RestingOrder {
            order: node.order,
            member: node.member,
            client_order_id: node.client_order_id,
            side: traits.side(),
            kind: special.kind,
            price,
            remaining: node.remaining,
            shown: if held { Quantity::ZERO } else { node.remaining.minus(special.hidden) },
            executed: node.executed,
            display: special.display,
            time_in_force: traits.time_in_force(special.until),
            self_trade: traits.self_trade(),
            trigger: special.trigger,
            elected: special.elected,
            post_only: traits.is_post_only(),
            priority: node.rank.priority(),
        }
    }

    /// The hash of an order where it is.
    #[inline]
    fn hash_of(&self, slot: SlabIndex<Node>) -> u64 {
        let node = &self.nodes[slot];
        if !node.rank.traits().is_plain() {
            return hash::order(&self.order(slot));
        }
        hash::plain(&hash::Plain {
            order: node.order,
            priority: node.rank.priority(),
            member: node.member,
            side: node.rank.traits().side(),
            client_order_id: node.client_order_id,
            price: self.levels[node.level].price,
            remaining: node.remaining,
            executed: node.executed,
        })
    }

    /// Creates an order: neither on the book nor held yet.
    #[inline]
    pub(super) fn create(&mut self, terms: &Terms) -> SlabIndex<Node> {
        let account = self.account_of(terms.member);
        let special = terms.special();
        let traits = Traits::new(terms, special.is_some());
        let slot = self.nodes.insert(Node {
            order: terms.order,
            client_order_id: terms.client_order_id,
            remaining: terms.remaining,
            executed: terms.executed,
            rank: Rank::new(Priority(0), traits),
            hash: 0,
            level: SlabIndex::NONE,
            account,
            member: terms.member,
        });
        self.queues.add(slot);
        self.holdings.add(slot);
        let nodes = &self.nodes;
        self.ids.insert(terms.order.0.to_bits(), slot, |slot| nodes[slot].order.0.to_bits());
        self.accounts[account].orders.push_back(&mut self.holdings, slot);
        if let Some(special) = special {
            self.specials.add(slot, special);
        }
        slot
    }

    /// Creates a plain order and puts it behind all others at its price.
    #[inline(always)]
    pub(super) fn add_plain(&mut self, order: &hash::Plain) {
        let account = self.account_of(order.member);
        let (level, hash) = (self.level_at(order.side, order.price), hash::plain(order));
        let slot = self.nodes.insert(Node {
            order: order.order,
            client_order_id: order.client_order_id,
            remaining: order.remaining,
            executed: order.executed,
            rank: Rank::new(order.priority, Traits::plain(order.side)),
            hash,
            level,
            account,
            member: order.member,
        });
        self.queues.add(slot);
        self.holdings.add(slot);
        let nodes = &self.nodes;
        self.ids.insert(order.order.0.to_bits(), slot, |slot| nodes[slot].order.0.to_bits());
        self.accounts[account].orders.push_back(&mut self.holdings, slot);
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
        self.forget_plain(slot);
    }

    #[inline(always)]
    fn forget_plain(&mut self, slot: SlabIndex<Node>) {
        let Node { order, account, .. } = self.nodes[slot];
        let links = *self.holdings.at(slot);
        self.ids.remove(order.0.to_bits(), slot);
        self.accounts[account].orders.unlink(&mut self.holdings, links);
        self.nodes.remove(slot);
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
            self.forget_plain(slot);
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

    /// Takes an order off the book, or off the held ones, and forgets it.
    #[inline]
    pub(super) fn remove(&mut self, slot: SlabIndex<Node>) {
        if self.nodes[slot].rank.traits().is_plain() {
            return self.remove_plain(slot);
        }
        self.detach(slot);
        self.discard(slot);
    }

    /// Gives a detached order new terms. Its id, owner and side stay.
    pub(super) fn set_terms(&mut self, slot: SlabIndex<Node>, terms: &Terms) {
        if self.nodes[slot].rank.traits().is_special() {
            self.specials.remove(slot);
        }
        let special = terms.special();
        let traits = Traits::new(terms, special.is_some());
        let node = &mut self.nodes[slot];
        node.remaining = terms.remaining;
        node.executed = terms.executed;
        node.rank = Rank::new(node.rank.priority(), traits);
        if let Some(special) = special {
            self.specials.add(slot, special);
        }
    }

    /// Puts a detached order behind all others at a price.
    #[inline]
    pub(super) fn attach(&mut self, slot: SlabIndex<Node>, price: Price, priority: Priority) {
        let remaining = self.nodes[slot].remaining;
        let special = self.nodes[slot].rank.traits().is_special();
        let shown = if special { self.show(slot) } else { remaining };
        self.enqueue(slot, price, priority, shown);
    }

    /// The same, showing so much as it did when it was kept in a snapshot.
    pub(super) fn attach_showing(
        &mut self,
        slot: SlabIndex<Node>,
        price: Price,
        priority: Priority,
        shown: Quantity,
    ) {
        if self.nodes[slot].rank.traits().is_special() {
            self.specials.get_mut(slot).hidden = self.nodes[slot].remaining.minus(shown);
        }
        self.enqueue(slot, price, priority, shown);
    }

    #[inline]
    fn enqueue(&mut self, slot: SlabIndex<Node>, price: Price, priority: Priority, shown: Quantity) {
        let traits = self.nodes[slot].rank.traits();
        let level = self.level_at(traits.side(), price);
        let node = &mut self.nodes[slot];
        node.rank = Rank::new(priority, traits);
        node.level = level;
        let hidden = node.remaining.minus(shown);
        let level = &mut self.levels[level];
        level.queue.push_back(&mut self.queues, slot);
        level.orders += 1;
        level.shown = level.shown.plus(shown);
        level.hidden = level.hidden.plus(hidden);
        self.note(slot);
    }

    /// Holds a detached order.
    pub(super) fn hold(&mut self, slot: SlabIndex<Node>, priority: Priority) {
        let node = &mut self.nodes[slot];
        node.rank = Rank::new(priority, node.rank.traits());
        node.level = SlabIndex::NONE;
        assert!(node.rank.traits().is_special(), "a held order has no level to tell its price");
        self.specials.get_mut(slot).hidden = Quantity::ZERO;
        self.note(slot);
    }

    /// Takes an order off the book, or off the held ones.
    #[inline]
    pub(super) fn detach(&mut self, slot: SlabIndex<Node>) {
        self.unnote(slot);
        let at = self.nodes[slot].level;
        if at == SlabIndex::NONE {
            return;
        }
        let shown = self.shown(slot);
        let hidden = self.nodes[slot].remaining.minus(shown);
        let (rank, links) = (self.nodes[slot].rank, *self.queues.at(slot));
        let side = rank.traits().side();
        let level = &mut self.levels[at];
        level.queue.unlink(&mut self.queues, links);
        level.orders -= 1;
        level.shown = level.shown.minus(shown);
        level.hidden = level.hidden.minus(hidden);
        if level.orders == 0 {
            self.drop_level(side, at);
        }
        self.nodes[slot].level = SlabIndex::NONE;
    }

    #[inline(never)]
    fn drop_level(&mut self, side: Side, at: SlabIndex<PriceLevel>) {
        let PriceLevel { place, shown, hidden, .. } = self.levels[at];
        assert!(shown.is_zero() && hidden.is_zero(), "a level without orders has no shares");
        self.ladders[index(side)].remove(place);
        self.levels.remove(at);
    }

    /// Forgets a detached order.
    #[inline]
    pub(super) fn discard(&mut self, slot: SlabIndex<Node>) {
        let Node { order, account: at, .. } = self.nodes[slot];
        self.ids.remove(order.0.to_bits(), slot);
        if self.nodes[slot].rank.traits().is_special() {
            self.specials.remove(slot);
        }
        // The account stays: there are few members, and they come back.
        let links = *self.holdings.at(slot);
        self.accounts[at].orders.unlink(&mut self.holdings, links);
        self.nodes.remove(slot);
    }

    /// Takes `executed + lost` shares off an attached or held order that keeps some: shown ones first if they were
    /// `executed`, hidden ones first if they are lost otherwise.
    #[inline]
    pub(super) fn reduce(&mut self, slot: SlabIndex<Node>, executed: Quantity, lost: Quantity) {
        let hash_before = self.nodes[slot].hash;
        let mut hidden_lost = Quantity::ZERO;
        if self.nodes[slot].rank.traits().is_special() {
            let special = self.specials.get_mut(slot);
            hidden_lost = special.hidden.min(lost);
            special.hidden = special.hidden.minus(hidden_lost);
        }
        let node = &mut self.nodes[slot];
        node.remaining = node.remaining.minus(executed).minus(lost);
        node.executed = node.executed.plus(executed);
        let at = node.level;
        if at != SlabIndex::NONE {
            let level = &mut self.levels[at];
            level.hidden = level.hidden.minus(hidden_lost);
            level.shown = level.shown.minus(executed).minus(lost.minus(hidden_lost));
        }
        let hash = self.hash_of(slot);
        self.nodes[slot].hash = hash;
        self.hash_sum = self.hash_sum.wrapping_sub(hash_before).wrapping_add(hash);
    }

    /// Changes how long an attached or held order stays and what it shows at most.
    pub(super) fn change_in_place(
        &mut self,
        slot: SlabIndex<Node>,
        time_in_force: TimeInForce,
        display: Quantity,
    ) {
        let order = self.order(slot);
        self.unnote(slot);
        let hidden = self.special(slot).map_or(Quantity::ZERO, |special| special.hidden);
        let terms = Terms { time_in_force, display, ..Terms::of(&order) };
        self.set_terms(slot, &terms);
        if self.nodes[slot].rank.traits().is_special() {
            self.specials.get_mut(slot).hidden = hidden;
        }
        self.hide(slot);
        self.note(slot);
    }

    /// An order on the book that shows more than it is to show hides the rest.
    fn hide(&mut self, slot: SlabIndex<Node>) {
        let (shown, at) = (self.shown(slot), self.nodes[slot].level);
        let display = self.special(slot).map_or(Quantity::ZERO, |special| special.display);
        if display.is_zero() || shown <= display || at == SlabIndex::NONE {
            return;
        }
        let more = shown.minus(display);
        let special = self.specials.get_mut(slot);
        special.hidden = special.hidden.plus(more);
        let level = &mut self.levels[at];
        (level.shown, level.hidden) = (level.shown.minus(more), level.hidden.plus(more));
    }

    /// Adds an order to the hash and the side lists.
    #[inline]
    fn note(&mut self, slot: SlabIndex<Node>) {
        let hash = self.hash_of(slot);
        self.nodes[slot].hash = hash;
        self.hash_sum = self.hash_sum.wrapping_add(hash);
        if self.nodes[slot].rank.traits().is_special() {
            let held = self.nodes[slot].level == SlabIndex::NONE;
            self.lists.add(&self.order(slot), held, slot);
        }
    }

    #[inline]
    fn unnote(&mut self, slot: SlabIndex<Node>) {
        self.hash_sum = self.hash_sum.wrapping_sub(self.nodes[slot].hash);
        if self.nodes[slot].rank.traits().is_special() {
            let held = self.nodes[slot].level == SlabIndex::NONE;
            self.lists.remove(&self.order(slot), held);
        }
    }

    /// A detached stop order's trigger is reached.
    pub(super) fn elect(&mut self, slot: SlabIndex<Node>) {
        self.specials.get_mut(slot).elected = true;
    }

    /// Shows as much of a special order as it wants to; says how much that is.
    fn show(&mut self, slot: SlabIndex<Node>) -> Quantity {
        let remaining = self.nodes[slot].remaining;
        let special = self.specials.get_mut(slot);
        let shown = if special.display.is_zero() { remaining } else { special.display.min(remaining) };
        special.hidden = remaining.minus(shown);
        shown
    }

    #[inline]
    fn level_at(&mut self, side: Side, price: Price) -> SlabIndex<PriceLevel> {
        let ladder = &mut self.ladders[index(side)];
        let place = ladder.place(price);
        if let Some(level) = ladder.at(place) {
            return level;
        }
        let level = self.levels.insert(PriceLevel {
            price,
            place,
            shown: Quantity::ZERO,
            hidden: Quantity::ZERO,
            orders: 0,
            queue: List::EMPTY,
        });
        ladder.insert(place, price, level);
        level
    }

    /// The account of a member, a new one if need be.
    #[inline(always)]
    fn account_of(&mut self, member: MemberId) -> SlabIndex<Account> {
        let account = self.remembered.get(member.0 as usize % REMEMBERED).copied();
        let is_it = |slot: &SlabIndex<Account>| {
            self.accounts.get(*slot).is_some_and(|account| account.member == member)
        };
        account.filter(is_it).unwrap_or_else(|| self.recall(member))
    }

    #[inline(never)]
    fn recall(&mut self, member: MemberId) -> SlabIndex<Account> {
        let account = self.account(member).unwrap_or_else(|| self.add_account(member));
        self.remembered.resize(REMEMBERED, SlabIndex::NONE);
        self.remembered[member.0 as usize % REMEMBERED] = account;
        account
    }

    fn add_account(&mut self, member: MemberId) -> SlabIndex<Account> {
        let account = self.accounts.insert(Account { member, orders: List::EMPTY });
        let accounts = &self.accounts;
        self.members.insert(u64::from(member.0), account, |slot| u64::from(accounts[slot].member.0));
        account
    }

    /// The nodes of a level, oldest first.
    pub(super) fn queue(&self, level: SlabIndex<PriceLevel>) -> impl Iterator<Item = SlabIndex<Node>> {
        self.levels[level].queue.iter(&self.queues)
    }
}

impl Terms {
    /// The terms of an order that is there.
    pub(super) fn of(order: &RestingOrder) -> Self {
        Self {
            order: order.order,
            member: order.member,
            client_order_id: order.client_order_id,
            side: order.side,
            kind: order.kind,
            remaining: order.remaining,
            executed: order.executed,
            display: order.display,
            time_in_force: order.time_in_force,
            self_trade: order.self_trade,
            trigger: order.trigger,
            elected: order.elected,
            post_only: order.post_only,
        }
    }
}
