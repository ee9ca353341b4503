//! Phases, transitions, and what happens as time passes (docs/rules.md, section 6).

use super::incoming::Incoming;
use super::node::Node;
use super::terms::Terms;
use super::{FastBook, Step};
use crate::{Indication, RestingOrder, Trading, Transition};
use pares_table::SlabIndex;
use pares_types::{
    BusinessDay, CancelCause, DAY_NS, Event, EventSink, OrderKind, Outcome, Phase, Price, Quantity, Reason,
    Request, RestCause, Side, TimeInForce, Timestamp,
};

impl FastBook {
    /// A band breach, or a crossed book to open: pegs are withdrawn and the call begins.
    #[cold]
    pub(super) fn begin_volatility_call<S: EventSink>(&mut self, step: &mut Step<'_, S>) {
        self.withdraw_all(step);
        let call_ns =
            if self.instrument.call_ns == 0 { Trading::OPENING_CALL_NS } else { self.instrument.call_ns };
        self.trading.forget_end();
        self.trading.until = step.now.plus_ns(call_ns);
        self.enter_phase(Phase::VolatilityCall, step);
    }

    fn enter_phase<S: EventSink>(&mut self, phase: Phase, step: &mut Step<'_, S>) {
        self.trading.phase = phase;
        self.trading.indicated = None;
        self.tell_phase(step);
    }

    fn tell_phase<S: EventSink>(&self, step: &mut Step<'_, S>) {
        let Trading { phase, until, reference, .. } = *self.trading;
        step.emit(Event::PhaseEntered { phase, until, reference });
    }

    /// Ends the business day here (docs/rules.md, section 11): nothing trades any more, then what is for the day goes.
    pub(super) fn end_day<S: EventSink>(&mut self, step: &mut Step<'_, S>) -> Reason {
        let stands = |phase| self.trading.phase == phase && !self.trading.is_busy();
        let (closed, halted) = (stands(Phase::Closed), stands(Phase::Halted));
        if !closed && !halted {
            self.begin_transition(Phase::Halted, step);
        }
        if self.trading.is_busy() {
            return Reason::Unfinished;
        }
        if !closed {
            self.close_at_latest();
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

    /// A business day begins: busted trades are forgotten, and the timetable's rows before it are skipped.
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
        let under_way = self.trading.transition.and_then(|transition| transition.price);
        // A halt comes after what is under way, and begins nothing.
        if to == Phase::Halted || !self.trading.phase.is_call() {
            return self.begin(Transition { to, price: under_way }, step);
        }
        let auction = self.auction().filter(|_| holds_auction(to));
        if holds_auction(to) && self.is_to_extend(auction) {
            self.trading.extended += 1;
            self.trading.after = to;
            self.trading.until = step.now.plus_ns(self.instrument.extension_ns);
            return self.tell_phase(step);
        }
        if holds_auction(to) && self.crosses_outside(auction) {
            return self.begin(Transition { to: Phase::Halted, price: None }, step);
        }
        let price = self.announce(auction, step);
        self.begin(Transition { to, price }, step);
    }

    fn begin<S: EventSink>(&mut self, transition: Transition, step: &mut Step<'_, S>) {
        self.trading.transition = Some(transition);
        self.go_on(step);
    }

    /// Whether an auction would trade outside the bands.
    fn is_outside(&self, auction: Option<Indication>) -> bool {
        let (low, high) = self.trading.auction_bands(&self.instrument);
        auction.is_some_and(|auction| !(low..=high).contains(&auction.price))
    }

    /// Whether a call continues that was to end in this auction.
    fn is_to_extend(&self, auction: Option<Indication>) -> bool {
        let volume = auction.map_or(Quantity::ZERO, |auction| auction.quantity);
        let left_over = |side| self.instrument.extends_for_market && self.at_market(side) > volume;
        self.trading.extended < self.instrument.extensions_max
            && (self.is_outside(auction) || left_over(Side::Buy) || left_over(Side::Sell))
    }

    /// Shares of a side that wait at market: they are at its last legal price.
    fn at_market(&self, side: Side) -> Quantity {
        let at = self.call_price(side, OrderKind::Market);
        let Some(level) = self.store.ladder(side).get(at) else { return Quantity::ZERO };
        let orders = self.store.queue(level).map(|slot| self.store.order(slot));
        let market = orders.filter(|order| order.kind == OrderKind::Market);
        market.fold(Quantity::ZERO, |sum, order| sum.plus(order.remaining))
    }

    /// Tells the auction in which a call ends, if there is one, and sets the prices that follow from it.
    fn announce<S: EventSink>(
        &mut self,
        auction: Option<Indication>,
        step: &mut Step<'_, S>,
    ) -> Option<Price> {
        let closes = self.trading.phase == Phase::ClosingCall;
        if let Some(Indication { price, quantity, surplus, surplus_side }) = auction {
            step.emit(Event::Auction { price, quantity, surplus, surplus_side, firm: true });
        }
        let sets = auction.filter(|auction| auction.quantity >= self.instrument.auction_min);
        match sets {
            Some(auction) => {
                self.trading.reference = Some(auction.price);
                if closes {
                    self.trading.closing = self.trading.reference;
                }
            }
            None if closes => self.close_at_latest(),
            None => {}
        }
        auction.map(|auction| auction.price)
    }

    fn close_at_latest(&mut self) {
        if let latest @ Some(_) = self.trading.latest() {
            (self.trading.closing, self.trading.reference) = (latest, latest);
        }
    }

    /// Continues a pending transition.
    pub(super) fn continue_transition<S: EventSink>(&mut self, step: &mut Step<'_, S>) {
        let Some(Transition { to, price }) = self.trading.transition else { return };
        if self.trading.phase == Phase::Continuous {
            self.withdraw_all(step);
        }
        let uncrossed = price.is_none_or(|price| self.uncross(price, step));
        if !uncrossed || to != Phase::Halted && !(self.sweep(to, step) && self.release(to, step)) {
            return;
        }
        self.trading.transition = None;
        if to == Phase::Continuous && self.is_crossed() {
            return self.begin_volatility_call(step);
        }
        self.trading.forget_end();
        let kept_shut = to == Phase::PostClose && self.is_crossed();
        self.enter_phase(if kept_shut { Phase::Halted } else { to }, step);
    }

    fn is_crossed(&self) -> bool {
        let best = |side| self.best_price(side);
        matches!((best(Side::Buy), best(Side::Sell)), (Some(bid), Some(offer)) if bid >= offer)
    }

    /// Whether the trading after the close must not begin: no call has uncrossed the book.
    pub(super) fn is_kept_shut(&self, to: Phase) -> bool {
        to == Phase::PostClose && !self.trading.phase.is_call() && self.is_crossed()
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
        let mut doomed: Vec<(SlabIndex<Node>, CancelCause)> = Vec::new();
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
        let for_close =
            |slot: &SlabIndex<Node>| self.store.order(*slot).time_in_force == TimeInForce::AtClose;
        let waiting: Vec<SlabIndex<Node>> =
            self.store.lists.held.values().copied().filter(for_close).collect();
        for slot in waiting {
            if step.is_full() || self.trading.unfinished.is_some() {
                return false;
            }
            let order = self.store.order(slot);
            self.store.detach(slot);
            let incoming = Incoming { gathers: true, ..Incoming::new(Terms::of(&order), Some(slot)) };
            self.execute_settled(incoming, RestCause::Released, step);
        }
        self.trading.unfinished.is_none()
    }

    /// Time passes (docs/rules.md, section 6, **Time**).
    pub(super) fn pass_time<S: EventSink>(
        &mut self,
        request: &Request,
        draw: u64,
        step: &mut Step<'_, S>,
    ) -> Outcome {
        let before = self.trading.time;
        self.trading.time = self.trading.time.max(request.stamp);
        if self.trading.is_busy() {
            self.go_on(step);
        }
        if !self.trading.is_busy() {
            self.expire(step);
            let ends = self.is_ended(before, draw);
            self.follow_timetable(ends, step);
            self.go_on(step);
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

    fn expired(&self) -> Option<SlabIndex<Node>> {
        let ((until, _), slot) = self.store.lists.dated.first_key_value()?;
        (*until <= self.trading.time).then_some(*slot)
    }

    /// Whether a call with an end of its own ends: a draw below the share of the time left that has passed since `before`.
    fn is_ended(&self, before: Timestamp, draw: u64) -> bool {
        let Trading { until, time, .. } = *self.trading;
        let last = self.trading.last_end(&self.instrument);
        let drawn_until = before.max(until);
        if time >= last || time <= drawn_until {
            return self.trading.is_call_over(&self.instrument);
        }
        let (passed, left) = (time.0 - drawn_until.0, last.0 - drawn_until.0);
        // The numbers below `passed / left` of 2^64.
        (u128::from(draw) * u128::from(left)) >> 64 < u128::from(passed)
    }

    /// Ends a call whose end has come, or does the next row of the timetable that is due.
    fn follow_timetable<S: EventSink>(&mut self, ends: bool, step: &mut Step<'_, S>) {
        let time = self.trading.time;
        if self.trading.timetable_done == Timestamp(0) && !self.instrument.timetable.rows().is_empty() {
            self.trading.timetable_done = Self::begin_of_day(time);
        }
        let row = self.due_row();
        if ends {
            return self.begin_transition(self.trading.after, step);
        }
        let Some((at, to)) = row else {
            self.trading.timetable_done = time;
            return;
        };
        self.trading.timetable_done = at;
        let phase = self.trading.phase;
        let stays = phase == Phase::Halted && to != Phase::Closed
            || phase == to
            || self.is_kept_shut(to)
            || phase == Phase::VolatilityCall && to == Phase::Continuous;
        let extended = self.trading.extended > 0 && phase != Phase::VolatilityCall;
        let drawn = phase.is_call() && self.instrument.random_end_ns > 0;
        if stays {
        } else if (extended || drawn) && holds_auction(to) {
            // It comes when the call is over.
            self.trading.after = to;
            if !extended {
                self.trading.until = at.min(self.trading.until);
            }
        } else {
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
        if !self.trading.phase.is_call() || self.trading.is_busy() {
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
        self.expired().is_some()
            || self.due_row().is_some()
            || self.trading.is_call_over(&self.instrument)
            || self.is_unsettled()
    }

    /// When there is something to do by itself.
    pub(super) fn next_deadline(&self) -> Timestamp {
        if self.is_unfinished() {
            return Timestamp(0);
        }
        let dated = self.store.lists.dated.first_key_value().map(|((until, _), _)| *until);
        let Trading { until, time, .. } = *self.trading;
        let next_draw = time.plus_ns((self.instrument.random_end_ns / Trading::DRAWS).max(1));
        let call = if until > time { until } else { next_draw.min(self.trading.last_end(&self.instrument)) };
        let row = self.instrument.timetable.next_after(self.trading.timetable_done).map(|(at, _)| at);
        [dated, Some(call), row].into_iter().flatten().min().unwrap_or(Timestamp::NEVER)
    }
}

/// Whether a call on the way to that phase ends in an auction.
fn holds_auction(to: Phase) -> bool {
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
