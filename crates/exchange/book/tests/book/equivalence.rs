//! The two books are one: random requests over all rules, compared after each of them; so are two markets of them. And
//! since a comparison that finds nothing has to show that it would, defects planted on purpose are caught.
//!
//! The short runs shrink when they fail. `cargo xtask compare` runs fresh seeds for as long as its caller says, and is
//! what to run before a change of the rules is trusted.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::Other;
use pares_book::NaiveBook;
use pares_exercise::compare::{ComparePace, CompareTally, compare_books, compare_markets, shortened};
use pares_exercise::requests::Requests;
use pares_exercise::wrong::{self, BookDefect, WrongBook};
use pares_random::Random;
use pares_types::{Reason, Status};
use proptest::prelude::*;

/// Some thousand requests.
const RUN_BYTES: usize = 10_000;

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_requests_leave_the_books_equal(bytes in prop::collection::vec(any::<u8>(), 1..4_000)) {
        compare_books::<NaiveBook, Other>(&bytes, ComparePace::THOROUGH, &mut CompareTally::default());
    }
}

#[test]
fn a_long_run_leaves_the_books_equal() {
    let mut tally = CompareTally::default();
    for seed in 0..120 {
        compare_books::<NaiveBook, Other>(
            &Random::new(seed).bytes(RUN_BYTES),
            ComparePace::THOROUGH,
            &mut tally,
        );
    }
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
    assert_happened(&tally, 7, &of_markets);
}

#[test]
fn a_book_restored_after_every_request_is_the_same_book() {
    for seed in 500..530 {
        let bytes = Random::new(seed).bytes(RUN_BYTES);
        compare_books::<NaiveBook, NaiveBook>(&bytes, ComparePace::RESTORED, &mut CompareTally::default());
    }
}

#[test]
fn random_requests_leave_the_markets_equal() {
    let (mut random, mut tally) = (Random::new(7), CompareTally::default());
    for sequence in 1..=1_000 {
        let bytes = random.bytes(sequence * 3 / 2);
        compare_markets::<NaiveBook, Other>(&bytes, ComparePace::QUICK, &mut tally);
    }
    assert_happened(&tally, 8, &[]);
}

/// What gateways refuse, and what needs more orders or instruments than a few bytes name.
const NEVER: [Reason; 17] = [
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
    Reason::TooManyPegs,
];

/// The run is worth little if something never happens in it.
fn assert_happened(tally: &CompareTally, kinds: usize, elsewhere: &[Reason]) {
    assert!(tally.requests > 80_000, "{tally:?}");
    for (kind, count) in tally.events[..kinds].iter().enumerate() {
        assert!(*count > 100, "event kind {kind} happened {count} times");
    }
    for status in Status::ALL {
        assert!(tally.statuses[status as usize] > 100, "{status:?} is rare");
    }
    // Now and then only.
    for reason in Reason::ALL.into_iter().filter(|reason| *reason != Reason::BookCrossed) {
        let happened = tally.reasons[reason as usize] > 0;
        // Gateways and the register give those.
        let is_late = matches!(reason as u8, 54..=56 | 58..=59 | 70..);
        let is_elsewhere = is_late || NEVER.contains(&reason) || elsewhere.contains(&reason);
        assert_ne!(happened, is_elsewhere, "{reason:?}: {}", tally.reasons[reason as usize]);
    }
}

/// The bytes of the first run, of so many at most, in which a defect is caught.
fn caught<D: BookDefect>(
    runs_max: usize,
    run_bytes: usize,
    pace: ComparePace,
    tally: &mut CompareTally,
) -> Option<Vec<u8>> {
    let mut random = Random::new(11);
    std::iter::repeat_with(|| random.bytes(run_bytes)).take(runs_max).find(|bytes| {
        let run = || compare_books::<NaiveBook, WrongBook<D>>(bytes, pace, tally);
        catch_unwind(AssertUnwindSafe(run)).is_err()
    })
}

macro_rules! caught {
    ($($name:ident: $defect:ident)*) => {
        $(#[test] fn $name() {
            // Runs of about 75 requests, and the less strict of the comparisons.
            let run = caught::<wrong::$defect>(200, 750, ComparePace::QUICK, &mut CompareTally::default());
            assert!(run.is_some(), "{} is not caught", stringify!($defect));
        })*
    };
}

caught! {
    a_refill_that_keeps_its_place_is_caught: RefillsInPlace
    a_stop_too_few_is_caught: LeavesTheLastStop
    a_larger_total_that_keeps_its_place_is_caught: GrowsInPlace
    an_order_that_expires_late_is_caught: ExpiresLate
    a_self_trade_prevented_in_another_way_is_caught: DecrementsTooMuch
    an_auction_at_another_price_is_caught: AuctionsAtTheLowest
    a_missing_band_is_caught: HasNoDynamicBand
    busts_that_outlive_the_day_are_caught: RemembersBusts
    a_mass_cancel_in_another_order_is_caught: MassCancelsAsTheyLie
    a_forgotten_deadline_is_caught: ForgetsTheCall
}

#[test]
fn without_a_defect_nothing_is_caught() {
    let run = caught::<wrong::NoDefect>(200, 750, ComparePace::QUICK, &mut CompareTally::default());
    assert_eq!(run, None, "it is the defects that are caught, not the wrapping");
}

/// Who reads what the comparison found wants to read a few requests, not five hundred.
#[test]
fn what_is_found_is_told_in_a_few_requests() {
    let mut tally = CompareTally::default();
    let bytes = caught::<wrong::RefillsInPlace>(20, RUN_BYTES, ComparePace::THOROUGH, &mut tally).unwrap();
    let rules = Requests::of_a_book(&bytes).instruments()[0];
    let requests = shortened::<NaiveBook, WrongBook<wrong::RefillsInPlace>>(rules, &tally.last_run).unwrap();
    assert!(requests.len() <= 12, "{requests:#?}");
}
