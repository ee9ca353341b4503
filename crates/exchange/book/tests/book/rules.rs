//! The rules one by one, on both books.

use pares_book::{Book, Level, NaiveBook};
use pares_exercise::script::{Script, request};
use pares_types::{Command, OrderId, Price, Quantity, RequestId, Side};

macro_rules! on_both_books {
    ($($name:ident),* $(,)?) => {
        mod naive { $(#[test] fn $name() { super::$name::<super::NaiveBook>(); })* }
        mod fast { $(#[test] fn $name() { super::$name::<crate::Other>(); })* }
    };
}

on_both_books!(
    the_better_price_trades_first,
    at_one_price_the_older_order_trades_first,
    a_trade_happens_at_the_resting_price,
    a_partly_filled_order_keeps_its_place,
    what_is_left_of_a_day_order_rests,
    a_market_order_takes_every_price_and_never_rests,
    a_market_order_for_the_day_is_a_market_order,
    an_ioc_keeps_to_its_limit,
    a_fok_that_cannot_fill_trades_nothing,
    a_fok_fills_over_several_prices,
    a_market_fok_is_legal,
    post_only_never_takes,
    post_only_away_from_the_market_rests,
    a_smaller_total_keeps_priority,
    a_larger_total_loses_priority,
    a_new_price_loses_priority,
    an_amend_may_trade_at_once,
    amend_to_new_price_and_less_reports_difference,
    an_amend_keeps_what_was_executed,
    only_the_owner_may_cancel,
    only_the_owner_may_amend,
    a_cancelled_order_is_gone,
    a_mass_cancel_takes_the_members_orders_by_age,
    an_emptied_price_can_be_used_again,
    depth_shows_the_best_levels_first,
    front_is_the_oldest_order_at_a_price,
    order_no_id_is_unknown,
    the_hash_forgets_how_the_state_was_reached,
    a_book_takes_sixty_four_pegs,
    a_day_has_1024_busts,
    a_refused_request_settles,
    depth_shows_what_is_shown,
);

fn the_better_price_trades_first<B: Book>() {
    let mut book = Script::<B>::after(&["a = m1 sell 10 @ 10.02", "b = m2 sell 10 @ 10.01"]);
    assert_eq!(book.say("m3 buy 10 @ 10.02")[0], "fill 10 @ 10.01 with b of m2, 0 left");
}

fn at_one_price_the_older_order_trades_first<B: Book>() {
    let mut book = Script::<B>::after(&["a = m1 buy 10 @ 10.00", "b = m2 buy 10 @ 10.00"]);
    assert_eq!(book.say("m3 sell 10 @ 10.00")[0], "fill 10 @ 10.00 with a of m1, 0 left");
}

fn a_trade_happens_at_the_resting_price<B: Book>() {
    let mut book = Script::<B>::after(&["a = m1 buy 10 @ 10.00"]);
    assert_eq!(book.say("m3 sell 10 @ 9.50")[0], "fill 10 @ 10.00 with a of m1, 0 left");
}

fn a_partly_filled_order_keeps_its_place<B: Book>() {
    let mut book = Script::<B>::after(&["a = m1 buy 30 @ 10.00", "m2 buy 30 @ 10.00", "m3 sell 10 @ 10.00"]);
    assert_eq!(book.say("m3 sell 10 @ 10.00")[0], "fill 10 @ 10.00 with a of m1, 10 left");
}

fn what_is_left_of_a_day_order_rests<B: Book>() {
    let mut book = Script::<B>::after(&["a = m1 sell 10 @ 10.00"]);
    assert_eq!(book.say("b = m2 buy 30 @ 10.05")[1], "b resting: executed 10, remaining 20");
    assert_eq!(book.say("book"), ["buy  10.05: b m2 20"]);
}

fn a_market_order_takes_every_price_and_never_rests<B: Book>() {
    let mut book = Script::<B>::after(&["a = m1 sell 10 @ 1.00", "b = m1 sell 10 @ 100.00"]);
    let said = book.say("c = m2 buy 30 @ market ioc");
    assert_eq!(
        said[2..],
        ["cancelled 10 of c of m2, remainder", "c cancelled (nothing_to_trade): executed 20"]
    );
    assert!(book.say("book").is_empty());
}

fn a_market_order_for_the_day_is_a_market_order<B: Book>() {
    let mut book = Script::<B>::new();
    assert_eq!(book.say("a = m1 sell 10 @ market")[1], "a cancelled (nothing_to_trade): executed 0");
}

fn an_ioc_keeps_to_its_limit<B: Book>() {
    let mut book = Script::<B>::after(&["a = m1 sell 10 @ 10.00", "b = m1 sell 10 @ 10.01"]);
    assert_eq!(book.say("c = m2 buy 30 @ 10.00 ioc")[2], "c cancelled (nothing_to_trade): executed 10");
    assert_eq!(book.say("book"), ["sell 10.01: b m1 10"]);
}

fn a_fok_that_cannot_fill_trades_nothing<B: Book>() {
    let mut book = Script::<B>::after(&["a = m1 sell 10 @ 10.00", "b = m1 sell 10 @ 10.01"]);
    let said = book.say("c = m2 buy 20 @ 10.00 fok");
    assert_eq!(
        said,
        ["cancelled 20 of c of m2, fill or kill", "c cancelled (cannot_fill_whole): executed 0"]
    );
    assert_eq!(book.say("book"), ["sell 10.01: b m1 10", "sell 10.00: a m1 10"]);
}

fn a_fok_fills_over_several_prices<B: Book>() {
    let mut book = Script::<B>::after(&["a = m1 sell 10 @ 10.00", "b = m1 sell 20 @ 10.01"]);
    assert_eq!(book.say("c = m2 buy 20 @ 10.01 fok")[2], "c filled: executed 20");
}

fn a_market_fok_is_legal<B: Book>() {
    let mut book = Script::<B>::after(&["a = m1 buy 10 @ 10.00"]);
    assert_eq!(book.say("b = m2 sell 20 @ market fok")[1], "b cancelled (cannot_fill_whole): executed 0");
    assert_eq!(book.say("c = m2 sell 10 @ market fok")[1], "c filled: executed 10");
}

fn post_only_never_takes<B: Book>() {
    let mut book = Script::<B>::after(&["a = m1 sell 10 @ 10.00"]);
    assert_eq!(book.say("b = m2 buy 10 @ 10.00 post"), ["b refused (would_trade): executed 0, remaining 0"]);
}

fn post_only_away_from_the_market_rests<B: Book>() {
    let mut book = Script::<B>::after(&["a = m1 sell 10 @ 10.00"]);
    assert_eq!(book.say("b = m2 buy 10 @ 9.99 post"), ["b resting: executed 0, remaining 10"]);
}

fn a_smaller_total_keeps_priority<B: Book>() {
    let mut book = Script::<B>::after(&["a = m1 buy 30 @ 10.00", "b = m2 buy 30 @ 10.00"]);
    let said = book.say("m1 amend a 20 @ 10.00");
    assert_eq!(said, ["cancelled 10 of a of m1, reduced", "a resting: executed 0, remaining 20"]);
    assert_eq!(book.say("book"), ["buy  10.00: a m1 20, b m2 30"]);
}

fn a_larger_total_loses_priority<B: Book>() {
    let mut book = Script::<B>::after(&["a = m1 buy 30 @ 10.00", "b = m2 buy 30 @ 10.00"]);
    assert_eq!(book.say("m1 amend a 40 @ 10.00"), ["a resting: executed 0, remaining 40"]);
    assert_eq!(book.say("book"), ["buy  10.00: b m2 30, a m1 40"]);
}

fn a_new_price_loses_priority<B: Book>() {
    let mut book = Script::<B>::after(&["a = m1 buy 30 @ 10.00", "b = m2 buy 30 @ 10.00"]);
    book.say("m1 amend a 30 @ 9.99");
    book.say("m1 amend a 30 @ 10.00");
    assert_eq!(book.say("book"), ["buy  10.00: b m2 30, a m1 30"]);
}

fn an_amend_may_trade_at_once<B: Book>() {
    let mut book = Script::<B>::after(&["a = m1 buy 30 @ 10.00", "b = m2 sell 20 @ 10.05"]);
    let said = book.say("m1 amend a 30 @ 10.06");
    assert_eq!(said, ["fill 20 @ 10.05 with b of m2, 0 left", "a resting: executed 20, remaining 10"]);
    assert_eq!(book.say("book"), ["buy  10.06: a m1 10"]);
}

fn amend_to_new_price_and_less_reports_difference<B: Book>() {
    let mut book = Script::<B>::after(&["a = m1 buy 30 @ 10.00"]);
    let said = book.say("m1 amend a 20 @ 9.00");
    assert_eq!(said, ["cancelled 10 of a of m1, reduced", "a resting: executed 0, remaining 20"]);
}

fn an_amend_keeps_what_was_executed<B: Book>() {
    let mut book = Script::<B>::after(&["a = m1 buy 50 @ 10.00", "m2 sell 20 @ 10.00"]);
    assert_eq!(book.say("m1 amend a 60 @ 9.00"), ["a resting: executed 20, remaining 40"]);
    assert_eq!(
        book.say("m1 amend a 20 @ 9.00"),
        ["cancelled 40 of a of m1, reduced", "a cancelled (requested): executed 20"]
    );
}

fn only_the_owner_may_cancel<B: Book>() {
    let mut book = Script::<B>::after(&["a = m1 buy 10 @ 10.00"]);
    assert_eq!(book.say("m2 cancel a"), ["a refused (unknown_order): executed 0, remaining 0"]);
}

fn only_the_owner_may_amend<B: Book>() {
    let mut book = Script::<B>::after(&["a = m1 buy 20 @ 10.00"]);
    assert_eq!(book.say("m2 amend a 10 @ 10.00"), ["a refused (unknown_order): executed 0, remaining 0"]);
}

fn a_cancelled_order_is_gone<B: Book>() {
    let mut book = Script::<B>::after(&["a = m1 buy 30 @ 10.00", "m2 sell 10 @ 10.00"]);
    assert_eq!(
        book.say("m1 cancel a"),
        ["cancelled 20 of a of m1, requested", "a cancelled (requested): executed 10"]
    );
    assert_eq!(book.say("m1 cancel a"), ["a refused (unknown_order): executed 0, remaining 0"]);
}

fn a_mass_cancel_takes_the_members_orders_by_age<B: Book>() {
    let orders =
        ["a = m1 sell 10 @ 10.05", "b = m1 buy 10 @ 9.00", "m2 buy 10 @ 9.00", "c = m1 buy 10 @ 9.50"];
    let mut book = Script::<B>::after(&orders);
    book.say("m1 amend a 10 @ 10.06"); // a is the youngest now
    let said = book.say("m1 mass cancel");
    let causes = ["b", "c", "a"].map(|name| format!("cancelled 10 of {name} of m1, mass cancel"));
    assert_eq!(said[..3], causes);
    assert_eq!(book.say("book").len(), 1);
}

fn an_emptied_price_can_be_used_again<B: Book>() {
    let mut book = Script::<B>::after(&["a = m1 buy 10 @ 10.00", "m1 cancel a", "b = m1 buy 10 @ 10.00"]);
    assert_eq!(book.say("m2 sell 10 @ 10.00")[0], "fill 10 @ 10.00 with b of m1, 0 left");
}

fn depth_shows_the_best_levels_first<B: Book>() {
    let lines = ["m1 buy 10 @ 9.00", "m1 buy 10 @ 10.00", "m1 buy 20 @ 10.00", "m1 buy 10 @ 8.00"];
    let book = Script::<B>::after(&lines).checked.book;
    let mut levels = Vec::new();
    book.depth(Side::Buy, 2, &mut |level| levels.push(level));
    let level = |price, quantity, orders| Level { price: Price(price), quantity: Quantity(quantity), orders };
    assert_eq!(levels, [level(100_000, 30, 2), level(90_000, 10, 1)]);
    assert_eq!(book.best(Side::Buy), Some(levels[0]));
    assert_eq!(book.best(Side::Sell), None);
}

fn front_is_the_oldest_order_at_a_price<B: Book>() {
    let script = Script::<B>::after(&["a = m1 buy 10 @ 10.00", "b = m2 buy 10 @ 10.00", "m3 buy 10 @ 10.01"]);
    let book = &script.checked.book;
    assert_eq!(book.front(Side::Buy, Price(100_000)), Some(script.id("a")));
    assert_eq!(book.front(Side::Sell, Price(100_000)), None);
    assert_eq!(book.front(Side::Buy, Price(100_200)), None);
}

fn order_no_id_is_unknown<B: Book>() {
    let mut script = Script::<B>::after(&["a = m1 buy 10 @ 10.00"]);
    let none = OrderId(RequestId::NONE);
    assert_eq!(script.checked.book.order(none), None);
    let (_, outcome) = script.checked.apply(&request(9, 1, Command::Cancel { target: none }));
    assert_eq!(outcome.order, none);
}

fn the_hash_forgets_how_the_state_was_reached<B: Book>() {
    let direct = Script::<B>::after(&["m1 buy 10 @ 10.00", "m2 buy 30 @ 10.00"]).checked.book;
    let amended =
        Script::<B>::after(&["m1 buy 10 @ 10.00", "b = m2 buy 50 @ 10.00", "m2 amend b 30 @ 10.00"]);
    assert_eq!(direct.state_hash(), amended.checked.book.state_hash());
    assert_ne!(direct.state_hash(), Script::<B>::after(&["m1 buy 10 @ 10.00"]).checked.book.state_hash());
}

/// More pegged orders than a book takes.
fn a_book_takes_sixty_four_pegs<B: Book>() {
    let mut book = Script::<B>::new();
    for place in 0..64 {
        let member = 1 + place / 8;
        let peg = format!("a = m{member} buy 10 @ 10.00 peg best");
        assert_eq!(book.say(&peg), ["a held: executed 0, remaining 10"]);
    }
    let refused = ["b refused (too_many_pegs): executed 0, remaining 0"];
    assert_eq!(book.say("b = m9 buy 10 @ 10.00 peg best"), refused);
    book.say("m8 cancel a");
    // All of them move in one step, and all of them are withdrawn in one.
    assert_eq!(book.say("m2 buy 10 @ 9.00").len(), 2 * 63 + 1);
    assert_eq!(book.say("phase halted").len(), 63 + 2);
}

fn a_day_has_1024_busts<B: Book>() {
    let mut book = Script::<B>::after(&["a = m1 buy 10 @ 10.00"]);
    for index in 0..1_024 {
        assert_eq!(book.say(&format!("bust a a 10 @ 10.00 at 7.{index}")).len(), 2);
    }
    assert_eq!(book.say("bust a a 10 @ 10.00 at 7.1024"), ["refused (too_many_busts)"]);
    assert_eq!(book.say("bust a a 10 @ 10.00 at 7.3"), ["refused (already_busted)"]);
}

/// What an earlier step had to leave is done by a request that is refused for this very book, too.
fn a_refused_request_settles<B: Book>() {
    let mut book = Script::<B>::after(&[
        "new step_max 1",
        "b = m1 buy 10 @ 10.00",
        "s = m2 sell 10 @ 9.00 stop 10.00",
        "m3 sell 10 @ 10.00",
    ]);
    let said = book.say("m4 cancel b");
    assert_eq!(said[0], "incoming s of m2: sell 10 @ 9.00, triggered");
    assert_eq!(said.last().unwrap(), "b refused (unknown_order): executed 0, remaining 0");
}

fn depth_shows_what_is_shown<B: Book>() {
    let book = Script::<B>::after(&["m1 buy 100 @ 10.00 show 30", "m1 buy 20 @ 10.00"]).checked.book;
    let level = Level { price: Price(100_000), quantity: Quantity(50), orders: 2 };
    assert_eq!(book.best(Side::Buy), Some(level));
}
