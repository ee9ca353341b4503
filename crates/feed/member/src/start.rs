//! The window's next life, before any server runs; and what a server begins with.
//!
//! As in the exchange (`pares_roles::epoch`): when everything starts together, decisions that no server has are void. Nobody was told of them. The
//! window begins anew after the last position that any server has, under an epoch that no record carries. What was submitted and not ordered
//! lies in the servers' logs and is ordered now.
//!
//! A *stream* has a number of its own. If positions were told that no server has any more, what is told from now on stands where something else
//! stood: it is another stream, and traders who ask for a place in the old one are told so.

use std::path::Path;

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
const BEGUN: &str = "begun";
const TOLD: &str = "told";

/// Makes the window of the next epoch. Only for who starts the servers, while none runs.
///
/// # Errors
/// If there is no number for another start, or a file cannot be written.
pub fn begin<W: World>(world: &W, config: &MemberConfig) -> Result<Epoch, NodeError> {
    let mut reaches = Vec::new();
    for server in 0..config.count() {
        reaches.push(reach(world, config, server)?);
    }
    let window = world.open_window(SHARD).ok().flatten();
    let before = window.as_ref().map_or(0, |window| window.epoch().0.into());
    let epoch = before.max(notes::read(world, EPOCH).unwrap_or(0)) + 1;
    let epoch = u32::try_from(epoch).map(Epoch).ok().filter(|&epoch| epoch <= EPOCH_MAX);
    let epoch = epoch.ok_or_else(|| NodeError::Refused("there is no number for another start".into()))?;
    notes::write(world, EPOCH, epoch.0.into()).map_err(NodeError::io("noting the epoch"))?;
    let next = reaches.iter().map(|reach| reach.next).max().unwrap_or_default();
    if is_lost(world, config, &reaches, next, window) || notes::read(world, STREAM).is_none() {
        notes::write(world, STREAM, made_up(world)).map_err(NodeError::io("noting the stream"))?;
    }
    note_what_is_told(world, config, reaches, next).map_err(NodeError::io("noting what is told"))?;
    raise_lives(world, config).map_err(NodeError::io("noting the servers' lives"))?;
    let made = world.create_window(SHARD, config.window as usize, epoch, next);
    made.map_err(NodeError::io("making the window"))?;
    Ok(epoch)
}

/// Whether positions that were told, or may have been, are in no server's log any more; all below `next` are.
fn is_lost<W: World>(
    world: &W,
    config: &MemberConfig,
    reaches: &[Reach],
    next: Position,
    window: Option<W::Window>,
) -> bool {
    let noted = (0..config.count()).filter_map(|server| notes::read(world, &told_before(server)));
    let noted = Position(noted.max().unwrap_or(0));
    // Without a window, nobody knows how far those were that lost what they had.
    let broken = reaches.iter().filter(|reach| !reach.is_whole).count();
    let told = window.map(|window| window.recorded().max(noted));
    let is_lost = told.unwrap_or(noted) > next || told.is_none() && broken >= config.quorum.into();
    if is_lost {
        world.complain(&format_args!(
            "positions from {next} on that were told are in no server's log any more: another stream begins"
        ));
    }
    is_lost
}

/// Notes where this start begins, and below which position a quorum has everything: what lies above may be in one log alone.
fn note_what_is_told<W: World>(
    world: &W,
    config: &MemberConfig,
    mut reaches: Vec<Reach>,
    next: Position,
) -> std::io::Result<()> {
    reaches.sort_by_key(|reach| std::cmp::Reverse(reach.next));
    notes::write(world, TOLD, reaches[usize::from(config.quorum) - 1].next.0)?;
    notes::write(world, BEGUN, next.0)?;
    let servers = (0..config.count()).filter(|&server| notes::read(world, &told_before(server)).is_some());
    servers.into_iter().try_for_each(|server| world.remove_file(Path::new(&told_before(server))))
}

/// The end of a log of submissions may be lost with power, and a peer's stream have what stood there: no number of before is given again.
fn raise_lives(world: &impl World, config: &MemberConfig) -> std::io::Result<()> {
    (0..config.count()).try_for_each(|server| match notes::read(world, &life(server)) {
        Some(lived) => notes::write(world, &life(server), lived + 1),
        None => Ok(()),
    })
}

/// Below which position a quorum has had everything, as a server that starts knows it.
///
/// # Errors
/// If the system was not started.
pub(crate) fn told<W: World>(world: &W, window: &W::Window) -> Result<Position, NodeError> {
    let begun = notes::read(world, BEGUN).ok_or(NodeError::NotStarted(SHARD))?;
    // The window begins after the last position that any server has, and is raised when a quorum has it.
    let recorded = window.recorded();
    if recorded > Position(begun) {
        return Ok(recorded);
    }
    notes::read(world, TOLD).map(Position).ok_or(NodeError::NotStarted(SHARD))
}

/// A server that has nothing notes how far the stream may have been told by then: it may be the one that had it, and the window may be
/// lost next.
///
/// # Errors
/// If a file cannot be written.
pub(crate) fn note_told_before<W: World>(world: &W, server: u16, told: Position) -> Result<(), NodeError> {
    notes::write(world, &told_before(server), told.0).map_err(NodeError::io("noting what was told"))
}

fn told_before(server: u16) -> String {
    format!("told-{server}")
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

/// How far a server's log goes.
struct Reach {
    /// The position after the last.
    next: Position,
    /// Whether it has all that it ever had.
    is_whole: bool,
}

fn reach<W: World>(world: &W, config: &MemberConfig, server: u16) -> Result<Reach, NodeError> {
    let nothing = |is_whole| Reach { next: Position(0), is_whole };
    // Opening for writing keeps whole records that were not published yet.
    match world.write_log(stream(server), log_config(config).existing()) {
        Ok(_) => {}
        Err(error @ OpenError::Locked { .. }) => return Err(error.into()),
        // Absent although the server has had one: its disk is lost.
        Err(OpenError::Absent { .. }) => return Ok(nothing(notes::read(world, &life(server)).is_none())),
        Err(error) => {
            world.complain(&format_args!("the stream of server {server} cannot be opened: {error}"));
            return Ok(nothing(false));
        }
    }
    let mut next = Position(0);
    let mut reader = match world.read_log_from_start(stream(server)) {
        Err(ReadError::NotYet { .. }) => return Ok(nothing(true)),
        reader => reader?,
    };
    // What follows damage does not count: the server itself keeps no more of it.
    let is_whole = loop {
        let read = reader.next();
        let Ok(Some(record)) = read else { break read.is_ok() };
        match OrderedItem::read(record.payload) {
            Ok(ordered) if ordered.position == next => next = next.next(),
            _ => break false,
        }
    };
    Ok(Reach { next, is_whole })
}

/// The note of a server's life: how often it began to number what is submitted there.
pub(crate) fn life(server: u16) -> String {
    format!("life-{server}")
}
