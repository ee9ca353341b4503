//! A shard's replica on either book, and where one starts from.

use pares_book::{Book, FastBook, Instrument, NaiveBook};
use pares_sequencer::Sequencer;
use pares_types::{Epoch, Position, Request, ShardId};
use pares_venue::{Gap, Piece, Progress, Recorded, Shard, VenueSink};

use crate::bug::Bug;
use crate::build::Build;
use crate::defects;
use crate::record::StoredCheckpoint;

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

    pub(crate) fn suspect(&mut self, position: Position) {
        either!(self, shard => shard.suspect(position));
    }

    pub(crate) fn on_request(&mut self, request: &Request) {
        either!(self, shard => { shard.on_request(request); });
    }

    pub(crate) fn on_committed(
        &mut self,
        record: Recorded<'_>,
        epoch: Epoch,
        sink: &mut impl VenueSink,
    ) -> Result<bool, Gap> {
        either!(self, shard => shard.on_committed(record, epoch, sink))
    }

    pub(crate) fn step(&mut self, window: &mut impl Sequencer, sink: &mut impl VenueSink) -> Progress {
        either!(self, shard => shard.step(window, sink))
    }

    /// Begins a checkpoint of the present state; gives the next position to execute on it.
    pub(crate) fn begin_checkpoint(&mut self, state: &mut Vec<u8>) -> Position {
        either!(self, shard => shard.begin_checkpoint(state))
    }

    pub(crate) fn checkpoint_piece(&mut self, state: &mut Vec<u8>, bytes: usize) -> Piece {
        either!(self, shard => shard.checkpoint_piece(state, bytes))
    }
}

/// What a shard is restored from.
#[derive(Clone, Copy)]
pub(crate) struct Sources<'a> {
    pub(crate) naive: bool,
    pub(crate) instruments: &'a [Vec<Instrument>],
    /// By recorder.
    pub(crate) checkpoints: &'a [&'a [StoredCheckpoint]],
    pub(crate) build: Build,
    pub(crate) bug: Option<Bug>,
}

/// A shard from its newest checkpoint.
pub(crate) struct Restored {
    pub(crate) shard: AnyShard,
    /// By recorder: where its log must be read from to go on.
    pub(crate) replay_from: Vec<u64>,
    /// How far into the committed stream the checkpoint reaches.
    pub(crate) reach: u64,
}

impl Sources<'_> {
    /// The newest checkpoint at any recorder, or the beginning.
    pub(crate) fn restore(&self, id: ShardId) -> Restored {
        let of_shard = |stored: &&StoredCheckpoint| stored.shard == id;
        let all = self.checkpoints.iter().flat_map(|stored| stored.iter()).filter(of_shard);
        let newest = all.max_by_key(|stored| stored.position);
        let state = newest.map(|stored| match self.bug {
            Some(Bug::ForgetNames) => defects::without_names(&stored.state),
            Some(Bug::ForgetQuarantine) => defects::without_quarantine(&stored.state),
            _ => stored.state.clone(),
        });
        let instruments = &self.instruments[usize::from(id.0)];
        let shard = AnyShard::restore(self.naive, id, instruments, state.as_deref());
        let replay_from = self.checkpoints.iter().map(|stored| {
            let own = stored.iter().filter(of_shard).filter(|own| own.position <= shard.position());
            own.max_by_key(|own| own.position).map_or(0, |own| own.replay_from)
        });
        let (replay_from, reach) = (replay_from.collect(), newest.map_or(0, |stored| stored.replay_from));
        Restored { shard, replay_from, reach }
    }
}
