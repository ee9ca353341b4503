//! The recorders' logs merged into the one committed stream.
//!
//! Each recorder's log has every shard's records in order, but the recorders interleave the shards
//! differently, and any of them may be behind or dead. Reading one of them would make it a single point of
//! failure; so all are read, and a record passes when the `quorum`-th log shows it (`pares_recorder::Quorum`).

use std::collections::BTreeMap;

use pares_config::{NodeId, SystemConfig};
use pares_log::{LogReader, Offset, ReadError, Record};
use pares_recorder::Quorum;
use pares_types::{Position, RecorderId, ShardId};
use pares_wire::record::{self, CheckpointStored, ResultRecord};

use crate::recorder::beginnings;
use crate::tail::Tail;
use crate::world::World;
use crate::{NodeError, repair_asked};

/// What the committed stream carries.
pub enum Committed<'a> {
    /// A record, committed now; each position once, in order per shard.
    Result {
        /// The recorder whose log it was read from.
        recorder: RecorderId,
        /// Where it lies there.
        offset: Offset,
        /// The record.
        record: ResultRecord<'a>,
    },
    /// A record that too few recorders show yet. It is final all the same: it will be committed.
    Shown {
        /// The record.
        record: ResultRecord<'a>,
    },
    /// A record that passed before, from a recorder whose log was taken away and is filled again: it lies elsewhere now.
    Moved {
        /// The recorder.
        recorder: RecorderId,
        /// Where it lies there now.
        offset: Offset,
        /// The record.
        record: ResultRecord<'a>,
    },
    /// A recorder has stored a checkpoint.
    CheckpointStored {
        /// Of which shard.
        shard: ShardId,
        /// At which position.
        position: Position,
        /// Where the notice lies in the recorder's log.
        offset: Offset,
    },
}

/// A result in a recorder's log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordPlace {
    /// Where it lies.
    pub offset: Offset,
    /// Of which shard.
    pub shard: ShardId,
    /// At which position.
    pub position: Position,
}

/// A reader of the committed stream.
pub struct CommittedStream<W: World> {
    world: W,
    tails: Vec<Tail<W>>,
    /// By recorder: whether its log is another than the one it had.
    replaced: Vec<bool>,
    /// By shard id.
    quorums: Vec<Quorum>,
    /// By recorder: whether the operator knows that its log cannot be read just now.
    told: Vec<bool>,
    /// By recorder: the last result that was read.
    last: Vec<Option<RecordPlace>>,
}

impl<W: World> CommittedStream<W> {
    /// As [`Tail::look`], for every recorder's log.
    pub fn look(&mut self) {
        self.tails.iter_mut().for_each(Tail::look);
    }

    /// Reads from where `from` says for each recorder.
    ///
    /// # Errors
    /// If the configuration has no valid shards.
    pub fn new(
        world: &W,
        config: &SystemConfig,
        mut from: impl FnMut(RecorderId) -> Offset,
    ) -> Result<Self, NodeError> {
        let shards = config.shards()?;
        let highest = shards.keys().next_back().expect("a system has a shard").0;
        let quorum = Quorum::new(usize::from(config.recorders), usize::from(config.quorum));
        Ok(Self {
            world: world.clone(),
            tails: config.recorder_ids().map(|id| Tail::new(world, NodeId::Recorder(id), from(id))).collect(),
            replaced: vec![false; usize::from(config.recorders)],
            quorums: vec![quorum; usize::from(highest) + 1],
            told: vec![false; usize::from(config.recorders)],
            last: vec![None; usize::from(config.recorders)],
        })
    }

    /// Reads all that the recorders keep. Where a shard does not begin with its first position, days before were dropped: with which then.
    ///
    /// # Errors
    /// As [`CommittedStream::new`].
    pub fn of_all_kept(
        world: &W,
        config: &SystemConfig,
    ) -> Result<(Self, BTreeMap<ShardId, Position>), NodeError> {
        let mut stream = Self::new(world, config, |_| Offset::START)?;
        let shards = config.shards()?.len();
        let mut first: BTreeMap<ShardId, Position> = BTreeMap::new();
        for recorder in config.recorder_ids() {
            for (shard, position) in beginnings(world, NodeId::Recorder(recorder), shards) {
                let earliest = first.entry(shard).or_insert(position);
                *earliest = position.min(*earliest);
            }
        }
        first.retain(|shard, position| position.0 > 0 && usize::from(shard.0) < stream.quorums.len());
        first.iter().for_each(|(&shard, &position)| stream.start_at(shard, position));
        Ok((stream, first))
    }

    /// Starts a shard at a checkpoint: records below `position` are taken for committed and do not pass.
    pub fn start_at(&mut self, shard: ShardId, position: Position) {
        self.quorums[usize::from(shard.0)].start_at(position);
        assert!(self.committed(shard) >= position, "what lies before the start of a stream is committed");
    }

    /// The next position of the shard to commit.
    #[must_use]
    pub fn committed(&self, shard: ShardId) -> Position {
        self.quorums[usize::from(shard.0)].committed()
    }

    /// Whether the shard has committed that position.
    #[must_use]
    pub fn has_committed(&self, shard: ShardId, position: Position) -> bool {
        self.quorums.get(usize::from(shard.0)).is_some_and(|quorum| position < quorum.committed())
    }

    /// How far the shard was read, for another reader that has it on the way.
    pub(crate) fn quorum(&self, shard: ShardId) -> &Quorum {
        &self.quorums[usize::from(shard.0)]
    }

    /// Whether another reader, which has read the shard from a checkpoint on, is where this one can continue with it. This one may have begun
    /// behind records of the shard, or have met some that it had no use for.
    pub(crate) fn is_reached_by(&self, shard: ShardId, other: &Quorum) -> bool {
        self.quorum(shard).is_reached_by(other, &self.replaced)
    }

    /// Continues with a shard from where that reader is.
    pub(crate) fn join(&mut self, shard: ShardId, other: &Quorum) {
        self.quorums[usize::from(shard.0)].join(other, &self.replaced);
    }

    /// What all recorders have of the shard.
    #[must_use]
    pub fn everywhere(&self, shard: ShardId) -> Position {
        self.quorums[usize::from(shard.0)].everywhere()
    }

    /// The result that was read last of each recorder's log, by recorder; `None` of a log of which none was.
    #[must_use]
    pub fn read_last(&self) -> &[Option<RecordPlace>] {
        &self.last
    }

    /// How many recorders' logs cannot be read just now.
    pub fn unreadable(&self) -> usize {
        self.tails.iter().filter(|tail| tail.is_unreadable()).count()
    }

    /// How far it has been read: the furthest place in any recorder's log.
    #[must_use]
    pub fn reach(&self) -> Offset {
        self.tails.iter().map(Tail::offset).max().unwrap_or(Offset::START)
    }

    /// Reads at most `max` records of each recorder and hands on what they commit. Says how many
    /// records were read.
    ///
    /// # Errors
    /// If a log holds what this build does not understand, or `on` fails.
    pub fn poll(
        &mut self,
        max: usize,
        on: impl FnMut(Committed<'_>) -> Result<(), NodeError>,
    ) -> Result<usize, NodeError> {
        self.poll_beyond(max, &[], on)
    }

    /// The same, by shard id without the records below the position that `known` says for it: of those the reader has no need, and they
    /// are only counted as committed.
    ///
    /// # Errors
    /// As [`CommittedStream::poll`].
    ///
    /// # Panics
    /// If something is known of a shard behind the last one of the system.
    pub fn poll_beyond(
        &mut self,
        max: usize,
        known: &[Position],
        mut on: impl FnMut(Committed<'_>) -> Result<(), NodeError>,
    ) -> Result<usize, NodeError> {
        assert!(known.len() <= self.quorums.len(), "what is known is known of shards of this system");
        let mut read = 0;
        for index in 0..self.tails.len() {
            read += self.poll_one(index, max, known, &mut on)?;
        }
        Ok(read)
    }

    fn poll_one(
        &mut self,
        index: usize,
        max: usize,
        known: &[Position],
        on: &mut impl FnMut(Committed<'_>) -> Result<(), NodeError>,
    ) -> Result<usize, NodeError> {
        let recorder = RecorderId(u16::try_from(index).expect("at most 16 recorders"));
        let Self { world, tails, replaced, quorums, told, last } = self;
        let (tail, replaced, told) = (&mut tails[index], &mut replaced[index], &mut told[index]);
        for read in 0..max {
            let offset = tail.offset();
            let needs_no_more = |payload: &[u8]| {
                let place = record::result_place(payload);
                place.is_some_and(|place| count(quorums, (recorder, offset), place, known, &mut last[index]))
            };
            if !*replaced && tail.pass_if(needs_no_more) {
                continue;
            }
            *told &= tail.is_unreadable();
            if tail.take_replaced() {
                (*replaced, *told) = (true, false);
                quorums.iter_mut().for_each(|quorum| quorum.forget(recorder));
            }
            match tail.next_durable() {
                Ok(Some(record)) => {
                    if let Some(committed) = take(quorums, recorder, &record, *replaced, &mut last[index])? {
                        on(committed)?;
                    }
                }
                Ok(None) => return Ok(read),
                Err(error) => {
                    if !std::mem::replace(told, true) {
                        tell(world, NodeId::Recorder(recorder), &error);
                    }
                    return Ok(read);
                }
            }
        }
        Ok(max)
    }
}

/// Whether a recorder's log has that result there: it may be another log than the one in which it was met.
pub fn is_there<W: World>(world: &W, recorder: RecorderId, place: RecordPlace) -> bool {
    let Ok(mut log) = world.read_log(NodeId::Recorder(recorder), place.offset) else { return false };
    let Ok(entry) = log.read_at(place.offset) else { return false };
    ResultRecord::read(entry.payload)
        .is_ok_and(|at| (at.shard(), at.position()) == (place.shard, place.position))
}

/// Counts a record that its reader needs no more, and says whether it is one: the recorder's next one of its shard, and committed before
/// by what others have, or `known`. Its bytes are not read but for its place: they may still lie in another processor's cache. Any
/// other record is read and checked.
#[inline]
fn count(
    quorums: &mut [Quorum],
    (recorder, offset): (RecorderId, Offset),
    (shard, position): (ShardId, Position),
    known: &[Position],
    last: &mut Option<RecordPlace>,
) -> bool {
    let at = usize::from(shard.0);
    let Some(quorum) = quorums.get_mut(at).filter(|quorum| quorum.is_next(recorder, position)) else {
        return false;
    };
    if position >= quorum.committed() && known.get(at).is_none_or(|known| position >= *known) {
        return false;
    }
    quorum.on_record(recorder, position);
    assert!(!quorum.is_next(recorder, position), "what a log has shown is not its next any more");
    *last = Some(RecordPlace { offset, shard, position });
    true
}

/// What a recorder's record says of what is committed.
#[inline]
fn take<'a>(
    quorums: &mut [Quorum],
    recorder: RecorderId,
    entry: &Record<'a>,
    is_replaced: bool,
    last: &mut Option<RecordPlace>,
) -> Result<Option<Committed<'a>>, NodeError> {
    let offset = entry.offset;
    Ok(match record::schema(entry.payload) {
        Some(record::RESULT) => {
            let record = ResultRecord::read(entry.payload)?;
            *last = Some(RecordPlace { offset, shard: record.shard(), position: record.position() });
            // A shard of another configuration concerns nobody here.
            let Some(quorum) = quorums.get_mut(usize::from(record.shard().0)) else { return Ok(None) };
            if quorum.on_record(recorder, record.position()) {
                let next = record.position().next();
                assert_eq!(quorum.committed(), next, "a record passes as it is committed, once and in order");
                Some(Committed::Result { recorder, offset, record })
            } else if record.position() >= quorum.committed() {
                Some(Committed::Shown { record })
            } else {
                is_replaced.then_some(Committed::Moved { recorder, offset, record })
            }
        }
        Some(record::CHECKPOINT_STORED) => {
            let stored = CheckpointStored::read(entry.payload)?;
            let (shard, position) = (ShardId(stored.shard.get()), Position(stored.position.get()));
            let is_ours = usize::from(shard.0) < quorums.len();
            is_ours.then_some(Committed::CheckpointStored { shard, position, offset })
        }
        _ => None,
    })
}

/// A log that cannot be read is its recorder's trouble; the others continue. What follows damage is not believed: which positions are
/// missing only its recorder can tell. Anything else passes by itself.
fn tell<W: World>(world: &W, log: NodeId, error: &ReadError) {
    if error.is_damage() {
        world.complain(&format_args!(
            "the log of {log} is damaged: {error}; reading stops there until it is repaired"
        ));
        repair_asked::ask(world, log);
    } else {
        world.complain(&format_args!("the log of {log} cannot be read for now: {error}"));
    }
}

#[cfg(test)]
mod tests;
