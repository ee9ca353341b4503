//! Restoring a shard: its newest checkpoint, and where the committed stream must be read from.

use std::collections::BTreeMap;
use std::time::Duration;

use pares_book::{FastBook, Instrument};
use pares_config::{Placement, SystemConfig};
use pares_log::Offset;
use pares_types::{Position, RecorderId, ShardId, VenueId};
use pares_venue::Shard;

use super::out::Draft;
use super::rebuild::{Plan, Rebuild};
use super::seat::{OrderSource, ShardSeat, ShardStep};
use crate::committed::CommittedStream;
use crate::resume::{Resumed, is_beginning_lost, past, resume, stored};
use crate::world::World;
use crate::{NodeError, lanes};

/// Checkpoints of all shards together that load in no time to speak of.
const USUAL_BYTES: u64 = 16 << 20;
/// What every byte beyond takes a venue that others leave half a processor.
const LOAD_NS_PER_BYTE: u64 = 40;

/// How much longer than usual loading the newest checkpoints of a venue's shards may take, because they are large.
///
/// # Errors
/// If the configuration has no valid shards or lanes.
pub fn time_to_load<W: World>(
    world: &W,
    config: &SystemConfig,
    venue: VenueId,
) -> Result<Duration, NodeError> {
    let newest = |shard: ShardId| {
        let all = config.recorder_ids().filter_map(|id| stored(world, id, shard).into_iter().next());
        all.map(|checkpoint| checkpoint.bytes()).max().unwrap_or_default()
    };
    let bytes: u64 = lanes::placement(world, config)?.shards_of(venue).map(newest).sum();
    Ok(Duration::from_nanos(bytes.saturating_sub(USUAL_BYTES) * LOAD_NS_PER_BYTE))
}

/// Restores a shard from a checkpoint of its past; without one it begins at the beginning.
///
/// # Errors
/// [`NodeError::StateLost`] if that is dropped.
pub(super) fn restore_shard<W: World>(
    world: &W,
    config: &SystemConfig,
    (shard, instruments): (ShardId, &[Instrument]),
) -> Result<Resumed<Shard<FastBook>>, NodeError> {
    let past = past(world, config, shard)?;
    let resumed = from_checkpoint(world, config, (shard, past));
    // A checkpoint of nothing says no more than the configuration.
    let begins = resumed.state.as_ref().is_none_or(|shard| shard.position() == Position(0));
    if begins && is_beginning_lost(world, config, (shard, past)) {
        return Err(NodeError::StateLost(shard));
    }
    let new = || sized::<W>(Shard::new(shard, instruments)).with_register(config.register());
    Ok(resumed.map(|state| state.unwrap_or_else(new)))
}

/// The same, from a checkpoint beyond a position, if there is one.
pub(super) fn from_checkpoint_beyond<W: World>(
    world: &W,
    config: &SystemConfig,
    (shard, beyond): (ShardId, Position),
) -> Result<Option<Resumed<Shard<FastBook>>>, NodeError> {
    let past = past(world, config, shard)?;
    let Resumed { state, replay_from, reach, passed_over } = from_checkpoint(world, config, (shard, past));
    let state = state.filter(|state| state.position() > beyond);
    Ok(state.map(|state| Resumed { state, replay_from, reach, passed_over }))
}

fn from_checkpoint<W: World>(
    world: &W,
    config: &SystemConfig,
    (shard, past): (ShardId, Position),
) -> Resumed<Option<Shard<FastBook>>> {
    let restore =
        |state: &[u8]| Shard::restore(shard, state).map(|shard| (shard.position(), sized::<W>(shard)));
    resume(world, config, (shard, past), restore)
}

fn sized<W: World>(shard: Shard<FastBook>) -> Shard<FastBook> {
    shard.with_names_max(W::SHARD_NAMES_MAX)
}

/// Each shard of a venue from its newest checkpoint, and the committed stream from there. A shard whose state nobody knows is away: its seat waits
/// for a checkpoint, and the others trade.
pub(super) fn restore<W: World>(
    world: &W,
    config: &SystemConfig,
    (placement, venue): (&Placement, VenueId),
    mut draft: impl FnMut() -> Draft<W>,
) -> Result<(Vec<ShardSeat<W>>, CommittedStream<W>), NodeError> {
    let mut seats = Vec::new();
    let mut replay_from: BTreeMap<RecorderId, Offset> =
        config.recorder_ids().map(|id| (id, Offset(u64::MAX))).collect();
    for (rank, (shard, instruments)) in config.shards()?.into_iter().enumerate() {
        if !placement.executes(venue, shard) {
            continue;
        }
        let order = OrderSource::open(world, config, shard)?;
        if placement.seats(shard).is_restored_by(venue) {
            seats.push(away(world, config, (rank, shard, instruments), (order.recorded(), false)));
            continue;
        }
        let restored = match restore_shard(world, config, (shard, &instruments)) {
            Err(error @ NodeError::StateLost(_)) => {
                world.complain(&error);
                // Where its records lie that are yet to be committed nobody says.
                replay_from.values_mut().for_each(|from| *from = Offset::START);
                seats.push(away(world, config, (rank, shard, instruments), (order.recorded(), true)));
                continue;
            }
            restored => restored?,
        };
        if restored.passed_over > 0 {
            let (count, recorded) = (restored.passed_over, order.recorded());
            world.complain(&format_args!(
                "shard {shard}: skipping {count} checkpoints beyond the last recorded position {recorded}"
            ));
        }
        for (recorder, from) in &mut replay_from {
            *from = (*from).min(restored.replay_from[recorder]);
        }
        world.give_way();
        seats.push(seated(world, (rank, shard), restored, (order, draft())));
    }
    let mut committed = CommittedStream::new(world, config, |recorder| replay_from[&recorder])?;
    // All that is recorded of a shard that is away is committed: it is taken back once it has come that far.
    let begin = |seat: &ShardSeat<W>| if seat.bench.is_some() { seat.reached } else { seat.resynced_at };
    seats.iter().for_each(|seat| committed.start_at(seat.id, begin(seat)));
    assert!(seats.is_sorted_by_key(|seat| seat.id), "seats are in the order of their shards");
    Ok((seats, committed))
}

fn seated<W: World>(
    world: &W,
    (rank, id): (usize, ShardId),
    restored: Resumed<Shard<FastBook>>,
    (order, draft): (OrderSource<W::Window>, Draft<W>),
) -> ShardSeat<W> {
    assert_eq!(restored.state.id(), id, "a checkpoint of another shard is refused when it is read");
    ShardSeat {
        id,
        rank,
        resynced_at: order.recorded(),
        reached: restored.state.position(),
        bench: Some(Box::new(ShardStep { world: world.clone(), shard: restored.state, order, draft })),
        rebuild: None,
        active: true,
        restored_reach: restored.reach,
    }
}

/// The seat of a shard that is not there: it is restored, with `beyond` as soon as there is a checkpoint.
pub(super) fn away<W: World>(
    world: &W,
    config: &SystemConfig,
    (rank, shard, instruments): (usize, ShardId, Vec<Instrument>),
    (recorded, beyond): (Position, bool),
) -> ShardSeat<W> {
    let (world, config) = (world.clone(), config.clone());
    let plan = Plan { world, config, shard, instruments, failed_at: None, beyond };
    ShardSeat {
        id: shard,
        rank,
        resynced_at: recorded,
        reached: Position(0),
        bench: None,
        rebuild: Some(Rebuild::new(plan)),
        active: false,
        restored_reach: Offset::START,
    }
}
