//! From one phase to the next: docs/rules.md, section 6.

use pares_types::{
    BusinessDay, CancelCause, Event, EventSink, OrderKind, Outcome, Phase, Price, Quantity, Reason, Request,
    RestCause, Side, TimeInForce,
};

use super::matching::Incoming;
use super::{NaiveBook, Step, accepted, refused};
use crate::{RestingOrder, Trading, Transition};

/// What becomes of a call that is to end in an auction.
enum Verdict {
    Trade,
    Extend,
    Halt,
}

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
        let busy = self.trading.is_busy();
        let refusal = match to {
            _ if to == self.trading.phase && !busy => Some(Reason::NothingChanged),
            _ if busy && to != Phase::Halted => Some(Reason::InTransition),
            Phase::VolatilityCall => Some(Reason::InvalidRule),
            _ if self.is_kept_shut(to) => Some(Reason::BookCrossed),
            _ => None,
        };
        if let Some(reason) = refusal {
            return refused(pares_types::OrderId(request.id), reason);
        }
        self.begin_transition(step, to);
        accepted(request, self.trading.is_busy())
    }

    /// A crossed book that no call has uncrossed cannot enter the trading after the close.
    pub(super) fn is_kept_shut(&self, to: Phase) -> bool {
        to == Phase::PostClose && !self.trading.phase.is_call() && self.is_crossed()
    }

    /// Closes the instrument without a trade: docs/rules.md, section 11. It is halted first, and stays so while there are orders
    /// to cancel.
    pub(super) fn end_day(&mut self, step: &mut Step<impl EventSink>, request: &Request) -> Outcome {
        if self.trading.phase != Phase::Closed || self.trading.is_busy() {
            if self.trading.phase != Phase::Halted || self.trading.is_busy() {
                self.begin_transition(step, Phase::Halted);
            }
            if self.trading.is_busy() {
                return accepted(request, true);
            }
            self.close_at_the_latest_price();
        }
        let swept = self.sweep(step, Phase::Closed);
        if swept && self.trading.phase != Phase::Closed {
            self.enter_phase(step, Phase::Closed);
        }
        accepted(request, !swept)
    }

    /// Trades may be busted again. Rows of the timetable before the day, or before now if that is earlier, are skipped.
    pub(super) fn begin_day(&mut self, request: &Request, day: BusinessDay) -> Outcome {
        self.trading.busts.clear();
        if !self.instrument.timetable.rows().is_empty() {
            let passed = day.midnight().min(request.stamp);
            self.trading.timetable_done = self.trading.timetable_done.max(passed);
        }
        accepted(request, false)
    }

    /// Begins a change of phase and does as much of it as the step allows. A halt waits for the end of what is under way.
    pub(super) fn begin_transition(&mut self, step: &mut Step<impl EventSink>, mut to: Phase) {
        let mut price = self.trading.transition.and_then(|under_way| under_way.price);
        if self.trading.phase.is_call() && !self.trading.is_busy() && ends_in_an_auction(to) {
            match self.verdict() {
                Verdict::Extend => return self.extend(step, to),
                Verdict::Halt => to = Phase::Halted,
                Verdict::Trade => price = self.begin_auction(step),
            }
        }
        let closes = self.trading.phase == Phase::ClosingCall && to != Phase::Halted;
        if closes && price.is_none() {
            self.close_at_the_latest_price();
        }
        self.trading.transition = Some(Transition { to, price });
        self.go_on(step);
    }

    /// A day's closing price without an auction that could set it.
    pub(super) fn close_at_the_latest_price(&mut self) {
        if let Some(latest) = self.trading.latest() {
            self.trading.closing = Some(latest);
            self.trading.reference = Some(latest);
        }
    }

    pub(super) fn change_phase(&mut self, step: &mut Step<impl EventSink>, transition: Transition) {
        if self.trading.phase == Phase::Continuous {
            self.withdraw_pegs(step);
        }
        let to = transition.to;
        if transition.price.is_some_and(|price| !self.uncross(step, price)) {
            return;
        }
        if to != Phase::Halted && !self.sweep(step, to) {
            return;
        }
        self.trading.transition = None;
        if to == Phase::Continuous && self.is_crossed() {
            // Only a call opens such a book.
            return self.begin_volatility_call(step);
        }
        self.trading.forget_end();
        // Orders that cross outside the bands have no place after the close.
        let halts = to == Phase::PostClose && self.is_crossed();
        self.enter_phase(step, if halts { Phase::Halted } else { to });
    }

    /// What becomes of a call that is to end in an auction.
    fn verdict(&self) -> Verdict {
        let auction = self.auction_price();
        let (low, high) = self.trading.auction_bands(&self.instrument);
        let outside = auction.is_some_and(|auction| auction.price < low || high < auction.price);
        let anywhere = (Price(i64::MIN), Price(i64::MAX));
        let only_outside = auction.is_none() && self.auction_price_within(anywhere).is_some();
        let volume = auction.map_or(Quantity::ZERO, |auction| auction.quantity);
        let left_over = self.instrument.extends_for_market
            && [Side::Buy, Side::Sell].into_iter().any(|side| self.at_market(side) > volume);
        let again = self.trading.extended < self.instrument.extensions_max;
        match () {
            () if again && (outside || left_over) => Verdict::Extend,
            () if only_outside => Verdict::Halt,
            () => Verdict::Trade,
        }
    }

    /// Shares that wait at market.
    fn at_market(&self, side: Side) -> Quantity {
        let orders = self.side(side).iter().filter(|order| order.kind == OrderKind::Market);
        orders.fold(Quantity::ZERO, |sum, order| sum.plus(order.remaining))
    }

    /// The call continues.
    fn extend(&mut self, step: &mut Step<impl EventSink>, to: Phase) {
        self.trading.extended += 1;
        self.trading.after = to;
        self.trading.until = step.now.plus_ns(self.instrument.extension_ns);
        self.tell_phase(step);
    }

    /// Cancels what does not outlive the phase and releases what waits for the next one. Says whether it is
    /// done; otherwise the step is spent.
    fn sweep(&mut self, step: &mut Step<impl EventSink>, to: Phase) -> bool {
        let orders: Vec<RestingOrder> = self.all().copied().collect();
        for order in orders {
            let Some(sweep) = swept(step, &order, to) else { continue };
            if step.is_spent(self.instrument.step_max) || self.trading.unfinished.is_some() {
                return false;
            }
            match sweep {
                Sweep::Cancel(cause) => self.cancel_whole(step, &order, cause),
                Sweep::Release => {
                    self.remove(&order);
                    let incoming = Incoming { gathers: true, ..Incoming::of(order) };
                    self.execute(step, incoming, Some(RestCause::Released));
                }
            }
        }
        self.trading.unfinished.is_none()
    }

    fn enter_phase(&mut self, step: &mut Step<impl EventSink>, phase: Phase) {
        self.trading.phase = phase;
        self.trading.indicated = None;
        self.tell_phase(step);
    }

    fn tell_phase(&self, step: &mut Step<impl EventSink>) {
        let Trading { phase, until, reference, .. } = self.trading;
        step.event(Event::PhaseEntered { phase, until, reference });
    }

    /// A trade would have been outside the bands, or the book to open is crossed.
    pub(super) fn begin_volatility_call(&mut self, step: &mut Step<impl EventSink>) {
        self.withdraw_pegs(step);
        let call_ns = match self.instrument.call_ns {
            0 => Trading::OPENING_CALL_NS,
            call_ns => call_ns,
        };
        self.trading.forget_end();
        self.trading.until = step.now.plus_ns(call_ns);
        self.enter_phase(step, Phase::VolatilityCall);
    }
}

/// Whether a call on the way to that phase ends in an auction.
pub(super) fn ends_in_an_auction(to: Phase) -> bool {
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
