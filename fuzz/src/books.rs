//! Two implementations of one rule book: whatever they are asked, they answer alike.
//!
//! The tests of `pares-book` compare them over a random flow that knows the book it is for. That flow meets what its
//! author thought of. Here bytes decide ([`requests`](crate::requests)), so that coverage of the books' own branches can.
//! Outcome and events are compared at each request; the state, a walk over everything, at every sixteenth, and there
//! each goes on as restored from the other's.

use pares_book::{Book, FastBook, Market, NaiveBook};
use pares_types::{Event, Outcome, Reason, Request, Status};

use crate::damage::Random;
use crate::requests::Requests;

/// Requests from one comparison of the whole state to the next.
const COMPARE_EVERY: u64 = 16;

/// What happened in a run: nothing is compared that never happens.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Requests applied.
    pub requests: u64,
    /// Events, by kind: fill, cancelled, incoming, rested, phase entered, auction, busted, instrument.
    pub events: [u64; 8],
    /// Outcomes, by the code of their status.
    pub statuses: [u64; Status::ALL.len() + 1],
    /// Outcomes, by the code of their reason.
    pub reasons: Vec<u64>,
}

impl Tally {
    fn count(&mut self, events: &[Event], outcome: &Outcome) {
        self.requests += 1;
        for event in events {
            let kind = match event {
                Event::Fill { .. } => 0,
                Event::Cancelled { .. } => 1,
                Event::Incoming { .. } => 2,
                Event::Rested { .. } => 3,
                Event::PhaseEntered { .. } => 4,
                Event::Auction { .. } => 5,
                Event::Busted { .. } => 6,
                // Of a market, not of a book.
                _ => 7,
            };
            self.events[kind] += 1;
        }
        self.statuses[outcome.status as usize] += 1;
        self.reasons.resize(256, 0);
        self.reasons[outcome.reason as usize] += 1;
    }
}

/// The books to run and to compare with, as one book.
///
/// # Panics
/// If they differ.
pub fn books(bytes: &[u8]) {
    compare_books::<NaiveBook, FastBook>(bytes, &mut Tally::default());
}

/// The books as markets of a few instruments.
///
/// # Panics
/// If they differ.
pub fn markets(bytes: &[u8]) {
    compare_markets::<NaiveBook, FastBook>(bytes, &mut Tally::default());
}

/// Applies the requests in `bytes` to two books.
///
/// # Panics
/// If they differ.
pub fn compare_books<A: Book, B: Book>(bytes: &[u8], tally: &mut Tally) {
    let requests = Requests::of_a_book(bytes);
    let rules = requests.instruments()[0];
    let (mut one, mut other) = (A::new(rules), B::new(rules));
    for request in requests {
        let told = apply(&request, |request, events| one.apply(request, events));
        let of_other = apply(&request, |request, events| other.apply(request, events));
        assert_eq!(told, of_other, "after {request:?}");
        tally.count(&told.0, &told.1);
        if tally.requests.is_multiple_of(COMPARE_EVERY) {
            assert_alike(&one, &other, &request);
            (one, other) = (restored(&other), restored(&one));
        }
    }
    one.audit();
    other.audit();
}

fn apply(
    request: &Request,
    apply: impl FnOnce(&Request, &mut Vec<Event>) -> Outcome,
) -> (Vec<Event>, Outcome) {
    let mut events = Vec::new();
    let outcome = apply(request, &mut events);
    (events, outcome)
}

fn assert_alike<A: Book, B: Book>(one: &A, other: &B, last: &Request) {
    assert_eq!(one.snapshot(), other.snapshot(), "after {last:?}");
    assert_eq!(one.instrument(), other.instrument(), "after {last:?}");
    assert_eq!(one.state_hash(), other.state_hash(), "after {last:?}");
    assert_eq!(one.indication(), other.indication(), "after {last:?}");
    assert_eq!(one.deadline(), other.deadline(), "after {last:?}");
    one.audit();
    other.audit();
}

fn restored<B: Book>(from: &impl Book) -> B {
    B::restore(*from.instrument(), &from.snapshot()).expect("a book's state is a legal one")
}

/// Applies the requests in `bytes` to two markets.
///
/// # Panics
/// If they differ.
pub fn compare_markets<A: Book, B: Book>(bytes: &[u8], tally: &mut Tally) {
    let requests = Requests::of_a_market(bytes);
    let mut one = Market::<A>::new(requests.instruments());
    let mut other = Market::<B>::new(requests.instruments());
    for request in requests {
        let told = apply(&request, |request, events| one.apply(request, events));
        let of_other = apply(&request, |request, events| other.apply(request, events));
        assert_eq!(told, of_other, "after {request:?}");
        tally.count(&told.0, &told.1);
        if tally.requests.is_multiple_of(COMPARE_EVERY) {
            assert_markets_alike(&one, &other, &request);
            (one, other) = (restored_market(&other), restored_market(&one));
            // A hash kept up to date is the same hash.
            other.refresh_hash();
        }
    }
    one.audit();
    other.audit();
}

fn assert_markets_alike<A: Book, B: Book>(one: &Market<A>, other: &Market<B>, last: &Request) {
    assert_eq!(one.blocked(), other.blocked(), "after {last:?}");
    assert_eq!(one.deadlines(), other.deadlines(), "after {last:?}");
    assert_eq!(one.time(), other.time(), "after {last:?}");
    assert_eq!(one.books().len(), other.books().len(), "after {last:?}");
    for (book, of_other) in one.books().iter().zip(other.books()) {
        assert_alike(book, of_other, last);
    }
    assert_eq!(one.state_hash(), other.state_hash(), "after {last:?}");
    one.audit();
    other.audit();
}

fn restored_market<B: Book>(from: &Market<impl Book>) -> Market<B> {
    let books = from.books().iter().map(restored).collect();
    let beside = from.beside().collect();
    let market = Market::restore(books, beside, from.blocked().to_vec(), from.time(), from.day().clone());
    market.expect("a market's state is a legal one")
}

/// Any bytes are requests, so these are as good as others.
#[must_use]
pub fn seeds() -> Vec<Vec<u8>> {
    let mut random = Random::new(2_024);
    (0..24).map(|seed| random.bytes(40 + 20 * seed)).collect()
}
