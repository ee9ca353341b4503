//! Writing checkpoints into files, beside the duty cycle (see `intake`).

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, TryRecvError};
use std::time::Duration;

use pares_config::{Layout, SystemConfig};
use pares_log::Offset;
use pares_types::{Position, RecorderId, ShardId, VenueId};

use crate::checkpoints::{self, StoredCheckpoint, UnfinishedCheckpoint};
use crate::world::{Next, World};
use crate::{NodeError, shut_out};

/// What the writer sleeps once it has nothing left to do, so that it is not woken for every piece.
const BREATH: Duration = Duration::from_millis(10);

/// Whose checkpoint of what.
pub(super) type Source = (VenueId, ShardId);

#[derive(Clone)]
pub(super) enum WriterCommand {
    Begin {
        source: Source,
        position: Position,
        piece: Vec<u8>,
    },
    Write {
        source: Source,
        piece: Vec<u8>,
    },
    Finish {
        source: Source,
        replay_from: Offset,
        piece: Vec<u8>,
    },
    Name {
        shard: ShardId,
        position: Position,
        replay_from: Offset,
    },
    /// Remove what a venue has handed out, and each shard's checkpoints above a position.
    Distrust(VenueId, Vec<(ShardId, Position)>),
    /// Remove what there is of a checkpoint that will not be finished.
    Forget(Source),
    /// Remove these, which could not be before. Newer ones of other venues stay.
    Remove(VenueId, Vec<PathBuf>),
    /// Copy a peer's checkpoint, unless there is one here.
    Fetch(Missing),
}

/// A checkpoint that the recorder lacks.
#[derive(Clone)]
pub(super) struct Missing {
    pub(super) shard: ShardId,
    /// The positions at which it is of use.
    pub(super) first: Position,
    pub(super) to: Position,
    /// Nothing is copied from a peer that may have checkpoints of these.
    pub(super) shut_out: Vec<VenueId>,
}

impl Missing {
    fn is_of_use(&self, stored: &StoredCheckpoint) -> bool {
        (self.first..=self.to).contains(&stored.position())
    }
}

/// What there is to say of a command that was done.
type Outcome = Result<Option<Done>, NodeError>;

pub(super) enum Done {
    /// A checkpoint is whole; it waits for its name. From where replay starts, if it is a venue's.
    Whole(ShardId, Position, Option<Offset>),
    /// Something became of one.
    Became(Stored),
    /// Some that were to be removed could not be: this is left to do.
    NotRemoved(WriterCommand),
}

/// What became of a checkpoint, or of several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stored {
    /// It is written and verified, and has its name.
    Kept(ShardId, Position),
    /// It could not be written, or not as fast as it came. The venues take another in a while; until one is kept, joining takes
    /// longer.
    Failed,
    /// No checkpoint is left that this venue may have spoilt.
    Removed(VenueId),
    /// One of the shard is here.
    Found(ShardId),
    /// None of the shard that is of use is here, nor at a peer.
    Nowhere(ShardId),
}

/// What writes, beside the duty cycle.
pub(super) struct CheckpointWriter<W: World> {
    world: W,
    id: RecorderId,
    peers: Vec<RecorderId>,
    dir: PathBuf,
    sync: bool,
    to_do: Receiver<WriterCommand>,
    asleep: Arc<AtomicBool>,
    unfinished: BTreeMap<Source, UnfinishedCheckpoint<W>>,
    /// Whole and verified, without a name: the newest of each shard.
    whole: BTreeMap<ShardId, UnfinishedCheckpoint<W>>,
    /// The newest with a name.
    named: BTreeMap<ShardId, Position>,
    done: Sender<Done>,
    /// Whether the operator knows that some cannot be removed.
    told: bool,
}

impl<W: World> CheckpointWriter<W> {
    /// Writes into the recorder's directory what it receives, syncing it if `sync`.
    pub(super) fn new(
        world: &W,
        config: &SystemConfig,
        (id, sync): (RecorderId, bool),
        (to_do, done): (Receiver<WriterCommand>, Sender<Done>),
        asleep: &Arc<AtomicBool>,
    ) -> Self {
        let (unfinished, whole, named) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        let (world, asleep) = (world.clone(), Arc::clone(asleep));
        let peers = config.recorder_ids().filter(|&peer| peer != id).collect();
        let dir = Layout::new("").checkpoints(id);
        Self { world, id, peers, dir, sync, to_do, asleep, unfinished, whole, named, done, told: false }
    }

    /// Does what there is to do.
    pub(super) fn turn(&mut self) -> Next {
        self.asleep.store(false, Ordering::Relaxed);
        let mut idle = true;
        loop {
            match self.to_do.try_recv() {
                Ok(order) => match self.obey(order) {
                    true => idle = false,
                    false => return Next::Done,
                },
                Err(TryRecvError::Disconnected) => return Next::Done,
                Err(TryRecvError::Empty) if !idle => return Next::After(BREATH),
                // An order sent after this wakes it, and what was sent before is found by one more look.
                Err(TryRecvError::Empty) if self.asleep.swap(true, Ordering::AcqRel) => return Next::Sleep,
                Err(TryRecvError::Empty) => {}
            }
        }
    }

    /// Says whether the recorder listens still.
    fn obey(&mut self, order: WriterCommand) -> bool {
        let done = match order {
            WriterCommand::Begin { source, position, piece } => {
                self.begin(source, position, &piece).map(|()| None)
            }
            WriterCommand::Write { source, piece } => self.write(source, &piece).map(|()| None),
            WriterCommand::Finish { source, replay_from, piece } => self.finish(source, replay_from, &piece),
            WriterCommand::Name { shard, position, replay_from } => self.name(shard, position, replay_from),
            WriterCommand::Distrust(venue, above) => Ok(Some(self.distrust(venue, above))),
            WriterCommand::Forget(source) => {
                self.unfinished.remove(&source);
                Ok(None)
            }
            WriterCommand::Remove(venue, files) => Ok(Some(self.remove(venue, files))),
            WriterCommand::Fetch(missing) => Ok(Some(self.fetch(&missing))),
        };
        done.unwrap_or(Some(Done::Became(Stored::Failed))).is_none_or(|done| self.done.send(done).is_ok())
    }

    /// A piece whose checkpoint is not there belongs to one that failed, which was reported when it did.
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
        let new =
            UnfinishedCheckpoint::create(&self.world, &self.dir, (shard, position), (&venue, self.sync))?;
        self.unfinished.insert(source, new);
        self.write(source, piece)
    }

    fn finish(&mut self, source: Source, replay_from: Offset, piece: &[u8]) -> Outcome {
        let Some(mut unfinished) = self.unfinished.remove(&source) else { return Ok(None) };
        unfinished.finish(piece)?;
        let (shard, position) = unfinished.place();
        assert_eq!(shard, source.1, "pieces of a checkpoint are of one shard");
        let whole = self.whole.get(&shard).map(|whole| whole.place().1);
        if whole.max(self.named.get(&shard).copied()) > Some(position) {
            return Ok(None);
        }
        self.whole.insert(shard, unfinished);
        Ok(Some(Done::Whole(shard, position, Some(replay_from))))
    }

    fn name(&mut self, shard: ShardId, position: Position, replay_from: Offset) -> Outcome {
        // A newer one may have come in its place, of which the duty cycle learns.
        if self.whole.get(&shard).is_none_or(|whole| whole.place().1 != position) {
            return Ok(None);
        }
        let whole = self.whole.remove(&shard).expect("just looked at");
        assert_eq!(whole.place().0, shard, "a checkpoint is named after its own shard");
        whole.name(replay_from)?;
        self.named.insert(shard, position);
        Ok(Some(Done::Became(Stored::Kept(shard, position))))
    }

    /// Copies the newest checkpoint that a peer has and that can be read.
    fn fetch(&mut self, missing: &Missing) -> Done {
        let (shard, id) = (missing.shard, self.id);
        if self.stored_by(id, missing).next().is_some() {
            return Done::Became(Stored::Found(shard));
        }
        let waiting = self.whole.get(&shard).map(|whole| whole.place().1);
        if let Some(position) = waiting.filter(|position| *position >= missing.first) {
            return Done::Whole(shard, position, None);
        }
        let mut theirs: Vec<_> = self.peers.iter().flat_map(|&peer| self.stored_by(peer, missing)).collect();
        theirs.sort_by_key(|stored| Reverse(stored.position()));
        for stored in theirs {
            // One that is damaged, or goes meanwhile, is as good as none.
            if let Ok(Some(copy)) = stored.copied(&self.world, &self.dir, self.sync) {
                let (of, position) = copy.place();
                assert_eq!(of, shard, "a checkpoint is copied for the shard that lacks one");
                let leads_on = (missing.first..=missing.to).contains(&position);
                assert!(leads_on, "a copied checkpoint lies between the log's beginning and its end");
                self.whole.insert(shard, copy);
                return Done::Whole(shard, position, None);
            }
        }
        Done::Became(Stored::Nowhere(shard))
    }

    /// What that recorder has of what is missing. A peer removes what a venue may have spoilt before it takes note that it is shut out.
    fn stored_by(&self, id: RecorderId, missing: &Missing) -> impl Iterator<Item = StoredCheckpoint> {
        let noted = |&venue: &VenueId| shut_out::is_noted_by(&self.world, venue, id);
        let is_clean = id == self.id || missing.shut_out.iter().all(noted);
        let stored = is_clean.then(|| checkpoints::stored_by(&self.world, id, missing.shard));
        let stored = stored.and_then(Result::ok).unwrap_or_default();
        stored.into_iter().filter(|stored| missing.is_of_use(stored))
    }

    /// Without word that they are gone the venue is noted nowhere, and the recorder's next life does this again.
    fn distrust(&mut self, venue: VenueId, above: Vec<(ShardId, Position)>) -> Done {
        self.unfinished.retain(|(of, _), _| *of != venue);
        for &(shard, position) in &above {
            if self.whole.get(&shard).is_some_and(|whole| whole.place().1 > position) {
                self.whole.remove(&shard);
            }
            self.named.remove(&shard);
        }
        let is_clean = |(shard, to): &(ShardId, Position)| {
            self.whole.get(shard).is_none_or(|whole| whole.place().1 <= *to)
        };
        assert!(above.iter().all(is_clean), "no checkpoint that a wrong venue may have spoilt gets a name");
        let files = above.iter().map(|&(shard, to)| checkpoints::above(&self.world, &self.dir, shard, to));
        match files.collect::<Result<Vec<_>, _>>() {
            Ok(files) => self.remove(venue, files.concat()),
            Err(error) => self.not_removed(venue, &error, WriterCommand::Distrust(venue, above)),
        }
    }

    fn remove(&mut self, venue: VenueId, files: Vec<PathBuf>) -> Done {
        let (mut left, mut first_error) = (Vec::new(), None);
        for file in files {
            if let Err(error) = checkpoints::remove(&self.world, &file) {
                first_error.get_or_insert(error);
                left.push(file);
            }
        }
        match first_error {
            None => Done::Became(Stored::Removed(venue)),
            Some(error) => self.not_removed(venue, &error, WriterCommand::Remove(venue, left)),
        }
    }

    fn not_removed(&mut self, venue: VenueId, error: &NodeError, left: WriterCommand) -> Done {
        if !std::mem::replace(&mut self.told, true) {
            self.world.complain(&format_args!(
                "checkpoints that venue-{venue} may have corrupted cannot be removed: {error}; trying again"
            ));
        }
        Done::NotRemoved(left)
    }
}
