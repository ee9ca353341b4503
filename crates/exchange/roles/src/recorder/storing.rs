//! Which checkpoints a recorder has, and what it lacks to stand in for all others.
//!
//! A recorder whose disk was replaced is filled from a peer's log, which begins where the peer's log begins now: days before that
//! are dropped. The venues store their checkpoints at all recorders, so waiting for the next one seems enough. It is not:
//! of a quiet shard none may come for long, and if the peer's disk is replaced meanwhile, nobody has that shard's state any
//! more, though one disk was lost at a time.
//!
//! So a recorder that has neither a shard's beginning nor a checkpoint of it copies the newest that a peer has:
//!
//! ```text
//!   peer       [dropped][ log from 500 on .............. 900]   checkpoint at 870
//!   this one            [ log from 500 on .............. 900]   copy at 870, replay from where 870 lies in this log
//! ```
//! It is treated like one that a venue has just handed out: it is written beside the duty cycle, read back, and named once all
//! below its position is recorded here. Until then the shard counts as incomplete, nothing more of the log is dropped, and an operator
//! is asked to leave the other disks alone.

use pares_log::{AppendError, LogWriter};
use pares_sequencer::Sequencer;
use pares_types::{Position, RecorderId, ShardId};
use pares_wire::record::{self, CheckpointStored};
use zerocopy::IntoBytes;

use super::checkpoint_writer::{Missing, Stored};
use super::shard::ShardRecord;
use super::{Counter, RecorderNode, retention};
use crate::NodeError;
use crate::checkpoints;
use crate::world::{Counters, World};

/// What a recorder that starts knows of a shard besides its log.
pub(super) fn recall<W: World>(
    world: &W,
    (recorder, shard): (RecorderId, ShardId),
    record: &mut ShardRecord,
) {
    let window = world.open_window(shard).ok().flatten();
    record.recorded_before = window.map_or(Position(0), |window| window.recorded());
    if let Some(first) = record.needs_checkpoint() {
        // Those that cannot be listed now are looked for again.
        let stored = checkpoints::stored_by(world, recorder, shard).unwrap_or_default();
        record.is_held = stored.iter().any(|stored| stored.position() >= first);
    }
}

impl<W: World> RecorderNode<W> {
    /// Has checkpoints copied from the peers of shards whose beginning is dropped, where none is stored here.
    pub(super) fn fetch_missing(&mut self) {
        for (&shard, record) in &self.shards {
            // A peer's newest one may lie beyond what is recorded here while the log is being filled.
            let Some(first) = record.needs_checkpoint().filter(|_| record.is_filled()) else { continue };
            let to = record.acceptance.next();
            self.intake.fetch(Missing { shard, first, to, shut_out: self.gate.shut_out_venues() });
        }
        self.count_incomplete();
    }

    pub(super) fn count_incomplete(&self) {
        let lacks = |record: &&ShardRecord| !record.is_filled() || record.needs_checkpoint().is_some();
        let incomplete = self.shards.values().filter(lacks).count();
        self.counters.set(Counter::ShardsIncomplete, incomplete as u64);
    }

    /// Names the checkpoints whose records are here. To be called when everything appended is durable.
    pub(super) fn name_recorded_checkpoints(&mut self) {
        assert_eq!(self.appended, 0, "checkpoints are named when all that was appended is durable");
        let end = self.writer.tail();
        self.intake.store_recorded(|shard, position| {
            let record = self.shards.get(&shard)?;
            let trusted = !record.acceptance.is_in_dispute();
            // At the same position another one is worth having: of a quiet shard it tells to replay from later on.
            let is_new = position >= record.checkpoint || record.needs_checkpoint().is_some();
            // One from before the beginning of the log leads nowhere: what made it had not restored the shard.
            let leads_on = record.first.is_none_or(|first| position >= first);
            let may = trusted && is_new && leads_on && record.acceptance.next() >= position;
            may.then(|| record.replay_from(position, end))
        });
    }

    /// Tells in the log which checkpoints are stored now.
    pub(super) fn note_stored_checkpoints(&mut self) -> Result<(), NodeError> {
        while let Some(stored) = self.intake.stored() {
            match stored {
                Stored::Kept(shard, position) => self.note_stored(shard, position)?,
                Stored::Failed => self.counters.add(Counter::CheckpointFailures, 1),
                Stored::Removed(venue) => self.gate.on_checkpoints_gone(venue),
                Stored::Found(shard) => self.hold(shard),
                Stored::Nowhere(shard) => self.gate.complain(&format_args!(
                    "shard {shard}: the log begins after the start of the record, and neither this recorder \
                     nor another has a fitting checkpoint; do not replace other recorders' disks until one \
                     exists"
                )),
            }
        }
        Ok(())
    }

    fn note_stored(&mut self, shard: ShardId, position: Position) -> Result<(), NodeError> {
        self.hold(shard);
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
                self.counters.add(Counter::CheckpointFailures, 1);
                return Ok(());
            }
            other => other?,
        };
        let record = self.shards.get_mut(&shard).expect("only configured shards are stored");
        assert!(record.acceptance.next() >= position, "a checkpoint is named once all below it is recorded");
        record.checkpoint = position;
        self.counters.add(Counter::Checkpoints, 1);
        self.appended += 1;
        Ok(())
    }

    fn hold(&mut self, shard: ShardId) {
        self.shards.get_mut(&shard).expect("only configured shards are stored").is_held = true;
        self.count_incomplete();
    }

    /// Gives up days that are archived and old enough, as a note says, but nothing that a checkpoint still needs.
    pub(super) fn drop_archived(&mut self) {
        let Some(until) = retention::noted(&self.world, self.id) else { return };
        let is_whole = self.shards.values().all(|record| record.needs_checkpoint().is_none());
        if until.0 > self.dropped.0
            && is_whole
            && let Some(needed) = retention::needed(&self.world, self.id, self.shards.keys().copied())
        {
            let dropped = self.writer.release_before(until.min(needed));
            assert!(dropped >= self.dropped, "what is dropped of a log stays dropped");
            self.dropped = dropped;
        }
    }
}

#[cfg(test)]
mod tests;
