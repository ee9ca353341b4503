//! A shard's seat at a venue: its books, and its way into the total order.

use pares_book::FastBook;
use pares_config::SystemConfig;
use pares_log::Offset;
use pares_sequencer::{ArrivalOrder, Sequencer};
use pares_types::{Epoch, Position, Request, ShardId};
use pares_venue::{Gap, Progress, Recorded, Shard};
use pares_wire::record::ResultRecord;

use super::observed::Observed;
use super::out::Draft;
use super::rebuild::Rebuild;
use super::watch::Place;
use crate::epoch::window;
use crate::world::World;
use crate::{NodeError, epoch};

/// What decides the order.
pub(super) enum OrderSource<S> {
    Window(S),
    Observed(Observed<S>),
    Arrival(ArrivalOrder),
}

impl<S: Sequencer> OrderSource<S> {
    /// A new handle on what decides a shard's order.
    pub(super) fn open<W: World<Window = S>>(
        world: &W,
        config: &SystemConfig,
        shard: ShardId,
    ) -> Result<Self, NodeError> {
        let window = window(world, shard)?;
        if !config.hosts.is_empty() {
            return Ok(Self::Observed(Observed::new(window, epoch::of_records(world, config)?)));
        }
        Ok(match config.sequencer {
            true => Self::Window(window),
            // Nobody decides anything in the window, so what is recorded there is what was when this life of it began.
            false => {
                Self::Arrival(ArrivalOrder::new(config.window as usize, window.epoch(), window.recorded()))
            }
        })
    }

    /// Whether it tells a venue that has missed something what stands at its next position. The order of arrival
    /// grants any position to whatever is proposed.
    pub(super) fn knows_the_past(&self) -> bool {
        !matches!(self, Self::Arrival(_))
    }

    pub(super) fn recorded(&self) -> Position {
        match self {
            Self::Window(window) => window.recorded(),
            Self::Observed(observed) => observed.recorded(),
            Self::Arrival(arrival) => arrival.recorded(),
        }
    }

    pub(super) fn raise_recorded(&mut self, to: Position) {
        match self {
            Self::Window(window) => window.raise_recorded(to),
            Self::Observed(observed) => observed.raise_recorded(to),
            Self::Arrival(arrival) => arrival.raise_recorded(to),
        }
    }

    pub(super) fn epoch(&self) -> Epoch {
        match self {
            Self::Window(window) => window.epoch(),
            Self::Observed(observed) => observed.epoch(),
            Self::Arrival(arrival) => arrival.epoch(),
        }
    }
}

/// What came of a step; nothing if the matching engine panicked, at the place it says.
pub(super) type Stepped = (Option<Progress>, Option<Place>);

/// A shard's books, its way into the total order and what it has to hand out: all that a step needs.
pub(super) struct ShardStep<W: World> {
    pub(super) world: W,
    pub(super) shard: Shard<FastBook>,
    pub(super) order: OrderSource<W::Window>,
    pub(super) draft: Draft<W>,
}

impl<W: World> ShardStep<W> {
    /// Takes a step. If the matching engine panics, the shard is worth nothing any more.
    pub(super) fn step(&mut self) -> Stepped {
        let Self { world, shard, order, draft } = self;
        let progress = world.attempt(|| match order {
            OrderSource::Window(window) => shard.step(window, draft),
            OrderSource::Observed(observed) => shard.step(observed, draft),
            OrderSource::Arrival(arrival) => shard.step(arrival, draft),
        });
        let at = draft.watch.place();
        draft.watch.end();
        (progress, at)
    }
}

/// A shard's place at a venue.
pub(super) struct ShardSeat<W: World> {
    pub(super) id: ShardId,
    /// Its place among the shards of the system.
    pub(super) rank: usize,
    /// Away while a step is taken; gone when the matching engine failed.
    pub(super) bench: Option<Box<ShardStep<W>>>,
    /// While it is gone.
    pub(super) rebuild: Option<Rebuild<W>>,
    /// All below is executed and handed out, or followed.
    pub(super) reached: Position,
    pub(super) active: bool,
    /// How far into the committed stream the checkpoint it started from reaches.
    pub(super) restored_reach: Offset,
    /// What was recorded when this venue started: from here on it is a peer.
    pub(super) resynced_at: Position,
}

impl<W: World> ShardSeat<W> {
    /// Whether others have recorded positions that are not executed here yet.
    pub(super) fn is_behind(&self) -> bool {
        self.bench.as_ref().is_some_and(|bench| bench.order.recorded() > self.reached)
    }

    /// Received requests that are not ordered yet.
    pub(super) fn pending_len(&self) -> usize {
        self.bench.as_ref().map_or(0, |bench| bench.shard.pending_len())
    }

    pub(super) fn on_request(&mut self, request: &Request) {
        if let Some(bench) = &mut self.bench {
            self.active |= bench.shard.on_request(request);
        }
    }

    /// Takes a record of the committed stream. Says whether it was executed; `None` if the matching engine panicked at it.
    pub(super) fn on_committed(&mut self, record: &ResultRecord<'_>) -> Result<Option<bool>, NodeError> {
        let Some(bench) = &mut self.bench else { return Ok(Some(false)) };
        assert_eq!(bench.shard.position(), self.reached, "between steps a shard stands where its seat says");
        let position = record.position();
        if position < self.reached {
            return Ok(Some(false));
        }
        let (request, reason) = (record.request()?, record.outcome()?.reason);
        let recorded = Recorded { position, request: &request, reason };
        // The record's, not this life's: a recorder that misses it would take it for another than its peers have.
        let epoch = record.epoch();
        let ShardStep { world, shard, draft, .. } = &mut **bench;
        let Some(followed) = world.attempt(|| shard.on_committed(recorded, epoch, draft)) else {
            // Half a request may be in its books: it executes nothing more.
            self.bench = None;
            return Ok(None);
        };
        let executed = followed.map_err(|Gap { next, met }| NodeError::Gap { shard: self.id, next, met })?;
        assert_eq!(bench.shard.position(), position.next(), "a record moves its shard on by one position");
        self.reached = bench.shard.position();
        Ok(Some(executed))
    }
}

pub(super) fn executed<W: World>(seats: &[ShardSeat<W>]) -> u64 {
    seats.iter().map(|seat| seat.reached.0).sum()
}
