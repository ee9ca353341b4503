//! Amending and cancelling: docs/rules.md, section 4.

use pares_types::{
    Amendment, CancelCause, EventSink, OrderId, OrderKind, Outcome, Phase, Price, Quantity, Reason, Request,
    Status, TimeInForce,
};

use super::{NaiveBook, Step, limit_of, refused, there};
use crate::doomed::Doomed;
use crate::{Instrument, RestingOrder};

/// The terms of an order that an amend can change.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Terms {
    /// The limit; `None` for a market order.
    price: Option<Price>,
    /// Executed part included.
    total: Quantity,
    display: Quantity,
    trigger: Option<Price>,
    time_in_force: TimeInForce,
}

impl Terms {
    fn of(order: &RestingOrder) -> Self {
        Self {
            price: limit_of(order.kind),
            total: order.executed.plus(order.remaining),
            display: order.display,
            trigger: order.trigger,
            time_in_force: order.time_in_force,
        }
    }

    /// Whether an order keeps its priority when its terms, now `self`, become `new`.
    fn keep_priority(&self, new: &Self, display_amended: bool, rules: &Instrument) -> bool {
        let less = !new.display.is_zero() && (self.display.is_zero() || new.display < self.display);
        let display_changes = display_amended && new.display != self.display;
        let display_changes = display_changes && !(less && rules.display_decrease_keeps);
        new.total <= self.total && new.price == self.price && new.trigger == self.trigger && !display_changes
    }
}

impl NaiveBook {
    pub(super) fn amend(
        &mut self,
        step: &mut Step<impl EventSink>,
        request: &Request,
        amendment: &Amendment,
    ) -> Outcome {
        let Some(order) = self.find_of(request.member, amendment.target) else {
            return refused(amendment.target, Reason::UnknownOrder);
        };
        if self.trading.is_busy() {
            return there(&order, Status::Refused, Reason::InTransition);
        }
        let old = Terms::of(&order);
        let new = match self.check_amend(step, &order, amendment) {
            Ok(new) => new,
            Err(reason) => return there(&order, Status::Refused, reason),
        };
        if new.total <= order.executed {
            self.cancel_whole(step, &order, CancelCause::Reduced);
            return cancelled(&order);
        }
        if new.total < old.total {
            step.cancelled(&order, old.total.minus(new.total), CancelCause::Reduced);
        }
        if old.keep_priority(&new, amendment.display.is_some(), &self.instrument) {
            return self.amend_in_place(&order, &new);
        }
        self.remove(&order);
        let amended = with_terms(&order, &new);
        if order.is_held() || order.is_pegged() {
            return there(&self.hold(amended), Status::Held, Reason::None);
        }
        self.come_in(step, amended)
    }

    /// Checks 2 to 6, in this order, and says what the order's terms become.
    fn check_amend(
        &self,
        step: &Step<impl EventSink>,
        order: &RestingOrder,
        amendment: &Amendment,
    ) -> Result<Terms, Reason> {
        self.check_amended_values(order, amendment)?;
        check_amended_fields(order, amendment)?;
        let old = Terms::of(order);
        let new = Terms {
            price: limit_of(amendment.kind_of(order.kind)),
            total: amendment.quantity,
            display: self.amended_display(&old, amendment)?,
            trigger: amendment.trigger.or(old.trigger),
            time_in_force: amendment.time_in_force.unwrap_or(old.time_in_force),
        };
        if new == old || amendment.reduces && new.total >= old.total {
            return Err(Reason::NothingChanged);
        }
        let kept = old.keep_priority(&new, amendment.display.is_some(), &self.instrument)
            || new.total <= order.executed;
        self.check_amend_now(step, amendment, &new, kept)?;
        let comes_in = !kept && self.trading.phase.matches();
        if comes_in && order.post_only && new.price.is_some_and(|price| self.would_trade(order.side, price)) {
            return Err(Reason::WouldTrade);
        }
        Ok(new)
    }

    /// Check 2.
    fn check_amended_values(&self, order: &RestingOrder, amendment: &Amendment) -> Result<(), Reason> {
        let limit = limit_of(amendment.kind_of(order.kind));
        self.instrument.validate_quantity(amendment.quantity)?;
        if let Some(price) = limit {
            self.instrument.validate_price(price)?;
        }
        if let (Some(_), Some(trigger), false) = (order.trigger, amendment.trigger, order.elected) {
            self.instrument.validate_price(trigger)?;
        }
        if let Some(price) = limit {
            self.instrument.validate_value(price, amendment.quantity)?;
        }
        Ok(())
    }

    /// The display after an amend: the new one, or the old one if it can stay.
    fn amended_display(&self, old: &Terms, amendment: &Amendment) -> Result<Quantity, Reason> {
        let total = amendment.quantity;
        match amendment.display {
            Some(display) => self.instrument.validate_display(display, total).map(|()| display),
            None if total != old.total && old.display >= total => Ok(Quantity::ZERO),
            None if total != old.total => {
                self.instrument.validate_display(old.display, total).map(|()| old.display)
            }
            None => Ok(old.display),
        }
    }

    /// Check 5.
    fn check_amend_now(
        &self,
        step: &Step<impl EventSink>,
        amendment: &Amendment,
        new: &Terms,
        kept: bool,
    ) -> Result<(), Reason> {
        if matches!(self.trading.phase, Phase::Closed | Phase::Halted) {
            return Err(Reason::NotInThisPhase);
        }
        let at_closing_price = new.price.is_some() && new.price == self.trading.closing;
        if self.trading.phase == Phase::PostClose && !kept && !at_closing_price {
            return Err(Reason::NotClosingPrice);
        }
        if matches!(amendment.time_in_force, Some(TimeInForce::Gtd { until }) if until <= step.now) {
            return Err(Reason::Expired);
        }
        Ok(())
    }

    /// The order stays where it is. Hidden shares go first, then shown ones.
    fn amend_in_place(&mut self, order: &RestingOrder, new: &Terms) -> Outcome {
        let there_now = self.find_mut(order.order);
        let amended = with_terms(order, new);
        let shown = if amended.display.is_zero() { order.shown } else { order.shown.min(amended.display) };
        *there_now = RestingOrder { shown: shown.min(amended.remaining), ..amended };
        let status = if order.is_held() { Status::Held } else { Status::Resting };
        there(there_now, status, Reason::None)
    }

    pub(super) fn cancel(
        &mut self,
        step: &mut Step<impl EventSink>,
        request: &Request,
        target: OrderId,
    ) -> Outcome {
        let Some(order) = self.find_of(request.member, target) else {
            return refused(target, Reason::UnknownOrder);
        };
        if self.trading.is_busy() {
            return there(&order, Status::Refused, Reason::InTransition);
        }
        self.cancel_whole(step, &order, CancelCause::Requested);
        cancelled(&order)
    }

    /// Cancels the orders of a member, or some of them, as many as the step allows.
    pub(super) fn mass_cancel(
        &mut self,
        step: &mut Step<impl EventSink>,
        request: &Request,
        doomed: &Doomed,
    ) -> Outcome {
        let theirs = |order: &&RestingOrder| {
            order.member == doomed.member && doomed.has(order.side, order.order, order.client_order_id)
        };
        let mut orders: Vec<RestingOrder> = self.with_unfinished().filter(theirs).copied().collect();
        orders.sort_by_key(|order| order.priority);
        let mut cancelled = 0;
        for order in &orders {
            if self.trading.is_busy() || step.is_spent(self.instrument.step_max) {
                break;
            }
            self.cancel_whole(step, order, doomed.cause);
            cancelled += 1;
        }
        let left = orders.len() as u64 - cancelled;
        Outcome {
            status: Status::MassCancelled,
            reason: if left > 0 { Reason::Unfinished } else { Reason::None },
            order: OrderId(request.id),
            executed: Quantity(cancelled),
            remaining: Quantity(left),
        }
    }
}

/// The outcome for an order whose owner had all that was left of it cancelled.
fn cancelled(order: &RestingOrder) -> Outcome {
    there(&RestingOrder { remaining: Quantity::ZERO, ..*order }, Status::Cancelled, Reason::Requested)
}

/// Check 3, of the fields that an order cannot have.
fn check_amended_fields(order: &RestingOrder, amendment: &Amendment) -> Result<(), Reason> {
    use TimeInForce::{AtClose, AtOpen, Day, Gtc, Gtd};
    let for_a_call = matches!(order.time_in_force, AtOpen | AtClose);
    let trigger = amendment.trigger.is_some() && (order.trigger.is_none() || order.elected);
    let display = amendment.display.is_some() && (order.is_pegged() || order.is_held() || for_a_call);
    let stay =
        amendment.time_in_force.is_some_and(|stay| for_a_call || !matches!(stay, Day | Gtc | Gtd { .. }));
    let reduces = amendment.reduces
        && (amendment.trigger.is_some() || amendment.display.is_some() || amendment.time_in_force.is_some());
    if trigger || display || stay || reduces { Err(Reason::InvalidCombination) } else { Ok(()) }
}

/// The order at other terms, with what is then left of it.
fn with_terms(order: &RestingOrder, terms: &Terms) -> RestingOrder {
    let price = terms.price.unwrap_or_default();
    let kind = match order.kind {
        OrderKind::Limit { .. } => OrderKind::Limit { price },
        OrderKind::Market => OrderKind::Market,
        OrderKind::Pegged { to, .. } => OrderKind::Pegged { to, limit: price },
    };
    RestingOrder {
        kind,
        remaining: terms.total.minus(order.executed),
        display: terms.display,
        trigger: terms.trigger,
        time_in_force: terms.time_in_force,
        ..*order
    }
}
