//! The five transactions on a store in memory, and conditions that see a wrong row.

use std::collections::BTreeMap;

use pares_site::{Application, ApplicationError};
use pares_store::{Applied, Memory, Reads, Store, Work};
use pares_tpcc::Kind;
use pares_wice::codec::DecodeError;
use pares_wice::{Change, Key, TransactionId, Value, Version, Write};

use super::*;
use crate::request::{CustomerAsked, Payment};
use crate::rows::{
    Customer, District, History, Open, Order, OrderLine, Row, Stock, Warehouse, YEAR, key, look,
};

const SCALE: DatabaseSize = DatabaseSize { warehouses: 2, customers: 30, items: 200 };

fn attempt(store: &Memory, request: &[u8]) -> Result<(Vec<Write>, Vec<u8>), ApplicationError> {
    let snapshot = store.snapshot().unwrap();
    let mut work = Work::new(&*snapshot);
    let reply = execute(request, &mut work)?;
    let id = TransactionId { client: 1, sequence: 1 };
    Ok((work.finish(id, 0, snapshot.version()).writes, reply))
}

fn apply(store: &Memory, writes: Vec<Write>) {
    let before = store.snapshot().unwrap();
    let writes = writes.into_iter().map(|Write { key, change }| {
        let value = match change {
            Change::Put(value) => Some(value),
            Change::Delete => None,
            Change::Add(more) => {
                let had = before.get(&key).unwrap().map_or(0, |value| value.as_counter().unwrap());
                Some(Value::counter(had + i128::from(more)))
            }
        };
        (key, value)
    });
    let version = Version(before.version().0 + 1);
    store.apply(&[Applied { version, writes: writes.collect() }], None).unwrap();
}

fn done(store: &Memory, request: &[u8]) -> Vec<u8> {
    let (writes, reply) = attempt(store, request).unwrap();
    apply(store, writes);
    reply
}

fn read(store: &Memory, request: &[u8]) -> Result<Vec<u8>, ApplicationError> {
    Wholesale.read(request, &*store.snapshot().unwrap())
}

fn broken(store: &Memory) -> Vec<String> {
    let told =
        SCALE.checks().into_iter().map(|check| String::from_utf8(read(store, &check).unwrap()).unwrap());
    told.filter(|told| !told.is_empty()).collect()
}

fn populated() -> Memory {
    let store = Memory::default();
    for part in SCALE.population() {
        done(&store, &part);
    }
    store
}

/// A database after some hundred errands, and their receipts.
fn used(in_counters: bool) -> (Memory, Receipts) {
    let (store, mut receipts) = (populated(), Receipts::default());
    let mut terminals: Vec<Terminal> = (1..=2).map(|w| Terminal::new(SCALE, w, w, in_counters)).collect();
    for now in 0..200 {
        for terminal in &mut terminals {
            let errand = terminal.draw(now);
            match errand.kind.reads_only() {
                true => drop(read(&store, &errand.request).unwrap()),
                false if errand.rolls_back => assert!(attempt(&store, &errand.request).is_err()),
                false => receipts.note(&errand, &done(&store, &errand.request)).unwrap(),
            }
        }
    }
    (store, receipts)
}

#[test]
fn the_conditions_hold_from_the_beginning_and_after_any_mix() {
    assert_eq!(broken(&populated()), [""; 0]);
    for in_counters in [false, true] {
        let (store, receipts) = used(in_counters);
        assert_eq!(broken(&store), [""; 0], "in counters: {in_counters}");
        let found =
            FoundRows::read(&SCALE, |ask| read(&store, ask).map_err(|_| DecodeError::Length)).unwrap();
        assert_eq!(receipts.lost_and_repeated(&found, &SCALE), 0);
        assert!(Receipts::default().lost_and_repeated(&found, &SCALE) > 100, "there is something to be told");
    }
}

/// Changes a row, and says which conditions do not hold then.
fn broken_by<T: Row>(place: &[u32], change: impl FnOnce(&mut T)) -> Vec<String> {
    let store = populated();
    let mut row: T = look(&*store.snapshot().unwrap(), place).unwrap();
    change(&mut row);
    apply(&store, vec![Write::put(key(T::TABLE, place), row.value())]);
    conditions(&broken(&store))
}

/// Their numbers.
fn conditions(told: &[String]) -> Vec<String> {
    let lines = told.iter().flat_map(|told| told.lines());
    lines.map(|line| line.split(' ').nth(1).unwrap().to_owned()).collect()
}

#[test]
fn a_row_that_is_changed_breaks_a_condition() {
    assert_eq!(broken_by(&[1], |row: &mut Warehouse| row.year += 1), ["1"]);
    assert_eq!(broken_by(&[1, 2], |row: &mut District| row.year -= 1), ["1", "9"]);
    assert_eq!(broken_by(&[2, 10], |row: &mut District| row.next_order += 1), ["2"]);
    assert_eq!(broken_by(&[1, 3, 30], |row: &mut Order| row.lines += 1), ["4", "6"]);
    assert_eq!(broken_by(&[1, 3, 30], |row: &mut Order| row.carrier = 1)[..2], ["5", "7"]);
    assert_eq!(broken_by(&[1, 3, 30, 1], |row: &mut OrderLine| row.delivered_ms = 9), ["7"]);
    assert_eq!(broken_by(&[1, 1, 1, 1, 5, 1], |row: &mut History| row.amount += 1), ["9"]);
    assert_eq!(broken_by(&[2, 4, 17], |row: &mut Customer| row.balance += 1), ["12"]);
}

#[test]
fn missing_row_or_wrong_counter_breaks_condition() {
    let with = |write: Write| {
        let store = populated();
        apply(&store, vec![write]);
        conditions(&broken(&store))
    };
    assert_eq!(with(Write::delete(key(Open::TABLE, &[1, 1, 25]))), ["3", "5"]);
    assert_eq!(with(Write::delete(key(Open::TABLE, &[1, 1, 30]))), ["2", "5"]);
    assert_eq!(with(Write::delete(key(OrderLine::TABLE, &[2, 1, 7, 1]))), ["4", "6"]);
    assert_eq!(with(Write::delete(key(Order::TABLE, &[2, 1, 30])))[0], "2");
    assert_eq!(with(Write::add(key(YEAR, &[1]), 5)), ["1"]);
}

fn payment(district: u32, number: u32, in_counters: bool) -> Vec<u8> {
    Asks::Payment(Payment {
        warehouse: 1,
        district,
        customer_warehouse: 1,
        customer_district: district,
        who: CustomerAsked { by_name: false, number },
        amount: 7,
        in_counters,
        tag: 1,
    })
    .to_bytes()
}

#[test]
fn payments_of_one_warehouse_meet_unless_they_add() {
    let store = populated();
    let put = |number, in_counters| -> Vec<Key> {
        let (writes, _) = attempt(&store, &payment(1, number, in_counters)).unwrap();
        let puts = writes.into_iter().filter(|write| !matches!(write.change, Change::Add(_)));
        puts.map(|write| write.key).collect()
    };
    let meet = |in_counters| put(1, in_counters).iter().any(|key| put(2, in_counters).contains(key));
    assert!(meet(false) && !meet(true));
}

#[test]
fn a_delivery_takes_the_oldest_order_of_each_district_once() {
    let (store, mut terminal) = (populated(), Terminal::new(SCALE, 1, 1, true));
    let mut receipts = Receipts::default();
    for now in 0..10 {
        let errand = terminal.draw_kind(Kind::Delivery, now);
        receipts.note(&errand, &done(&store, &errand.request)).unwrap();
    }
    let snapshot = store.snapshot().unwrap();
    let left = snapshot.first(&crate::rows::within(Open::TABLE, &[1]), 1).unwrap();
    assert!(left.is_empty(), "nine were open in each district, and ten deliveries are more than that");
    assert_eq!(broken(&store), [""; 0]);
    let found = FoundRows::read(&SCALE, |ask| read(&store, ask).map_err(|_| DecodeError::Length)).unwrap();
    assert_eq!(receipts.lost_and_repeated(&found, &SCALE), 0);
}

#[test]
fn order_takes_stock_and_bad_item_changes_nothing() {
    let store = populated();
    let mut terminal = Terminal::new(SCALE, 1, 1, true);
    let (mut entered, mut refused) = (0, 0);
    while entered < 50 || refused == 0 {
        let errand = terminal.draw_kind(Kind::NewOrder, 1);
        match attempt(&store, &errand.request) {
            Ok((writes, _)) if !errand.rolls_back => {
                apply(&store, writes);
                entered += 1;
            }
            Err(ApplicationError::Refused(_)) if errand.rolls_back => refused += 1,
            other => panic!("{other:?}"),
        }
    }
    let stock: BTreeMap<u32, Stock> = (1..=SCALE.items)
        .map(|item| (item, look(&*store.snapshot().unwrap(), &[1, item]).unwrap()))
        .collect();
    assert!(
        stock.values().map(|row| row.orders).sum::<u32>() >= 5 * 45,
        "some lines are the other warehouse's"
    );
    assert!(stock.values().all(|row| (10..=100).contains(&row.quantity)));
    assert_eq!(broken(&store), [""; 0]);
}

#[test]
fn what_makes_no_sense_is_refused() {
    let store = populated();
    let unknown = payment(11, 1, false);
    for request in [&b""[..], b"\xff", b"\x06\x01", &unknown, &SCALE.checks()[0]] {
        assert!(matches!(attempt(&store, request), Err(ApplicationError::Refused(_))), "{request:?}");
    }
    assert!(read(&store, &payment(1, 1, false)).is_err(), "a read changes nothing");
}
