//! Snapshots that are no book are refused by name, and no field of the state escapes the hash.

use crate::Other;
use pares_book::{Book, NaiveBook, Priority, RestingOrder, RestoreError, Snapshot, Transition};
use pares_exercise::checked::instrument;
use pares_exercise::script::Script;
use pares_types::{
    ClientOrderId, MemberId, OrderId, OrderKind, Peg, Phase, Position, Price, Quantity, Reason, RequestId,
    SelfTrade, TimeInForce, Timestamp,
};

/// A bid of ten, older than an offer of twenty.
fn snapshot() -> Snapshot {
    Script::<NaiveBook>::after(&["m1 buy 10 @ 10.00", "m2 sell 20 @ 10.05"]).checked.book.snapshot()
}

/// Why the snapshot is refused after `change`; by both books.
fn error_after(change: impl FnOnce(&mut Vec<RestingOrder>)) -> Option<RestoreError> {
    let mut snapshot = snapshot();
    change(&mut snapshot.orders);
    let naive = NaiveBook::restore(instrument(2), &snapshot).err();
    assert_eq!(Other::restore(instrument(2), &snapshot).err(), naive);
    naive
}

#[test]
fn a_snapshot_that_is_no_book_is_refused() {
    let (first, second) = (snapshot().orders[0], snapshot().orders[1]);
    let illegal = |reason| Some(RestoreError::IllegalTerms { order: first.order, reason });
    assert_eq!(error_after(|_| {}), None);
    let again = Some(RestoreError::OrderIds(first.order));
    assert_eq!(error_after(|orders| orders.push(first)), again);
    assert_eq!(error_after(|o| o[0].remaining = Quantity(0)), illegal(Reason::ZeroQuantity));
    assert_eq!(
        error_after(|o| (o[0].remaining, o[0].shown) = (Quantity(15), Quantity(15))),
        illegal(Reason::OffLot)
    );
    let uncountable = |o: &mut Vec<RestingOrder>| o[0].executed = Quantity(1 << 62);
    assert_eq!(error_after(uncountable), illegal(Reason::QuantityTooLarge));
    assert_eq!(error_after(|o| o[0].executed = Quantity(u64::MAX)), illegal(Reason::QuantityTooLarge));
    assert_eq!(error_after(|o| o[0].price = Price(100_001)), illegal(Reason::OffTick));
    assert_eq!(error_after(|o| o[0].price = Price(0)), illegal(Reason::PriceOutOfRange));
    assert_eq!(
        error_after(|o| o[0].kind = OrderKind::Limit { price: Price(50) }),
        illegal(Reason::PriceOutOfRange)
    );
    assert_eq!(error_after(|o| o[0].trigger = Some(Price(100_001))), illegal(Reason::OffTick));
    assert_eq!(error_after(|o| o[0].shown = Quantity(20)), illegal(Reason::ZeroQuantity));
    assert_eq!(error_after(|o| o[0].time_in_force = TimeInForce::Ioc), illegal(Reason::InvalidCombination));
    // Neither held for a reason nor shown.
    let aside = |o: &mut Vec<RestingOrder>| (o[0].shown, o[0].price) = (Quantity(0), Price(0));
    assert_eq!(error_after(aside), illegal(Reason::InvalidCombination));
    // Hidden shares are an iceberg's.
    let hidden = |o: &mut Vec<RestingOrder>| o[0].remaining = Quantity(20);
    assert_eq!(error_after(hidden), illegal(Reason::InvalidCombination));
    let same_id = |o: &mut Vec<RestingOrder>| o[1].order = first.order;
    assert_eq!(error_after(same_id), Some(RestoreError::OrderIds(first.order)));
    let none = OrderId(RequestId::NONE);
    assert_eq!(error_after(|o| o[1].order = none), Some(RestoreError::OrderIds(none)));
    let same_priority = |o: &mut Vec<RestingOrder>| o[1].priority = Priority(0);
    assert!(matches!(error_after(same_priority), Some(RestoreError::Priorities(_))));
    let future = |o: &mut Vec<RestingOrder>| o[1].priority = Priority(2);
    assert_eq!(error_after(future), Some(RestoreError::Priorities(second.order)));
    let crossed = RestoreError::Crossed { bid: Price(100_500), offer: Price(100_500) };
    assert_eq!(error_after(|o| set_limit(o, Price(100_500))), Some(crossed));
    // An order with a limit rests there.
    assert_eq!(error_after(|o| o[0].price = Price(99_900)), illegal(Reason::InvalidCombination));
    assert_eq!(error_after(|o| o[0].kind = OrderKind::Market), illegal(Reason::InvalidCombination));
    let beyond = OrderKind::Pegged { to: Peg::Best, limit: Price(99_900) };
    assert_eq!(error_after(|o| o[0].kind = beyond), illegal(Reason::InvalidCombination));
}

fn set_limit(orders: &mut [RestingOrder], price: Price) {
    (orders[0].price, orders[0].kind) = (price, OrderKind::Limit { price });
}

#[test]
fn the_orders_of_a_snapshot_may_come_in_any_order() {
    let mut reversed = snapshot();
    reversed.orders.reverse();
    let book = Other::restore(instrument(2), &reversed).unwrap();
    assert_eq!(book.snapshot(), snapshot());
}

#[test]
fn every_field_of_the_state_counts_in_the_hash() {
    let hash_after = |change: fn(&mut Snapshot)| {
        let mut snapshot = snapshot();
        change(&mut snapshot);
        let fast = Other::restore(instrument(10), &snapshot).unwrap().state_hash();
        assert_eq!(fast, NaiveBook::restore(instrument(10), &snapshot).unwrap().state_hash());
        fast
    };
    let hashes = [
        hash_after(|_| {}),
        hash_after(|s| s.orders[0].order = OrderId(RequestId::from_bits(77).unwrap())),
        hash_after(|s| s.orders[0].member = MemberId(7)),
        hash_after(|s| s.orders[0].client_order_id = ClientOrderId(7)),
        hash_after(|s| in_a_call(s, OrderKind::Market)),
        hash_after(|s| in_a_call(s, OrderKind::Limit { price: HIGHEST })),
        hash_after(|s| s.orders[0].kind = OrderKind::Pegged { to: Peg::Best, limit: Price(100_000) }),
        hash_after(|s| s.orders[0].kind = OrderKind::Pegged { to: Peg::Mid, limit: Price(100_000) }),
        hash_after(|s| set_limit(&mut s.orders, Price(99_900))),
        hash_after(|s| {
            s.orders[0].price = Price(99_900);
            s.orders[0].kind = OrderKind::Pegged { to: Peg::Best, limit: Price(100_000) };
        }),
        hash_after(|s| (s.orders[0].remaining, s.orders[0].shown) = (Quantity(20), Quantity(20))),
        hash_after(|s| (s.orders[0].remaining, s.orders[0].display) = (Quantity(20), Quantity(10))),
        hash_after(|s| s.orders[0].executed = Quantity(10)),
        hash_after(|s| s.orders[0].display = Quantity(10)),
        hash_after(|s| s.orders[0].time_in_force = TimeInForce::Gtc),
        hash_after(|s| s.orders[0].time_in_force = TimeInForce::Gtd { until: Timestamp(7) }),
        hash_after(|s| s.orders[0].time_in_force = TimeInForce::Gtd { until: Timestamp(8) }),
        hash_after(|s| s.orders[0].self_trade = SelfTrade::Decrement),
        hash_after(|s| s.orders[0].trigger = Some(Price(100_000))),
        hash_after(swap_priorities),
        hash_after(|s| s.priority_next = Priority(3)),
        hash_after(|s| s.orders.truncate(1)),
        hash_after(|s| s.orders.clear()),
        hash_after(|s| s.trading.phase = Phase::Halted),
        hash_after(|s| s.trading.transition = Some(Transition { to: Phase::Closed, price: None })),
        hash_after(|s| s.trading.transition = Some(Transition { to: Phase::Closed, price: Some(Price(7)) })),
        hash_after(|s| s.trading.phase = Phase::VolatilityCall),
        hash_after(|s| (s.trading.phase, s.trading.until) = (Phase::VolatilityCall, Timestamp(7))),
        hash_after(|s| s.trading.last = Some(Price(7))),
        hash_after(|s| s.trading.reference = Some(Price(7))),
        hash_after(|s| s.trading.closing = Some(Price(7))),
        hash_after(|s| s.trading.time = Timestamp(7)),
        hash_after(|s| s.trading.timetable_done = Timestamp(7)),
        hash_after(|s| s.trading.indicated = Some((Price(7), Quantity(7)))),
        hash_after(|s| s.trading.indicated = Some((Price(8), Quantity(9)))),
        hash_after(|s| s.trading.busts.push((Position(8), 9))),
    ];
    let distinct: std::collections::BTreeSet<u64> = hashes.into_iter().collect();
    assert_eq!(distinct.len(), hashes.len(), "{hashes:x?}");
}

/// The highest legal price, at which market orders to buy wait in a call.
const HIGHEST: Price = Price(1_000_000);

fn in_a_call(snapshot: &mut Snapshot, kind: OrderKind) {
    (snapshot.orders[0].price, snapshot.orders[0].kind) = (HIGHEST, kind);
    snapshot.trading.phase = Phase::OpeningCall;
}

fn swap_priorities(snapshot: &mut Snapshot) {
    (snapshot.orders[0].priority, snapshot.orders[1].priority) =
        (snapshot.orders[1].priority, snapshot.orders[0].priority);
}

#[test]
fn a_trading_state_that_is_no_book_is_refused() {
    let refused_after = |change: fn(&mut Snapshot)| {
        let mut snapshot = snapshot();
        change(&mut snapshot);
        let naive = NaiveBook::restore(instrument(2), &snapshot).err();
        assert_eq!(Other::restore(instrument(2), &snapshot).err(), naive);
        assert!(matches!(naive, Some(RestoreError::Trading(_))), "{naive:?}");
    };
    refused_after(|s| s.trading.busts = vec![(Position(2), 0), (Position(1), 0)]);
    refused_after(|s| s.trading.busts = vec![(Position(1), 0), (Position(1), 0)]);
    refused_after(|s| s.priority_next = Priority(Priority::MAX.0 + 1));
    refused_after(|s| s.trading.until = Timestamp(7));
}

#[test]
fn an_empty_book_is_restored_from_an_empty_snapshot() {
    let restored = Other::restore(instrument(2), &Other::new(instrument(2)).snapshot()).unwrap();
    assert_eq!(restored.state_hash(), Other::new(instrument(2)).state_hash());
}
