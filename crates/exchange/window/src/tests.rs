//! The file as such: made whole, refused when damaged, fenced when given up.

use std::fs;
use std::path::{Path, PathBuf};

use pares_sequencer::{Memory, ProposeError, Sequencer, Slot};
use pares_types::{Epoch, GatewayId, Position, RequestId, ShardId};

use super::memory::{AT_CAPACITY, AT_EPOCH, AT_EPOCH_MADE, AT_FIRST, AT_SHARD, AT_VERSION, VERSION};
use super::{SharedWindow, WindowError};

fn id(sequence: u64) -> RequestId {
    RequestId::new(GatewayId(1), sequence)
}

/// A folder, and where a window is to lie in it.
fn place() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("window");
    (dir, path)
}

fn create(path: &Path, epoch: u32, first: u64) -> Result<SharedWindow, WindowError> {
    SharedWindow::create(path, ShardId(7), 8, Epoch(epoch), Position(first))
}

fn propose(window: &mut SharedWindow, first: u64, request: u64) -> Result<RequestId, ProposeError> {
    let mut decided = vec![];
    window.propose(Position(first), &[id(request)], 1, &mut decided)?;
    Ok(decided[0])
}

#[test]
fn two_mappings_of_a_window_agree() {
    let (_dir, path) = place();
    let mut one = create(&path, 1, 100).unwrap();
    let mut two = SharedWindow::open(&path).unwrap();
    assert_eq!((two.shard(), two.capacity(), two.first()), (ShardId(7), 8, Position(100)));
    assert_eq!(propose(&mut one, 100, 1), Ok(id(1)));
    assert_eq!(propose(&mut two, 100, 2), Ok(id(1)));
    two.raise_recorded(Position(101));
    assert_eq!(one.recorded(), Position(101));
}

#[test]
fn window_outlives_its_users() {
    let (_dir, path) = place();
    propose(&mut create(&path, 1, 0).unwrap(), 0, 1).unwrap();
    assert_eq!(propose(&mut SharedWindow::open(&path).unwrap(), 0, 2), Ok(id(1)));
}

#[test]
fn new_epoch_ends_the_old_one_for_those_who_hold_it() {
    let (_dir, path) = place();
    let mut sleeper = create(&path, 1, 0).unwrap();
    propose(&mut sleeper, 0, 1).unwrap();
    let mut new = create(&path, 2, 1).unwrap();
    assert_eq!(propose(&mut sleeper, 1, 2), Err(ProposeError::EpochOver { current: Epoch(2) }));
    assert_eq!(propose(&mut new, 1, 3), Ok(id(3)));
}

#[test]
fn swap_prepared_in_an_old_epoch_fails_however_late_it_comes() {
    let (_dir, path) = place();
    let sleeper = create(&path, 1, 0).unwrap();
    let memory = sleeper.window.memory();
    let loaded = memory.load(0);
    create(&path, 2, 0).unwrap();
    let late = memory.compare_exchange(0, loaded, Slot::new(Epoch(1), Position(0), id(1)));
    assert_eq!(late, Err(Slot::fence(Epoch(2))));
}

#[test]
fn epoch_must_be_newer_than_the_one_replaced() {
    let (_dir, path) = place();
    let mut live = create(&path, 2, 0).unwrap();
    assert!(matches!(create(&path, 2, 0), Err(WindowError::EpochNotNewer { current: Epoch(2), .. })));
    assert_eq!(propose(&mut live, 0, 1), Ok(id(1)));
}

#[test]
fn absent_window_is_told_from_a_broken_one() {
    let (_dir, path) = place();
    assert!(matches!(SharedWindow::open(&path), Err(WindowError::Map(e)) if e.is_not_yet()));
    fs::write(&path, [0x55; 9000]).unwrap();
    assert!(matches!(SharedWindow::open(&path), Err(WindowError::NotAWindow { .. })));
    create(&path, 1, 0).unwrap();
    assert!(SharedWindow::open(&path).is_ok());
}

#[test]
fn damaged_header_is_refused() {
    let (_dir, path) = place();
    for (offset, value) in
        [(AT_CAPACITY, 16), (AT_SHARD, 1 << 20), (AT_EPOCH, 0), (AT_EPOCH_MADE, 1 << 30), (AT_FIRST, 9)]
    {
        fs::remove_file(&path).ok();
        let window = create(&path, 1, 5).unwrap();
        window.window.memory().set(offset, value);
        assert!(matches!(SharedWindow::open(&path), Err(WindowError::Damaged { .. })), "{offset}");
    }
}

#[test]
fn other_layout_is_refused_with_its_version() {
    let (_dir, path) = place();
    let window = create(&path, 1, 0).unwrap();
    window.window.memory().set(AT_VERSION, VERSION + 1);
    assert!(
        matches!(SharedWindow::open(&path), Err(WindowError::Version { found, .. }) if found == VERSION + 1)
    );
}

#[test]
fn nothing_unfinished_is_left_beside_the_window() {
    let dir = tempfile::tempdir().unwrap();
    create(&dir.path().join("window"), 1, 0).unwrap();
    create(&dir.path().join("window"), 2, 0).unwrap();
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
}
