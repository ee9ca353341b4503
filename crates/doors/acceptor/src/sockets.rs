//! The acceptor on TCP: one thread, which waits for sockets and for the next deadline.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read, Result, Write};
use std::net::SocketAddr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token};

use crate::acceptor::{ConnectionOutput, EchoAcceptor};

const LISTENER: Token = Token(0);
/// Connections at a time; others are closed as they come.
const CONNECTIONS_MAX: usize = 1_024;
/// What a connection reads at once.
const READ_BYTES: usize = 64 << 10;
/// What may wait for a peer to read it; a peer that is further behind is cut off.
const UNSENT_BYTES_MAX: usize = 1 << 20;

/// Listens, and serves until the process ends.
#[derive(Debug)]
pub struct AcceptorSockets {
    poll: Poll,
    listener: TcpListener,
    acceptor: EchoAcceptor,
    sockets: BTreeMap<u64, Socket>,
    next: u64,
    /// What was just read.
    bytes: Vec<u8>,
}

#[derive(Debug)]
struct Socket {
    stream: TcpStream,
    unsent: Vec<u8>,
    is_closing: bool,
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
            let deadline = self.acceptor.next_deadline();
            let wait =
                deadline.map(|deadline_ns| Duration::from_nanos(deadline_ns.saturating_sub(now_ns()) + 1));
            match self.poll.poll(&mut events, wait) {
                Err(error) if error.kind() != ErrorKind::Interrupted => return Err(error),
                _ => {}
            }
            for event in &events {
                match event.token() {
                    LISTENER => self.accept(),
                    Token(connection) => self.serve(connection as u64),
                }
            }
            if deadline.is_some_and(|deadline_ns| now_ns() >= deadline_ns) {
                let Self { acceptor, sockets, .. } = self;
                acceptor.tick(now_ns(), &mut |connection, output: ConnectionOutput<'_>| {
                    put(sockets, connection, output)
                });
            }
            self.flush();
        }
    }

    fn accept(&mut self) {
        // What cannot be accepted now is tried again when the next one comes.
        while let Ok((mut stream, _)) = self.listener.accept() {
            let connection = self.next;
            let (token, interest) = (Token(connection as usize), Interest::READABLE | Interest::WRITABLE);
            let is_registered = self.poll.registry().register(&mut stream, token, interest).is_ok();
            if self.sockets.len() >= CONNECTIONS_MAX || !is_registered {
                continue;
            }
            // Without it answers are later, and nothing else.
            let _ = stream.set_nodelay(true);
            self.next += 1;
            self.acceptor.connect(connection, now_ns());
            self.sockets.insert(connection, Socket { stream, unsent: Vec::new(), is_closing: false });
        }
    }

    fn serve(&mut self, connection: u64) {
        loop {
            let Some(socket) = self.sockets.get_mut(&connection).filter(|socket| !socket.is_closing) else {
                return;
            };
            match socket.stream.read(&mut self.bytes) {
                Ok(0) => return self.drop_socket(connection),
                Ok(length) => {
                    let Self { acceptor, sockets, bytes, .. } = self;
                    let sink =
                        &mut |connection, output: ConnectionOutput<'_>| put(sockets, connection, output);
                    acceptor.receive(connection, now_ns(), &bytes[..length], sink);
                    self.flush();
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return self.drop_socket(connection),
            }
        }
    }

    fn drop_socket(&mut self, connection: u64) {
        self.acceptor.disconnect(connection);
        self.sockets.remove(&connection);
    }

    /// Writes what waits, and closes what is to be closed.
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
    /// Writes what waits; whether the connection is at its end.
    fn write(&mut self) -> bool {
        while !self.unsent.is_empty() {
            match self.stream.write(&self.unsent) {
                Ok(0) => return true,
                Ok(length) => drop(self.unsent.drain(..length)),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    return self.unsent.len() > UNSENT_BYTES_MAX;
                }
                Err(_) => return true,
            }
        }
        self.is_closing
    }
}

fn put(sockets: &mut BTreeMap<u64, Socket>, connection: u64, output: ConnectionOutput<'_>) {
    let Some(socket) = sockets.get_mut(&connection) else { return };
    match output {
        ConnectionOutput::Bytes(bytes) => socket.unsent.extend_from_slice(bytes),
        ConnectionOutput::Close => socket.is_closing = true,
    }
}

fn now_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}
