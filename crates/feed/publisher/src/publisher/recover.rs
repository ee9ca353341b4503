//! How a publisher finds where to continue.
//!
//! ```text
//!  own log:   ... state ... messages ... | torn or lost           a damaged one is rebuilt
//!                   |
//!                   +--> record from there on --> the same messages again, up to what the log holds --> the next ones
//! ```
//! Without a state of its own it begins where the session did, by another publisher's state; without any, with the shard's first record.

use std::collections::BTreeMap;

use pares_config::{NodeId, SystemConfig};
use pares_log::{LogReplacement, LogWriter, Offset, payload_bytes_max};
use pares_roles::committed::{CommittedStream, is_there};
use pares_roles::recorder::beginnings;
use pares_roles::{NodeError, World, repair_asked};
use pares_types::{Position, PublisherId, RecorderId, ShardId};

use super::log_config;
use super::shard::{Making, ShardFeed};
use crate::logged::{HEAD_BYTES, Reached, StatePiece};
use crate::scan::{Held, Stored, Useless, scan};
use crate::state::{self, Places};
use pares_feed::publication::Publication;
use zerocopy::IntoBytes;

/// What a publisher starts with.
pub(super) struct Recovered<W: World> {
    pub(super) writer: W::Writer,
    pub(super) feeds: BTreeMap<ShardId, ShardFeed>,
    pub(super) stream: CommittedStream<W>,
    pub(super) sessions: BTreeMap<ShardId, [Offset; 2]>,
}

/// A shard's publication, and where each recorder's log must be read from for it.
struct Begun {
    feed: ShardFeed,
    places: Places,
}

/// Opens the log, and finds where to continue in every shard.
///
/// # Errors
/// If the log cannot be written, or the record does not reach back to where a shard must continue.
pub(super) fn recover<W: World>(
    world: &W,
    id: PublisherId,
    config: &SystemConfig,
) -> Result<Recovered<W>, NodeError> {
    let (mut writer, held) = whole_log(world, id, config)?;
    let others: Vec<PublisherId> = config.publisher_ids().filter(|&other| other != id).collect();
    let mut begun = BTreeMap::new();
    for (shard, instruments) in config.shards()? {
        let own = held.get(&shard).cloned().unwrap_or_default();
        let first = || Publication::new(shard, &instruments);
        let begins = match own.newest.as_ref().and_then(|stored| read(world, shard, stored)) {
            Some((publication, places)) => {
                let stored = own.newest.as_ref().expect("just read");
                begin((publication, places), Some(stored), own.steps.clone(), config)
            }
            None => match of_others(world, shard, &others).filter(|_| own.told.is_none()) {
                Some((stored, publication, places)) => {
                    append_state(&mut writer, shard, &stored, bytes_max(config))?;
                    begin((publication, places), Some(&stored), Vec::new(), config)
                }
                None => begin((first(), Places::new()), None, own.steps, config),
            },
        };
        begun.insert(shard, begins);
    }
    writer.publish();
    check_reach(world, config, &begun)?;
    let stream = stream(world, config, &begun)?;
    let sessions = held.into_iter().map(|(shard, held)| (shard, held.sessions)).collect();
    let feeds = begun.into_iter().map(|(shard, begun)| (shard, begun.feed)).collect();
    Ok(Recovered { writer, feeds, stream, sessions })
}

fn begin(
    (publication, places): (Publication, Places),
    stored: Option<&Stored>,
    steps: Vec<Reached>,
    config: &SystemConfig,
) -> Begun {
    // A state before the first session has no name of one.
    let made = stored.map(|stored| stored.reached).filter(|reached| reached.next > 0);
    let making = Making::new(made, steps, bytes_max(config));
    let next = stored.map_or(Position(0), |stored| stored.position);
    let mut feed = ShardFeed::new(publication, making, next);
    feed.state_bytes = stored.map_or(0, |stored| stored.bytes.len());
    Begun { feed, places }
}

/// The longest stretch of messages, or piece of a state, that goes into a record.
pub(super) fn bytes_max(config: &SystemConfig) -> usize {
    payload_bytes_max(config.segment_mib << 20) - HEAD_BYTES
}

/// The publisher's log, whole, and what it holds; one that is damaged or contradicts itself is made again, empty.
fn whole_log<W: World>(
    world: &W,
    id: PublisherId,
    config: &SystemConfig,
) -> Result<(W::Writer, BTreeMap<ShardId, Held>), NodeError> {
    let log = NodeId::Publisher(id);
    let open = || world.write_log(log, log_config(config));
    let is_asked = repair_asked::is_asked(world, log);
    let why = match open() {
        Err(error) if error.is_damage() => error.to_string(),
        Err(error) => return Err(error.into()),
        Ok(writer) => match scan(world, log) {
            // What is asked about may lie on a disk that was replaced since.
            Ok(held) if held.is_empty() || !is_asked => return Ok((writer, held)),
            Ok(_) => String::from("other nodes report it as damaged, or it does not match the record"),
            Err(Useless::Unreadable(error)) => return Err(error.into()),
            Err(Useless::Damaged(why)) => why,
        },
    };
    world.complain(&format_args!("rebuilding the log of {log} from the record: {why}"));
    world.replace_log(log, log_config(config))?.complete()?;
    Ok((open()?, BTreeMap::new()))
}

fn read<W: World>(world: &W, shard: ShardId, stored: &Stored) -> Option<(Publication, Places)> {
    let read = state::read(shard, &stored.bytes);
    if read.is_none() {
        let position = stored.position;
        world.complain(&format_args!("shard {shard}: skipping the unreadable state at {position}"));
    }
    read.map(|(places, publication)| (publication, places))
}

/// The state in which the last session began, as another publisher has it.
fn of_others<W: World>(
    world: &W,
    shard: ShardId,
    others: &[PublisherId],
) -> Option<(Stored, Publication, Places)> {
    let of = |&other: &PublisherId| scan(world, NodeId::Publisher(other)).ok()?.remove(&shard)?.beginning;
    let stored = others.iter().filter_map(of).max_by_key(|stored| stored.position)?;
    let (publication, places) = read(world, shard, &stored)?;
    Some((stored, publication, places))
}

/// Writes a state into the log, in pieces.
///
/// # Errors
/// As the log.
pub(super) fn append_state(
    writer: &mut impl LogWriter,
    shard: ShardId,
    stored: &Stored,
    bytes_max: usize,
) -> Result<Offset, NodeError> {
    let begins = writer.tail();
    let count = u16::try_from(stored.bytes.chunks(bytes_max).len()).map_err(|_| {
        NodeError::Refused(format!(
            "shard {shard}: its state has {} bytes, more than 65,535 log records can hold: raise `segment_mib` in pares.toml",
            stored.bytes.len()
        ))
    })?;
    for (index, bytes) in (0..).zip(stored.bytes.chunks(bytes_max)) {
        let (reached, position) = (stored.reached, stored.position);
        let piece = StatePiece { shard, index, count, reached, position, bytes };
        writer.append_with(HEAD_BYTES + bytes.len(), |to| {
            let (head, rest) = to.split_at_mut(HEAD_BYTES);
            head.copy_from_slice(piece.head().as_bytes());
            rest.copy_from_slice(bytes);
        })?;
    }
    Ok(begins)
}

/// Checks that the record reaches back to where each shard continues.
fn check_reach<W: World>(
    world: &W,
    config: &SystemConfig,
    begun: &BTreeMap<ShardId, Begun>,
) -> Result<(), NodeError> {
    let mut first: BTreeMap<ShardId, Position> = BTreeMap::new();
    for recorder in config.recorder_ids() {
        for (shard, position) in beginnings(world, NodeId::Recorder(recorder), begun.len()) {
            let earliest = first.entry(shard).or_insert(position);
            *earliest = position.min(*earliest);
        }
    }
    let late = first.iter().find(|(shard, first)| begun.get(shard).is_some_and(|of| of.feed.next < **first));
    let Some((shard, first)) = late else { return Ok(()) };
    Err(NodeError::Refused(format!(
        "shard {shard}: no publisher's log has the feed's state at position {first}, and all earlier \
         records were dropped. Restore a publisher-P directory, or the earlier days (`pares restore`)"
    )))
}

/// The committed stream, from where all shards can continue.
fn stream<W: World>(
    world: &W,
    config: &SystemConfig,
    begun: &BTreeMap<ShardId, Begun>,
) -> Result<CommittedStream<W>, NodeError> {
    let from = |recorder: RecorderId| {
        let places = begun.values().map(|begun| state::of(&begun.places, recorder));
        let earliest = places.map(|place| place.map_or(Offset::START, |place| place.offset)).min();
        let all = begun.values().filter_map(|begun| state::of(&begun.places, recorder));
        // A log in the place of the one that was read then has other records there.
        let same = all.clone().all(|place| is_there(world, recorder, place));
        earliest.filter(|_| same).unwrap_or(Offset::START)
    };
    let mut stream = CommittedStream::new(world, config, from)?;
    begun.iter().for_each(|(&shard, begun)| stream.start_at(shard, begun.feed.next));
    Ok(stream)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pares_config::Layout;
    use pares_node::HostWorld;

    #[test]
    fn a_state_of_more_pieces_than_can_be_counted_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let config = pares_log::Config::default().segment_bytes(1 << 20);
        let (mut writer, _) = pares_log::Writer::open(dir.path(), config).unwrap();
        let before = writer.tail();
        let stored = Stored::new(Reached::NONE, Position(7), vec![0; 1 << 16]);
        let refused = append_state(&mut writer, ShardId(0), &stored, 1).unwrap_err();
        assert!(matches!(refused, NodeError::Refused(why) if why.contains("raise `segment_mib`")));
        assert_eq!(writer.tail(), before);
        append_state(&mut writer, ShardId(0), &stored, 2).unwrap();
    }

    #[test]
    fn a_log_that_is_to_be_repaired_and_is_gone_is_begun() {
        let dir = tempfile::tempdir().unwrap();
        let world = HostWorld::new(&Layout::new(dir.path())).unwrap();
        let (id, config) = (PublisherId(0), SystemConfig { segment_mib: 1, ..SystemConfig::default() });
        repair_asked::ask(&world, NodeId::Publisher(id));
        for _ in 0..2 {
            let (writer, held) = whole_log(&world, id, &config).unwrap();
            assert!(held.is_empty() && writer.tail().0 < 4_096);
        }
    }
}
