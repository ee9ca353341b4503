//! Checkpoints on their way from the venues to files.
//!
//! A checkpoint may arrive before the records it was made of: its venue was quick. Stored at once it could
//! survive a power failure that those records do not, and then a state nobody ever agreed on would be
//! restored (the simulator found this). So a whole checkpoint is kept here until this recorder has, durably,
//! every position below it. Writing is left to a thread, so that it never delays a record.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};

use pares_log::Offset;
use pares_recorder::Assembly;
use pares_types::{Position, ShardId, VenueId};
use pares_wire::record::CheckpointChunk;

use crate::NodeError;
use crate::checkpoints::{self, StoredCheckpoint};

/// Checkpoints being put together, waiting for their records, and being written.
pub(super) struct CheckpointIntake {
    assemblies: BTreeMap<(VenueId, ShardId), Assembly>,
    /// The newest whole one of each shard.
    whole: BTreeMap<ShardId, (Position, Vec<u8>)>,
    /// Shards of which one is being written: a slow disk gets the newest next, and never a queue of them.
    writing: BTreeSet<ShardId>,
    work: Sender<Work>,
    stored: Receiver<Stored>,
}

/// What the thread is asked to do, in order.
enum Work {
    Store(StoredCheckpoint),
    /// Remove each shard's checkpoints above a position, and tell when they are gone.
    Remove(VenueId, Vec<(ShardId, Position)>),
}

/// What became of what the thread was asked to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stored {
    /// It is written and verified.
    Kept(ShardId, Position),
    /// It could not be written. The venues take another in a while; until one is kept, joining takes longer.
    Failed(ShardId),
    /// No checkpoint is left that this venue may have spoilt.
    Removed(VenueId),
    /// Some could not be removed.
    NotRemoved,
}

impl CheckpointIntake {
    /// Starts the thread that writes checkpoints into `dir`, syncing them if `sync`.
    pub(super) fn start(dir: PathBuf, sync: bool) -> Result<Self, NodeError> {
        let (work, incoming) = channel::<Work>();
        let (done, stored) = channel();
        let store = move || {
            for work in incoming {
                let stored = match work {
                    Work::Store(checkpoint) => match checkpoints::store(&dir, &checkpoint, sync) {
                        Ok(()) => Stored::Kept(checkpoint.shard, checkpoint.position),
                        Err(_) => Stored::Failed(checkpoint.shard),
                    },
                    Work::Remove(venue, above) => remove(&dir, venue, &above),
                };
                if done.send(stored).is_err() {
                    return;
                }
            }
        };
        let builder = std::thread::Builder::new().name("checkpoints".into());
        builder.spawn(store).map_err(NodeError::io("starting a thread"))?;
        let (assemblies, whole, writing) = Default::default();
        Ok(Self { assemblies, whole, writing, work, stored })
    }

    /// A piece has come from a venue.
    pub(super) fn on_chunk(&mut self, venue: VenueId, chunk: &CheckpointChunk, piece: &[u8]) {
        let (shard, position) = (ShardId(chunk.shard.get()), Position(chunk.position.get()));
        let assembly = self.assemblies.entry((venue, shard)).or_default();
        let (total, start) = (chunk.total_bytes.get() as usize, chunk.start.get() as usize);
        let Some(state) = assembly.on_chunk(position, total, start, piece) else { return };
        if self.whole.get(&shard).is_none_or(|(newest, _)| position > *newest) {
            self.whole.insert(shard, (position, state.to_vec()));
        }
    }

    /// Has those written for which `recorded` says from where in the log to replay: every position below
    /// them is recorded durably. The others go on waiting.
    pub(super) fn store_recorded(&mut self, recorded: impl Fn(ShardId, Position) -> Option<Offset>) {
        let writing = &mut self.writing;
        self.whole.retain(|&shard, (position, state)| {
            if writing.contains(&shard) {
                return true;
            }
            let Some(replay_from) = recorded(shard, *position) else { return true };
            let state = std::mem::take(state);
            writing.insert(shard);
            // The thread ends only with this node; a checkpoint more or less decides nothing.
            let checkpoint = StoredCheckpoint { shard, position: *position, replay_from, state };
            let _ = self.work.send(Work::Store(checkpoint));
            false
        });
    }

    /// Forgets what the venue has handed out, and has every checkpoint removed that is above its shard's position: the venue may
    /// have made it, or another one that started from one of its.
    pub(super) fn distrust(&mut self, venue: VenueId, above: Vec<(ShardId, Position)>) {
        self.assemblies.retain(|(of, _), _| *of != venue);
        for (shard, position) in &above {
            if self.whole.get(shard).is_some_and(|(at, _)| at > position) {
                self.whole.remove(shard);
            }
        }
        let _ = self.work.send(Work::Remove(venue, above));
    }

    /// What became of the next checkpoint.
    pub(super) fn stored(&mut self) -> Option<Stored> {
        let stored = self.stored.try_recv().ok()?;
        if let Stored::Kept(shard, _) | Stored::Failed(shard) = stored {
            self.writing.remove(&shard);
        }
        Some(stored)
    }
}

/// Those that cannot be removed are told of as failures; without word that they are gone the venue is noted nowhere, and
/// the recorder's next life does this again.
fn remove(dir: &std::path::Path, venue: VenueId, above: &[(ShardId, Position)]) -> Stored {
    let removed = above.iter().try_for_each(|&(shard, to)| checkpoints::remove_above(dir, shard, to));
    match removed {
        Ok(()) => Stored::Removed(venue),
        Err(_) => Stored::NotRemoved,
    }
}
