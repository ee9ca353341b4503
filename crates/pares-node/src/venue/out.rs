//! What a venue hands out: results into its own log. (Pieces of checkpoints go the same way; see `checkpointing`.)

use pares_log::{AppendError, Writer};
use pares_shm::{CountersWriter, Ringer};
use pares_types::{Event, Outcome, Request, VenueId};
use pares_venue::{ResultAt, VenueSink};
use pares_wire::record::{self, ResultPlace};

use crate::crash::{self, Point};

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
}
