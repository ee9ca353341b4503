//! The two books are one: random requests over all rules, compared after each of them.
//!
//! The short runs shrink when they fail. `cargo xtask compare` goes on with fresh seeds for as long as it is told, and is
//! what to run before a change of the rules is trusted.

use crate::Other;
use crate::compare::{Tally, compare};
use pares_book::NaiveBook;
use pares_types::{Reason, Status};
use proptest::prelude::*;

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
        Blocked, DuplicateRequest, Halted, InstrumentExists, MalformedRequest, NotBlocked, NotSignedOn,
        Overloaded, StorageUnavailable, TooManyBusts, TooManyInstruments, TooManyPegs, UnknownClientOrderId,
        UnknownInstrument,
    };
    // Shards and gateways give these, and all from `throttled` on.
    let elsewhere = [
        Blocked,
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
    ];
    for (kind, count) in tally.events[..7].iter().enumerate() {
        assert!(*count > 10, "event kind {kind} happened {count} times");
    }
    for status in Status::ALL {
        assert!(tally.statuses[status as usize] > 10, "{status:?} is rare");
    }
    for reason in Reason::ALL {
        let count = tally.reasons[reason as usize];
        let is_late = reason as u8 >= Reason::Throttled as u8 && reason != Reason::BookCrossed;
        let is_elsewhere = is_late || elsewhere.contains(&reason);
        assert!(count > 0 || is_elsewhere, "{reason:?} never happened");
    }
}
