//! Snapshots that are no book are refused by name, and no field of an order escapes the hash.

use crate::checked::instrument;
use crate::script::Script;
use pares_book::{Book, FastBook, NaiveBook, Priority, RestingOrder, RestoreError, Snapshot};
use pares_types::{ClientOrderId, MemberId, OrderId, Price, Quantity, Reason, RequestId};

/// A bid of ten, older than an offer of twenty.
fn snapshot() -> Snapshot {
    Script::<NaiveBook>::after(&["m1 buy 10 @ 10.00", "m2 sell 20 @ 10.05"]).checked.book.snapshot()
}

/// Why the snapshot is refused after `change`; by both books.
fn error_after(change: impl FnOnce(&mut Vec<RestingOrder>)) -> Option<RestoreError> {
    let mut snapshot = snapshot();
    change(&mut snapshot.orders);
    let naive = NaiveBook::restore(instrument(2), &snapshot).err();
    assert_eq!(FastBook::restore(instrument(2), &snapshot).err(), naive);
    naive
}

#[test]
fn a_snapshot_that_is_no_book_is_refused() {
    let (first, second) = (snapshot().orders[0], snapshot().orders[1]);
    let illegal = |reason| Some(RestoreError::IllegalTerms { order: first.order, reason });
    assert_eq!(error_after(|_| {}), None);
    let too_many = RestoreError::TooManyOrders { orders: 3, orders_max: 2 };
    assert_eq!(error_after(|orders| orders.push(first)), Some(too_many));
    assert_eq!(error_after(|o| o[0].remaining = Quantity(0)), illegal(Reason::ZeroQuantity));
    assert_eq!(error_after(|o| o[0].remaining = Quantity(15)), illegal(Reason::OffLot));
    assert_eq!(error_after(|o| o[0].executed = Quantity(10_000)), illegal(Reason::QuantityTooLarge));
    assert_eq!(error_after(|o| o[0].executed = Quantity(u64::MAX)), illegal(Reason::QuantityTooLarge));
    assert_eq!(error_after(|o| o[0].price = Price(100_001)), illegal(Reason::OffTick));
    assert_eq!(error_after(|o| o[0].price = Price(0)), illegal(Reason::PriceOutOfRange));
    let same_id = |o: &mut Vec<RestingOrder>| o[1].order = first.order;
    assert_eq!(error_after(same_id), Some(RestoreError::OrderIds(first.order)));
    let none = OrderId(RequestId::NONE);
    assert_eq!(error_after(|o| o[1].order = none), Some(RestoreError::OrderIds(none)));
    let same_priority = |o: &mut Vec<RestingOrder>| o[1].priority = Priority(0);
    assert!(matches!(error_after(same_priority), Some(RestoreError::Priorities(_))));
    let future = |o: &mut Vec<RestingOrder>| o[1].priority = Priority(2);
    assert_eq!(error_after(future), Some(RestoreError::Priorities(second.order)));
    let crossed = RestoreError::Crossed { bid: Price(100_500), offer: Price(100_500) };
    assert_eq!(error_after(|o| o[0].price = Price(100_500)), Some(crossed));
}

#[test]
fn the_orders_of_a_snapshot_may_come_in_any_order() {
    let mut reversed = snapshot();
    reversed.orders.reverse();
    let book = FastBook::restore(instrument(2), &reversed).unwrap();
    assert_eq!(book.snapshot(), snapshot());
}

#[test]
fn every_field_of_an_order_counts_in_the_hash() {
    let hash_after = |change: fn(&mut Snapshot)| {
        let mut snapshot = snapshot();
        change(&mut snapshot);
        let fast = FastBook::restore(instrument(10), &snapshot).unwrap().state_hash();
        assert_eq!(fast, NaiveBook::restore(instrument(10), &snapshot).unwrap().state_hash());
        fast
    };
    let hashes = [
        hash_after(|_| {}),
        hash_after(|s| s.orders[0].order = OrderId(RequestId::from_bits(77).unwrap())),
        hash_after(|s| s.orders[0].member = MemberId(7)),
        hash_after(|s| s.orders[0].client_order_id = ClientOrderId(7)),
        hash_after(|s| s.orders[0].price = Price(99_900)),
        hash_after(|s| s.orders[0].remaining = Quantity(20)),
        hash_after(|s| s.orders[0].executed = Quantity(10)),
        hash_after(swap_priorities),
        hash_after(|s| s.priority_next = Priority(3)),
        hash_after(|s| s.orders.truncate(1)),
        hash_after(|s| s.orders.clear()),
    ];
    let distinct: std::collections::BTreeSet<u64> = hashes.into_iter().collect();
    assert_eq!(distinct.len(), hashes.len(), "{hashes:x?}");
}

fn swap_priorities(snapshot: &mut Snapshot) {
    (snapshot.orders[0].priority, snapshot.orders[1].priority) =
        (snapshot.orders[1].priority, snapshot.orders[0].priority);
}

#[test]
fn an_empty_book_is_restored_from_an_empty_snapshot() {
    let restored = FastBook::restore(instrument(2), &Snapshot::default()).unwrap();
    assert_eq!(restored.state_hash(), FastBook::new(instrument(2)).state_hash());
}
