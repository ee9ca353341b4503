//! Servers tell each other how far they are, and fill each other.
//!
//! A server dials each peer and keeps the connection. Over it the peer says how far its log goes, and gives the stream from where it is
//! asked to, in chunks, each after the one before is on this server's disk. A break costs nothing: what was taken lies in the log, and the
//! next question begins after it.

use pares_desk::frame::{self, DeskNews, PeerHello, kind};
use pares_roles::world::Counters;
use pares_roles::{NodeError, World};
use pares_types::Position;
use zerocopy::IntoBytes;

use super::connections::Who;
use super::{Counter, MemberServer};
use crate::start;
use crate::world::Dial;

/// The first and the longest pause before a peer is dialled again, nanoseconds.
const PAUSE_NS: (u64, u64) = (20_000_000, 1_000_000_000);
/// A peer that was asked and says nothing for so long is asked again, or another, nanoseconds.
const PATIENCE_NS: u64 = 2_000_000_000;
/// What is missing and at no peer for so long is lost, nanoseconds.
const LOST_NS: u64 = 3_000_000_000;

/// This server's way to one peer.
#[derive(Clone, Debug)]
struct Link {
    peer: u16,
    slot: Option<usize>,
    dial_ns: u64,
    pause_ns: u64,
    /// All below lies in its log.
    have: Position,
}

/// This server's ways to its peers.
#[derive(Clone, Debug)]
pub(super) struct Links {
    links: Vec<Link>,
    /// Whom it has asked for the stream, and when that last said something.
    asked: Option<(u16, u64)>,
    /// Since when no peer, though all are connected, has what this server lacks.
    lost_ns: Option<u64>,
}

impl Links {
    pub(super) fn new(server: u16, servers: u16, now_ns: u64) -> Self {
        let link = |peer| Link { peer, slot: None, dial_ns: now_ns, pause_ns: PAUSE_NS.0, have: Position(0) };
        Self {
            links: (0..servers).filter(|&peer| peer != server).map(link).collect(),
            asked: None,
            lost_ns: None,
        }
    }

    /// The connection to a peer is lost.
    pub(super) fn on_lost(&mut self, peer: u16, slot: usize, now_ns: u64) {
        if let Some(link) = self.links.iter_mut().find(|link| link.peer == peer && link.slot == Some(slot)) {
            link.slot = None;
            link.dial_ns = now_ns + link.pause_ns;
            link.pause_ns = PAUSE_NS.1.min(link.pause_ns * 2);
            self.asked = self.asked.filter(|&(asked, _)| asked != peer);
        }
    }

    /// No connected peer has what is missing here; one that is not connected may have it.
    fn miss(&mut self, now_ns: u64) {
        let all = self.links.iter().all(|link| link.slot.is_some());
        self.lost_ns = if all { self.lost_ns.or(Some(now_ns)) } else { None };
    }

    /// Whether what is missing here is nowhere.
    fn is_lost(&self, now_ns: u64) -> bool {
        self.lost_ns.is_some_and(|since_ns| now_ns.saturating_sub(since_ns) > LOST_NS)
    }

    /// Who has more than this server, and is connected.
    fn ahead(&self, next: Position) -> Option<(u16, usize)> {
        let ahead = self.links.iter().filter(|link| link.have > next);
        let (_, peer, slot) = ahead.filter_map(|link| Some((link.have, link.peer, link.slot?))).max()?;
        Some((peer, slot))
    }
}

impl<W: World, S: Dial> MemberServer<W, S> {
    /// Dials peers that are not connected, and asks one for the stream if this server needs it.
    pub(super) fn look_after_links(&mut self, now_ns: u64) -> Result<(), NodeError> {
        for index in 0..self.links.links.len() {
            let link = &mut self.links.links[index];
            if link.slot.is_some() || now_ns < link.dial_ns {
                continue;
            }
            link.dial_ns = now_ns + link.pause_ns;
            link.pause_ns = PAUSE_NS.1.min(link.pause_ns * 2);
            let Ok(slot) = self.connections.dial(link.peer) else { continue };
            link.slot = Some(slot);
            let hello = PeerHello {
                server: self.server.into(),
                reserved: 0.into(),
                epoch: self.keeper.epoch().0.into(),
                stream: self.keeper.number.into(),
            };
            self.say(slot, |out| frame::write(out, kind::PEER_HELLO, &[hello.as_bytes()]));
        }
        self.ask(now_ns);
        if self.links.is_lost(now_ns) {
            return Err(self.give_up());
        }
        Ok(())
    }

    /// What the window decided for the next position is in no log: a disk was lost that alone had it. No trader received it. Only a start of
    /// everything makes another window.
    fn give_up(&self) -> NodeError {
        start::ask_anew(&self.world);
        NodeError::Refused(format!(
            "position {} is decided, but no server's log has its item any more: restart the whole system",
            self.keeper.stream.next()
        ))
    }

    fn ask(&mut self, now_ns: u64) {
        if self.links.asked.is_some_and(|(_, heard_ns)| now_ns < heard_ns + PATIENCE_NS) {
            return;
        }
        self.links.asked = None;
        let next = self.keeper.stream.next();
        if !self.keeper.needs_peer() {
            self.links.lost_ns = None;
            return;
        }
        let Some((peer, slot)) = self.links.ahead(next) else { return self.links.miss(now_ns) };
        self.links.lost_ns = None;
        self.links.asked = Some((peer, now_ns));
        self.say(slot, |out| frame::write_through(out, kind::ASK, next));
    }

    /// A peer that this server dialled says something.
    pub(super) fn on_peer_news(
        &mut self,
        slot: usize,
        peer: u16,
        kind: u8,
        payload: &[u8],
    ) -> Result<(), NodeError> {
        match frame::read_news(kind, payload) {
            Ok(DeskNews::Have(next)) => {
                let link = self.links.links.iter_mut().find(|link| link.peer == peer);
                if let Some(link) = link {
                    (link.have, link.pause_ns) = (next, PAUSE_NS.0);
                }
                self.keeper.stream.on_have(peer, next);
            }
            Ok(DeskNews::Chunk(packet)) => self.on_chunk(slot, peer, packet)?,
            _ => self.end(slot, frame::CutOff::None),
        }
        Ok(())
    }

    /// Takes a chunk of the stream, and says how far that brought it. One that was not asked for is not looked at.
    fn on_chunk(&mut self, slot: usize, peer: u16, packet: &[u8]) -> Result<(), NodeError> {
        if self.links.asked.is_none_or(|(asked, _)| asked != peer) {
            return Ok(());
        }
        let taken = self.keeper.on_chunk(peer, packet)?;
        self.counters.add(Counter::Filled, taken as u64);
        let next = self.keeper.stream.next();
        self.links.asked = (taken > 0).then(|| (peer, self.world.mono_ns()));
        self.say(slot, |out| frame::write_through(out, kind::TOOK, next));
        Ok(())
    }

    /// Tells peers how far this server is.
    pub(super) fn tell_peers(&mut self) {
        let next = self.keeper.stream.next();
        for slot in 0..self.connections.slots() {
            if let Some(connection) = self.connections.get_mut(slot)
                && matches!(connection.who, Who::Peer { .. })
            {
                connection.answer(|out| frame::write_through(out, kind::HAVE, next));
            }
        }
    }

    /// Gives peers that asked their next chunk, if it is time. Says how many got one.
    pub(super) fn fill_peers(&mut self, now_ns: u64, is_busy: bool) -> Result<usize, NodeError> {
        let mut filled = 0;
        for slot in 0..self.connections.slots() {
            let Some(connection) = self.connections.get_mut(slot) else { continue };
            let Who::Peer { transfer: Some(transfer) } = &mut connection.who else { continue };
            let Some(bytes) = transfer.pace.may_send(now_ns, is_busy) else { continue };
            let chunk = self.keeper.chunk(transfer.next, bytes)?;
            if chunk.first == chunk.next {
                // All of it: the peer asks again when it needs more.
                connection.who = Who::Peer { transfer: None };
                continue;
            }
            transfer.pace.on_sent(now_ns);
            connection.answer(|out| out.extend_from_slice(&chunk.frames));
            connection.write(now_ns);
            filled += 1;
        }
        Ok(filled)
    }

    /// When something is due although nothing happens.
    pub(super) fn next_ns(&self) -> u64 {
        let dials = self.links.links.iter().filter(|link| link.slot.is_none()).map(|link| link.dial_ns);
        let batch = if self.keeper.has_untold() { Some(self.batch_ns) } else { None };
        let slots = 0..self.connections.slots();
        let paces = slots.filter_map(|slot| match &self.connections.get(slot)?.who {
            Who::Peer { transfer: Some(transfer) } => transfer.pace.ready_ns(),
            _ => None,
        });
        dials.chain(batch).chain(paces).chain(self.copies_ns()).min().unwrap_or(u64::MAX).min(self.alive_ns)
    }
}
