//! A transaction while an application works on it: what it sees, and what it says it saw.
#![allow(clippy::unwrap_used)] // a test may, in its helpers too

use std::ops::ControlFlow;

use pares_store::{Applied, Memory, Reads, Store, StoreSnapshot, Work, WorkError};
use pares_wice::{Change, Key, KeyRange, Transaction, TransactionId, Value, Version, Write};

const ID: TransactionId = TransactionId { client: 7, sequence: 3 };

fn key(name: &str) -> Key {
    Key::from(name)
}

/// Counters `c1` = 10 and `c2` = 20, texts `t1` to `t3`.
fn base() -> Box<dyn StoreSnapshot> {
    let store = Memory::default();
    let counter = |name: &str, total| (key(name), Some(Value::counter(total)));
    let text = |name: &str| (key(name), Some(Value::from(name)));
    let writes = vec![counter("c1", 10), counter("c2", 20), text("t1"), text("t2"), text("t3")];
    store.apply(&[Applied { version: Version(1), writes }], None).unwrap();
    store.snapshot().unwrap()
}

fn worked(work: impl FnOnce(&mut Work<Box<dyn StoreSnapshot>>)) -> Transaction {
    let mut transaction = Work::new(base());
    work(&mut transaction);
    let transaction = transaction.finish(ID, 2, Version(1));
    transaction.check().unwrap();
    transaction
}

fn names(items: &[(Key, Value)]) -> Vec<String> {
    items.iter().map(|(key, _)| format!("{key:?}")).collect()
}

#[test]
fn it_names_itself_and_its_snapshot() {
    let transaction = worked(|_| ());
    assert_eq!(
        transaction,
        Transaction { id: ID, attempt: 2, snapshot: Version(1), ..Transaction::default() }
    );
    assert!(Work::new(base()).is_read_only());
}

#[test]
fn it_sees_its_own_changes() {
    worked(|work| {
        assert_eq!(work.get(&key("t1")).unwrap(), Some(Value::from("t1")));
        work.put(&key("t1"), Value::from("new"));
        work.delete(&key("t2"));
        work.put(&key("t0"), Value::from("t0"));
        work.add(&key("c1"), 5).unwrap();
        work.add(&key("c3"), -1).unwrap();
        assert!(!work.is_read_only());
        assert_eq!(work.get(&key("t1")).unwrap(), Some(Value::from("new")));
        assert_eq!(work.get(&key("t2")).unwrap(), None);
        assert_eq!(work.get(&key("t0")).unwrap(), Some(Value::from("t0")));
        assert_eq!(work.counter(&key("c1")).unwrap(), 15);
        assert_eq!(work.counter(&key("c3")).unwrap(), -1);
        assert_eq!(work.counter(&key("c4")).unwrap(), 0);
        let all = work.first(&KeyRange { from: key(""), to: None }, 99).unwrap();
        assert_eq!(names(&all), ["c1", "c2", "c3", "t0", "t1", "t3"]);
        let totals: Vec<_> = all[..3].iter().map(|(_, value)| value.as_counter().unwrap()).collect();
        assert_eq!(totals, [15, 20, -1]);
        assert_eq!(all[4].1, Value::from("new"));
    });
}

#[test]
fn reading_what_is_there_and_what_is_not_is_noted_once() {
    let transaction = worked(|work| {
        for _ in 0..2 {
            work.get(&key("t1")).unwrap();
            work.get(&key("absent")).unwrap();
        }
    });
    assert_eq!(transaction.reads, [key("absent"), key("t1")]);
    assert_eq!((transaction.ranges, transaction.writes), (vec![], vec![]));
}

#[test]
fn reading_what_it_wrote_itself_is_not_reading() {
    let transaction = worked(|work| {
        work.put(&key("t1"), Value::from("x"));
        work.delete(&key("t2"));
        work.get(&key("t1")).unwrap();
        work.get(&key("t2")).unwrap();
    });
    assert!(transaction.reads.is_empty());
}

#[test]
fn adding_is_not_reading_until_the_sum_is_read() {
    let transaction = worked(|work| work.add(&key("c1"), 5).unwrap());
    assert!(transaction.reads.is_empty());
    assert_eq!(transaction.writes, [Write::add("c1", 5)]);
    let transaction = worked(|work| {
        work.add(&key("c1"), 5).unwrap();
        assert_eq!(work.counter(&key("c1")).unwrap(), 15);
        work.add(&key("c1"), 1).unwrap();
    });
    assert_eq!(transaction.reads, [key("c1")]);
    assert_eq!(transaction.writes, [Write::add("c1", 6)]);
}

#[test]
fn changes_of_one_item_become_one() {
    let put = |total| Change::Put(Value::counter(total));
    type Steps = fn(&mut Work<Box<dyn StoreSnapshot>>, &Key);
    let cases: [(Steps, Change); 6] = [
        (|work, key| (work.add(key, 2).unwrap(), work.add(key, 3).unwrap()).0, Change::Add(5)),
        (|work, key| (work.put(key, Value::counter(1)), work.add(key, 3).unwrap()).0, put(4)),
        (|work, key| (work.delete(key), work.add(key, 3).unwrap()).0, put(3)),
        (|work, key| (work.add(key, 3).unwrap(), work.put(key, Value::counter(1))).0, put(1)),
        (|work, key| (work.add(key, 3).unwrap(), work.delete(key)).0, Change::Delete),
        (|work, key| (work.put(key, Value::counter(1)), work.delete(key)).0, Change::Delete),
    ];
    for (steps, change) in cases {
        let transaction = worked(|work| steps(work, &key("c1")));
        assert_eq!(transaction.writes, [Write { key: key("c1"), change }]);
        assert!(transaction.reads.is_empty());
    }
}

#[test]
fn adding_to_what_is_no_counter_is_refused_and_changes_nothing() {
    let transaction = worked(|work| {
        work.put(&key("mine"), Value::from("text"));
        for name in ["t1", "mine"] {
            assert!(
                matches!(work.add(&key(name), 1), Err(WorkError::NotACounter(item)) if item == key(name))
            );
        }
        assert!(matches!(work.counter(&key("t2")), Err(WorkError::NotACounter(_))));
    });
    assert_eq!(transaction.writes, [Write::put("mine", "text")]);
}

#[test]
fn a_sum_that_no_counter_holds_is_refused_and_changes_nothing() {
    let transaction = worked(|work| {
        work.add(&key("c1"), i64::MAX).unwrap();
        assert!(matches!(work.add(&key("c1"), 1), Err(WorkError::Overflow(_))));
        work.put(&key("full"), Value::counter(i128::MAX));
        assert!(matches!(work.add(&key("full"), 1), Err(WorkError::Overflow(_))));
    });
    assert_eq!(transaction.writes[0], Write::add("c1", i64::MAX));
}

#[test]
fn a_range_walked_to_its_end_is_noted_whole() {
    let transaction = worked(|work| {
        assert_eq!(names(&work.first(&KeyRange::prefix(b"t"), 9).unwrap()), ["t1", "t2", "t3"]);
    });
    assert_eq!((transaction.ranges, transaction.reads), (vec![KeyRange::prefix(b"t")], vec![]));
}

#[test]
fn a_range_left_early_is_noted_up_to_the_last_item_shown() {
    let transaction = worked(|work| {
        work.put(&key("t1a"), Value::from("mine"));
        assert_eq!(names(&work.first(&KeyRange::prefix(b"t"), 2).unwrap()), ["t1", "t1a"]);
    });
    assert_eq!(transaction.ranges, [KeyRange { from: key("t"), to: Some(key("t1a\0")) }]);
    // Nothing was looked at.
    let transaction = worked(|work| {
        work.first(&KeyRange::prefix(b"t"), 0).unwrap();
        work.first(&KeyRange { from: key("t"), to: Some(key("a")) }, 5).unwrap();
    });
    assert!(transaction.ranges.is_empty());
}

#[test]
fn ranges_that_touch_are_joined_and_hold_the_reads_inside() {
    let range = |from: &str, to: Option<&str>| KeyRange { from: key(from), to: to.map(key) };
    let transaction = worked(|work| {
        for range in
            [range("b", Some("d")), range("d", Some("f")), range("c", Some("e")), range("x", Some("y"))]
        {
            work.range(&range, &mut |_, _| ControlFlow::Continue(())).unwrap();
        }
        for name in ["b", "e", "f", "x"] {
            work.get(&key(name)).unwrap();
        }
    });
    assert_eq!(transaction.ranges, [range("b", Some("f")), range("x", Some("y"))]);
    assert_eq!(transaction.reads, [key("f")]);
    let transaction = worked(|work| {
        for range in [range("b", None), range("c", Some("d")), range("a", Some("b"))] {
            work.range(&range, &mut |_, _| ControlFlow::Continue(())).unwrap();
        }
    });
    assert_eq!(transaction.ranges, [range("a", None)]);
}

mod random {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Debug)]
    enum Step {
        Get(u8),
        Put(u8, i128),
        Delete(u8),
        Add(u8, i64),
        Range(u8, u8, usize),
    }

    fn step() -> impl Strategy<Value = Step> {
        let item = || 0..12u8;
        prop_oneof![
            item().prop_map(Step::Get),
            (item(), -9..9i128).prop_map(|(item, total)| Step::Put(item, total)),
            item().prop_map(Step::Delete),
            (item(), -9..9i64).prop_map(|(item, delta)| Step::Add(item, delta)),
            (item(), item(), 0..6usize).prop_map(|(from, to, limit)| Step::Range(from, to, limit)),
        ]
    }

    fn name(item: u8) -> Key {
        Key::new([item])
    }

    /// Applies a step to the work and to a map, and compares what both see.
    fn apply(step: &Step, work: &mut Work<Box<dyn StoreSnapshot>>, now: &mut BTreeMap<Key, i128>) {
        match step {
            Step::Get(item) => {
                let seen = work.get(&name(*item)).unwrap().map(|value| value.as_counter().unwrap());
                assert_eq!(seen, now.get(&name(*item)).copied());
            }
            Step::Put(item, total) => {
                work.put(&name(*item), Value::counter(*total));
                now.insert(name(*item), *total);
            }
            Step::Delete(item) => {
                work.delete(&name(*item));
                now.remove(&name(*item));
            }
            Step::Add(item, delta) => {
                work.add(&name(*item), *delta).unwrap();
                *now.entry(name(*item)).or_default() += i128::from(*delta);
            }
            Step::Range(from, to, limit) => {
                let range = KeyRange { from: name(*from), to: Some(name(*to)) };
                let seen = work.first(&range, *limit).unwrap();
                let seen: Vec<_> = seen.into_iter().map(|(k, v)| (k, v.as_counter().unwrap())).collect();
                let expected = now.iter().filter(|(key, _)| range.contains(key)).take(*limit);
                assert_eq!(seen, expected.map(|(key, total)| (key.clone(), *total)).collect::<Vec<_>>());
            }
        }
    }

    proptest! {
        /// What it saw and what it leaves is what a plain map gives; and the same steps over another database see the
        /// same as long as that has the same where the transaction says that it read: it says enough.
        #[test]
        fn it_sees_what_a_map_would_show_and_says_all_it_read(
            base in prop::collection::btree_map(0..12u8, -9..9i128, 0..10),
            other in prop::collection::btree_map(0..12u8, -9..9i128, 0..10),
            steps in prop::collection::vec(step(), 0..25),
        ) {
            let open = |items: &BTreeMap<Key, i128>| {
                let store = Memory::default();
                let writes = items.iter().map(|(k, total)| (k.clone(), Some(Value::counter(*total)))).collect();
                store.apply(&[Applied { version: Version(1), writes }], None).unwrap();
                store.snapshot().unwrap()
            };
            let base: BTreeMap<Key, i128> = base.into_iter().map(|(k, v)| (name(k), v)).collect();
            let mut now = base.clone();
            let mut work = Work::new(open(&base));
            steps.iter().for_each(|step| apply(step, &mut work, &mut now));
            let transaction = work.finish(ID, 0, Version(1));
            transaction.check().unwrap();
            prop_assert_eq!(installed(&base, &transaction), now);

            // A database that differs wherever nothing was read.
            let was_read = |k: &Key| transaction.reads.contains(k) || transaction.ranges.iter().any(|r| r.contains(k));
            let mut elsewhere: BTreeMap<Key, i128> = other.into_iter().map(|(k, v)| (name(k), v)).collect();
            elsewhere.retain(|key, _| !was_read(key));
            elsewhere.extend(base.iter().filter(|(key, _)| was_read(key)).map(|(k, v)| (k.clone(), *v)));
            let mut again = Work::new(open(&elsewhere));
            let mut now = elsewhere.clone();
            steps.iter().for_each(|step| apply(step, &mut again, &mut now));
            prop_assert_eq!(again.finish(ID, 0, Version(1)), transaction);
        }
    }

    fn installed(base: &BTreeMap<Key, i128>, transaction: &Transaction) -> BTreeMap<Key, i128> {
        let mut items = base.clone();
        for write in &transaction.writes {
            match &write.change {
                Change::Put(value) => drop(items.insert(write.key.clone(), value.as_counter().unwrap())),
                Change::Delete => drop(items.remove(&write.key)),
                Change::Add(delta) => *items.entry(write.key.clone()).or_default() += i128::from(*delta),
            }
        }
        items
    }
}

#[test]
fn a_snapshot_can_be_read_through_a_reference() {
    let snapshot = base();
    let mut work = Work::new(&*snapshot);
    assert_eq!(work.get(&key("t1")).unwrap(), snapshot.get(&key("t1")).unwrap());
}
