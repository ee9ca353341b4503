//! What the effects of a gateway's rules reach: the log and the connections.

use pares_config::{NodeId, Placement};
use pares_gateway::{GatewaySink, LookUp, Place, SessionId};
use pares_log::{AppendError, LogWriter};
use pares_roles::world::{Counters, Ring, Sockets, World};
use pares_types::{ClientOrderId, Epoch, Reason, Reply, Request, ShardId, VenueSet};
use pares_wire::frame;
use pares_wire::record::{request_bytes, write_request};

use crate::connections::Connections;
use crate::counters::Counter;
use crate::types::Close;
use crate::waiting::Waiting;

/// Repeats whose first answer is to be read; more of them are rejected. Only while a recorder's log is filled again do any
/// wait for longer than it takes to read them.
const AGAIN_MAX: usize = 16_384;
/// Names that are to be looked for on disk; more of them are rejected.
const LOOK_UPS_MAX: usize = 32_768;

pub(crate) struct GatewayIo<W: World, S: Sockets> {
    pub(crate) world: W,
    pub(crate) writer: W::Writer,
    pub(crate) connections: Connections<S>,
    pub(crate) counters: W::Counters,
    pub(crate) ringer: W::Ringer,
    /// Which venues execute what.
    placement: Placement,
    /// Who orders what this host's gateways journal, in a system of several hosts.
    orderer: Option<NodeId>,
    /// Who executes what was journalled and is not published yet.
    to_wake: VenueSet,
    /// Who asked again for which answer.
    pub(crate) again: Waiting<ClientOrderId>,
    /// Names that are to be looked for on disk.
    pub(crate) look_ups: Waiting<LookUp>,
    /// Why the log takes nothing ever again.
    pub(crate) poisoned: Option<AppendError>,
}

impl<W: World, S: Sockets> GatewayIo<W, S> {
    pub(crate) fn new(
        (placement, orderer): (Placement, Option<NodeId>),
        life: Epoch,
        world: W,
        writer: W::Writer,
        connections: Connections<S>,
        counters: W::Counters,
    ) -> Self {
        counters.set(Counter::Epoch, u64::from(life.0));
        counters.set(Counter::Lanes, placement.number());
        Self {
            writer,
            connections,
            counters,
            ringer: world.ringer(),
            placement,
            orderer,
            to_wake: VenueSet::NONE,
            again: Waiting::new(AGAIN_MAX),
            look_ups: Waiting::new(LOOK_UPS_MAX),
            poisoned: None,
            world,
        }
    }

    /// Wakes others from now on.
    pub(crate) fn follow(&mut self, placement: Placement) {
        self.counters.set(Counter::Lanes, placement.number());
        self.placement = placement;
    }

    /// Publishes what was journalled and wakes the venues that execute it, or who orders it for them. Says whether there was anything.
    pub(crate) fn publish(&mut self) -> bool {
        let to_wake = std::mem::take(&mut self.to_wake);
        if !to_wake.is_empty() {
            let end = self.writer.publish();
            assert_eq!(end, self.writer.tail(), "venues are woken once all that is journalled can be read");
            match self.orderer {
                Some(orderer) => self.ringer.ring(orderer),
                None => to_wake.iter().for_each(|venue| self.ringer.ring(NodeId::Venue(venue))),
            }
        }
        !to_wake.is_empty()
    }

    /// Writes a record of a FIX session into the log; where it lies, if the log takes it. It is to be published before anything rests on it.
    pub(crate) fn write_note(&mut self, bytes: &[u8]) -> Option<u64> {
        let offset = self.writer.append_with(bytes.len(), |out| out.copy_from_slice(bytes));
        let offset = self.note_poisoned(offset).ok()?;
        assert!(offset < self.writer.tail(), "a record lies before the end of its log");
        Some(offset.0)
    }

    /// A log that takes nothing ever again is repaired as the gateway starts again.
    fn note_poisoned<T>(&mut self, appended: Result<T, AppendError>) -> Result<T, Reason> {
        appended.map_err(|error| {
            if matches!(error, AppendError::Poisoned { .. }) {
                self.poisoned = Some(error);
            }
            Reason::StorageUnavailable
        })
    }

    /// Tells a session that its stream is live from `next` on, or why it is not.
    pub(crate) fn resumed(&mut self, session: SessionId, shard: ShardId, next: u64, reason: Reason) {
        self.connections.write(session, |output| frame::write_resumed(output, shard, next, reason));
    }
}

impl<W: World, S: Sockets> GatewaySink for GatewayIo<W, S> {
    fn journal(&mut self, request: &Request) -> Result<u64, Reason> {
        let fill = |out: &mut [u8]| write_request(out, request);
        let offset = self.writer.append_with(request_bytes(request), fill);
        let offset = self.note_poisoned(offset)?;
        assert!(offset < self.writer.tail(), "a request lies before the end of its log");
        self.to_wake = self.to_wake.or(self.placement.venues_of(request.shard));
        self.counters.add(Counter::Requests, 1);
        Ok(offset.0)
    }

    fn draw(&mut self) -> u64 {
        let random = self.world.random();
        u64::from_le_bytes(*random.first_chunk().expect("it has 32 bytes"))
    }

    fn reply(&mut self, session: SessionId, reply: Reply) {
        match reply {
            Reply::Answer(_) => self.counters.add(Counter::Answers, 1),
            Reply::Rejected { .. } => self.counters.add(Counter::Rejected, 1),
            Reply::Trade(_) => self.counters.add(Counter::Trades, 1),
            _ => {}
        }
        self.connections.write(session, |output| frame::write_reply(output, &reply));
    }

    fn answer_again(&mut self, session: SessionId, _: Place, name: ClientOrderId) {
        if !self.again.push(session, name) {
            self.reply(session, Reply::Rejected { client_order_id: name, reason: Reason::Overloaded });
        }
    }

    fn look_up(&mut self, look_up: LookUp) {
        let LookUp { session, client_order_id, .. } = look_up;
        if !self.look_ups.push(session, look_up) {
            self.reply(session, Reply::Rejected { client_order_id, reason: Reason::Overloaded });
        }
    }

    fn disconnect(&mut self, session: SessionId, reason: Reason) {
        let why = if reason == Reason::TakenOver { Close::TakenOver } else { Close::Refused };
        self.connections.refuse(session, reason, why);
    }

    fn read_later(&mut self, session: SessionId, pause_ns: u64) {
        self.connections.read_later(session, pause_ns, self.world.mono_ns());
    }
}
