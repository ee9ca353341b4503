//! A shard's seat at a venue: its books, its way into the total order, and how both are restored.

use std::collections::BTreeMap;
use std::time::Duration;

use pares_book::FastBook;
use pares_log::Offset;
use pares_sequencer::{ArrivalOrder, ProposeError, Sequencer};
use pares_shm::{CountersReader, SharedWindow};
use pares_types::{Epoch, GatewayId, Position, RecorderId, RequestId, ShardId};
use pares_venue::Shard;

use super::out::Out;
use crate::checkpoints::{self, StoredCheckpoint};
use crate::committed::CommittedStream;
use crate::config::{Layout, SystemConfig};
use crate::crash::{self, Point};
use crate::{NodeError, gateway};

/// Checkpoints of all shards together that load in no time to speak of.
const USUAL_BYTES: u64 = 16 << 20;
/// What every byte beyond takes a venue that others leave half a processor.
const LOAD_NS_PER_BYTE: u64 = 40;

/// What decides the order.
pub(super) enum Order {
    Window(SharedWindow),
    Arrival(ArrivalOrder),
}

/// The shard's books and its way into the total order.
pub(super) struct ShardSeat {
    pub(super) shard: Shard<FastBook>,
    pub(super) order: Order,
    pub(super) active: bool,
    /// How far into the committed stream the checkpoint it started from reaches.
    pub(super) restored_reach: Offset,
    /// What was recorded when this venue started: from here on it is a peer.
    pub(super) resynced_at: Position,
}

impl Order {
    pub(super) fn recorded(&self) -> Position {
        match self {
            Self::Window(window) => window.recorded(),
            Self::Arrival(arrival) => arrival.recorded(),
        }
    }

    /// Whether it tells a venue that has missed something what stands at its next position. The order of arrival
    /// grants any position to whatever is proposed.
    pub(super) fn knows_the_past(&self) -> bool {
        matches!(self, Self::Window(_))
    }
}

impl ShardSeat {
    pub(super) fn step(&mut self, out: &mut Out) -> pares_venue::Progress {
        match &mut self.order {
            Order::Window(window) => self.shard.step(&mut Crashing(window), out),
            Order::Arrival(arrival) => self.shard.step(&mut Crashing(arrival), out),
        }
    }

    pub(super) fn raise_recorded(&mut self, to: Position) {
        match &mut self.order {
            Order::Window(window) => window.raise_recorded(to),
            Order::Arrival(arrival) => arrival.raise_recorded(to),
        }
    }

    /// Whether others have recorded positions that are not executed here yet.
    pub(super) fn is_behind(&self) -> bool {
        self.order.recorded() > self.shard.position()
    }

    pub(super) fn epoch(&self) -> Epoch {
        match &self.order {
            Order::Window(window) => window.epoch(),
            Order::Arrival(arrival) => arrival.epoch(),
        }
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
    seats.iter().map(|seat| seat.shard.position().0).sum()
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

/// Each shard from its newest checkpoint at any recorder, and the committed stream from there.
pub(super) fn restore(
    config: &SystemConfig,
    layout: &Layout,
) -> Result<(Vec<ShardSeat>, CommittedStream), NodeError> {
    let mut seats = Vec::new();
    let mut replay_from: BTreeMap<RecorderId, Offset> =
        config.recorder_ids().map(|id| (id, Offset(u64::MAX))).collect();
    for (shard, instruments) in config.shards()? {
        let stored: Vec<_> = config
            .recorder_ids()
            .flat_map(|recorder| {
                let found = checkpoints::checkpoints(&layout.checkpoints(recorder), shard);
                found.into_iter().map(move |checkpoint| (recorder, checkpoint))
            })
            .collect();
        let (shard_state, restored_reach) =
            newest(shard, &stored).unwrap_or_else(|| (Shard::new(shard, &instruments), Offset::START));
        for (recorder, from) in &mut replay_from {
            // A recorder whose newest checkpoint is not too new tells where its log must be read from.
            let fits = |c: &StoredCheckpoint| c.position() <= shard_state.position();
            let own = stored.iter().filter(|(of, c)| of == recorder && fits(c)).map(|(_, c)| c);
            let own = own.max_by_key(|c| c.position());
            *from = (*from).min(own.map_or(Offset::START, StoredCheckpoint::replay_from));
        }
        crash::at(Point::VenueRestored);
        give_way();
        let order = order(config, layout, shard)?;
        seats.push(ShardSeat {
            resynced_at: order.recorded(),
            shard: shard_state,
            order,
            active: true,
            restored_reach,
        });
    }
    let mut committed = CommittedStream::new(config, layout, |recorder| replay_from[&recorder])?;
    seats.iter().for_each(|seat| committed.start_at(seat.shard.id(), seat.shard.position()));
    Ok((seats, committed))
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

fn order(config: &SystemConfig, layout: &Layout, shard: ShardId) -> Result<Order, NodeError> {
    let window = SharedWindow::open(&layout.window(shard))?;
    Ok(match config.sequencer {
        true => Order::Window(window),
        false => Order::Arrival(ArrivalOrder::new(config.window as usize, window.epoch(), window.first())),
    })
}
