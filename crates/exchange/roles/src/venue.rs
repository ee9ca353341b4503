//! An execution venue: reads every gateway's log and the committed stream, agrees, executes, hands out results.
//!
//! ```text
//!  gateway logs ---> Shard --propose/decided--> window
//!  committed -----^    |
//!                      +--results, checkpoint pieces--> own log --publish--> ring recorders
//! ```
//! A start is the paper's join (section 4), every time: listen, load the newest checkpoint of each shard,
//! read the records after it, overlap with live traffic. The live venues notice nothing.
//!
//! In a [`turn`], nothing but the shard is in the hands of the thread that takes a shard's step, so that another thread can continue
//! with the rest when the matching engine does not come back ([`VenueNode::take_over`]). Where engines always come back one thread
//! is enough, as in the simulator.
//!
//! | module | what |
//! |---|---|
//! | `requests` | the gateways' logs |
//! | `seat` | a shard's place at the venue |
//! | `observed` | a window in which the venue only learns |
//! | `restore` | how a shard begins: checkpoint and committed stream |
//! | `rebuild` | restoring one shard while the others trade |
//! | `following` | shards that come and leave |
//! | `watch` | what is being executed, for the thread that looks on and for the next process |
//! | `leaving` | when a venue ends that has a thread which does not come back |
//! | `own_log`, `out` | what is handed out, and into which log |
//! | `checkpointing` | checkpoints, taken while it works |
//!
//! Invariants that it asserts:
//!
//! - Seats are in the order of their shards, and a shard is in its seat, in a step or being restored: never in two of these.
//! - The position of a shard only grows: by what a step executed, by one with each committed record.
//! - A shard that is here has executed all that is committed.
//! - What a step has made is in the log before the shard takes its next step.
//! - A checkpoint is of exactly what was handed out, and nothing follows its last piece.
//! - A restored shard has come to the committed stream before it takes its seat.
//! - The end of the log only moves on, and a mark of what may be released has a position of every shard.
//! - Only a venue whose turns were taken over leaves.

mod checkpointing;
mod following;
mod leaving;
mod observed;
mod out;
mod own_log;
mod rebuild;
pub(crate) mod requests;
mod restore;
mod seat;
#[cfg(test)]
mod tests;
mod turn;
mod watch;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use pares_book::FastBook;
use pares_config::{NodeId, Placement, SystemConfig};
use pares_log::{Config, Offset};
use pares_types::{Position, ShardId, VenueId};
use pares_venue::Shard;

#[cfg(any(test, feature = "testing"))]
pub(crate) use rebuild::Silence;

use crate::committed::CommittedStream;
use crate::counters::counters;
use crate::lanes::LanesWatch;
use crate::repair_asked::{self, RepairWatch};
use crate::shut_out;
use crate::world::{Counters, World};
use crate::{NodeError, epoch};
use checkpointing::Checkpointing;
use following::{counter_names, known_elsewhere};
use leaving::Leaving;
use out::{Draft, Out};
use rebuild::{Plan, Rebuild};
use requests::Requests;
pub use requests::{ANSWERED_OFFSET_COUNTER, EPOCH_COUNTER};
pub use restore::time_to_load;
use seat::ShardSeat;
pub use turn::{Hold, turn};
pub use watch::{Place, Watch};

/// Requests read from one gateway's log, or records from one recorder's, before the rest is looked at.
const BATCH_MAX: usize = 512;
/// Bytes of own log between two marks of what could be released.
const RELEASE_EVERY: u64 = 1 << 20;
/// How long a venue sleeps at most while something is decided or pending that it cannot continue with.
const STALLED: Duration = Duration::from_millis(1);
/// Marks kept for a recorder that is behind: 256 MiB of results.
const KEPT_MAX: usize = 256;

// One `position-S` per shard follows.
counters! {
    Executed "executed" "Requests executed in the agreed order."
    Won "won" "Positions that this venue proposed first."
    Observed "observed" "Requests executed from the record."
    AwaitsBody "awaits_body" "Steps that ended waiting to read a decided request."
    WindowFull "window_full" "Steps that ended because the recorders lag by a whole window."
    TooFarBehind "too_far_behind" "Steps that ended because the window has moved on."
    Checkpoints "checkpoints" "Checkpoints handed out."
    ResyncUs "resync_us" "Microseconds from the start until every shard was in step."
    Resynced "resynced" "1 once every shard was in step."
    OpenUs "open_us" "Microseconds the venue took to open."
    EngineFailures "engine_failures" "Failures of the matching engine."
    ShardsRestored "shards_restored" "Shards restored after such a failure."
    ShardsAway "shards_away" "Shards being restored now."
    Checkpointing "checkpointing" "1 while a checkpoint is being taken."
    CheckpointBytes "checkpoint_bytes" "Bytes of checkpoints handed out."
    Encumbered "encumbered" "1 once a thread is stuck in the matching engine."
    UnreadableLogs "unreadable_logs" "Logs of others that cannot be read just now."
    Damaged "damaged" "Records of gateways skipped because they could not be read."
    RestoreFailures "restore_failures" "Failed attempts to restore a shard."
    Lanes "lanes" "The number of the placement of which this venue has every shard that comes to it."
}

/// A venue's state.
pub struct VenueNode<W: World> {
    world: W,
    id: VenueId,
    config: SystemConfig,
    placement: Placement,
    lanes: LanesWatch,
    /// The number of the placement that others know it to follow.
    said: Option<u64>,
    /// The number of the thread that takes the turns.
    turns: u64,
    watch: Arc<Watch<W>>,
    out: Out<W>,
    seats: Vec<ShardSeat<W>>,
    requests: Requests<W>,
    /// Nothing is read while so many requests are pending. Each gateway may give as many as there is room for, a batch at most: so a batch
    /// of each may be pending.
    pending_max: usize,
    committed: CommittedStream<W>,
    /// By shard id: what it has executed, as of the last look at the committed stream. Of a shard that others execute it needs nothing.
    known: Vec<Position>,
    checkpointing: Checkpointing<W>,
    release: VecDeque<(Offset, Vec<Position>)>,
    started_ns: u64,
    resynced: bool,
    /// Whether the committed stream was read to its end after the gateways' logs were last joined midway: every
    /// request before the place of joining is executed then.
    caught_up: bool,
    /// Once there is a thread that does not come back.
    leaving: Option<Leaving>,
    lookout: RepairWatch,
    notes: shut_out::ShutOutWatch,
}

impl<W: World> VenueNode<W> {
    /// Opens the venue's log, restores each of its shards from the newest checkpoint and finds its place in
    /// every stream. What this venue's processes died of (`suspect`) is not executed again, but asked to be void.
    ///
    /// # Errors
    /// If the venue is shut out, its log cannot be made, or there are no windows.
    pub fn open(
        id: VenueId,
        config: &SystemConfig,
        world: W,
        watch: &Arc<Watch<W>>,
        suspect: Option<Place>,
    ) -> Result<Self, NodeError> {
        shut_out::check(&world, id)?;
        let started_ns = world.mono_ns();
        let writer = own_log::open(&world, id, &log_config(config))?;
        let counters = counters(&world, id, config)?;
        let (lanes, placement) = LanesWatch::open(&world, config)?;
        // First the gateways' marks, then the recorders': what a mark says is answered is recorded by then.
        let known = known_elsewhere(&placement, id);
        let requests =
            Requests::of_venue(&world, config, epoch::current(&world, config)?, id).following(&known);
        let lookout = repair_asked::done(&world, NodeId::Venue(id));
        let (mut seats, committed) =
            restore::restore(&world, config, (&placement, id), || Draft::new(&world, id, watch))?;
        if let Some((shard, position)) = suspect {
            let bench = seat_of(&seats, shard).and_then(|index| seats[index].bench.as_mut());
            bench.into_iter().for_each(|bench| bench.shard.suspect(position));
        }
        let checkpointing = Checkpointing::new(&world, id, (config, &placement), &seats);
        let out: Out<W> = Out::new(&world, config, writer, counters);
        out.counters.set(Counter::OpenUs, (world.mono_ns() - started_ns) / 1_000);
        let venue = Self {
            world,
            id,
            config: config.clone(),
            turns: 0,
            watch: Arc::clone(watch),
            out,
            seats,
            requests,
            pending_max: config.gateways.len() * config.in_flight_max + BATCH_MAX,
            committed,
            known,
            placement,
            lanes,
            said: None,
            checkpointing,
            release: VecDeque::new(),
            started_ns,
            resynced: false,
            caught_up: false,
            leaving: None,
            lookout,
            notes: shut_out::ShutOutWatch::default(),
        };
        venue.show_away();
        Ok(venue)
    }

    /// The number of the thread that takes the turns; 0 until they are [taken over](Self::take_over).
    #[must_use]
    pub fn turns(&self) -> u64 {
        self.turns
    }

    /// The shards that are not being restored.
    pub fn seated(&self) -> impl Iterator<Item = &Shard<FastBook>> {
        self.seats.iter().filter_map(|seat| seat.bench.as_ref()).map(|bench| &bench.shard)
    }

    /// Requests received and not ordered, of all shards.
    #[must_use]
    pub fn pending_len(&self) -> usize {
        self.seats.iter().map(ShardSeat::pending_len).sum()
    }

    /// The matching engine failed at a position of that shard, or what it did is not what was agreed: the shard is restored.
    /// `beyond`: that position has been executed by another venue, so only a state beyond it leads on.
    fn fail(&mut self, index: usize, failed_at: Position, beyond: bool) -> Result<(), NodeError> {
        let seat = &mut self.seats[index];
        assert!(
            seat.rebuild.is_none(),
            "shard {} is being restored: it takes no step that could fail",
            seat.id
        );
        seat.bench = None;
        let instruments = self.config.shards()?.remove(&seat.id).unwrap_or_default();
        let (world, config, shard) = (self.world.clone(), self.config.clone(), seat.id);
        self.world.complain(&format_args!(
            "shard {shard}: the matching engine failed at position {failed_at}; the shard is restored"
        ));
        let failed_at = Some(failed_at);
        seat.rebuild = Some(Rebuild::new(Plan { world, config, shard, instruments, failed_at, beyond }));
        self.out.counters.add(Counter::EngineFailures, 1);
        self.unsay_placement(shard);
        self.show_away();
        Ok(())
    }

    /// Another thread takes the turns from now on: the one before does not come back from `place`.
    ///
    /// # Errors
    /// If that is no place of this venue.
    pub fn take_over(&mut self, (shard, position): Place, number: u64) -> Result<(), NodeError> {
        assert!(number > self.turns, "turns are taken over by a later thread");
        let unknown = || NodeError::Refused(format!("shard {shard} is no shard of this system"));
        let index = seat_of(&self.seats, shard).ok_or_else(unknown)?;
        self.turns = number;
        self.watch.accuse((shard, position));
        self.out.counters.set(Counter::Encumbered, 1);
        if self.leaving.is_none() {
            self.leaving = Some(Leaving::new(self.id, &self.placement, self.world.mono_ns()));
        }
        self.fail(index, position, false)
    }

    fn show_away(&self) {
        let away = self.seats.iter().filter(|seat| seat.rebuild.is_some()).count();
        self.out.counters.set(Counter::ShardsAway, away as u64);
    }
}

/// How a venue's log is kept: what is in it the recorders have, or it is executed again.
pub(crate) fn log_config(config: &SystemConfig) -> Config {
    Config::default().segment_bytes(config.segment_mib << 20)
}

/// The seat of a shard: seats are in order of shard ids, and most often a shard's id is its place among them.
#[inline]
fn seat_of<W: World>(seats: &[ShardSeat<W>], shard: ShardId) -> Option<usize> {
    let likely = usize::from(shard.0);
    match seats.get(likely) {
        Some(seat) if seat.id == shard => Some(likely),
        _ => seats.binary_search_by_key(&shard, |seat| seat.id).ok(),
    }
}

fn counters<W: World>(world: &W, id: VenueId, config: &SystemConfig) -> Result<W::Counters, NodeError> {
    let names = counter_names(config)?;
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let made = world.create_counters(&NodeId::Venue(id).to_string(), &names);
    made.map_err(NodeError::io("making a venue's counters"))
}
