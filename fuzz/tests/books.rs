//! Bytes drawn at random as requests to two books and two markets, and what must have happened in such a run: a
//! comparison is worth as much as what it meets.

#![allow(clippy::unwrap_used)] // a test may panic; clippy lets tests unwrap, but not what they share

#[path = "../../crates/exchange/book/tests/book/wrong.rs"]
mod wrong;

use std::panic::{AssertUnwindSafe, catch_unwind};

use pares_book::{FastBook, NaiveBook};
use pares_fuzz::books::{Tally, compare_books, compare_markets};
use pares_fuzz::damage::Random;
use pares_types::{Reason, Status};

/// Sequences of about 150 requests each.
const SEQUENCES: usize = 1_000;
const BYTES_MAX: usize = 1_500;

fn run(compare: fn(&[u8], &mut Tally)) -> Tally {
    let mut random = Random::new(7);
    let mut tally = Tally::default();
    for sequence in 0..SEQUENCES {
        let bytes = random.bytes(BYTES_MAX * (sequence + 1) / SEQUENCES);
        compare(&bytes, &mut tally);
    }
    tally
}

fn assert_happened(tally: &Tally, kinds: usize, elsewhere: &[Reason]) {
    assert!(tally.requests > 100_000, "{tally:?}");
    for (kind, count) in tally.events[..kinds].iter().enumerate() {
        assert!(*count > 100, "event kind {kind} happened {count} times");
    }
    for status in Status::ALL {
        assert!(tally.statuses[status as usize] > 100, "{status:?} is rare");
    }
    // Now and then only.
    let rare = |reason: &Reason| *reason == Reason::BookCrossed;
    for reason in Reason::ALL.into_iter().filter(|reason| !rare(reason)) {
        let happened = tally.reasons[reason as usize] > 0;
        // Gateways and the register give those.
        let is_elsewhere = matches!(reason as u8, 54..=56 | 58..=59 | 70..) || elsewhere.contains(&reason);
        assert_ne!(happened, is_elsewhere, "{reason:?}: {}", tally.reasons[reason as usize]);
    }
}

/// What gateways refuse, and what needs more orders or instruments than a few bytes name.
const NEVER: [Reason; 16] = [
    Reason::DuplicateRequest,
    Reason::TooOld,
    Reason::TooManySeries,
    Reason::Halted,
    Reason::Overloaded,
    Reason::StorageUnavailable,
    Reason::Throttled,
    Reason::NotRecorded,
    Reason::Void,
    Reason::Quarantined,
    Reason::NotQuarantined,
    Reason::MalformedRequest,
    Reason::NotSignedOn,
    Reason::UnknownClientOrderId,
    Reason::TooManyBusts,
    Reason::TooManyInstruments,
];

#[test]
fn books_answer_random_bytes_alike() {
    let of_markets = [
        Reason::UnknownInstrument,
        Reason::Blocked,
        Reason::InstrumentExists,
        Reason::SymbolInUse,
        Reason::NotBlocked,
        Reason::DayOver,
        Reason::DayNotOver,
        Reason::WrongDay,
    ];
    let elsewhere = [&NEVER[..], &of_markets, &[Reason::TooManyPegs]].concat();
    assert_happened(&run(compare_books::<NaiveBook, FastBook>), 7, &elsewhere);
}

#[test]
fn markets_answer_random_bytes_alike() {
    let elsewhere = [&NEVER[..], &[Reason::TooManyPegs]].concat();
    assert_happened(&run(compare_markets::<NaiveBook, FastBook>), 8, &elsewhere);
}

/// Each defect planted in `wrong` shows within so many sequences of 150 requests.
const CAUGHT_WITHIN: usize = 200;

fn is_caught<D: wrong::Defect>() -> bool {
    let mut random = Random::new(11);
    (0..CAUGHT_WITHIN).any(|_| {
        let bytes = random.bytes(BYTES_MAX / 2);
        let run = || compare_books::<NaiveBook, wrong::Wrong<D>>(&bytes, &mut Tally::default());
        catch_unwind(AssertUnwindSafe(run)).is_err()
    })
}

#[test]
fn planted_defects_are_caught() {
    assert!(!is_caught::<wrong::NoDefect>(), "it is the defects that are caught, not the wrapping");
    assert!(is_caught::<wrong::RefillsInPlace>());
    assert!(is_caught::<wrong::LeavesTheLastStop>());
    assert!(is_caught::<wrong::GrowsInPlace>());
    assert!(is_caught::<wrong::ExpiresLate>());
    assert!(is_caught::<wrong::DecrementsTooMuch>());
    assert!(is_caught::<wrong::AuctionsAtTheLowest>());
    assert!(is_caught::<wrong::HasNoDynamicBand>());
    assert!(is_caught::<wrong::RemembersBusts>());
    assert!(is_caught::<wrong::MassCancelsAsTheyLie>());
    assert!(is_caught::<wrong::ForgetsTheCall>());
}
