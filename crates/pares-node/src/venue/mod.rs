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
//! | module | what |
//! |---|---|
//! | `turns` | the threads: who calls the node, and who takes over when that thread does not come back |
//! | `watch` | noticing that it does not |
//! | `seat` | a shard's place at the venue, and how it is restored |
//! | `rebuild` | restoring one shard while the others trade |
//! | `leaving` | when a venue ends that has a thread which does not come back |
//! | `out` | what is handed out |
//! | `checkpointing` | checkpoints, taken while it works |
//! | `poison` | requests that bring the matching engine down, for drills |

mod checkpointing;
mod leaving;
mod out;
mod poison;
mod rebuild;
mod seat;
mod turns;
mod watch;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use pares_log::{Config, Offset, Writer};
use pares_shm::scheduling::{self, Background};
use pares_shm::{CountersWriter, clock};
use pares_types::{Position, VenueId};
use pares_venue::{Progress, Stall};
use pares_wire::record::RequestRecord;

use crate::NodeError;
use crate::committed::{Committed, CommittedStream};
use crate::config::{Layout, SystemConfig, bells};
use crate::crash::{self, Point};
use crate::error::complain;
use crate::shut_out::{self, Lookout};
use crate::tail::Tail;
use crate::wrong;
use checkpointing::Checkpointing;
use leaving::Leaving;
use out::{Draft, Out};
use poison::Poison;
pub use poison::VARIABLE as POISON;
use rebuild::{Plan, Rebuild};
use seat::{Bench, ShardSeat, answered_offset, executed, give_way, restore, time_to_load};
pub(crate) use turns::run;
use watch::{Place, Watch};

/// How long a starting node leaves the processor to the others before it takes its share: catching up takes a venue a
/// few milliseconds of it. Large checkpoints add to a venue's.
pub(crate) const BACKGROUND: Duration = Duration::from_millis(25);
/// Requests read from one gateway's log, or records from one recorder's, before the rest is looked at.
const BATCH_MAX: usize = 512;
/// Bytes of own log between two marks of what could be released.
const RELEASE_EVERY: u64 = 1 << 20;
/// Marks kept for a recorder that is behind: 256 MiB of results.
const KEPT_MAX: usize = 256;

/// Counters of a venue, in file order; one `position-S` per shard follows.
pub const COUNTERS: [&str; 16] = [
    "executed",
    "won",
    "observed",
    "awaits_body",
    "window_full",
    "too_far_behind",
    "checkpoints",
    "resync_us",
    "resynced",
    "open_us",
    "engine_failures",
    "shards_restored",
    "shards_away",
    "checkpointing",
    "checkpoint_bytes",
    "encumbered",
];
const EXECUTED: usize = 0;
const WON: usize = 1;
const OBSERVED: usize = 2;
const AWAITS_BODY: usize = 3;
const WINDOW_FULL: usize = 4;
const TOO_FAR_BEHIND: usize = 5;
const CHECKPOINTS: usize = 6;
const RESYNC_US: usize = 7;
const RESYNCED: usize = 8;
const OPEN_US: usize = 9;
const FAILURES: usize = 10;
const RESTORED: usize = 11;
const AWAY: usize = 12;
const CHECKPOINTING: usize = 13;
const CHECKPOINT_BYTES: usize = 14;
const ENCUMBERED: usize = 15;

/// A venue's state.
struct VenueNode {
    id: VenueId,
    config: SystemConfig,
    layout: Layout,
    /// The number of the thread that takes the turns.
    turns: u64,
    watch: Arc<Watch>,
    poison: Poison,
    out: Out,
    seats: Vec<ShardSeat>,
    /// Index into `seats` by shard id.
    seat_of: Vec<usize>,
    gateways: Vec<Tail>,
    pending_max: usize,
    committed: CommittedStream,
    checkpointing: Checkpointing,
    release: VecDeque<(Offset, Vec<Position>)>,
    started_ns: u64,
    resynced: bool,
    /// Whether the committed stream was read to its end after the gateways' logs were last joined midway: every
    /// request before the place of joining is executed then.
    caught_up: bool,
    background: Option<Background>,
    /// Once there is a thread that does not come back.
    leaving: Option<Leaving>,
    lookout: Lookout,
}

impl VenueNode {
    /// Opens the venue's log, restores each shard from the newest checkpoint and finds its place in
    /// every stream. What this venue's processes died of is not executed again, but asked to be void.
    ///
    /// # Errors
    /// If a log is damaged or shared memory is missing.
    fn open(
        id: VenueId,
        config: &SystemConfig,
        layout: &Layout,
        watch: &Arc<Watch>,
        poison: Poison,
        suspect: Option<Place>,
    ) -> Result<Self, NodeError> {
        shut_out::check(layout, id)?;
        let started_ns = clock::mono_ns();
        let background = Background::enter(BACKGROUND + time_to_load(config, layout)?);
        // First the gateways' marks, then the recorders': what a mark says is answered is recorded by then.
        let gateways = config
            .gateway_ids()
            .map(|gateway| Tail::new(layout.gateway_log(gateway), answered_offset(layout, gateway)))
            .collect();
        let log_config = Config::default().segment_bytes(config.segment_mib << 20);
        let (writer, _) = Writer::open(&layout.venue_log(id), log_config)?;
        let (mut seats, committed) = restore(config, layout, || Draft::new(id, watch, poison))?;
        if let Some((shard, position)) = suspect {
            let bench = seats.iter_mut().find(|seat| seat.id == shard).and_then(|seat| seat.bench.as_mut());
            bench.into_iter().for_each(|bench| bench.shard.suspect(position));
        }
        let highest = seats.last().expect("a system has a shard").id.0;
        let mut seat_of = vec![usize::MAX; usize::from(highest) + 1];
        seats.iter().enumerate().for_each(|(index, seat)| seat_of[usize::from(seat.id.0)] = index);
        let checkpointing = Checkpointing::new(id, config, layout, &seats);
        let out = Out {
            writer,
            counters: counters(id, layout, &seats)?,
            ringer: pares_shm::Bells::create(&layout.run())?.ringer(),
            recorders: config.recorder_ids().map(bells::recorder).collect(),
            appended: false,
            failed: None,
        };
        out.counters.set(OPEN_US, (clock::mono_ns() - started_ns) / 1_000);
        Ok(Self {
            id,
            config: config.clone(),
            layout: layout.clone(),
            turns: 0,
            watch: Arc::clone(watch),
            poison,
            out,
            seats,
            seat_of,
            gateways,
            pending_max: config.gateways.len() * config.in_flight_max + BATCH_MAX,
            committed,
            checkpointing,
            release: VecDeque::new(),
            started_ns,
            resynced: false,
            caught_up: false,
            background,
            leaving: None,
            lookout: Lookout::default(),
        })
    }

    fn poll_committed(&mut self) -> Result<usize, NodeError> {
        let room = self.out.has_room();
        self.seats.iter_mut().filter_map(|seat| seat.bench.as_mut()).for_each(|b| b.draft.has_room = room);
        let Self { seats, seat_of, out, checkpointing, committed, resynced, watch, .. } = self;
        let counters = &out.counters;
        let point = if *resynced { Point::VenueObserving } else { Point::VenueReplaying };
        let mut failed = Vec::new();
        let read = committed.poll(BATCH_MAX, |item| match item {
            Committed::Result { record, .. } => {
                let index = seat_of[usize::from(record.shard().0)];
                if record.position() >= seats[index].reached {
                    crash::at(point);
                }
                match seats[index].on_committed(&record)? {
                    Some(executed) => counters.add(OBSERVED, executed.into()),
                    None => failed.push((index, watch.place())),
                }
                Ok(())
            }
            Committed::Shown { .. } | Committed::Moved { .. } => Ok(()),
            Committed::CheckpointStored { shard, position, offset } => {
                let index = seat_of[usize::from(shard.0)];
                if position <= seats[index].reached {
                    checkpointing.on_stored(index, offset, executed(seats));
                }
                Ok(())
            }
        })?;
        for (index, place) in failed {
            self.fail(index, place.map(|(_, position)| position), true)?;
        }
        for seat in &mut self.seats {
            seat.bench.iter_mut().for_each(|bench| self.out.take(&mut bench.draft));
        }
        Ok(read)
    }

    fn poll_gateways(&mut self) -> Result<usize, NodeError> {
        let mut work = 0;
        // A venue that slept must not take everything into memory at once. What is in flight bounds what can
        // be pending; with less than that, the request that is decided next might never be read.
        let pending: usize = self.seats.iter().map(ShardSeat::pending_len).sum();
        let batch = BATCH_MAX.min(self.pending_max.saturating_sub(pending));
        for tail in &mut self.gateways {
            for _ in 0..batch {
                let Some(entry) = tail.next()? else { break };
                let request = wrong::changed(RequestRecord::read(entry.payload)?);
                self.seats[self.seat_of[usize::from(request.shard.0)]].on_request(&request);
                work += 1;
            }
            self.caught_up &= !tail.take_skipped();
        }
        if work > 0 {
            crash::at(Point::VenueReceived);
        }
        Ok(work)
    }

    /// The part of a turn before the shards' steps. Says how much there was to do.
    fn begin(&mut self) -> Result<usize, NodeError> {
        if self.lookout.is_due() {
            shut_out::check(&self.layout, self.id)?;
        }
        self.take_restored()?;
        self.poll_gateways()
    }

    /// The part of a turn after the shards' steps.
    fn end(&mut self) -> Result<usize, NodeError> {
        self.checkpointing.consider(&mut self.seats, self.committed.reach(), &self.out);
        self.out.flush();
        let followed = self.poll_committed()?;
        // Fewer than one batch in all: no recorder had more.
        self.caught_up |= followed < BATCH_MAX;
        // Writing a book of a checkpoint takes longer than a request may.
        self.watch.end();
        let work = followed + self.checkpointing.send_piece(&mut self.seats, &mut self.out)?;
        self.out.flush();
        self.release();
        // A step that executed something has left its mark in the positions.
        self.show_positions();
        if self.background.is_some() {
            give_way();
        }
        self.note_resync();
        let is_whole = self.seats.iter().all(|seat| seat.rebuild.is_none());
        let leaving = self.leaving.as_mut();
        match leaving.is_some_and(|leaving| leaving.is_time(clock::mono_ns(), is_whole)) {
            true => Err(NodeError::Encumbered),
            false => Ok(work),
        }
    }

    /// Hands over what a step of that shard needs, if it is to take one: everything else can be taken over meanwhile.
    fn begin_step(&mut self, index: usize) -> Option<Box<Bench>> {
        let seat = &mut self.seats[index];
        let bench = seat.bench.as_mut().filter(|_| seat.active)?;
        if !self.caught_up && !bench.order.knows_the_past() {
            return None;
        }
        bench.draft.has_room = self.out.has_room();
        seat.bench.take()
    }

    /// Takes back what a step needed, and what came of it.
    fn end_step(
        &mut self,
        index: usize,
        mut bench: Box<Bench>,
        progress: Progress,
    ) -> Result<usize, NodeError> {
        match progress.stall {
            Some(Stall::AwaitsBody(_)) => self.out.counters.add(AWAITS_BODY, 1),
            Some(Stall::WindowFull) => self.out.counters.add(WINDOW_FULL, 1),
            Some(Stall::TooFarBehind) => self.out.counters.add(TOO_FAR_BEHIND, 1),
            Some(Stall::EpochOver) => return Err(NodeError::EpochOver),
            // Nothing of the step counts: it is not what was agreed.
            Some(Stall::Overruled(position)) => {
                self.fail(index, Some(position), false)?;
                return Ok(1);
            }
            Some(Stall::Stuck(_) | Stall::NoRoom) | None => {}
        }
        self.out.take(&mut bench.draft);
        let seat = &mut self.seats[index];
        seat.reached = bench.shard.position();
        seat.active = progress.stall.is_some() || bench.shard.pending_len() > 0;
        seat.bench = Some(bench);
        self.out.counters.add(EXECUTED, progress.executed);
        self.out.counters.add(WON, progress.won);
        if let Some(Stall::Stuck(position)) = progress.stall {
            self.fail(index, Some(position), true)?;
        }
        Ok(progress.executed as usize)
    }

    /// The matching engine failed at a position of that shard, or what it did is not what was agreed: the shard is restored.
    /// `beyond`: that position has been executed by another venue, so only a state beyond it leads on.
    fn fail(&mut self, index: usize, at: Option<Position>, beyond: bool) -> Result<(), NodeError> {
        let seat = &mut self.seats[index];
        seat.bench = None;
        let failed_at = at.unwrap_or(seat.reached);
        let instruments = self.config.shards()?.remove(&seat.id).unwrap_or_default();
        let (config, layout, shard) = (self.config.clone(), self.layout.clone(), seat.id);
        complain(format_args!(
            "shard {shard}: the matching engine failed at position {failed_at}; the shard is restored"
        ));
        seat.rebuild = Some(Rebuild::start(Plan { config, layout, shard, instruments, failed_at, beyond })?);
        self.out.counters.add(FAILURES, 1);
        self.show_away();
        Ok(())
    }

    /// Another thread takes the turns from now on: the one before does not come back from `place`.
    fn take_over(&mut self, (shard, position): Place, number: u64) -> Result<(), NodeError> {
        self.turns = number;
        self.watch.accuse((shard, position));
        self.out.counters.set(ENCUMBERED, 1);
        if self.leaving.is_none() {
            self.leaving = Some(Leaving::new(self.id, &self.config, &self.layout, clock::mono_ns()));
        }
        self.fail(self.seat_of[usize::from(shard.0)], Some(position), false)
    }

    /// Takes back the shards that are restored.
    fn take_restored(&mut self) -> Result<(), NodeError> {
        for index in 0..self.seats.len() {
            let seat = &mut self.seats[index];
            let Some(rebuild) = &seat.rebuild else { continue };
            let committed = self.committed.committed(seat.id);
            if !rebuild.has_come_to(committed) {
                continue;
            }
            // First the gateways' marks: what they say is answered is recorded, and comes with the committed stream.
            let marks: Vec<Offset> =
                (self.config.gateway_ids()).map(|gateway| answered_offset(&self.layout, gateway)).collect();
            let Some(shard) = rebuild.take(committed) else { continue };
            let order = seat::order(&self.config, &self.layout, seat.id)?;
            let draft = Draft::new(self.id, &self.watch, self.poison);
            seat.reached = shard.position();
            (seat.bench, seat.rebuild, seat.active) =
                (Some(Box::new(Bench { shard, order, draft })), None, true);
            // What was pending is lost with the shard; the others have it already and take nothing twice.
            for (tail, mark) in self.gateways.iter_mut().zip(marks) {
                if mark < tail.offset() {
                    tail.seek(mark)?;
                }
            }
            self.out.counters.add(RESTORED, 1);
            self.show_away();
        }
        Ok(())
    }

    fn show_away(&self) {
        let away = self.seats.iter().filter(|seat| seat.rebuild.is_some()).count();
        self.out.counters.set(AWAY, away as u64);
    }

    /// Gives up the part of the log that every recorder has; or, once much is kept for one that is dead or far
    /// behind, what a quorum has: that recorder can fetch it from its peers.
    fn release(&mut self) {
        let tail = self.out.writer.tail();
        if self.release.back().is_none_or(|(last, _)| tail.since(*last) >= RELEASE_EVERY) {
            self.release.push_back((tail, self.seats.iter().map(|seat| seat.reached).collect()));
        }
        while let Some((offset, positions)) = self.release.front() {
            let patient = self.release.len() <= KEPT_MAX;
            let mut shards = self.seats.iter().map(|seat| seat.id).zip(positions);
            let kept_by = |shard| match patient {
                true => self.committed.everywhere(shard),
                false => self.committed.committed(shard),
            };
            if !shards.all(|(shard, &position)| kept_by(shard) >= position) {
                return;
            }
            self.out.writer.release_before(*offset);
            self.release.pop_front();
        }
    }

    /// Shows where every shard stands, whether its results were handed out or only followed.
    fn show_positions(&self) {
        for (index, seat) in self.seats.iter().enumerate() {
            self.out.counters.set(COUNTERS.len() + index, seat.reached.0);
        }
    }

    /// Notes the moment every shard has caught up with all that was recorded when this venue started.
    fn note_resync(&mut self) {
        if !self.resynced && self.seats.iter().all(|seat| seat.reached >= seat.resynced_at) {
            self.resynced = true;
            let took_ns = clock::mono_ns() - self.started_ns;
            self.out.counters.set(RESYNC_US, (took_ns / 1_000).max(1));
            self.out.counters.set(RESYNCED, 1);
            self.background = None;
            scheduling::short_slices();
        }
    }
}

fn counters(id: VenueId, layout: &Layout, seats: &[ShardSeat]) -> Result<CountersWriter, NodeError> {
    let positions: Vec<String> = seats.iter().map(|seat| format!("position-{}", seat.id)).collect();
    let names: Vec<&str> = COUNTERS.into_iter().chain(positions.iter().map(String::as_str)).collect();
    Ok(CountersWriter::create(&layout.counters(&format!("venue-{id}")), &names)?)
}
