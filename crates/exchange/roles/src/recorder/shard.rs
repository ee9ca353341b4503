//! What a recorder knows of one shard, and how it learns it from a log.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use pares_config::{NodeId, SystemConfig};
use pares_log::{LogReader, LogSalvage, Offset, ReadError};
use pares_recorder::{Acceptance, Offer, Source, Statement};
use pares_types::{BusinessDay, Epoch, GatewayId, Position, RecorderId, ShardId, Voters};
use pares_wire::record::{self, CheckpointStored, ResultRecord};

use super::gate::{Gate, content};
use crate::NodeError;
use crate::left_out::LeftOut;
use crate::world::World;

/// Positions between two remembered offsets of a shard, or bytes if it is quiet; and how many are remembered.
const INDEX_EVERY: u64 = 64;
const INDEX_BYTES: u64 = 1 << 20;
const INDEX_MAX: usize = 4_096;

pub(super) struct ShardRecord {
    pub(super) acceptance: Acceptance,
    /// Some recent positions and where their records lie, oldest first.
    index: VecDeque<(Position, Offset)>,
    /// Where the newest checkpoint was taken.
    pub(super) checkpoint: Position,
    pub(super) ended: BusinessDay,
    /// The position with which the log begins.
    pub(super) first: Option<Position>,
    /// What was recorded, by whomever, when this recorder started.
    pub(super) recorded_before: Position,
    /// Whether a checkpoint is stored here from which the log leads on.
    pub(super) is_held: bool,
}

impl ShardRecord {
    pub(super) fn new(epoch: Epoch, voters: Voters) -> Self {
        Self {
            acceptance: Acceptance::new(epoch, voters),
            index: VecDeque::with_capacity(INDEX_MAX),
            checkpoint: Position(0),
            ended: BusinessDay::NONE,
            first: None,
            recorded_before: Position(0),
            is_held: false,
        }
    }

    /// Whether all is here that was recorded when this recorder started.
    pub(super) fn is_filled(&self) -> bool {
        self.acceptance.next() >= self.recorded_before
    }

    /// With which position the log begins, if its beginning was dropped and no checkpoint stored here stands for it.
    pub(super) fn needs_checkpoint(&self) -> Option<Position> {
        self.first.filter(|first| *first > Position(0) && !self.is_held)
    }

    pub(super) fn remember(&mut self, position: Position, offset: Offset) {
        self.first.get_or_insert(position);
        let last = self.index.back();
        let is_behind = last.is_none_or(|(at, before)| *at < position && *before < offset);
        assert!(is_behind, "positions and offsets of a log grow together");
        let is_far = |(_, before): &(Position, Offset)| offset.0 - before.0 >= INDEX_BYTES;
        if position.0.is_multiple_of(INDEX_EVERY) || self.index.back().is_some_and(is_far) {
            if self.index.len() == INDEX_MAX {
                self.index.pop_front();
            }
            self.index.push_back((position, offset));
        }
    }

    /// An offset before which no record at `position` or later lies; the log ends at `end`.
    pub(super) fn replay_from(&self, position: Position, end: Offset) -> Offset {
        if position >= self.acceptance.next() {
            return end;
        }
        let after = self.index.partition_point(|(at, _)| *at <= position);
        let from = after.checked_sub(1).map_or(Offset::START, |before| self.index[before].1);
        assert!(from < end, "a record lies before the end of its log");
        from
    }
}

/// A result as the rules see it.
pub(super) fn offer<W: World>(
    source: Source,
    record: &ResultRecord<'_>,
    payload: &[u8],
    gate: &Gate<W>,
) -> Result<Offer, NodeError> {
    let (position, request, state_hash) = (record.position(), record.request_id()?, record.state_hash());
    let venue = gate.voice(record.venue(), record.shard(), position);
    let said = Statement { request, content: content(payload), state_hash };
    Ok(Offer { source, venue, epoch: record.epoch(), position, said })
}

/// Reads a recorder's log through and learns what it holds. A kind of record that this build does not know is skipped.
pub(super) fn recover<W: World>(
    log: &mut W::Reader,
    shards: &mut BTreeMap<ShardId, ShardRecord>,
    gate: &Gate<W>,
) -> Result<(), NodeError> {
    while let Some(entry) = log.next()? {
        match record::schema(entry.payload) {
            Some(record::RESULT) => {
                let record = ResultRecord::read(entry.payload)?;
                let Some(shard) = shards.get_mut(&record.shard()) else { continue };
                shard.acceptance.recover(&offer(Source::Peer, &record, entry.payload, gate)?);
                shard.remember(record.position(), entry.offset);
                shard.ended = record.day_ended().unwrap_or(shard.ended);
            }
            Some(record::CHECKPOINT_STORED) => {
                let stored = CheckpointStored::read(entry.payload)?;
                if let Some(shard) = shards.get_mut(&ShardId(stored.shard.get())) {
                    shard.checkpoint = Position(stored.position.get());
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// With which position of each of so many shards a recorder's log begins, as far as it can be read without a gap.
#[must_use]
pub fn beginnings(world: &impl World, log: NodeId, shards: usize) -> BTreeMap<ShardId, Position> {
    beginnings_until(world, log, |first| first.len() >= shards)
}

/// With which position of a shard a recorder's log begins, as far as it can be read without a gap.
pub fn beginning(world: &impl World, log: NodeId, shard: ShardId) -> Option<Position> {
    beginnings_until(world, log, |first| first.contains_key(&shard)).remove(&shard)
}

fn beginnings_until(
    world: &impl World,
    log: NodeId,
    is_enough: impl Fn(&BTreeMap<ShardId, Position>) -> bool,
) -> BTreeMap<ShardId, Position> {
    let mut first = BTreeMap::new();
    let Ok(mut log) = world.read_log_from_start(log) else { return first };
    while !is_enough(&first) {
        let Ok(Some(entry)) = log.next() else { break };
        if record::schema(entry.payload) == Some(record::RESULT) {
            let Ok(record) = ResultRecord::read(entry.payload) else { break };
            first.entry(record.shard()).or_insert(record.position());
        }
    }
    first
}

/// What a recorder's log holds.
#[derive(Clone, Debug)]
pub(crate) struct Contents {
    pub(crate) next: BTreeMap<ShardId, Position>,
    /// Of each shard and epoch the first and the last position.
    pub(crate) lives: BTreeMap<(ShardId, Epoch), (Position, Position)>,
    /// The latest epoch met.
    pub(crate) epoch: Epoch,
    /// The gateways that requests are of.
    pub(crate) gateways: BTreeSet<GatewayId>,
}

impl Contents {
    /// A log that holds nothing.
    pub(crate) fn nothing(config: &SystemConfig) -> Result<Self, NodeError> {
        let next = config.shards()?.into_keys().map(|shard| (shard, Position(0))).collect();
        Ok(Self { next, lives: BTreeMap::new(), epoch: Epoch(0), gateways: BTreeSet::new() })
    }

    /// Counts a record, unless a start passed it over.
    fn take(&mut self, payload: &[u8], left_out: Option<&LeftOut>) -> Result<(), NodeError> {
        if record::schema(payload) != Some(record::RESULT) {
            return Ok(());
        }
        let record = ResultRecord::read(payload)?;
        if left_out.is_some_and(|left_out| left_out.concerns(&record)) {
            return Ok(());
        }
        let (shard, epoch, position) = (record.shard(), record.epoch(), record.position());
        self.next.insert(shard, position.next());
        let (first, last) = self.lives.entry((shard, epoch)).or_insert((position, position));
        (*first, *last) = ((*first).min(position), (*last).max(position));
        assert!(*first <= *last, "a life of a shard does not end before it begins");
        self.epoch = self.epoch.max(epoch);
        self.gateways.insert(record.request_id()?.gateway());
        Ok(())
    }
}

/// What counts of a recorder's log.
///
/// # Errors
/// If the log is damaged. A log that does not exist holds nothing.
pub(crate) fn recorded(
    world: &impl World,
    id: RecorderId,
    config: &SystemConfig,
) -> Result<Contents, NodeError> {
    let mut found = Contents::nothing(config)?;
    let left_out = LeftOut::read(world, id)?;
    let mut log = match world.read_log_from_start(NodeId::Recorder(id)) {
        Ok(log) => log,
        Err(ReadError::NotYet { .. }) => return Ok(found),
        Err(error) => return Err(error.into()),
    };
    while let Some(entry) = log.next()? {
        found.take(entry.payload, left_out.as_ref())?;
    }
    Ok(found)
}

/// What counts of a recorder's log and is whole, though the log is damaged.
pub(crate) fn salvaged(
    world: &impl World,
    id: RecorderId,
    config: &SystemConfig,
) -> Result<Contents, NodeError> {
    let mut found = Contents::nothing(config)?;
    let left_out = LeftOut::read(world, id)?;
    let mut log = world.salvage_log(NodeId::Recorder(id))?;
    while let Some(entry) = log.next() {
        // What this build does not understand is nothing to compare.
        let _ = found.take(entry.payload, left_out.as_ref());
    }
    Ok(found)
}
