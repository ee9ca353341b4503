//! Restoring a shard: its newest checkpoint, and where the committed stream must be read from.

use std::collections::BTreeMap;
use std::time::Duration;

use pares_book::{FastBook, Instrument};
use pares_log::Offset;
use pares_types::{Position, RecorderId, ShardId};
use pares_venue::Shard;

use super::out::Draft;
use super::seat::{Bench, Order, ShardSeat};
use crate::NodeError;
use crate::committed::CommittedStream;
use crate::config::SystemConfig;
use crate::resume::{Resumed, resume, stored};
use crate::world::World;

/// Checkpoints of all shards together that load in no time to speak of.
const USUAL_BYTES: u64 = 16 << 20;
/// What every byte beyond takes a venue that others leave half a processor.
const LOAD_NS_PER_BYTE: u64 = 40;

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
) -> Resumed<Shard<FastBook>> {
    let sized = |shard: Shard<FastBook>| shard.with_names_max(W::SHARD_NAMES_MAX);
    let restore = |state: &[u8]| Shard::restore(shard, state).map(|shard| (shard.position(), sized(shard)));
    let resumed = resume(world, config, (shard, past), restore);
    resumed.or_else(|| sized(Shard::new(shard, instruments)).with_register(config.register()))
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
            reached: restored.state.position(),
            bench: Some(Box::new(Bench {
                world: world.clone(),
                shard: restored.state,
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
