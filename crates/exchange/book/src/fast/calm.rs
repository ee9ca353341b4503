//! The short way: plain orders in an instrument where nothing special happens.
//!
//! Most requests put an order on the book, take it off or move it, and none of docs/rules.md but a few lines of sections 2 to 4
//! concerns them. Here they touch what they must and nothing else. Whatever does not fit goes the long way, untouched; an
//! order that trades does so from the first resting order on that is not plain, or when its step is nearly spent.

use super::FastBook;
use super::incoming::Incoming;
use super::matching::fill;
use super::node::Node;
use super::terms::Terms;
use crate::hash;
use pares_table::SlabIndex;
use pares_types::{
    Amendment, CancelCause, Command, Event, EventSink, MemberId, NewOrder, OrderId, OrderKind, Outcome,
    Price, Quantity, Reason, Request, RequestId, SelfTrade, Side, Status, TimeInForce,
};

/// The outcome of an order that is not refused.
#[inline]
fn outcome(
    status: Status,
    reason: Reason,
    order: OrderId,
    executed: Quantity,
    remaining: Quantity,
) -> Outcome {
    Outcome { status, reason, order, executed, remaining }
}

impl FastBook {
    /// Applies a request the short way if it fits, the long way otherwise.
    #[inline(always)]
    pub(super) fn apply_calm(&mut self, request: &Request, sink: &mut impl EventSink) -> Outcome {
        match &request.command {
            Command::Enter(order) => self.enter_calm(request, order, sink),
            Command::Cancel { target } => self.cancel_calm(request, *target, sink),
            Command::Amend(amendment) => self.amend_calm(request, amendment, sink),
            _ => self.apply_any(request, sink),
        }
    }

    #[inline(always)]
    fn enter_calm(&mut self, request: &Request, order: &NewOrder, sink: &mut impl EventSink) -> Outcome {
        let OrderKind::Limit { price } = order.kind else { return self.apply_any(request, sink) };
        let wishes = u64::from(order.post_only) | order.self_trade as u64 | order.display.0 | order.minimum.0;
        let simple = matches!(order.time_in_force, TimeInForce::Day | TimeInForce::Ioc);
        let legal = self.is_legal_here(order.side, price, order.quantity) && request.id != RequestId::NONE;
        let fits = wishes == SelfTrade::Allow as u64 && order.trigger.is_none() && simple && legal;
        if !fits || self.store.nodes.len() >= self.orders_max as usize {
            return self.apply_any(request, sink);
        }
        if self.meets(order.side, price) {
            return self.trade_calm(request, order, price, sink);
        }
        self.end_calm(request, order, price, order.quantity, sink)
    }

    #[inline(always)]
    fn cancel_calm(&mut self, request: &Request, target: OrderId, sink: &mut impl EventSink) -> Outcome {
        let Some(slot) = self.own_plain(request.member, target) else { return self.apply_any(request, sink) };
        let Node { client_order_id, remaining: quantity, executed, rank, level, .. } = self.store.nodes[slot];
        let (side, price) = (rank.traits().side(), self.store.levels[level].price);
        let (order, member, cause) = (target, request.member, CancelCause::Requested);
        sink.event(Event::Cancelled { order, member, client_order_id, side, price, quantity, cause });
        self.store.remove_plain(slot);
        outcome(Status::Cancelled, Reason::Requested, target, executed, Quantity::ZERO)
    }

    /// A plain order of a member.
    #[inline(always)]
    fn own_plain(&self, member: MemberId, order: OrderId) -> Option<SlabIndex<Node>> {
        let slot = self.store.find(order)?;
        let is_own = self.store.member(slot) == member;
        (is_own && self.store.nodes[slot].rank.traits().is_plain()).then_some(slot)
    }

    /// An amend that moves an order to another place, or leaves it there with less.
    #[inline(always)]
    fn amend_calm(&mut self, request: &Request, wish: &Amendment, sink: &mut impl EventSink) -> Outcome {
        let member = request.member;
        let Some(slot) = self.own_plain(member, wish.target) else { return self.apply_any(request, sink) };
        let Node { order, client_order_id, remaining, executed, rank, level, .. } = self.store.nodes[slot];
        let side = rank.traits().side();
        let (price, total, total_before) = (wish.price, wish.quantity, executed.plus(remaining));
        let same_terms = wish.display.is_none() && wish.trigger.is_none() && wish.time_in_force.is_none();
        let price_before = self.store.levels[level].price;
        let keeps_place = price == price_before && total <= total_before;
        let legal = self.is_legal_here(side, price, total) && total > executed;
        let stays = keeps_place && total == total_before;
        if !same_terms || wish.reduces || !legal || stays || !keeps_place && self.meets(side, price) {
            return self.apply_any(request, sink);
        }
        let remaining = total.minus(executed);
        if total < total_before {
            let quantity = total_before.minus(total);
            sink.event(Event::Cancelled {
                order,
                member,
                client_order_id,
                side,
                price: price_before,
                quantity,
                cause: CancelCause::Reduced,
            });
            if keeps_place {
                self.store.reduce(slot, Quantity::ZERO, quantity);
                return outcome(Status::Resting, Reason::None, order, executed, remaining);
            }
        }
        let priority = self.next_priority();
        self.store.move_plain(
            slot,
            &hash::Plain { order, priority, member, side, client_order_id, price, remaining, executed },
        );
        outcome(Status::Resting, Reason::None, order, executed, remaining)
    }

    /// Whether price and quantity are certainly legal, as far as can be told in a few instructions.
    #[inline(always)]
    fn is_legal_here(&self, side: Side, price: Price, quantity: Quantity) -> bool {
        self.flat
            && self.store.ladder(side).numbering.is_legal(price)
            && quantity.0.wrapping_sub(1) < self.quantity_max
    }

    /// Whether a limit would trade at once.
    #[inline(always)]
    fn meets(&mut self, side: Side, limit: Price) -> bool {
        self.store.ladder_mut(side.opposite()).is_met(side, limit)
    }

    /// A plain order that meets another.
    #[inline(never)]
    fn trade_calm(
        &mut self,
        request: &Request,
        order: &NewOrder,
        limit: Price,
        sink: &mut impl EventSink,
    ) -> Outcome {
        let (other, step_max) = (order.side.opposite(), self.step_max);
        let (mut left, mut events) = (order.quantity, 0);
        while !left.is_zero() {
            let Some((price, level)) = self.store.ladder_mut(other).settle() else { break };
            if !order.side.crosses(limit, price) {
                break;
            }
            let orders_max = (step_max - 1).saturating_sub(events);
            let taken = self.store.take_plain(
                (other, level),
                &mut left,
                (orders_max, self.priority_next),
                |node, quantity| {
                    sink.event(fill(node, other, price, quantity));
                },
            );
            if taken == 0 {
                return self.trade_on(request, order, left, (events, sink));
            }
            events += taken;
            self.trading.last = Some(price);
        }
        self.end_calm(request, order, limit, left, sink)
    }

    /// What is left of a plain order stays, or is cancelled.
    #[inline(always)]
    fn end_calm(
        &mut self,
        request: &Request,
        order: &NewOrder,
        price: Price,
        remaining: Quantity,
        sink: &mut impl EventSink,
    ) -> Outcome {
        let (id, executed) = (OrderId(request.id), order.quantity.minus(remaining));
        let (member, client_order_id) = (request.member, request.client_order_id);
        if remaining.is_zero() {
            return outcome(Status::Filled, Reason::None, id, executed, remaining);
        }
        if matches!(order.time_in_force, TimeInForce::Ioc) {
            let (order, side, quantity, cause) = (id, order.side, remaining, CancelCause::Remainder);
            sink.event(Event::Cancelled { order, member, client_order_id, side, price, quantity, cause });
            return outcome(Status::Cancelled, Reason::NothingToTrade, id, executed, Quantity::ZERO);
        }
        let (side, priority) = (order.side, self.next_priority());
        let order = id;
        self.store.add_plain(&hash::Plain {
            order,
            priority,
            member,
            side,
            client_order_id,
            price,
            remaining,
            executed,
        });
        outcome(Status::Resting, Reason::None, id, executed, remaining)
    }

    /// The long way for what is left of an order that has traded so far, or not yet.
    #[cold]
    fn trade_on<S: EventSink>(
        &mut self,
        request: &Request,
        order: &NewOrder,
        left: Quantity,
        (events, sink): (u32, &mut S),
    ) -> Outcome {
        let mut step = self.step(request, sink);
        step.events = events;
        let entered = Incoming::entered(request, order);
        let terms = Terms { remaining: left, executed: order.quantity.minus(left), ..entered.terms };
        let mut incoming = Incoming::new(terms, None);
        let end = self.execute(&mut incoming, &mut step);
        let outcome = incoming.outcome(end);
        if self.trading.is_busy() {
            self.go_on(&mut step);
        }
        self.take_stock();
        outcome
    }
}
