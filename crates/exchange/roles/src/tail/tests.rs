//! A tail that opens, waits, passes over damage, and finds another log in the place of one.

use std::path::Path;

use pares_log::{Config, Durability, Writer};
use pares_types::VenueId;

use super::*;
use crate::testing::TestWorld;

const LOG: NodeId = NodeId::Venue(VenueId(0));

fn small() -> Config {
    Config::default().segment_bytes(4096)
}

/// A log in a world, and a tail that has not looked at it yet.
fn opened(how: Config) -> (TestWorld, Writer, Tail<TestWorld>) {
    let world = TestWorld::new();
    let (writer, tail) = (world.write_log(LOG, how).unwrap(), Tail::new(&world, LOG, Offset::START));
    (world, writer, tail)
}

fn publish(writer: &mut Writer, payload: &[u8]) {
    writer.append(payload).unwrap();
    writer.publish();
}

fn drain(tail: &mut Tail<TestWorld>) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    // Long enough to look for a log, or for another one.
    for _ in 0..3 * LOOK_EVERY {
        all.extend(tail.next_durable().unwrap().map(|record| record.payload.to_vec()));
    }
    all
}

fn write(world: &TestWorld, records: &[&[u8]]) {
    let mut writer = world.write_log(LOG, small()).unwrap();
    records.iter().for_each(|record| publish(&mut writer, record));
}

fn take_away(world: &TestWorld) {
    let log = world.real(Path::new(&LOG.to_string()));
    // The thread that makes segments ahead for its writer may be at one still.
    while log.exists() {
        let _ = std::fs::remove_dir_all(&log);
    }
}

#[test]
fn replacement_log_is_read_from_its_beginning() {
    let world = TestWorld::new();
    let mut tail = Tail::new(&world, LOG, Offset::START);
    assert!(drain(&mut tail).is_empty(), "there is none yet");
    write(&world, &[b"one", b"two"]);
    assert_eq!(drain(&mut tail), [b"one", b"two"]);
    take_away(&world);
    assert!(drain(&mut tail).is_empty() && !tail.take_replaced());
    write(&world, &[b"one again"]);
    assert_eq!(drain(&mut tail), [b"one again"]);
    assert!(tail.take_replaced() && !tail.take_replaced());
}

#[test]
fn shortened_log_counts_as_another_log() {
    let world = TestWorld::new();
    write(&world, &[b"new"]);
    let mut tail = Tail::new(&world, LOG, Offset(1 << 12));
    assert_eq!(drain(&mut tail), [b"new"]);
    assert!(tail.take_replaced());
}

#[test]
fn replacement_log_noticed_by_reader_with_backlog() {
    let world = TestWorld::new();
    write(&world, &[b"one", b"two"]);
    let mut tail = Tail::new(&world, LOG, Offset::START);
    tail.open().unwrap();
    take_away(&world);
    // What was not mapped yet is gone.
    assert!(tail.next().unwrap_err().is_damage());
    write(&world, &[b"new"]);
    assert_eq!(drain(&mut tail), [b"new"]);
    assert!(tail.take_replaced());
}

#[test]
fn of_a_log_just_opened_nothing_is_read_that_is_not_durable() {
    let (_world, mut writer, mut tail) = opened(small().durability(Durability::Disk));
    publish(&mut writer, b"first");
    assert!(drain(&mut tail).is_empty());
    writer.sync().unwrap();
    assert_eq!(drain(&mut tail), [b"first"]);
}

#[test]
fn undurable_part_of_replacement_log_is_not_read() {
    let disk = small().durability(Durability::Disk);
    let (world, mut writer, mut tail) = opened(disk.clone());
    publish(&mut writer, b"old");
    writer.sync().unwrap();
    assert_eq!(drain(&mut tail), [b"old"]);
    drop(writer);
    take_away(&world);
    let mut writer = world.write_log(LOG, disk).unwrap();
    publish(&mut writer, b"new");
    assert!(drain(&mut tail).is_empty());
    writer.sync().unwrap();
    assert_eq!(drain(&mut tail), [b"new"]);
}

#[test]
fn that_a_log_is_another_is_told_before_anything_in_it() {
    let (world, mut writer, mut tail) = opened(small());
    (0..3).for_each(|_| publish(&mut writer, b"old"));
    drain(&mut tail);
    let mut late = Tail::new(&world, LOG, tail.offset());
    drop(writer);
    take_away(&world);
    publish(&mut world.write_log(LOG, small()).unwrap(), b"new");
    for tail in [&mut tail, &mut late] {
        let mut told = false;
        let first = (0..3 * LOOK_EVERY).find_map(|_| {
            told |= tail.take_replaced();
            tail.next_durable().unwrap().map(|record| record.payload.to_vec())
        });
        assert_eq!((told, first), (true, Some(b"new".to_vec())));
    }
}

#[test]
fn log_released_during_look_ends_no_reader() {
    let released = ReadError::Released { offset: Offset(64), first: Offset(4096) };
    assert_eq!(unless_gone::<()>(Err(released)).unwrap(), None);
    assert_eq!(unless_gone::<()>(Err(ReadError::NotYet { dir: "log".into() })).unwrap(), None);
    assert_eq!(unless_gone(Ok(7)).unwrap(), Some(7));
    let damaged = ReadError::Damaged { offset: Offset(64), what: pares_log::record::Invalid::Kind };
    assert!(unless_gone::<()>(Err(damaged)).is_err());
}

#[test]
fn log_with_damaged_marks_counts_as_none_and_is_repaired() {
    let world = TestWorld::new();
    drop(world.write_log(LOG, small()).unwrap());
    world.spoil(Path::new(&format!("{LOG}/marks")), 0);
    let mut tail = Tail::new(&world, LOG, Offset::START);
    assert!(drain(&mut tail).is_empty() && tail.is_unreadable());
    assert_eq!((world.complaints().lines().count(), repair_asked::is_asked(&world, LOG)), (1, true));
    take_away(&world);
    assert!(drain(&mut tail).is_empty() && !tail.is_unreadable(), "there is none, and nothing wrong with it");
}

#[test]
fn a_segment_that_is_missing_is_passed_over() {
    let (world, mut writer, mut tail) = opened(small());
    (0..20u8).for_each(|n| publish(&mut writer, &[n; 400]));
    std::fs::remove_file(world.real(Path::new(&format!("{LOG}/00000000000000004096.seg")))).unwrap();
    let mut read = Vec::new();
    for _ in 0..100 {
        match tail.next() {
            Ok(record) => read.extend(record.map(|record| record.payload[0])),
            Err(error) => tail.pass_over(error).unwrap(),
        }
    }
    assert_eq!(read, [&[0, 1, 2, 3, 4, 5, 6, 7, 8][..], &[18, 19]].concat());
    assert_eq!((tail.damaged(), repair_asked::is_asked(&world, LOG)), (1, true));
}

#[test]
fn log_removed_before_reading_is_skipped_once() {
    let (world, mut writer, mut tail) = opened(small());
    assert!(drain(&mut tail).is_empty(), "it is open, and nothing in it is mapped");
    publish(&mut writer, b"one");
    take_away(&world);
    let error = tail.next().map(drop).unwrap_err();
    tail.pass_over(error).unwrap();
    assert!(drain(&mut tail).is_empty());
    drop(writer);
    write(&world, &[b"one again"]);
    assert_eq!(drain(&mut tail), [b"one again"]);
}

#[test]
fn damage_not_skipped_while_rest_is_invisible() {
    let (world, mut writer, mut tail) = opened(small());
    assert!(drain(&mut tail).is_empty());
    publish(&mut writer, b"one");
    // Something that cannot be listed has the log's name.
    let dir = world.real(Path::new(&LOG.to_string()));
    std::fs::rename(&dir, dir.with_extension("old")).unwrap();
    std::fs::write(&dir, b"").unwrap();
    let missing = || ReadError::Damaged { offset: Offset(64), what: pares_log::record::Invalid::Kind };
    for _ in 0..3 {
        assert!(tail.pass_over(missing()).is_err(), "the next try would meet it again");
    }
    std::fs::remove_file(&dir).unwrap();
    std::fs::rename(dir.with_extension("old"), &dir).unwrap();
    assert_eq!(drain(&mut tail), [b"one"]);
}

/// The end of a segment is durable before the first record of the next one is.
#[test]
fn segment_end_does_not_make_next_record_durable() {
    let (_world, mut writer, mut tail) = opened(small().durability(Durability::Disk));
    publish(&mut writer, b"one");
    writer.sync().unwrap();
    assert_eq!(drain(&mut tail), [b"one"]);
    writer.begin_segment().unwrap();
    writer.publish();
    writer.sync().unwrap();
    publish(&mut writer, b"two");
    assert!(drain(&mut tail).is_empty(), "not synced yet");
    writer.sync().unwrap();
    assert_eq!(drain(&mut tail), [b"two"]);
}
