//! What is due at a time: docs/rules.md, section 6.

use pares_types::{
    CancelCause, DAY_NS, EventSink, Outcome, Phase, Quantity, Request, Side, TimeInForce, Timestamp,
};

use super::phases::ends_in_an_auction;
use super::{NaiveBook, Step, accepted};
use crate::{Indication, RestingOrder, Trading};

impl NaiveBook {
    pub(super) fn tell_time(
        &mut self,
        step: &mut Step<impl EventSink>,
        request: &Request,
        draw: u64,
    ) -> Outcome {
        let before = self.trading.time;
        self.trading.time = step.now;
        if self.trading.is_busy() {
            self.go_on(step);
            if self.trading.is_busy() {
                return accepted(request, true);
            }
        }
        self.expire(step);
        self.begin_timetable();
        if self.ends_call(before, draw) {
            self.begin_transition(step, self.trading.after);
        } else {
            self.follow_timetable(step);
        }
        self.go_on(step);
        self.indicate(step);
        accepted(request, self.is_unfinished())
    }

    /// Whether a call ends now that has an end of its own: by chance, as much of it as of the time left has passed since the
    /// book last received the time.
    fn ends_call(&self, before: Timestamp, draw: u64) -> bool {
        let (time, from) = (self.trading.time, self.trading.until.max(before));
        if from >= time || self.trading.is_call_over(&self.instrument) {
            return self.trading.is_call_over(&self.instrument);
        }
        let passed = u128::from(time.0 - from.0);
        let left = u128::from(self.trading.last_end(&self.instrument).0 - from.0);
        u128::from(draw) * left < passed << 64
    }

    /// Orders good till a date, by date.
    fn expiring(&self) -> Vec<(Timestamp, RestingOrder)> {
        let dated = self.all().filter_map(|order| match order.time_in_force {
            TimeInForce::Gtd { until } => Some((until, *order)),
            _ => None,
        });
        let mut dated: Vec<(Timestamp, RestingOrder)> = dated.collect();
        dated.sort_by_key(|(until, order)| (*until, order.priority));
        dated
    }

    fn expire(&mut self, step: &mut Step<impl EventSink>) {
        for (until, order) in self.expiring() {
            if until <= self.trading.time && !step.is_spent(self.instrument.step_max) {
                self.cancel_whole(step, &order, CancelCause::Expired);
            }
        }
    }

    /// Rows up to the midnight before the first time told count as done.
    fn begin_timetable(&mut self) {
        let time = self.trading.time;
        if self.trading.timetable_done == Timestamp(0) && !self.instrument.timetable.rows().is_empty() {
            self.trading.timetable_done = Timestamp(time.0 - time.0 % DAY_NS);
        }
    }

    /// Does the first row that is due.
    fn follow_timetable(&mut self, step: &mut Step<impl EventSink>) {
        let time = self.trading.time;
        let next = self.instrument.timetable.next_after(self.trading.timetable_done);
        let Some((at, to)) = next.filter(|(at, _)| *at <= time) else {
            self.trading.timetable_done = time;
            return;
        };
        self.trading.timetable_done = at;
        let phase = self.trading.phase;
        let passed_over = phase == Phase::Halted && to != Phase::Closed
            || phase == to
            || self.is_kept_shut(to)
            || to == Phase::Continuous && phase == Phase::VolatilityCall;
        let extended = self.trading.extended > 0 && phase != Phase::VolatilityCall;
        let drawn = phase.is_call() && self.instrument.random_end_ns > 0;
        match () {
            () if passed_over => {}
            // It comes when the call is over.
            () if extended && ends_in_an_auction(to) => self.trading.after = to,
            () if drawn && ends_in_an_auction(to) => {
                self.trading.after = to;
                self.trading.until = self.trading.until.min(at);
            }
            () => self.begin_transition(step, to),
        }
    }

    /// In a call, tells what the auction would do, if that differs from what it told last.
    fn indicate(&mut self, step: &mut Step<impl EventSink>) {
        if !self.trading.phase.is_call() || self.trading.is_busy() {
            return;
        }
        let now = self.auction_price();
        let told = self.trading.indicated;
        let indicated = now.map(|auction| (auction.price, auction.quantity));
        match (now, told) {
            _ if indicated == told => {}
            (Some(auction), _) => self.announce(step, &auction, false),
            (None, Some((price, _))) => {
                let (quantity, surplus, surplus_side) = (Quantity::ZERO, Quantity::ZERO, Side::Buy);
                self.announce(step, &Indication { price, quantity, surplus, surplus_side }, false);
            }
            (None, None) => unreachable!("nothing told and nothing to tell are the same"),
        }
        self.trading.indicated = indicated;
    }

    /// Whether there is something to do without waiting for a later time.
    fn is_unfinished(&self) -> bool {
        let time = self.trading.time;
        let row = self.instrument.timetable.next_after(self.trading.timetable_done);
        self.expiring().iter().any(|(until, _)| *until <= time)
            || row.is_some_and(|(at, _)| at <= time)
            || self.trading.is_call_over(&self.instrument)
            || self.is_unsettled()
    }

    pub(super) fn next_deadline(&self) -> Timestamp {
        if self.is_unfinished() {
            return Timestamp(0);
        }
        let dates = self.expiring().into_iter().map(|(until, _)| until);
        let row = self.instrument.timetable.next_after(self.trading.timetable_done).map(|(at, _)| at);
        dates.chain(row).chain([self.call_end()]).min().expect("there is at least one")
    }

    /// When the end of the call is to be looked at: from its earliest end on some thirty times.
    fn call_end(&self) -> Timestamp {
        let Trading { until, time, .. } = self.trading;
        if until > time {
            return until;
        }
        let a_while = (self.instrument.random_end_ns / Trading::DRAWS).max(1);
        time.plus_ns(a_while).min(self.trading.last_end(&self.instrument))
    }
}
