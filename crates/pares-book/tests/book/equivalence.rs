//! The two books are one: random requests, compared after each of them.

use crate::checked::Checked;
use crate::script::request;
use pares_book::{Book, FastBook, Level, NaiveBook};
use pares_types::{
    Command, GatewayId, NewOrder, OrderId, OrderKind, Price, Quantity, RequestId, Side, TimeInForce,
};
use proptest::prelude::*;

/// One step of a random run.
#[derive(Clone, Debug)]
enum Step {
    Request {
        member: u32,
        command: Command,
    },
    /// Each book goes on as restored from the other's snapshot.
    Restore,
}

/// Few prices close together, so that orders meet; some off the tick or out of range.
fn price() -> impl Strategy<Value = Price> {
    prop_oneof![
        20 => (0..12_i64).prop_map(|tick| Price(100_000 + tick * 100)),
        1 => Just(Price(100_050)),
        1 => Just(Price(1_000_100)),
    ]
}

/// Mostly legal, sometimes zero, off the lot or too large.
fn quantity() -> impl Strategy<Value = Quantity> {
    prop_oneof![
        20 => (1..8_u64).prop_map(|lots| Quantity(lots * 10)),
        1 => prop::sample::select(vec![Quantity(0), Quantity(15), Quantity(10_010), Quantity(u64::MAX)]),
    ]
}

/// The order entered by one of the first requests, on the book or not.
fn target() -> impl Strategy<Value = OrderId> {
    (1..150_u64).prop_map(|sequence| OrderId(RequestId::new(GatewayId(1), sequence)))
}

fn new_order() -> impl Strategy<Value = NewOrder> {
    let kind =
        prop_oneof![8 => price().prop_map(|price| OrderKind::Limit { price }), 1 => Just(OrderKind::Market)];
    let time_in_force =
        prop_oneof![6 => Just(TimeInForce::Day), 1 => Just(TimeInForce::Ioc), 1 => Just(TimeInForce::Fok)];
    let side = prop::sample::select(vec![Side::Buy, Side::Sell]);
    (side, kind, time_in_force, prop::bool::weighted(0.1), quantity()).prop_map(
        |(side, kind, time_in_force, post_only, quantity)| NewOrder {
            side,
            kind,
            time_in_force,
            post_only,
            quantity,
        },
    )
}

fn command() -> impl Strategy<Value = Command> {
    prop_oneof![
        10 => new_order().prop_map(Command::Enter),
        4 => (target(), price(), quantity())
            .prop_map(|(target, price, quantity)| Command::Amend { target, price, quantity }),
        3 => target().prop_map(|target| Command::Cancel { target }),
        1 => Just(Command::MassCancel),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        30 => (1..4_u32, command()).prop_map(|(member, command)| Step::Request { member, command }),
        1 => Just(Step::Restore),
    ]
}

fn levels(book: &impl Book, side: Side, count: usize) -> Vec<Level> {
    let mut levels = Vec::new();
    book.depth(side, count, &mut |level| levels.push(level));
    levels
}

/// Everything that can be asked of the books has one answer.
fn assert_equal(naive: &NaiveBook, fast: &FastBook) {
    assert_eq!(naive.snapshot(), fast.snapshot());
    assert_eq!(naive.state_hash(), fast.state_hash());
    for side in [Side::Buy, Side::Sell] {
        assert_eq!(naive.best(side), fast.best(side));
        assert_eq!(levels(naive, side, 3), levels(fast, side, 3));
        for level in levels(naive, side, usize::MAX) {
            assert_eq!(naive.front(side, level.price), fast.front(side, level.price));
        }
    }
}

fn restore_each_from_the_other(naive: &mut NaiveBook, fast: &mut FastBook) {
    let (from_naive, from_fast) = (naive.snapshot(), fast.snapshot());
    *naive = NaiveBook::restore(*naive.instrument(), &from_fast).unwrap();
    *fast = FastBook::restore(*fast.instrument(), &from_naive).unwrap();
}

proptest! {
    #[test]
    fn random_requests_leave_the_books_equal(
        orders_max in prop::sample::select(vec![3_u32, 8, 1_000]),
        steps in prop::collection::vec(step(), 1..150),
    ) {
        let (mut naive, mut fast) = (Checked::<NaiveBook>::new(orders_max), Checked::<FastBook>::new(orders_max));
        for (index, step) in steps.iter().enumerate() {
            match step {
                Step::Restore => restore_each_from_the_other(&mut naive.book, &mut fast.book),
                Step::Request { member, command } => {
                    let request = request(index as u64 + 1, *member, *command);
                    prop_assert_eq!(naive.apply(&request), fast.apply(&request));
                }
            }
            assert_equal(&naive.book, &fast.book);
        }
    }
}

/// Numbers that are the same in every run (Knuth's 64-bit linear congruential generator).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }

    /// A price near a middle that wanders, now and then a far one.
    fn price(&mut self, side: Side, step: u64) -> Price {
        let middle = 500_000 + (step / 50 % 2_000) as i64 * 100;
        let away = if self.below(8) == 0 { self.below(2_000) } else { self.below(12) } as i64 * 100;
        match side {
            Side::Buy => Price(middle - away + 300),
            Side::Sell => Price(middle + away - 300),
        }
    }

    fn command(&mut self, step: u64) -> Command {
        let side = if self.below(2) == 0 { Side::Buy } else { Side::Sell };
        let price = self.price(side, step);
        let quantity = Quantity((1 + self.below(50)) * 10);
        let recent = step.saturating_sub(self.below(600)).max(1);
        let target = OrderId(RequestId::new(GatewayId(1), recent));
        match self.below(100) {
            0..=44 => {
                let time_in_force = match self.below(12) {
                    0 => TimeInForce::Ioc,
                    1 => TimeInForce::Fok,
                    _ => TimeInForce::Day,
                };
                let kind = OrderKind::Limit { price };
                Command::Enter(NewOrder { side, kind, time_in_force, post_only: false, quantity })
            }
            45..=54 => Command::Amend { target, price, quantity },
            55..=98 => Command::Cancel { target },
            _ if self.below(40) == 0 => Command::MassCancel,
            _ => Command::Amend { target, price, quantity: Quantity(10) },
        }
    }
}

/// Long enough for every slot, table entry and rung to be used again many times over.
#[test]
fn a_long_run_leaves_the_books_equal() {
    let (mut naive, mut fast) = (Checked::<NaiveBook>::new(2_000), Checked::<FastBook>::new(2_000));
    let (mut random, mut fills) = (Random(23), 0);
    for step in 1..=100_000_u64 {
        let member = (1 + random.below(20)) as u32;
        // A cancel names its order's owner half of the time.
        let request = request(step, if step % 2 == 0 { 1 } else { member }, random.command(step));
        let (events, outcome) = naive.apply_unchecked(&request);
        fills += events.len();
        assert_eq!((events, outcome), fast.apply_unchecked(&request), "step {step}");
        if step % 1_024 == 0 {
            assert_equal(&naive.book, &fast.book);
            fast.book.audit();
        }
        if step % 10_000 == 0 {
            restore_each_from_the_other(&mut naive.book, &mut fast.book);
        }
    }
    assert!(fills > 10_000, "the run trades: {fills}");
    assert!(fast.book.orders_len() > 100, "and leaves a book: {}", fast.book.orders_len());
}
