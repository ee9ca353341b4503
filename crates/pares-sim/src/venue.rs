//! A venue's process: the wiring of `pares_node::venue` over logs in memory.

use std::rc::Rc;

use pares_book::{Book, FastBook, Instrument, NaiveBook};
use pares_sequencer::{LocalWindow, Sequencer};
use pares_types::{Epoch, Event, Outcome, Position, Request, ShardId, VenueId};
use pares_venue::{Gap, Pacing, Progress, Recorded, ResultAt, Shard, Stall, VenueSink};

use crate::committed::{Committed, CommittedStream};
use crate::defects;
use crate::handle::Handle;
use crate::log::Log;
use crate::record::{Piece, Record, RecorderEntry, StoredCheckpoint, VenueEntry};
use crate::scenario::Bug;

/// A shard on either book: the two must never differ.
pub(crate) enum AnyShard {
    Fast(Shard<FastBook>),
    Naive(Shard<NaiveBook>),
}

macro_rules! either {
    ($any:expr, $shard:ident => $then:expr) => {
        match $any {
            AnyShard::Fast($shard) => $then,
            AnyShard::Naive($shard) => $then,
        }
    };
}

impl AnyShard {
    fn restore(naive: bool, id: ShardId, instruments: &[Instrument], state: Option<&[u8]>) -> Self {
        fn make<B: Book>(id: ShardId, instruments: &[Instrument], state: Option<&[u8]>) -> Shard<B> {
            match state {
                Some(bytes) => Shard::restore(id, bytes).expect("what was stored restores"),
                None => Shard::new(id, instruments),
            }
        }
        match naive {
            true => Self::Naive(make(id, instruments, state)),
            false => Self::Fast(make(id, instruments, state)),
        }
    }

    pub(crate) fn position(&self) -> Position {
        either!(self, shard => shard.position())
    }

    pub(crate) fn state_hash(&self) -> u64 {
        either!(self, shard => shard.state_hash())
    }

    pub(crate) fn market_hash(&self) -> u64 {
        either!(self, shard => shard.market().state_hash())
    }

    pub(crate) fn pending_len(&self) -> usize {
        either!(self, shard => shard.pending_len())
    }

    /// The orders of all books, held ones included, audited: id and shares left.
    pub(crate) fn resting(&self) -> Vec<(pares_types::OrderId, u64)> {
        fn of<B: Book>(shard: &Shard<B>) -> Vec<(pares_types::OrderId, u64)> {
            shard.market().audit();
            let orders = shard.books().iter().flat_map(|book| book.snapshot().orders);
            orders.map(|order| (order.order, order.remaining.0)).collect()
        }
        either!(self, shard => of(shard))
    }

    fn on_request(&mut self, request: &Request) {
        either!(self, shard => { shard.on_request(request); });
    }

    fn on_committed(
        &mut self,
        record: Recorded<'_>,
        epoch: Epoch,
        sink: &mut impl VenueSink,
    ) -> Result<bool, Gap> {
        either!(self, shard => shard.on_committed(record, epoch, sink))
    }

    fn step(&mut self, window: &mut impl Sequencer, sink: &mut impl VenueSink) -> Progress {
        either!(self, shard => shard.step(window, sink))
    }
}

/// A shard and its way into the total order.
pub(crate) struct Seat {
    pub(crate) shard: AnyShard,
    window: Handle,
}

struct Outgoing {
    shard: ShardId,
    position: Position,
    state: Vec<u8>,
    sent: usize,
}

/// A venue's memory: gone when its process dies.
pub(crate) struct VenueNode {
    pub(crate) seats: Vec<Seat>,
    /// Next offset in each gateway's log.
    pub(crate) cursors: Vec<u64>,
    pub(crate) committed: CommittedStream,
    pacing: Pacing,
    outgoing: Option<Outgoing>,
    /// Bytes of a checkpoint handed out per step.
    piece_bytes: usize,
    pending_max: usize,
    /// Whether something waits that only time can bring.
    pub(crate) stalled: bool,
    pub(crate) counts: Counts,
    bug: Option<Bug>,
}

/// What happened in steps, for the summary.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) executed: u64,
    pub(crate) observed: u64,
    pub(crate) window_full: u64,
    pub(crate) too_far_behind: u64,
    pub(crate) awaits_body: u64,
}

struct Out<'a> {
    log: &'a mut Log<VenueEntry>,
    room: bool,
    bug: Option<Bug>,
}

impl VenueSink for Out<'_> {
    fn has_room(&mut self) -> bool {
        self.room
    }

    fn result(&mut self, at: ResultAt, request: &Request, outcome: &Outcome, events: &[Event]) {
        let mut events = events.to_vec();
        if self.bug == Some(Bug::WrongPrices) {
            events.iter_mut().for_each(defects::misprice);
        }
        self.log.append(VenueEntry::Result(Rc::new(Record {
            epoch: at.epoch,
            position: at.position,
            state_hash: at.state_hash,
            request: *request,
            outcome: *outcome,
            events,
        })));
    }
}

/// What a venue needs to start: the paper's join (section 4), every time.
pub(crate) struct Join<'a> {
    pub(crate) naive: bool,
    pub(crate) piece_bytes: usize,
    pub(crate) venue: VenueId,
    pub(crate) venues: u16,
    pub(crate) shards: Vec<ShardId>,
    pub(crate) instruments: &'a [Vec<Instrument>],
    pub(crate) windows: &'a [LocalWindow],
    /// Each gateway's mark: requests before it are answered. Read before the checkpoints.
    pub(crate) answered: Vec<u64>,
    pub(crate) checkpoints: Vec<&'a [StoredCheckpoint]>,
    pub(crate) quorum: usize,
    /// Positions of a window.
    pub(crate) window: usize,
    pub(crate) checkpoint_every: u64,
    /// Requests in flight at all gateways together: no more than these can be undecided.
    pub(crate) pending_max: usize,
    pub(crate) bug: Option<Bug>,
}

impl VenueNode {
    pub(crate) fn join(join: &Join<'_>) -> Self {
        let recorders = join.checkpoints.len();
        let mut replay_from = vec![u64::MAX; recorders];
        let (mut seats, mut reaches) = (Vec::new(), Vec::new());
        for (index, id) in join.shards.iter().enumerate() {
            let window = &join.windows[index];
            let of_shard = |stored: &&StoredCheckpoint| stored.shard == *id;
            let all = join.checkpoints.iter().flat_map(|stored| stored.iter()).filter(of_shard);
            let newest = all.max_by_key(|stored| stored.position);
            reaches.push(newest.map_or(0, |stored| stored.replay_from));
            let state = newest.map(|stored| stored.state.clone());
            let state = state.map(|state| match join.bug {
                Some(Bug::ForgetNames) => defects::without_names(&state),
                _ => state,
            });
            let shard = AnyShard::restore(join.naive, *id, &join.instruments[index], state.as_deref());
            for (from, stored) in replay_from.iter_mut().zip(&join.checkpoints) {
                let own = stored.iter().filter(of_shard).filter(|own| own.position <= shard.position());
                *from = (*from).min(own.max_by_key(|own| own.position).map_or(0, |own| own.replay_from));
            }
            seats.push(Seat { shard, window: Handle::new(window, join.window, join.bug) });
        }
        let mut committed = CommittedStream::new(seats.len(), recorders, join.quorum, replay_from);
        for (index, seat) in seats.iter().enumerate() {
            committed.start_at(index, seat.shard.position());
        }
        let mut pacing = Pacing::new(join.checkpoint_every, join.venue, join.venues, seats.len());
        for (shard, reach) in reaches.into_iter().enumerate() {
            pacing.on_checkpoint(shard, reach, executed(&seats));
        }
        Self {
            seats,
            pacing,
            cursors: join.answered.clone(),
            committed,
            outgoing: None,
            piece_bytes: join.piece_bytes,
            pending_max: join.pending_max,
            stalled: false,
            counts: Counts::default(),
            bug: join.bug,
        }
    }

    /// One duty cycle. Results lie in `log` afterwards, unpublished, if there is room.
    pub(crate) fn step(
        &mut self,
        log: &mut Log<VenueEntry>,
        room: bool,
        gateways: &[(&Log<Request>, u64)],
        recorders: &[&Log<RecorderEntry>],
        readable: &[u64],
    ) -> Result<(), String> {
        self.poll_gateways(gateways);
        self.step_shards(log, room)?;
        self.poll_committed(log, room, recorders, readable)?;
        if room {
            self.send_piece(log);
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
                let request = if wrong { defects::misread(request) } else { *request };
                self.seats[usize::from(request.shard.0)].shard.on_request(&request);
            }
            room -= (to - *cursor) as usize;
            *cursor = to;
        }
    }

    /// Requests received and not ordered, of all shards.
    pub(crate) fn pending_len(&self) -> usize {
        self.seats.iter().map(|seat| seat.shard.pending_len()).sum()
    }

    fn step_shards(&mut self, log: &mut Log<VenueEntry>, room: bool) -> Result<(), String> {
        self.stalled = false;
        for seat in &mut self.seats {
            let progress = seat.shard.step(&mut seat.window, &mut Out { log, room, bug: self.bug });
            self.counts.executed += progress.executed;
            self.stalled |= progress.stall.is_some() || seat.shard.pending_len() > 0;
            match progress.stall {
                Some(Stall::AwaitsBody(_)) => self.counts.awaits_body += 1,
                Some(Stall::WindowFull) => self.counts.window_full += 1,
                Some(Stall::TooFarBehind) => self.counts.too_far_behind += 1,
                Some(Stall::EpochOver) => return Err("a live venue found its epoch over".into()),
                Some(Stall::Overruled(position) | Stall::Stuck(position)) => {
                    return Err(format!("position {position} is void, and no request crashes here"));
                }
                Some(Stall::NoRoom) | None => {}
            }
        }
        self.consider_checkpoint();
        Ok(())
    }

    fn consider_checkpoint(&mut self) {
        if self.outgoing.is_some() {
            return;
        }
        let count = executed(&self.seats);
        let behind = self.seats.iter().any(|seat| seat.window.recorded() > seat.shard.position());
        let Some(index) = self.pacing.due(count, behind) else { return };
        let mut state = Vec::new();
        let shard = &mut self.seats[index].shard;
        let (shard, position) = either!(shard, shard => (shard.id(), shard.checkpoint(&mut state)));
        if self.bug == Some(Bug::CheckpointWithoutAnOrder) {
            state = defects::without_an_order(&state);
        }
        self.pacing.on_checkpoint(index, self.committed.reach(), count);
        self.outgoing = Some(Outgoing { shard, position, state, sent: 0 });
    }

    fn poll_committed(
        &mut self,
        log: &mut Log<VenueEntry>,
        room: bool,
        recorders: &[&Log<RecorderEntry>],
        readable: &[u64],
    ) -> Result<(), String> {
        let mut out = Out { log, room, bug: self.bug };
        let (seats, counts, pacing) = (&mut self.seats, &mut self.counts, &mut self.pacing);
        let mut broken = None;
        self.committed.poll(recorders, readable, |item| match item {
            Committed::Result { record, .. } => {
                let seat = &mut seats[usize::from(record.shard().0)];
                seat.window.raise_recorded(record.position.next());
                let (position, reason) = (record.position, record.outcome.reason);
                let recorded = Recorded { position, request: &record.request, reason };
                match seat.shard.on_committed(recorded, seat.window.epoch(), &mut out) {
                    Ok(executed) => counts.observed += u64::from(executed),
                    Err(gap) => broken = Some(format!("{gap:?} in the committed stream")),
                }
            }
            Committed::Shown { .. } | Committed::Known => {}
            Committed::CheckpointStored { shard, position, offset } => {
                let index = usize::from(shard.0);
                if position <= seats[index].shard.position() {
                    pacing.on_checkpoint(index, offset, executed(seats));
                }
            }
        });
        broken.map_or(Ok(()), Err)
    }

    fn send_piece(&mut self, log: &mut Log<VenueEntry>) {
        let Some(outgoing) = &mut self.outgoing else { return };
        let end = outgoing.state.len().min(outgoing.sent + self.piece_bytes);
        log.append(VenueEntry::Piece(Piece {
            shard: outgoing.shard,
            epoch: self.seats[usize::from(outgoing.shard.0)].window.epoch(),
            position: outgoing.position,
            total_bytes: outgoing.state.len(),
            start: outgoing.sent,
            bytes: outgoing.state[outgoing.sent..end].to_vec(),
        }));
        outgoing.sent = end;
        if end == outgoing.state.len() {
            self.outgoing = None;
        }
    }

    /// Whether a step is worth taking without new input.
    pub(crate) fn restless(&self) -> bool {
        self.stalled || self.outgoing.is_some()
    }
}

/// Positions executed over all shards.
fn executed(seats: &[Seat]) -> u64 {
    seats.iter().map(|seat| seat.shard.position().0).sum()
}
