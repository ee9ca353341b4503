//! A history recorder: takes each result once, in order, and its log is the committed stream.
//!
//! ```text
//!  venue logs ----> Acceptance (per shard) --Take--> own log --publish/sync--> ring gateways, venues
//!  peers' logs --^  (read while a venue's record waits for an earlier one, and when idle)
//! ```
//! The batch is whatever came in while the last write was in flight. A result passes through untouched: the
//! bytes a venue wrote are the bytes recorded. Checkpoints are written by a thread of their own, so that
//! storing one never delays a record.

mod gate;
mod intake;
mod outvoted;
pub(crate) mod repair;

use std::collections::BTreeMap;

use pares_log::{AppendError, Config, Offset, Reader, Writer};
use pares_recorder::{Acceptance, Offer, Source, Statement, Verdict};
use pares_shm::{CountersWriter, Ringer};
use pares_types::{Epoch, Position, RecorderId, ShardId, VenueId};
use pares_wire::WireError;
use pares_wire::record::{self, CheckpointChunk, CheckpointStored, ResultRecord};
use zerocopy::IntoBytes;

use crate::NodeError;
use crate::config::{DurabilitySetting, Layout, SystemConfig, bells};
use crate::crash::{self, Point};
use crate::device;
use crate::duty::Duty;
use crate::error::complain;
use crate::tail::Tail;
use gate::{Gate, content};
use intake::{CheckpointIntake, Stored};

/// Records taken from one source before the next is looked at.
const BATCH_MAX: usize = 512;
/// Duty cycles a recorder that is asked to stop still spends on what lies ready: enough for millions of records, and
/// an end even if the venues go on.
const STOP_CYCLES: usize = 10_000;
/// Positions between two remembered offsets of a shard, and how many are remembered.
const INDEX_EVERY: u64 = 64;
const INDEX_MAX: usize = 4_096;

/// Counters of a recorder, in file order.
pub const COUNTERS: [&str; 9] = [
    "records",
    "known",
    "waits",
    "checkpoints",
    "batches",
    "halted_shards",
    "checkpoint_failures",
    "shut_out_venues",
    "disputed",
];
const RECORDS: usize = 0;
const KNOWN: usize = 1;
const WAITS: usize = 2;
const CHECKPOINTS: usize = 3;
const BATCHES: usize = 4;
const HALTED: usize = 5;
const CHECKPOINT_FAILURES: usize = 6;
const SHUT_OUT_VENUES: usize = 7;
const DISPUTED: usize = 8;

struct ShardRecord {
    acceptance: Acceptance,
    /// Some recent positions and where their records lie, oldest first.
    index: std::collections::VecDeque<(Position, Offset)>,
    checkpoint: Position,
}

impl ShardRecord {
    fn new(epoch: Epoch, venues: u16) -> Self {
        Self {
            acceptance: Acceptance::new(epoch, venues),
            index: std::collections::VecDeque::with_capacity(INDEX_MAX),
            checkpoint: Position(0),
        }
    }

    fn remember(&mut self, position: Position, offset: Offset) {
        if position.0.is_multiple_of(INDEX_EVERY) {
            if self.index.len() == INDEX_MAX {
                self.index.pop_front();
            }
            self.index.push_back((position, offset));
        }
    }

    /// An offset before which no record at `position` or later lies.
    fn replay_from(&self, position: Position) -> Offset {
        let after = self.index.partition_point(|(at, _)| *at <= position);
        after.checked_sub(1).map_or(Offset::START, |before| self.index[before].1)
    }
}

/// A recorder's state.
pub struct RecorderNode {
    writer: Writer,
    shards: BTreeMap<ShardId, ShardRecord>,
    venues: Vec<Tail>,
    peers: Vec<Tail>,
    intake: CheckpointIntake,
    gate: Gate,
    /// Whether a record has just shown that a venue is wrong.
    found: bool,
    layout: Layout,
    counters: CountersWriter,
    ringer: Ringer,
    readers: Vec<usize>,
    durability: DurabilitySetting,
    epoch: Epoch,
    appended: u64,
}

impl RecorderNode {
    /// Opens the recorder's log, repairs it if need be, and reads it through, to know what is recorded.
    ///
    /// # Errors
    /// If the log is beyond repair or shared memory is missing.
    pub fn open(
        id: RecorderId,
        config: &SystemConfig,
        layout: &Layout,
        epoch: Epoch,
    ) -> Result<Self, NodeError> {
        let log = layout.recorder_log(id);
        let gate = Gate::new(id, config, layout);
        let (writer, shards) = repair::whole(id, config, layout, || {
            let (writer, _) = Writer::open(&log, log_config(config).faults(device::faults()))?;
            let new = |shard| (shard, ShardRecord::new(epoch, config.venues));
            let mut shards: BTreeMap<_, _> = config.shards()?.into_keys().map(new).collect();
            recover(&mut Reader::at_start(&log)?, &mut shards, &gate)?;
            Ok((writer, shards))
        })?;
        crash::at(Point::RecorderRecovered);
        let peers = config.recorder_ids().filter(|&peer| peer != id);
        let bells_of_gateways = config.gateway_ids().map(bells::gateway);
        let mut recorder = Self {
            writer,
            shards,
            venues: config
                .venue_ids()
                .map(|venue| Tail::new(layout.venue_log(venue), Offset::START))
                .collect(),
            peers: peers.map(|peer| Tail::new(layout.recorder_log(peer), Offset::START)).collect(),
            intake: CheckpointIntake::start(
                layout.checkpoints(id),
                config.durability == DurabilitySetting::Disk,
            )?,
            gate,
            found: false,
            layout: layout.clone(),
            counters: CountersWriter::create(&layout.counters(&format!("recorder-{id}")), &COUNTERS)?,
            ringer: pares_shm::Bells::create(&layout.run())?.ringer(),
            readers: bells_of_gateways.collect(),
            durability: config.durability,
            epoch,
            appended: 0,
        };
        recorder.look_for_notes();
        Ok(recorder)
    }

    fn poll_venue(&mut self, index: usize) -> Result<(usize, bool), NodeError> {
        let venue = VenueId(u16::try_from(index).expect("at most 16 venues"));
        for read in 0..BATCH_MAX {
            let Some(record) = self.venues[index].next()? else { return Ok((read, false)) };
            let offset = record.offset;
            match record::schema(record.payload) {
                Some(record::RESULT) => {
                    crash::at(Point::RecorderReceived);
                    let verdict = accept(
                        (&mut self.shards, &self.gate),
                        &mut self.writer,
                        &self.counters,
                        &mut self.appended,
                        Source::Venue,
                        record.payload,
                    )?;
                    if verdict == Verdict::Wait {
                        self.venues[index].seek(offset)?;
                        self.counters.add(WAITS, 1);
                        return Ok((read, true));
                    }
                    if verdict == Verdict::Found {
                        self.found = true;
                        return Ok((read + 1, false));
                    }
                }
                Some(record::CHECKPOINT_CHUNK) => {
                    let (chunk, piece) = CheckpointChunk::read(record.payload)?;
                    if chunk.epoch.get() == self.epoch.0 && self.gate.is_in(venue) {
                        let shards = &self.shards;
                        self.intake.on_chunk(venue, chunk, piece, |shard, position| {
                            shards.get(&shard).map_or(Offset::START, |record| record.replay_from(position))
                        });
                    }
                }
                other => {
                    let schema = other.unwrap_or_default();
                    return Err(WireError::UnknownSchema { schema, version: 0 }.into());
                }
            }
        }
        Ok((BATCH_MAX, false))
    }

    fn poll_peer(&mut self, index: usize) -> Result<usize, NodeError> {
        for read in 0..BATCH_MAX {
            // A log that cannot be read is its recorder's trouble; that one's peers and the venues have what it has.
            let Ok(Some(record)) = self.peers[index].next() else { return Ok(read) };
            if record::schema(record.payload) == Some(record::RESULT) {
                let offset = record.offset;
                let verdict = accept(
                    (&mut self.shards, &self.gate),
                    &mut self.writer,
                    &self.counters,
                    &mut self.appended,
                    Source::Peer,
                    record.payload,
                )?;
                if verdict == Verdict::Wait {
                    // Its beginning is released and so is the gap: only venues can still help.
                    self.peers[index].seek(offset)?;
                    return Ok(read);
                }
                if verdict == Verdict::Found {
                    self.found = true;
                    return Ok(read + 1);
                }
            }
        }
        Ok(BATCH_MAX)
    }

    fn note_stored_checkpoints(&mut self) -> Result<(), NodeError> {
        while let Some(stored) = self.intake.stored() {
            let (shard, position) = match stored {
                Stored::Kept(shard, position) => (shard, position),
                Stored::Failed | Stored::NotRemoved => {
                    self.counters.add(CHECKPOINT_FAILURES, 1);
                    continue;
                }
                Stored::Removed(venue) => {
                    self.gate.on_checkpoints_gone(venue);
                    continue;
                }
            };
            let notice = CheckpointStored {
                schema: record::CHECKPOINT_STORED,
                version: record::VERSION,
                shard: shard.0.into(),
                epoch: self.epoch.0.into(),
                position: position.0.into(),
            };
            match self.writer.append(notice.as_bytes()) {
                // Without room it stays unannounced; the next one will do.
                Err(AppendError::Full) => {
                    self.counters.add(CHECKPOINT_FAILURES, 1);
                    continue;
                }
                other => other?,
            };
            self.shards.get_mut(&shard).expect("only configured shards are stored").checkpoint = position;
            self.counters.add(CHECKPOINTS, 1);
            self.appended += 1;
        }
        Ok(())
    }

    /// Makes what was appended durable and readable, and wakes who waits for it.
    fn flush(&mut self) -> Result<(), NodeError> {
        if self.appended == 0 {
            return Ok(());
        }
        crash::at(Point::RecorderAppended);
        self.writer.publish();
        match self.durability {
            DurabilitySetting::Os => crash::at(Point::RecorderPublished),
            DurabilitySetting::Disk => {
                crash::at(Point::RecorderUnsynced);
                self.writer.sync()?;
                crash::at(Point::RecorderSynced);
            }
        }
        self.appended = 0;
        self.counters.add(BATCHES, 1);
        for &bell in &self.readers {
            self.ringer.ring(bell);
        }
        Ok(())
    }
}

impl Duty for RecorderNode {
    fn work(&mut self) -> Result<usize, NodeError> {
        let mut work = 0;
        let mut waiting = false;
        self.look_now_and_then();
        for index in 0..self.venues.len() {
            let (read, waits) = self.poll_venue(index)?;
            self.act_on_findings();
            work += read;
            waiting |= waits;
        }
        // Peers are asked when a venue's record waits for an earlier one, and whenever there is nothing else to do:
        // after a full restart a record may lie in one recorder's log alone, and no venue will send it again.
        if waiting || work == 0 {
            for index in 0..self.peers.len() {
                work += self.poll_peer(index)?;
                self.act_on_findings();
            }
        }
        self.note_stored_checkpoints()?;
        self.flush()?;
        // Everything appended is durable now, so a state may be kept once its last position is recorded.
        self.intake.store_recorded(|shard, position| {
            let Some(record) = self.shards.get(&shard) else { return false };
            let trusted = !record.acceptance.is_in_dispute();
            trusted && record.acceptance.next() >= position && position > record.checkpoint
        });
        let halted = self.shards.values().filter(|shard| shard.acceptance.divergence().is_some()).count();
        self.counters.set(HALTED, halted as u64);
        Ok(work)
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

/// How a recorder's log is kept.
#[must_use]
pub fn log_config(config: &SystemConfig) -> Config {
    Config::default().segment_bytes(config.segment_mib << 20).durability(config.durability.into())
}

/// Judges a result and appends it if it is the next of its shard.
fn accept(
    (shards, gate): (&mut BTreeMap<ShardId, ShardRecord>, &Gate),
    writer: &mut Writer,
    counters: &CountersWriter,
    appended: &mut u64,
    source: Source,
    payload: &[u8],
) -> Result<Verdict, NodeError> {
    let record = ResultRecord::read(payload)?;
    let Some(shard) = shards.get_mut(&record.shard()) else { return Ok(Verdict::Void) };
    let offer = offer(source, &record, payload, gate)?;
    let was_halted = shard.acceptance.divergence().is_some();
    let verdict = shard.acceptance.offer(&offer);
    if let Some(divergence) = shard.acceptance.divergence().filter(|_| !was_halted) {
        complain(format_args!("shard {} is halted: {divergence:?}", record.shard()));
    }
    match verdict {
        Verdict::Take => {
            let written = writer.append_with(payload.len(), |out| {
                out.copy_from_slice(payload);
                crash::torn(Point::RecorderWriting, out);
            });
            let offset = match written {
                Ok(offset) => offset,
                // Nothing is lost: the record stays in its venue's log until there is room.
                Err(AppendError::Full) => return Ok(Verdict::Wait),
                Err(error) => return Err(error.into()),
            };
            shard.acceptance.take(&offer);
            shard.remember(offer.position, offset);
            counters.add(RECORDS, 1);
            *appended += 1;
            crash::at(match source {
                Source::Venue => Point::RecorderTook,
                Source::Peer => Point::RecorderTookFromPeer,
            });
        }
        Verdict::Known | Verdict::Found => counters.add(KNOWN, 1),
        Verdict::Void | Verdict::Wait | Verdict::Halted => {}
    }
    Ok(if shard.acceptance.has_finding() { Verdict::Found } else { verdict })
}

/// A result as the rules see it.
fn offer(source: Source, record: &ResultRecord<'_>, payload: &[u8], gate: &Gate) -> Result<Offer, NodeError> {
    let (position, request, state_hash) = (record.position(), record.request_id()?, record.state_hash());
    let venue = gate.voice(record.venue(), record.shard(), position);
    let said = Statement { request, content: content(payload), state_hash };
    Ok(Offer { source, venue, epoch: record.epoch(), position, said })
}

/// Reads a recorder's log through and learns what it holds.
fn recover(
    log: &mut Reader,
    shards: &mut BTreeMap<ShardId, ShardRecord>,
    gate: &Gate,
) -> Result<(), NodeError> {
    while let Some(entry) = log.next()? {
        match record::schema(entry.payload) {
            Some(record::RESULT) => {
                let record = ResultRecord::read(entry.payload)?;
                let Some(shard) = shards.get_mut(&record.shard()) else { continue };
                shard.acceptance.recover(&offer(Source::Peer, &record, entry.payload, gate)?);
                shard.remember(record.position(), entry.offset);
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

/// What a recorder's log holds: the next position of each shard, and the latest epoch met.
///
/// # Errors
/// If the log is damaged. A log that does not exist holds nothing.
pub fn recorded(
    id: RecorderId,
    config: &SystemConfig,
    layout: &Layout,
) -> Result<(BTreeMap<ShardId, Position>, Epoch), NodeError> {
    let mut next: BTreeMap<_, _> = config.shards()?.into_keys().map(|shard| (shard, Position(0))).collect();
    let mut epoch = Epoch(0);
    let mut log = match Reader::at_start(&layout.recorder_log(id)) {
        Ok(log) => log,
        Err(pares_log::ReadError::NotYet { .. }) => return Ok((next, epoch)),
        Err(error) => return Err(error.into()),
    };
    while let Some(entry) = log.next()? {
        if record::schema(entry.payload) == Some(record::RESULT) {
            let record = ResultRecord::read(entry.payload)?;
            next.insert(record.shard(), record.position().next());
            epoch = epoch.max(record.epoch());
        }
    }
    Ok((next, epoch))
}
