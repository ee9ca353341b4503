//! Restoring one shard while the others trade.
//!
//! When the matching engine failed, the shard it was at is worth nothing: half a request may be in its books. Ending the
//! process would restore it, and stop the venue's other shards for that long; and since the same request reaches every venue at
//! about the same time, they would all be away at once. So only the shard is restored, as at a start of the venue, by a
//! task of its own: newest checkpoint, then the committed stream, until it is where the venue's own reading of that stream is.
//! Then the venue takes it back.
//!
//! A record that the engine fails at, though another venue executed it, cannot be replayed here: then the task waits for a
//! checkpoint beyond it. But not for ever: were all venues to wait for each other's, nobody would take one; so now and then it
//! tries again, for what failed by chance may succeed.

use std::fmt::Display;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pares_book::{FastBook, Instrument};
use pares_config::SystemConfig;
use pares_recorder::Quorum;
use pares_types::{Epoch, Event, Outcome, Position, Request, ShardId};
use pares_venue::{Gap, Recorded, ResultAt, Shard, VenueSink};

use super::restore::{from_checkpoint_beyond, restore_shard};
use crate::NodeError;
use crate::committed::{Committed, CommittedStream};
use crate::world::{Next, World};

/// Records replayed before the venue is given a chance to take the shard.
const BATCH: usize = 256;
/// Between two looks for more records, and for a newer checkpoint.
const PAUSE: Duration = Duration::from_micros(100);
const PAUSE_LONG: Duration = Duration::from_millis(50);
/// Long pauses in which there was no such checkpoint, before the record is tried again.
const TRIES: u32 = 40;

/// Tries that led nowhere, of which the operator is informed: with pauses, a part of a second.
const TOLD_FROM: u64 = 8;

/// What is restored, and how.
#[derive(Clone)]
pub(super) struct Plan<W> {
    pub(super) world: W,
    pub(super) config: SystemConfig,
    pub(super) shard: ShardId,
    pub(super) instruments: Vec<Instrument>,
    /// Where the engine failed: not to be executed again, but asked to be void. None if it did not: there was no checkpoint to begin with,
    /// or the shard is new at this venue.
    pub(super) failed_at: Option<Position>,
    /// Whether only a checkpoint beyond that position will do.
    pub(super) beyond: bool,
}

enum Site {
    /// Nothing restored yet.
    Empty,
    /// As far as it has come, and how far the recorders' logs were read for it: once to their ends, or it is not to be taken.
    Built(Box<Shard<FastBook>>, Option<Quorum>),
    /// The venue has it.
    Taken,
}

impl Site {
    fn is_at(&self, is_reached: impl Fn(&Quorum) -> bool) -> bool {
        matches!(self, Self::Built(_, Some(quorum)) if is_reached(quorum))
    }
}

fn lock(site: &Mutex<Site>) -> MutexGuard<'_, Site> {
    site.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Tries of one restoring that led nowhere.
#[derive(Clone, Default)]
struct Failures(Arc<AtomicU64>);

impl Failures {
    /// Counts one. The operator is informed once there are some, and then ever more rarely.
    fn note<W: World>(&self, plan: &Plan<W>, why: &dyn Display) {
        let count = self.0.fetch_add(1, Ordering::Relaxed) + 1;
        if count >= TOLD_FROM && count.is_power_of_two() {
            let shard = plan.shard;
            plan.world.complain(&format_args!(
                "shard {shard} is not restored after {count} attempts: {why}; trying again"
            ));
        }
    }
}

/// A shard being restored.
pub(super) struct Rebuild<W> {
    plan: Plan<W>,
    site: Arc<Mutex<Site>>,
    /// Whether the venue has no use for it any more. No lock says so: the engine may hold that one for as long as it likes.
    is_over: Arc<AtomicBool>,
    failures: Failures,
    /// How many of them the venue has counted.
    counted: u64,
    begun: bool,
    /// When to try to begin, by the monotonic clock.
    due_ns: u64,
}

impl<W: World> Rebuild<W> {
    pub(super) fn new(plan: Plan<W>) -> Self {
        let (site, failures) = (Arc::new(Mutex::new(Site::Empty)), Failures::default());
        let is_over = Arc::default();
        Self { plan, site, is_over, failures, counted: 0, begun: false, due_ns: 0 }
    }

    /// Has the restoring begin, unless it has. Where there is no room for another task now there may be later: the other shards
    /// must not suffer from it.
    pub(super) fn begin(&mut self) {
        let now_ns = self.plan.world.mono_ns();
        if self.begun || now_ns < self.due_ns {
            return;
        }
        let shared = (Arc::clone(&self.site), Arc::clone(&self.is_over));
        let mut building = Building::new(self.plan.clone(), shared, self.failures.clone());
        match self.plan.world.spawn("rebuild", Box::new(move || building.go_on())) {
            Ok(_) => self.begun = true,
            Err(error) => {
                self.failures.note(&self.plan, &error);
                self.due_ns = now_ns + PAUSE_LONG.as_nanos() as u64;
            }
        }
    }

    /// Tries that led nowhere, since this was last asked.
    pub(super) fn take_failures(&mut self) -> u64 {
        let all = self.failures.0.load(Ordering::Relaxed);
        assert!(all >= self.counted, "tries that led nowhere are only counted up");
        all - std::mem::replace(&mut self.counted, all)
    }

    /// Whether the shard is where the venue can continue. Never waits: while it is being worked on, it is not.
    pub(super) fn is_at(&self, is_reached: impl Fn(&Quorum) -> bool) -> bool {
        self.site.try_lock().is_ok_and(|site| site.is_at(is_reached))
    }

    /// The shard, if it is there. Never waits.
    pub(super) fn take(&self, is_reached: impl Fn(&Quorum) -> bool) -> Option<(Shard<FastBook>, Quorum)> {
        let mut site = self.site.try_lock().ok()?;
        if !site.is_at(is_reached) {
            return None;
        }
        assert!(self.begun, "only a task that has begun puts a shard on its site");
        match std::mem::replace(&mut *site, Site::Taken) {
            Site::Built(shard, Some(quorum)) => Some((*shard, quorum)),
            _ => None,
        }
    }
}

impl<W> Drop for Rebuild<W> {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

/// The task.
struct Building<W: World> {
    plan: Plan<W>,
    site: Arc<Mutex<Site>>,
    is_over: Arc<AtomicBool>,
    /// Only a checkpoint beyond this position will do.
    beyond: Option<Position>,
    waited: u32,
    failures: Failures,
    /// Brings what stands on the site up to date.
    committed: Option<CommittedStream<W>>,
}

impl<W: World> Building<W> {
    fn new(plan: Plan<W>, (site, is_over): (Arc<Mutex<Site>>, Arc<AtomicBool>), failures: Failures) -> Self {
        let beyond = plan.beyond.then(|| plan.failed_at.unwrap_or_default());
        Self { plan, site, is_over, beyond, waited: 0, failures, committed: None }
    }

    /// Loads the checkpoint, or replays some records onto it.
    fn go_on(&mut self) -> Next {
        if self.is_over.load(Ordering::Relaxed) || matches!(*lock(&self.site), Site::Taken) {
            return Next::Done;
        }
        if self.committed.is_some() {
            return self.replay();
        }
        match self.lay_out() {
            Ok(true) => Next::Again,
            Ok(false) if self.plan.failed_at.is_none() => self.wait(&NodeError::StateLost(self.plan.shard)),
            Ok(false) => {
                self.wait(&"there is no checkpoint after the position where the matching engine failed")
            }
            Err(error) => {
                if matches!(error, NodeError::StateLost(_)) {
                    self.beyond = Some(Position(0));
                }
                self.wait(&error)
            }
        }
    }

    /// There is no checkpoint that leads on, or a log cannot be read.
    fn wait(&mut self, why: &dyn Display) -> Next {
        assert!(self.committed.is_none(), "who waits for a checkpoint replays nothing");
        self.failures.note(&self.plan, why);
        self.waited += 1;
        // Whether the record's beginning is back takes a look at the logs, and is looked for ever more rarely.
        let is_time = match self.plan.failed_at {
            Some(_) => self.waited.is_multiple_of(TRIES),
            None => self.waited >= TRIES && self.waited.is_power_of_two(),
        };
        if is_time {
            self.beyond = None;
        }
        Next::After(PAUSE_LONG)
    }

    /// Puts the newest checkpoint on the site; says whether it leads on.
    fn lay_out(&mut self) -> Result<bool, NodeError> {
        let Plan { world, config, shard, instruments, failed_at, .. } = &self.plan;
        let restored = world.attempt(|| match self.beyond {
            None => restore_shard(world, config, (*shard, instruments)).map(Some),
            Some(beyond) => from_checkpoint_beyond(world, config, (*shard, beyond)),
        });
        let Some(mut restored) = restored.ok_or(NodeError::Panicked)?? else { return Ok(false) };
        let at = restored.state.position();
        assert!(self.beyond.is_none_or(|beyond| at > beyond), "a checkpoint leads beyond what failed");
        failed_at.iter().for_each(|&failed_at| restored.state.suspect(failed_at));
        let mut committed = CommittedStream::new(world, config, |recorder| restored.replay_from[&recorder])?;
        committed.start_at(*shard, at);
        let mut site = lock(&self.site);
        if !matches!(*site, Site::Taken) {
            *site = Site::Built(Box::new(restored.state), None);
            self.committed = Some(committed);
        }
        Ok(true)
    }

    fn replay(&mut self) -> Next {
        let Self { plan, site, committed, .. } = self;
        let mut site = lock(site);
        assert!(!matches!(*site, Site::Empty), "records are read onto a shard that stands on the site");
        let (Site::Built(shard, quorum), Some(stream)) = (&mut *site, &mut *committed) else {
            return Next::Done;
        };
        match plan.world.attempt(|| replay(plan.shard, shard, stream)) {
            Some(Ok(read)) => {
                let committed = stream.committed(plan.shard);
                // Fewer than one batch in all: no recorder had more.
                if read < BATCH || quorum.is_some() {
                    *quorum = Some(stream.quorum(plan.shard).clone());
                }
                assert_eq!(shard.position(), committed, "a shard on its site has executed what is committed");
                if read == 0 { Next::After(PAUSE) } else { Next::Again }
            }
            Some(Err(error)) => {
                drop(site);
                self.committed = None;
                self.wait(&error)
            }
            None => {
                // The request was counted before the engine failed at it.
                let failed_at = Position(shard.position().0.saturating_sub(1));
                *site = Site::Empty;
                drop(site);
                (self.beyond, self.committed) = (self.beyond.max(Some(failed_at)), None);
                self.failures
                    .note(&self.plan, &format_args!("the matching engine fails at position {failed_at}"));
                Next::After(PAUSE_LONG)
            }
        }
    }
}

/// Executes what the committed stream has next of the shard. Says how many records were read.
fn replay<W: World>(
    id: ShardId,
    shard: &mut Shard<FastBook>,
    committed: &mut CommittedStream<W>,
) -> Result<usize, NodeError> {
    committed.poll(BATCH, |item| {
        let Committed::Result { record, .. } = item else { return Ok(()) };
        if record.shard() != id {
            return Ok(());
        }
        let (position, request, reason) = (record.position(), record.request()?, record.outcome()?.reason);
        let recorded = Recorded { position, request: &request, reason };
        let gap = |Gap { next, met }| NodeError::Gap { shard: id, next, met };
        shard.on_committed(recorded, Epoch(0), &mut Silence).map(|_| ()).map_err(gap)
    })
}

/// Discards the results of a shard that is being restored.
pub(crate) struct Silence;

impl VenueSink for Silence {
    fn has_room(&mut self) -> bool {
        false
    }

    fn result(&mut self, _: ResultAt, _: &Request, _: &Outcome, _: &[Event]) {}
}
