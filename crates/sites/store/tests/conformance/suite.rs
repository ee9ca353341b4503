//! The plain cases.

use std::sync::atomic::{AtomicBool, Ordering};

use pares_store::{Reads, StoreError};
use pares_wice::{Key, KeyRange, Value, Version};

use crate::place::{Kind, Place, version};

pub(crate) fn all() -> KeyRange {
    KeyRange { from: Key::from(""), to: None }
}

pub(crate) fn items(reads: &(impl Reads + ?Sized)) -> Vec<(Key, Value)> {
    reads.first(&all(), usize::MAX).unwrap()
}

fn value(reads: &(impl Reads + ?Sized), key: &str) -> Option<Value> {
    reads.get(&Key::from(key)).unwrap()
}

pub(crate) fn a_new_store_is_empty(place: &Place) {
    let store = place.open();
    assert_eq!((store.applied(), store.meta().len()), (Version(0), 0));
    let snapshot = store.snapshot().unwrap();
    assert_eq!((snapshot.version(), items(&*snapshot)), (Version(0), vec![]));
    assert_eq!(store.flush().unwrap(), Version(0));
}

pub(crate) fn versions_are_applied_one_after_the_other(place: &Place) {
    let store = place.open();
    store.apply(&[version(1, &[("a", Some("1"))]), version(2, &[("b", Some("2"))])], None).unwrap();
    for (batch, applied, got) in [
        (vec![version(2, &[("a", Some("again"))])], 2, 2),
        (vec![version(4, &[("a", Some("too soon"))])], 2, 4),
        (vec![version(3, &[("a", Some("3"))]), version(5, &[("b", Some("5"))])], 3, 5),
    ] {
        match store.apply(&batch, Some(b"no")).unwrap_err() {
            StoreError::Order { applied: last, got: next } => {
                assert_eq!((last, next), (Version(applied), Version(got)));
            }
            other => panic!("{other}"),
        }
        assert_eq!((store.applied(), store.meta().len()), (Version(2), 0), "nothing was applied");
    }
    store.apply(&[version(3, &[("a", None), ("never there", None)])], None).unwrap();
    let snapshot = store.snapshot().unwrap();
    assert_eq!(snapshot.version(), Version(3));
    assert_eq!(items(&*snapshot), [(Key::from("b"), Value::from("2"))]);
    assert_eq!(value(&*snapshot, "a"), None);
}

pub(crate) fn of_an_item_that_a_batch_changes_twice_the_last_value_stays(place: &Place) {
    let store = place.open();
    let batch = [
        version(1, &[("a", Some("1")), ("b", Some("1")), ("c", None), ("d", Some("x")), ("d", Some("y"))]),
        version(2, &[("a", None), ("b", Some("2")), ("c", Some("2"))]),
        version(3, &[("a", Some("3")), ("b", None)]),
    ];
    store.apply(&batch, None).unwrap();
    let snapshot = store.snapshot().unwrap();
    let expected =
        [("a", "3"), ("c", "2"), ("d", "y")].map(|(key, value)| (Key::from(key), Value::from(value)));
    assert_eq!(items(&*snapshot), expected);
}

pub(crate) fn a_snapshot_stays_as_it_was(place: &Place) {
    let store = place.open();
    store.apply(&[version(1, &[("a", Some("1")), ("b", Some("1"))])], Some(b"one")).unwrap();
    let first = store.snapshot().unwrap();
    store.apply(&[version(2, &[("a", None), ("b", Some("2")), ("c", Some("2"))])], Some(b"two")).unwrap();
    let second = store.snapshot().unwrap();
    store.apply(&[version(3, &[("a", Some("3")), ("b", None)])], None).unwrap();
    store.flush().unwrap();
    for (snapshot, number, meta, a, b, c) in [
        (&first, 1, &b"one"[..], Some("1"), Some("1"), None),
        (&second, 2, &b"two"[..], None, Some("2"), Some("2")),
    ] {
        assert_eq!((snapshot.version(), snapshot.meta()), (Version(number), meta));
        for (key, expected) in [("a", a), ("b", b), ("c", c)] {
            assert_eq!(value(&**snapshot, key), expected.map(Value::from), "{key} in version {number}");
        }
        let here = [a, b, c].iter().flatten().count();
        assert_eq!(items(&**snapshot).len(), here);
    }
}

pub(crate) fn ranges_come_in_order_and_end_where_they_should(place: &Place) {
    let store = place.open();
    // More than any engine fetches at once, with bytes that are no text, applied in no order.
    let key = |i: u16| [&i.to_be_bytes()[..], &[0, u8::MAX]].concat();
    let numbers: Vec<u16> = (0..2000).map(|i| (i * 7 % 2000) * 32).collect();
    let writes = numbers.iter().map(|&i| (Key::new(key(i)), Some(Value::new(i.to_le_bytes())))).collect();
    store.apply(&[pares_store::Applied { version: Version(1), writes }], None).unwrap();
    let snapshot = store.snapshot().unwrap();
    let mut sorted = numbers;
    sorted.sort_unstable();
    let expected = |from: &[u8], to: Option<&[u8]>| -> Vec<Key> {
        let keys = sorted.iter().map(|&i| key(i));
        keys.filter(|key| from <= &key[..] && to.is_none_or(|to| &key[..] < to)).map(Key::new).collect()
    };
    let (low, high) = (key(320), key(33_600));
    for (from, to) in [
        (&b""[..], None),
        (&low[..], Some(&high[..])),
        (&low[..3], None),
        (&high[..], Some(&low[..])),
        (&low[..], Some(&low[..])),
        (&[0xff; 9][..], None),
    ] {
        let range = KeyRange { from: Key::new(from), to: to.map(Key::new) };
        let expected = expected(from, to);
        for limit in [0, 1, 8, 9, usize::MAX] {
            let found = snapshot.first(&range, limit).unwrap();
            let keys: Vec<Key> = found.into_iter().map(|(key, _)| key).collect();
            assert_eq!(keys, expected[..limit.min(expected.len())], "{range:?}, {limit}");
        }
    }
}

pub(crate) fn a_store_is_found_as_it_was_flushed(place: &Place) {
    let store = place.open();
    store.apply(&[version(1, &[("a", Some("1"))]), version(2, &[("a", Some("2"))])], Some(b"era 7")).unwrap();
    assert_eq!(store.flush().unwrap(), Version(2));
    drop(store);
    let store = place.open();
    assert_eq!((store.applied(), &*store.meta()), (Version(2), &b"era 7"[..]));
    assert_eq!(value(&*store.snapshot().unwrap(), "a"), Some(Value::from("2")));
    store.apply(&[version(3, &[("a", None)])], None).unwrap();
    assert_eq!(value(&*store.snapshot().unwrap(), "a"), None);
}

pub(crate) fn what_stands_beside_the_items_belongs_to_a_version(place: &Place) {
    let store = place.open();
    store.apply(&[], Some(b"before anything")).unwrap();
    let empty = store.snapshot().unwrap();
    store.apply(&[version(1, &[])], Some(b"one")).unwrap();
    store.apply(&[version(2, &[])], None).unwrap();
    assert_eq!((empty.version(), empty.meta()), (Version(0), &b"before anything"[..]));
    let now = store.snapshot().unwrap();
    assert_eq!((now.version(), now.meta(), &*store.meta()), (Version(2), &b"one"[..], &b"one"[..]));
}

pub(crate) fn two_processes_cannot_write_the_same_store(place: &Place) {
    let store = place.open();
    assert!(matches!(place.try_open().err(), Some(StoreError::InUse(_))));
    drop(store);
    place.open();
}

pub(crate) fn readers_see_whole_batches_while_the_writer_writes(place: &Place) {
    let store = place.open();
    let number = |version: u64| version.to_string();
    let done = AtomicBool::new(false);
    let rounds = if place.kind == Kind::Postgres { 60 } else { 300 };
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut last = Version(0);
                while !done.load(Ordering::Relaxed) {
                    let snapshot = store.snapshot().unwrap();
                    assert!(snapshot.version() >= last, "snapshots do not go back");
                    last = snapshot.version();
                    let expected = (last > Version(0)).then(|| Value::from(number(last.0).as_str()));
                    for key in ["a", "z"] {
                        assert_eq!(snapshot.get(&Key::from(key)).unwrap(), expected, "{key} in {last}");
                    }
                    assert_eq!(items(&*snapshot).len() as u64, last.0.min(1) * 2);
                }
            });
        }
        for round in 0..rounds {
            let batch = (1..=3).map(|i| {
                let text = number(round * 3 + i);
                version(round * 3 + i, &[("a", Some(&text)), ("z", Some(&text))])
            });
            store.apply(&batch.collect::<Vec<_>>(), None).unwrap();
            if round % 50 == 0 {
                store.flush().unwrap();
            }
        }
        done.store(true, Ordering::Relaxed);
    });
    assert_eq!(store.applied(), Version(rounds * 3));
}
