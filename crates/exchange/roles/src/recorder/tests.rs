//! A recorder's duty cycle in a world where the test takes every turn.

use pares_config::{LaneConfig, Layout};
use pares_log::Offset;
use pares_types::{Epoch, RecorderId, VenueId};

use super::*;
use crate::testing::TestWorld;
use crate::testing::records::{config, result, results};

const OWN: NodeId = NodeId::Recorder(RecorderId(0));
const PEER: NodeId = NodeId::Recorder(RecorderId(1));
const VENUE: NodeId = NodeId::Venue(VenueId(0));
const OTHER: NodeId = NodeId::Venue(VenueId(1));

fn open(world: &TestWorld) -> RecorderNode<TestWorld> {
    RecorderNode::open(RecorderId(0), &config(), world.clone(), Epoch(1)).unwrap()
}

/// Works until there is nothing to do for a while.
fn settle(node: &mut RecorderNode<TestWorld>) {
    let mut idle = 0;
    while idle < 200 {
        idle = if node.work().unwrap() == 0 { idle + 1 } else { 0 };
    }
}

/// What recorder 0 records of what lies in the logs now, and what it counts as damaged.
fn record(world: &TestWorld) -> (Vec<(u32, u64)>, u64) {
    settle(&mut open(world));
    (world.results(OWN), world.counter("recorder-0", "damaged").unwrap())
}

fn recorded(to: u64) -> Vec<(u32, u64)> {
    (0..to).map(|position| (1, position)).collect()
}

#[test]
fn a_result_is_recorded_once_however_many_venues_hand_it_out() {
    let world = TestWorld::with(&[(VENUE, 0..5), (OTHER, 0..8)]);
    assert_eq!(record(&world), (recorded(8), 0));
}

#[test]
fn empty_recorder_begins_where_peer_log_does() {
    let world = TestWorld::with(&[(PEER, 5..9), (VENUE, 7..12)]);
    assert_eq!(record(&world), (recorded(12)[5..].to_vec(), 0));
    settle(&mut open(&world));
    assert_eq!(world.results(OWN), recorded(12)[5..], "and goes on there when it starts again");
}

#[test]
fn empty_recorder_does_not_take_damage_for_start() {
    let world = TestWorld::new();
    let offsets = world.publish(PEER, &results(5..9));
    world.flip(PEER, offsets[0]);
    assert_eq!(record(&world), (Vec::new(), 1));
}

#[test]
fn a_damaged_log_that_begins_later_is_made_anew_from_there() {
    for (peer, own) in [(5..9, 5..8), (3..9, 5..8), (5..9, 4..8)] {
        let world = TestWorld::new();
        let first = peer.start.min(own.start) as usize;
        let offsets = world.publish(OWN, &results(own));
        world.flip(OWN, offsets[1]);
        world.publish(PEER, &results(peer));
        open(&world);
        assert_eq!(world.results(OWN), recorded(9)[first..]);
    }
}

#[test]
fn flipped_bit_in_venue_log_is_covered_by_other_venue() {
    let world = TestWorld::new();
    let offsets = world.publish(VENUE, &results(0..8));
    world.flip(VENUE, offsets[3]);
    world.publish(OTHER, &results(0..6));
    assert_eq!(record(&world), (recorded(8), 1));
    assert!(repair_asked::is_asked(&world, VENUE) && world.complaints().contains("venue-0 is damaged"));
}

#[test]
fn recorder_behind_damage_reads_replacement_log() {
    let world = TestWorld::new();
    let offsets = world.publish(VENUE, &results(0..8));
    world.flip(VENUE, offsets[3]);
    let mut node = open(&world);
    settle(&mut node);
    assert_eq!(world.results(OWN), recorded(3), "nobody has the fourth");
    world.rename(VENUE.to_string().as_ref(), "aside".as_ref()).unwrap();
    world.publish(VENUE, &results(0..8));
    settle(&mut node);
    assert_eq!(world.results(OWN), recorded(8));
}

#[test]
fn unknown_content_in_other_log_is_skipped() {
    let (kind, version) =
        (vec![99, 1, 0, 0], [vec![result(1, 1)[0], 250], result(1, 1)[2..].to_vec()].concat());
    let mut shard = result(1, 1);
    shard[2..4].copy_from_slice(&[200, 0]);
    for log in [VENUE, PEER] {
        let world = TestWorld::new();
        let strange = [result(1, 0), kind.clone(), version.clone(), shard.clone(), Vec::new()];
        world.publish(log, &[strange.to_vec(), results(1..4)].concat());
        assert_eq!(record(&world), (recorded(4), 4), "{log}");
    }
}

#[test]
fn unknown_record_kind_in_own_log_is_skipped() {
    let world = TestWorld::new();
    world.publish(OWN, &[result(1, 0), vec![99, 1, 0, 0], result(1, 1)]);
    world.publish(VENUE, &results(0..3));
    assert_eq!(record(&world).0, recorded(3));
}

#[test]
fn damage_in_peer_log_skipped_and_repair_requested() {
    let world = TestWorld::new();
    let offsets = world.publish(PEER, &results(0..4));
    world.flip(PEER, offsets[1]);
    world.publish(VENUE, &results([0, 1]));
    assert_eq!(record(&world), (recorded(4), 1));
    assert!(repair_asked::is_asked(&world, PEER));
}

#[test]
fn recorder_asked_to_repair_ends_and_repairs_at_open() {
    let world = TestWorld::new();
    let offsets = world.publish(OWN, &results(0..4));
    let mut node = open(&world);
    world.flip(OWN, offsets[1]);
    world.publish(PEER, &results(0..3));
    repair_asked::ask(&world, OWN);
    let ended = (0..1_000).find_map(|_| node.work().err());
    assert!(matches!(ended, Some(NodeError::RepairAsked)));
    drop(node);
    open(&world);
    assert_eq!((world.results(OWN), repair_asked::is_asked(&world, OWN)), (recorded(4), false));
}

#[test]
fn result_of_removed_venue_counts_for_nothing() {
    let world = TestWorld::new();
    let mut result = result(1, 0);
    let venue = std::mem::offset_of!(record::ResultHead, venue);
    result[venue..venue + 2].copy_from_slice(&[77, 0]);
    world.publish(PEER, &[result]);
    assert_eq!(record(&world), (recorded(1), 0));
}

#[test]
fn a_repaired_log_keeps_its_checkpoints_with_their_new_places() {
    let world = TestWorld::new();
    let offsets = world.publish(OWN, &results(0..4));
    let dir = Layout::new("").checkpoints(RecorderId(0));
    let place = (ShardId(0), pares_types::Position(2));
    world.store(RecorderId(0), place, b"state", Offset::START);
    world.publish(PEER, &results(0..4));
    world.flip(OWN, offsets[1]);
    open(&world);
    let kept = crate::checkpoints::checkpoints(&world, &dir, ShardId(0)).unwrap();
    assert_eq!(
        kept.iter().map(|one| (one.position(), one.replay_from())).collect::<Vec<_>>(),
        [(place.1, offsets[2])]
    );
}

#[test]
fn a_recorder_that_cannot_tell_who_is_shut_out_does_not_start() {
    let world = TestWorld::new();
    world.create_file("shut-out".as_ref()).unwrap();
    let opened = RecorderNode::open(RecorderId(0), &config(), world, Epoch(1));
    assert!(matches!(opened, Err(NodeError::MaybeShutOut { .. })));
}

#[test]
fn a_venue_stays_shut_out_while_the_notes_cannot_be_read() {
    let world = TestWorld::new();
    world.note_shut_out(1);
    let mut node = open(&world);
    let mut shut_out = |world: &TestWorld| {
        // Long enough to look for notes.
        (0..10_000).for_each(|_| _ = node.work().unwrap());
        world.run_tasks();
        world.counter("recorder-0", "shut_out_venues").unwrap()
    };
    assert_eq!((shut_out(&world), shut_out(&world)), (1, 1));
    let (notes, away) = (Layout::new("").shut_out(), std::path::Path::new("away"));
    world.rename(&notes, away).unwrap();
    world.create_file(&notes).unwrap();
    assert_eq!(shut_out(&world), 1, "a directory that cannot be listed says nothing");
    assert_eq!(shut_out(&world), 1);
    assert_eq!(world.complaints().matches("shut-out").count(), 1, "told once: {}", world.complaints());
    world.remove_file(&notes).unwrap();
    world.rename(away, &notes).unwrap();
    assert_eq!(shut_out(&world), 1);
    std::fs::remove_dir_all(world.real(&notes)).unwrap();
    assert_eq!(shut_out(&world), 0, "readmitted");
}

#[test]
fn unreadable_result_is_covered_by_other_venue() {
    let (status, request) =
        (std::mem::offset_of!(record::ResultHead, status), size_of::<record::ResultHead>());
    let command = request + std::mem::offset_of!(record::RequestRecord, command);
    for strange in [status, command] {
        let world = TestWorld::new();
        let mut all = results(0..3);
        all[1][strange] = 0xee;
        world.publish(VENUE, &all);
        world.publish(OTHER, &results(0..2));
        assert_eq!(record(&world), (recorded(3), 1), "byte {strange}");
    }
}

/// Whether the recorder notes that the venue is shut out, once it had long enough to look for notes, and for what was left.
fn notes_it(world: &TestWorld, node: &mut RecorderNode<TestWorld>) -> bool {
    for _ in 0..4 {
        (0..5_000).for_each(|_| _ = node.work().unwrap());
        world.run_tasks();
    }
    crate::shut_out::Note::read(world, VenueId(0), RecorderId(0)).unwrap().is_some()
}

#[test]
fn unremovable_bad_checkpoints_reported_removed_later() {
    let world = TestWorld::new();
    world.note_shut_out(1);
    let (dir, node) = (Layout::new("").checkpoints(RecorderId(0)), &mut open(&world));
    world.create_file(&dir).unwrap();
    assert!(!notes_it(&world, node), "they may still be there");
    assert_eq!(world.complaints().matches("may have corrupted").count(), 1, "{}", world.complaints());
    world.remove_file(&dir).unwrap();
    assert!(notes_it(&world, node));
}

#[test]
fn unremovable_checkpoint_keeps_later_ones() {
    let world = TestWorld::new();
    let dir = Layout::new("").checkpoints(RecorderId(0));
    let (node, stuck) = (&mut open(&world), world.real(&dir.join("0-900.ckpt")));
    std::fs::create_dir_all(&stuck).unwrap();
    world.note_shut_out(1);
    assert!(!notes_it(&world, node), "one is still there");
    let later = dir.join("0-950.ckpt");
    world.create_file(&later).unwrap();
    assert!(!notes_it(&world, node) && world.real(&later).exists(), "another venue's, made since");
    std::fs::remove_dir(&stuck).unwrap();
    assert!(notes_it(&world, node) && world.real(&later).exists());
}

/// Recorder 0 of a system in which venue 0 executes shard 1 alone, and venue 1 all others.
fn open_with_lanes(world: &TestWorld) -> RecorderNode<TestWorld> {
    let lane = |shards: Vec<u16>, venue| LaneConfig { shards, venues: vec![venue] };
    let lanes = vec![lane(vec![1], 0), lane([0].into_iter().chain(2..10).collect(), 1)];
    RecorderNode::open(RecorderId(0), &SystemConfig { lanes, ..config() }, world.clone(), Epoch(1)).unwrap()
}

#[test]
fn a_venue_shut_out_costs_no_checkpoint_of_another_lane() {
    // Venue 0 executes shard 1; when it was found it may have executed shard 0.
    for (executed, left) in [(vec![], [1, 0, 1]), (vec![0], [0, 0, 1])] {
        let world = TestWorld::new();
        let node = &mut open_with_lanes(&world);
        for shard in 0..3 {
            world.store(RecorderId(0), (ShardId(shard), pares_types::Position(9)), b"state", Offset::START);
        }
        world.note_shut_out_of(1, &executed);
        assert!(notes_it(&world, node));
        let dir = Layout::new("").checkpoints(RecorderId(0));
        let of = |shard| crate::checkpoints::positions(&world, &dir, ShardId(shard)).unwrap().len();
        assert_eq!([0, 1, 2].map(of), left, "{executed:?}");
    }
}

#[test]
fn nothing_is_taken_of_a_venue_of_another_lane() {
    let world = TestWorld::with(&[(VENUE, 0..3)]);
    settle(&mut open_with_lanes(&world));
    assert!(world.results(OWN).is_empty());
}

#[test]
fn recorder_with_bad_marks_rebuilds_log() {
    for lost in [true, false] {
        let world = TestWorld::with(&[(OWN, 0..4), (PEER, 0..6)]);
        let marks = world.real("recorder-0/marks".as_ref());
        if lost {
            std::fs::remove_file(&marks).unwrap()
        } else {
            std::fs::write(&marks, [7; 8192]).unwrap()
        }
        assert_eq!(record(&world).0, recorded(6), "lost: {lost}");
        assert!(world.real("recorder-0/damaged-1".as_ref()).exists());
    }
}

#[test]
fn unreadable_log_is_counted_and_reported_once() {
    let world = TestWorld::new();
    let node = &mut open(&world);
    // No directory, but a file: neither a log nor the lack of one.
    world.create_file(VENUE.to_string().as_ref()).unwrap();
    settle(node);
    settle(node);
    let unreadable = || world.counter("recorder-0", "unreadable_logs");
    assert_eq!((unreadable(), world.complaints().matches("cannot be read for now").count()), (Some(1), 1));
    world.remove_file(VENUE.to_string().as_ref()).unwrap();
    world.publish(VENUE, &results(0..2));
    settle(node);
    assert_eq!((unreadable(), world.results(OWN)), (Some(0), recorded(2)));
}
