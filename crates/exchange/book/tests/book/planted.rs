//! A comparison that finds nothing has to show that it would: defects planted on purpose are caught.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::compare::{Tally, compare, rules_of, shortened};
use crate::wrong::{self, Defect, Wrong};
use pares_book::NaiveBook;

/// Requests within which every defect shows; the rarest needs a third of that.
const REQUESTS_MAX: u64 = 20_000;

/// The requests until a defect is caught, if it is.
fn caught<D: Defect>() -> Option<u64> {
    let mut tally = Tally::default();
    for seed in 0..REQUESTS_MAX / 1_000 {
        let run = || compare::<NaiveBook, Wrong<D>>(seed, 1_000, false, &mut tally);
        if catch_unwind(AssertUnwindSafe(run)).is_err() {
            return Some(tally.requests + 1);
        }
    }
    None
}

macro_rules! caught {
    ($($name:ident: $defect:ident)*) => {
        $(#[test] fn $name() {
            let requests = caught::<wrong::$defect>();
            println!("{}: {requests:?} requests", stringify!($defect));
            assert!(requests.is_some(), "{} is not caught", stringify!($defect));
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
    assert_eq!(caught::<wrong::NoDefect>(), None);
}

/// Who reads what the comparison found wants to read a few requests, not five hundred (these twelve walk through a day to a trade).
#[test]
fn what_is_found_is_told_in_a_few_requests() {
    let mut tally = Tally::default();
    let mut run = |seed| {
        let run = || compare::<NaiveBook, Wrong<wrong::RefillsInPlace>>(seed, 1_000, false, &mut tally);
        catch_unwind(AssertUnwindSafe(run)).is_err()
    };
    let seed = (0..20).find(|&seed| run(seed)).unwrap();
    let requests =
        shortened::<NaiveBook, Wrong<wrong::RefillsInPlace>>(rules_of(seed), &tally.last_run).unwrap();
    assert!(requests.len() <= 12, "{requests:#?}");
}
