//! Directories that hold something else, or only a part, and engines at their limits.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use pares_store::postgres::{Options, PostgresStore};
use pares_store::{Applied, Reads, Store, StoreError};
use pares_wice::{Key, Value, Version};

use crate::place::{Kind, Place, version};
use pares_testbed::postgres::server;

/// Every file below, largest first.
fn files(directory: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![directory.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { folders.push(path) } else { files.push(path) }
        }
    }
    files.sort_by_key(|file| std::cmp::Reverse(file.metadata().unwrap().len()));
    files
}

fn written(kind: Kind) -> Place {
    let place = Place::new(kind).unwrap();
    let store = place.open();
    for number in 1..200 {
        store.apply(&[version(number, &[(&format!("{number}"), Some(&"x".repeat(500)))])], None).unwrap();
    }
    store.flush().unwrap();
    place
}

fn assert_damaged(place: &Place, what: &str) {
    match place.try_open().err() {
        Some(error @ StoreError::Damaged(_)) => {
            assert!(error.to_string().contains("move the whole directory"), "{error}")
        }
        Some(other) => panic!("{:?}, {what}: {other}", place.kind),
        None => panic!("{:?}, {what}: opened", place.kind),
    }
}

#[test]
fn a_redb_file_of_something_else_is_damaged() {
    let place = written(Kind::Redb);
    let file = files(Path::new(&place.address)).remove(0);
    fs::write(&file, b"a shopping list, and not a short one".repeat(1000)).unwrap();
    assert_damaged(&place, "something else");
}

#[test]
fn a_redb_file_cut_short_is_damaged() {
    let place = written(Kind::Redb);
    let file = files(Path::new(&place.address)).remove(0);
    for bytes in [300, 5000] {
        fs::OpenOptions::new().write(true).open(&file).unwrap().set_len(bytes).unwrap();
        assert_damaged(&place, "cut short");
    }
}

/// What `written` leaves: how many items, and what each is.
fn expected(number: u64) -> (Key, Value) {
    (Key::from(format!("{number}").as_str()), Value::new("x".repeat(500).into_bytes()))
}

/// Reads all there is in both ways. Nothing but the right values may come; an error may.
fn assert_right_or_refused(store: &dyn Store, bit: usize) -> Result<(), StoreError> {
    let snapshot = store.snapshot()?;
    assert_eq!(snapshot.version(), Version(199), "bit {bit}");
    let mut errors = Vec::new();
    for number in 1..200 {
        let (key, value) = expected(number);
        match snapshot.get(&key) {
            Ok(found) => assert!(found == Some(value), "bit {bit}: item {number} is {found:?}"),
            Err(error) => errors.push(error),
        }
    }
    let mut all: Vec<_> = (1..200).map(expected).collect();
    all.sort();
    match snapshot.first(&crate::suite::all(), usize::MAX) {
        Ok(items) => assert!(items == all, "bit {bit}: {} items, and not the right ones", items.len()),
        Err(error) => errors.push(error),
    }
    errors.into_iter().next().map_or(Ok(()), Err)
}

/// Some bits of what is not empty.
fn bits(bytes: &[u8]) -> impl Iterator<Item = usize> + '_ {
    (0..bytes.len()).filter(|at| bytes[*at] != 0).step_by(293).map(|at| at * 8 + at % 8)
}

fn flip(path: &Path, bytes: &[u8], bit: usize) {
    let file = fs::OpenOptions::new().write(true).open(path).unwrap();
    file.write_all_at(&[bytes[bit / 8] ^ 1 << (bit % 8)], (bit / 8) as u64).unwrap();
}

/// Flips bits of a redb store one after the other; `read` flips the bit, reads the store, and says what came of it.
fn flip_each(read: impl Fn(&Place, &dyn Fn(), usize) -> Result<(), StoreError>) {
    let place = written(Kind::Redb);
    let file = files(Path::new(&place.address)).remove(0);
    let bytes = fs::read(&file).unwrap();
    let mut found = 0;
    for bit in bits(&bytes) {
        fs::write(&file, &bytes).unwrap();
        if let Err(error) = read(&place, &|| flip(&file, &bytes, bit), bit) {
            assert!(matches!(error, StoreError::Damaged(_)), "bit {bit}: {error}");
            found += 1;
        }
    }
    assert!(found > 150, "{found} found");
}

#[test]
fn changed_bit_in_closed_redb_store_is_never_read() {
    flip_each(|place, flip, bit| {
        flip();
        place.try_open().and_then(|store| assert_right_or_refused(&*store, bit))
    });
}

#[test]
fn a_bit_that_changes_while_a_redb_store_is_open_is_never_read() {
    flip_each(|place, flip, bit| {
        let store = place.open();
        flip();
        assert_right_or_refused(&*store, bit)
    });
}

#[test]
fn postgresql_holds_only_so_many_snapshots() {
    let Some(server) = server() else { return };
    let store = PostgresStore::open(Options { snapshots_max: 2, ..Options::new(server.database()) }).unwrap();
    for _ in 0..3 {
        let first = store.snapshot().unwrap();
        let _second = store.snapshot().unwrap();
        assert!(matches!(store.snapshot().err(), Some(StoreError::Busy(2))));
        drop(first);
        store.snapshot().unwrap();
    }
}

#[test]
fn postgresql_takes_a_batch_that_is_larger_than_a_statement() {
    let Some(server) = server() else { return };
    let store = PostgresStore::open(Options::new(server.database())).unwrap();
    let value = Value::new(vec![7; 1 << 20]);
    let writes = (0..70u8).map(|i| (Key::new([i]), Some(value.clone()))).collect();
    store.apply(&[Applied { version: Version(1), writes }], None).unwrap();
    let snapshot = store.snapshot().unwrap();
    assert_eq!(snapshot.version(), Version(1));
    for i in 0..70 {
        assert!(snapshot.get(&Key::new([i])).unwrap() == Some(value.clone()), "item {i}");
    }
}
