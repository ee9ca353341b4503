//! Checkpoint files, whole and spoilt.

use super::*;
use crate::testing::TestWorld;

const SHARD: ShardId = ShardId(3);

fn dir() -> &'static Path {
    Path::new("recorder-0/checkpoints")
}

fn state(position: u64) -> Vec<u8> {
    (0..100 + position).map(|at| (at * 7 + position) as u8).collect()
}

fn begin(world: &TestWorld, position: u64) -> UnfinishedCheckpoint<TestWorld> {
    UnfinishedCheckpoint::create(world, dir(), (SHARD, Position(position)), (&1, true)).unwrap()
}

fn store(world: &TestWorld, position: u64) {
    let state = state(position);
    let mut unfinished = begin(world, position);
    unfinished.write(&state[..40]).unwrap();
    unfinished.write(&state[40..60]).unwrap();
    unfinished.finish(&state[60..]).unwrap();
    assert!(!positions(world, dir(), SHARD).unwrap().contains(&Position(position)), "no name yet");
    unfinished.name(Offset(8 * position)).unwrap();
}

fn with(positions: impl IntoIterator<Item = u64>) -> TestWorld {
    let world = TestWorld::new();
    positions.into_iter().for_each(|position| store(&world, position));
    world
}

/// Positions of those that can be read.
fn readable(world: &TestWorld, dir: &Path, shard: ShardId) -> Vec<u64> {
    let intact = |stored: &StoredCheckpoint| {
        let at = stored.position().0;
        assert_eq!(stored.replay_from(), Offset(8 * at));
        stored.read(world, || {}).map(|read| {
            assert_eq!(read, state(at));
            at
        })
    };
    checkpoints(world, dir, shard).unwrap().iter().filter_map(intact).collect()
}

#[test]
fn what_was_written_in_pieces_is_read_newest_first() {
    let world = with([9, 10]);
    assert_eq!(readable(&world, dir(), SHARD), [10, 9]);
    assert_eq!(readable(&world, dir(), ShardId(4)), []);
}

#[test]
fn a_flipped_bit_leaves_the_older_checkpoint() {
    let world = with([9, 10]);
    let path = world.real(&dir().join("3-10.ckpt"));
    let whole = std::fs::read(&path).unwrap();
    for at in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        std::fs::write(&path, &bytes).unwrap();
        assert_eq!(readable(&world, dir(), SHARD), [9], "byte {at}");
        std::fs::write(&path, &whole[..at]).unwrap();
        assert_eq!(readable(&world, dir(), SHARD), [9], "cut at byte {at}");
    }
}

#[test]
fn copied_checkpoint_replays_damaged_one_is_not_copied() {
    let (world, to, other) = (with([9]), Path::new("to"), Path::new("other"));
    let stored = at(&world, dir(), SHARD, Position(9)).unwrap().unwrap();
    stored.copy(&world, to, Offset(72)).unwrap();
    assert_eq!(readable(&world, to, SHARD), [9]);
    world.spoil(&dir().join("3-9.ckpt"), HEAD_BYTES as u64 + 5);
    stored.copy(&world, other, Offset(72)).unwrap();
    assert_eq!(positions(&world, other, SHARD).unwrap(), []);
}

#[test]
fn a_file_of_another_shard_under_this_ones_name_is_passed_over() {
    let world = with([9]);
    world.rename(&dir().join("3-9.ckpt"), &dir().join("4-9.ckpt")).unwrap();
    assert_eq!(readable(&world, dir(), ShardId(4)), []);
}

#[test]
fn checkpoints_above_a_position_can_be_taken_back() {
    let world = with([9, 10]);
    remove_above(&world, dir(), ShardId(4), Position(0)).unwrap();
    remove_above(&world, dir(), SHARD, Position(9)).unwrap();
    assert_eq!(readable(&world, dir(), SHARD), [9]);
}

#[test]
fn older_checkpoints_go_when_newer_ones_are_verified() {
    let world = with(1..=5);
    assert_eq!(positions(&world, dir(), SHARD).unwrap(), [Position(5), Position(4)]);
    assert_eq!(readable(&world, dir(), SHARD), [5, 4]);
}

#[test]
fn unfinished_checkpoint_is_removed_with_writer_or_start() {
    let world = TestWorld::new();
    drop(begin(&world, 7));
    assert_eq!(world.list(dir()).unwrap().len(), 0);
    std::mem::forget(begin(&world, 7));
    assert_eq!((world.list(dir()).unwrap().len(), readable(&world, dir(), SHARD)), (1, vec![]));
    remove_unfinished(&world, dir());
    assert_eq!(world.list(dir()).unwrap().len(), 0);
}

#[test]
fn what_does_not_read_back_gets_no_name() {
    let mut unfinished = begin(&TestWorld::new(), 7);
    unfinished.write(&[1; 50]).unwrap();
    unfinished.file.write_at(&[9], HEAD_BYTES as u64 + 20).unwrap();
    assert!(unfinished.finish(&[2; 50]).is_err());
}

#[test]
fn a_directory_that_cannot_be_listed_is_not_an_empty_one() {
    let world = TestWorld::new();
    world.create_file(dir()).unwrap();
    assert!(checkpoints(&world, dir(), SHARD).is_err());
    assert!(remove_above(&world, dir(), SHARD, Position(0)).is_err());
}
