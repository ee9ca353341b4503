//! What books say of themselves, and their own limits, on both books. The rules themselves are in `tests/rules` and `tests/scenarios`.

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
    depth_shows_the_best_levels_first,
    front_is_the_oldest_order_at_a_price,
    order_no_id_is_unknown,
    the_hash_forgets_how_the_state_was_reached,
    a_book_takes_sixty_four_pegs,
    a_day_has_1024_busts,
    a_refused_request_settles,
    depth_shows_what_is_shown,
);

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
