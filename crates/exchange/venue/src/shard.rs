//! One shard at one venue: its place in the total order, its books, and what they lead to.

use pares_book::{Book, Instrument, Market, Pause};
use pares_sequencer::{Overruled, ProposeError, Sequencer, Voiding};
use pares_stream::Told;
use pares_types::{
    Command, Epoch, Event, HASH_EVERY, InstrumentId, NetPositions, Outcome, Position, Reason, Refuser,
    Request, RequestId, ShardId, Status,
};

use crate::CheckpointError;
use crate::checkpoint::{self, Piece, State, Taking};
use crate::notes::Notes;
use crate::ordering::Ordering;
use crate::progress::{Progress, ResultAt, Stall, VenueSink};

/// Requests proposed in one step: the batch is what is pending, up to this, so that one shard
/// with a long queue cannot keep the others waiting.
pub const BATCH_MAX: usize = 256;

/// A record of the committed stream, as far as conforming to it is concerned.
#[derive(Clone, Copy, Debug)]
pub struct Recorded<'a> {
    /// Its place in the shard's total order.
    pub position: Position,
    /// The request there.
    pub request: &'a Request,
    /// The reason in its outcome: [`Reason::Void`] says that a new request was never executed.
    pub reason: Reason,
}

/// A shard's replica.
pub struct Shard<B> {
    id: ShardId,
    ordering: Ordering,
    pub(crate) notes: Notes,
    pub(crate) market: Market<B>,
    /// Where the matching engine failed before.
    suspect: Option<Position>,
    events: Vec<Event>,
    batch: Vec<RequestId>,
    decided: Vec<RequestId>,
    /// A checkpoint under way.
    taking: Option<Taking>,
}

impl<B: Book> Shard<B> {
    /// A shard at the start of its life.
    ///
    /// # Panics
    /// As [`Market::new`].
    #[must_use]
    pub fn new(id: ShardId, instruments: &[Instrument]) -> Self {
        Self::build(id, Ordering::new(), Notes::new(), Market::new(instruments))
    }

    /// A shard as it was when the checkpoint was taken, with the instruments it had then.
    ///
    /// # Errors
    /// If the bytes are no checkpoint of this shard, or the state they give is not the one saved.
    pub fn restore(id: ShardId, bytes: &[u8]) -> Result<Self, CheckpointError> {
        let State { position, through, notes, market, state_hash } = checkpoint::decode(id, bytes)?;
        let shard = Self::build(id, Ordering::resume(position, &through), notes, market);
        match shard.state_hash() {
            restored if restored == state_hash => Ok(shard),
            restored => Err(CheckpointError::HashDiffers { restored, saved: state_hash }),
        }
    }

    fn build(id: ShardId, ordering: Ordering, notes: Notes, market: Market<B>) -> Self {
        Self {
            id,
            ordering,
            notes,
            market,
            suspect: None,
            events: Vec::with_capacity(64),
            batch: Vec::with_capacity(BATCH_MAX),
            decided: Vec::with_capacity(2 * BATCH_MAX),
            taking: None,
        }
    }

    /// Which shard.
    #[must_use]
    pub fn id(&self) -> ShardId {
        self.id
    }

    /// The next position to execute.
    #[must_use]
    pub fn position(&self) -> Position {
        self.ordering.next()
    }

    /// Received requests that are not ordered yet.
    #[must_use]
    pub fn pending_len(&self) -> usize {
        self.ordering.pending_len()
    }

    /// The book of an instrument of this shard.
    #[must_use]
    pub fn book(&self, instrument: InstrumentId) -> Option<&B> {
        self.market.book(instrument)
    }

    /// The books, in ascending order of instrument id.
    #[must_use]
    pub fn books(&self) -> &[B] {
        self.market.books()
    }

    /// The books and what concerns them all.
    #[must_use]
    pub fn market(&self) -> &Market<B> {
        &self.market
    }

    /// A digest of the whole state: equal at equal positions on every replica, or something is broken.
    #[must_use]
    pub fn state_hash(&self) -> u64 {
        let mut hash = mix(self.ordering.next().0);
        for (gateway, sequence) in self.ordering.through() {
            hash = mix(hash ^ mix(u64::from(gateway.0) << 48 ^ sequence));
        }
        for instrument in self.notes.quarantine.instruments() {
            hash = mix(hash ^ mix(u64::from(instrument.0) ^ 1 << 63));
        }
        hash = mix(hash ^ self.notes.register.digest());
        hash = mix(hash ^ self.notes.operator_stamp_max.0);
        mix(hash ^ self.market.state_hash())
    }

    /// What members bought on the business day, less what they sold.
    #[must_use]
    pub fn nets(&self) -> NetPositions {
        self.notes.positions.written()
    }

    /// The instruments that take no requests since one of theirs was declared void, in ascending order; 0 is the whole shard.
    #[must_use]
    pub fn quarantined(&self) -> &[InstrumentId] {
        self.notes.quarantine.instruments()
    }

    /// Remembers that the matching engine failed at `position`: when it is next, it is not executed again but asked to be
    /// void. For a shard that was restored after the failure.
    pub fn suspect(&mut self, position: Position) {
        self.suspect = Some(position);
    }

    /// Takes a request in from its gateway's log, in the log's order. Says whether it was new.
    ///
    /// # Panics
    /// If the request belongs to another shard.
    pub fn on_request(&mut self, request: &Request) -> bool {
        assert_eq!(request.shard, self.id, "requests are routed by shard");
        self.ordering.on_request(request)
    }

    /// Takes a record of the committed stream: executes it if it is next. Says whether it was; records of positions already
    /// executed are skipped. The result is known to all and not handed out, except where hashes are compared: every
    /// [`HASH_EVERY`]th is, under `epoch`, if the sink has room.
    ///
    /// # Errors
    /// [`Gap`] if the record is beyond the next position: replay from a checkpoint. Nothing changed.
    ///
    /// # Panics
    /// If the record contradicts what the window decided (invariant I1).
    pub fn on_committed(
        &mut self,
        record: Recorded<'_>,
        epoch: Epoch,
        sink: &mut impl VenueSink,
    ) -> Result<bool, Gap> {
        let Recorded { position, request, reason } = record;
        let next = self.ordering.next();
        if position < next {
            return Ok(false);
        }
        if position > next {
            return Err(Gap { next, met: position });
        }
        self.ordering.on_committed(request.id);
        let outcome = self.execute(position, request, reason, sink);
        if position.0.is_multiple_of(HASH_EVERY) && sink.has_room() {
            self.hand_out(position, epoch, request, &outcome, sink);
        }
        sink.executed();
        Ok(true)
    }

    /// Proposes what is pending, learns what was decided and executes it. Never waits; bounded by
    /// [`BATCH_MAX`] proposals.
    pub fn step(&mut self, sequencer: &mut impl Sequencer, sink: &mut impl VenueSink) -> Progress {
        let mut progress = Progress { executed: 0, won: 0, stall: None };
        if !sink.has_room() {
            progress.stall = Some(Stall::NoRoom);
            return progress;
        }
        progress.stall = self.propose(sequencer, &mut progress.won);
        let from = self.ordering.next();
        let stuck = self.execute_decided(sequencer, sink);
        progress.executed = self.ordering.next().0 - from.0;
        if let Some(id) = self.ordering.awaited() {
            progress.stall = Some(Stall::AwaitsBody(id));
        }
        let vouched = match progress.executed {
            0 => Ok(()),
            _ => sequencer.vouch(from, self.ordering.next()),
        };
        match (stuck, vouched) {
            (_, Err(Overruled { position })) => progress.stall = Some(Stall::Overruled(position)),
            (Some(position), Ok(())) => progress.stall = Some(Stall::Stuck(position)),
            (None, Ok(())) => {}
        }
        progress
    }

    /// Executes all that is decided and here. Gives the position it failed at before and cannot get void.
    fn execute_decided(
        &mut self,
        sequencer: &mut impl Sequencer,
        sink: &mut impl VenueSink,
    ) -> Option<Position> {
        let recorded = sequencer.recorded();
        let from = self.ordering.next();
        while self.ordering.is_next_here() {
            let position = self.ordering.next();
            if self.suspect == Some(position) && !self.is_cleared(from, sequencer) {
                return Some(position);
            }
            let settled = if sequencer.is_void(position) { Reason::Void } else { Reason::None };
            let Some(request) = self.ordering.take_next() else { break };
            let outcome = self.execute(position, &request, settled, sink);
            // What is recorded is not sent again (paper 1 section 3, "observe"), except where hashes are compared:
            // there the recorders want to hear from everyone.
            if position >= recorded || position.0.is_multiple_of(HASH_EVERY) {
                self.hand_out(position, sequencer.epoch(), &request, &outcome, sink);
            }
            sink.executed();
        }
        None
    }

    /// Whether the next position, at which the matching engine failed before, is void by now.
    fn is_cleared(&mut self, from: Position, sequencer: &mut impl Sequencer) -> bool {
        let position = self.ordering.next();
        // Who is overruled will hear of it when it vouches for the whole step.
        let cleared = sequencer.vouch(from, position).is_ok() && sequencer.void(position) == Voiding::Void;
        if cleared {
            self.suspect = None;
        }
        cleared
    }

    fn propose(&mut self, sequencer: &mut impl Sequencer, won: &mut u64) -> Option<Stall> {
        self.ordering.proposals(BATCH_MAX, &mut self.batch);
        if self.batch.is_empty() {
            return None;
        }
        self.decided.clear();
        let first = self.ordering.first_undecided();
        let won_before = sequencer.won();
        let result = sequencer.propose(first, &self.batch, 2 * BATCH_MAX, &mut self.decided);
        *won = sequencer.won() - won_before;
        self.ordering.on_decided(&self.decided);
        match result {
            Ok(()) => None,
            Err(ProposeError::WindowFull { .. }) => Some(Stall::WindowFull),
            Err(ProposeError::TooFarBehind { .. }) => Some(Stall::TooFarBehind),
            Err(ProposeError::EpochOver { .. }) => Some(Stall::EpochOver),
        }
    }

    fn hand_out(
        &mut self,
        position: Position,
        epoch: Epoch,
        request: &Request,
        outcome: &Outcome,
        sink: &mut impl VenueSink,
    ) {
        let state_hash = position.0.is_multiple_of(HASH_EVERY).then(|| {
            self.market.refresh_hash();
            self.state_hash()
        });
        let at = ResultAt { shard: self.id, epoch, position, state_hash };
        sink.result(at, request, outcome, &self.events);
    }

    fn execute(
        &mut self,
        position: Position,
        request: &Request,
        settled: Reason,
        sink: &mut impl VenueSink,
    ) -> Outcome {
        self.events.clear();
        let outcome = match self.refusal(request, settled) {
            Some(reason) => self.market.refuse(request, reason),
            None => {
                self.market.prepare(request, &mut || sink.give_way());
                sink.executing(self.id, position, request);
                self.apply(request)
            }
        };
        debug_assert!(
            outcome.status != Status::Refused || outcome.reason.refuser().is_some_and(Refuser::is_shard),
            "{} is no shard's",
            outcome.reason
        );
        let told = Told { position, request, outcome: &outcome, events: &self.events };
        told.count(&mut self.notes.numbers, &mut self.notes.positions, |_, _, _| ());
        outcome
    }

    fn apply(&mut self, request: &Request) -> Outcome {
        if let Err(reason) = self.notes.check_overtaken(request) {
            return self.market.refuse(request, reason);
        }
        if let Some(reason) = self.notes.quarantine.refusal(request) {
            return self.market.refuse(request, reason);
        }
        match &request.command {
            Command::Register(change) => self.change_register(request, change),
            _ => self.market.apply(request, &mut self.events),
        }
    }

    /// Writes the state into `out` (emptied first) and says at which position it was taken: the
    /// next one to execute on it. Takes as long as the state is large; gives up a checkpoint under way.
    pub fn checkpoint(&mut self, out: &mut Vec<u8>) -> Position {
        let position = self.begin_checkpoint(out);
        assert_eq!(self.checkpoint_piece(out, usize::MAX, &mut || ()), Piece::Last, "all of it fits");
        position
    }

    /// Begins a checkpoint of the state as it is now: writes what comes before the books into `out` (emptied first) and says at
    /// which position that is, the next one to execute on it. [`checkpoint_piece`](Self::checkpoint_piece) gives the rest, whatever
    /// is executed meanwhile; a book is kept as it was before it first changes. A checkpoint under way is given up.
    pub fn begin_checkpoint(&mut self, out: &mut Vec<u8>) -> Position {
        let position = self.ordering.next();
        self.market.refresh_hash();
        let hash = self.state_hash();
        let through: Vec<_> = self.ordering.through().collect();
        let (place, through) = ((self.id, position), through.into_iter());
        self.taking = Some(Taking::begin(out, place, through, &self.notes, &mut self.market, hash));
        position
    }

    /// Writes the next `bytes` of the checkpoint under way behind what is in `out`: whole books, so the last of them may reach
    /// beyond. `pause` is called every now and then.
    pub fn checkpoint_piece(&mut self, out: &mut Vec<u8>, bytes: usize, pause: Pause<'_>) -> Piece {
        let Some(taking) = &mut self.taking else { return Piece::NoCheckpoint };
        let piece = taking.piece(out, &mut self.market, bytes, pause);
        if piece != Piece::Part {
            self.taking = None;
        }
        piece
    }

    /// Gives up a checkpoint under way, and the memory it takes.
    pub fn abandon_checkpoint(&mut self) {
        self.taking = None;
        self.market.end_copy();
    }
}

/// A record beyond the next position: something before it was missed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// The next position to execute.
    pub next: Position,
    /// The record's.
    pub met: Position,
}

/// The finaliser of `SplitMix64`: every input bit reaches every output bit.
fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    value ^ (value >> 31)
}
