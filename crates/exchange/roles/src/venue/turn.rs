//! A venue's turn: what is read before the shards' steps, what comes of them, and what is done after.

use std::ops::DerefMut;
use std::time::Duration;

use pares_log::LogWriter;
use pares_types::Position;
use pares_venue::Stall;

use super::out::Draft;
use super::seat::{OrderSource, ShardSeat, ShardStep, Stepped};
use super::{BATCH_MAX, COUNTERS, Counter, KEPT_MAX, RELEASE_EVERY, STALLED, VenueNode, seat_of};
use crate::committed::Committed;
use crate::duty::{Duty, SLEEP_MAX};
use crate::world::{Counters, World};
use crate::{NodeError, shut_out};

/// A place where a venue lies between the parts of its turns: in the hands of one thread, or where another can take it over.
pub trait Hold<W: World> {
    /// The venue, until what is given goes out of scope.
    ///
    /// # Errors
    /// [`NodeError::TakenOver`] if another thread takes the turns now.
    fn hold(&mut self) -> Result<impl DerefMut<Target = VenueNode<W>>, NodeError>;
}

/// Takes a turn of the venue that lies there. Says how much there was to do.
///
/// # Errors
/// If the venue was shut out or taken over, a log cannot be read or written, a new life of the windows has begun, or it is time
/// to end.
pub fn turn<W: World>(place: &mut impl Hold<W>) -> Result<usize, NodeError> {
    let mut venue = place.hold()?;
    let mut work = venue.begin()?;
    for index in 0..venue.seats.len() {
        let Some(mut bench) = venue.begin_step(index) else { continue };
        // Nothing but the shard is in this thread's hands while the matching engine works.
        drop(venue);
        let stepped = bench.step();
        venue = place.hold()?;
        work += venue.end_step(index, bench, stepped)?;
    }
    work += venue.end()?;
    venue.watch.end();
    Ok(work)
}

impl<W: World> VenueNode<W> {
    /// The part of a turn before the shards' steps. Says how much there was to do.
    fn begin(&mut self) -> Result<usize, NodeError> {
        if self.lookout.is_due(&self.world)? {
            self.check_notes()?;
            self.follow_lanes()?;
        }
        self.take_restored()?;
        Ok(self.poll_gateways())
    }

    fn check_notes(&mut self) -> Result<(), NodeError> {
        let noted = self.notes.is_shut_out(&self.world, self.id);
        if noted == Some(true) { shut_out::check(&self.world, self.id) } else { Ok(()) }
    }

    /// Hands over what a step of that shard needs, if it is to take one: everything else can be taken over meanwhile.
    pub(super) fn begin_step(&mut self, index: usize) -> Option<Box<ShardStep<W>>> {
        let seat = &mut self.seats[index];
        let bench = seat.bench.as_mut().filter(|_| seat.active)?;
        assert!(bench.draft.is_empty(), "what a step made is handed out before the next one");
        assert!(seat.rebuild.is_none(), "a shard that takes a step is not being restored");
        if !self.caught_up && !bench.order.knows_the_past() {
            return None;
        }
        bench.draft.has_room = self.out.has_room();
        seat.bench.take()
    }

    /// Takes back what a step needed, and what came of it: nothing, if the matching engine panicked at a place.
    pub(super) fn end_step(
        &mut self,
        index: usize,
        mut bench: Box<ShardStep<W>>,
        (stepped, at): Stepped,
    ) -> Result<usize, NodeError> {
        let seat = &mut self.seats[index];
        assert!(seat.bench.is_none(), "shard {} took one step at a time", seat.id);
        assert_eq!(bench.shard.id(), seat.id, "a step comes back to the seat that it left");
        let Some(progress) = stepped else {
            // Outside of the matching engine it was a broken invariant: no request is to blame, and this process knows nothing any more.
            let (_, position) = at.ok_or(NodeError::Panicked)?;
            self.fail(index, position, false)?;
            return Ok(1);
        };
        match progress.stall {
            Some(Stall::AwaitsBody(_)) => self.out.counters.add(Counter::AwaitsBody, 1),
            Some(Stall::WindowFull) => self.out.counters.add(Counter::WindowFull, 1),
            Some(Stall::TooFarBehind) => self.out.counters.add(Counter::TooFarBehind, 1),
            Some(Stall::EpochOver) => return Err(NodeError::EpochOver),
            // Nothing of the step counts: it is not what was agreed.
            Some(Stall::Overruled(position)) => {
                self.fail(index, position, false)?;
                return Ok(1);
            }
            Some(Stall::Stuck(_) | Stall::NoRoom) | None => {}
        }
        assert!(bench.shard.position() >= seat.reached, "a step never goes back");
        self.out.take(&mut bench.draft);
        let moved = bench.shard.position().0 - seat.reached.0;
        assert_eq!(moved, progress.executed, "a shard moves on by what it executed");
        seat.reached = bench.shard.position();
        seat.active = progress.stall.is_some() || bench.shard.pending_len() > 0;
        seat.bench = Some(bench);
        self.out.counters.add(Counter::Executed, progress.executed);
        self.out.counters.add(Counter::Won, progress.won);
        if let Some(Stall::Stuck(position)) = progress.stall {
            self.fail(index, position, true)?;
        }
        Ok(progress.executed as usize)
    }

    /// The part of a turn after the shards' steps.
    fn end(&mut self) -> Result<usize, NodeError> {
        if let Some(error) = self.out.failed {
            return Err(error.into());
        }
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
        let unreadable = self.requests.unreadable() + self.committed.unreadable();
        self.out.counters.set(Counter::UnreadableLogs, unreadable as u64);
        if !self.resynced {
            // Long stretches without a system call are not interrupted before the next tick of the scheduler,
            // milliseconds later, whatever the priorities.
            self.world.give_way();
        }
        self.note_resync();
        self.say_placement();
        let is_taken_over = self.turns > 0;
        assert_eq!(self.leaving.is_some(), is_taken_over, "a venue leaves whose turns were taken over");
        let is_whole = self.seats.iter().all(|seat| seat.rebuild.is_none());
        match self.leaving.as_mut().is_some_and(|leaving| leaving.is_time(&self.world, is_whole)) {
            true => Err(NodeError::Encumbered),
            false => Ok(work),
        }
    }

    pub(super) fn poll_gateways(&mut self) -> usize {
        // A venue that slept must not take everything into memory at once. What is in flight bounds what can
        // be pending; with less than that, the request that is decided next might never be read.
        let batch = BATCH_MAX.min(self.pending_max.saturating_sub(self.pending_len()));
        let Self { seats, requests, out, known, .. } = self;
        let read = requests.poll(
            |_| batch,
            known,
            |request, _| {
                let seat = seat_of(seats, request.shard);
                seat.map(|index| seats[index].on_request(request)).is_some()
            },
        );
        if read > 0 {
            out.counters.set(Counter::Damaged, requests.damaged());
        }
        self.caught_up &= !requests.take_skipped();
        read
    }

    fn poll_committed(&mut self) -> Result<usize, NodeError> {
        let room = self.out.has_room();
        self.seats.iter_mut().filter_map(|seat| seat.bench.as_mut()).for_each(|b| b.draft.has_room = room);
        self.note_known();
        let Self { seats, out, checkpointing, committed, watch, known, .. } = self;
        let mut failed = Vec::new();
        let read = committed.poll_beyond(BATCH_MAX, known, |item| {
            match item {
                Committed::Result { record, .. } => {
                    let Some(index) = seat_of(seats, record.shard()) else { return Ok(()) };
                    match seats[index].on_committed(&record)? {
                        Some(executed) => out.counters.add(Counter::Observed, executed.into()),
                        None => failed.push((index, watch.place())),
                    }
                    // What follows is no request: mapping the next segment may take longer than one may.
                    watch.end();
                }
                Committed::CheckpointStored { shard, position, offset } => {
                    let index = seat_of(seats, shard).filter(|&index| position <= seats[index].reached);
                    index.into_iter().for_each(|i| checkpointing.on_stored(i, offset, seats));
                }
                Committed::Shown { .. } | Committed::Moved { .. } => {}
            }
            Ok(())
        })?;
        assert!(failed.len() <= self.seats.len(), "a shard that failed takes no more records");
        for (index, place) in failed {
            let (_, position) = place.ok_or(NodeError::Panicked)?;
            self.fail(index, position, true)?;
        }
        for seat in &mut self.seats {
            let committed = self.committed.committed(seat.id);
            let Some(bench) = &mut seat.bench else { continue };
            bench.order.raise_recorded(committed);
            self.out.take(&mut bench.draft);
        }
        Ok(read)
    }

    /// A venue need not read again the requests that it has executed: it has to know only that they are recorded.
    fn note_known(&mut self) {
        for seat in &self.seats {
            let at = usize::from(seat.id.0);
            if at >= self.known.len() {
                self.known.resize(at + 1, Position(0));
            }
            self.known[at] = if seat.bench.is_some() { seat.reached } else { Position(0) };
        }
    }

    /// Takes back the shards that are restored.
    fn take_restored(&mut self) -> Result<(), NodeError> {
        for index in 0..self.seats.len() {
            let seat = &mut self.seats[index];
            assert!(seat.bench.is_some() != seat.rebuild.is_some(), "a shard is here, or being restored");
            let Some(rebuild) = &mut seat.rebuild else { continue };
            rebuild.begin();
            self.out.counters.add(Counter::RestoreFailures, rebuild.take_failures());
            let (committed, id) = (&mut self.committed, seat.id);
            if self.placement.seats(id).is_restored_by(self.id)
                || !rebuild.is_at(|quorum| committed.is_reached_by(id, quorum))
            {
                continue;
            }
            // First the gateways' marks: what they say is answered is recorded, and comes with the committed stream.
            let answered = self.requests.answered();
            let taken = rebuild.take(|quorum| committed.is_reached_by(id, quorum));
            let Some((shard, quorum)) = taken else { continue };
            committed.join(id, &quorum);
            let committed = committed.committed(id);
            assert_eq!(shard.position(), committed, "a restored shard has come to the committed stream");
            assert_eq!(shard.id(), seat.id, "a shard is restored for its own seat");
            let order = OrderSource::open(&self.world, &self.config, seat.id)?;
            seat.resynced_at = seat.resynced_at.min(order.recorded());
            let draft = Draft::new(&self.world, self.id, &self.watch);
            seat.reached = shard.position();
            let bench = ShardStep { world: self.world.clone(), shard, order, draft };
            (seat.bench, seat.rebuild, seat.active) = (Some(Box::new(bench)), None, true);
            // What was pending is lost with the shard; the others have it already and take nothing twice.
            self.requests.read_again(&answered);
            self.out.counters.add(Counter::ShardsRestored, 1);
            self.show_away();
        }
        Ok(())
    }

    /// Gives up the part of the log that every recorder has; or, once much is kept for one that is dead or far
    /// behind, what a quorum has: that recorder can fetch it from its peers.
    fn release(&mut self) {
        let tail = self.out.writer.tail();
        assert!(
            self.release.back().is_none_or(|(last, _)| *last <= tail),
            "the end of the log only moves on"
        );
        if self.release.back().is_none_or(|(last, _)| tail.since(*last) >= RELEASE_EVERY) {
            self.release.push_back((tail, self.seats.iter().map(|seat| seat.reached).collect()));
        }
        while let Some((offset, positions)) = self.release.front() {
            if !self.is_kept(positions) {
                return;
            }
            self.out.writer.release_before(*offset);
            self.release.pop_front();
        }
    }

    fn is_kept(&self, positions: &[Position]) -> bool {
        assert_eq!(positions.len(), self.seats.len(), "a mark of the log has a position of every shard");
        let patient = self.release.len() <= KEPT_MAX;
        let kept_by = |shard| match patient {
            true => self.committed.everywhere(shard),
            false => self.committed.committed(shard),
        };
        self.seats.iter().zip(positions).all(|(seat, &position)| kept_by(seat.id) >= position)
    }

    /// Shows where every shard stands, whether its results were handed out or only followed.
    fn show_positions(&self) {
        for seat in &self.seats {
            let is_behind = seat.bench.is_some() && seat.reached < self.committed.committed(seat.id);
            assert!(!is_behind, "a shard that is here has executed all that is committed");
            self.out.counters.set(COUNTERS.len() + seat.rank, seat.reached.0);
        }
    }

    /// Notes the moment every shard has caught up with all that was recorded when this venue started.
    fn note_resync(&mut self) {
        // A shard whose state is nowhere keeps the others from nothing.
        let in_step = |seat: &ShardSeat<W>| seat.rebuild.is_some() || seat.reached >= seat.resynced_at;
        if !self.resynced && self.seats.iter().all(in_step) {
            self.resynced = true;
            let took_ns = self.world.mono_ns() - self.started_ns;
            self.out.counters.set(Counter::ResyncUs, (took_ns / 1_000).max(1));
            self.out.counters.set(Counter::Resynced, 1);
            self.world.leave_background();
        }
    }
}

/// A venue in the hands of one thread, where matching engines come back from every request.
impl<W: World> Hold<W> for VenueNode<W> {
    fn hold(&mut self) -> Result<impl DerefMut<Target = Self>, NodeError> {
        Ok(self)
    }
}

impl<W: World> Duty for VenueNode<W> {
    fn work(&mut self) -> Result<usize, NodeError> {
        turn(self)
    }

    fn look_everywhere(&mut self) {
        self.requests.look();
        self.committed.look();
    }

    fn sleep_max(&self) -> Duration {
        // Nobody rings when a record makes room in the window, or brings what is awaited.
        let is_stalled = self.seats.iter().any(|seat| seat.active && seat.bench.is_some());
        let most = if is_stalled { STALLED } else { SLEEP_MAX };
        self.checkpointing.sleep_max(most)
    }
}
