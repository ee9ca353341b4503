//! What a recorder may drop of its log.
//!
//! Which days are archived and old enough is not the duty cycle's to find out: a note says up to where. What it adds is that no
//! checkpoint needs what goes: a shard without one is replayed from the beginning of the log.

use std::path::PathBuf;

use pares_config::NodeId;
use pares_log::Offset;
use pares_types::{RecorderId, ShardId};

use crate::checkpoints::{self, StoredCheckpoint};
use crate::whole_file;
use crate::world::World;

/// Where it is noted up to where a recorder may drop its log: an offset, in digits.
#[must_use]
pub fn drop_note(id: RecorderId) -> PathBuf {
    PathBuf::from(NodeId::Recorder(id).to_string()).join("days").join("drop")
}

/// What the note says, if there is one.
pub(super) fn noted(world: &impl World, id: RecorderId) -> Option<Offset> {
    whole_file::read(world, &drop_note(id)).ok()?.trim().parse().ok().map(Offset)
}

/// Where replay begins for the oldest checkpoint that is kept; `None` if a shard has none.
pub(super) fn needed(
    world: &impl World,
    id: RecorderId,
    shards: impl Iterator<Item = ShardId>,
) -> Option<Offset> {
    let mut needed = Offset(u64::MAX);
    for shard in shards {
        let stored = checkpoints::stored_by(world, id, shard).ok()?;
        needed = needed.min(stored.iter().map(StoredCheckpoint::replay_from).min()?);
    }
    Some(needed)
}
