//! Positions that are known to be lost.
//!
//! A recorder names a checkpoint only when all below it lies in its log, and a venue raises the recorded mark of a window only to what a
//! quorum has. So a checkpoint or a mark beyond what any log holds is evidence that the logs are older than they were: an operator brought back old ones, a disk was rolled back, or, with `os`, power was lost. To start
//! without a word would hide that members received what nobody knows any more. With `disk` the start is refused until an operator gives
//! those positions up; with `os`, which promises less, it says so and continues.
//!
//! ```text
//!   logs           0 1 2 3 4 5|                      what any recorder has
//!   checkpoint     -----------------| at 9           records 6, 7, 8 are lost
//! ```

use std::collections::BTreeMap;
use std::fmt::{self, Display};

use pares_config::{DurabilitySetting, Layout, NodeId, SystemConfig};
use pares_sequencer::Sequencer;
use pares_types::{Position, RecorderId, ShardId};

use crate::NodeError;
use crate::checkpoints::{self, StoredCheckpoint};
use crate::world::{Counters, World};

/// What a start does if positions are lost that members may have been told of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnLoss {
    /// It is refused.
    Refuse,
    /// It continues: the operator gives them up.
    GiveUp,
}

/// Counters of a start, which are neither node's.
pub const START: &str = "start";
/// How many positions were lost before it.
pub const LOST_POSITIONS: &str = "lost_positions";

/// By shard: the positions from the first that no recorder has, up to the end of what is known to have been recorded.
struct Lost(BTreeMap<ShardId, (Position, Position)>);

impl Lost {
    /// `first`: the first position of each shard that no recorder has.
    fn find<W: World>(world: &W, config: &SystemConfig, first: &BTreeMap<ShardId, Position>) -> Self {
        let stored = |shard| {
            let of = |id| stored_by(world, id, shard);
            config.recorder_ids().flat_map(of).map(|stored| stored.position()).max()
        };
        let marked = |shard| world.open_window(shard).ok().flatten().map(|window| window.recorded());
        let beyond = |(&shard, &first): (&ShardId, &Position)| {
            let known = stored(shard).max(marked(shard));
            known.filter(|&to| to > first).map(|to| (shard, (first, to)))
        };
        Self(first.iter().filter_map(beyond).collect())
    }

    fn positions(&self) -> u64 {
        self.0.values().map(|(first, to)| to.0 - first.0).sum()
    }
}

/// A recorder's checkpoints. Those that cannot be listed say nothing: one recorder's disk keeps no system from starting.
fn stored_by<W: World>(world: &W, recorder: RecorderId, shard: ShardId) -> Vec<StoredCheckpoint> {
    let stored = checkpoints::stored_by(world, recorder, shard);
    let told = |error: &NodeError| {
        world.complain(&format_args!(
            "the checkpoints of recorder-{recorder} cannot be read, so lost positions may go unnoticed: {error}"
        ));
    };
    stored.inspect_err(told).unwrap_or_default()
}

impl Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} recorded positions are in no recorder's log", self.positions())?;
        for (shard, (first, to)) in &self.0 {
            assert!(first < to, "a shard of which something is lost has lost a position");
            write!(f, "; shard {shard}: {first} to {}", to.0 - 1)?;
        }
        Ok(())
    }
}

/// Looks whether recorded positions are lost, says so, and removes checkpoints of them: a venue passes them over, but
/// as long as they are there a recorder keeps them for the newest, and drops those that are newer in truth.
///
/// # Errors
/// With `disk`, if there are such positions and they are not given up. Nothing is changed then.
pub(crate) fn settle<W: World>(
    world: &W,
    config: &SystemConfig,
    first: &BTreeMap<ShardId, Position>,
    on_loss: OnLoss,
) -> Result<(), NodeError> {
    let lost = Lost::find(world, config, first);
    let is_any = !lost.0.is_empty();
    assert_eq!(is_any, lost.positions() > 0, "a shard of which something is lost has lost a position");
    if is_any && config.durability == DurabilitySetting::Disk && on_loss == OnLoss::Refuse {
        return Err(NodeError::RecordLost { lost: lost.to_string() });
    }
    if is_any {
        world.complain(&format_args!(
            "{lost}. Checkpoints or windows show that they existed. They are given up"
        ));
    }
    let counters = world.create_counters(START, &[LOST_POSITIONS]);
    counters.map_err(NodeError::io("making the counters of the start"))?.set(0_usize, lost.positions());
    forget(world, config, first);
    Ok(())
}

/// Removes checkpoints of positions that nobody has recorded.
fn forget<W: World>(world: &W, config: &SystemConfig, first: &BTreeMap<ShardId, Position>) {
    for id in config.recorder_ids() {
        let dir = Layout::new("").checkpoints(id);
        for (&shard, &to) in first {
            if let Err(error) = checkpoints::remove_above(world, &dir, shard, to) {
                let node = NodeId::Recorder(id);
                world.complain(&format_args!(
                    "{node} keeps checkpoints of shard {shard} beyond the recorded positions: {error}"
                ));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::epoch;
    use crate::testing::TestWorld;
    use crate::testing::records::config;
    use pares_log::Offset;
    use pares_types::Epoch;

    /// Recorder 0 has two positions of shard 0, and recorder 1 a checkpoint at that position.
    fn world(checkpoint: u64) -> TestWorld {
        let world = TestWorld::with(&[(NodeId::Recorder(RecorderId(0)), 0..2)]);
        world.store(RecorderId(1), (ShardId(0), Position(checkpoint)), &[7; 50], Offset::START);
        world
    }

    fn begin(world: &TestWorld, durability: DurabilitySetting, on_loss: OnLoss) -> Result<Epoch, NodeError> {
        epoch::begin(world, &SystemConfig { durability, ..config() }, None, on_loss)
    }

    fn kept(world: &TestWorld) -> usize {
        checkpoints::positions(world, &Layout::new("").checkpoints(RecorderId(1)), ShardId(0)).unwrap().len()
    }

    #[test]
    fn logs_older_than_a_checkpoint_are_told_and_counted() {
        let world = world(9);
        begin(&world, DurabilitySetting::Os, OnLoss::Refuse).unwrap();
        assert_eq!((world.counter(START, LOST_POSITIONS), kept(&world)), (Some(7), 0));
        assert!(
            world.complaints().contains("7 recorded positions are in no recorder's log; shard 0: 2 to 8")
        );
        begin(&world, DurabilitySetting::Os, OnLoss::Refuse).unwrap();
        assert_eq!(world.counter(START, LOST_POSITIONS), Some(0), "told once");
    }

    #[test]
    fn disk_start_from_older_logs_needs_given_up_losses() {
        let world = world(9);
        for _ in 0..2 {
            let refused = begin(&world, DurabilitySetting::Disk, OnLoss::Refuse).unwrap_err().to_string();
            assert!(refused.contains("shard 0: 2 to 8") && refused.contains("--give-up-lost"), "{refused}");
            assert_eq!(kept(&world), 1, "nothing is changed");
        }
        assert_eq!(begin(&world, DurabilitySetting::Disk, OnLoss::GiveUp).unwrap(), Epoch(2));
        assert_eq!((world.counter(START, LOST_POSITIONS), kept(&world)), (Some(7), 0));
        begin(&world, DurabilitySetting::Disk, OnLoss::Refuse).unwrap();
    }

    #[test]
    fn unlistable_checkpoints_are_reported_start_continues() {
        let world = TestWorld::new();
        world.create_file(&Layout::new("").checkpoints(RecorderId(1))).unwrap();
        begin(&world, DurabilitySetting::Disk, OnLoss::Refuse).unwrap();
        let told = "the checkpoints of recorder-1 cannot be read, so lost positions may go unnoticed";
        assert!(world.complaints().contains(told));
    }

    #[test]
    fn what_a_window_knows_to_be_recorded_is_missed_too() {
        let world = TestWorld::with(&[(NodeId::Recorder(RecorderId(0)), 0..2)]);
        begin(&world, DurabilitySetting::Disk, OnLoss::Refuse).unwrap();
        std::fs::remove_dir_all(world.real("recorder-0".as_ref())).unwrap();
        let refused = begin(&world, DurabilitySetting::Disk, OnLoss::Refuse).unwrap_err().to_string();
        assert!(refused.contains("2 recorded positions") && refused.contains("shard 0: 0 to 1"), "{refused}");
        begin(&world, DurabilitySetting::Disk, OnLoss::GiveUp).unwrap();
    }

    #[test]
    fn a_checkpoint_of_what_is_recorded_is_no_evidence_of_loss() {
        for durability in [DurabilitySetting::Os, DurabilitySetting::Disk] {
            let world = world(2);
            begin(&world, durability, OnLoss::Refuse).unwrap();
            assert_eq!((world.counter(START, LOST_POSITIONS), kept(&world)), (Some(0), 1));
            assert!(!world.complaints().contains("recorded positions"), "{}", world.complaints());
        }
    }
}
