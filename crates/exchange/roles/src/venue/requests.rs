//! The gateways' logs as a venue reads them.
//!
//! Requests are what other nodes wrote, so nothing in them may stop a venue. What cannot be read is passed over, counted, and its
//! gateway asked to repair it: should another venue have read it in time, the record brings it here.
//!
//! Each log is joined midway, where all before is answered. The gateway says where that is by a counter, and counters outlive
//! everything, so a mark of an earlier life of the windows is no mark: what was answered then need not be in the record any more
//! (a disk was lost, or power), and requests passed over would never be ordered.

use pares_log::{Offset, ReadError};
use pares_types::{Epoch, GatewayId, Request};
use pares_wire::record::RequestRecord;

use crate::NodeId;
use crate::config::SystemConfig;
use crate::gateway::Counter;
use crate::tail::Tail;
use crate::world::World;

/// Up to where a gateway's requests are all answered; the log's beginning unless the gateway says so in this epoch.
pub(super) fn answered_offset<W: World>(world: &W, gateway: GatewayId, epoch: Epoch) -> Offset {
    let name = NodeId::Gateway(gateway).to_string();
    let of = |counter: Counter| world.counter(&name, counter.name());
    if of(Counter::Epoch) != Some(epoch.0.into()) {
        return Offset::START;
    }
    Offset(of(Counter::AnsweredOffset).unwrap_or_default())
}

/// All gateways' logs, each from where the gateway's requests are not all answered.
pub(super) struct Requests<W: World> {
    world: W,
    epoch: Epoch,
    inlets: Vec<Inlet<W>>,
}

/// One gateway's log.
struct Inlet<W: World> {
    gateway: GatewayId,
    tail: Tail<W>,
    /// Records that are no request for this system.
    foreign: u64,
    /// Whether the last look at it failed.
    unreadable: bool,
}

impl<W: World> Inlet<W> {
    fn new(world: &W, gateway: GatewayId, from: Offset) -> Self {
        let tail = Tail::new(world, NodeId::Gateway(gateway), from);
        Self { gateway, tail, foreign: 0, unreadable: false }
    }

    fn poll(&mut self, world: &W, max: usize, take: &mut impl FnMut(&Request) -> bool) -> usize {
        for read in 0..max {
            let request = match self.tail.next() {
                Ok(Some(entry)) => Ok(RequestRecord::read(entry.payload)),
                Ok(None) => return read,
                Err(error) => Err(error),
            };
            match request {
                Ok(Ok(request)) if take(&request) => {}
                Ok(_) => self.note_foreign(world),
                Err(error) => {
                    if let Err(error) = self.tail.pass_over(error) {
                        self.note_unreadable(world, &error);
                        return read;
                    }
                }
            }
        }
        self.unreadable &= max == 0;
        max
    }

    fn note_foreign(&mut self, world: &W) {
        if self.foreign == 0 {
            let (gateway, offset) = (self.gateway, self.tail.offset());
            world.complain(&format_args!(
                "gateway-{gateway} wrote something before {offset} that is no request of this system: passed over"
            ));
        }
        self.foreign += 1;
    }

    fn note_unreadable(&mut self, world: &W, error: &ReadError) {
        if !std::mem::replace(&mut self.unreadable, true) {
            let gateway = self.gateway;
            world.complain(&format_args!("the log of gateway-{gateway} cannot be read for now: {error}"));
        }
    }
}

impl<W: World> Requests<W> {
    /// As [`Tail::look`], for every gateway's log.
    pub(super) fn look(&mut self) {
        self.inlets.iter_mut().for_each(|inlet| inlet.tail.look());
    }

    pub(super) fn new(world: &W, config: &SystemConfig, epoch: Epoch) -> Self {
        let from = |gateway| answered_offset(world, gateway, epoch);
        let inlets = config.gateway_ids().map(|gateway| Inlet::new(world, gateway, from(gateway)));
        Self { world: world.clone(), epoch, inlets: inlets.collect() }
    }

    /// Hands at most `max` requests of each gateway to `take`, which says whether it knows the shard. Says how many records
    /// were read.
    pub(super) fn poll(&mut self, max: usize, mut take: impl FnMut(&Request) -> bool) -> usize {
        let Self { world, inlets, .. } = self;
        inlets.iter_mut().map(|inlet| inlet.poll(world, max, &mut take)).sum()
    }

    /// Records, or stretches of a log, that were passed over because nobody can read them.
    pub(super) fn damaged(&self) -> u64 {
        self.inlets.iter().map(|inlet| inlet.foreign + inlet.tail.damaged()).sum()
    }

    /// Whether requests were passed over, since this was last asked, because their gateway released them.
    pub(super) fn take_skipped(&mut self) -> bool {
        self.inlets.iter_mut().fold(false, |skipped, inlet| inlet.tail.take_skipped() | skipped)
    }

    /// Where to read from again if everything read is lost.
    pub(super) fn answered(&self) -> Vec<Offset> {
        self.inlets.iter().map(|inlet| answered_offset(&self.world, inlet.gateway, self.epoch)).collect()
    }

    /// Steps back to what was [`Requests::answered`].
    pub(super) fn read_again(&mut self, answered: &[Offset]) {
        for (inlet, &from) in self.inlets.iter_mut().zip(answered) {
            if from < inlet.tail.offset() && inlet.tail.seek(from).is_err() {
                // Released meanwhile: whatever is left.
                inlet.tail = Tail::new(&self.world, NodeId::Gateway(inlet.gateway), from);
            }
        }
    }
}
