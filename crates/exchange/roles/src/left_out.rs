//! Recorders without which everything was started.
//!
//! One whose disk fails must not keep its peers from trading. But what it alone had recorded is not recorded any more then: the
//! windows begin behind what the others have, and other requests get its positions. Were it to come back as it was, there would be
//! two histories. So the start leaves a note first, and the recorder, whose log can be opened again, makes it anew without
//! what it was left alone with.
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

/// Removes the note: the recorder's log is made anew.
pub(crate) fn forget(world: &impl World, recorder: RecorderId) {
    match world.remove_file(&path(recorder)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            // It costs another repair at the next start, and nothing else.
            world.complain(&format_args!("{} cannot be removed: {error}", path(recorder).display()));
        }
        _ => {}
    }
}

fn path(recorder: RecorderId) -> PathBuf {
    Layout::new("").left_out().join(NodeId::Recorder(recorder).to_string())
}
