//! What continues by itself: what a step had to leave, stops and pegs (docs/rules.md, section 5).

use super::incoming::{End, Incoming};
use super::matching::rested_event;
use super::node::Node;
use super::terms::Terms;
use super::{FastBook, Step};
use crate::{RestingOrder, Unfinished};
use pares_table::SlabIndex;
use pares_types::{Event, EventSink, IncomingCause, OrderKind, Peg, Price, Quantity, RestCause, Side};

impl FastBook {
    /// Does what is under way to its end, then brings in elected stops and reprices pegs, until nothing is due or the step is full.
    #[cold]
    pub(super) fn go_on<S: EventSink>(&mut self, step: &mut Step<'_, S>) {
        while !step.is_full() {
            if let Some(unfinished) = self.trading.unfinished.take() {
                self.resume(&unfinished, step);
            } else if self.trading.transition.is_some() {
                self.continue_transition(step);
            } else if !self.is_continuous() {
                break;
            } else if let Some(slot) = self.first_elected() {
                self.trigger(slot, step);
            } else if let Some((slot, target)) = self.due_peg() {
                self.reprice(slot, target, step);
            } else {
                break;
            }
        }
    }

    /// Whether there is something to continue.
    pub(super) fn is_unsettled(&self) -> bool {
        self.trading.is_busy()
            || self.is_continuous() && (self.first_elected().is_some() || self.due_peg().is_some())
    }

    fn first_elected(&self) -> Option<SlabIndex<Node>> {
        self.store.lists.elected.first_key_value().map(|(_, slot)| *slot)
    }

    /// There was a trade at `price`: the stops that it reaches will come in, whatever follows.
    #[cold]
    pub(super) fn elect(&mut self, price: Price) {
        self.trading.last = Some(price);
        while let Some(slot) = self.store.lists.reached(price) {
            self.store.detach(slot);
            self.store.elect(slot);
            self.put_aside(slot);
        }
    }

    /// Holds a detached order; a stop whose trigger was reached before is elected at once.
    pub(super) fn put_aside(&mut self, slot: SlabIndex<Node>) {
        let trigger = self.store.special(slot).and_then(|special| special.trigger);
        let side = self.store.nodes[slot].rank.traits().side();
        if trigger.is_some_and(|trigger| self.trading.reaches(side, trigger)) {
            self.store.elect(slot);
        }
        let priority = self.next_priority();
        self.store.hold(slot, priority);
    }

    /// An order continues where the step before had to leave it.
    fn resume<S: EventSink>(&mut self, unfinished: &Unfinished, step: &mut Step<'_, S>) {
        let Unfinished { order, limit, gathers, begun, .. } = *unfinished;
        let incoming =
            Incoming { limit, gathers, begun: Some(begun), ..Incoming::new(Terms::of(&order), None) };
        step.emit(incoming_event(&order, incoming.price(), IncomingCause::Continued));
        self.execute_settled(incoming, RestCause::Continued, step);
    }

    fn trigger<S: EventSink>(&mut self, slot: SlabIndex<Node>, step: &mut Step<'_, S>) {
        let order = self.store.order(slot);
        let price = Self::limit_of(order.kind).unwrap_or_default();
        self.come_in(slot, &order, price, IncomingCause::Triggered, step);
        let terms = Terms { trigger: None, elected: false, ..Terms::of(&order) };
        self.execute_settled(Incoming::new(terms, Some(slot)), RestCause::Triggered, step);
    }

    fn reprice<S: EventSink>(
        &mut self,
        slot: SlabIndex<Node>,
        target: Option<Price>,
        step: &mut Step<'_, S>,
    ) {
        let Some(price) = target else {
            return self.withdraw(slot, step);
        };
        let order = self.store.order(slot);
        self.come_in(slot, &order, price, IncomingCause::Repriced, step);
        let incoming = Incoming { limit: price, ..Incoming::new(Terms::of(&order), Some(slot)) };
        self.execute_settled(incoming, RestCause::Repriced, step);
    }

    /// Takes an order off its place to be the incoming one.
    fn come_in<S: EventSink>(
        &mut self,
        slot: SlabIndex<Node>,
        order: &RestingOrder,
        price: Price,
        cause: IncomingCause,
        step: &mut Step<'_, S>,
    ) {
        step.emit(incoming_event(order, price, cause));
        self.store.detach(slot);
    }

    /// Executes an order that is not the request's own, and reports its rest. A breach begins the call only
    /// after that.
    pub(super) fn execute_settled<S: EventSink>(
        &mut self,
        mut incoming: Incoming,
        cause: RestCause,
        step: &mut Step<'_, S>,
    ) {
        step.reports_rest = Some(cause);
        let end = self.execute(&mut incoming, step);
        step.reports_rest = None;
        assert!(end != End::Rests || incoming.node.is_some(), "an order that rests has a node");
    }

    /// The first pegged order whose target is not where it is, and the target.
    fn due_peg(&self) -> Option<(SlabIndex<Node>, Option<Price>)> {
        if self.store.lists.pegs.is_empty() {
            return None;
        }
        let best = [self.best_unpegged(Side::Buy), self.best_unpegged(Side::Sell)];
        self.store.lists.pegs.values().find_map(|&slot| {
            let order = self.store.order(slot);
            let target = self.target(&order, best);
            let place = (!order.is_held()).then_some(order.price);
            (target != place).then_some((slot, target))
        })
    }

    /// The best price of a side at which an order rests that is not pegged.
    fn best_unpegged(&self, side: Side) -> Option<Price> {
        let pegs = &self.store.lists.pegs;
        for level in self.store.ladder(side).best_first() {
            let pegged = pegs.values().filter(|&&slot| self.store.nodes[slot].level == level).count();
            if (self.store.levels[level].orders as usize) > pegged {
                return Some(self.store.levels[level].price);
            }
        }
        None
    }

    fn target(&self, order: &RestingOrder, [bid, offer]: [Option<Price>; 2]) -> Option<Price> {
        let OrderKind::Pegged { to, limit } = order.kind else {
            unreachable!("on the list of pegged orders")
        };
        let follow = match (to, order.side) {
            (Peg::Best, Side::Buy) => bid?,
            (Peg::Best, Side::Sell) => offer?,
            (Peg::Mid, side) => self.middle(bid?, offer?, side),
        };
        Some(match order.side {
            Side::Buy => follow.min(limit),
            Side::Sell => follow.max(limit),
        })
    }

    fn middle(&self, bid: Price, offer: Price, side: Side) -> Price {
        let sum = i128::from(bid.0) + i128::from(offer.0);
        let half = |sum: i128| Price(i64::try_from(sum).expect("between two prices"));
        match side {
            Side::Buy => self.instrument.ticks.round_down(half(sum.div_euclid(2))),
            Side::Sell => self.instrument.ticks.round_up(half((sum + 1).div_euclid(2))),
        }
    }

    /// Takes a pegged order off the book until there is a price to follow.
    fn withdraw<S: EventSink>(&mut self, slot: SlabIndex<Node>, step: &mut Step<'_, S>) {
        let order = self.store.order(slot);
        let withdrawn = RestingOrder { shown: Quantity::ZERO, ..order };
        step.emit(rested_event(&withdrawn, RestCause::Withdrawn));
        self.store.detach(slot);
        self.put_aside(slot);
    }

    /// Continuous ends: no pegged order stays on the book.
    pub(super) fn withdraw_all<S: EventSink>(&mut self, step: &mut Step<'_, S>) {
        let pegs: Vec<SlabIndex<Node>> = self.store.lists.pegs.values().copied().collect();
        for slot in pegs {
            if self.store.nodes[slot].level != SlabIndex::NONE {
                self.withdraw(slot, step);
            }
        }
    }
}

pub(super) fn incoming_event(order: &RestingOrder, price: Price, cause: IncomingCause) -> Event {
    Event::Incoming {
        order: order.order,
        member: order.member,
        client_order_id: order.client_order_id,
        side: order.side,
        price,
        quantity: order.remaining,
        cause,
    }
}
