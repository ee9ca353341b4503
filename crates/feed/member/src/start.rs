//! The window's next life, before any server runs; and what a server begins with.
//!
//! As in the exchange (`pares_roles::epoch`): when everything starts together, decisions that no server has are void. Nobody was told of them. The
//! window begins anew after the last position that any server has, under an epoch that no record carries. What was submitted and not ordered
//! lies in the servers' logs and is ordered now.
//!
//! A *stream* has a number of its own. If positions were told that no server has any more, what is told from now on stands where something else
//! stood: it is another stream, and traders who ask for a place in the old one are told so.

use pares_desk::item::OrderedItem;
use pares_log::{Config, LogReader, OpenError, ReadError};
use pares_roles::{NodeError, World};
use pares_sequencer::{EPOCH_MAX, Sequencer};
use pares_types::{Epoch, Position, ShardId};

use crate::config::{MemberConfig, stream};
use crate::notes;

/// The one window.
pub const SHARD: ShardId = ShardId(0);
/// Streams are numbered below: ten digits, as sessions are named.
const STREAMS: u64 = 10_000_000_000;

const EPOCH: &str = "epoch";
const STREAM: &str = "stream";

/// Makes the window of the next epoch. Only for who starts the servers, while none runs.
///
/// # Errors
/// If there is no number for another start, or a file cannot be written.
pub fn begin<W: World>(world: &W, config: &MemberConfig) -> Result<Epoch, NodeError> {
    let mut next = Position(0);
    for server in 0..config.count() {
        next = next.max(reach(world, config, server)?);
    }
    let window = world.open_window(SHARD).ok().flatten();
    let before = window.as_ref().map_or(0, |window| window.epoch().0.into());
    let epoch = before.max(notes::read(world, EPOCH).unwrap_or(0)) + 1;
    let epoch = u32::try_from(epoch).map(Epoch).ok().filter(|&epoch| epoch <= EPOCH_MAX);
    let epoch = epoch.ok_or_else(|| NodeError::Refused("there is no number for another start".into()))?;
    notes::write(world, EPOCH, epoch.0.into()).map_err(NodeError::io("noting the epoch"))?;
    let lost = window.map_or(Position(0), |window| window.recorded());
    if lost > next {
        world.complain(&format_args!(
            "positions {next} to {} of the stream are in no server's log any more: another stream begins",
            lost.0 - 1
        ));
    }
    if lost > next || notes::read(world, STREAM).is_none() {
        notes::write(world, STREAM, made_up(world)).map_err(NodeError::io("noting the stream"))?;
    }
    let made = world.create_window(SHARD, config.window as usize, epoch, next);
    made.map_err(NodeError::io("making the window"))?;
    Ok(epoch)
}

fn made_up(world: &impl World) -> u64 {
    let random = world.random();
    let bytes = random.first_chunk().expect("there are 32 of them");
    1 + u64::from_le_bytes(*bytes) % (STREAMS - 1)
}

/// The number of the stream.
///
/// # Errors
/// If the system was not started.
pub fn stream_number(world: &impl World) -> Result<u64, NodeError> {
    notes::read(world, STREAM).ok_or(NodeError::NotStarted(SHARD))
}

/// How a server's logs are made.
pub(crate) fn log_config(config: &MemberConfig) -> Config {
    Config::default().segment_bytes(config.segment_mib << 20).durability(config.durability.into())
}

/// The position after the last that lies in a server's log.
fn reach<W: World>(world: &W, config: &MemberConfig, server: u16) -> Result<Position, NodeError> {
    // Opening for writing keeps whole records that were not published yet.
    match world.write_log(stream(server), log_config(config).existing()) {
        Ok(_) => {}
        Err(error @ OpenError::Locked { .. }) => return Err(error.into()),
        Err(OpenError::Absent { .. }) => return Ok(Position(0)),
        Err(error) => {
            world.complain(&format_args!("the stream of server {server} cannot be opened: {error}"));
            return Ok(Position(0));
        }
    }
    let mut next = Position(0);
    let mut reader = match world.read_log_from_start(stream(server)) {
        Err(ReadError::NotYet { .. }) => return Ok(next),
        reader => reader?,
    };
    // What follows damage does not count: the server itself keeps no more of it.
    while let Ok(Some(record)) = reader.next() {
        match OrderedItem::read(record.payload) {
            Ok(ordered) if ordered.position == next => next = next.next(),
            _ => break,
        }
    }
    Ok(next)
}
