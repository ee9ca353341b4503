//! Starts: with all there is, with disks away, damaged, or back.

use super::*;
use crate::committed::{Committed, CommittedStream};
use crate::duty::Duty;
use crate::recorder::RecorderNode;
use crate::testing::TestWorld;
use crate::testing::records::{config, result, result_of};
use pares_log::Offset;
use pares_types::VenueId;

const FIRST: NodeId = NodeId::Recorder(RecorderId(0));
const SECOND: NodeId = NodeId::Recorder(RecorderId(1));

fn next(world: &TestWorld) -> u32 {
    begin(world, &config(), None, OnLoss::Refuse).unwrap().0
}

fn refused(world: &TestWorld) -> String {
    begin(world, &config(), None, OnLoss::Refuse).unwrap_err().to_string()
}

fn begins(world: &TestWorld) -> u64 {
    world.open_window(ShardId(0)).unwrap().unwrap().recorded().0
}

/// A recorder works until there is nothing to do.
fn run(world: &TestWorld, id: u16, epoch: u32) {
    let mut node = RecorderNode::open(RecorderId(id), &config(), world.clone(), Epoch(epoch)).unwrap();
    for _ in 0..200 {
        node.work().unwrap();
    }
}

/// What keeps a log from being opened: a file is where its directory should be.
fn break_disk(world: &TestWorld, log: NodeId) {
    take_away(world, log);
    world.create_file(log.to_string().as_ref()).unwrap();
}

fn mend_disk(world: &TestWorld, log: NodeId) {
    world.remove_file(log.to_string().as_ref()).unwrap();
    world.rename(format!("away-{log}").as_ref(), log.to_string().as_ref()).unwrap();
}

/// A recorder's disk is not there: its directory is empty.
fn take_away(world: &TestWorld, log: NodeId) {
    world.rename(log.to_string().as_ref(), format!("away-{log}").as_ref()).unwrap();
}

fn bring_back(world: &TestWorld, log: NodeId) {
    world.remove_dir(log.to_string());
    world.rename(format!("away-{log}").as_ref(), log.to_string().as_ref()).unwrap();
}

/// What gateways and venues take for recorded: epoch and position.
fn committed(world: &TestWorld) -> Vec<(u32, u64)> {
    let mut stream = CommittedStream::new(world, &config(), |_| Offset::START).unwrap();
    let mut committed = Vec::new();
    for _ in 0..200 {
        let read = stream.poll(usize::MAX, |item| {
            if let Committed::Result { record, .. } = item {
                committed.push((record.epoch().0, record.position().0));
            }
            Ok(())
        });
        read.unwrap();
    }
    committed
}

#[test]
fn windows_begin_after_any_record_in_new_epoch() {
    let world = TestWorld::new();
    world.publish(FIRST, &[result(6, 0)]);
    world.publish(SECOND, &[result(6, 0), result(6, 1)]);
    assert_eq!((next(&world), begins(&world)), (7, 2));
    assert_eq!(current(&world, &config()).unwrap(), Epoch(7));
}

#[test]
fn epoch_is_never_reused_even_without_records() {
    let world = TestWorld::new();
    for epoch in 1..4 {
        assert_eq!(next(&world), epoch);
        world.lose_run();
    }
}

#[test]
fn a_gateway_s_log_is_made_by_the_start_and_its_loss_is_told() {
    let world = TestWorld::new();
    let log = NodeId::Gateway(pares_types::GatewayId(0));
    next(&world);
    assert!(world.read_log_from_start(log).is_ok() && world.complaints().is_empty());
    world.publish(FIRST, &[result(1, 0)]);
    world.remove_dir("gateway-0");
    next(&world);
    assert!(world.read_log_from_start(log).is_ok());
    assert!(world.complaints().contains("the log of gateway-0 is missing"), "{}", world.complaints());
}

#[test]
fn damaged_epoch_file_is_harmless_if_known_elsewhere() {
    for (text, from_venues) in [("9 00000000\n", 5), ("", 5), ("\u{0}x", 5), ("4294967295 1", 5)] {
        let world = TestWorld::new();
        world.publish(NodeId::Venue(VenueId(1)), &[result(5, 0)]);
        whole_file::write(&world, &file(), text).unwrap();
        assert_eq!(next(&world), from_venues + 1, "{text:?}");
        assert_eq!(noted(&world), Some(Epoch(6)));
    }
}

#[test]
fn old_life_counters_are_not_taken_as_current() {
    let world = TestWorld::new();
    world.create_counters("gateway-0", &["answered"]).unwrap();
    world.create_counters("venue-1", &["resynced"]).unwrap();
    next(&world);
    assert_eq!((world.counter("gateway-0", "answered"), world.counter("venue-1", "resynced")), (None, None));
}

#[test]
fn start_continues_without_failing_recorder_and_says_so() {
    let world = TestWorld::with(&[(FIRST, 0..2), (SECOND, 0..1)]);
    break_disk(&world, FIRST);
    assert_eq!((next(&world), begins(&world)), (2, 1));
    assert!(world.complaints().contains("starting without recorder-0"), "{}", world.complaints());
}

#[test]
fn a_start_is_refused_without_a_quorum_of_recorders() {
    let world = TestWorld::new();
    for log in [FIRST, SECOND] {
        world.create_file(log.to_string().as_ref()).unwrap();
    }
    assert!(matches!(
        begin(&world, &config(), None, OnLoss::Refuse),
        Err(NodeError::Open(_) | NodeError::Io { .. })
    ));
    assert!(world.open_window(ShardId(0)).unwrap().is_none());
}

#[test]
fn start_refused_if_only_failing_recorder_has_records() {
    let world = TestWorld::with(&[(FIRST, 0..2)]);
    next(&world);
    break_disk(&world, FIRST);
    let refused = refused(&world);
    assert!(refused.contains("shard 0: positions 0 to 1"), "{refused}");
}

#[test]
fn left_out_recorder_returns_without_its_sole_records() {
    let world = TestWorld::with(&[(FIRST, 0..3), (SECOND, 0..1)]);
    break_disk(&world, FIRST);
    next(&world);
    world.publish(SECOND, &[result(2, 1)]);
    mend_disk(&world, FIRST);
    run(&world, 0, 2);
    assert_eq!(world.results(FIRST), [(1, 0), (2, 1)]);
    assert!(LeftOut::read(&world, RecorderId(0)).unwrap().is_none());
}

/// Life 2 began at position 1 without the first recorder, whose disk was away with two records more; the second one has these
/// positions of it, and where each lies.
fn begun_without_the_first(since: std::ops::Range<u64>) -> (TestWorld, Vec<Offset>) {
    let world = TestWorld::with(&[(FIRST, 0..3), (SECOND, 0..1)]);
    take_away(&world, FIRST);
    assert_eq!((next(&world), begins(&world)), (2, 1));
    let offsets = world.publish(SECOND, &since.map(|position| result(2, position)).collect::<Vec<_>>());
    (world, offsets)
}

#[test]
fn absent_disk_returns_without_given_up_records() {
    let (world, _) = begun_without_the_first(1..3);
    bring_back(&world, FIRST);
    assert_eq!((next(&world), begins(&world)), (3, 3));
    assert_eq!(world.results(FIRST), [(1, 0), (2, 1), (2, 2)]);
    assert!(world.complaints().contains("shard 0 from 1 on"), "{}", world.complaints());
}

#[test]
fn absent_disk_returns_unreplaced_records() {
    let (world, _) = begun_without_the_first(1..1);
    bring_back(&world, FIRST);
    assert_eq!((next(&world), begins(&world)), (3, 3));
}

#[test]
fn left_out_recorder_counts_again_at_next_start() {
    let world = TestWorld::new();
    next(&world);
    world.publish(FIRST, &[result(1, 0), result(1, 1), result(1, 2)]);
    break_disk(&world, FIRST);
    next(&world);
    mend_disk(&world, FIRST);
    assert_eq!((next(&world), begins(&world)), (3, 0));
    assert_eq!(world.results(FIRST), []);
}

#[test]
fn given_up_records_unread_until_log_is_rebuilt() {
    let (world, _) = begun_without_the_first(1..3);
    bring_back(&world, FIRST);
    world.create_file("recorder-0/checkpoints".as_ref()).unwrap();
    assert_eq!((next(&world), begins(&world)), (3, 3));
    let valid = [(1, 0), (2, 1), (2, 2)];
    assert_eq!(committed(&world), valid, "the log is whole, and does not count");
    world.remove_file("recorder-0/checkpoints".as_ref()).unwrap();
    run(&world, 0, 3);
    assert_eq!(world.results(FIRST), valid);
    world.publish(FIRST, &[result(3, 3)]);
    assert_eq!(committed(&world).last(), Some(&(3, 3)), "it is read again");
}

#[test]
fn a_recorder_whose_note_stays_is_one_that_cannot_be_read() {
    let world = TestWorld::with(&[(FIRST, 0..2), (SECOND, 0..1)]);
    break_disk(&world, FIRST);
    next(&world);
    mend_disk(&world, FIRST);
    world.hold(Some("left-out/recorder-0"));
    world.publish(SECOND, &[result(2, 1)]);
    assert_eq!((next(&world), begins(&world)), (3, 2));
    let told = world.complaints();
    assert_eq!(told.matches("starting without recorder-0").count(), 2, "{told}");
    world.hold(None);
    assert_eq!((next(&world), begins(&world)), (4, 2));
    assert_eq!(world.results(FIRST), [(1, 0), (2, 1)]);
}

/// With three recorders.
fn of_three() -> SystemConfig {
    SystemConfig { recorders: 3, ..config() }
}

fn next_of_three(world: &TestWorld) -> u32 {
    begin(world, &of_three(), None, OnLoss::Refuse).unwrap().0
}

const THIRD: NodeId = NodeId::Recorder(RecorderId(2));

/// All of them have the second life from position 1 on, and nothing that was given up.
fn have_the_later_life(world: &TestWorld, logs: &[NodeId]) {
    for &log in logs {
        assert_eq!(world.results(log), [(1, 0), (2, 1), (2, 2), (2, 3)], "{log}");
    }
}

#[test]
fn returning_recorders_do_not_exchange_given_up_records() {
    let world = TestWorld::with(&[(FIRST, 0..3), (SECOND, 0..3), (THIRD, 0..1)]);
    [FIRST, SECOND].into_iter().for_each(|log| take_away(&world, log));
    assert_eq!(next_of_three(&world), 2);
    world.publish(THIRD, &[result(2, 1), result(2, 2), result(2, 3)]);
    [FIRST, SECOND].into_iter().for_each(|log| bring_back(&world, log));
    assert_eq!((next_of_three(&world), begins(&world)), (3, 4));
    have_the_later_life(&world, &[FIRST, SECOND, THIRD]);
}

#[test]
fn damaged_recorder_takes_no_given_up_records() {
    let world = TestWorld::with(&[(SECOND, 0..3), (FIRST, 0..1), (THIRD, 0..1)]);
    take_away(&world, SECOND);
    assert_eq!(next_of_three(&world), 2);
    let offsets = world.publish(FIRST, &[result(2, 1), result(2, 2)]);
    world.publish(THIRD, &[result(2, 1), result(2, 2), result(2, 3)]);
    world.flip(FIRST, offsets[0]);
    bring_back(&world, SECOND);
    assert_eq!((next_of_three(&world), begins(&world)), (3, 4));
    have_the_later_life(&world, &[FIRST, SECOND, THIRD]);
}

#[test]
fn only_later_recorder_may_be_damaged_on_return() {
    let (world, offsets) = begun_without_the_first(1..4);
    world.publish(NodeId::Venue(VenueId(0)), &[result(2, 1), result(2, 2), result(2, 3)]);
    world.flip(SECOND, offsets[1]);
    bring_back(&world, FIRST);
    assert_eq!((next(&world), begins(&world)), (3, 4));
    have_the_later_life(&world, &[FIRST, SECOND]);
}

#[test]
fn records_of_several_lives_are_given_to_returner() {
    let world = TestWorld::with(&[(FIRST, 0..9), (SECOND, 0..1)]);
    take_away(&world, FIRST);
    next(&world);
    world.publish(SECOND, &[result(2, 1), result(2, 2)]);
    world.remove_dir("recorder-0");
    next(&world);
    world.publish(SECOND, &[result(3, 3), result(3, 4)]);
    bring_back(&world, FIRST);
    assert_eq!((next(&world), begins(&world)), (4, 5));
    assert_eq!(world.results(FIRST), [(1, 0), (2, 1), (2, 2), (3, 3), (3, 4)]);
}

#[test]
fn start_refused_if_only_repair_shows_given_up_records() {
    let (world, offsets) = begun_without_the_first(1..4);
    world.publish(NodeId::Venue(VenueId(0)), &[result(2, 1), result(2, 2), result(2, 3)]);
    world.flip(SECOND, offsets[1]);
    let marks = world.real("recorder-1/marks".as_ref());
    std::fs::write(&marks, std::fs::read(&marks).unwrap().iter().map(|byte| !byte).collect::<Vec<_>>())
        .unwrap();
    bring_back(&world, FIRST);
    let refused = refused(&world);
    let gave_up = "recorder-0 has records that an earlier start gave up: shard 0 from 1 on";
    assert!(refused.contains(gave_up), "{refused}");
    assert_eq!((next(&world), begins(&world)), (3, 4));
    have_the_later_life(&world, &[FIRST, SECOND]);
}

#[test]
fn start_without_noted_recorder_notes_its_own_losses() {
    let world = TestWorld::new();
    let other = ShardId(1);
    let both = |epoch, position| [result(epoch, position), result_of(other, epoch, position)];
    world.publish(FIRST, &[both(1, 0), both(1, 1), both(1, 2)].concat());
    world.publish(SECOND, &both(1, 0));
    take_away(&world, FIRST);
    next(&world);
    world.publish(SECOND, &[result(2, 1)]);
    bring_back(&world, FIRST);
    world.create_file("recorder-0/checkpoints".as_ref()).unwrap();
    assert_eq!((next(&world), begins(&world)), (3, 2), "without it, and in the other shard from 1 on");
    world.publish(SECOND, &[result_of(other, 3, 1)]);
    world.remove_file("recorder-0/checkpoints".as_ref()).unwrap();
    run(&world, 0, 3);
    let mut recorded = world.results(FIRST);
    recorded.sort_unstable();
    assert_eq!(recorded, [(1, 0), (1, 0), (2, 1), (3, 1)]);
}

#[test]
fn start_refused_if_recorders_diverged_alone() {
    // Of the second, also where it ends before the third life begins.
    for end in [3, 6] {
        let (world, _) = begun_without_the_first(1..end);
        bring_back(&world, FIRST);
        take_away(&world, SECOND);
        assert_eq!((next(&world), begins(&world)), (3, 3));
        world.publish(FIRST, &(3..9).map(|position| result(3, position)).collect::<Vec<_>>());
        bring_back(&world, SECOND);
        let had = [FIRST, SECOND].map(|log| world.results(log));
        for _ in 0..2 {
            let refused = refused(&world);
            let named = ["recorder-0", "recorder-1", "shard 0", "from 1 on"];
            assert!(named.iter().all(|named| refused.contains(named)), "{refused}");
            assert_eq!([FIRST, SECOND].map(|log| world.results(log)), had, "nothing is changed");
        }
        take_away(&world, SECOND);
        assert_eq!((next(&world), begins(&world)), (4, 9));
        run(&world, 1, 4);
        assert_eq!([FIRST, SECOND].map(|log| world.results(log)), [had[0].clone(), had[0].clone()]);
    }
}
