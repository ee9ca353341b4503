//! All orders of a book, and every way to find them.
//!
//! ```text
//!   id --ids--> node <--queue--- level <--ladder--- best price, price
//!                |  \
//!         special    holdings of its member
//!                |
//!   side lists (held, stops, pegs, dates)
//! ```
//! An order is *created* (it has a node, an id, an owner), *attached* to the queue of a price or *held*,
//! *detached* again, and *discarded*. This module keeps the structures and the hash in step; it knows nothing of
//! matching.

use super::holdings::Holdings;
use super::ladder::Ladder;
use super::node::{Chain, List, Node, PriceLevel, Rank, Special, Traits};
use super::side_lists::SideLists;
use super::specials::Specials;
use super::terms::Terms;
use crate::{Instrument, Priority, RestingOrder, hash};
use pares_table::{IndexTable, Slab, SlabIndex};
use pares_types::{MemberId, OrderId, OrderKind, Price, Quantity, Side, Timestamp};

/// A book of so many orders or fewer grows as it fills; a larger one reserves its addresses at once, so that it
/// need never move a great many nodes in one step.
const GROWS: usize = 131_072;
/// Nodes reserved at once, at most: some 400 MB of addresses. The limit may be any number below 2^32, and comes with a
/// checkpoint; a book that really holds more moves its nodes a few times in its life.
const RESERVED_MAX: usize = 1 << 22;

/// Orders and levels for which there is room from the beginning, so that those of a thin book lie side by side on a page.
const FIRST: usize = 4;

/// Where a side's ladder is.
#[inline]
pub(super) fn index(side: Side) -> usize {
    (side as usize - 1) & 1
}

/// All orders.
#[derive(Clone, Debug)]
#[repr(C)] // in the order in which a plain order goes through it
pub(super) struct Store {
    /// Bids, offers.
    pub(super) ladders: [Ladder; 2],
    pub(super) ids: IndexTable,
    pub(super) nodes: Slab<Node>,
    pub(super) levels: Slab<PriceLevel>,
    /// Orders of a price.
    pub(super) queues: Chain,
    /// The wrapping sum of the hashes of all orders that are attached or held.
    pub(super) hash_sum: u64,
    /// Orders of a member; none kept as long as there were never many orders.
    pub(super) holdings: Option<Box<Holdings>>,
    pub(super) specials: Box<Specials>,
    pub(super) lists: Box<SideLists>,
}

impl Store {
    pub(super) fn new(instrument: &Instrument) -> Self {
        let orders_max = instrument.orders_max as usize;
        let reserved = if orders_max > GROWS { orders_max.min(RESERVED_MAX) } else { 0 };
        Self {
            nodes: Slab::with_capacity(reserved.max(FIRST)),
            queues: Chain::new(0, reserved.max(FIRST)),
            levels: Slab::with_capacity(FIRST),
            ladders: [Ladder::new(instrument, Side::Buy), Ladder::new(instrument, Side::Sell)],
            ids: IndexTable::new(),
            holdings: (reserved > 0).then(|| Box::new(Holdings::new(0, reserved))),
            specials: Box::new(Specials::new()),
            lists: Box::default(),
            hash_sum: 0,
        }
    }

    #[inline]
    pub(super) fn ladder(&self, side: Side) -> &Ladder {
        &self.ladders[index(side)]
    }

    #[inline]
    pub(super) fn ladder_mut(&mut self, side: Side) -> &mut Ladder {
        &mut self.ladders[index(side)]
    }

    #[inline(always)]
    pub(super) fn find(&self, order: OrderId) -> Option<SlabIndex<Node>> {
        self.ids.get(order.0.to_bits(), |slot: SlabIndex<Node>| self.nodes[slot].order == order)
    }

    /// The owner of an order.
    #[inline]
    pub(super) fn member(&self, slot: SlabIndex<Node>) -> MemberId {
        self.nodes[slot].member
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

    #[inline]
    pub(super) fn hash_of(&self, slot: SlabIndex<Node>) -> u64 {
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
            account: SlabIndex::NONE,
            member: terms.member,
        });
        if self.queues.lacks(slot) {
            self.queues.add();
            self.add_holding(slot);
        }
        let nodes = &self.nodes;
        self.ids.insert(terms.order.0.to_bits(), slot, |slot| nodes[slot].order.0.to_bits());
        self.belong(slot, terms.member);
        if let Some(special) = special {
            self.specials.add(slot, special);
        }
        slot
    }

    #[inline(always)]
    pub(super) fn forget(&mut self, slot: SlabIndex<Node>) {
        let Node { order, account, .. } = self.nodes[slot];
        self.ids.remove(order.0.to_bits(), slot);
        if let Some(holdings) = &mut self.holdings {
            holdings.remove(slot, account);
        }
        self.nodes.remove(slot);
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
    pub(super) fn drop_level(&mut self, side: Side, at: SlabIndex<PriceLevel>) {
        let PriceLevel { place, shown, hidden, .. } = self.levels[at];
        assert!(shown.is_zero() && hidden.is_zero(), "a level without orders has no shares");
        self.ladders[index(side)].remove(place);
        self.levels.remove(at);
    }

    /// Forgets a detached order.
    #[inline]
    pub(super) fn discard(&mut self, slot: SlabIndex<Node>) {
        if self.nodes[slot].rank.traits().is_special() {
            self.specials.remove(slot);
        }
        self.forget(slot);
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

    /// Adds an order to the hash and the side lists.
    #[inline]
    pub(super) fn note(&mut self, slot: SlabIndex<Node>) {
        let hash = self.hash_of(slot);
        self.nodes[slot].hash = hash;
        self.hash_sum = self.hash_sum.wrapping_add(hash);
        if self.nodes[slot].rank.traits().is_special() {
            let held = self.nodes[slot].level == SlabIndex::NONE;
            self.lists.add(&self.order(slot), held, slot);
        }
    }

    #[inline]
    pub(super) fn unnote(&mut self, slot: SlabIndex<Node>) {
        self.hash_sum = self.hash_sum.wrapping_sub(self.nodes[slot].hash);
        if self.nodes[slot].rank.traits().is_special() {
            let held = self.nodes[slot].level == SlabIndex::NONE;
            self.lists.remove(&self.order(slot), held);
        }
    }

    #[inline]
    pub(super) fn level_at(&mut self, side: Side, price: Price) -> SlabIndex<PriceLevel> {
        let ladder = &mut self.ladders[index(side)];
        let place = ladder.place(price);
        if let Some(level) = ladder.at(place) {
            return level;
        }
        if ladder.is_full() {
            let levels = &mut self.levels;
            ladder.spread(|level, place| levels[level].place = place);
            return self.level_at(side, price);
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

    /// The nodes of a level, oldest first.
    pub(super) fn queue(&self, level: SlabIndex<PriceLevel>) -> impl Iterator<Item = SlabIndex<Node>> {
        self.levels[level].queue.iter(&self.queues)
    }
}
