//! From one business day to the next, in steps: docs/rules.md, section 11.
//!
//! To close ten thousand instruments at once would be a step that no record holds. So a day ends as a mass cancel does, book by book, and the
//! next time continues what a step has left; nothing is traded from its first step on.

use pares_types::{
    BusinessDay, Command, Event, EventSink, InstrumentId, Outcome, Phase, Reason, Request, Status,
};

use super::day::{Stage, Statistics, Totals};
use super::everywhere::Announcing;
use super::{EXCHANGE, Market, accepted, refused};
use crate::Book;

impl<B: Book> Market<B> {
    pub(super) fn end_day(
        &mut self,
        request: &Request,
        day: BusinessDay,
        sink: &mut impl EventSink,
    ) -> Outcome {
        let is_that = day == self.day.number && day != BusinessDay::NONE;
        match self.day.stage {
            Stage::On if is_that => self.day.stage = Stage::Ending { next: InstrumentId(0) },
            Stage::Ending { .. } if is_that => {}
            Stage::Over | Stage::Beginning { .. } => return refused(request, Reason::DayOver),
            Stage::On | Stage::Ending { .. } => return refused(request, Reason::WrongDay),
        }
        self.go_on_with_day(request, sink)
    }

    pub(super) fn begin_day(
        &mut self,
        request: &Request,
        day: BusinessDay,
        sink: &mut impl EventSink,
    ) -> Outcome {
        match self.day.stage {
            Stage::Beginning { .. } if day == self.day.number => {}
            // Another shard may have refused it before: the operator asks again.
            Stage::On if day == self.day.number && day != BusinessDay::NONE => {
                return refused(request, Reason::NothingChanged);
            }
            Stage::Ending { .. } | Stage::Beginning { .. } => return refused(request, Reason::DayNotOver),
            Stage::On if self.day.number != BusinessDay::NONE => return refused(request, Reason::DayNotOver),
            _ if day <= self.day.number => return refused(request, Reason::WrongDay),
            Stage::On | Stage::Over => {
                self.day.number = day;
                self.day.stage = Stage::Beginning { next: InstrumentId(0) };
                (self.day.requests, self.day.totals) = (0, Totals::default());
                self.day.members.clear();
            }
        }
        self.go_on_with_day(request, sink)
    }

    /// Does as much as the step may of the end or the beginning that is under way.
    pub(super) fn go_on_with_day(&mut self, request: &Request, sink: &mut impl EventSink) -> Outcome {
        let (next, command) = match self.day.stage {
            Stage::Ending { next } => (next, Command::EndDay { day: self.day.number }),
            Stage::Beginning { next } => (next, Command::BeginDay { day: self.day.number }),
            Stage::On | Stage::Over => return accepted(request),
        };
        let request = Request { member: EXCHANGE, instrument: InstrumentId(0), command, ..*request };
        let mut sink = Announcing::new(sink);
        for at in self.books.partition_point(|book| book.instrument().id < next)..self.books.len() {
            let id = self.books[at].instrument().id;
            if sink.is_full() || !self.pass_book(at, &request, &mut sink) {
                match &mut self.day.stage {
                    Stage::Ending { next } | Stage::Beginning { next } => *next = id,
                    Stage::On | Stage::Over => unreachable!("a day is passing"),
                }
                return Outcome { reason: Reason::Unfinished, ..accepted(&request) };
            }
        }
        self.finish_passing(sink.into_inner());
        accepted(&request)
    }

    /// The next book on the way; says whether that is done there.
    fn pass_book(&mut self, at: usize, request: &Request, sink: &mut Announcing<'_, impl EventSink>) -> bool {
        sink.announce(self.books[at].instrument().id);
        if matches!(self.day.stage, Stage::Ending { .. }) {
            let book = &self.books[at];
            let trades = matches!(book.trading().phase, Phase::Continuous | Phase::VolatilityCall);
            self.statistics[at].resumes |= trades && book.instrument().timetable.rows().is_empty();
            let closed = self.apply_at(at, request, sink).reason != Reason::Unfinished;
            if closed {
                self.record_day(at, sink);
            }
            return closed;
        }
        let resumes = std::mem::take(&mut self.statistics[at]).resumes;
        self.apply_at(at, request, sink);
        if resumes && self.books[at].trading().phase == Phase::Closed {
            let instrument = self.books[at].instrument().id;
            let command = Command::SetPhase(Phase::Continuous);
            let outcome = self.apply_at(at, &Request { instrument, command, ..*request }, sink);
            assert_eq!(outcome.status, Status::Accepted, "a closed instrument can be opened");
        }
        true
    }

    fn record_day(&self, at: usize, sink: &mut impl EventSink) {
        let Statistics { open, high, low, last, quantity, trades, .. } = self.statistics[at];
        if trades > 0 {
            sink.event(Event::DayPrices { open, high, low, last });
        }
        sink.event(Event::DayVolume { closing: self.books[at].trading().closing, quantity, trades });
    }

    fn finish_passing(&mut self, sink: &mut impl EventSink) {
        if matches!(self.day.stage, Stage::Beginning { .. }) {
            self.day.stage = Stage::On;
            return;
        }
        self.day.stage = Stage::Over;
        let Totals { orders, trades, quantity } = self.day.totals;
        let state_hash = self.state_hash() ^ self.day.full_hash(&self.statistics);
        sink.event(Event::DayEnded {
            day: self.day.number,
            requests: self.day.requests,
            orders,
            trades,
            quantity,
            state_hash,
        });
    }
}
