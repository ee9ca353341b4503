//! The window's next life, before any server runs; and what a server begins with.
//!
//! As in the exchange (`pares_roles::epoch`): when everything starts together, decisions that no server has are void. No trader has received them.
//! The window begins again after the last position that any server has, under an epoch that no record carries. What was submitted and not ordered
//! lies in the servers' logs and is ordered now.
//!
//! A *stream* has a number of its own. If traders may have received positions that no server has any more, what they receive from now on stands
//! where something else stood: it is another stream, and traders who ask for a place in the old one learn so.
//!
//! A loss of power may take the end of every log, and nobody sees afterwards what was there. The file `boot` says in which boot of the host servers
//! run; a stop in order removes it once all is on disks. If it names another boot at the next start, the end of the logs is *in doubt*: where being
//! told does not survive the loss of power (`durability = "os"`), another stream begins. And what the logs of submissions have is void, whatever
//! the durability: numbers rise, so what was lost before it could not be taken after it. Traders say again what they were not told, and the
//! copiers of reports begin again where the stream ends.

mod left_out;
mod power;

use std::path::Path;

use pares_desk::item::OrderedItem;
use pares_log::{Config, LogReader, OpenError, ReadError};
use pares_roles::{NodeError, World};
use pares_sequencer::{EPOCH_MAX, Sequencer};
use pares_types::{Epoch, Position, ShardId};

use crate::config::{MemberConfig, stream};
use crate::notes;
use crate::server::logs;
use power::End;

pub(crate) use left_out::cut_if_left_out;
pub use power::{end, is_running};

/// The one window.
pub const SHARD: ShardId = ShardId(0);
/// Streams are numbered below: ten digits, as sessions are named.
const STREAMS: u64 = 10_000_000_000;

const EPOCH: &str = "epoch";
const STREAM: &str = "stream";
const BEGUN: &str = "begun";
const TOLD: &str = "told";
const ANEW: &str = "anew";

/// Makes the window of the next epoch. Only for who starts the servers, while none runs. `boot` identifies the boot of the host; 0 if it cannot
/// be told, which counts as another one.
///
/// # Errors
/// If there is no number for another start, a file cannot be written, or a log cannot be opened that may be the only one with what was released.
pub fn begin<W: World>(world: &W, config: &MemberConfig, boot: u128) -> Result<Epoch, NodeError> {
    let mut reaches = Vec::new();
    for server in 0..config.count() {
        reaches.push(reach(world, config, server)?);
    }
    let losers = cut_what_contradicts(&mut reaches);
    for server in losers {
        logs::keep_below(world, config, server, reaches[usize::from(server)].next)?;
    }
    let window = world.open_window(SHARD).ok().flatten();
    let epoch = next_epoch(world, window.as_ref())?;
    let next = reaches.iter().map(|reach| reach.next).max().unwrap_or_default();
    let end = if is_lost(world, config, &reaches, next, window) {
        End::Lost
    } else {
        power::end_of_logs(world, boot)
    };
    let left_out: Vec<bool> = reaches.iter().map(|reach| reach.unopened.is_some()).collect();
    let unopened = reaches.iter_mut().find_map(|reach| reach.unopened.take());
    if let Some(unopened) = unopened.filter(|_| end.begins_another()) {
        return Err(unopened);
    }
    note_stream(world, config, (end, boot), next).map_err(NodeError::io("noting the stream"))?;
    left_out::note(world, &left_out, next).map_err(NodeError::io("noting who was left out"))?;
    note_what_is_told(world, config, reaches, next)
        .map_err(NodeError::io("noting the delivered position"))?;
    let made = world.create_window(SHARD, config.window as usize, epoch, next);
    made.map_err(NodeError::io("making the window"))?;
    // There is none, nearly always.
    let _ = world.remove_file(Path::new(ANEW));
    Ok(epoch)
}

fn next_epoch<W: World>(world: &W, window: Option<&W::Window>) -> Result<Epoch, NodeError> {
    let before = window.map_or(0, |window| window.epoch().0.into());
    let epoch = before.max(notes::read(world, EPOCH).unwrap_or(0)) + 1;
    let epoch = u32::try_from(epoch).map(Epoch).ok().filter(|&epoch| epoch <= EPOCH_MAX);
    let epoch =
        epoch.ok_or_else(|| NodeError::Refused("the system has reached its limit of starts".into()))?;
    notes::write(world, EPOCH, epoch.0.into()).map_err(NodeError::io("noting the epoch"))?;
    Ok(epoch)
}

/// Notes what is void, which stream it is, and in which boot servers run: in this order, so that a start that is broken off is begun again.
fn note_stream<W: World>(
    world: &W,
    config: &MemberConfig,
    (end, boot): (End, u128),
    next: Position,
) -> std::io::Result<()> {
    match end {
        End::Whole | End::Untold => {}
        End::InDoubt => world.complain(&format_args!(
            "the host restarted while servers ran with `durability = \"os\"`: items delivered from {next} \
             on may be lost, so a new stream begins"
        )),
        End::Lost => world.complain(&format_args!(
            "no server's log has the delivered positions from {next} on any more: a new stream begins"
        )),
    }
    if end != End::Whole {
        for server in 0..config.count() {
            let life = notes::read(world, &life(server)).unwrap_or(0);
            let through = ((life + 1) << logs::COUNT_BITS) - 1;
            notes::write(world, &void_file(server), through)?;
        }
    }
    if end.begins_another() || notes::read(world, STREAM).is_none() {
        notes::write(world, STREAM, made_up(world))?;
    }
    power::note_boot(world, boot, config.durability)
}

/// Submissions of a server up to that number that no server ordered are void.
pub(crate) fn void(world: &impl World, server: u16) -> u64 {
    notes::read(world, &void_file(server)).unwrap_or(0)
}

fn void_file(server: u16) -> String {
    format!("void-{server}")
}

/// Whether positions that traders received, or may have, are in no server's log any more; all below `next` are.
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
    told.unwrap_or(noted) > next || told.is_none() && broken >= config.quorum.into()
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
    notes::write(world, &told_before(server), told.0).map_err(NodeError::io("noting the delivered position"))
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
    /// The epochs in which its positions were decided, each with the first that was.
    epochs: Vec<(Position, Epoch)>,
    /// Whether it has all that it ever had.
    is_whole: bool,
    /// Why its log cannot be opened. It may be whole.
    unopened: Option<NodeError>,
}

impl Reach {
    /// In which epoch a position was decided that it has.
    fn epoch_of(&self, position: Position) -> Option<Epoch> {
        let run = self.epochs.partition_point(|&(first, _)| first <= position).checked_sub(1)?;
        (position < self.next).then(|| self.epochs[run].1)
    }

    fn cut(&mut self, end: Position) {
        self.epochs.retain(|&(first, _)| first < end);
        (self.next, self.is_whole) = (end, false);
    }
}

/// Servers that were left out of a start may have positions that others then gave to something else. The later epoch stands, which did not
/// know of the earlier; all logs agree below. Says whose logs are to be cut.
fn cut_what_contradicts(reaches: &mut [Reach]) -> Vec<u16> {
    let mut firsts: Vec<Position> =
        reaches.iter().flat_map(|reach| reach.epochs.iter().map(|run| run.0)).collect();
    firsts.sort_unstable();
    let mut losers = Vec::new();
    for position in firsts {
        let latest = reaches.iter().filter_map(|reach| reach.epoch_of(position)).max();
        for (server, reach) in (0..).zip(reaches.iter_mut()) {
            if reach.epoch_of(position).is_some_and(|epoch| Some(epoch) != latest) {
                reach.cut(position);
                losers.push(server);
            }
        }
    }
    losers
}

fn reach<W: World>(world: &W, config: &MemberConfig, server: u16) -> Result<Reach, NodeError> {
    let nothing = |is_whole| Reach { next: Position(0), epochs: Vec::new(), is_whole, unopened: None };
    // Opening for writing keeps whole records that were not published yet.
    match world.write_log(stream(server), log_config(config).existing()) {
        Ok(_) => {}
        Err(error @ OpenError::Locked { .. }) => return Err(error.into()),
        Err(error) if error.is_damage() => {}
        // Absent although the server has had one: its disk is lost.
        Err(OpenError::Absent { .. }) => return Ok(nothing(notes::read(world, &life(server)).is_none())),
        Err(error) => {
            world.complain(&format_args!("the stream of server {server} cannot be opened: {error}"));
            return Ok(Reach { unopened: Some(error.into()), ..nothing(false) });
        }
    }
    // The server keeps what of a damaged log is whole: so much counts here too.
    let was_whole = logs::make_whole(world, config, server)?;
    let (mut next, mut epochs) = (Position(0), Vec::<(Position, Epoch)>::new());
    let mut reader = match world.read_log_from_start(stream(server)) {
        Err(ReadError::NotYet { .. }) => return Ok(nothing(true)),
        reader => reader?,
    };
    let is_whole = loop {
        let read = reader.next();
        let Ok(Some(record)) = read else { break read.is_ok() };
        match OrderedItem::read(record.payload) {
            Ok(ordered) if ordered.position == next => {
                if epochs.last().is_none_or(|&(_, last)| last != ordered.epoch) {
                    epochs.push((next, ordered.epoch));
                }
                next = next.next();
            }
            _ => break false,
        }
    };
    Ok(Reach { next, epochs, is_whole: is_whole && was_whole, unopened: None })
}

/// A server found that what is decided is in no server's log any more: everything has to be started again.
pub(crate) fn ask_anew(world: &impl World) {
    // If it cannot be noted, the next process of the server tries again.
    let _ = notes::write(world, ANEW, 1);
}

/// Whether a server asked for that; [`begin`] is the answer.
#[must_use]
pub fn is_anew_asked(world: &impl World) -> bool {
    notes::read(world, ANEW).is_some()
}

/// The note of a server's life: how often it was started.
pub(crate) fn life(server: u16) -> String {
    format!("life-{server}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reach(next: u64, epochs: &[(u64, u32)]) -> Reach {
        let epochs = epochs.iter().map(|&(first, epoch)| (Position(first), Epoch(epoch))).collect();
        Reach { next: Position(next), epochs, is_whole: true, unopened: None }
    }

    #[test]
    fn logs_that_agree_are_not_cut_however_long_they_are() {
        let mut reaches = [reach(9, &[(0, 1), (5, 2)]), reach(0, &[]), reach(7, &[(0, 1), (5, 2)])];
        assert_eq!(cut_what_contradicts(&mut reaches), [0_u16; 0]);
        assert_eq!(reaches.map(|reach| reach.next.0), [9, 0, 7]);
    }

    #[test]
    fn what_an_earlier_epoch_has_where_a_later_one_began_is_cut() {
        // Server 1 was left out of the start of epoch 2, and server 2 of those of 2 and 3.
        let mut reaches = [reach(8, &[(0, 1), (3, 2), (6, 3)]), reach(5, &[(0, 1)]), reach(4, &[(0, 1)])];
        assert_eq!(cut_what_contradicts(&mut reaches), [1, 2]);
        assert_eq!(reaches.map(|reach| (reach.next.0, reach.is_whole)), [(8, true), (3, false), (3, false)]);
        let mut shorter = [reach(4, &[(0, 1), (3, 2)]), reach(9, &[(0, 1)])];
        assert_eq!(cut_what_contradicts(&mut shorter), [1]);
        assert_eq!(shorter[1].next, Position(3));
    }
}
