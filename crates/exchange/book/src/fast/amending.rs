//! Amending, cancelling, cancelling everything (docs/rules.md, section 4).

use super::incoming::Incoming;
use super::node::Node;
use super::terms::Terms;
use super::{FastBook, Step, refused};
use crate::doomed::Doomed;
use crate::{Book, RestingOrder};
use pares_table::SlabIndex;
use pares_types::{
    Amendment, CancelCause, EventSink, MemberId, OrderId, OrderKind, Outcome, Phase, Price, Quantity, Reason,
    Request, Status, TimeInForce,
};

/// What an amend makes of an order.
struct Change {
    before: RestingOrder,
    after: Terms,
    /// The total before and after.
    totals: (Quantity, Quantity),
    /// Whether it keeps its priority.
    keeps: bool,
}

impl FastBook {
    fn find_of(&self, member: MemberId, order: OrderId) -> Option<SlabIndex<Node>> {
        self.store.find(order).filter(|&slot| self.store.member(slot) == member)
    }

    /// The refusal of a change while something is under way; `None` if nothing is, or the member has no such order.
    #[inline]
    fn wait(&self, member: MemberId, target: OrderId) -> Option<Outcome> {
        if !self.trading.is_busy() {
            return None;
        }
        let order = self.order(target).filter(|order| order.member == member)?;
        Some(Self::outcome_of(&order, Status::Refused, Reason::InTransition))
    }

    pub(super) fn cancel<S: EventSink>(
        &mut self,
        request: &Request,
        target: OrderId,
        step: &mut Step<'_, S>,
    ) -> Outcome {
        if let Some(refused) = self.wait(request.member, target) {
            return refused;
        }
        let Some(slot) = self.find_of(request.member, target) else {
            return refused(target, Reason::UnknownOrder);
        };
        let executed = self.store.nodes[slot].executed;
        self.cancel_order(slot, CancelCause::Requested, step);
        Outcome {
            status: Status::Cancelled,
            reason: Reason::Requested,
            order: target,
            executed,
            remaining: Quantity::ZERO,
        }
    }

    pub(super) fn amend<S: EventSink>(
        &mut self,
        request: &Request,
        amendment: &Amendment,
        step: &mut Step<'_, S>,
    ) -> Outcome {
        if let Some(refused) = self.wait(request.member, amendment.target) {
            return refused;
        }
        let Some(slot) = self.find_of(request.member, amendment.target) else {
            return refused(amendment.target, Reason::UnknownOrder);
        };
        let before = self.store.order(slot);
        match self.change(before, amendment, step) {
            Ok(change) => self.carry_out(slot, &change, step),
            Err(reason) => Self::outcome_of(&before, Status::Refused, reason),
        }
    }

    /// What the amendment would make of an order.
    ///
    /// # Errors
    /// The reason to refuse it with: checks 2 to 5.
    fn change<S>(
        &self,
        before: RestingOrder,
        wish: &Amendment,
        step: &Step<'_, S>,
    ) -> Result<Change, Reason> {
        let total = wish.quantity;
        let kind = self.check_terms(&before, wish)?;
        let display = self.check_display(&before, wish)?;
        let total_before = before.executed.plus(before.remaining);
        let after = Terms {
            kind,
            remaining: Quantity(total.0.saturating_sub(before.executed.0)),
            display,
            time_in_force: wish.time_in_force.unwrap_or(before.time_in_force),
            trigger: wish.trigger.or(before.trigger),
            ..Terms::of(&before)
        };
        let same_price = kind == before.kind && after.trigger == before.trigger;
        // An iceberg that became too small to hide anything has not been asked to show something else.
        let less = !display.is_zero() && (before.display.is_zero() || display < before.display);
        let same_display = wish.display.is_none()
            || display == before.display
            || less && self.instrument.display_decrease_keeps;
        let ends = total <= before.executed;
        let keeps = ends || same_price && total <= total_before && same_display;
        let same_terms = after.time_in_force == before.time_in_force && display == before.display;
        if keeps && total == total_before && same_terms || wish.reduces && total >= total_before {
            return Err(Reason::NothingChanged);
        }
        let change = Change { before, after, totals: (total_before, total), keeps };
        if !self.is_continuous() || wish.time_in_force.is_some() {
            self.check_amend_phase(&change, wish, step)?;
        }
        let comes_in = !keeps && self.trading.phase.matches();
        let meets = |limit| {
            self.best_price(before.side.opposite()).is_some_and(|best| before.side.crosses(limit, best))
        };
        if comes_in && before.post_only && Self::limit_of(kind).is_some_and(meets) {
            return Err(Reason::WouldTrade);
        }
        Ok(change)
    }

    /// Check 2, and of check 3 the trigger; gives the order's kind with its new limit.
    fn check_terms(&self, before: &RestingOrder, wish: &Amendment) -> Result<OrderKind, Reason> {
        self.instrument.validate_quantity(wish.quantity)?;
        let stop = before.is_held() && before.trigger.is_some() && !before.elected;
        let kind = wish.kind_of(before.kind);
        let limit = Self::limit_of(kind);
        if let Some(price) = limit
            && kind != before.kind
        {
            self.instrument.validate_price(price)?;
        }
        if let Some(trigger) = wish.trigger
            && stop
        {
            self.instrument.validate_price(trigger)?;
        }
        if let Some(price) = limit {
            self.instrument.validate_value(price, wish.quantity)?;
        }
        Ok(kind)
    }

    /// Check 3: combination, then what an iceberg shows; gives the display of the amended order.
    fn check_display(&self, before: &RestingOrder, wish: &Amendment) -> Result<Quantity, Reason> {
        let for_call = matches!(before.time_in_force, TimeInForce::AtOpen | TimeInForce::AtClose);
        let stop = before.is_held() && before.trigger.is_some() && !before.elected;
        let bad_trigger = wish.trigger.is_some() && !stop;
        let bad_display = wish.display.is_some() && (before.is_pegged() || before.is_held() || for_call);
        let bad_stay =
            wish.time_in_force.is_some_and(|stay| !(Self::stays(stay) && Self::stays(before.time_in_force)));
        let bad_reduction = wish.reduces
            && (wish.trigger.is_some() || wish.display.is_some() || wish.time_in_force.is_some());
        if bad_trigger || bad_display || bad_stay || bad_reduction {
            return Err(Reason::InvalidCombination);
        }
        let total_before = before.executed.plus(before.remaining);
        match wish.display {
            Some(display) => {
                self.instrument.validate_display(display, wish.quantity)?;
                Ok(display)
            }
            None if wish.quantity == total_before => Ok(before.display),
            None if before.display >= wish.quantity => Ok(Quantity::ZERO),
            None => self.instrument.validate_display(before.display, wish.quantity).map(|()| before.display),
        }
    }

    /// Check 5.
    fn check_amend_phase<S>(
        &self,
        change: &Change,
        wish: &Amendment,
        step: &Step<'_, S>,
    ) -> Result<(), Reason> {
        match self.trading.phase {
            Phase::Closed | Phase::Halted => return Err(Reason::NotInThisPhase),
            Phase::PostClose if !change.keeps => {
                let price = Self::limit_of(change.after.kind);
                if price.is_none() || price != self.trading.closing {
                    return Err(Reason::NotClosingPrice);
                }
            }
            _ => {}
        }
        match wish.time_in_force {
            Some(TimeInForce::Gtd { until }) if until <= step.now => Err(Reason::Expired),
            _ => Ok(()),
        }
    }

    fn carry_out<S: EventSink>(
        &mut self,
        slot: SlabIndex<Node>,
        change: &Change,
        step: &mut Step<'_, S>,
    ) -> Outcome {
        let (total_before, total) = change.totals;
        if change.after.remaining.is_zero() {
            self.cancel_order(slot, CancelCause::Reduced, step);
            let ended = RestingOrder { remaining: Quantity::ZERO, ..change.before };
            return Self::outcome_of(&ended, Status::Cancelled, Reason::Requested);
        }
        let lost = Quantity(total_before.0.saturating_sub(total.0));
        if !lost.is_zero() {
            step.emit(self.event_cancelled(slot, lost, CancelCause::Reduced));
        }
        if change.keeps {
            return self.change_in_place(slot, change, lost);
        }
        self.store.detach(slot);
        if change.before.is_held() || change.before.is_pegged() {
            self.store.set_terms(slot, &change.after);
            self.put_aside(slot);
            return self.there(slot);
        }
        let gathers = self.trading.phase.is_call();
        let mut incoming = Incoming { gathers, ..Incoming::new(change.after, Some(slot)) };
        let end = self.execute(&mut incoming, step);
        incoming.outcome(end)
    }

    fn change_in_place(&mut self, slot: SlabIndex<Node>, change: &Change, lost: Quantity) -> Outcome {
        if !lost.is_zero() {
            self.store.reduce(slot, Quantity::ZERO, lost);
        }
        let (before, after) = (&change.before, &change.after);
        if after.time_in_force != before.time_in_force || after.display != before.display {
            self.store.change_in_place(slot, after.time_in_force, after.display);
        }
        self.there(slot)
    }

    fn there(&self, slot: SlabIndex<Node>) -> Outcome {
        let order = self.store.order(slot);
        let status = if order.is_held() { Status::Held } else { Status::Resting };
        Self::outcome_of(&order, status, Reason::None)
    }

    fn outcome_of(order: &RestingOrder, status: Status, reason: Reason) -> Outcome {
        let RestingOrder { order, executed, remaining, .. } = *order;
        Outcome { status, reason, order, executed, remaining }
    }

    /// Cancels a member's orders, or some of them, oldest first.
    pub(super) fn mass_cancel<S: EventSink>(
        &mut self,
        request: &Request,
        which: &Doomed,
        step: &mut Step<'_, S>,
    ) -> Outcome {
        let mut doomed = core::mem::take(&mut self.scratch);
        doomed.clear();
        doomed.extend(self.store.orders_of(which.member).filter(|slot| {
            let node = &self.store.nodes[*slot];
            which.has(node.rank.traits().side(), node.order, node.client_order_id)
        }));
        doomed.sort_unstable_by_key(|slot| self.store.nodes[*slot].rank.priority());
        let mut cancelled = 0;
        for &slot in &doomed {
            if step.is_full() || self.trading.is_busy() {
                break;
            }
            self.cancel_order(slot, which.cause, step);
            cancelled += 1;
        }
        let unfinished = self.trading.unfinished.iter().map(|unfinished| &unfinished.order);
        let unfinished = unfinished.filter(|order| {
            order.member == which.member && which.has(order.side, order.order, order.client_order_id)
        });
        let left = doomed.len() - cancelled + unfinished.count();
        self.scratch = doomed;
        Outcome {
            status: Status::MassCancelled,
            reason: if left == 0 { Reason::None } else { Reason::Unfinished },
            order: OrderId(request.id),
            executed: Quantity(cancelled as u64),
            remaining: Quantity(left as u64),
        }
    }

    pub(super) fn limit_of(kind: OrderKind) -> Option<Price> {
        match kind {
            OrderKind::Limit { price } | OrderKind::Pegged { limit: price, .. } => Some(price),
            OrderKind::Market => None,
        }
    }
}
