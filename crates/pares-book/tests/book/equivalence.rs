//! The two books are one: random requests over all rules, compared after each of them.
//!
//! The short runs shrink when they fail; the long ones name the seed that repeats them.

use crate::Other;
use crate::checked::Checked;
use crate::random::{Flow, Random, instrument};
use pares_book::{Book, Level, NaiveBook};
use pares_types::{Event, Outcome, Side, Status};
use proptest::prelude::*;

/// Everything that can be asked of the books has one answer.
fn assert_equal(one: &impl Book, other: &impl Book, when: &str) {
    assert_eq!(one.snapshot(), other.snapshot(), "{when}");
    assert_eq!(one.instrument(), other.instrument());
    assert_eq!(one.state_hash(), other.state_hash());
    assert_eq!(one.deadline(), other.deadline(), "{when}");
    assert_eq!(one.indication(), other.indication());
    for side in [Side::Buy, Side::Sell] {
        assert_eq!(one.best(side), other.best(side));
        assert_eq!(levels(one, side, 3), levels(other, side, 3));
        for level in levels(one, side, usize::MAX) {
            assert_eq!(one.front(side, level.price), other.front(side, level.price));
        }
    }
}

fn levels(book: &impl Book, side: Side, count: usize) -> Vec<Level> {
    let mut levels = Vec::new();
    book.depth(side, count, &mut |level| levels.push(level));
    levels
}

fn restored<B: Book>(from: &impl Book) -> B {
    B::restore(*from.instrument(), &from.snapshot()).unwrap()
}

/// What happened in a run.
#[derive(Default)]
struct Tally {
    events: [usize; 8],
    statuses: [usize; 8],
    /// By the code of the reason.
    reasons: Vec<usize>,
}

impl Tally {
    fn count(&mut self, events: &[Event], outcome: &Outcome) {
        for event in events {
            let kind = match event {
                Event::Fill { .. } => 0,
                Event::Cancelled { .. } => 1,
                Event::Incoming { .. } => 2,
                Event::Rested { .. } => 3,
                Event::PhaseEntered { .. } => 4,
                Event::Auction { .. } => 5,
                Event::Busted { .. } => 6,
                Event::Instrument(_) => 7,
            };
            self.events[kind] += 1;
        }
        self.statuses[outcome.status as usize] += 1;
        self.reasons.resize(pares_types::Reason::ALL.len(), 0);
        self.reasons[outcome.reason as usize] += 1;
    }
}

/// Applies `steps` random requests to two books, each of which goes on now and then, or always, as restored
/// from the other's snapshot.
fn compare<A: Book, B: Book>(seed: u64, steps: u64, always_restore: bool, tally: &mut Tally) {
    let mut random = Random::new(seed);
    let rules = instrument(&mut random);
    let (mut one, mut other) = (Checked::<A>::of(rules), Checked::<B>::of(rules));
    let mut flow = Flow::new(seed);
    for step in 1..=steps {
        if always_restore || random.below(25) == 0 {
            let from_other = restored(&other.book);
            other.book = restored(&one.book);
            one.book = from_other;
        }
        let request = flow.next(&one.book);
        let (events, outcome) = one.apply(&request);
        let told = (&events, &outcome);
        let (events, outcome) = other.apply(&request);
        let when = format!("seed {seed}, step {step}: {request:?}");
        assert_eq!(told, (&events, &outcome), "{when}");
        assert_equal(&one.book, &other.book, &when);
        tally.count(&events, &outcome);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_requests_leave_the_books_equal(seed in any::<u32>(), steps in 1_u64..400) {
        compare::<NaiveBook, Other>(seed.into(), steps, false, &mut Tally::default());
    }
}

#[test]
fn a_long_run_leaves_the_books_equal() {
    let mut tally = Tally::default();
    for seed in 0..120 {
        compare::<NaiveBook, Other>(seed, 1_000, false, &mut tally);
    }
    assert_everything_happened(&tally);
}

/// `cargo test --release -p pares-book -- --ignored` before a change of the rules is trusted.
#[test]
#[ignore = "takes minutes"]
fn millions_of_requests_leave_the_books_equal() {
    for seed in 1_000..6_000 {
        compare::<NaiveBook, Other>(seed, 1_000, false, &mut Tally::default());
    }
}

/// A snapshot that leaves something out would show at the next request.
#[test]
fn a_book_restored_after_every_request_is_the_same_book() {
    for seed in 500..530 {
        compare::<NaiveBook, NaiveBook>(seed, 1_000, true, &mut Tally::default());
    }
}

/// The run is worth little if something never happens in it.
fn assert_everything_happened(tally: &Tally) {
    use pares_types::Reason::{
        DuplicateRequest, Halted, InstrumentExists, MalformedRequest, NotBlocked, NotSignedOn, Overloaded,
        StorageUnavailable, TooManyBusts, TooManyInstruments, TooManyPegs, UnknownClientOrderId,
        UnknownInstrument,
    };
    let elsewhere = [
        DuplicateRequest,
        Halted,
        InstrumentExists,
        MalformedRequest,
        NotBlocked,
        NotSignedOn,
        Overloaded,
        StorageUnavailable,
        TooManyBusts,
        TooManyInstruments,
        TooManyPegs,
        UnknownClientOrderId,
        UnknownInstrument,
        pares_types::Reason::Blocked,
    ];
    for (kind, count) in tally.events[..7].iter().enumerate() {
        assert!(*count > 10, "event kind {kind} happened {count} times");
    }
    for status in Status::ALL {
        assert!(tally.statuses[status as usize] > 10, "{status:?} is rare");
    }
    for reason in pares_types::Reason::ALL {
        let count = tally.reasons[reason as usize];
        assert!(count > 0 || elsewhere.contains(&reason), "{reason:?} never happened");
    }
}
