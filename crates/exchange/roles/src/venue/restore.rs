//! Restoring a shard: its newest checkpoint, and where the committed stream must be read from.
//!
//! The newest checkpoint may be of a future that did not happen: power was lost, or a backup brought back, and the logs ended
//! before it. So one above what is recorded is passed over. Recorders name a checkpoint only once all below it is
//! recorded, hence none of this past is.

use std::collections::BTreeMap;
use std::time::Duration;

use pares_book::{FastBook, Instrument};
use pares_log::Offset;
use pares_types::{Position, RecorderId, ShardId};
use pares_venue::Shard;

use super::out::Draft;
use super::seat::{Bench, Order, ShardSeat};
use crate::NodeError;
use crate::checkpoints::{self, StoredCheckpoint};
use crate::committed::CommittedStream;
use crate::config::SystemConfig;
use crate::world::World;

/// Checkpoints of all shards together that load in no time to speak of.
const USUAL_BYTES: u64 = 16 << 20;
/// What every byte beyond takes a venue that others leave half a processor.
const LOAD_NS_PER_BYTE: u64 = 40;

/// A shard from its newest checkpoint at any recorder, with where each recorder's log must be read from to go on.
pub(super) struct Restored {
    pub(super) shard: Shard<FastBook>,
    pub(super) replay_from: BTreeMap<RecorderId, Offset>,
    /// How far into the committed stream its checkpoint reaches.
    pub(super) reach: Offset,
    /// Checkpoints that were passed over, of a future that did not happen.
    pub(super) passed_over: usize,
}

/// A recorder's checkpoints of a shard whose heads are intact, newest first. If they cannot be listed, others' have to do, or a longer
/// replay.
fn stored<W: World>(world: &W, recorder: RecorderId, shard: ShardId) -> Vec<StoredCheckpoint> {
    let stored = checkpoints::stored_by(world, recorder, shard);
    let told = |error: &NodeError| {
        world.complain(&format_args!(
            "shard {shard}: checkpoints of recorder-{recorder} are passed over: {error}"
        ));
    };
    stored.inspect_err(told).unwrap_or_default()
}

/// How much longer than usual loading the newest checkpoints may take, because they are large.
///
/// # Errors
/// If the configuration has no valid shards.
pub fn time_to_load<W: World>(world: &W, config: &SystemConfig) -> Result<Duration, NodeError> {
    let newest = |shard: ShardId| {
        let all = config.recorder_ids().filter_map(|id| stored(world, id, shard).into_iter().next());
        all.map(|checkpoint| checkpoint.bytes()).max().unwrap_or_default()
    };
    let bytes: u64 = config.shards()?.into_keys().map(newest).sum();
    Ok(Duration::from_nanos(bytes.saturating_sub(USUAL_BYTES) * LOAD_NS_PER_BYTE))
}

/// Restores a shard from a checkpoint at most at `past`; without one it begins at the beginning.
pub(super) fn restore_shard<W: World>(
    world: &W,
    config: &SystemConfig,
    (shard, instruments): (ShardId, &[Instrument]),
    past: Position,
) -> Restored {
    let of = |id| stored(world, id, shard).into_iter().map(move |checkpoint| (id, checkpoint));
    let mut all: Vec<(RecorderId, StoredCheckpoint)> = config.recorder_ids().flat_map(of).collect();
    let found = all.len();
    all.retain(|(_, checkpoint)| checkpoint.position() <= past);
    let passed_over = found - all.len();
    let (state, reach) = newest(world, shard, &all)
        .unwrap_or_else(|| (Shard::new(shard, instruments).with_register(config.register()), Offset::START));
    let replay_from = config.recorder_ids().map(|recorder| {
        // A recorder whose newest checkpoint is not too new tells where its log must be read from.
        let fits = |c: &StoredCheckpoint| c.position() <= state.position();
        let own = all.iter().filter(|(of, c)| *of == recorder && fits(c)).map(|(_, c)| c);
        let own = own.max_by_key(|c| c.position());
        (recorder, own.map_or(Offset::START, StoredCheckpoint::replay_from))
    });
    let replay_from = replay_from.collect();
    Restored { shard: state, replay_from, reach, passed_over }
}

/// The shard from the newest of its checkpoints that can be read and restored, and that checkpoint's reach. One at a time is in
/// memory.
fn newest<W: World>(
    world: &W,
    shard: ShardId,
    stored: &[(RecorderId, StoredCheckpoint)],
) -> Option<(Shard<FastBook>, Offset)> {
    let mut newest: Vec<_> = stored.iter().map(|(_, checkpoint)| checkpoint).collect();
    newest.sort_by_key(|checkpoint| std::cmp::Reverse(checkpoint.position()));
    newest.into_iter().find_map(|checkpoint| {
        let state = checkpoint.read(world, || world.give_way())?;
        let restored = Shard::restore(shard, &state).inspect_err(|error| {
            let position = checkpoint.position();
            world.complain(&format_args!(
                "shard {shard}: the checkpoint at {position} cannot be restored: {error}; passed over"
            ));
        });
        world.give_way();
        Some((restored.ok()?, checkpoint.replay_from()))
    })
}

/// Each shard from its newest checkpoint, and the committed stream from there.
pub(super) fn restore<W: World>(
    world: &W,
    config: &SystemConfig,
    mut draft: impl FnMut() -> Draft<W>,
) -> Result<(Vec<ShardSeat<W>>, CommittedStream<W>), NodeError> {
    let mut seats = Vec::new();
    let mut replay_from: BTreeMap<RecorderId, Offset> =
        config.recorder_ids().map(|id| (id, Offset(u64::MAX))).collect();
    for (shard, instruments) in config.shards()? {
        let order = Order::open(world, config, shard)?;
        let restored = restore_shard(world, config, (shard, &instruments), order.past());
        if restored.passed_over > 0 {
            let (count, recorded) = (restored.passed_over, order.recorded());
            world.complain(&format_args!(
                "shard {shard}: {count} checkpoints are of a future that did not happen, beyond {recorded}: passed over"
            ));
        }
        for (recorder, from) in &mut replay_from {
            *from = (*from).min(restored.replay_from[recorder]);
        }
        world.give_way();
        seats.push(ShardSeat {
            id: shard,
            resynced_at: order.recorded(),
            reached: restored.shard.position(),
            bench: Some(Box::new(Bench {
                world: world.clone(),
                shard: restored.shard,
                order,
                draft: draft(),
            })),
            rebuild: None,
            active: true,
            restored_reach: restored.reach,
        });
    }
    let mut committed = CommittedStream::new(world, config, |recorder| replay_from[&recorder])?;
    seats.iter().for_each(|seat| committed.start_at(seat.id, seat.reached));
    Ok((seats, committed))
}
