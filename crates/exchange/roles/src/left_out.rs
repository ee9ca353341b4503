//! Recorders without which everything was started.
//!
//! One whose disk fails must not keep its peers from trading. But what it alone had recorded is not recorded any more then: the
//! windows begin behind what the others have, and other requests get its positions. Were it to come back as it was, there would be
//! two histories. So the start leaves a note first, and the recorder, whose log can be opened again, rebuilds it without
//! what it was left alone with. While the note is there nobody else reads that recorder's log or its checkpoints.
//!
//! ```text
//! DIR/left-out/recorder-1        which lives of the windows began without recorder 1, and where
//! ```

use std::collections::BTreeSet;
use std::fmt::{self, Display};
use std::io;
use std::path::PathBuf;

use pares_config::{Layout, NodeId};
use pares_types::{Epoch, Position, RecorderId, ShardId};
use pares_wire::record::ResultRecord;
use serde::{Deserialize, Serialize};

use crate::world::World;
use crate::{NodeError, whole_file};

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

    /// Adds it to what is noted, durably: the recorder may have been left out before, by lives of other shards. A note that is damaged
    /// stays as it is: the recorder cannot start with it, and its peers continue.
    pub(crate) fn note(mut self, world: &impl World, recorder: RecorderId) -> Result<(), NodeError> {
        assert!(!self.lives.is_empty(), "a recorder is left out by a life that began without it");
        let noted = match Self::read(world, recorder) {
            Err(NodeError::DamagedNote(_)) => return Ok(()),
            noted => noted?,
        };
        self.lives.extend(noted.into_iter().flat_map(|noted| noted.lives));
        let text = toml::to_string(&self).expect("a note is always valid TOML");
        let read = toml::from_str(&text);
        assert!(read.is_ok_and(|read: Self| read == self), "a note is read as it was written");
        let written = whole_file::write(world, &path(recorder), &text);
        written.map_err(NodeError::io("noting that a recorder is left out"))
    }

    /// What is noted of that recorder.
    ///
    /// # Errors
    /// [`NodeError::DamagedNote`] if it is damaged: then it is unknown what of the log counts. Any other if it cannot be read.
    pub(crate) fn read(world: &impl World, recorder: RecorderId) -> Result<Option<Self>, NodeError> {
        let path = path(recorder);
        whole_file::read_note(world, &path).map_err(|error| match error {
            NodeError::Read { source, .. } if source.kind() == io::ErrorKind::Other => {
                NodeError::DamagedNote(path)
            }
            other => other,
        })
    }

    /// From where on the recorder was left alone.
    pub(crate) fn first(&self, shard: ShardId) -> Option<Position> {
        let lives = self.lives.iter().filter(|life| life.shard == shard.0);
        lives.map(|life| Position(life.first)).min()
    }

    /// Whether a record was skipped by a start.
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
pub fn is_noted(world: &impl World, recorder: RecorderId) -> bool {
    !world.open_file(&path(recorder)).is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
}

/// Removes the note: the recorder's log is rebuilt.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TestWorld;
    use crate::testing::records::result;

    const RECORDER: RecorderId = RecorderId(0);

    fn noted(world: &TestWorld) -> LeftOut {
        LeftOut::read(world, RECORDER).unwrap().unwrap()
    }

    #[test]
    fn a_note_is_added_to_what_is_noted() {
        let world = TestWorld::new();
        let lives =
            [(2, 5), (4, 9), (3, 5)].map(|(epoch, first)| (ShardId(0), Epoch(epoch), Position(first)));
        for life in lives {
            LeftOut::new([life]).note(&world, RECORDER).unwrap();
        }
        assert_eq!(noted(&world), LeftOut::new(lives));
        assert_eq!(noted(&world).to_string(), "shard 0 from 5 on");
        let of = [(1, 4), (1, 5), (2, 5), (3, 5), (3, 9), (4, 9)].map(|(epoch, at)| result(epoch, at));
        let concerns = of.map(|record| noted(&world).concerns(&ResultRecord::read(&record).unwrap()));
        assert_eq!(concerns, [false, true, true, false, true, false]);
    }

    #[test]
    fn damaged_note_stays_and_stops_its_recorder_alone() {
        let world = TestWorld::new();
        world.create_file(&path(RECORDER)).unwrap();
        let note = LeftOut::new([(ShardId(0), Epoch(2), Position(5))]);
        note.note(&world, RECORDER).unwrap();
        let damaged = LeftOut::read(&world, RECORDER).unwrap_err();
        assert!(matches!(damaged, NodeError::DamagedNote(_)), "{damaged}");
        assert!(is_noted(&world, RECORDER) && !is_noted(&world, RecorderId(1)));
    }
}
