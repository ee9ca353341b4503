//! Written trading days in `tests/scenarios`: every request followed by all that it caused.
//!
//! A file is its own expectation: the indented lines are replaced by what happens. After a wanted
//! change of the rules run the tests with `UPDATE_EXPECT=1` and review the difference.
//!
//! Lines with a `>` are messages of the market data: they stay as they are here, and `pares-feed` tests them.

use crate::Other;
use expect_test::expect_file;
use pares_book::{Book, NaiveBook};
use pares_exercise::script::Script;

/// The file with every indented line as this book would have it.
fn trace<B: Book>(text: &str) -> String {
    let mut script = Script::<B>::new();
    let mut trace = String::new();
    for line in text.lines() {
        if line.starts_with("    >") {
            trace.push_str(&format!("{line}\n"));
        }
        if line.starts_with(' ') {
            continue;
        }
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
    a_call_before_the_first_time,
    a_call_ends_late,
    a_full_book,
    a_full_book_and_held_orders,
    a_halt_ends_a_transition,
    a_halt_never_trades,
    a_halt_waits_for_what_is_under_way,
    a_halted_closing_call,
    a_limit_is_never_passed,
    a_quiet_morning,
    a_schedule_catches_up,
    a_schedule_changed,
    a_session_ends,
    a_whole_day,
    after_the_close,
    amend_display,
    amend_display_decreased,
    amend_held_orders,
    amend_pegs,
    amend_price_and_total,
    amend_refusals,
    amend_time_in_force,
    amend_to_what_is_executed,
    amend_total,
    amend_trigger,
    amends,
    an_amend_never_rests_crossed,
    an_instrument_is_removed,
    an_order_in_many_steps,
    at_the_close,
    at_the_open,
    auction_1_largest_volume,
    auction_2_smallest_surplus,
    auction_3_the_side_that_is_left,
    auction_4_the_reference_price,
    auction_between_its_steps,
    auction_ends_at_random,
    auction_extended_for_market_orders,
    auction_in_steps,
    auction_of_icebergs,
    auction_of_market_orders,
    auction_too_small_for_a_price,
    auction_triggers_stops,
    auction_within_bands,
    bands_near_zero,
    busts,
    checks_in_order,
    choices_of_auctions,
    closing_price_without_an_auction,
    combinations,
    day_end,
    day_end_in_steps,
    dynamic_band,
    fill_or_kill,
    fill_or_kill_within_a_step,
    fills_at_the_resting_price,
    halt_and_resume,
    icebergs_in_whole_peaks,
    icebergs_refill,
    icebergs_swept,
    ids_end_with_their_order,
    indicative_prices,
    kinds_of_phase_requests,
    market_orders_rest,
    mass_cancel_by_side,
    mass_cancel_in_steps,
    mass_cancels,
    minimum_quantity,
    no_phantom_best_price,
    nothing_immediate_rests,
    only_the_exchange,
    orders_expire,
    orders_that_never_rest,
    pegs_in_a_table_of_ticks,
    pegs_of_a_member,
    pegs_sleep_in_a_call,
    pegs_to_the_best,
    pegs_to_the_middle,
    pegs_trade_by_themselves,
    post_only_is_kept,
    price_then_time,
    published_asx_marketgrid,
    published_binance,
    published_bnb,
    published_cme,
    published_coinbase,
    published_tsx,
    published_xetra,
    published_xetra_shares,
    refusals,
    release_in_steps,
    rules_while_running,
    self_trade_and_a_band,
    self_trade_cancels_both,
    self_trade_cancels_incoming,
    self_trade_cancels_resting,
    self_trade_decrements,
    self_trade_in_a_call,
    self_trade_in_many_steps,
    siblings_keep_their_place,
    static_band,
    step_limit_of_an_order,
    stop_limits,
    stops_and_self_trade,
    stops_bounded_cascade,
    stops_cascade,
    stops_cut_short,
    stops_in_order,
    stops_meet_a_band,
    stops_stay_elected,
    stops_trigger,
    stops_wait_elected_in_a_call,
    the_day_ends_in_steps,
    the_day_ends_without_a_trade,
    the_kill_switch,
    the_reference_is_set,
    tick_tables,
    volatility_call,
    what_a_phase_takes,
);
