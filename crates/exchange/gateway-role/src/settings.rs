//! What a gateway makes of the settings: its rules, its connections, and the logs of the others that it reads.

use std::sync::Arc;

use pares_book::Instrument;
use pares_config::{NodeId, SignOnSetting, SystemConfig};
use pares_gateway::{Gateway, GatewayConfig as Rules, Pace};
use pares_log::Offset;
use pares_port::DoorFactory;
use pares_roles::NodeError;
use pares_roles::inlet::LogCursor;
use pares_roles::world::{Sockets, World};
use pares_types::{GatewayId, ShardId};

use crate::connections::Connections;
use crate::door_end::Doors;
use crate::tap::Tap;

/// The rules of this gateway, which know nothing yet.
pub(super) fn rules<W: World>(id: GatewayId, config: &SystemConfig, world: &W) -> Result<Gateway, NodeError> {
    let shards = config.shards()?;
    let timed = shards.iter().filter(|(_, list)| list.iter().any(becomes_due));
    let timed: Vec<ShardId> = timed.map(|(shard, _)| *shard).collect();
    let instruments =
        shards.into_iter().flat_map(|(shard, list)| list.into_iter().map(move |one| (one, shard)));
    let rules = Rules {
        id,
        gateways: config.gateways.len() as u16,
        sign_on_required: config.sign_on == SignOnSetting::Required,
        member_sessions_max: config.member_sessions_max,
        session_in_flight_max: config.session_in_flight_max,
        session_pace: Pace::new(config.session_rate_max, config.session_burst_max),
        patience_ns: config.quorum_patience_ms * 1_000_000,
        wait_target_ns: config.wait_target_ms * 1_000_000,
        in_flight_max: config.in_flight_max,
        names_max: config.names_max,
    };
    let random: [u8; 32] = world.random();
    let seed = u64::from_le_bytes(*random.first_chunk().expect("it has 32 bytes"));
    let rules = Gateway::new(rules, instruments).with_register(config.register()).with_hash_seed(seed);
    let rules = rules.with_clock(config.clock_ms * 1_000_000, timed);
    Ok(match &config.day {
        Some(day) => rules.with_days(day.times()?),
        None => rules,
    })
}

/// Whether something in the instrument becomes due by itself, from the start.
fn becomes_due(instrument: &Instrument) -> bool {
    !instrument.timetable.rows().is_empty() || instrument.call_ns != 0
}

/// The logs of the other gateways.
pub(super) fn peers<W: World>(id: GatewayId, config: &SystemConfig, world: &W) -> Vec<LogCursor<W>> {
    let peers = config.gateway_ids().filter(|&peer| peer != id);
    peers.map(|peer| LogCursor::new(world, NodeId::Gateway(peer), Offset::START)).collect()
}

/// Nobody's yet.
pub(super) fn connections<W: World, S: Sockets>(
    (id, config): (GatewayId, &SystemConfig),
    world: &W,
    sockets: S,
    (factory, tap): (Arc<dyn DoorFactory>, Tap),
) -> Result<Connections<S>, NodeError> {
    let market = world.market();
    let doors = Doors::of((id, config), factory, market.is_some())?;
    Ok(Connections::new(sockets, config.sessions_max, doors, tap, market))
}
