//! The acceptor on TCP: one thread, which waits for sockets and for the next deadline.
//!
//! A peer that asks for much and reads nothing must not fill the memory, and one that never stops must not keep the others waiting. So in each turn each
//! connection reads once, and only while little waits for its peer.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read, Result, Write};
use std::net::SocketAddr;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token};

use crate::acceptor::{ConnectionOutput, ConnectionSink, EchoAcceptor};

const LISTENER: Token = Token(0);
/// Connections at a time; others are closed as they come.
const CONNECTIONS_MAX: usize = 1_024;
/// Bytes that a connection reads in one turn.
const READ_BYTES: usize = 64 << 10;
/// While so much waits for a peer, nothing more is read of it and nothing is sent again.
const ROOM_BYTES: usize = 256 << 10;
/// Beyond it a peer is cut off. There is room for the answers to all messages that a session keeps because they came early.
const UNSENT_BYTES_MAX: usize = 1 << 20;
/// How long a connection at its end waits for its peer to read the rest.
const CLOSE_WAIT: Duration = Duration::from_secs(5);

/// Listens, and serves until the process ends.
#[derive(Debug)]
pub struct AcceptorSockets {
    poll: Poll,
    listener: TcpListener,
    acceptor: EchoAcceptor,
    sockets: BTreeMap<u64, Socket>,
    next: u64,
    /// Memory for reading.
    bytes: Vec<u8>,
}

#[derive(Debug)]
struct Socket {
    stream: TcpStream,
    unsent: Vec<u8>,
    /// Whether there may be something to read.
    is_ready: bool,
    /// Once it is at its end: when it is closed, whatever waits.
    closes_at: Option<Instant>,
}

/// The sockets as the acceptor sees them.
struct Outlet<'a>(&'a mut BTreeMap<u64, Socket>);

impl ConnectionSink for Outlet<'_> {
    fn put(&mut self, connection: u64, output: ConnectionOutput<'_>) {
        let Some(socket) = self.0.get_mut(&connection) else { return };
        match output {
            ConnectionOutput::Bytes(bytes) => socket.put(bytes),
            ConnectionOutput::Close => socket.close(),
        }
    }

    fn has_room(&self, connection: u64) -> bool {
        self.0.get(&connection).is_some_and(Socket::has_room)
    }
}

impl AcceptorSockets {
    /// Listens on an address.
    ///
    /// # Errors
    /// If the address cannot be had.
    pub fn listen(address: SocketAddr, acceptor: EchoAcceptor) -> Result<Self> {
        let mut listener = TcpListener::bind(address)?;
        let poll = Poll::new()?;
        poll.registry().register(&mut listener, LISTENER, Interest::READABLE)?;
        Ok(Self { poll, listener, acceptor, sockets: BTreeMap::new(), next: 1, bytes: vec![0; READ_BYTES] })
    }

    /// Where it listens.
    ///
    /// # Errors
    /// If the system does not say.
    pub fn address(&self) -> Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves connections.
    ///
    /// # Errors
    /// If the system can no longer be asked which sockets are ready.
    pub fn run(&mut self) -> Result<()> {
        let mut events = Events::with_capacity(CONNECTIONS_MAX);
        loop {
            self.turn(&mut events, None)?;
        }
    }

    /// Waits, `longest` at most, and then does one round of work.
    fn turn(&mut self, events: &mut Events, longest: Option<Duration>) -> Result<()> {
        match self.poll.poll(events, self.wait().into_iter().chain(longest).min()) {
            Err(error) if error.kind() != ErrorKind::Interrupted => return Err(error),
            _ => {}
        }
        for event in &*events {
            match event.token() {
                LISTENER => self.accept(),
                Token(connection) => {
                    self.sockets.entry(connection as u64).and_modify(|socket| socket.is_ready = true);
                }
            }
        }
        if self.acceptor.next_deadline().is_some_and(|deadline_ns| now_ns() >= deadline_ns) {
            self.acceptor.tick(now_ns(), &mut Outlet(&mut self.sockets));
        }
        for connection in self.sockets.keys().copied().collect::<Vec<_>>() {
            self.serve(connection);
        }
        self.flush();
        Ok(())
    }

    /// How long nothing is to be done unless a socket becomes ready.
    fn wait(&self) -> Option<Duration> {
        if self.sockets.keys().any(|connection| self.can_go_on(*connection)) {
            return Some(Duration::ZERO);
        }
        let deadline_ns = self.acceptor.next_deadline();
        let until = deadline_ns.map(|at_ns| Duration::from_nanos(at_ns.saturating_sub(now_ns()) + 1));
        let closing = self.sockets.values().filter_map(|socket| socket.closes_at);
        closing.map(|at| at.saturating_duration_since(Instant::now())).chain(until).min()
    }

    fn can_go_on(&self, connection: u64) -> bool {
        let socket = &self.sockets[&connection];
        socket.has_room() && (socket.is_ready || self.acceptor.is_behind(connection))
    }

    fn accept(&mut self) {
        loop {
            match self.listener.accept() {
                Ok((stream, _)) => self.welcome(stream),
                // That one is gone, or a signal came; others wait.
                Err(error)
                    if matches!(error.kind(), ErrorKind::ConnectionAborted | ErrorKind::Interrupted) => {}
                Err(_) => return,
            }
        }
    }

    fn welcome(&mut self, mut stream: TcpStream) {
        let connection = self.next;
        let (token, interest) = (Token(connection as usize), Interest::READABLE | Interest::WRITABLE);
        let is_registered = self.poll.registry().register(&mut stream, token, interest).is_ok();
        if self.sockets.len() >= CONNECTIONS_MAX || !is_registered {
            return;
        }
        // Without it answers are later, and nothing else.
        let _ = stream.set_nodelay(true);
        self.next += 1;
        self.acceptor.connect(connection, now_ns());
        let socket = Socket { stream, unsent: Vec::new(), is_ready: false, closes_at: None };
        self.sockets.insert(connection, socket);
    }

    /// Handles messages that came before, or reads once.
    fn serve(&mut self, connection: u64) {
        if !self.can_go_on(connection) {
            return;
        }
        let Self { acceptor, sockets, bytes, .. } = self;
        if acceptor.is_behind(connection) {
            return acceptor.receive(connection, now_ns(), &[], &mut Outlet(sockets));
        }
        let Some(socket) = sockets.get_mut(&connection) else { return };
        match socket.stream.read(bytes) {
            Ok(0) => self.drop_socket(connection),
            Ok(length) => acceptor.receive(connection, now_ns(), &bytes[..length], &mut Outlet(sockets)),
            Err(error) if error.kind() == ErrorKind::WouldBlock => socket.is_ready = false,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => self.drop_socket(connection),
        }
    }

    fn drop_socket(&mut self, connection: u64) {
        self.acceptor.disconnect(connection);
        self.sockets.remove(&connection);
    }

    /// Writes to all, and closes those at their end.
    fn flush(&mut self) {
        let done: Vec<u64> = self
            .sockets
            .iter_mut()
            .filter_map(|(number, socket)| socket.write().then_some(*number))
            .collect();
        done.into_iter().for_each(|connection| self.drop_socket(connection));
    }
}

impl Socket {
    fn has_room(&self) -> bool {
        self.closes_at.is_none() && self.unsent.len() < ROOM_BYTES
    }

    fn put(&mut self, bytes: &[u8]) {
        if self.unsent.len() + bytes.len() <= UNSENT_BYTES_MAX {
            self.unsent.extend_from_slice(bytes);
        } else {
            self.unsent.clear();
            self.close();
        }
    }

    fn close(&mut self) {
        self.closes_at.get_or_insert_with(|| Instant::now() + CLOSE_WAIT);
    }

    /// Writes as much as the peer takes; whether the connection is at its end.
    fn write(&mut self) -> bool {
        while !self.unsent.is_empty() {
            match self.stream.write(&self.unsent) {
                Ok(0) => return true,
                Ok(length) => drop(self.unsent.drain(..length)),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    return self.closes_at.is_some_and(|at| Instant::now() >= at);
                }
                Err(_) => return true,
            }
        }
        self.closes_at.is_some()
    }
}

fn now_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
