//! From which checkpoint of a shard to start, and where the committed stream must be read from then. For venues and gateways.
//!
//! The newest checkpoint may be of a future that did not happen: power was lost, or a backup brought back, and the logs ended
//! before it. So one above what is recorded is skipped. Recorders name a checkpoint only once all below it is
//! recorded, hence none of this past is.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use pares_config::{NodeId, SystemConfig};
use pares_log::Offset;
use pares_sequencer::Sequencer;
use pares_types::{Position, RecorderId, ShardId};
use pares_venue::CheckpointError;

use crate::checkpoints::{self, StoredCheckpoint};
use crate::epoch::window;
use crate::world::World;
use crate::{NodeError, left_out, recorder};

/// What was made of a shard's newest checkpoint at any recorder, with where each recorder's log must be read from to continue.
pub struct Resumed<T> {
    /// What was made of the checkpoint.
    pub state: T,
    /// Where each recorder's log must be read from.
    pub replay_from: BTreeMap<RecorderId, Offset>,
    /// How far into the committed stream the checkpoint reaches.
    pub reach: Offset,
    /// Checkpoints that were skipped, of a future that did not happen.
    pub passed_over: usize,
}

impl<T> Resumed<T> {
    /// The same, with something else made of it.
    pub fn map<U>(self, make: impl FnOnce(T) -> U) -> Resumed<U> {
        let Self { state, replay_from, reach, passed_over } = self;
        Resumed { state: make(state), replay_from, reach, passed_over }
    }
}

/// At most how far a checkpoint of this past can be. In order of arrival nobody says what is recorded now.
///
/// # Errors
/// If there is no window to ask.
pub fn past<W: World>(world: &W, config: &SystemConfig, shard: ShardId) -> Result<Position, NodeError> {
    match config.sequencer {
        true => Ok(window(world, shard)?.recorded()),
        false => Ok(Position(u64::MAX)),
    }
}

/// A recorder's checkpoints of a shard whose heads are intact, newest first. If they cannot be listed, others' have to do, or a longer
/// replay.
pub fn stored<W: World>(world: &W, recorder: RecorderId, shard: ShardId) -> Vec<StoredCheckpoint> {
    let stored = checkpoints::stored_by(world, recorder, shard);
    let told = |error: &NodeError| {
        world.complain(&format_args!(
            "shard {shard}: skipping the checkpoints of recorder-{recorder}: {error}"
        ));
    };
    stored.inspect_err(told).unwrap_or_default()
}

/// The newest checkpoint of the shard, at most at `past`, of which `read` makes something: that, and the position it says.
pub fn resume<T, W: World>(
    world: &W,
    config: &SystemConfig,
    (shard, past): (ShardId, Position),
    read: impl Fn(&[u8]) -> Result<(Position, T), CheckpointError>,
) -> Resumed<Option<T>> {
    let of = |id| stored(world, id, shard).into_iter().map(move |checkpoint| (id, checkpoint));
    let mut all: Vec<(RecorderId, StoredCheckpoint)> = config.recorder_ids().flat_map(of).collect();
    let found = all.len();
    all.retain(|(_, checkpoint)| checkpoint.position() <= past);
    let passed_over = found - all.len();
    let (position, state, reach) = match newest(world, shard, &all, read) {
        Some(((position, state), reach)) => (position, Some(state), reach),
        None => (Position(0), None, Offset::START),
    };
    let replay_from = config.recorder_ids().map(|recorder| {
        // A recorder whose newest checkpoint is not too new tells where its log must be read from.
        let fits = |c: &StoredCheckpoint| c.position() <= position;
        let own = all.iter().filter(|(of, c)| *of == recorder && fits(c)).map(|(_, c)| c);
        let own = own.max_by_key(|c| c.position());
        (recorder, own.map_or(Offset::START, StoredCheckpoint::replay_from))
    });
    let replay_from: BTreeMap<_, _> = replay_from.collect();
    let places = replay_from.len();
    assert_eq!(places, usize::from(config.recorders), "each recorder's log is read on from some place");
    Resumed { state, replay_from, reach, passed_over }
}

/// Whether nothing shows a shard's first position though `past` of them or less are recorded: then nothing can be known of it without a
/// checkpoint, and a state that begins empty would be another shard's. `past` may be the highest there is, if nobody knows.
pub fn is_beginning_lost<W: World>(
    world: &W,
    config: &SystemConfig,
    (shard, past): (ShardId, Position),
) -> bool {
    let read = |id: &RecorderId| !left_out::is_noted(world, *id);
    let of = |id| recorder::beginning(world, NodeId::Recorder(id), shard);
    let first = || config.recorder_ids().filter(read).filter_map(of).min();
    past > Position(0) && first().map_or(past < Position(u64::MAX), |first| first > Position(0))
}

/// What `read` makes of the newest checkpoint that it can read, and that one's reach. One at a time is in memory.
fn newest<T, W: World>(
    world: &W,
    shard: ShardId,
    stored: &[(RecorderId, StoredCheckpoint)],
    read: impl Fn(&[u8]) -> Result<T, CheckpointError>,
) -> Option<(T, Offset)> {
    let mut newest: Vec<_> = stored.iter().map(|(_, checkpoint)| checkpoint).collect();
    newest.sort_by_key(|checkpoint| Reverse(checkpoint.position()));
    newest.into_iter().find_map(|checkpoint| {
        let state = checkpoint.read(world, || world.give_way())?;
        let restored = read(&state).inspect_err(|error| {
            let position = checkpoint.position();
            world.complain(&format_args!(
                "shard {shard}: skipping the checkpoint at {position}, which cannot be restored: {error}"
            ));
        });
        world.give_way();
        Some((restored.ok()?, checkpoint.replay_from()))
    })
}
