//! Entering an order (docs/rules.md, section 3).

use super::incoming::{End, Incoming};
use super::{FastBook, Step, refused};
use crate::Trading;
use pares_types::{
    CancelCause, EventSink, MemberId, NewOrder, OrderId, OrderKind, Outcome, Phase, Price, Quantity, Reason,
    Request, Side, Status, TimeInForce,
};

impl FastBook {
    pub(super) fn enter<S: EventSink>(
        &mut self,
        request: &Request,
        order: &NewOrder,
        step: &mut Step<'_, S>,
    ) -> Outcome {
        let id = OrderId(request.id);
        assert!(self.store.find(id).is_none(), "order {id} is on the book already");
        if let Err(reason) = self.instrument.validate(&request.command) {
            return refused(id, reason);
        }
        let incoming = Incoming::entered(request, order);
        if let Err(reason) = self.check_enter(order, &incoming, step) {
            return refused(id, reason);
        }
        self.place(order, incoming, step)
    }

    fn check_enter<S>(
        &self,
        order: &NewOrder,
        incoming: &Incoming,
        step: &Step<'_, S>,
    ) -> Result<(), Reason> {
        self.check_phase(order, step)?;
        if matches!(order.kind, OrderKind::Pegged { .. }) {
            self.check_pegs(incoming.terms.member)?;
        }
        if order.post_only
            && self.best_price(order.side.opposite()).is_some_and(|best| incoming.accepts(best))
        {
            return Err(Reason::WouldTrade);
        }
        if self.store.nodes.len() >= self.instrument.orders_max as usize
            && self.could_stay(order, incoming, step)
        {
            return Err(Reason::BookFull);
        }
        Ok(())
    }

    /// Checks 5 to 7.
    fn check_phase<S>(&self, order: &NewOrder, step: &Step<'_, S>) -> Result<(), Reason> {
        if self.trading.is_busy() {
            return Err(Reason::InTransition);
        }
        if !self.takes(order) {
            return Err(Reason::NotInThisPhase);
        }
        if self.trading.phase == Phase::PostClose {
            let at_close =
                matches!(order.kind, OrderKind::Limit { price } if Some(price) == self.trading.closing);
            if !at_close {
                return Err(Reason::NotClosingPrice);
            }
        }
        if matches!(order.time_in_force, TimeInForce::Gtd { until } if until <= step.now) {
            return Err(Reason::Expired);
        }
        Ok(())
    }

    /// Check 8.
    fn check_pegs(&self, member: MemberId) -> Result<(), Reason> {
        let pegs = &self.store.lists.pegs;
        let own = pegs.values().filter(|slot| self.store.member(**slot) == member).count();
        let is_room = pegs.len() < Trading::PEGS_MAX && own < Trading::PEGS_OF_A_MEMBER_MAX;
        if is_room { Ok(()) } else { Err(Reason::TooManyPegs) }
    }

    /// Whether the phase takes such an order (check 6).
    fn takes(&self, order: &NewOrder) -> bool {
        use TimeInForce::{AtClose, AtOpen, Fok, Ioc};
        let stay = order.time_in_force;
        match self.trading.phase {
            Phase::Closed | Phase::Halted => false,
            Phase::Continuous => stay != AtOpen,
            phase @ (Phase::OpeningCall | Phase::VolatilityCall | Phase::ClosingCall) => {
                let market = order.kind == OrderKind::Market && order.trigger.is_none();
                let for_call = matches!(stay, AtOpen | AtClose);
                !matches!(stay, Ioc | Fok)
                    && !order.post_only
                    && order.minimum.is_zero()
                    && (!market || for_call)
                    && (stay != AtOpen || phase == Phase::OpeningCall)
            }
            Phase::PostClose => {
                let limit = matches!(order.kind, OrderKind::Limit { .. });
                limit
                    && !matches!(stay, AtOpen | AtClose)
                    && order.display.is_zero()
                    && order.trigger.is_none()
            }
        }
    }

    /// Whether the order is held at once, in this phase.
    fn is_held(&self, order: &NewOrder) -> bool {
        order.trigger.is_some()
            || matches!(order.kind, OrderKind::Pegged { .. })
            || order.time_in_force == TimeInForce::AtClose && self.trading.phase != Phase::ClosingCall
    }

    /// Whether a full book has no room for it (check 10).
    fn could_stay<S>(&self, order: &NewOrder, incoming: &Incoming, step: &Step<'_, S>) -> bool {
        if self.is_held(order) || self.trading.phase.is_call() {
            return true;
        }
        let (lowest, highest) = self.bands(step);
        let would_trade = self
            .best_price(order.side.opposite())
            .is_some_and(|best| incoming.accepts(best) && best >= lowest && best <= highest);
        incoming.may_rest && !would_trade
    }

    /// Holds, rests or executes an order that passed all checks.
    fn place<S: EventSink>(
        &mut self,
        order: &NewOrder,
        mut incoming: Incoming,
        step: &mut Step<'_, S>,
    ) -> Outcome {
        if self.is_held(order) {
            let slot = self.store.create(&incoming.terms);
            self.put_aside(slot);
            return Outcome { status: Status::Held, ..incoming.outcome(End::Rests) };
        }
        incoming.gathers = self.trading.phase.is_call();
        if !incoming.gathers
            && let Some(killed) = self.kill(order, &incoming, step)
        {
            return killed;
        }
        let end = self.execute(&mut incoming, step);
        incoming.outcome(end)
    }

    /// The price at which an order waits in a call.
    pub(super) fn call_price(&self, side: Side, kind: OrderKind) -> Price {
        match kind {
            OrderKind::Limit { price } | OrderKind::Pegged { limit: price, .. } => price,
            OrderKind::Market => self.instrument.market_price(side),
        }
    }

    /// Cancels a fill-or-kill order, or one with a minimum, that cannot have what it wants.
    fn kill<S: EventSink>(
        &mut self,
        order: &NewOrder,
        incoming: &Incoming,
        step: &mut Step<'_, S>,
    ) -> Option<Outcome> {
        let (wanted, cause, reason) = if order.time_in_force == TimeInForce::Fok {
            (order.quantity, CancelCause::FillOrKill, Reason::CannotFillWhole)
        } else {
            (order.minimum, CancelCause::Minimum, Reason::MinimumNotMet)
        };
        if wanted == Quantity::ZERO || self.is_available(incoming, wanted, step) {
            return None;
        }
        step.emit(incoming.cancel(incoming.left, cause));
        Some(incoming.outcome(End::Cancelled(reason)))
    }
}
