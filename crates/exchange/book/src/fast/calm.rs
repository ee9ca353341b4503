//! The short way: plain orders that meet nothing, in an instrument where nothing special goes on.
//!
//! Most requests put an order on the book, take it off or move it, and none of docs/rules.md but a few lines of sections 3 and 4
//! concerns them. Here they touch what they must and nothing else. Whatever does not fit goes the long way, untouched.

use super::FastBook;
use super::node::Node;
use crate::hash;
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
    /// Applies a request that fits; `None`, with nothing changed, for all others.
    #[inline(always)]
    pub(super) fn apply_calm(&mut self, request: &Request, sink: &mut impl EventSink) -> Option<Outcome> {
        match &request.command {
            Command::Enter(order) => self.enter_calm(request, order, sink),
            Command::Cancel { target } => self.cancel_calm(request.member, *target, sink),
            Command::Amend(amendment) => self.amend_calm(request.member, amendment, sink),
            _ => None,
        }
    }

    #[inline(always)]
    fn enter_calm(
        &mut self,
        request: &Request,
        order: &NewOrder,
        sink: &mut impl EventSink,
    ) -> Option<Outcome> {
        let OrderKind::Limit { price } = order.kind else { return None };
        let wishes = u64::from(order.post_only) | order.self_trade as u64 | order.display.0 | order.minimum.0;
        let stays = order.time_in_force == TimeInForce::Day;
        let simple = stays || order.time_in_force == TimeInForce::Ioc;
        let legal = self.is_legal_here(order.side, price, order.quantity) && request.id != RequestId::NONE;
        let fits = wishes == SelfTrade::Allow as u64 && order.trigger.is_none() && simple && legal;
        if !fits || self.meets(order.side, price) || self.store.nodes.len() >= self.orders_max as usize {
            return None;
        }
        let (id, quantity) = (OrderId(request.id), order.quantity);
        let (member, client_order_id) = (request.member, request.client_order_id);
        if !stays {
            let cause = CancelCause::Remainder;
            sink.event(Event::Cancelled { order: id, member, client_order_id, quantity, cause });
            return Some(outcome(
                Status::Cancelled,
                Reason::NothingToTrade,
                id,
                Quantity::ZERO,
                Quantity::ZERO,
            ));
        }
        let (side, executed, priority) = (order.side, Quantity::ZERO, self.next_priority());
        let remaining = quantity;
        self.store.add_plain(&hash::Plain {
            order: id,
            priority,
            member,
            side,
            client_order_id,
            price,
            remaining,
            executed,
        });
        Some(outcome(Status::Resting, Reason::None, id, executed, remaining))
    }

    #[inline(always)]
    fn cancel_calm(
        &mut self,
        member: MemberId,
        target: OrderId,
        sink: &mut impl EventSink,
    ) -> Option<Outcome> {
        let slot = self.store.find(target)?;
        let Node { client_order_id, remaining, executed, rank, account, .. } = self.store.nodes[slot];
        if !rank.traits().is_plain() || self.store.accounts[account].member != member {
            return None;
        }
        let (quantity, cause) = (remaining, CancelCause::Requested);
        sink.event(Event::Cancelled { order: target, member, client_order_id, quantity, cause });
        self.store.remove_plain(slot);
        Some(outcome(Status::Cancelled, Reason::Requested, target, executed, Quantity::ZERO))
    }

    /// An amend that moves an order to another place.
    #[inline(always)]
    fn amend_calm(
        &mut self,
        member: MemberId,
        wish: &Amendment,
        sink: &mut impl EventSink,
    ) -> Option<Outcome> {
        let slot = self.store.find(wish.target)?;
        let Node { order, client_order_id, remaining, executed, rank, level, account, .. } =
            self.store.nodes[slot];
        if !rank.traits().is_plain() || self.store.accounts[account].member != member {
            return None;
        }
        let side = rank.traits().side();
        let (price, total, total_before) = (wish.price, wish.quantity, executed.plus(remaining));
        let same_terms = wish.display.is_none() && wish.trigger.is_none() && wish.time_in_force.is_none();
        let keeps_place = price == self.store.levels[level].price && total <= total_before;
        let legal = self.is_legal_here(side, price, total) && total > executed;
        if !same_terms || keeps_place || !legal || self.meets(side, price) {
            return None;
        }
        if total < total_before {
            let (quantity, cause) = (total_before.minus(total), CancelCause::Reduced);
            sink.event(Event::Cancelled { order, member, client_order_id, quantity, cause });
        }
        let (remaining, priority) = (total.minus(executed), self.next_priority());
        self.store.move_plain(
            slot,
            &hash::Plain { order, priority, member, side, client_order_id, price, remaining, executed },
        );
        Some(outcome(Status::Resting, Reason::None, order, executed, remaining))
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
    fn meets(&self, side: Side, limit: Price) -> bool {
        self.best_price(side.opposite()).is_some_and(|best| side.crosses(limit, best))
    }
}
