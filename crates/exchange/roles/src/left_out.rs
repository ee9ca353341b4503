//! Recorders without which everything was started.
//!
//! One whose disk fails must not keep its peers from trading. But what it alone had recorded is not recorded any more then: the
//! windows begin behind what the others have, and other requests get its positions. Were it to come back as it was, there would be
//! two histories. So the start leaves a note first, and the recorder, whose log can be opened again, makes it anew without
//! what it was left alone with. While the note is there nobody else reads that recorder's log or its checkpoints.
//!
//! ```text
//! DIR/left-out/recorder-1        which lives of the windows began without recorder 1, and where
//! ```

use std::collections::BTreeSet;
use std::fmt::{self, Display};
use std::io;
use std::path::PathBuf;

use pares_types::{Epoch, Position, RecorderId, ShardId};
use pares_wire::record::ResultRecord;
use serde::{Deserialize, Serialize};

use crate::world::World;
use crate::{Layout, NodeError, NodeId, whole_file};

/// What of a recorder's log does not count any more: behind the beginning of each of these lives, all that is of earlier ones. Nothing
/// in any other recorder's log counts there either.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LeftOut {
    lives: BTreeSet<Life>,
}

/// A life of a shard's window that began without the recorder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct Life {
    shard: u16,
    epoch: u32,
    /// The position at which it began.
    first: u64,
}

impl LeftOut {
    /// By lives that began there.
    pub(crate) fn new(lives: impl IntoIterator<Item = (ShardId, Epoch, Position)>) -> Self {
        let life = |(shard, epoch, first): (ShardId, Epoch, Position)| Life {
            shard: shard.0,
            epoch: epoch.0,
            first: first.0,
        };
        Self { lives: lives.into_iter().map(life).collect() }
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
        let lives = self.lives.iter().filter(|life| life.shard == shard.0);
        lives.map(|life| Position(life.first)).min()
    }

    /// Whether a record was passed over by a start.
    pub(crate) fn concerns(&self, record: &ResultRecord<'_>) -> bool {
        let (shard, epoch, position) = (record.shard().0, record.epoch().0, record.position().0);
        self.lives.iter().any(|life| life.shard == shard && epoch < life.epoch && position >= life.first)
    }
}

impl Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shards: BTreeSet<_> = self.lives.iter().map(|life| ShardId(life.shard)).collect();
        let first = |shard| self.first(shard).map(|first| format!("shard {shard} from {first} on"));
        f.write_str(&shards.into_iter().filter_map(first).collect::<Vec<_>>().join(", "))
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
