//! The committed stream over logs with gaps and damage, and what of it is read.

use super::*;
use crate::testing::TestWorld;
use crate::testing::records::{config, result};
use pares_log::Config;

#[test]
fn recorder_log_gap_reported_once_and_repair_requested() {
    let (world, config) = (TestWorld::new(), SystemConfig { recorders: 1, ..config() });
    let log = NodeId::Recorder(RecorderId(0));
    let mut writer = world.write_log(log, Config::default().segment_bytes(4096)).unwrap();
    (0..60).for_each(|position| _ = writer.append(&result(1, position)).unwrap());
    writer.publish();
    let mut stream = CommittedStream::new(&world, &config, |_| Offset::START).unwrap();
    let second = world.real(format!("{log}/00000000000000004096.seg").as_ref());
    let kept = std::fs::read(&second).unwrap();
    std::fs::remove_file(&second).unwrap();
    let mut read = || (0..200).map(|_| stream.poll(4, |_| Ok(())).unwrap()).sum::<usize>();
    let before = read();
    assert!(before > 0 && before < 60);
    assert_eq!(world.complaints().lines().count(), 1, "{}", world.complaints());
    assert!(repair_asked::is_asked(&world, log));
    std::fs::write(&second, kept).unwrap();
    assert_eq!(before + read(), 60, "read on when it is there again");
}

/// What passes of two recorders' logs with positions 0 to 19, of which the reader has those below `known`.
fn passed(world: &TestWorld, known: u64) -> (Vec<u64>, Position, Position) {
    let mut stream = CommittedStream::new(world, &config(), |_| Offset::START).unwrap();
    let mut passed = Vec::new();
    for _ in 0..200 {
        let read = stream.poll_beyond(7, &[Position(known)], |item| {
            if let Committed::Result { record, .. } = item {
                passed.push(record.position().0);
            }
            Ok(())
        });
        read.unwrap();
    }
    (passed, stream.committed(ShardId(0)), stream.everywhere(ShardId(0)))
}

#[test]
fn of_what_is_known_or_committed_only_its_place_is_read() {
    let world = TestWorld::new();
    let logs = [0, 1].map(|id| NodeId::Recorder(RecorderId(id)));
    let records: Vec<_> = (0..20).map(|position| result(1, position)).collect();
    let offsets = logs.map(|log| world.publish(log, &records));
    assert_eq!(passed(&world, 0), ((0..20).collect(), Position(20), Position(20)));
    assert_eq!(passed(&world, 12).1, Position(20));
    world.flip(logs[1], offsets[1][9]);
    assert_eq!(passed(&world, 0), ((0..20).collect(), Position(20), Position(20)));
    assert_eq!(world.complaints(), "");
    // The first log lacks it: then it is read.
    world.rename(logs[0].to_string().as_ref(), "away".as_ref()).unwrap();
    assert_eq!(passed(&world, 0).1, Position(9));
    assert!(world.complaints().contains("damaged"), "{}", world.complaints());
}
