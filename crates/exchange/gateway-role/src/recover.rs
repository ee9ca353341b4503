//! What a gateway learns from checkpoints and logs as it starts.
//!
//! Reading the record from its beginning takes longer with every day. So each shard is taken from its newest checkpoint, as a joining venue
//! does, and the committed stream is read from there; without one, or if none can be read, from its beginning. Whatever a gateway does not
//! know makes it slower to answer, and never has a request executed twice: that is up to the shards.
//!
//! All below the checkpoint counts as committed and may be told. But a recorder names a checkpoint once it alone has all below, and the
//! next life of the windows begins behind what any recorder has. So the newest checkpoint counts that as many recorders have reached
//! as an answer needs. If there is none, and the record's beginning is dropped, another is taken all the same, or nobody could ask about
//! that shard; the gateway says then that it counts as committed what is not proven to be.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::path::PathBuf;

use pares_book::Listing;
use pares_config::{NodeId, SystemConfig};
use pares_gateway::{Gateway, Place};
use pares_log::{LogReader, Offset, OpenError};
use pares_register::Register;
use pares_roles::checkpoints::StoredCheckpoint;
use pares_roles::committed::{Committed, CommittedStream};
use pares_roles::resume::{Resumed, is_beginning_lost, past, resume, stored};
use pares_roles::world::World;
use pares_roles::{NodeError, durable_log, left_out, recorder};
use pares_types::{Epoch, GatewayId, Position, RecorderId, ShardId, ShardView};
use pares_venue::checkpoint;
use pares_wire::record::{self, RequestRecord, ResultRecord, SessionMarkRecord, SpentLogonRecord};

use crate::marks::Marks;
use crate::spent_logons::SpentLogons;

pub(crate) struct Record<W: World> {
    pub(crate) rules: Gateway,
    committed: CommittedStream<W>,
    /// At least the number of this gateway's last request that was recorded in this life of the windows; 0 if none was. A checkpoint does not
    /// say in which life it was.
    last: u64,
}

/// Learns what the record says.
pub(crate) fn record<W: World>(
    world: &W,
    (id, life): (GatewayId, Epoch),
    config: &SystemConfig,
) -> Result<Record<W>, NodeError> {
    let mut rules = super::rules(id, config, world)?;
    let (mut committed, through) = from_checkpoints(world, id, config, &mut rules)?;
    let last = recover_committed(&mut rules, &mut committed, (id, life))?;
    let follows = |shard| rules.committed(shard) == committed.committed(shard);
    assert!(rules.shards().all(follows), "a gateway has followed of each shard what is committed");
    Ok(Record { rules, committed, last: last.max(through) })
}

/// Each shard from its newest checkpoint, and the committed stream from there. Says which request of this gateway was the last before.
fn from_checkpoints<W: World>(
    world: &W,
    id: GatewayId,
    config: &SystemConfig,
    rules: &mut Gateway,
) -> Result<(CommittedStream<W>, u64), NodeError> {
    let mut replay_from: BTreeMap<RecorderId, Offset> =
        config.recorder_ids().map(|id| (id, Offset(u64::MAX))).collect();
    let (mut positions, mut through) = (Vec::new(), 0);
    for shard in config.shards()?.into_keys() {
        let resumed = from_checkpoint(world, config, shard)?;
        for (recorder, from) in &mut replay_from {
            *from = (*from).min(resumed.replay_from[recorder]);
        }
        if let Some((view, register, listings)) = resumed.state {
            rules.recover_shard(shard, &view, register, &listings);
            positions.push((shard, view.position));
            through = through.max(through_of(&view, id));
        }
    }
    let mut committed = CommittedStream::new(world, config, |recorder| replay_from[&recorder])?;
    positions.into_iter().for_each(|(shard, position)| committed.start_at(shard, position));
    Ok((committed, through))
}

/// What a checkpoint shows of a shard.
type Viewed = (ShardView, Register, Vec<Listing>);

fn from_checkpoint<W: World>(
    world: &W,
    config: &SystemConfig,
    shard: ShardId,
) -> Result<Resumed<Option<Viewed>>, NodeError> {
    let view = |state: &[u8]| checkpoint::view(shard, state).map(|read| (read.0.position, read));
    let past = past(world, config, shard)?;
    let begins = |resumed: &Resumed<Option<Viewed>>| {
        resumed.state.as_ref().is_none_or(|(view, ..)| view.position == Position(0))
    };
    let reached = past.min(reached_by_quorum(world, config, shard));
    let mut resumed = resume(world, config, (shard, reached), view);
    if begins(&resumed) && is_beginning_lost(world, config, (shard, past)) {
        // A recorder that is being filled has no checkpoint yet. A recorder drops what it has archived and has checkpoints behind, and asks no
        // other; so of no checkpoint that is left it is known that enough recorders had all below. The oldest from which a log leads on counts
        // the fewest positions as committed. Where no log shows anything of the shard only the newest says where its record ends.
        resumed = resume(world, config, (shard, past.min(oldest_that_leads_on(world, config, shard))), view);
        match &resumed.state {
            Some((view, ..)) if view.position > Position(0) => {
                complain_of_unproven(world, shard, view.position)
            }
            // Nothing is answered for that shard; the others' members need the gateway.
            _ => world.complain(&NodeError::StateLost(shard)),
        }
    }
    Ok(resumed)
}

fn complain_of_unproven(world: &impl World, shard: ShardId, position: Position) {
    world.complain(&format_args!(
        "shard {shard}: positions below {position} are confirmed by only one recorder's checkpoint, because \
         the beginning of the record is dropped and too few recorders have a checkpoint. Do not replace \
         recorders' disks until all recorders are complete"
    ));
}

/// What as many recorders as an answer needs are known to have of a shard: all below their newest checkpoints.
fn reached_by_quorum<W: World>(world: &W, config: &SystemConfig, shard: ShardId) -> Position {
    let newest =
        |id| stored(world, id, shard).iter().map(StoredCheckpoint::position).max().unwrap_or(Position(0));
    let mut reached: Vec<Position> = config.recorder_ids().map(newest).collect();
    reached.sort_unstable_by_key(|&position| Reverse(position));
    assert!(usize::from(config.quorum) <= reached.len(), "a quorum is one of the recorders there are");
    reached[usize::from(config.quorum) - 1]
}

/// The oldest checkpoint of a shard from which some recorder's log leads on; of a shard of which no log shows anything, the newest does.
fn oldest_that_leads_on<W: World>(world: &W, config: &SystemConfig, shard: ShardId) -> Position {
    let read = || config.recorder_ids().filter(|id| !left_out::is_noted(world, *id));
    let begins = read().filter_map(|id| recorder::beginning(world, NodeId::Recorder(id), shard)).min();
    let stored = read().flat_map(|id| stored(world, id, shard)).map(|checkpoint| checkpoint.position());
    begins
        .and_then(|begins| stored.filter(|&position| position >= begins).min())
        .unwrap_or(Position(u64::MAX))
}

fn through_of(view: &ShardView, id: GatewayId) -> u64 {
    view.through.iter().find(|(of, _)| *of == id).map_or(0, |(_, sequence)| *sequence)
}

/// A gateway's log, what it knows, the committed stream behind that, how far FIX sessions were, and which of their Logons are used up.
pub(crate) struct Opened<W: World> {
    pub(crate) writer: W::Writer,
    pub(crate) rules: Gateway,
    pub(crate) committed: CommittedStream<W>,
    pub(crate) marks: Marks,
    pub(crate) spent_logons: SpentLogons,
}

/// Opens the gateway's log, and learns what the record says, then the requests of that log.
///
/// Only the start of everything makes a gateway's log ([`epoch::begin`](pares_roles::epoch::begin)). Where there is none, or one that
/// ends before what was recorded of it in this life of the windows, another was lost: venues may have read it to any number, and
/// that number must not be given to another request.
pub(crate) fn open<W: World>(
    world: &W,
    id: GatewayId,
    life: Epoch,
    config: &SystemConfig,
) -> Result<Opened<W>, NodeError> {
    let log = NodeId::Gateway(id);
    let lost = || NodeError::LogLost { gateway: id, log: PathBuf::from(log.to_string()) };
    let writer = match world.write_log(log, durable_log(config).existing()) {
        Err(OpenError::Absent { .. }) => return Err(lost()),
        opened => opened?,
    };
    let Record { mut rules, committed, last } = record(world, (id, life), config)?;
    let Own { end: own, marks, spent_logons } = recover_own(world, id, &mut rules, last)?;
    // In an earlier life it may have been: power was lost, and the log's end with it.
    if own < last && own < last_of_life(world, (id, life), config, last) {
        return Err(lost());
    }
    rules.recover_guards();
    Ok(Opened { writer, rules, committed, marks, spent_logons })
}

/// The number of this gateway's last request that any recorder has of this life; `or_else` if some of this life are not kept any more, or no
/// recorder's log can be read to its end.
fn last_of_life<W: World>(world: &W, who: (GatewayId, Epoch), config: &SystemConfig, or_else: u64) -> u64 {
    let (mut last, mut is_known) = (0, false);
    for recorder in config.recorder_ids() {
        let Ok(mut log) = world.read_log_from_start(NodeId::Recorder(recorder)) else { continue };
        let (in_it, end) = last_in_log(&mut log, who);
        last = last.max(in_it);
        match end {
            Read::ToTheEnd => is_known = true,
            // Behind damage the other recorders have it.
            Read::ToDamage => {}
            Read::WithoutItsBegin => return or_else,
        }
    }
    if is_known { last } else { or_else }
}

/// How much of a recorder's log of this life there is to read.
enum Read {
    ToTheEnd,
    ToDamage,
    WithoutItsBegin,
}

fn last_in_log(log: &mut impl LogReader, (id, life): (GatewayId, Epoch)) -> (u64, Read) {
    let (mut last, mut is_cut) = (0, log.released() > Offset::START);
    loop {
        let entry = match log.next() {
            Ok(Some(entry)) => entry,
            Ok(None) => return (last, Read::ToTheEnd),
            Err(_) => return (last, Read::ToDamage),
        };
        let Ok(record) = ResultRecord::read(entry.payload) else { continue };
        let is_of_life = record.epoch() == life;
        if is_of_life && is_cut {
            return (last, Read::WithoutItsBegin);
        }
        is_cut = false;
        let request = record.request().ok().filter(|request| is_of_life && request.id.gateway() == id);
        last = request.map_or(last, |request| last.max(request.id.sequence()));
    }
}

/// What a gateway's own log says.
struct Own {
    /// The last request that is known to have been there.
    end: u64,
    marks: Marks,
    spent_logons: SpentLogons,
}

/// Reads the requests of the gateway's own log, its marks, and which Logons are used up; `last` is the last request that is recorded.
fn recover_own(world: &impl World, id: GatewayId, rules: &mut Gateway, last: u64) -> Result<Own, NodeError> {
    let (mut marks, mut spent_logons) = (Marks::new(id), SpentLogons::default());
    let log = NodeId::Gateway(id);
    let mut own = world.read_log_from_start(log)?;
    // What is released was recorded; which numbers that were nobody can tell.
    let mut end = if own.released() > Offset::START { last } else { 0 };
    while let Some(entry) = own.next()? {
        let offset = entry.offset.0;
        match record::schema(entry.payload) {
            Some(record::SESSION_MARK) => {
                marks.recover(SessionMarkRecord::read(entry.payload)?, offset);
                continue;
            }
            Some(record::SPENT_LOGON) => {
                spent_logons.recover(&SpentLogonRecord::read(entry.payload)?, offset, world.now_ns());
                continue;
            }
            _ => {}
        }
        let request = RequestRecord::read(entry.payload)?;
        if request.id.gateway() != id {
            return Err(NodeError::Refused(format!(
                "{log} has requests of gateway-{}: restore {log}'s own log, or remove this one and restart \
                 the whole system; members use other gateways meanwhile",
                request.id.gateway()
            )));
        }
        end = request.id.sequence();
        rules.recover_own(&request, offset);
    }
    Ok(Own { end, marks, spent_logons })
}

/// Says which was this gateway's last request that was recorded in this life.
fn recover_committed<W: World>(
    rules: &mut Gateway,
    committed: &mut CommittedStream<W>,
    (id, life): (GatewayId, Epoch),
) -> Result<u64, NodeError> {
    let (mut last, mut events) = (0, Vec::new());
    loop {
        let read = committed.poll(usize::MAX, |item| {
            match item {
                Committed::Result { recorder, offset, record } => {
                    let (request, outcome) = (record.request()?, record.outcome()?);
                    let place = Place { recorder, offset: offset.0 };
                    events.clear();
                    for event in record.events() {
                        events.push(event?);
                    }
                    if record.epoch() == life && request.id.gateway() == id {
                        last = last.max(request.id.sequence());
                    }
                    rules.recover_committed(record.position(), &request, &outcome, &events, place);
                }
                Committed::Shown { record } => rules.recover_uncommitted(&record.request()?),
                Committed::Moved { .. } | Committed::CheckpointStored { .. } => {}
            }
            Ok(())
        })?;
        if read == 0 {
            return Ok(last);
        }
    }
}
