//! Those who wait at the ports are let in, a few in each turn, and strangers make room for each other.

use std::io::{self, ErrorKind};

use pares_roles::world::Sockets;
use pares_table::Origin;
use pares_types::Reason;

use super::{ACCEPTS_MAX, CROWDED_PATIENCE_NS, Close, Connection, Connections, write_refusal};
use crate::door_end::ProtocolAdapter;
use pares_port::DoorPort;

/// Strangers are at most this part of all connections, or this many if that is more.
const STRANGERS: (usize, usize) = (4, 16);
/// Connections at the operators' socket, beside all others.
pub const OPERATORS_MAX: usize = 16;

/// Where a client has come to.
enum Entrance {
    /// A port; that of another protocol has a door.
    Port(Option<Box<ProtocolAdapter>>),
    /// The operators' socket.
    Operators,
}

impl<S: Sockets> Connections<S> {
    /// Accepts those who wait, but not so many at once that the others are kept waiting.
    pub(super) fn accept(&mut self, mono_ns: u64) -> usize {
        let mut accepted = 0;
        while self.waiting && accepted < ACCEPTS_MAX {
            match self.next_stream() {
                Ok((stream, entrance)) => self.admit(stream, entrance, mono_ns),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.waiting = false;
                    break;
                }
                // Only of the connection being accepted.
                Err(error) if is_of_the_peer(&error) => {}
                // Descriptors or memory are out: tried again in the next turn.
                Err(_) => break,
            }
            accepted += 1;
        }
        accepted
    }

    /// Who waits: at the operators' socket, where there are few; else at a port, of which the first changes by the turn, so that a crowd at one keeps
    /// nobody from the others.
    fn next_stream(&mut self) -> io::Result<(S::Stream, Entrance)> {
        let operator = self.sockets.accept_operator();
        if !matches!(&operator, Err(error) if error.kind() == ErrorKind::WouldBlock) {
            return Ok((operator?, Entrance::Operators));
        }
        let Self { sockets, doors: Some(doors), turns, .. } = self else {
            return Ok((self.sockets.accept()?, Entrance::Port(None)));
        };
        let mut ports = [None, Some(DoorPort::Fix), Some(DoorPort::Ouch)];
        let first = *turns % ports.len();
        ports.rotate_left(first);
        let mut accepted = Err(ErrorKind::WouldBlock.into());
        for port in ports {
            accepted = match port {
                Some(protocol) => sockets
                    .accept_by(protocol)
                    .map(|stream| (stream, Entrance::Port(Some(ProtocolAdapter::new(protocol, doors))))),
                None => sockets.accept().map(|stream| (stream, Entrance::Port(None))),
            };
            if !matches!(&accepted, Err(error) if error.kind() == ErrorKind::WouldBlock) {
                break;
            }
        }
        accepted
    }

    fn admit(&mut self, stream: S::Stream, entrance: Entrance, mono_ns: u64) {
        let mut connection = self.opened(stream, entrance, mono_ns);
        if !self.has_room(&connection, mono_ns) {
            return self.turn_away(connection);
        }
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() - 1
        });
        assert!(self.slots[slot].is_none(), "a free slot has no connection");
        if self.sockets.register(connection.stream(), slot).is_ok() {
            if connection.at_operators {
                self.operators += 1;
            } else {
                self.strangers.insert(connection.origin, mono_ns, slot);
            }
            self.slots[slot] = Some(connection);
            let members = self.len() - self.operators;
            assert!(members <= self.sessions_max, "there are no more connections than there may be");
        } else {
            self.refused += 1;
            self.tap.ended(&connection.tapped, Close::Refused);
            self.free.push(slot);
        }
    }

    /// A new connection; the tap notes it.
    fn opened(&mut self, stream: S::Stream, entrance: Entrance, mono_ns: u64) -> Connection<S::Stream> {
        self.generations = self.generations.wrapping_add(1);
        let mut connection = Connection::new(stream, self.generations, mono_ns);
        match entrance {
            Entrance::Port(None) => {}
            Entrance::Port(Some(end)) => connection = connection.with_end(end),
            Entrance::Operators => connection.at_operators = true,
        }
        if self.tap.is_on() {
            let ends = self.sockets.ends(connection.stream());
            self.tap.opened(&mut connection.tapped, ends);
        }
        // Operators at the socket are on this machine.
        connection.origin =
            if connection.at_operators { None } else { self.sockets.origin(connection.stream()) };
        connection
    }

    fn turn_away(&mut self, mut connection: Connection<S::Stream>) {
        self.refused += 1;
        // Told why if the socket takes it; dropping closes it. Other protocols have no word for it before a logon.
        if !connection.has_door() {
            write_refusal(connection.output(), Reason::TooManyConnections);
            let _ = connection.flush(false, &mut self.tap);
        }
        self.tap.ended(&connection.tapped, Close::Refused);
    }

    fn has_room(&mut self, connection: &Connection<S::Stream>, mono_ns: u64) -> bool {
        if connection.at_operators {
            return self.operators < OPERATORS_MAX;
        }
        let has_place = self.len() - self.operators < self.sessions_max;
        has_place && self.has_room_for_a_stranger(connection.origin, mono_ns)
    }

    /// Whether one more may be there without having signed on. One of the network with most makes room, or the oldest if it has had the time to.
    fn has_room_for_a_stranger(&mut self, origin: Origin, mono_ns: u64) -> bool {
        let most = strangers_max(self.sessions_max);
        assert!(self.strangers.count_all() <= most, "strangers have no more than their share of the room");
        if self.strangers.count_all() < most {
            return true;
        }
        let giver = self.strangers.giver(origin, mono_ns.saturating_sub(CROWDED_PATIENCE_NS));
        if let Some(slot) = giver {
            self.refuse_slot(slot, Reason::TooManyConnections, Close::Refused);
            assert!(self.strangers.count_all() < most, "who was refused is no stranger any more");
        }
        giver.is_some()
    }
}

/// How many of so many connections may be there without having signed on.
#[must_use]
pub fn strangers_max(sessions_max: usize) -> usize {
    let (part, few) = STRANGERS;
    (sessions_max / part).max(few)
}

/// Whether an error of accepting says only that this one connection is gone.
fn is_of_the_peer(error: &io::Error) -> bool {
    use ErrorKind::{ConnectionAborted, ConnectionReset, Interrupted};
    matches!(error.kind(), ConnectionAborted | ConnectionReset | Interrupted)
}
