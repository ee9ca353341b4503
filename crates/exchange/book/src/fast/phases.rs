//! Phases, transitions, and what happens as time passes (docs/rules.md, section 6).

use super::node::Node;
use super::slab::Slot;
use super::{FastBook, Step};
use crate::{RestingOrder, Transition};
use pares_types::{
    BusinessDay, CancelCause, DAY_NS, Event, EventSink, Outcome, Phase, Price, Quantity, Reason, Request,
    RestCause, Side, TimeInForce, Timestamp,
};

impl FastBook {
    /// A band breach: pegs are withdrawn and the call begins.
    #[cold]
    pub(super) fn begin_volatility_call<S: EventSink>(&mut self, step: &mut Step<'_, S>) {
        self.withdraw_all(step);
        self.trading.until = step.now.plus_ns(self.instrument.call_ns);
        self.enter_phase(Phase::VolatilityCall, step);
    }

    fn enter_phase<S: EventSink>(&mut self, phase: Phase, step: &mut Step<'_, S>) {
        self.trading.phase = phase;
        self.trading.transition = None;
        self.trading.indicated = None;
        let (until, reference) = (self.trading.until, self.trading.reference);
        step.emit(Event::PhaseEntered { phase, until, reference });
    }

    /// Ends the business day here (docs/rules.md, section 11): nothing trades any more, then what is for the day goes.
    pub(super) fn end_day<S: EventSink>(&mut self, step: &mut Step<'_, S>) -> Reason {
        let (phase, transition, last) = (self.trading.phase, self.trading.transition, self.trading.last);
        let closed = phase == Phase::Closed && transition.is_none();
        if !closed && let Some(last) = last {
            (self.trading.closing, self.trading.reference) = (Some(last), Some(last));
        }
        if !closed && (phase != Phase::Halted || transition.is_some()) {
            self.begin_transition(Phase::Halted, step);
        }
        let now = step.now;
        if !self.cancel_where(step, |order| doom(order, Phase::Closed, now)) {
            return Reason::Unfinished;
        }
        if !closed {
            self.enter_phase(Phase::Closed, step);
        }
        Reason::None
    }

    /// A business day begins: busted trades are forgotten, and what the timetable says of the time before it is passed over.
    pub(super) fn begin_day(&mut self, day: BusinessDay, stamp: Timestamp) {
        self.trading.busts.clear();
        if self.instrument.timetable.rows().is_empty() {
            return;
        }
        let done = &mut self.trading.timetable_done;
        *done = (*done).max(stamp.min(day.midnight()));
    }

    /// Begins the transition to a phase and goes as far as one step may.
    pub(super) fn begin_transition<S: EventSink>(&mut self, to: Phase, step: &mut Step<'_, S>) {
        if self.trading.phase == Phase::Continuous {
            self.withdraw_all(step);
        }
        self.trading.until = Timestamp::NEVER;
        if to == Phase::Halted {
            return self.enter_phase(to, step);
        }
        // An auction that follows sets its own.
        if self.trading.phase == Phase::ClosingCall
            && !(ends_in_an_auction(to) && self.auction().is_some())
            && let Some(last) = self.trading.last
        {
            (self.trading.closing, self.trading.reference) = (Some(last), Some(last));
        }
        self.trading.transition = Some(Transition { to, price: None });
        self.continue_transition(step);
    }

    /// Goes on with a pending transition.
    pub(super) fn continue_transition<S: EventSink>(&mut self, step: &mut Step<'_, S>) {
        let Some(Transition { to, price }) = self.trading.transition else { return };
        let done = (!ends_in_an_auction(to) || self.hold_auction(to, price, step))
            && self.sweep(to, step)
            && self.release(to, step);
        if !done {
            return;
        }
        self.enter_phase(to, step);
    }

    /// Trades at the auction's price, `price` if it is known already; says whether the book is uncrossed. What was
    /// cancelled while a transition was pending may leave it crossed at other prices: that is an auction of its own.
    fn hold_auction<S: EventSink>(
        &mut self,
        to: Phase,
        mut price: Option<Price>,
        step: &mut Step<'_, S>,
    ) -> bool {
        loop {
            if let Some(price) = price
                && !self.uncross(price, step)
            {
                return false;
            }
            let Some(auction) = self.auction() else { return true };
            step.emit(Event::Auction {
                price: auction.price,
                quantity: auction.quantity,
                surplus: auction.surplus,
                surplus_side: auction.surplus_side,
                firm: true,
            });
            price = Some(auction.price);
            self.trading.transition = Some(Transition { to, price });
            self.trading.reference = price;
            if self.trading.phase == Phase::ClosingCall {
                self.trading.closing = price;
            }
        }
    }

    /// Cancels what does not survive the transition; says whether that is all done.
    fn sweep<S: EventSink>(&mut self, to: Phase, step: &mut Step<'_, S>) -> bool {
        // Orders for one call are on the book in that call, and in a halt that interrupts it.
        let call = matches!(self.trading.phase, Phase::OpeningCall | Phase::ClosingCall | Phase::Halted);
        if !call && to != Phase::Closed {
            return true;
        }
        let now = step.now;
        self.cancel_where(step, |order| doom(order, to, now))
    }

    /// Cancels orders in the order of a sweep, as many as the step may; says whether none is left.
    pub(super) fn cancel_where<S: EventSink>(
        &mut self,
        step: &mut Step<'_, S>,
        doom: impl Fn(&RestingOrder) -> Option<CancelCause>,
    ) -> bool {
        let room = step.events_max.saturating_sub(step.events) as usize;
        let mut doomed: Vec<(Slot<Node>, CancelCause)> = Vec::new();
        let sides = [Side::Buy, Side::Sell].into_iter();
        let on_book = sides.flat_map(|side| self.store.ladder(side).best_first());
        let slots =
            on_book.flat_map(|level| self.store.queue(level)).chain(self.store.lists.held.values().copied());
        for slot in slots {
            if let Some(cause) = doom(&self.store.order(slot)) {
                if doomed.len() == room {
                    // One more than fits: the sweep is not over.
                    doomed.push((slot, cause));
                    break;
                }
                doomed.push((slot, cause));
            }
        }
        for (slot, cause) in doomed.iter().take(room) {
            self.cancel_order(*slot, *cause, step);
        }
        doomed.len() <= room
    }

    /// Lets orders that were held for the closing call join it; says whether all have.
    fn release<S: EventSink>(&mut self, to: Phase, step: &mut Step<'_, S>) -> bool {
        if to != Phase::ClosingCall {
            return true;
        }
        let for_close = |slot: &Slot<Node>| self.store.order(*slot).time_in_force == TimeInForce::AtClose;
        let waiting: Vec<Slot<Node>> = self.store.lists.held.values().copied().filter(for_close).collect();
        for slot in waiting {
            if step.is_full() {
                return false;
            }
            let order = self.store.order(slot);
            self.store.detach(slot);
            let price = self.call_price(order.side, order.kind);
            let priority = self.next_priority();
            self.store.attach(slot, price, priority);
            step.emit(self.event_rested(slot, RestCause::Released));
        }
        true
    }

    /// Time passes (docs/rules.md, section 6, **Time**).
    pub(super) fn pass_time<S: EventSink>(&mut self, request: &Request, step: &mut Step<'_, S>) -> Outcome {
        self.trading.time = self.trading.time.max(request.stamp);
        self.continue_transition(step);
        if self.trading.transition.is_none() {
            self.expire(step);
            self.follow_timetable(step);
            if self.is_continuous() {
                self.settle(step);
            }
            self.indicate(step);
        }
        let reason = if self.is_unfinished() { Reason::Unfinished } else { Reason::None };
        Self::accepted(request, reason)
    }

    fn expire<S: EventSink>(&mut self, step: &mut Step<'_, S>) {
        while !step.is_full() {
            let Some(slot) = self.expired() else { return };
            self.cancel_order(slot, CancelCause::Expired, step);
        }
    }

    fn expired(&self) -> Option<Slot<Node>> {
        let ((until, _), slot) = self.store.lists.dated.first_key_value()?;
        (*until <= self.trading.time).then_some(*slot)
    }

    fn follow_timetable<S: EventSink>(&mut self, step: &mut Step<'_, S>) {
        let time = self.trading.time;
        if self.trading.timetable_done == Timestamp(0) && !self.instrument.timetable.rows().is_empty() {
            self.trading.timetable_done = Self::begin_of_day(time);
        }
        let row = self.due_row();
        if self.trading.phase == Phase::VolatilityCall && self.trading.until <= time {
            return self.begin_transition(Phase::Continuous, step);
        }
        let Some((at, to)) = row else {
            self.trading.timetable_done = time;
            return;
        };
        self.trading.timetable_done = at;
        let phase = self.trading.phase;
        let stays = phase == Phase::Halted && to != Phase::Closed
            || phase == to
            || phase == Phase::VolatilityCall && to == Phase::Continuous;
        if !stays {
            self.begin_transition(to, step);
        }
    }

    /// What counts as done before the first time told.
    fn begin_of_day(time: Timestamp) -> Timestamp {
        Timestamp(time.0 - time.0 % DAY_NS)
    }

    /// The first row of the timetable that is due and not done.
    fn due_row(&self) -> Option<(Timestamp, Phase)> {
        let time = self.trading.time;
        self.instrument.timetable.next_after(self.trading.timetable_done).filter(|(at, _)| *at <= time)
    }

    /// Tells the auction's price and volume in a call, if they changed.
    fn indicate<S: EventSink>(&mut self, step: &mut Step<'_, S>) {
        if !self.trading.phase.is_call() || self.trading.transition.is_some() {
            return;
        }
        let auction = self.auction();
        let now = auction.map(|auction| (auction.price, auction.quantity));
        if now == self.trading.indicated {
            return;
        }
        let told = self.trading.indicated.map(|(price, _)| price);
        let price = now.map(|(price, _)| price).or(told).expect("one of the two is something");
        let quantity = now.map_or(Quantity::ZERO, |(_, quantity)| quantity);
        let surplus = auction.map_or(Quantity::ZERO, |auction| auction.surplus);
        let surplus_side = auction.map_or(Side::Buy, |auction| auction.surplus_side);
        step.emit(Event::Auction { price, quantity, surplus, surplus_side, firm: false });
        self.trading.indicated = now;
    }

    /// Whether there is something to do now.
    fn is_unfinished(&self) -> bool {
        let waits = self.trading.phase == Phase::VolatilityCall && self.trading.until <= self.trading.time;
        self.trading.transition.is_some()
            || self.expired().is_some()
            || waits
            || self.due_row().is_some()
            || self.is_unsettled()
    }

    /// When there is something to do by itself.
    pub(super) fn next_deadline(&self) -> Timestamp {
        if self.is_unfinished() {
            return Timestamp(0);
        }
        let dated = self.store.lists.dated.first_key_value().map(|((until, _), _)| *until);
        let call = Some(self.trading.until).filter(|_| self.trading.phase == Phase::VolatilityCall);
        let row = self.instrument.timetable.next_after(self.trading.timetable_done).map(|(at, _)| at);
        [dated, call, row].into_iter().flatten().min().unwrap_or(Timestamp::NEVER)
    }
}

/// Whether orders trade on the way to that phase.
fn ends_in_an_auction(to: Phase) -> bool {
    matches!(to, Phase::Continuous | Phase::PostClose | Phase::Closed)
}

/// Why an order does not survive the way to a phase, if it does not.
fn doom(order: &RestingOrder, to: Phase, now: Timestamp) -> Option<CancelCause> {
    let over = match order.time_in_force {
        TimeInForce::AtOpen => to != Phase::OpeningCall,
        TimeInForce::AtClose => to != Phase::ClosingCall,
        _ => false,
    };
    if over && !order.is_held() {
        return Some(CancelCause::CallOver);
    }
    if to != Phase::Closed {
        return None;
    }
    match order.time_in_force {
        TimeInForce::Day | TimeInForce::AtOpen | TimeInForce::AtClose => Some(CancelCause::DayEnd),
        TimeInForce::Gtd { until } if until <= now => Some(CancelCause::Expired),
        _ => None,
    }
}
