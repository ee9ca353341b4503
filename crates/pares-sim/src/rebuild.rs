//! Restoring one shard of a venue while its others trade: the wiring of `pares_node::venue::rebuild`.

use pares_types::{Epoch, Position, ShardId};
use pares_venue::Recorded;

use crate::bug::Bug;
use crate::committed::{Committed, CommittedStream};
use crate::engine::{Draft, Engine, Failed, caught};
use crate::log::Log;
use crate::record::RecorderEntry;
use crate::shard::{AnyShard, Sources};

/// Entries of each recorder's log replayed before the venue is given a chance to take the shard.
const BATCH: u64 = 16;

/// The committed stream as this venue can read it.
#[derive(Clone, Copy)]
pub(crate) struct Stream<'a> {
    pub(crate) recorders: &'a [&'a Log<RecorderEntry>],
    pub(crate) readable: &'a [u64],
    pub(crate) quorum: usize,
}

/// A shard being restored.
pub(crate) struct Rebuild {
    shard: ShardId,
    /// Where the engine failed: not to be executed again, but asked to be void.
    pub(crate) failed_at: Position,
    /// Only a checkpoint beyond this leads on.
    beyond: Option<Position>,
    /// The thread that restores has begun then, ns.
    from_ns: u64,
    site: Option<(AnyShard, CommittedStream)>,
    /// Whether there was no such checkpoint at the last look.
    waits: bool,
}

impl Rebuild {
    pub(crate) fn new(shard: ShardId, failed_at: Position, beyond: bool, from_ns: u64) -> Self {
        let beyond = beyond.then_some(failed_at);
        Self { shard, failed_at, beyond, from_ns, site: None, waits: false }
    }

    /// Whether it can go on without anything new in the record.
    pub(crate) fn goes_on(&self) -> bool {
        !self.waits
    }

    /// A recorder's log was replaced by an empty one.
    pub(crate) fn forget_log(&mut self, recorder: usize) {
        if let Some((_, committed)) = &mut self.site {
            committed.cursors[recorder] = 0;
        }
    }

    /// Goes on for a while. Gives the failure if the engine fails at what is replayed.
    ///
    /// # Errors
    /// What contradicts the record.
    pub(crate) fn advance(
        &mut self,
        now_ns: u64,
        sources: Sources<'_>,
        stream: Stream<'_>,
        engine: &mut Engine,
    ) -> Result<Option<Failed>, String> {
        if now_ns < self.from_ns {
            return Ok(None);
        }
        if self.site.is_none() {
            self.begin(sources, stream);
        }
        self.waits = self.site.is_none();
        let Some((shard, committed)) = &mut self.site else { return Ok(None) };
        let bounded = stream.readable.iter().zip(&committed.cursors);
        let readable: Vec<u64> = bounded.map(|(&to, &from)| to.min(from + BATCH)).collect();
        let mut draft = Draft { engine, room: false, results: Vec::new(), build: sources.build, bug: None };
        let id = self.shard;
        let mut broken = None;
        let replayed = caught(|| {
            committed.poll(stream.recorders, &readable, |item| {
                let Committed::Result { record, .. } = item else { return };
                if record.shard() != id {
                    return;
                }
                let (position, reason) = (record.position, record.outcome.reason);
                let request = &sources.build.understands(&record.request);
                let recorded = Recorded { position, request, reason };
                if let Err(gap) = shard.on_committed(recorded, Epoch(0), &mut draft) {
                    broken = Some(format!("{gap:?} in what is replayed"));
                }
            });
        });
        if let Err(failed) = replayed {
            (self.site, self.beyond) = (None, self.beyond.max(Some(failed.position)));
            return Ok(Some(failed));
        }
        broken.map_or(Ok(None), Err)
    }

    fn begin(&mut self, sources: Sources<'_>, stream: Stream<'_>) {
        let mut restored = sources.restore(self.shard);
        let position = restored.shard.position();
        if self.beyond.is_some_and(|beyond| position <= beyond) {
            return;
        }
        if sources.bug != Some(Bug::ForgetSuspicion) {
            restored.shard.suspect(self.failed_at);
        }
        let (shards, recorders) = (sources.instruments.len(), stream.recorders.len());
        let mut committed = CommittedStream::new(shards, recorders, stream.quorum, restored.replay_from);
        committed.start_at(usize::from(self.shard.0), position);
        self.site = Some((restored.shard, committed));
    }

    /// The shard, if it has come to `position`.
    pub(crate) fn take(&mut self, position: Position) -> Option<AnyShard> {
        let there = self.site.as_ref().is_some_and(|(shard, _)| shard.position() >= position);
        self.site.take_if(|_| there).map(|(shard, _)| shard)
    }
}
