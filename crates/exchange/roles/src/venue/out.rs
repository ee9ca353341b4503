//! What a venue hands out: results into its own log. (Pieces of checkpoints go the same way; see `checkpointing`.)
//!
//! Results of a step are a [`Draft`] first. They may be handed out only once the venue has vouched for them, at the end of the step,
//! and a step may never end ([`super::watch`]): then nothing of it was ever in the log.

use std::sync::Arc;

use pares_config::{NodeId, SystemConfig};
use pares_log::{AppendError, LogWriter};
use pares_types::{Event, Outcome, Position, Request, ShardId, VenueId};
use pares_venue::{ResultAt, VenueSink};
use pares_wire::record::{self, ResultPlace};

use super::watch::Watch;
use crate::world::{Ring, World};

/// Room wanted in the log before a shard takes a step.
const STEP_BYTES: usize = 128 << 10;

/// The results of one step, not yet handed out.
pub(super) struct Draft<W: World> {
    world: W,
    venue: VenueId,
    /// Whether the log has room for a step.
    pub(super) has_room: bool,
    bytes: Vec<u8>,
    /// Where each result ends in `bytes`.
    ends: Vec<usize>,
    pub(super) watch: Arc<Watch<W>>,
}

impl<W: World> Draft<W> {
    pub(super) fn new(world: &W, venue: VenueId, watch: &Arc<Watch<W>>) -> Self {
        let (bytes, ends) = (Vec::with_capacity(STEP_BYTES), Vec::with_capacity(512));
        Self { world: world.clone(), venue, has_room: false, bytes, ends, watch: Arc::clone(watch) }
    }

    /// Forgets what it holds.
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    /// Whether it holds nothing.
    pub(super) fn is_empty(&self) -> bool {
        assert_eq!(self.bytes.is_empty(), self.ends.is_empty(), "a draft has no bytes but those of results");
        self.bytes.is_empty()
    }
    /// The results, as they go into the log.
    fn results(&self) -> impl Iterator<Item = &[u8]> {
        let end = self.ends.last().copied().unwrap_or(0);
        assert_eq!(end, self.bytes.len(), "results lie one behind the other, and nothing behind the last");
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, &end)| &self.bytes[start..end])
    }
}

impl<W: World> VenueSink for Draft<W> {
    fn has_room(&mut self) -> bool {
        self.has_room
    }

    fn give_way(&mut self) {
        self.world.give_way();
    }

    #[inline]
    fn executing(&mut self, shard: ShardId, position: Position, request: &Request) {
        self.watch.begin(shard, position);
        self.world.executing(shard, position, request);
    }

    #[inline]
    fn executed(&mut self) {
        self.watch.end();
    }

    fn result(&mut self, at: ResultAt, request: &Request, outcome: &Outcome, events: &[Event]) {
        let place = ResultPlace {
            shard: at.shard,
            epoch: at.epoch,
            position: at.position,
            venue: self.venue,
            state_hash: at.state_hash.unwrap_or_default(),
        };
        let start = self.bytes.len();
        assert!(self.ends.last().is_none_or(|end| *end == start), "a result begins where the last one ends");
        self.bytes.resize(start + record::result_bytes(request, events.len()), 0);
        record::write_result(&mut self.bytes[start..], &place, request, outcome, events);
        self.ends.push(self.bytes.len());
    }
}

/// Where results go: the venue's own log.
pub(super) struct Out<W: World> {
    pub(super) writer: W::Writer,
    pub(super) counters: W::Counters,
    ringer: W::Ringer,
    recorders: Vec<NodeId>,
    pub(super) appended: bool,
    pub(super) failed: Option<AppendError>,
}

impl<W: World> Out<W> {
    pub(super) fn new(world: &W, config: &SystemConfig, writer: W::Writer, counters: W::Counters) -> Self {
        let recorders = config.recorder_ids().map(NodeId::Recorder).collect();
        Self { writer, counters, ringer: world.ringer(), recorders, appended: false, failed: None }
    }

    pub(super) fn has_room(&mut self) -> bool {
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

    /// Takes results that the venue has vouched for into the log, to be published with the next [`Out::flush`].
    pub(super) fn take(&mut self, draft: &mut Draft<W>) {
        for result in draft.results() {
            // Nothing may follow one that is missing: a recorder would wait there for it, and not read on.
            if self.failed.is_some() {
                break;
            }
            match self.writer.append(result) {
                Ok(_) => self.appended = true,
                // The position is decided and its request is kept; a restart executes it again.
                Err(error) => self.failed = Some(error),
            }
        }
        draft.clear();
    }

    /// Publishes what was appended and wakes the recorders.
    pub(super) fn flush(&mut self) {
        if std::mem::take(&mut self.appended) {
            let end = self.writer.publish();
            assert_eq!(end, self.writer.tail(), "recorders are woken once all that is appended can be read");
            for &recorder in &self.recorders {
                self.ringer.ring(recorder);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use pares_log::Config;

    use super::*;
    use crate::testing::TestWorld;

    #[test]
    fn nothing_follows_a_result_that_the_log_does_not_take() {
        let (world, venue) = (TestWorld::new(), VenueId(0));
        let log = NodeId::Venue(venue);
        let writer = world.write_log(log, Config::default().segment_bytes(4096)).unwrap();
        let counters = world.create_counters("venue-0", super::super::COUNTERS).unwrap();
        let mut out = Out::new(&world, &SystemConfig::default(), writer, counters);
        let (watch, _) = Watch::open(&world, venue, pares_types::Epoch(1)).unwrap();
        let mut draft = Draft::new(&world, venue, &Arc::new(watch));
        for bytes in [100, 8_000, 100] {
            draft.bytes.resize(draft.bytes.len() + bytes, 7);
            draft.ends.push(draft.bytes.len());
        }
        out.take(&mut draft);
        draft.bytes.resize(50, 8);
        draft.ends.push(50);
        out.take(&mut draft);
        out.flush();
        let read: Vec<usize> = world.payloads(log).iter().map(Vec::len).collect();
        assert_eq!((read, out.failed.is_some()), (vec![100], true));
    }
}
