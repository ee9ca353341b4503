//! Recorders without which everything was started.
//!
//! One whose disk fails must not keep its peers from trading. But what it alone had recorded is not recorded any more then: the
//! windows begin behind what the others have, and other requests get its positions. Were it to come back as it was, there would be
//! two histories. So the start leaves a note first, and the recorder, whose log can be opened again, makes it anew without
//! what it was left alone with. While the note is there nobody else reads that recorder's log or its checkpoints.
//!
//! ```text
//! DIR/left-out/recorder-1        from which position of each shard on recorder 1 was left alone, and by which start
//! ```

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

use pares_types::{Epoch, Position, RecorderId, ShardId};
use pares_wire::record::ResultRecord;
use serde::{Deserialize, Serialize};

use crate::world::World;
use crate::{Layout, NodeError, NodeId, whole_file};

/// What of a recorder's log does not count any more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LeftOut {
    /// The life of the windows that began without it.
    epoch: u32,
    /// Where it began, shard by shard.
    first: BTreeMap<String, u64>,
}

impl LeftOut {
    /// By a start that begins there.
    pub(crate) fn new(epoch: Epoch, first: &BTreeMap<ShardId, Position>) -> Self {
        let first = first.iter().map(|(shard, position)| (shard.to_string(), position.0)).collect();
        Self { epoch: epoch.0, first }
    }

    /// Notes it, durably. What is noted already counts: the recorder has not been back since.
    pub(crate) fn note(&self, world: &impl World, recorder: RecorderId) -> Result<(), NodeError> {
        if Self::read(world, recorder)?.is_some() {
            return Ok(());
        }
        let text = toml::to_string(self).expect("a note is always valid TOML");
        let written = whole_file::write(world, &path(recorder), &text);
        written.map_err(NodeError::io("noting that a recorder is left out"))
    }

    /// What is noted of that recorder.
    ///
    /// # Errors
    /// If it cannot be read: then nobody knows what of the log counts.
    pub(crate) fn read(world: &impl World, recorder: RecorderId) -> Result<Option<Self>, NodeError> {
        whole_file::read_note(world, &path(recorder))
    }

    /// From where on the recorder was left alone.
    pub(crate) fn first(&self, shard: ShardId) -> Option<Position> {
        self.first.get(&shard.to_string()).copied().map(Position)
    }

    /// Whether a record of its log was passed over by the start.
    pub(crate) fn concerns(&self, record: &ResultRecord<'_>) -> bool {
        record.epoch().0 < self.epoch
            && self.first(record.shard()).is_some_and(|first| record.position() >= first)
    }
}

/// Whether the recorder is left out, or may be: the note is there, or nobody can tell. Its log and its checkpoints are not read.
pub(crate) fn is_noted(world: &impl World, recorder: RecorderId) -> bool {
    !world.open_file(&path(recorder)).is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
}

/// Removes the note: the recorder's log is made anew.
///
/// # Errors
/// If it stays. Nobody reads that recorder's log then.
pub(crate) fn forget(world: &impl World, recorder: RecorderId) -> Result<(), NodeError> {
    match world.remove_file(&path(recorder)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed.map_err(NodeError::io("removing the note that a recorder is left out")),
    }
}

fn path(recorder: RecorderId) -> PathBuf {
    Layout::new("").left_out().join(NodeId::Recorder(recorder).to_string())
}
