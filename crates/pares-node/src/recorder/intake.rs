//! Checkpoints on their way from the venues to files.
//!
//! ```text
//!  duty cycle   First .. Next ...... Last        records up to it durable    announced
//!                 |        |          |    whole          | keep               ^
//!  thread         v        v          v -----^            v                    |
//!               .new    written    read back           head, name  ------------/ kept
//! ```
//! A state may be large, so nobody gathers it: pieces go to a thread as they come, which writes them into an unfinished
//! file. The way there is bounded and never waited for: a disk that cannot keep up costs the checkpoint under way,
//! never a record.
//!
//! A checkpoint may arrive before the records it was made of: its venue was quick. Named at once it could
//! survive a power failure that those records do not, and then a state nobody ever agreed on would be
//! restored (the simulator found this). So a whole checkpoint waits, without its name, until this recorder has, durably,
//! every position below it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};

use pares_log::Offset;
use pares_recorder::{Assembly, Fit};
use pares_types::{Position, ShardId, VenueId};
use pares_wire::record::CheckpointChunk;

use crate::NodeError;
use crate::checkpoints::{UnfinishedCheckpoint, remove_unfinished};

/// Pieces on their way to the thread, at most: 32 MiB of those a venue makes.
const PIECES_MAX: usize = 2_048;

/// Whose checkpoint of what.
type Source = (VenueId, ShardId);

/// Checkpoints being put together, waiting for their records, and being named.
pub(super) struct CheckpointIntake {
    assemblies: BTreeMap<Source, (Assembly, Offset)>,
    /// The newest whole one of each shard, and from where its replay starts.
    whole: BTreeMap<ShardId, (Position, Offset)>,
    to_writer: SyncSender<Task>,
    from_writer: Receiver<Done>,
    failed: u64,
}

/// What the thread is to do.
enum Task {
    Begin { source: Source, position: Position, piece: Vec<u8> },
    Write { source: Source, piece: Vec<u8> },
    Finish { source: Source, replay_from: Offset, piece: Vec<u8> },
    Name { shard: ShardId, position: Position, replay_from: Offset },
}

/// What the thread has done.
enum Done {
    Whole(ShardId, Position, Offset),
    Kept(ShardId, Position),
    Failed,
}

/// What became of a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stored {
    /// It is written and verified, and has its name.
    Kept(ShardId, Position),
    /// It could not be written, or not as fast as it came. The venues take another in a while; until one is kept, joining takes
    /// longer.
    Failed,
}

impl CheckpointIntake {
    /// Starts the thread that writes checkpoints into `dir`, syncing them if `sync`.
    pub(super) fn start(dir: PathBuf, sync: bool) -> Result<Self, NodeError> {
        let (to_writer, tasks) = sync_channel(PIECES_MAX);
        let (done, from_writer) = channel();
        let (unfinished, whole, named) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        let writer = FileWriter { dir, sync, unfinished, whole, named, done };
        let builder = std::thread::Builder::new().name("checkpoints".into());
        builder.spawn(move || writer.run(&tasks)).map_err(NodeError::io("starting a thread"))?;
        Ok(Self { assemblies: BTreeMap::new(), whole: BTreeMap::new(), to_writer, from_writer, failed: 0 })
    }

    /// A piece has come from a venue. `replay_from` says before which place of the log no record of a position or later lies; it
    /// is asked when a checkpoint begins, while that is still known.
    pub(super) fn on_chunk(
        &mut self,
        venue: VenueId,
        chunk: &CheckpointChunk,
        piece: &[u8],
        replay_from: impl FnOnce(ShardId, Position) -> Offset,
    ) {
        let (shard, position) = (ShardId(chunk.shard.get()), Position(chunk.position.get()));
        let source = (venue, shard);
        let (assembly, from) =
            self.assemblies.entry(source).or_insert_with(|| (Assembly::new(), Offset::START));
        let start = u64::from(chunk.start.get());
        let fit = assembly.on_piece(position, start, piece.len() as u64, chunk.total());
        let piece = || piece.to_vec();
        let task = match fit {
            Fit::First => {
                *from = replay_from(shard, position);
                Task::Begin { source, position, piece: piece() }
            }
            Fit::Next => Task::Write { source, piece: piece() },
            Fit::Last => Task::Finish { source, replay_from: *from, piece: piece() },
            Fit::Nowhere => return,
        };
        if self.to_writer.try_send(task).is_err() {
            assembly.give_up();
            self.failed += 1;
        }
    }

    /// Has those named for which `is_recorded`: every position below them is recorded durably, and none
    /// newer is there. The others go on waiting.
    pub(super) fn store_recorded(&mut self, is_recorded: impl Fn(ShardId, Position) -> bool) {
        self.whole.retain(|&shard, &mut (position, replay_from)| {
            let name = Task::Name { shard, position, replay_from };
            !is_recorded(shard, position) || self.to_writer.try_send(name).is_err()
        });
    }

    /// What became of the next checkpoint.
    pub(super) fn stored(&mut self) -> Option<Stored> {
        while let Ok(done) = self.from_writer.try_recv() {
            match done {
                Done::Whole(shard, position, replay_from) => {
                    self.whole.insert(shard, (position, replay_from));
                }
                Done::Kept(shard, position) => return Some(Stored::Kept(shard, position)),
                Done::Failed => return Some(Stored::Failed),
            }
        }
        self.failed = self.failed.checked_sub(1)?;
        Some(Stored::Failed)
    }
}

/// The thread that writes.
struct FileWriter {
    dir: PathBuf,
    sync: bool,
    unfinished: BTreeMap<Source, UnfinishedCheckpoint>,
    /// Whole and verified, without a name: the newest of each shard.
    whole: BTreeMap<ShardId, UnfinishedCheckpoint>,
    /// The newest with a name.
    named: BTreeMap<ShardId, Position>,
    done: Sender<Done>,
}

impl FileWriter {
    fn run(mut self, tasks: &Receiver<Task>) {
        remove_unfinished(&self.dir);
        for task in tasks {
            let done = match task {
                Task::Begin { source, position, piece } => {
                    self.begin(source, position, &piece).map(|()| None)
                }
                Task::Write { source, piece } => self.write(source, &piece).map(|()| None),
                Task::Finish { source, replay_from, piece } => self.finish(source, replay_from, &piece),
                Task::Name { shard, position, replay_from } => self.name(shard, position, replay_from),
            };
            if let Some(done) = done.unwrap_or(Some(Done::Failed))
                && self.done.send(done).is_err()
            {
                return;
            }
        }
    }

    /// A piece whose checkpoint is not there belongs to one that failed, which was told when it did.
    fn write(&mut self, source: Source, piece: &[u8]) -> Result<(), NodeError> {
        let Some(unfinished) = self.unfinished.get_mut(&source) else { return Ok(()) };
        let written = unfinished.write(piece);
        if written.is_err() {
            self.unfinished.remove(&source);
        }
        written
    }

    fn begin(&mut self, source: Source, position: Position, piece: &[u8]) -> Result<(), NodeError> {
        let (venue, shard) = source;
        self.unfinished.remove(&source);
        let new = UnfinishedCheckpoint::create(&self.dir, (shard, position), venue, self.sync)?;
        self.unfinished.insert(source, new);
        self.write(source, piece)
    }

    fn finish(
        &mut self,
        source: Source,
        replay_from: Offset,
        piece: &[u8],
    ) -> Result<Option<Done>, NodeError> {
        let Some(mut unfinished) = self.unfinished.remove(&source) else { return Ok(None) };
        unfinished.finish(piece)?;
        let (shard, position) = unfinished.place();
        let whole = self.whole.get(&shard).map(|whole| whole.place().1);
        if whole.max(self.named.get(&shard).copied()) >= Some(position) {
            return Ok(None);
        }
        self.whole.insert(shard, unfinished);
        Ok(Some(Done::Whole(shard, position, replay_from)))
    }

    fn name(
        &mut self,
        shard: ShardId,
        position: Position,
        replay_from: Offset,
    ) -> Result<Option<Done>, NodeError> {
        // A newer one may have come in its place, of which the duty cycle is told.
        if self.whole.get(&shard).is_none_or(|whole| whole.place().1 != position) {
            return Ok(None);
        }
        self.whole.remove(&shard).expect("just looked at").name(replay_from)?;
        self.named.insert(shard, position);
        Ok(Some(Done::Kept(shard, position)))
    }
}
