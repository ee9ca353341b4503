//! Requests that no single book can take: those for all instruments, and those for one that is not there.
//!
//! A request for all instruments visits books in order of instrument id and has one count of events, so that its
//! result fits a record however many books there are: a book begins only while the count is below
//! [`Instrument::STEP_MAX`] and adds at most about as many. What is left then is [`Reason::Unfinished`].

use pares_types::{
    Command, Event, EventSink, InstrumentId, Outcome, Quantity, Reason, Request, Side, Status, Timestamp,
};

use super::{Market, Stage, accepted, permit, refused};
use crate::doomed::Doomed;
use crate::{Book, Instrument, RestingOrder};

/// A sink that counts, and says whose events follow before a book's first.
pub(super) struct Announcing<'a, S> {
    sink: &'a mut S,
    /// Events so far, the announcements included.
    count: u32,
    /// Whose events come, until they are announced.
    unannounced: Option<InstrumentId>,
}

impl<S: EventSink> EventSink for Announcing<'_, S> {
    fn event(&mut self, event: Event) {
        if let Some(instrument) = self.unannounced.take() {
            self.sink.event(Event::Instrument(instrument));
            self.count += 1;
        }
        self.sink.event(event);
        self.count += 1;
    }
}

impl<'a, S: EventSink> Announcing<'a, S> {
    pub(super) fn new(sink: &'a mut S) -> Self {
        Self { sink, count: 0, unannounced: None }
    }

    pub(super) fn is_full(&self) -> bool {
        self.count >= Instrument::STEP_MAX
    }

    /// What follows, if anything, happens in that instrument.
    pub(super) fn announce(&mut self, instrument: InstrumentId) {
        self.unannounced = Some(instrument);
    }

    /// Where events of no instrument go.
    pub(super) fn into_inner(self) -> &'a mut S {
        self.sink
    }
}

impl<B: Book> Market<B> {
    /// A request for instrument 0, or for one that is not there.
    pub(super) fn apply_beside(&mut self, request: &Request, sink: &mut impl EventSink) -> Outcome {
        let everywhere = request.instrument.0 == 0;
        if let (Command::MassCancel { .. }, true) = (request.command, everywhere) {
            return self.cancel_everywhere(request, sink);
        }
        let is_known = match request.command {
            Command::Time { .. }
            | Command::Block { .. }
            | Command::Unblock { .. }
            | Command::CancelGuarded(_)
            | Command::BeginDay { .. }
            | Command::EndDay { .. } => everywhere,
            Command::AddInstrument(_) => request.instrument.may_be_listed(),
            _ => false,
        };
        if !is_known {
            return refused(request, Reason::UnknownInstrument);
        }
        if let Err(reason) = permit(request) {
            return refused(request, reason);
        }
        match request.command {
            Command::Time { .. } if self.day.stage != Stage::On => self.go_on_with_day(request, sink),
            Command::Time { .. } => self.tell_time(request, sink),
            Command::BeginDay { day } => self.begin_day(request, day, sink),
            Command::EndDay { day } => self.end_day(request, day, sink),
            Command::AddInstrument(symbol) => self.add_instrument(request, symbol),
            Command::Block { member } => {
                if let Err(place) = self.blocked.binary_search(&member) {
                    self.blocked.insert(place, member);
                }
                self.cancel_everywhere(request, sink)
            }
            Command::CancelGuarded(_) => self.cancel_everywhere(request, sink),
            Command::Unblock { member } => match self.blocked.binary_search(&member) {
                Ok(place) => {
                    self.blocked.remove(place);
                    accepted(request)
                }
                Err(_) => refused(request, Reason::NotBlocked),
            },
            _ => unreachable!("other commands are of one instrument"),
        }
    }

    /// A mass cancel of everything, the kill switch, or the end of a session: a member's orders in all books.
    fn cancel_everywhere(&mut self, request: &Request, sink: &mut impl EventSink) -> Outcome {
        let doomed = Doomed::by(request).expect("only what cancels so comes here");
        let mut sink = Announcing::new(sink);
        let (mut cancelled, mut left) = (0, 0);
        for at in 0..self.books.len() {
            if !self.concerns(&doomed, at) {
                continue;
            }
            if sink.is_full() {
                left += count(&self.books[at], &doomed);
                continue;
            }
            sink.announce(self.books[at].instrument().id);
            let outcome = self.apply_at(at, request, &mut sink);
            assert_eq!(outcome.status, Status::MassCancelled, "a mass cancel is never refused");
            cancelled += outcome.executed.0;
            left += outcome.remaining.0;
        }
        Outcome {
            status: Status::MassCancelled,
            reason: if left > 0 { Reason::Unfinished } else { Reason::None },
            executed: Quantity(cancelled),
            remaining: Quantity(left),
            ..accepted(request)
        }
    }

    /// Whether a book has anything to do then: a member's orders to cancel, or what an earlier step had to leave.
    pub(super) fn concerns(&self, doomed: &Doomed, at: usize) -> bool {
        let book = &self.books[at];
        book.has_orders_of(doomed.member) || book.deadline() == Timestamp(0)
    }

    /// Whether the book at that place has something to do at that time.
    pub(super) fn is_due(&self, at: usize, time: Timestamp) -> bool {
        self.deadlines[at] <= time && self.deadlines[at] != Timestamp::NEVER
    }

    /// The time, told to the books that have something to do at it.
    fn tell_time(&mut self, request: &Request, sink: &mut impl EventSink) -> Outcome {
        self.time = self.time.max(request.stamp);
        let mut sink = Announcing::new(sink);
        let mut unfinished = false;
        for at in 0..self.books.len() {
            if !self.is_due(at, request.stamp) {
                continue;
            }
            if sink.is_full() {
                unfinished = true;
                break;
            }
            sink.announce(self.books[at].instrument().id);
            let outcome = self.apply_at(at, request, &mut sink);
            assert_eq!(outcome.status, Status::Accepted, "the time is never refused");
            unfinished |= outcome.reason == Reason::Unfinished;
        }
        let reason = if unfinished { Reason::Unfinished } else { Reason::None };
        Outcome { reason, ..accepted(request) }
    }
}

/// How many of them are there, on the book, held or unfinished.
fn count<B: Book>(book: &B, doomed: &Doomed) -> u64 {
    let mut count = 0;
    let mut visit = |order: &RestingOrder| {
        let is_one =
            order.member == doomed.member && doomed.has(order.side, order.order, order.client_order_id);
        count += u64::from(is_one);
    };
    book.for_each_order(Side::Buy, &mut visit);
    book.for_each_order(Side::Sell, &mut visit);
    book.for_each_held(&mut visit);
    book.trading().unfinished.iter().for_each(|unfinished| visit(&unfinished.order));
    count
}
