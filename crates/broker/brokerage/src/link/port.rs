//! A port and the connections that came in there.
//!
//! A process without descriptors takes no more connections, continues with those it has, and tries again: who connects waits in the kernel meanwhile.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::time::Duration;

use mio::net::TcpListener;
use mio::{Interest, Registry, Token};
use pares_os::descriptors;

use super::conn::Conn;

/// The first connection's number; 0 is the listener's.
const FIRST: u64 = 1;
/// Tokens of one owner of sockets follow each other, so many.
const OWNED: u32 = 40;

/// Who a socket belongs to in a process's poll.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SocketOwner(pub u8);

impl SocketOwner {
    /// The token of its socket of that number.
    pub fn token(self, number: u64) -> Token {
        Token(usize::from(self.0) << OWNED | usize::try_from(number).unwrap_or_default())
    }

    /// Whose socket a token is, and its number.
    pub fn of(token: Token) -> (Self, u64) {
        let number = token.0 & ((1 << OWNED) - 1);
        (Self(u8::try_from(token.0 >> OWNED).unwrap_or(u8::MAX)), number as u64)
    }
}

/// See the [module](self).
pub struct Port {
    listener: TcpListener,
    registry: Registry,
    owner: SocketOwner,
    conns: BTreeMap<u64, Conn>,
    next: u64,
    conns_max: usize,
    /// A connection may wait to be accepted.
    is_due: bool,
    /// There was no descriptor for the last who came, which was said.
    is_out: bool,
    ready: BTreeSet<u64>,
    unsent: BTreeSet<u64>,
}

impl Port {
    /// Listens, for `conns_max` connections at a time.
    ///
    /// # Errors
    /// If it cannot.
    pub fn bind(
        address: SocketAddr,
        registry: &Registry,
        owner: SocketOwner,
        conns_max: usize,
    ) -> io::Result<Self> {
        let mut listener = TcpListener::bind(address)?;
        registry.register(&mut listener, owner.token(0), Interest::READABLE)?;
        Ok(Self {
            listener,
            registry: registry.try_clone()?,
            owner,
            conns: BTreeMap::new(),
            next: FIRST,
            conns_max,
            is_due: true,
            is_out: false,
            ready: BTreeSet::new(),
            unsent: BTreeSet::new(),
        })
    }

    /// Where it listens.
    ///
    /// # Errors
    /// If the operating system cannot say.
    #[cfg(test)]
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Something has happened to a socket of this port.
    pub fn wake(&mut self, number: u64) {
        match self.conns.get_mut(&number) {
            Some(conn) => {
                conn.wake();
                self.ready.insert(number);
                self.unsent.insert(number);
            }
            None => self.is_due |= number < FIRST,
        }
    }

    /// Takes in who has come; their numbers, which no others get.
    pub fn accept(&mut self) -> Vec<u64> {
        let mut come = Vec::new();
        while self.is_due && self.conns.len() < self.conns_max {
            match self.listener.accept() {
                Ok((stream, _)) => {
                    let (number, token) = (self.next, self.owner.token(self.next));
                    let Ok(conn) = Conn::accepted(stream, &self.registry, token) else { continue };
                    self.next += 1;
                    self.conns.insert(number, conn);
                    self.ready.insert(number);
                    come.push(number);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    (self.is_due, self.is_out) = (false, false);
                }
                Err(error) => {
                    self.not_accepted(&error);
                    break;
                }
            }
        }
        come
    }

    /// One that has gone already, or too many files: the next turn sees.
    fn not_accepted(&mut self, error: &io::Error) {
        if descriptors::are_out(error) && !std::mem::replace(&mut self.is_out, true) {
            pares_text::tell!(
                "no file descriptor is left: new connections wait until one of {} connections ends (raise `ulimit -n`)",
                self.conns.len()
            );
        }
    }

    /// Connections of which something may have come since this was asked last.
    pub fn take_ready(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.ready).into_iter().collect()
    }

    /// A connection is looked at again in the next turn.
    pub fn keep_ready(&mut self, number: u64) {
        self.ready.insert(number);
    }

    /// A connection, to be read.
    pub fn conn(&mut self, number: u64) -> Option<&mut Conn> {
        self.conns.get_mut(&number)
    }

    /// A connection, to be written to.
    pub fn writer(&mut self, number: u64) -> Option<&mut Conn> {
        let conn = self.conns.get_mut(&number)?;
        self.unsent.insert(number);
        Some(conn)
    }

    /// Hands the sockets what they take; those that have gone, or have left more than `backlog_max` bytes, are closed and told. Whose socket took something is looked at
    /// again in the next turn: it may have waited for room.
    pub fn flush(&mut self, backlog_max: usize) -> Vec<u64> {
        let mut gone = Vec::new();
        for number in std::mem::take(&mut self.unsent) {
            let Some(conn) = self.conns.get_mut(&number) else { continue };
            match conn.flush() {
                Ok(has_moved) if conn.backlog() <= backlog_max => {
                    if has_moved {
                        self.ready.insert(number);
                    }
                }
                _ => {
                    self.close(number);
                    gone.push(number);
                }
            }
        }
        gone
    }

    /// Whether all places are taken, or all descriptors, and a connection may wait for one.
    pub fn is_short(&self) -> bool {
        self.is_due && (self.is_out || self.conns.len() >= self.conns_max)
    }

    /// Connections whose other end has taken nothing for so long, though something is to go.
    pub fn stuck(&self, patience: Duration) -> Vec<u64> {
        let is_stuck = |conn: &Conn| conn.stuck_for().is_some_and(|stuck| stuck >= patience);
        self.conns.iter().filter(|(_, conn)| is_stuck(conn)).map(|(number, _)| *number).collect()
    }

    /// Closes a connection.
    pub fn close(&mut self, number: u64) {
        self.conns.remove(&number);
        self.ready.remove(&number);
        // A connection may have waited for its place.
        self.is_due = true;
    }
}
