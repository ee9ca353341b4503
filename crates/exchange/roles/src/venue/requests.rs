//! The gateways' logs as a venue reads them.
//!
//! Requests are what other nodes wrote, so nothing in them may stop a venue. What cannot be read is skipped, counted, and its
//! gateway asked to repair it: should another venue have read it in time, the record brings it here.
//!
//! A request of a shard that only others execute is skipped by its place alone. What is damaged there is met by those others: they
//! read a shard's number as this venue does, and all that bears the number of one of theirs they check.
//!
//! Each log is joined midway, where all before is answered. The gateway says where that is by a counter, and counters outlive
//! everything, so a mark of an earlier life of the windows is no mark: what was answered then need not be in the record any more
//! (a disk was lost, or power), and requests skipped would never be ordered.

use pares_config::{NodeId, SystemConfig};
use pares_log::Offset;
use pares_types::{Epoch, GatewayId, Position, Request, ShardId};
use pares_wire::record::{RequestRecord, is_of_fix_session, request_shard};

use crate::inlet::LogCursor;
use crate::world::World;

/// What a venue knows of a shard that others execute and it does not: all that it needs.
pub(super) const ELSEWHERE: Position = Position(u64::MAX);

/// The counter of a gateway that says up to where in its log all requests are answered.
pub const ANSWERED_OFFSET_COUNTER: &str = "answered_offset";
/// The counter of a gateway that says of which epoch the former is.
pub const EPOCH_COUNTER: &str = "epoch";

/// Up to where a gateway's requests are all answered; the log's beginning unless the gateway says so in this epoch.
pub(super) fn answered_offset<W: World>(world: &W, gateway: GatewayId, epoch: Epoch) -> Offset {
    let name = NodeId::Gateway(gateway).to_string();
    if world.counter(&name, EPOCH_COUNTER) != Some(epoch.0.into()) {
        return Offset::START;
    }
    Offset(world.counter(&name, ANSWERED_OFFSET_COUNTER).unwrap_or_default())
}

/// All gateways' logs, each from where the gateway's requests are not all answered.
pub(super) struct Requests<W: World> {
    world: W,
    epoch: Epoch,
    inlets: Vec<(GatewayId, LogCursor<W>)>,
    /// Whether there are any of shards that are [`ELSEWHERE`].
    skips: bool,
}

impl<W: World> Requests<W> {
    /// As [`LogCursor::look`], for every gateway's log.
    pub(super) fn look(&mut self) {
        self.inlets.iter_mut().for_each(|(_, inlet)| inlet.tail.look());
    }

    pub(super) fn new(world: &W, config: &SystemConfig, epoch: Epoch, known: &[Position]) -> Self {
        let inlet = |gateway| {
            let from = answered_offset(world, gateway, epoch);
            (gateway, LogCursor::new(world, NodeId::Gateway(gateway), from))
        };
        let inlets = config.gateway_ids().map(inlet).collect();
        let mut requests = Self { world: world.clone(), epoch, inlets, skips: false };
        requests.follow(known);
        requests
    }

    /// Other shards may be [`ELSEWHERE`] from now on.
    pub(super) fn follow(&mut self, known: &[Position]) {
        self.skips = known.contains(&ELSEWHERE);
    }

    /// Hands at most `max` requests of each gateway to `take`, which says whether it knows the shard, but for those of shards that are [`ELSEWHERE`]
    /// by what is `known`. Says how many records were read.
    pub(super) fn poll(
        &mut self,
        max: usize,
        known: &[Position],
        mut take: impl FnMut(&Request) -> bool,
    ) -> usize {
        let elsewhere = if self.skips { known } else { &[] };
        let inlets = self.inlets.iter_mut();
        inlets.map(|(gateway, inlet)| poll(*gateway, inlet, (max, elsewhere), &mut take)).sum()
    }

    /// Records, or stretches of a log, that were skipped because nobody can read them.
    pub(super) fn damaged(&self) -> u64 {
        self.inlets.iter().map(|(_, inlet)| inlet.damaged()).sum()
    }

    /// How many gateways' logs cannot be read just now.
    pub(super) fn unreadable(&self) -> usize {
        self.inlets.iter().filter(|(_, inlet)| inlet.tail.is_unreadable()).count()
    }

    /// Whether requests were skipped, since this was last asked, because their gateway released them.
    pub(super) fn take_skipped(&mut self) -> bool {
        self.inlets.iter_mut().fold(false, |skipped, (_, inlet)| inlet.tail.take_skipped() | skipped)
    }

    /// Where to read from again if everything read is lost.
    pub(super) fn answered(&self) -> Vec<Offset> {
        self.inlets.iter().map(|&(gateway, _)| answered_offset(&self.world, gateway, self.epoch)).collect()
    }

    /// Steps back to what was [`Requests::answered`].
    pub(super) fn read_again(&mut self, answered: &[Offset]) {
        assert_eq!(answered.len(), self.inlets.len(), "there is a place to read again from for each gateway");
        for ((gateway, inlet), &from) in self.inlets.iter_mut().zip(answered) {
            if from < inlet.tail.offset() && inlet.tail.seek(from).is_err() {
                // Released meanwhile: whatever is left.
                *inlet = LogCursor::new(&self.world, NodeId::Gateway(*gateway), from);
            }
        }
    }
}

/// Hands at most `max` requests of a gateway's log to `take`. Says how many records were read.
fn poll<W: World>(
    gateway: GatewayId,
    inlet: &mut LogCursor<W>,
    (max, elsewhere): (usize, &[Position]),
    take: &mut impl FnMut(&Request) -> bool,
) -> usize {
    let is_elsewhere = |shard: ShardId| elsewhere.get(usize::from(shard.0)) == Some(&ELSEWHERE);
    for read in 0..max {
        if !elsewhere.is_empty()
            && inlet.tail.pass_if(|payload| request_shard(payload).is_some_and(is_elsewhere))
        {
            continue;
        }
        let request = match inlet.next() {
            // No venue's business.
            Ok(Some(entry)) if is_of_fix_session(entry.payload) => continue,
            Ok(Some(entry)) => RequestRecord::read(entry.payload),
            Ok(None) => return read,
            Err(error) => {
                if inlet.on_unreadable(error) {
                    continue;
                }
                return read;
            }
        };
        match request {
            Ok(request) if request.id.gateway() == gateway && is_elsewhere(request.shard) => {}
            // Its number says where its body lies, for all that order it.
            Ok(request) if request.id.gateway() == gateway && take(&request) => {}
            Ok(request) => {
                inlet.on_strange(&format_args!("{} is not a request of this gateway and system", request.id))
            }
            Err(error) => inlet.on_strange(&error),
        }
    }
    max
}
