//! A venue's process: the wiring of `pares_node::venue` over logs in memory.

use pares_book::Instrument;
use pares_sequencer::{LocalWindow, Sequencer};
use pares_types::{Position, Request, ShardId};
use pares_venue::{Pacing, Progress, Recorded, Stall};

use crate::bug::Bug;
use crate::build::Build;
use crate::committed::{Committed, CommittedStream};
use crate::defects;
use crate::engine::{Draft, Engine, Failed, Harm, caught};
use crate::handle::Handle;
use crate::log::Log;
use crate::outgoing::Outgoing;
use crate::random::mix;
use crate::rebuild::{Rebuild, Stream};
use crate::record::{Piece, VenueEntry};
use crate::scenario::{MS, US};
use crate::shard::{AnyShard, Sources};
use crate::surroundings::{Around, Counts, Join};

/// A shard and its way into the total order.
pub(crate) struct Seat {
    id: ShardId,
    /// Gone when the matching engine failed.
    pub(crate) shard: Option<AnyShard>,
    /// While it is gone.
    pub(crate) rebuild: Option<Rebuild>,
    window: Handle,
    /// All below is executed and handed out, or followed.
    pub(crate) reached: Position,
    /// Where the engine failed by itself, until the shard is beyond that.
    pub(crate) failed_at: Option<Position>,
}

impl Seat {
    fn pending_len(&self) -> usize {
        self.shard.as_ref().map_or(0, AnyShard::pending_len)
    }

    /// Takes note of how far the shard has come.
    fn reach(&mut self) {
        self.reached = self.shard.as_ref().map_or(self.reached, AnyShard::position);
        self.failed_at = self.failed_at.filter(|&at| at >= self.reached);
    }
}

/// A venue's memory: gone when its process dies.
pub(crate) struct VenueNode {
    pub(crate) seats: Vec<Seat>,
    /// Next offset in each gateway's log.
    pub(crate) cursors: Vec<u64>,
    pub(crate) committed: CommittedStream,
    /// What a rebuild needs and never changes, from here to `quorum`.
    naive: bool,
    instruments: Vec<Vec<Instrument>>,
    windows: Vec<LocalWindow>,
    window: usize,
    quorum: usize,
    pacing: Pacing,
    outgoing: Option<Outgoing>,
    /// Bytes of a checkpoint handed out per step.
    piece_bytes: usize,
    pending_max: usize,
    pub(crate) engine: Engine,
    /// By shard: where another venue's engine has failed, if that venue is to be faster now.
    pub(crate) rivals: Vec<Option<Position>>,
    build: Build,
    /// What the process dies of.
    pub(crate) dies_of: Option<Failed>,
    /// Whether something waits that only time can bring.
    pub(crate) stalled: bool,
    pub(crate) counts: Counts,
    bug: Option<Bug>,
}

impl VenueNode {
    pub(crate) fn join(join: &Join<'_>) -> Self {
        let Join { naive, instruments, checkpoints, build, bug, .. } = join;
        let sources = Sources { naive: *naive, instruments, checkpoints, build: *build, bug: *bug };
        let mut replay_from = vec![u64::MAX; checkpoints.len()];
        let (mut seats, mut reaches) = (Vec::new(), Vec::new());
        for (index, &id) in join.shards.iter().enumerate() {
            let mut restored = sources.restore(id);
            for (from, own) in replay_from.iter_mut().zip(&restored.replay_from) {
                *from = (*from).min(*own);
            }
            reaches.push(restored.reach);
            let suspect = join.suspect.filter(|(shard, _)| *shard == id).map(|(_, position)| position);
            suspect.into_iter().for_each(|position| restored.shard.suspect(position));
            let (reached, window) = (restored.shard.position(), &join.windows[index]);
            let window = Handle::new(window, join.window, join.bug);
            let shard = Some(restored.shard);
            let failed_at = suspect.filter(|&position| position >= reached);
            seats.push(Seat { id, shard, rebuild: None, window, reached, failed_at });
        }
        let mut committed = CommittedStream::new(seats.len(), checkpoints.len(), join.quorum, replay_from);
        for (index, seat) in seats.iter().enumerate() {
            committed.start_at(index, seat.reached);
        }
        let mut pacing = Pacing::new(join.checkpoint_every, join.venue, join.venues, seats.len());
        for (shard, reach) in reaches.into_iter().enumerate() {
            pacing.on_checkpoint(shard, reach, executed(&seats));
        }
        let engine = Engine { poison: join.poison, fails_in: None, spared: vec![false; seats.len()] };
        Self {
            seats,
            pacing,
            cursors: join.answered.clone(),
            committed,
            naive: *naive,
            instruments: instruments.to_vec(),
            windows: join.windows.to_vec(),
            window: join.window,
            quorum: join.quorum,
            outgoing: None,
            piece_bytes: join.piece_bytes,
            pending_max: join.pending_max,
            engine,
            rivals: vec![None; join.shards.len()],
            build: *build,
            dies_of: None,
            stalled: false,
            counts: Counts::default(),
            bug: join.bug,
        }
    }

    /// One duty cycle. Results lie in `log` afterwards, unpublished, if there is room. If it [dies of](VenueNode::dies_of)
    /// something, it did not come to the end of it.
    pub(crate) fn step(&mut self, log: &mut Log<VenueEntry>, around: &Around<'_>) -> Result<(), String> {
        self.stalled = false;
        self.go_on_restoring(around)?;
        self.poll_gateways(around.gateways);
        self.step_shards(log, around)?;
        if self.dies_of.is_some() {
            return Ok(());
        }
        self.consider_checkpoint();
        self.poll_committed(log, around)?;
        if around.room {
            self.send_piece(log);
        }
        let restoring = |seat: &Seat| seat.rebuild.as_ref().is_some_and(Rebuild::goes_on);
        self.stalled |= self.seats.iter().any(restoring);
        Ok(())
    }

    /// Lets the threads that restore shards do some of their work, and takes back the shards that are restored.
    fn go_on_restoring(&mut self, around: &Around<'_>) -> Result<(), String> {
        let Around { checkpoints, recorders, readable, .. } = *around;
        let instruments = &self.instruments;
        let sources =
            Sources { naive: self.naive, instruments, checkpoints, build: self.build, bug: self.bug };
        let stream = Stream { recorders, readable, quorum: self.quorum };
        for (index, seat) in self.seats.iter_mut().enumerate() {
            let Some(rebuild) = &mut seat.rebuild else { continue };
            if let Some(failed) = rebuild.advance(around.now_ns, sources, stream, &mut self.engine)? {
                self.counts.failed += 1;
                self.counts.by_itself += u64::from(failed.by_itself);
                seat.failed_at = Some(failed.position).filter(|_| failed.by_itself).or(seat.failed_at);
            }
            let Some(shard) = rebuild.take(self.committed.committed(index)) else { continue };
            seat.window = Handle::new(&self.windows[index], self.window, self.bug);
            (seat.shard, seat.rebuild) = (Some(shard), None);
            seat.reach();
            self.counts.restored += 1;
            // What was pending is lost with the shard; the others have it already and take nothing twice.
            for (cursor, &mark) in self.cursors.iter_mut().zip(around.answered) {
                *cursor = mark.min(*cursor);
            }
        }
        Ok(())
    }

    /// Stops reading when more is pending than can be undecided: the committed stream has the rest, and reading
    /// on would pile up all that was decided while this venue was away.
    fn poll_gateways(&mut self, gateways: &[(&Log<Request>, u64)]) {
        let mut room = self.pending_max.saturating_sub(self.pending_len());
        for (cursor, (log, readable)) in self.cursors.iter_mut().zip(gateways) {
            let to = (*readable).clamp(*cursor, cursor.saturating_add(room as u64));
            for request in log.range(*cursor, to) {
                let wrong = self.bug == Some(Bug::ExecuteWrongly);
                let request = if wrong { defects::misread(request) } else { self.build.understands(request) };
                if let Some(shard) = &mut self.seats[usize::from(request.shard.0)].shard {
                    shard.on_request(&request);
                }
            }
            room -= (to - *cursor) as usize;
            *cursor = to;
            self.stalled |= to < *readable;
        }
    }

    /// Requests received and not ordered, of all shards.
    pub(crate) fn pending_len(&self) -> usize {
        self.seats.iter().map(Seat::pending_len).sum()
    }

    fn step_shards(&mut self, log: &mut Log<VenueEntry>, around: &Around<'_>) -> Result<(), String> {
        for index in 0..self.seats.len() {
            let waits =
                self.bug == Some(Bug::StandStill) && self.seats.iter().any(|seat| seat.shard.is_none());
            if waits {
                break;
            }
            let Seat { shard: Some(shard), window, .. } = &mut self.seats[index] else { continue };
            window.rival = self.rivals[index];
            let (room, build, bug) = (around.room, self.build, self.bug);
            let mut draft = Draft { engine: &mut self.engine, room, results: Vec::new(), build, bug };
            let stepped = caught(|| shard.step(window, &mut draft));
            let mut results = draft.results;
            if self.bug == Some(Bug::HandOutUnvouched) {
                results.drain(..).for_each(|result| _ = log.append(result));
            }
            match stepped {
                Ok(progress) => self.end_step(index, progress, results, log, around.now_ns)?,
                Err(failed) if failed.harm == Harm::Ends => {
                    self.counts.failed += 1;
                    (self.seats[index].shard, self.dies_of) = (None, Some(failed));
                }
                Err(failed) => self.fail(index, failed, false, around.now_ns),
            }
            if self.dies_of.is_some() {
                break;
            }
        }
        Ok(())
    }

    /// Hands out what came of a step, unless it is not what was agreed.
    fn end_step(
        &mut self,
        index: usize,
        progress: Progress,
        results: Vec<VenueEntry>,
        log: &mut Log<VenueEntry>,
        now_ns: u64,
    ) -> Result<(), String> {
        match progress.stall {
            Some(Stall::AwaitsBody(_)) => self.counts.awaits_body += 1,
            Some(Stall::WindowFull) => self.counts.window_full += 1,
            Some(Stall::TooFarBehind) => self.counts.too_far_behind += 1,
            Some(Stall::EpochOver) => return Err("a live venue found its epoch over".into()),
            Some(Stall::Overruled(position)) => {
                self.counts.overruled += 1;
                self.restore(index, position, false, now_ns);
                return Ok(());
            }
            Some(Stall::Stuck(_) | Stall::NoRoom) | None => {}
        }
        results.into_iter().for_each(|result| _ = log.append(result));
        self.counts.executed += progress.executed;
        let seat = &mut self.seats[index];
        seat.reach();
        self.stalled |= progress.stall.is_some() || seat.pending_len() > 0;
        if let Some(Stall::Stuck(position)) = progress.stall {
            self.counts.stuck += 1;
            self.restore(index, position, true, now_ns);
        }
        Ok(())
    }

    /// The engine failed: what was in its hands is worth nothing any more.
    fn fail(&mut self, index: usize, failed: Failed, beyond: bool, now_ns: u64) {
        self.counts.failed += 1;
        self.counts.by_itself += u64::from(failed.by_itself);
        let seat = &mut self.seats[index];
        seat.failed_at = Some(failed.position).filter(|_| failed.by_itself).or(seat.failed_at);
        self.restore(index, failed.position, beyond, now_ns);
    }

    fn restore(&mut self, index: usize, failed_at: Position, beyond: bool, now_ns: u64) {
        let seat = &mut self.seats[index];
        seat.shard = None;
        // It takes a while to start a thread and to read a checkpoint; some are large, on every venue.
        let is_large = mix(failed_at.0).is_multiple_of(8);
        let from_ns =
            now_ns + if is_large { 15 * MS } else { 50 * US + mix(now_ns ^ failed_at.0) % (800 * US) };
        seat.rebuild = Some(Rebuild::new(seat.id, failed_at, beyond, from_ns));
    }

    fn consider_checkpoint(&mut self) {
        if self.outgoing.is_some() {
            return;
        }
        let count = executed(&self.seats);
        let is_behind = |seat: &Seat| seat.shard.is_some() && seat.window.recorded() > seat.reached;
        let behind = || self.seats.iter().any(is_behind);
        let Some(index) = self.pacing.due(0, count, behind) else { return };
        let Seat { id, shard: Some(shard), .. } = &mut self.seats[index] else { return };
        self.pacing.on_checkpoint(index, self.committed.reach(), count);
        self.outgoing = Some(Outgoing::begin(*id, shard));
    }

    fn poll_committed(&mut self, log: &mut Log<VenueEntry>, around: &Around<'_>) -> Result<(), String> {
        let (room, build, bug) = (around.room, self.build, self.bug);
        let mut draft = Draft { engine: &mut self.engine, room, results: Vec::new(), build, bug };
        let (seats, counts, pacing) = (&mut self.seats, &mut self.counts, &mut self.pacing);
        let (mut broken, mut failures) = (None, Vec::new());
        self.committed.poll(around.recorders, around.readable, |item| match item {
            Committed::Result { record, .. } => {
                let seat = &mut seats[usize::from(record.shard().0)];
                let Some(shard) = &mut seat.shard else { return };
                seat.window.raise_recorded(record.position.next());
                let (position, reason) = (record.position, record.outcome.reason);
                let request = &build.understands(&record.request);
                let recorded = Recorded { position, request, reason };
                let epoch = seat.window.epoch();
                match caught(|| shard.on_committed(recorded, epoch, &mut draft)) {
                    Ok(Ok(executed)) => counts.observed += u64::from(executed),
                    Ok(Err(gap)) => broken = Some(format!("{gap:?} in the committed stream")),
                    Err(failed) => {
                        seat.shard = None;
                        failures.push(failed);
                    }
                }
                seat.reach();
            }
            Committed::Shown { .. } | Committed::Known => {}
            Committed::CheckpointStored { shard, position, offset } => {
                let index = usize::from(shard.0);
                if position <= seats[index].reached {
                    pacing.on_checkpoint(index, offset, executed(seats));
                }
            }
        });
        draft.results.into_iter().for_each(|result| _ = log.append(result));
        for failed in failures {
            self.fail(usize::from(failed.shard.0), failed, true, around.now_ns);
        }
        broken.map_or(Ok(()), Err)
    }

    fn send_piece(&mut self, log: &mut Log<VenueEntry>) {
        let Some(outgoing) = &mut self.outgoing else { return };
        let seat = &mut self.seats[usize::from(outgoing.shard.0)];
        if !outgoing.write_more(seat.shard.as_mut(), self.piece_bytes, self.bug) {
            self.outgoing = None;
            return;
        }
        let start = outgoing.sent;
        let (bytes, is_last) = outgoing.next_piece(self.piece_bytes);
        log.append(VenueEntry::Piece(Piece {
            shard: outgoing.shard,
            epoch: seat.window.epoch(),
            position: outgoing.position,
            total_bytes: is_last.then_some(outgoing.sent),
            start,
            bytes,
        }));
        if is_last {
            self.outgoing = None;
        }
    }

    /// Another log lies in the place of a recorder's: it is read from its beginning.
    pub(crate) fn forget_log(&mut self, recorder: usize) {
        self.committed.cursors[recorder] = 0;
        let rebuilds = self.seats.iter_mut().filter_map(|seat| seat.rebuild.as_mut());
        rebuilds.for_each(|rebuild| rebuild.forget_log(recorder));
    }

    /// Whether a step is worth taking without new input.
    pub(crate) fn restless(&self) -> bool {
        self.stalled || self.outgoing.is_some()
    }
}

/// Positions executed over all shards.
fn executed(seats: &[Seat]) -> u64 {
    seats.iter().map(|seat| seat.reached.0).sum()
}
