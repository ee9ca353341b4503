//! Logs replaced, at every step and with every death between.

use super::*;
use crate::{Plain, Reader, verify};

fn small() -> Config {
    Config::default().segment_bytes(4_096)
}

fn payload(n: u32) -> Vec<u8> {
    [n.to_le_bytes().as_slice(), &[7; 200]].concat()
}

fn write(dir: &Path, numbers: std::ops::Range<u32>) {
    let (mut writer, _) = Writer::open(dir, small()).unwrap();
    for n in numbers {
        writer.append(&payload(n)).unwrap();
    }
    writer.publish();
}

fn read(dir: &Path) -> Vec<Vec<u8>> {
    let mut reader = Reader::at_start(dir).unwrap();
    std::iter::from_fn(|| reader.next().unwrap().map(|record| record.payload.to_vec())).collect()
}

fn all(numbers: std::ops::Range<u32>) -> Vec<Vec<u8>> {
    numbers.map(payload).collect()
}

/// A log of 0..50 in whose directory a log of 100..160 waits to take its place.
fn prepared(dir: &Path) {
    write(dir, 0..50);
    std::fs::create_dir(dir.join("checkpoints")).unwrap();
    std::fs::write(dir.join("checkpoints/old"), "old").unwrap();
    let mut new = Replacement::begin(dir, small()).unwrap();
    for n in 100..160 {
        new.append(&payload(n)).unwrap();
    }
    std::fs::create_dir(new.place().join("checkpoints")).unwrap();
    std::fs::write(new.place().join("checkpoints/new"), "new").unwrap();
    new.writer.sync().unwrap();
    // As if the process had died.
    std::mem::forget(new.unfinished);
}

#[test]
fn death_after_any_step_keeps_both_logs_usable() {
    let (mut steps, mut done) = (0, false);
    while !done {
        let dir = tempfile::tempdir().unwrap();
        prepared(dir.path());
        let settling = Settling { dir: dir.path(), device: &Plain };
        let aside = settling.name_whole().unwrap();
        done = settling.advance(steps).unwrap() > 0;
        write(dir.path(), 160..161);
        assert_eq!(read(dir.path()), all(100..161), "after {steps} steps");
        assert!(verify(dir.path(), &mut |_, _| {}).unwrap().damage.is_empty());
        assert_eq!(read(&aside), all(0..50), "after {steps} steps");
        assert!(aside.join("checkpoints/old").exists() && dir.path().join("checkpoints/new").exists());
        let left = entries(dir.path()).unwrap();
        assert!(left.iter().all(|name| is_of_the_log(name) || name == "lock" || name == "damaged-1"));
        steps += 1;
    }
    assert!(steps > 10, "every file is a step");
}

#[test]
fn death_before_new_log_complete_keeps_damaged_one() {
    let dir = tempfile::tempdir().unwrap();
    prepared(dir.path());
    write(dir.path(), 50..51);
    assert_eq!(read(dir.path()), all(0..51));
    assert!(!dir.path().join(UNFINISHED).exists());
}

#[test]
fn a_replacement_that_is_given_up_leaves_nothing_behind() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), 0..3);
    drop(Replacement::begin(dir.path(), small()).unwrap());
    assert!(!dir.path().join(UNFINISHED).exists());
    assert_eq!(read(dir.path()), all(0..3));
}

#[test]
fn without_room_for_both_nothing_is_begun() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), 0..3);
    // More than any disk has.
    let vast = Config { segment_bytes: 1 << 60, ..small() };
    assert!(matches!(check_room(dir.path(), &vast), Err(OpenError::Io { .. })));
    assert!(check_room(dir.path(), &small()).is_ok());
}

#[test]
fn a_second_damaged_log_lies_beside_the_first() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), 0..3);
    for n in 1..3 {
        let aside = Replacement::begin(dir.path(), small()).unwrap().complete().unwrap();
        assert_eq!(aside, dir.path().join(format!("damaged-{n}")));
    }
    assert_eq!(read(&dir.path().join("damaged-1")), all(0..3));
}

#[test]
fn a_log_that_is_written_is_not_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let (_writer, _) = Writer::open(dir.path(), small()).unwrap();
    assert!(matches!(Replacement::begin(dir.path(), small()), Err(OpenError::Locked { .. })));
}
