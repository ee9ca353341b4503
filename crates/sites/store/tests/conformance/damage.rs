//! Directories that hold something else, or only a part, and engines at their limits.

use std::fs;
use std::path::{Path, PathBuf};

use pares_store::postgres::{Options, PostgresStore};
use pares_store::{Applied, Reads, RedbStore, Store, StoreError};
use pares_wice::{Key, Value, Version};

use crate::common::server::server;
use crate::place::{Kind, Place, version};

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
        Some(error @ StoreError::Damaged(_)) => assert!(error.to_string().contains("rejoin"), "{error}"),
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

#[test]
fn a_page_that_changed_on_the_disk_is_found_when_asked_for() {
    let place = written(Kind::Redb);
    let file = files(Path::new(&place.address)).remove(0);
    let mut bytes = fs::read(&file).unwrap();
    // In the middle of a run of the values.
    let at = bytes.windows(400).position(|window| window.iter().all(|byte| *byte == b'x')).unwrap();
    for changed in bytes.iter_mut().filter(|byte| **byte == b'x') {
        *changed = b'y';
    }
    assert!(at > 0);
    fs::write(&file, bytes).unwrap();
    let error = RedbStore::open_checked(Path::new(&place.address)).unwrap_err();
    assert!(matches!(error, StoreError::Damaged(_)), "{error}");
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
