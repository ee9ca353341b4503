//! From one phase to the next: docs/rules.md, section 6.

use pares_types::{
    BusinessDay, CancelCause, Event, EventSink, Outcome, Phase, Reason, Request, RestCause, TimeInForce,
    Timestamp,
};

use super::{NaiveBook, Step, accepted, refused};
use crate::{RestingOrder, Transition};

/// What a sweep does with an order.
enum Sweep {
    Cancel(CancelCause),
    Release,
}

impl NaiveBook {
    pub(super) fn set_phase(
        &mut self,
        step: &mut Step<impl EventSink>,
        request: &Request,
        to: Phase,
    ) -> Outcome {
        let pending = self.trading.transition.is_some();
        let refusal = match to {
            _ if to == self.trading.phase && !pending => Some(Reason::NothingChanged),
            _ if pending && to != Phase::Halted => Some(Reason::InTransition),
            Phase::VolatilityCall => Some(Reason::InvalidRule),
            _ => None,
        };
        if let Some(reason) = refusal {
            return refused(pares_types::OrderId(request.id), reason);
        }
        self.begin_transition(step, to);
        accepted(request, self.trading.transition.is_some())
    }

    /// Closes the instrument without a trade: docs/rules.md, section 11. It is halted first, and stays so while there are orders
    /// to cancel.
    pub(super) fn end_day(&mut self, step: &mut Step<impl EventSink>, request: &Request) -> Outcome {
        let pending = self.trading.transition.is_some();
        if self.trading.phase != Phase::Closed || pending {
            if self.trading.last.is_some() {
                self.trading.closing = self.trading.last;
                self.trading.reference = self.trading.last;
            }
            if self.trading.phase != Phase::Halted || pending {
                self.begin_transition(step, Phase::Halted);
            }
        }
        let swept = self.sweep(step, Phase::Closed);
        if swept && self.trading.phase != Phase::Closed {
            self.enter_phase(step, Phase::Closed);
        }
        accepted(request, !swept)
    }

    /// Trades may be busted anew. Rows of the timetable before the day, or before now if that is earlier, are passed over.
    pub(super) fn begin_day(&mut self, request: &Request, day: BusinessDay) -> Outcome {
        self.trading.busts.clear();
        if !self.instrument.timetable.rows().is_empty() {
            let passed = day.midnight().min(request.stamp);
            self.trading.timetable_done = self.trading.timetable_done.max(passed);
        }
        accepted(request, false)
    }

    pub(super) fn begin_transition(&mut self, step: &mut Step<impl EventSink>, to: Phase) {
        if self.trading.phase == Phase::Continuous {
            self.withdraw_pegs(step);
        }
        self.trading.until = Timestamp::NEVER;
        if to == Phase::Halted {
            return self.enter_phase(step, to);
        }
        let auction = ends_in_an_auction(to) && self.auction_price().is_some();
        if self.trading.phase == Phase::ClosingCall && !auction && self.trading.last.is_some() {
            self.trading.closing = self.trading.last;
            self.trading.reference = self.trading.last;
        }
        self.go_on(step, Transition { to, price: None });
    }

    /// Does as much of a transition as the step allows.
    pub(super) fn go_on(&mut self, step: &mut Step<impl EventSink>, mut transition: Transition) {
        let uncrossed = !ends_in_an_auction(transition.to) || self.uncross(step, &mut transition);
        if uncrossed && self.sweep(step, transition.to) {
            self.enter_phase(step, transition.to);
        } else {
            self.trading.transition = Some(transition);
        }
    }

    /// Cancels what does not outlive the phase and releases what waits for the next one. Says whether it is
    /// done; otherwise the step is spent.
    fn sweep(&mut self, step: &mut Step<impl EventSink>, to: Phase) -> bool {
        let orders: Vec<RestingOrder> = self.all().copied().collect();
        for order in orders {
            let Some(sweep) = swept(step, &order, to) else { continue };
            if step.is_spent(self.instrument.step_max) {
                return false;
            }
            match sweep {
                Sweep::Cancel(cause) => self.cancel_whole(step, &order, cause),
                Sweep::Release => {
                    self.remove(&order);
                    let price = self.price_in_a_call(&order);
                    let released = self.rest(order, price);
                    step.rested(&released, RestCause::Released);
                }
            }
        }
        true
    }

    /// The phase is the new one.
    fn enter_phase(&mut self, step: &mut Step<impl EventSink>, phase: Phase) {
        self.trading.phase = phase;
        self.trading.transition = None;
        self.trading.indicated = None;
        let (until, reference) = (self.trading.until, self.trading.reference);
        step.event(Event::PhaseEntered { phase, until, reference });
    }

    /// A trade would have been outside the bands.
    pub(super) fn begin_volatility_call(&mut self, step: &mut Step<impl EventSink>) {
        self.withdraw_pegs(step);
        self.trading.until = step.now.plus_ns(self.instrument.call_ns);
        self.enter_phase(step, Phase::VolatilityCall);
    }
}

/// Whether orders trade on the way to that phase.
fn ends_in_an_auction(to: Phase) -> bool {
    matches!(to, Phase::Continuous | Phase::PostClose | Phase::Closed)
}

/// What becomes of an order on the way to a phase; `None` if nothing.
fn swept(step: &Step<impl EventSink>, order: &RestingOrder, to: Phase) -> Option<Sweep> {
    use TimeInForce::{AtClose, AtOpen, Day, Gtd};
    let (stay, on_book) = (order.time_in_force, !order.is_held());
    let its_call = match stay {
        AtOpen => Some(Phase::OpeningCall),
        AtClose => Some(Phase::ClosingCall),
        _ => None,
    };
    if on_book && its_call.is_some_and(|call| call != to) {
        return Some(Sweep::Cancel(CancelCause::CallOver));
    }
    match (to, stay) {
        (Phase::Closed, Day | AtOpen | AtClose) => Some(Sweep::Cancel(CancelCause::DayEnd)),
        (Phase::Closed, Gtd { until }) if until <= step.now => Some(Sweep::Cancel(CancelCause::Expired)),
        (Phase::ClosingCall, AtClose) if !on_book => Some(Sweep::Release),
        _ => None,
    }
}
