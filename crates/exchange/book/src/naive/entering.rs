//! Entering: docs/rules.md, section 3.

use pares_types::{
    CancelCause, EventSink, MemberId, NewOrder, OrderId, OrderKind, Outcome, Phase, Price, Quantity, Reason,
    Request, SelfTrade, Status, TimeInForce,
};

use super::matching::{Incoming, cancel_left, may_rest};
use super::{NaiveBook, Step, refused, there};
use crate::{Instrument, Priority, RestingOrder, Trading};

impl NaiveBook {
    pub(super) fn enter(
        &mut self,
        step: &mut Step<impl EventSink>,
        request: &Request,
        new: &NewOrder,
    ) -> Outcome {
        let order = order_of(request, new);
        assert!(self.find(order.order).is_none(), "order {} is on the book already", order.order);
        if let Err(reason) = self.check_enter(step, request, new, &order) {
            return refused(order.order, reason);
        }
        if self.is_held_at_once(&order) {
            return there(&self.hold(order), Status::Held, Reason::None);
        }
        if self.trading.phase.matches() {
            if new.time_in_force == TimeInForce::Fok && !self.is_available(step, &order, new.quantity) {
                return cancel_left(
                    step,
                    &Incoming::of(order),
                    CancelCause::FillOrKill,
                    Reason::CannotFillWhole,
                );
            }
            if !self.is_available(step, &order, new.minimum) {
                return cancel_left(step, &Incoming::of(order), CancelCause::Minimum, Reason::MinimumNotMet);
            }
        }
        self.come_in(step, order)
    }

    /// An order comes to the book: it matches in a phase that matches, and rests in a call, where it meets its owner only.
    pub(super) fn come_in(&mut self, step: &mut Step<impl EventSink>, order: RestingOrder) -> Outcome {
        let gathers = self.trading.phase.is_call();
        self.execute(step, Incoming { gathers, ..Incoming::of(order) }, None)
    }

    /// Where an order rests in a call: a market order at the highest (buy) or lowest (sell) legal price.
    pub(super) fn price_in_a_call(&self, order: &RestingOrder) -> Price {
        match order.kind {
            OrderKind::Limit { price } => price,
            OrderKind::Market => self.instrument.market_price(order.side),
            OrderKind::Pegged { .. } => unreachable!("a pegged order is held in a call"),
        }
    }

    fn is_held_at_once(&self, order: &RestingOrder) -> bool {
        let waits_for_the_close =
            order.time_in_force == TimeInForce::AtClose && self.trading.phase != Phase::ClosingCall;
        order.trigger.is_some() || waits_for_the_close || order.is_pegged()
    }

    /// Checks 1 to 10, in this order.
    fn check_enter(
        &self,
        step: &Step<impl EventSink>,
        request: &Request,
        new: &NewOrder,
        order: &RestingOrder,
    ) -> Result<(), Reason> {
        self.instrument.validate(&request.command)?;
        if self.trading.is_busy() {
            return Err(Reason::InTransition);
        }
        self.check_phase(new)?;
        if matches!(new.time_in_force, TimeInForce::Gtd { until } if until <= step.now) {
            return Err(Reason::Expired);
        }
        if order.is_pegged() && !self.has_room_for_a_peg(order.member) {
            return Err(Reason::TooManyPegs);
        }
        if let OrderKind::Limit { price } = new.kind
            && new.post_only
            && self.would_trade(new.side, price)
        {
            return Err(Reason::WouldTrade);
        }
        let full = self.all().count() >= self.instrument.orders_max as usize;
        if full && self.could_stay(step, order) {
            return Err(Reason::BookFull);
        }
        Ok(())
    }

    fn has_room_for_a_peg(&self, member: MemberId) -> bool {
        let pegged = self.pegged();
        let own = pegged.iter().filter(|order| order.member == member).count();
        pegged.len() < Trading::PEGS_MAX && own < Trading::PEGS_OF_A_MEMBER_MAX
    }

    fn could_stay(&self, step: &Step<impl EventSink>, order: &RestingOrder) -> bool {
        if self.is_held_at_once(order) || self.trading.phase.is_call() {
            return true;
        }
        may_rest(order) && !self.can_trade(step, order.side, Incoming::of(*order).limit)
    }

    fn check_phase(&self, new: &NewOrder) -> Result<(), Reason> {
        let in_call = takes_in_a_call(new);
        let at_open = new.time_in_force == TimeInForce::AtOpen;
        let taken = match self.trading.phase {
            Phase::Closed | Phase::Halted => false,
            Phase::Continuous => !at_open,
            Phase::OpeningCall => in_call,
            Phase::VolatilityCall | Phase::ClosingCall => in_call && !at_open,
            Phase::PostClose => takes_post_close(new),
        };
        if !taken {
            return Err(Reason::NotInThisPhase);
        }
        match new.kind {
            OrderKind::Limit { price }
                if self.trading.phase == Phase::PostClose && self.trading.closing != Some(price) =>
            {
                Err(Reason::NotClosingPrice)
            }
            _ => Ok(()),
        }
    }

    /// Whether so many shares can trade at once.
    fn is_available(&self, step: &Step<impl EventSink>, order: &RestingOrder, wanted: Quantity) -> bool {
        if wanted.is_zero() {
            return true;
        }
        let minds = order.self_trade != SelfTrade::Allow;
        let own = |there: &&RestingOrder| minds && there.member == order.member;
        if self.all().filter(own).count() > Instrument::LOOKS_MAX {
            return false;
        }
        let limit = Incoming::of(*order).limit;
        let (mut sum, mut looks) = (Quantity::ZERO, 0);
        for level in self.side(order.side.opposite()).chunk_by(|a, b| a.price == b.price) {
            if !self.accepts(step, order.side, limit, level[0].price) {
                return false;
            }
            looks += if level.iter().any(|o| own(&o)) { 1 + level.len() } else { 1 };
            if looks > Instrument::LOOKS_MAX {
                return false;
            }
            let ends = order.self_trade != SelfTrade::CancelResting && level.iter().any(|o| own(&o));
            for there in level.iter().take_while(|there| !(ends && own(there))).filter(|there| !own(there)) {
                sum = sum.plus(if ends { there.shown } else { there.remaining });
            }
            if sum >= wanted || ends {
                return sum >= wanted;
            }
        }
        false
    }
}

fn takes_in_a_call(new: &NewOrder) -> bool {
    let at_once = matches!(new.time_in_force, TimeInForce::Ioc | TimeInForce::Fok);
    let for_a_call = matches!(new.time_in_force, TimeInForce::AtOpen | TimeInForce::AtClose);
    let market_now = new.kind == OrderKind::Market && new.trigger.is_none() && !for_a_call;
    !at_once && !new.post_only && new.minimum.is_zero() && !market_now
}

fn takes_post_close(new: &NewOrder) -> bool {
    use TimeInForce::{Day, Fok, Gtc, Gtd, Ioc};
    let is_limit = matches!(new.kind, OrderKind::Limit { .. });
    let stay = matches!(new.time_in_force, Day | Gtc | Gtd { .. } | Ioc | Fok);
    is_limit && stay && new.display.is_zero() && new.trigger.is_none()
}

/// The order a request enters, not on the book yet.
fn order_of(request: &Request, new: &NewOrder) -> RestingOrder {
    RestingOrder {
        order: OrderId(request.id),
        member: request.member,
        client_order_id: request.client_order_id,
        side: new.side,
        kind: new.kind,
        price: Price(0),
        remaining: new.quantity,
        shown: Quantity::ZERO,
        executed: Quantity::ZERO,
        display: new.display,
        time_in_force: new.time_in_force,
        self_trade: new.self_trade,
        trigger: new.trigger,
        elected: false,
        post_only: new.post_only,
        priority: Priority(0),
    }
}
