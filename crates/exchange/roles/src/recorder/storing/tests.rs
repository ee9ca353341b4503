//! A recorder that begins where its peer's log does, and what it takes from the peer besides.

use pares_config::{Layout, NodeId, SystemConfig};
use pares_log::Offset;
use pares_types::{Epoch, VenueId};
use pares_wire::record::CheckpointChunk;

use super::*;
use crate::duty::Duty;
use crate::testing::TestWorld;
use crate::testing::records::{config, results};
use crate::world::File;

const OWN: RecorderId = RecorderId(0);
const PEER: RecorderId = RecorderId(1);
const SHARD: ShardId = ShardId(0);

/// A world in which the peer has kept these positions of the shard, and has checkpoints at those.
fn world(kept: std::ops::Range<u64>, checkpoints: &[u64]) -> TestWorld {
    let world = TestWorld::new();
    world.create_window(SHARD, 64, Epoch(1), Position(kept.end)).unwrap();
    world.publish(NodeId::Recorder(PEER), &results(kept));
    checkpoints.iter().for_each(|&position| store(&world, PEER, position));
    world
}

fn dir(recorder: RecorderId) -> std::path::PathBuf {
    Layout::new("").checkpoints(recorder)
}

fn store(world: &TestWorld, recorder: RecorderId, position: u64) {
    let state = format!("state at {position}");
    world.store(recorder, (SHARD, Position(position)), state.as_bytes(), Offset(1 << 40));
}

fn open(world: &TestWorld) -> RecorderNode<TestWorld> {
    let config = SystemConfig { recorders: 2, ..config() };
    RecorderNode::open(OWN, &config, world.clone(), Epoch(1)).unwrap()
}

/// Works long enough to look around several times.
fn settle(world: &TestWorld, node: &mut RecorderNode<TestWorld>) {
    for _ in 0..8 {
        (0..300).for_each(|_| _ = node.work().unwrap());
        world.run_tasks();
    }
}

/// The checkpoints that recorder 0 has once it is filled, and how many shards it lacks something of.
fn filled(world: &TestWorld) -> (Vec<u64>, u64) {
    settle(world, &mut open(world));
    (stored(world), incomplete(world))
}

fn stored(world: &TestWorld) -> Vec<u64> {
    let stored = checkpoints::checkpoints(world, &dir(OWN), SHARD).unwrap();
    stored
        .iter()
        .map(|one| {
            let state = one.read(world, || {}).unwrap();
            assert_eq!(state, format!("state at {}", one.position()).as_bytes());
            one.position().0
        })
        .collect()
}

fn incomplete(world: &TestWorld) -> u64 {
    world.counter("recorder-0", "shards_incomplete").unwrap()
}

#[test]
fn empty_recorder_copies_checkpoint_for_dropped_part() {
    for (at, replay_from) in [(100, 64), (600, 600)] {
        let world = world(3..600, &[90, at]);
        let mut node = open(&world);
        assert_eq!(incomplete(&world), 1, "it is not filled yet");
        settle(&world, &mut node);
        assert_eq!((stored(&world), incomplete(&world)), (vec![at], 0));
        let place = checkpoints::checkpoints(&world, &dir(OWN), SHARD).unwrap()[0].replay_from();
        let mut log = world.read_log(NodeId::Recorder(OWN), place).unwrap();
        let next = pares_log::LogReader::next(&mut log).unwrap().unwrap();
        let first = record::ResultRecord::read(next.payload).map(|record| record.position().0);
        assert_eq!(first.unwrap_or(600), replay_from, "a place in this log, not the peer's");
        drop(node);
        open(&world);
        assert_eq!(incomplete(&world), 0, "also when it starts again");
    }
}

#[test]
fn a_recorder_that_has_the_records_beginning_copies_nothing() {
    let world = world(0..9, &[7]);
    assert_eq!(filled(&world), (vec![], 0));
}

#[test]
fn a_checkpoint_that_is_damaged_gives_way_to_an_older_one() {
    let world = world(5..9, &[6, 7]);
    std::fs::write(world.real(&dir(PEER).join("0-7.ckpt")), "rotten").unwrap();
    assert_eq!(filled(&world), (vec![6], 0));
    let file = dir(PEER).join("0-6.ckpt");
    world.spoil(&file, world.open_file(&file).unwrap().bytes().unwrap() - 1);
    world.remove_dir(dir(OWN));
    assert_eq!(filled(&world), (vec![], 1));
}

#[test]
fn missing_fitting_checkpoint_reported_once_and_retried() {
    let world = world(5..9, &[4, 20]);
    let node = &mut open(&world);
    settle(&world, node);
    let why = "one leads nowhere, one is of another future";
    assert_eq!((stored(&world), incomplete(&world)), (vec![], 1), "{why}");
    assert_eq!(world.complaints().matches("do not replace other recorders' disks").count(), 1);
    store(&world, PEER, 8);
    settle(&world, node);
    assert_eq!((stored(&world), incomplete(&world)), (vec![8], 0));
}

#[test]
fn nothing_is_copied_that_a_wrong_venue_may_have_spoilt() {
    let world = world(5..9, &[7]);
    world.note_shut_out(2);
    let node = &mut open(&world);
    settle(&world, node);
    let why = "the peer has not looked through its own yet";
    assert_eq!((stored(&world), incomplete(&world)), (vec![], 1), "{why}");
    world.note_shut_out(1);
    settle(&world, node);
    assert_eq!((stored(&world), incomplete(&world)), (vec![7], 0));
}

#[test]
fn nothing_more_is_dropped_while_a_checkpoint_is_missing() {
    let world = world(5..9, &[]);
    let node = &mut open(&world);
    settle(&world, node);
    // Of a shard that a venue began again at position 0, as builds before this one let it.
    store(&world, OWN, 0);
    let mut note = world.create_file(&super::super::drop_note(OWN)).unwrap();
    File::append(&mut note, node.writer.tail().to_string().as_bytes()).unwrap();
    node.writer.begin_segment().unwrap();
    settle(&world, node);
    assert_eq!((node.dropped, incomplete(&world)), (Offset::START, 1));
}

/// What a venue hands out of a checkpoint of two pieces.
fn pieces(position: u64) -> [Vec<u8>; 2] {
    let state = format!("state at {position}");
    let (first, last) = state.as_bytes().split_at(3);
    let piece = |(start, total, bytes): (usize, usize, &[u8])| {
        let head = CheckpointChunk {
            schema: record::CHECKPOINT_CHUNK,
            version: record::VERSION,
            shard: SHARD.0.into(),
            epoch: 1.into(),
            position: position.into(),
            total_bytes: u32::try_from(total).unwrap().into(),
            start: u32::try_from(start).unwrap().into(),
        };
        [head.as_bytes(), bytes].concat()
    };
    [(0, 0, first), (3, state.len(), last)].map(piece)
}

#[test]
fn a_checkpoint_from_before_the_logs_beginning_gets_no_name() {
    let world = world(5..9, &[]);
    world.publish(NodeId::Venue(VenueId(0)), &pieces(0));
    assert_eq!(filled(&world), (vec![], 1));
    world.publish(NodeId::Venue(VenueId(0)), &pieces(9));
    assert_eq!(filled(&world), (vec![9], 0));
}
