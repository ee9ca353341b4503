//! Written trading days in `tests/scenarios`: every request followed by all that it caused.
//!
//! A file is its own expectation: the indented lines are replaced by what happens. After a wanted
//! change of the rules run the tests with `UPDATE_EXPECT=1` and review the difference.

use crate::Other;
use crate::script::Script;
use expect_test::expect_file;
use pares_book::{Book, NaiveBook};

/// The file with every indented line as this book would have it.
fn trace<B: Book>(text: &str) -> String {
    let mut script = Script::<B>::new();
    let mut trace = String::new();
    for line in text.lines().filter(|line| !line.starts_with(' ')) {
        trace.push_str(&format!("{line}\n"));
        if !line.is_empty() && !line.starts_with('#') {
            script.say(line).iter().for_each(|said| trace.push_str(&format!("    {said}\n")));
        }
    }
    trace
}

macro_rules! scenarios {
    ($($name:ident),* $(,)?) => {
        $(
            #[test]
            fn $name() {
                let text = include_str!(concat!("../scenarios/", stringify!($name), ".txt"));
                let expected = expect_file![concat!("../scenarios/", stringify!($name), ".txt")];
                expected.assert_eq(&trace::<NaiveBook>(text));
                assert_eq!(trace::<Other>(text), trace::<NaiveBook>(text));
            }
        )*
    };
}

scenarios!(
    a_call_ends_late,
    a_full_book,
    a_full_book_and_held_orders,
    a_limit_is_never_passed,
    a_quiet_morning,
    amend_display,
    amend_held_orders,
    amend_pegs,
    amend_price_and_total,
    amend_refusals,
    amend_time_in_force,
    amend_total,
    amend_trigger,
    amends,
    an_amend_never_rests_crossed,
    checks_in_order,
    combinations,
    dynamic_band,
    fill_or_kill,
    fill_or_kill_within_a_step,
    fills_at_the_resting_price,
    icebergs_refill,
    icebergs_swept,
    ids_end_with_their_order,
    mass_cancel_by_side,
    mass_cancel_in_steps,
    mass_cancels,
    minimum_quantity,
    no_phantom_best_price,
    nothing_immediate_rests,
    orders_that_never_rest,
    price_then_time,
    refusals,
    siblings_keep_their_place,
    static_band,
    step_limit_of_an_order,
    volatility_call,
    what_a_phase_takes,
);
