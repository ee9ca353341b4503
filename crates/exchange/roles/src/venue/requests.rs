//! The gateways' logs as those read them who order or execute.
//!
//! In a system of several hosts a venue reads the one log of its host's orderer, which has the requests of all gateways as they were ordered.
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
use pares_types::{Epoch, GatewayId, Position, Request, ShardId, VenueId};
use pares_wire::record::{ORDERS_STATE, RequestRecord, is_of_fix_session, request_shard, schema};

use crate::inlet::LogCursor;
use crate::world::World;

/// What a venue knows of a shard that others execute and it does not: all that it needs.
pub(super) const ELSEWHERE: Position = Position(u64::MAX);

/// The counter of a gateway that says up to where in its log all requests are answered.
pub const ANSWERED_OFFSET_COUNTER: &str = "answered_offset";
/// The counter of a gateway that says of which epoch the former is.
pub const EPOCH_COUNTER: &str = "epoch";

/// Up to where the requests in that node's log are all answered; the log's beginning unless the node says so in this epoch.
fn answered_offset<W: World>(world: &W, log: NodeId, epoch: Epoch) -> Offset {
    let name = log.to_string();
    if world.counter(&name, EPOCH_COUNTER) != Some(epoch.0.into()) {
        return Offset::START;
    }
    Offset(world.counter(&name, ANSWERED_OFFSET_COUNTER).unwrap_or_default())
}

/// Logs with requests, each from where they are not all answered.
pub(crate) struct Requests<W: World> {
    world: W,
    epoch: Epoch,
    gateways: u16,
    inlets: Vec<(NodeId, LogCursor<W>)>,
    /// Whether there are any of shards that are [`ELSEWHERE`].
    skips: bool,
}

impl<W: World> Requests<W> {
    /// As [`LogCursor::look`], for every log.
    pub(crate) fn look(&mut self) {
        self.inlets.iter_mut().for_each(|(_, inlet)| inlet.tail.look());
    }

    /// Those that a venue reads.
    pub(super) fn of_venue(world: &W, config: &SystemConfig, epoch: Epoch, id: VenueId) -> Self {
        let logs = match config.host_of(NodeId::Venue(id)) {
            None => config.gateway_ids().map(NodeId::Gateway).collect(),
            Some(host) => vec![NodeId::Orderer(host)],
        };
        Self::new(world, config, epoch, logs)
    }

    /// Without those of shards that are [`ELSEWHERE`].
    pub(super) fn following(mut self, known: &[Position]) -> Self {
        self.follow(known);
        self
    }

    /// Other shards may be [`ELSEWHERE`] from now on.
    pub(super) fn follow(&mut self, known: &[Position]) {
        self.skips = known.contains(&ELSEWHERE);
    }

    pub(crate) fn new(world: &W, config: &SystemConfig, epoch: Epoch, logs: Vec<NodeId>) -> Self {
        let inlet = |log| (log, LogCursor::new(world, log, answered_offset(world, log, epoch)));
        let gateways = u16::try_from(config.gateways.len()).expect("checked: at most 16");
        let inlets: Vec<_> = logs.into_iter().map(inlet).collect();
        assert!(!inlets.is_empty(), "requests come from some log");
        Self { world: world.clone(), epoch, gateways, inlets, skips: false }
    }

    /// Hands requests of each log, at most as many as `max` says, to `take` with their records, but for those of shards that are [`ELSEWHERE`] by what
    /// is `known`; it says whether it knows the shard. Says how many records were read.
    pub(crate) fn poll(
        &mut self,
        max: impl Fn(NodeId) -> usize,
        known: &[Position],
        mut take: impl FnMut(&Request, &[u8]) -> bool,
    ) -> usize {
        let elsewhere = if self.skips { known } else { &[] };
        let Self { inlets, gateways, .. } = self;
        let mut of = |log: NodeId, inlet| poll((log, *gateways), inlet, (max(log), elsewhere), &mut take);
        inlets.iter_mut().map(|(log, inlet)| of(*log, inlet)).sum()
    }

    /// The logs.
    pub(crate) fn logs(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.inlets.iter().map(|(log, _)| *log)
    }

    /// Records, or stretches of a log, that were skipped because nobody can read them.
    pub(crate) fn damaged(&self) -> u64 {
        self.inlets.iter().map(|(_, inlet)| inlet.damaged()).sum()
    }

    /// How many logs cannot be read just now.
    pub(crate) fn unreadable(&self) -> usize {
        self.inlets.iter().filter(|(_, inlet)| inlet.tail.is_unreadable()).count()
    }

    /// Whether requests were skipped, since this was last asked, because they were released.
    pub(super) fn take_skipped(&mut self) -> bool {
        self.inlets.iter_mut().fold(false, |skipped, (_, inlet)| inlet.tail.take_skipped() | skipped)
    }

    /// Where to read from again if everything read is lost.
    pub(super) fn answered(&self) -> Vec<Offset> {
        self.inlets.iter().map(|&(log, _)| answered_offset(&self.world, log, self.epoch)).collect()
    }

    /// Steps back to what was [`Requests::answered`].
    pub(super) fn read_again(&mut self, answered: &[Offset]) {
        assert_eq!(answered.len(), self.inlets.len(), "there is a place to read again from for each log");
        for ((log, inlet), &from) in self.inlets.iter_mut().zip(answered) {
            if from < inlet.tail.offset() && inlet.tail.seek(from).is_err() {
                // Released meanwhile: whatever is left.
                *inlet = LogCursor::new(&self.world, *log, from);
            }
        }
    }
}

/// Hands at most `max` requests of a log to `take`. Says how many records were read.
fn poll<W: World>(
    (log, gateways): (NodeId, u16),
    inlet: &mut LogCursor<W>,
    (max, elsewhere): (usize, &[Position]),
    take: &mut impl FnMut(&Request, &[u8]) -> bool,
) -> usize {
    let is_elsewhere = |shard: ShardId| elsewhere.get(usize::from(shard.0)) == Some(&ELSEWHERE);
    let may_have = |gateway: GatewayId| match log {
        NodeId::Gateway(own) => own == gateway,
        _ => gateway.0 < gateways,
    };
    for read in 0..max {
        if !elsewhere.is_empty()
            && inlet.tail.pass_if(|payload| request_shard(payload).is_some_and(is_elsewhere))
        {
            continue;
        }
        let entry = match inlet.next() {
            Ok(Some(entry)) => entry,
            Ok(None) => return read,
            Err(error) => {
                if inlet.on_unreadable(error) {
                    continue;
                }
                return read;
            }
        };
        if is_of_fix_session(entry.payload) || schema(entry.payload) == Some(ORDERS_STATE) {
            continue;
        }
        match RequestRecord::read(entry.payload) {
            Ok(request) if may_have(request.id.gateway()) && is_elsewhere(request.shard) => {}
            // Its number says where its body lies, for all that order it.
            Ok(request) if may_have(request.id.gateway()) && take(&request, entry.payload) => {}
            Ok(request) => {
                inlet.on_strange(&format_args!("{} is not a request of this log and system", request.id))
            }
            Err(error) => inlet.on_strange(&error),
        }
    }
    max
}
