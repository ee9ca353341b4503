//! An execution venue: reads every gateway's log and the committed stream, agrees, executes, hands out results.
//!
//! ```text
//!  gateway logs ---> Shard --propose/decided--> window
//!  committed -----^    |
//!                      +--results, checkpoint pieces--> own log --publish--> ring recorders
//! ```
//! A start is the paper's join (section 4), every time: listen, load the newest checkpoint of each shard,
//! read the records after it, overlap with live traffic. The live venues notice nothing.

mod out;
mod seat;

use std::collections::VecDeque;
use std::time::Duration;

use pares_log::{Config, Offset, Writer};
use pares_shm::scheduling::{self, Background};
use pares_shm::{CountersWriter, clock};
use pares_types::{Position, VenueId};
use pares_venue::{Pacing, Stall};
use pares_wire::record::RequestRecord;

use crate::NodeError;
use crate::committed::{Committed, CommittedStream};
use crate::config::{Layout, SystemConfig, bells};
use crate::crash::{self, Point};
use crate::duty::Duty;
use crate::shut_out::Lookout;
use crate::tail::Tail;
use crate::{shut_out, wrong};
use out::{Out, Outgoing};
use seat::{ShardSeat, answered_offset, executed, give_way, restore};

/// How long a starting venue leaves the processor to the others before it takes its share: catching up takes a
/// few milliseconds of it.
const BACKGROUND: Duration = Duration::from_millis(25);
/// Requests read from one gateway's log, or records from one recorder's, before the rest is looked at.
const BATCH_MAX: usize = 512;
/// Between the starts of two checkpoints.
const CHECKPOINT_PAUSE_NS: u64 = 50_000_000;
/// Bytes of own log between two marks of what could be released.
const RELEASE_EVERY: u64 = 1 << 20;
/// Marks kept for a recorder that is behind: 256 MiB of results.
const KEPT_MAX: usize = 256;

/// Counters of a venue, in file order; one `position-S` per shard follows.
pub const COUNTERS: [&str; 10] = [
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

/// A venue's state.
pub struct VenueNode {
    out: Out,
    seats: Vec<ShardSeat>,
    /// Index into `seats` by shard id.
    seat_of: Vec<usize>,
    gateways: Vec<Tail>,
    pending_max: usize,
    committed: CommittedStream,
    pacing: Pacing,
    outgoing: Option<Outgoing>,
    outgoing_ns: u64,
    spare: Vec<u8>,
    release: VecDeque<(Offset, Vec<Position>)>,
    started_ns: u64,
    resynced: bool,
    /// Whether the committed stream was read to its end after the gateways' logs were last joined midway: every
    /// request before the place of joining is executed then.
    caught_up: bool,
    background: Option<Background>,
    layout: Layout,
    lookout: Lookout,
}

impl VenueNode {
    /// Opens the venue's log, restores each shard from the newest checkpoint and finds its place in
    /// every stream.
    ///
    /// # Errors
    /// If a log is damaged or shared memory is missing.
    pub fn open(id: VenueId, config: &SystemConfig, layout: &Layout) -> Result<Self, NodeError> {
        shut_out::check(layout, id)?;
        let started_ns = clock::mono_ns();
        let background = Background::enter(BACKGROUND);
        // First the gateways' marks, then the recorders': what a mark says is answered is recorded by then.
        let gateways = config
            .gateway_ids()
            .map(|gateway| Tail::new(layout.gateway_log(gateway), answered_offset(layout, gateway)))
            .collect();
        let log_config = Config::default().segment_bytes(config.segment_mib << 20);
        let (writer, _) = Writer::open(&layout.venue_log(id), log_config)?;
        let (seats, committed) = restore(config, layout)?;
        let highest = seats.last().expect("a system has a shard").shard.id().0;
        let mut seat_of = vec![usize::MAX; usize::from(highest) + 1];
        seats.iter().enumerate().for_each(|(index, seat)| seat_of[usize::from(seat.shard.id().0)] = index);
        let mut pacing = Pacing::new(config.checkpoint_every, id, config.venues, seats.len());
        let count = executed(&seats);
        for (shard, seat) in seats.iter().enumerate() {
            pacing.on_checkpoint(shard, seat.restored_reach.0, count);
        }
        let out = Out {
            venue: id,
            writer,
            counters: counters(id, layout, &seats)?,
            ringer: pares_shm::Bells::create(&layout.run())?.ringer(),
            recorders: config.recorder_ids().map(bells::recorder).collect(),
            appended: false,
            failed: None,
        };
        out.counters.set(OPEN_US, (clock::mono_ns() - started_ns) / 1_000);
        Ok(Self {
            out,
            seats,
            seat_of,
            gateways,
            pending_max: config.gateways.len() * config.in_flight_max + BATCH_MAX,
            committed,
            pacing,
            outgoing: None,
            outgoing_ns: 0,
            spare: Vec::new(),
            release: VecDeque::new(),
            started_ns,
            resynced: false,
            caught_up: false,
            background,
            layout: layout.clone(),
            lookout: Lookout::default(),
        })
    }

    fn poll_committed(&mut self) -> Result<usize, NodeError> {
        let Self { seats, seat_of, out: Out { counters, .. }, pacing, committed, resynced, .. } = self;
        let point = if *resynced { Point::VenueObserving } else { Point::VenueReplaying };
        committed.poll(BATCH_MAX, |item| match item {
            Committed::Result { record, .. } => {
                let seat = &mut seats[seat_of[usize::from(record.shard().0)]];
                let position = record.position();
                seat.raise_recorded(position.next());
                if position < seat.shard.position() {
                    return Ok(());
                }
                crash::at(point);
                let request = wrong::changed(record.request()?);
                let gap = |gap: pares_venue::Gap| NodeError::Gap {
                    shard: record.shard(),
                    next: gap.next,
                    met: gap.met,
                };
                if seat.shard.on_committed(position, &request).map_err(gap)? {
                    counters.add(OBSERVED, 1);
                }
                Ok(())
            }
            Committed::Shown { .. } | Committed::Moved { .. } => Ok(()),
            Committed::CheckpointStored { shard, position, offset } => {
                let index = seat_of[usize::from(shard.0)];
                if position <= seats[index].shard.position() {
                    pacing.on_checkpoint(index, offset.0, executed(seats));
                }
                Ok(())
            }
        })
    }

    fn poll_gateways(&mut self) -> Result<usize, NodeError> {
        let mut work = 0;
        // A venue that slept must not take everything into memory at once. What is in flight bounds what can
        // be pending; with less than that, the request that is decided next might never be read.
        let pending: usize = self.seats.iter().map(|seat| seat.shard.pending_len()).sum();
        let batch = BATCH_MAX.min(self.pending_max.saturating_sub(pending));
        for tail in &mut self.gateways {
            for _ in 0..batch {
                let Some(entry) = tail.next()? else { break };
                let request = wrong::changed(RequestRecord::read(entry.payload)?);
                let seat = &mut self.seats[self.seat_of[usize::from(request.shard.0)]];
                seat.active |= seat.shard.on_request(&request);
                work += 1;
            }
            self.caught_up &= !tail.take_skipped();
        }
        if work > 0 {
            crash::at(Point::VenueReceived);
        }
        Ok(work)
    }

    fn step_shards(&mut self) -> Result<usize, NodeError> {
        let mut work = 0;
        let caught_up = self.caught_up;
        let may_step = |seat: &&mut ShardSeat| seat.active && (caught_up || seat.order.knows_the_past());
        for seat in self.seats.iter_mut().filter(may_step) {
            let progress = seat.step(&mut self.out);
            work += progress.executed as usize;
            seat.active = progress.stall.is_some() || seat.shard.pending_len() > 0;
            self.out.counters.add(EXECUTED, progress.executed);
            self.out.counters.add(WON, progress.won);
            match progress.stall {
                Some(Stall::AwaitsBody(_)) => self.out.counters.add(AWAITS_BODY, 1),
                Some(Stall::WindowFull) => self.out.counters.add(WINDOW_FULL, 1),
                Some(Stall::TooFarBehind) => self.out.counters.add(TOO_FAR_BEHIND, 1),
                Some(Stall::EpochOver) => return Err(NodeError::EpochOver),
                Some(Stall::NoRoom) | None => {}
            }
        }
        self.consider_checkpoint();
        self.out.failed.map_or(Ok(work), |error| Err(error.into()))
    }

    /// Starts handing out a checkpoint if one is due; not more often than [`CHECKPOINT_PAUSE_NS`], so that
    /// at the highest rates checkpoints stay a small part of the work.
    fn consider_checkpoint(&mut self) {
        if self.outgoing.is_some() || clock::mono_ns() - self.outgoing_ns < CHECKPOINT_PAUSE_NS {
            return;
        }
        let count = executed(&self.seats);
        let behind = self.seats.iter().any(ShardSeat::is_behind);
        let Some(index) = self.pacing.due(count, behind) else { return };
        let mut state = std::mem::take(&mut self.spare);
        let position = self.seats[index].shard.checkpoint(&mut state);
        self.pacing.on_checkpoint(index, self.committed.reach().0, count);
        let seat = &self.seats[index];
        self.outgoing =
            Some(Outgoing { shard: seat.shard.id(), epoch: seat.epoch(), position, state, sent: 0 });
        self.outgoing_ns = clock::mono_ns();
    }

    /// Hands out one piece of the checkpoint under way.
    fn send_piece(&mut self) -> Result<usize, NodeError> {
        let Some(outgoing) = &mut self.outgoing else { return Ok(0) };
        if outgoing.is_half_sent() {
            crash::at(Point::VenueCheckpoint);
        }
        if !self.out.piece(outgoing)? {
            return Ok(0);
        }
        if outgoing.sent == outgoing.state.len() {
            self.out.counters.add(CHECKPOINTS, 1);
            self.spare = self.outgoing.take().map(|sent| sent.state).unwrap_or_default();
        }
        Ok(1)
    }

    /// Gives up the part of the log that every recorder has; or, once much is kept for one that is dead or far
    /// behind, what a quorum has: that recorder can fetch it from its peers.
    fn release(&mut self) {
        let tail = self.out.writer.tail();
        if self.release.back().is_none_or(|(last, _)| tail.since(*last) >= RELEASE_EVERY) {
            self.release.push_back((tail, self.seats.iter().map(|seat| seat.shard.position()).collect()));
        }
        while let Some((offset, positions)) = self.release.front() {
            let patient = self.release.len() <= KEPT_MAX;
            let mut shards = self.seats.iter().map(|seat| seat.shard.id()).zip(positions);
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
            self.out.counters.set(COUNTERS.len() + index, seat.shard.position().0);
        }
    }

    /// Notes the moment every shard has caught up with all that was recorded when this venue started.
    fn note_resync(&mut self) {
        if !self.resynced && self.seats.iter().all(|seat| seat.shard.position() >= seat.resynced_at) {
            self.resynced = true;
            let took_ns = clock::mono_ns() - self.started_ns;
            self.out.counters.set(RESYNC_US, (took_ns / 1_000).max(1));
            self.out.counters.set(RESYNCED, 1);
            self.background = None;
            scheduling::short_slices();
        }
    }
}

impl Duty for VenueNode {
    fn work(&mut self) -> Result<usize, NodeError> {
        if self.lookout.is_due() {
            shut_out::check(&self.layout, self.out.venue)?;
        }
        let mut work = self.poll_gateways()?;
        work += self.step_shards()?;
        self.out.flush();
        let followed = self.poll_committed()?;
        // Fewer than one batch in all: no recorder had more.
        self.caught_up |= followed < BATCH_MAX;
        work += followed + self.send_piece()?;
        self.out.flush();
        self.release();
        if work > 0 {
            self.show_positions();
        }
        if self.background.is_some() {
            give_way();
        }
        self.note_resync();
        Ok(work)
    }
}

fn counters(id: VenueId, layout: &Layout, seats: &[ShardSeat]) -> Result<CountersWriter, NodeError> {
    let positions: Vec<String> = seats.iter().map(|seat| format!("position-{}", seat.shard.id())).collect();
    let names: Vec<&str> = COUNTERS.into_iter().chain(positions.iter().map(String::as_str)).collect();
    Ok(CountersWriter::create(&layout.counters(&format!("venue-{id}")), &names)?)
}
