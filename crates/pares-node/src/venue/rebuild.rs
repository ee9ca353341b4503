//! Restoring one shard while the others trade.
//!
//! When the matching engine failed, the shard it was at is worth nothing: half a request may be in its books. Ending the
//! process would restore it, and stop the venue's other shards for that long; and since the same request reaches every venue at
//! about the same time, they would all be away at once. So only the shard is restored, as at a start of the venue, by a
//! thread of its own: newest checkpoint, then the committed stream, until it is where the venue's own reading of that stream is.
//! Then the venue takes it back.
//!
//! A record that the engine fails at, though another venue executed it, cannot be replayed here: then the thread waits for a
//! checkpoint beyond it. But not for ever: were all venues to wait for each other's, nobody would take one; so now and then it
//! tries again, for what failed by chance may succeed.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pares_book::{FastBook, Instrument};
use pares_shm::scheduling;
use pares_types::{Epoch, Event, Outcome, Position, Request, ShardId};
use pares_venue::{Gap, Recorded, ResultAt, Shard, VenueSink};

use super::seat::restore_shard;
use crate::NodeError;
use crate::committed::{Committed, CommittedStream};
use crate::config::{Layout, SystemConfig};
use crate::wrong;

/// Records replayed before the venue is given a chance to take the shard.
const BATCH: usize = 256;
/// Between two looks for more records, and for a newer checkpoint.
const PAUSE: Duration = Duration::from_micros(100);
const PAUSE_LONG: Duration = Duration::from_millis(50);
/// Long pauses in which there was no such checkpoint, before the record is tried again.
const TRIES: u32 = 40;

/// What is restored, and how.
pub(super) struct Plan {
    pub(super) config: SystemConfig,
    pub(super) layout: Layout,
    pub(super) shard: ShardId,
    pub(super) instruments: Vec<Instrument>,
    /// Where the engine failed: not to be executed again, but asked to be void.
    pub(super) failed_at: Position,
    /// Whether only a checkpoint beyond that position will do.
    pub(super) beyond: bool,
}

enum Site {
    /// Nothing restored yet.
    Empty,
    /// As far as it has come.
    Building(Box<Shard<FastBook>>),
    /// The venue has it, or has no use for it any more.
    Taken,
}

impl Site {
    fn has_come_to(&self, position: Position) -> bool {
        matches!(self, Self::Building(shard) if shard.position() >= position)
    }
}

/// A shard being restored.
pub(super) struct Rebuild {
    site: Arc<Mutex<Site>>,
}

impl Rebuild {
    /// Starts restoring.
    pub(super) fn start(plan: Plan) -> Result<Self, NodeError> {
        let site = Arc::new(Mutex::new(Site::Empty));
        let work = Arc::clone(&site);
        std::thread::Builder::new()
            .name("rebuild".into())
            .spawn(move || {
                scheduling::ordinary();
                build(plan, &work);
            })
            .map_err(NodeError::io("starting a thread"))?;
        Ok(Self { site })
    }

    /// Whether the shard has come to `position`. Never waits: while it is being worked on, it has not.
    pub(super) fn has_come_to(&self, position: Position) -> bool {
        self.site.try_lock().is_ok_and(|site| site.has_come_to(position))
    }

    /// The shard, if it has come to `position`. Never waits.
    pub(super) fn take(&self, position: Position) -> Option<Shard<FastBook>> {
        let mut site = self.site.try_lock().ok()?;
        if !site.has_come_to(position) {
            return None;
        }
        match std::mem::replace(&mut *site, Site::Taken) {
            Site::Building(shard) => Some(*shard),
            Site::Empty | Site::Taken => None,
        }
    }
}

impl Drop for Rebuild {
    fn drop(&mut self) {
        *self.site.lock().unwrap_or_else(PoisonError::into_inner) = Site::Taken;
    }
}

/// How an attempt ended.
enum Attempt {
    Taken,
    /// The engine fails at this recorded position too.
    FailedAt(Position),
    /// There is no checkpoint that leads on, or a log cannot be read.
    NotYet,
}

fn build(plan: Plan, site: &Mutex<Site>) {
    let mut beyond = plan.beyond.then_some(plan.failed_at);
    let mut waited = 0;
    loop {
        match attempt(&plan, beyond, site).unwrap_or(Attempt::NotYet) {
            Attempt::Taken => return,
            Attempt::FailedAt(position) => beyond = beyond.max(Some(position)),
            Attempt::NotYet => waited += 1,
        }
        if waited == TRIES {
            (beyond, waited) = (None, 0);
        }
        if matches!(*site.lock().unwrap_or_else(PoisonError::into_inner), Site::Taken) {
            return;
        }
        std::thread::sleep(PAUSE_LONG);
    }
}

fn attempt(plan: &Plan, beyond: Option<Position>, site: &Mutex<Site>) -> Result<Attempt, NodeError> {
    let mut restored = restore_shard(&plan.config, &plan.layout, plan.shard, &plan.instruments);
    if beyond.is_some_and(|beyond| restored.shard.position() <= beyond) {
        return Ok(Attempt::NotYet);
    }
    restored.shard.suspect(plan.failed_at);
    let mut committed =
        CommittedStream::new(&plan.config, &plan.layout, |recorder| restored.replay_from[&recorder])?;
    committed.start_at(plan.shard, restored.shard.position());
    let mut at = site.lock().unwrap_or_else(PoisonError::into_inner);
    if !matches!(*at, Site::Taken) {
        *at = Site::Building(Box::new(restored.shard));
    }
    drop(at);
    loop {
        let mut at = site.lock().unwrap_or_else(PoisonError::into_inner);
        let Site::Building(shard) = &mut *at else { return Ok(Attempt::Taken) };
        let replayed = catch_unwind(AssertUnwindSafe(|| replay(plan.shard, shard, &mut committed)));
        let Ok(replayed) = replayed else {
            let position = shard.position();
            *at = Site::Empty;
            // The request was counted before the engine failed at it.
            return Ok(Attempt::FailedAt(Position(position.0.saturating_sub(1))));
        };
        let read = replayed?;
        drop(at);
        if read == 0 { std::thread::sleep(PAUSE) } else { std::thread::yield_now() }
    }
}

/// Executes what the committed stream has next of the shard. Says how many records were read.
fn replay(
    id: ShardId,
    shard: &mut Shard<FastBook>,
    committed: &mut CommittedStream,
) -> Result<usize, NodeError> {
    committed.poll(BATCH, |item| {
        let Committed::Result { record, .. } = item else { return Ok(()) };
        if record.shard() != id {
            return Ok(());
        }
        let (position, request, reason) =
            (record.position(), wrong::changed(record.request()?), record.outcome()?.reason);
        let recorded = Recorded { position, request: &request, reason };
        let gap = |Gap { next, met }| NodeError::Gap { shard: id, next, met };
        shard.on_committed(recorded, Epoch(0), &mut Silence).map(|_| ()).map_err(gap)
    })
}

/// What a shard that is being restored has to say nobody needs.
struct Silence;

impl VenueSink for Silence {
    fn has_room(&mut self) -> bool {
        false
    }

    fn result(&mut self, _: ResultAt, _: &Request, _: &Outcome, _: &[Event]) {}
}
