//! What a venue hands out: results and pieces of checkpoints, into its own log.

use pares_log::{AppendError, Writer};
use pares_shm::{CountersWriter, Ringer};
use pares_types::{Epoch, Event, Outcome, Position, Request, ShardId, VenueId};
use pares_venue::{ResultAt, VenueSink};
use pares_wire::record::{self, CheckpointChunk, ResultPlace};
use zerocopy::IntoBytes;

use crate::NodeError;
use crate::crash::{self, Point};
use crate::wrong;

/// Bytes of a checkpoint handed out per duty cycle: pieces with pauses.
const PIECE_BYTES: usize = 16 << 10;
/// Room wanted in the log before a shard takes a step.
const STEP_BYTES: usize = 128 << 10;

/// Where results go: the venue's own log.
pub(super) struct Out {
    pub(super) venue: VenueId,
    pub(super) writer: Writer,
    pub(super) counters: CountersWriter,
    pub(super) ringer: Ringer,
    pub(super) recorders: Vec<usize>,
    pub(super) appended: bool,
    pub(super) failed: Option<AppendError>,
}

impl VenueSink for Out {
    fn has_room(&mut self) -> bool {
        // Deciding is for good, so there must be room for the results before anything is proposed. A step
        // that needs more (thousands of fills) and meets a full disk ends the node; it then starts over.
        match self.writer.reserve(STEP_BYTES) {
            Ok(()) => true,
            Err(AppendError::Full) => false,
            Err(error) => {
                self.failed.get_or_insert(error);
                false
            }
        }
    }

    fn result(&mut self, at: ResultAt, request: &Request, outcome: &Outcome, events: &[Event]) {
        crash::at(Point::VenueExecuted);
        let place = ResultPlace {
            shard: at.shard,
            epoch: at.epoch,
            position: at.position,
            venue: self.venue,
            state_hash: at.state_hash.unwrap_or_default(),
        };
        let request = &wrong::restored(*request);
        let bytes = record::result_bytes(request, events.len());
        let result = self.writer.append_with(bytes, |out| {
            record::write_result(out, &place, request, outcome, events);
            crash::torn(Point::VenueWriting, out);
        });
        self.appended = true;
        if let Err(error) = result {
            // The position is decided and its request is kept; a restart executes it again.
            self.failed.get_or_insert(error);
        }
    }
}

/// A checkpoint being handed out.
pub(super) struct Outgoing {
    pub(super) shard: ShardId,
    pub(super) epoch: Epoch,
    pub(super) position: Position,
    pub(super) state: Vec<u8>,
    pub(super) sent: usize,
}

impl Outgoing {
    /// Whether recorders can read half of it.
    pub(super) fn is_half_sent(&self) -> bool {
        self.sent > 0 && 2 * self.sent >= self.state.len()
    }
}

impl Out {
    /// Publishes what was appended and wakes the recorders.
    pub(super) fn flush(&mut self) {
        if std::mem::take(&mut self.appended) {
            crash::at(Point::VenueAppended);
            self.writer.publish();
            crash::at(Point::VenuePublished);
            for &bell in &self.recorders {
                self.ringer.ring(bell);
            }
        }
    }

    /// Hands out the next piece of a checkpoint; says whether there was room for it.
    ///
    /// # Errors
    /// If the log is poisoned.
    pub(super) fn piece(&mut self, outgoing: &mut Outgoing) -> Result<bool, NodeError> {
        let end = outgoing.state.len().min(outgoing.sent + PIECE_BYTES);
        let piece = &outgoing.state[outgoing.sent..end];
        let head = CheckpointChunk {
            schema: record::CHECKPOINT_CHUNK,
            version: record::VERSION,
            shard: outgoing.shard.0.into(),
            epoch: outgoing.epoch.0.into(),
            position: outgoing.position.0.into(),
            total_bytes: u32::try_from(outgoing.state.len())
                .expect("a shard's state is far below 4 GiB")
                .into(),
            start: u32::try_from(outgoing.sent).expect("as its total").into(),
        };
        let appended = self.writer.append_with(size_of::<CheckpointChunk>() + piece.len(), |out| {
            let (head_bytes, rest) = out.split_at_mut(size_of::<CheckpointChunk>());
            head_bytes.copy_from_slice(head.as_bytes());
            rest.copy_from_slice(piece);
        });
        match appended {
            Ok(_) => {}
            Err(AppendError::Full) => return Ok(false),
            Err(error) => return Err(error.into()),
        }
        self.appended = true;
        outgoing.sent = end;
        Ok(true)
    }
}
