//! A history recorder: takes each result once, in order, and its log is the committed stream.
//!
//! ```text
//!  venue logs ----> Acceptance (per shard) --Take--> own log --publish/sync--> ring gateways, venues
//!  peers' logs --^  (read while a venue's record waits for an earlier one, and when idle)
//! ```
//! The batch is whatever came in while the last write was in flight. A result passes through untouched: the
//! bytes a venue wrote are the bytes recorded. Checkpoints are written by a thread of their own, so that
//! storing one never delays a record.
//!
//! Invariants that it asserts:
//!
//! - The next position of a shard follows the one appended last, and nothing is recorded twice.
//! - Positions and offsets of the log grow together, and a record lies before the end of its log.
//! - Readers are woken, and checkpoints named, when all that was appended is durable.
//! - A checkpoint with a name lies at or below the next position to record.
//! - What is dropped of the log stays dropped.
//! - A venue is shut out once; its checkpoints go while it is out, and it comes back through the gate.
//! - Runs of the index are of stretches that are not empty and do not overlap; each page has its fence.

mod checkpoint_writer;
mod counters;
mod following;
mod gate;
mod intake;
mod outvoted;
pub(crate) mod repair;
mod retention;
mod shard;
mod storing;

use std::collections::BTreeMap;
use std::sync::Arc;

use pares_config::{DurabilitySetting, NodeId, Placement, SystemConfig};
use pares_log::{AppendError, LogWriter, Offset};
use pares_recorder::{Source, Verdict};
use pares_types::{BusinessDay, Epoch, RecorderId, ShardId, VenueId};
use pares_wire::WireError;
use pares_wire::record::{self, CheckpointChunk, ResultRecord};

use crate::duty::Duty;
use crate::index::Indexer;
use crate::inlet::LogCursor;
use crate::lanes::LanesWatch;
use crate::repair_asked::RepairWatch;
use crate::world::{Counters, Ring, World};
use crate::{NodeError, durable_log, repair_asked};
use counters::{COUNTERS, Counter};
use gate::Gate;
use intake::CheckpointIntake;
use shard::{ShardRecord, offer, recover};

pub use counters::DAY_COUNTER;
pub use retention::drop_note;
pub(crate) use shard::{Contents, recorded, salvaged};
pub use shard::{beginning, beginnings};

/// Records taken from one source before the next is looked at.
const BATCH_MAX: usize = 512;
/// Duty cycles a recorder that is asked to stop still spends on what lies ready: enough for millions of records, and
/// an end even if the venues continue.
const STOP_CYCLES: usize = 10_000;

/// A recorder's state.
pub struct RecorderNode<W: World> {
    id: RecorderId,
    world: W,
    writer: W::Writer,
    shards: BTreeMap<ShardId, ShardRecord>,
    venues: Vec<LogCursor<W>>,
    /// By venue: before that place of its log its checkpoints were met.
    heard: Vec<Offset>,
    lanes: LanesWatch,
    placement: Placement,
    peers: Vec<LogCursor<W>>,
    intake: CheckpointIntake,
    gate: Gate<W>,
    /// While it is there the log is indexed.
    _indexed: Arc<()>,
    lookout: RepairWatch,
    counters: W::Counters,
    ringer: W::Ringer,
    readers: Vec<NodeId>,
    durability: DurabilitySetting,
    epoch: Epoch,
    appended: u64,
    /// What was released of the log in this life.
    dropped: Offset,
}

/// What came of looking for the next record of a log.
enum Step {
    /// It is dealt with.
    Gone,
    /// It is, and shows that a venue is wrong.
    Found,
    /// There is none.
    Nothing,
    /// An earlier position must come first.
    Waits,
}

impl<W: World> RecorderNode<W> {
    /// Opens the recorder's log, repairs it if need be, and reads it through, to know what is recorded.
    ///
    /// # Errors
    /// If the log is beyond repair or shared memory is missing.
    pub fn open(id: RecorderId, config: &SystemConfig, world: W, epoch: Epoch) -> Result<Self, NodeError> {
        let log = NodeId::Recorder(id);
        let gate = Gate::new(id, config, &world)?;
        let (writer, shards, counters, (lanes, placement)) = repair::whole(&world, id, config, || {
            let writer = world.write_log(log, durable_log(config))?;
            let counters = world.create_counters(&log.to_string(), COUNTERS);
            let counters = counters.map_err(NodeError::io("making the recorder's counters"))?;
            let (lanes, placement) = LanesWatch::open(&world, config)?;
            let new = |shard| (shard, ShardRecord::new(epoch, placement.seats(shard).voters()));
            let mut shards: BTreeMap<_, _> = config.shards()?.into_keys().map(new).collect();
            recover::<W>(&mut world.read_log_from_start(log)?, &mut shards, &gate)?;
            shards.iter_mut().for_each(|(&shard, record)| storing::recall(&world, (id, shard), record));
            Ok((writer, shards, counters, (lanes, placement)))
        })?;
        let lookout = repair_asked::done(&world, log);
        let peers = config.recorder_ids().filter(|&peer| peer != id).map(NodeId::Recorder);
        let sync = config.durability == DurabilitySetting::Disk;
        let runs = (config.index_rows as usize, sync);
        let indexed = Indexer::start(&world, (id, shards.keys().copied().collect()), runs, writer.tail())?;
        let mut recorder = Self {
            writer,
            shards,
            venues: config
                .venue_ids()
                .map(|venue| LogCursor::new(&world, NodeId::Venue(venue), Offset::START))
                .collect(),
            heard: vec![Offset::START; usize::from(config.venues)],
            lanes,
            placement,
            peers: peers.map(|peer| LogCursor::new(&world, peer, Offset::START)).collect(),
            intake: CheckpointIntake::start(&world, config, (id, sync))?,
            gate,
            _indexed: indexed,
            lookout,
            counters,
            ringer: world.ringer(),
            readers: readers(config),
            durability: config.durability,
            epoch,
            appended: 0,
            dropped: Offset::START,
            id,
            world,
        };
        let day = last_day(&recorder.shards).unwrap_or_default();
        recorder.counters.set(Counter::Day, u64::from(day.0));
        recorder.look_for_notes();
        recorder.count_incomplete();
        Ok(recorder)
    }

    /// Reads what has come in a log. Says how many records that were, and whether one waits for an earlier one.
    fn poll(&mut self, source: Source, index: usize) -> Result<(usize, bool), NodeError> {
        for read in 0..BATCH_MAX {
            match self.step(source, index) {
                Ok(Step::Gone) => {}
                Ok(Step::Nothing) => return Ok((read, false)),
                Ok(Step::Waits) => return Ok((read, true)),
                Ok(Step::Found) => {
                    self.act_on_findings();
                    return Ok((read + 1, false));
                }
                // One node's log is not the only one that has it: whatever is wrong there, the recorder continues.
                Err(NodeError::Wire(error)) => self.inlet(source, index).on_strange(&error),
                Err(NodeError::Log(error)) => {
                    let passed_over = self.inlet(source, index).on_unreadable(error);
                    return Ok((read + usize::from(passed_over), false));
                }
                Err(error) => return Err(error),
            }
        }
        Ok((BATCH_MAX, false))
    }

    fn inlet(&mut self, source: Source, index: usize) -> &mut LogCursor<W> {
        match source {
            Source::Venue => &mut self.venues[index],
            Source::Peer | Source::WholePeer => &mut self.peers[index],
        }
    }

    fn step(&mut self, source: Source, index: usize) -> Result<Step, NodeError> {
        let (inlet, source) = match source {
            Source::Venue => (&mut self.venues[index], source),
            _ if self.peers[index].is_whole() => (&mut self.peers[index], Source::WholePeer),
            _ => (&mut self.peers[index], Source::Peer),
        };
        let Some(record) = inlet.next()? else { return Ok(Step::Nothing) };
        match (record::schema(record.payload), source) {
            (Some(record::RESULT), _) => {
                let sinks = (&mut self.writer, &self.counters, &mut self.appended);
                match accept::<W>((&mut self.shards, &self.gate), sinks, source, record.payload)? {
                    Verdict::Wait => {
                        let offset = record.offset;
                        inlet.tail.seek(offset)?;
                        self.counters.add(Counter::Waits, u64::from(source == Source::Venue));
                        Ok(Step::Waits)
                    }
                    Verdict::Found => Ok(Step::Found),
                    _ => Ok(Step::Gone),
                }
            }
            (Some(record::CHECKPOINT_CHUNK), Source::Venue) => {
                let (chunk, piece) = CheckpointChunk::read(record.payload)?;
                let shard = self.shards.get(&ShardId(chunk.shard.get())).ok_or(NO_SHARD)?;
                let venue = VenueId(u16::try_from(index).expect("at most 16 venues"));
                let is_new = record.offset >= self.heard[index];
                let is_heard = is_new && self.gate.is_in(venue) && shard.acceptance.has_vote(venue);
                if chunk.epoch.get() == self.epoch.0 && is_heard {
                    let end = self.writer.tail();
                    self.intake.on_chunk(venue, chunk, piece, |_, position| shard.replay_from(position, end));
                }
                Ok(Step::Gone)
            }
            (Some(record::CHECKPOINT_STORED), Source::Peer | Source::WholePeer) => Ok(Step::Gone),
            (schema, _) => {
                Err(WireError::UnknownSchema { schema: schema.unwrap_or_default(), version: 0 }.into())
            }
        }
    }

    /// Makes what was appended durable and readable, and wakes the gateways.
    fn flush(&mut self) -> Result<(), NodeError> {
        if self.appended == 0 {
            return Ok(());
        }
        let end = self.writer.publish();
        assert_eq!(end, self.writer.tail(), "all that was appended is published before readers are woken");
        if self.durability == DurabilitySetting::Disk {
            self.writer.sync()?;
        }
        self.appended = 0;
        self.counters.add(Counter::Batches, 1);
        for &reader in &self.readers {
            self.ringer.ring(reader);
        }
        Ok(())
    }
}

impl<W: World> Duty for RecorderNode<W> {
    fn work(&mut self) -> Result<usize, NodeError> {
        let mut work = 0;
        let mut waiting = false;
        if self.lookout.is_due(&self.world)? {
            self.look_for_notes();
            self.follow_lanes();
            self.intake.try_removals_again();
            self.fetch_missing();
            self.drop_archived();
        }
        for index in 0..self.venues.len() {
            let (read, waits) = self.poll(Source::Venue, index)?;
            work += read;
            waiting |= waits;
        }
        // Peers are asked when a venue's record waits for an earlier one, and whenever there is nothing else to do:
        // after a full restart a record may lie in one recorder's log alone, and no venue will send it again.
        if waiting || work == 0 {
            for index in 0..self.peers.len() {
                work += self.poll(Source::Peer, index)?.0;
            }
        }
        self.note_stored_checkpoints()?;
        self.flush()?;
        self.name_recorded_checkpoints();
        let halted = self.shards.values().filter(|shard| shard.acceptance.divergence().is_some()).count();
        self.counters.set(Counter::HaltedShards, halted as u64);
        let unreadable =
            self.venues.iter().chain(&self.peers).filter(|inlet| inlet.tail.is_unreadable()).count();
        self.counters.set(Counter::UnreadableLogs, unreadable as u64);
        self.counters
            .set(Counter::Damaged, self.venues.iter().chain(&self.peers).map(LogCursor::damaged).sum());
        Ok(work)
    }

    fn look_everywhere(&mut self) {
        self.venues.iter_mut().chain(&mut self.peers).for_each(|inlet| inlet.tail.look());
    }

    /// Takes what the venues handed out before they were stopped, so that recorders stopped in order end alike.
    fn stop(&mut self) -> Result<(), NodeError> {
        for _ in 0..STOP_CYCLES {
            if self.work()? == 0 {
                return Ok(());
            }
        }
        Ok(())
    }
}

/// A record is of a shard that this system does not have.
const NO_SHARD: WireError = WireError::InvalidField("shard");

/// Judges a result and appends it if it is the next of its shard.
///
/// # Errors
/// [`NodeError::Wire`] if it is none that this build understands: then nothing is changed.
fn accept<W: World>(
    (shards, gate): (&mut BTreeMap<ShardId, ShardRecord>, &Gate<W>),
    (writer, counters, appended): (&mut W::Writer, &W::Counters, &mut u64),
    source: Source,
    payload: &[u8],
) -> Result<Verdict, NodeError> {
    let record = ResultRecord::read(payload)?;
    let shard = shards.get_mut(&record.shard()).ok_or(NO_SHARD)?;
    // All of it: gateways and venues must be able to read what is recorded, for ever. What is recorded already is held against it
    // by its digest.
    if record.position() >= shard.acceptance.next() {
        record.check()?;
    }
    let offer = offer(source, &record, payload, gate)?;
    let was_halted = shard.acceptance.divergence().is_some();
    let verdict = shard.acceptance.offer(&offer);
    if let Some(divergence) = shard.acceptance.divergence().filter(|_| !was_halted) {
        gate.complain(&format_args!("shard {} is halted: {divergence:?}", record.shard()));
    }
    match verdict {
        Verdict::Take => {
            let next = shard.acceptance.next();
            assert!(offer.position >= next, "what is taken was not recorded before");
            let offset = match writer.append(payload) {
                Ok(offset) => offset,
                // Nothing is lost: the record stays in its venue's log until there is room.
                Err(AppendError::Full) => return Ok(Verdict::Wait),
                Err(error) => return Err(error.into()),
            };
            shard.acceptance.take(&offer);
            assert_eq!(shard.acceptance.next(), offer.position.next(), "positions of a shard have no gap");
            shard.remember(offer.position, offset);
            counters.add(Counter::Records, 1);
            *appended += 1;
        }
        Verdict::Known | Verdict::Found => counters.add(Counter::Known, 1),
        Verdict::Void | Verdict::Wait | Verdict::Halted => {}
    }
    let verdict_told = if shard.acceptance.has_finding() { Verdict::Found } else { verdict };
    if let (Verdict::Take, Some(day)) = (verdict, record.day_ended()) {
        shard.ended = day;
        end_day::<W>(shards, writer, counters);
    }
    Ok(verdict_told)
}

/// A day that has ended in all shards ends with its segment, so that its files are whole. Without room for another one the day's last
/// segment is shared with the next day.
fn end_day<W: World>(
    shards: &BTreeMap<ShardId, ShardRecord>,
    writer: &mut W::Writer,
    counters: &W::Counters,
) {
    if let Some(day) = last_day(shards) {
        let _best_effort = writer.begin_segment();
        counters.set(Counter::Day, u64::from(day.0));
    }
}

/// Those who read the recorders' logs, and are woken when there is more in them.
fn readers(config: &SystemConfig) -> Vec<NodeId> {
    config.gateway_ids().map(NodeId::Gateway).chain(config.publisher_ids().map(NodeId::Publisher)).collect()
}

/// The business day that ended last, if that is one in all shards.
fn last_day(shards: &BTreeMap<ShardId, ShardRecord>) -> Option<BusinessDay> {
    let mut ended = shards.values().map(|shard| shard.ended);
    let first = ended.next().filter(|day| *day != BusinessDay::NONE)?;
    ended.all(|day| day == first).then_some(first)
}

#[cfg(test)]
mod tests;
