//! A shard's seat at a venue: its books, its way into the total order, and how both are restored.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use pares_book::{FastBook, Instrument};
use pares_log::Offset;
use pares_sequencer::{ArrivalOrder, Overruled, ProposeError, Sequencer, Verdict};
use pares_shm::{CountersReader, SharedWindow};
use pares_types::{Epoch, GatewayId, Position, RecorderId, Request, RequestId, ShardId};
use pares_venue::{Gap, Progress, Recorded, Shard};
use pares_wire::record::ResultRecord;

use super::out::Draft;
use super::rebuild::Rebuild;
use crate::checkpoints::{self, StoredCheckpoint};
use crate::committed::CommittedStream;
use crate::config::{Layout, SystemConfig};
use crate::crash::{self, Point};
use crate::{NodeError, gateway, wrong};

/// Checkpoints of all shards together that load in no time to speak of.
const USUAL_BYTES: u64 = 16 << 20;
/// What every byte beyond takes a venue that others leave half a processor.
const LOAD_NS_PER_BYTE: u64 = 40;

/// What decides the order.
pub(super) enum Order {
    Window(SharedWindow),
    Arrival(ArrivalOrder),
}

impl Order {
    /// Whether it tells a venue that has missed something what stands at its next position. The order of arrival
    /// grants any position to whatever is proposed.
    pub(super) fn knows_the_past(&self) -> bool {
        matches!(self, Self::Window(_))
    }
}

/// A shard's books, its way into the total order and what it has to hand out: all that a step needs.
pub(super) struct Bench {
    pub(super) shard: Shard<FastBook>,
    pub(super) order: Order,
    pub(super) draft: Draft,
}

impl Bench {
    fn step(&mut self) -> Progress {
        match &mut self.order {
            Order::Window(window) => self.shard.step(&mut Crashing(window), &mut self.draft),
            Order::Arrival(arrival) => self.shard.step(&mut Crashing(arrival), &mut self.draft),
        }
    }

    /// Takes a step. `None` if the matching engine panicked: the shard is then worth nothing any more.
    pub(super) fn step_or_fail(&mut self) -> Option<Progress> {
        catch_unwind(AssertUnwindSafe(|| self.step())).ok()
    }

    pub(super) fn recorded(&self) -> Position {
        match &self.order {
            Order::Window(window) => window.recorded(),
            Order::Arrival(arrival) => arrival.recorded(),
        }
    }

    fn raise_recorded(&mut self, to: Position) {
        match &mut self.order {
            Order::Window(window) => window.raise_recorded(to),
            Order::Arrival(arrival) => arrival.raise_recorded(to),
        }
    }

    pub(super) fn epoch(&self) -> Epoch {
        match &self.order {
            Order::Window(window) => window.epoch(),
            Order::Arrival(arrival) => arrival.epoch(),
        }
    }
}

/// A shard's place at a venue.
pub(super) struct ShardSeat {
    pub(super) id: ShardId,
    /// Away while a step is taken; gone when the matching engine failed.
    pub(super) bench: Option<Box<Bench>>,
    /// While it is gone.
    pub(super) rebuild: Option<Rebuild>,
    /// All below is executed and handed out, or followed.
    pub(super) reached: Position,
    pub(super) active: bool,
    /// How far into the committed stream the checkpoint it started from reaches.
    pub(super) restored_reach: Offset,
    /// What was recorded when this venue started: from here on it is a peer.
    pub(super) resynced_at: Position,
}

impl ShardSeat {
    /// Whether others have recorded positions that are not executed here yet.
    pub(super) fn is_behind(&self) -> bool {
        self.bench.as_ref().is_some_and(|bench| bench.recorded() > self.reached)
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
        let position = record.position();
        bench.raise_recorded(position.next());
        if position < self.reached {
            return Ok(Some(false));
        }
        let (request, reason) = (wrong::changed(record.request()?), record.outcome()?.reason);
        let recorded = Recorded { position, request: &request, reason };
        // The record's, not this life's: a recorder that misses it would take it for another than its peers have.
        let epoch = record.epoch();
        let follow = || bench.shard.on_committed(recorded, epoch, &mut bench.draft);
        let Ok(followed) = catch_unwind(AssertUnwindSafe(follow)) else {
            // Half a request may be in its books: it executes nothing more.
            self.bench = None;
            return Ok(None);
        };
        let executed = followed.map_err(|Gap { next, met }| NodeError::Gap { shard: self.id, next, met })?;
        self.reached = bench.shard.position();
        Ok(Some(executed))
    }
}

/// A sequencer with crash points around what it decides. A step proposes once, asks what is recorded once it has learnt
/// what was decided, and then executes.
struct Crashing<'a, S>(&'a mut S);

impl<S: Sequencer> Sequencer for Crashing<'_, S> {
    #[inline]
    fn propose(
        &mut self,
        first: Position,
        requests: &[RequestId],
        decided_max: usize,
        decided: &mut Vec<RequestId>,
    ) -> Result<(), ProposeError> {
        if requests.len() > 1 {
            let half = &requests[..requests.len() / 2];
            crash::after(Point::VenueHalfDecided, || {
                let _ = self.0.propose(first, half, decided_max, decided);
            });
        }
        let result = self.0.propose(first, requests, decided_max, decided);
        crash::at(Point::VenueDecided);
        result
    }

    #[inline]
    fn recorded(&self) -> Position {
        crash::at(Point::VenueExecuting);
        self.0.recorded()
    }

    #[inline]
    fn raise_recorded(&mut self, to: Position) {
        self.0.raise_recorded(to);
    }

    #[inline]
    fn is_void(&mut self, position: Position) -> bool {
        self.0.is_void(position)
    }

    #[inline]
    fn vouch(&mut self, from: Position, to: Position) -> Result<(), Overruled> {
        self.0.vouch(from, to)
    }

    fn void(&mut self, position: Position) -> Verdict {
        self.0.void(position)
    }

    #[inline]
    fn epoch(&self) -> Epoch {
        self.0.epoch()
    }

    #[inline]
    fn won(&self) -> u64 {
        self.0.won()
    }
}

/// Positions executed over all shards.
pub(super) fn executed(seats: &[ShardSeat]) -> u64 {
    seats.iter().map(|seat| seat.reached.0).sum()
}

/// Up to where a gateway's requests are all answered; the log's beginning if the gateway says nothing.
pub(super) fn answered_offset(layout: &Layout, gateway: GatewayId) -> Offset {
    let counters = CountersReader::open(&layout.counters(&format!("gateway-{gateway}"))).ok();
    Offset(counters.and_then(|counters| counters.get(gateway::ANSWERED_OFFSET)).unwrap_or_default())
}

/// Lets whoever waits for this processor have it. Long stretches without a system call are not interrupted
/// before the next tick of the scheduler, milliseconds later, whatever the priorities.
pub(super) fn give_way() {
    std::thread::yield_now();
}

/// A shard from its newest checkpoint at any recorder, not below `least`, with where each recorder's log must be read from to
/// go on.
pub(super) struct Restored {
    pub(super) shard: Shard<FastBook>,
    pub(super) replay_from: BTreeMap<RecorderId, Offset>,
    /// How far into the committed stream its checkpoint reaches.
    pub(super) reach: Offset,
}

/// How much longer than usual loading the newest checkpoints may take, because they are large.
pub(super) fn time_to_load(config: &SystemConfig, layout: &Layout) -> Result<Duration, NodeError> {
    let newest = |shard: ShardId| {
        let all = config.recorder_ids().filter_map(move |recorder| {
            checkpoints::checkpoints(&layout.checkpoints(recorder), shard).into_iter().next()
        });
        all.map(|checkpoint| checkpoint.bytes()).max().unwrap_or_default()
    };
    let bytes: u64 = config.shards()?.into_keys().map(newest).sum();
    Ok(Duration::from_nanos(bytes.saturating_sub(USUAL_BYTES) * LOAD_NS_PER_BYTE))
}

/// Restores a shard; without a checkpoint it begins at the beginning.
pub(super) fn restore_shard(
    config: &SystemConfig,
    layout: &Layout,
    shard: ShardId,
    instruments: &[Instrument],
) -> Restored {
    let stored: Vec<_> = config
        .recorder_ids()
        .flat_map(|recorder| {
            let found = checkpoints::checkpoints(&layout.checkpoints(recorder), shard);
            found.into_iter().map(move |checkpoint| (recorder, checkpoint))
        })
        .collect();
    let (state, reach) =
        newest(shard, &stored).unwrap_or_else(|| (Shard::new(shard, instruments), Offset::START));
    let replay_from = config.recorder_ids().map(|recorder| {
        // A recorder whose newest checkpoint is not too new tells where its log must be read from.
        let fits = |c: &StoredCheckpoint| c.position() <= state.position();
        let own = stored.iter().filter(|(of, c)| *of == recorder && fits(c)).map(|(_, c)| c);
        let own = own.max_by_key(|c| c.position());
        (recorder, own.map_or(Offset::START, StoredCheckpoint::replay_from))
    });
    let replay_from = replay_from.collect();
    Restored { shard: state, replay_from, reach }
}

/// The shard from the newest of its checkpoints that can be read and restored, and that checkpoint's reach. One at a time is in
/// memory.
fn newest(shard: ShardId, stored: &[(RecorderId, StoredCheckpoint)]) -> Option<(Shard<FastBook>, Offset)> {
    let mut newest: Vec<_> = stored.iter().map(|(_, checkpoint)| checkpoint).collect();
    newest.sort_by_key(|checkpoint| std::cmp::Reverse(checkpoint.position()));
    newest.into_iter().find_map(|checkpoint| {
        let state = checkpoint.read(give_way)?;
        let restored = Shard::restore(shard, &state).ok()?;
        give_way();
        Some((restored, checkpoint.replay_from()))
    })
}

/// Each shard from its newest checkpoint, and the committed stream from there.
pub(super) fn restore(
    config: &SystemConfig,
    layout: &Layout,
    mut draft: impl FnMut() -> Draft,
) -> Result<(Vec<ShardSeat>, CommittedStream), NodeError> {
    let mut seats = Vec::new();
    let mut replay_from: BTreeMap<RecorderId, Offset> =
        config.recorder_ids().map(|id| (id, Offset(u64::MAX))).collect();
    for (shard, instruments) in config.shards()? {
        let restored = restore_shard(config, layout, shard, &instruments);
        for (recorder, from) in &mut replay_from {
            *from = (*from).min(restored.replay_from[recorder]);
        }
        crash::at(Point::VenueRestored);
        give_way();
        let bench = Bench { shard: restored.shard, order: order(config, layout, shard)?, draft: draft() };
        seats.push(ShardSeat {
            id: shard,
            resynced_at: bench.recorded(),
            reached: bench.shard.position(),
            bench: Some(Box::new(bench)),
            rebuild: None,
            active: true,
            restored_reach: restored.reach,
        });
    }
    let mut committed = CommittedStream::new(config, layout, |recorder| replay_from[&recorder])?;
    seats.iter().for_each(|seat| committed.start_at(seat.id, seat.reached));
    Ok((seats, committed))
}

/// A new handle on what decides a shard's order.
pub(super) fn order(config: &SystemConfig, layout: &Layout, shard: ShardId) -> Result<Order, NodeError> {
    let window = SharedWindow::open(&layout.window(shard))?;
    Ok(match config.sequencer {
        true => Order::Window(window),
        false => Order::Arrival(ArrivalOrder::new(config.window as usize, window.epoch(), window.first())),
    })
}
