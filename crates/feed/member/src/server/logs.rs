//! A server's two logs: what its traders submitted, and the stream.

use std::collections::VecDeque;
use std::fmt::Display;

use pares_config::NodeId;
use pares_desk::item::{ItemName, OrderedItem, SubmittedItem};
use pares_log::{
    AppendError, LogReader, LogReplacement, LogSalvage, LogWriter, Offset, OpenError, ReadError,
};
use pares_roles::tail::Tail;
use pares_roles::{NodeError, World};
use pares_types::{GatewayId, Position, RequestId};

use crate::config::{MemberConfig, stream, submissions};
use crate::notes;
use crate::start::{self, log_config};

/// Every so many positions the offset is remembered.
const PLACE_EVERY: u64 = 64;
/// Bytes of submissions between two marks of what may be released.
const MARK_EVERY: u64 = 1 << 20;
/// Bits of a sequence below the life.
pub(crate) const COUNT_BITS: u32 = 28;
/// What the bits above them are enough for: starts of a server.
const LIVES: u64 = 1 << 20;

/// Opens a server's log, or makes one. A damaged one is set aside: what of it is whole, and `keep` wants, goes into another in its place.
/// Says whether there was a whole one.
fn open<W: World>(
    world: &W,
    log: NodeId,
    config: &MemberConfig,
    keep: impl FnMut(&[u8]) -> bool,
) -> Result<(W::Writer, bool), NodeError> {
    match world.write_log(log, log_config(config).existing()) {
        Ok(mut writer) => {
            writer.publish();
            match damage(world, log)? {
                None => return Ok((writer, true)),
                Some(why) => {
                    drop(writer);
                    replace(world, log, config, &why, keep)?;
                }
            }
        }
        Err(OpenError::Absent { .. }) => {}
        Err(error) if error.is_damage() => replace(world, log, config, &error, keep)?,
        Err(error) => return Err(error.into()),
    }
    let mut writer = world.write_log(log, log_config(config))?;
    writer.publish();
    Ok((writer, false))
}

/// Reads through a log. What is wrong with it, if anything is.
fn damage<W: World>(world: &W, log: NodeId) -> Result<Option<ReadError>, NodeError> {
    let mut reader = world.read_log_from_start(log)?;
    loop {
        match reader.next() {
            Ok(Some(_)) => {}
            Ok(None) => return Ok(None),
            Err(error) if error.is_damage() => return Ok(Some(error)),
            Err(error) => return Err(error.into()),
        }
    }
}

fn replace<W: World>(
    world: &W,
    log: NodeId,
    config: &MemberConfig,
    why: &dyn Display,
    mut keep: impl FnMut(&[u8]) -> bool,
) -> Result<(), NodeError> {
    world.complain(&format_args!("{log}: {why}; starting a new log in its place"));
    let mut replacement = world.replace_log(log, log_config(config))?;
    let mut damaged = replacement.damaged()?;
    while let Some(record) = damaged.next() {
        if keep(record.payload) {
            replacement.append(record.payload)?;
        }
    }
    replacement.complete()?;
    Ok(())
}

/// Makes a server's stream whole while no server runs: what of a damaged log is whole goes into another in its place. Says whether it was.
pub(crate) fn make_whole<W: World>(world: &W, config: &MemberConfig, server: u16) -> Result<bool, NodeError> {
    let mut kept = Position(0);
    let follows = |record: &[u8]| follows(record, &mut kept);
    open(world, stream(server), config, follows).map(|(_, was_whole)| was_whole)
}

/// Keeps of a server's stream what lies below a position, while no server runs; the log as it was stays beside it.
pub(crate) fn keep_below<W: World>(
    world: &W,
    config: &MemberConfig,
    server: u16,
    end: Position,
) -> Result<(), NodeError> {
    let why = format!("a later start replaced its items from position {end} on");
    let mut kept = Position(0);
    replace(world, stream(server), config, &why, |record| kept < end && follows(record, &mut kept))
}

/// Whether the record is that of the next position.
fn follows(record: &[u8], next: &mut Position) -> bool {
    let follows = position_of(record) == Some(*next);
    *next = if follows { next.next() } else { *next };
    follows
}

/// The log of the stream, with a way to each place in it.
pub(super) struct StreamLog<W: World> {
    writer: W::Writer,
    reader: W::Reader,
    places: Vec<Offset>,
    next: Position,
}

impl<W: World> StreamLog<W> {
    /// Opens it and hands each record to `recover`.
    pub(super) fn open(
        world: &W,
        config: &MemberConfig,
        server: u16,
        mut recover: impl FnMut(&[u8]) -> bool,
    ) -> Result<Self, NodeError> {
        let mut kept = Position(0);
        let (writer, _) = open(world, stream(server), config, |record| follows(record, &mut kept))?;
        let reader = world.read_log_from_start(stream(server))?;
        let mut log = Self { writer, reader, places: Vec::new(), next: Position(0) };
        loop {
            let Some(record) = log.reader.next()? else { return Ok(log) };
            if !recover(record.payload) {
                return Err(NodeError::Refused(format!(
                    "{}: the record at offset {} does not follow the previous one: remove the log; another server has the stream",
                    stream(server),
                    record.offset
                )));
            }
            let offset = record.offset;
            log.note(offset);
        }
    }

    fn note(&mut self, offset: Offset) {
        if self.next.0.is_multiple_of(PLACE_EVERY) {
            self.places.push(offset);
        }
        self.next = self.next.next();
    }

    /// Appends the next record; others see it once it is published.
    pub(super) fn append(&mut self, record: &[u8]) -> Result<(), AppendError> {
        let offset = self.writer.append(record)?;
        self.note(offset);
        Ok(())
    }

    /// Shows others what was appended, once it is on the device if that is wanted.
    pub(super) fn publish(&mut self, is_synced: bool) -> Result<(), AppendError> {
        self.writer.publish();
        if is_synced {
            self.writer.sync()?;
        }
        Ok(())
    }

    /// Hands the published records from one position up to another to `take`, until that has had enough.
    pub(super) fn read(
        &mut self,
        from: Position,
        to: Position,
        mut take: impl FnMut(&[u8]) -> bool,
    ) -> Result<(), NodeError> {
        assert!(from <= to && to <= self.next, "positions {from} to {to} of {}", self.next);
        if from == to {
            return Ok(());
        }
        let place = usize::try_from(from.0 / PLACE_EVERY).expect("places are in memory");
        self.reader.seek(self.places[place])?;
        let mut position = Position(from.0 - from.0 % PLACE_EVERY);
        while position < to {
            let Some(record) = self.reader.next()? else { return Ok(()) };
            if position >= from && !take(record.payload) {
                return Ok(());
            }
            position = position.next();
        }
        Ok(())
    }
}

/// The log of what a server's traders submitted.
///
/// A number is given once: a peer may have read what this server wrote before its disk was lost, the end of its log went with power, or an
/// old copy was put in its place. So each start of a server begins a new *life*, noted beside the window; the life is the upper part of its
/// numbers.
pub(super) struct Submissions<W: World> {
    writer: W::Writer,
    server: u16,
    sequence: u64,
    /// Up to which sequence lies before which offset.
    marks: VecDeque<(u64, Offset)>,
    record: Vec<u8>,
}

impl<W: World> Submissions<W> {
    /// Opens it and hands each record to `recover`. `through`: the highest of its numbers that was ordered.
    pub(super) fn open(
        world: &W,
        config: &MemberConfig,
        server: u16,
        through: u64,
        mut recover: impl FnMut(&[u8]),
    ) -> Result<Self, NodeError> {
        let (writer, _) = open(world, submissions(server), config, |_| true)?;
        let mut highest = through;
        let mut reader = world.read_log_from_start(submissions(server))?;
        while let Some(record) = reader.next()? {
            if let Ok(item) = SubmittedItem::read(record.payload) {
                highest = highest.max(item.request.sequence());
                recover(record.payload);
            }
        }
        let sequence = begin_life(world, server, highest)? << COUNT_BITS;
        Ok(Self { writer, server, sequence, marks: VecDeque::new(), record: Vec::new() })
    }

    /// Appends an item under the next number and shows it to `on`.
    pub(super) fn append(
        &mut self,
        name: ItemName,
        stamp_ns: u64,
        (kind, body): (u8, &[u8]),
        on: impl FnOnce(&[u8]),
    ) -> Result<(), AppendError> {
        let request = RequestId::new(GatewayId(self.server), self.sequence + 1);
        self.record.clear();
        SubmittedItem { name, request, stamp_ns, kind, body }.write(&mut self.record);
        let offset = self.writer.append(&self.record)?;
        if self.marks.back().is_none_or(|&(_, last)| offset.since(last) > MARK_EVERY) {
            self.marks.push_back((self.sequence, offset));
        }
        self.sequence += 1;
        on(&self.record);
        Ok(())
    }

    pub(super) fn publish(&mut self) {
        self.writer.publish();
    }

    /// What is ordered and told up to that sequence need not be kept.
    pub(super) fn release(&mut self, through: u64) {
        while self.marks.len() > 1 && self.marks[1].0 <= through {
            self.marks.pop_front();
            self.writer.release_before(self.marks[0].1);
        }
    }
}

/// The logs of submissions of all other servers.
pub(super) fn peers<W: World>(server: u16, config: &MemberConfig, world: &W) -> Vec<Tail<W>> {
    let others = (0..config.count()).filter(|&peer| peer != server);
    others.map(|peer| Tail::new(world, submissions(peer), Offset::START)).collect()
}

/// Notes that a server begins another life. Which.
fn begin_life(world: &impl World, server: u16, highest: u64) -> Result<u64, NodeError> {
    let name = start::life(server);
    let life = notes::read(world, &name).unwrap_or(0).max(highest >> COUNT_BITS) + 1;
    if life >= LIVES {
        return Err(NodeError::Refused(format!("server {server} has reached its limit of starts")));
    }
    notes::write(world, &name, life).map_err(NodeError::io("noting a server's life"))?;
    Ok(life)
}

/// The position a record stands at.
pub(super) fn position_of(record: &[u8]) -> Option<Position> {
    OrderedItem::read(record).ok().map(|ordered| ordered.position)
}
