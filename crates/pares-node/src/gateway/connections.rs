//! All clients' connections of a gateway.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::Duration;

use mio::net::TcpListener;
use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token};
use pares_gateway::SessionId;
use pares_types::{ClientOrderId, Reason, Reply};
use pares_wire::frame;

use super::connection::{Close, Connection, Incoming, ReadState};

const LISTENER: Token = Token(usize::MAX);
const BELL: Token = Token(usize::MAX - 1);
/// Connections that may wait to be accepted. When there are more the kernel drops the attempt and the client's tries
/// again after a second; the usual 128 come in within the few milliseconds a busy machine takes to run this process.
const BACKLOG: i32 = 4_096;
/// A sign-on or a frame must be complete within this.
const PATIENCE_NS: u64 = 10_000_000_000;

/// The connections, their readiness, and who is waiting to be flushed.
pub(super) struct Connections {
    poll: Poll,
    events: Events,
    listener: TcpListener,
    slots: Vec<Option<Connection>>,
    free: Vec<usize>,
    generations: u32,
    sessions_max: usize,
    reading: Vec<usize>,
    flushing: Vec<usize>,
    pub(super) refused: u64,
    pub(super) malformed: u64,
    pub(super) slow: u64,
    pub(super) silent: u64,
}

impl Connections {
    pub(super) fn open(address: SocketAddr, bell: BorrowedFd<'_>, sessions_max: usize) -> io::Result<Self> {
        let poll = Poll::new()?;
        let mut listener = TcpListener::bind(address)?;
        rustix::net::listen(&listener, BACKLOG)?;
        poll.registry().register(&mut listener, LISTENER, Interest::READABLE)?;
        poll.registry().register(&mut SourceFd(&bell.as_raw_fd()), BELL, Interest::READABLE)?;
        Ok(Self {
            poll,
            events: Events::with_capacity(1024),
            listener,
            slots: Vec::new(),
            free: Vec::new(),
            generations: 0,
            sessions_max,
            reading: Vec::new(),
            flushing: Vec::new(),
            refused: 0,
            malformed: 0,
            slow: 0,
            silent: 0,
        })
    }

    pub(super) fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    pub(super) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Waits for readiness, at most `timeout`. Says whether anything became ready, the bell aside.
    pub(super) fn wait(&mut self, timeout: Duration, now_ns: u64) -> io::Result<bool> {
        match self.poll.poll(&mut self.events, Some(timeout)) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(false),
            result => result?,
        }
        let mut accept = false;
        let mut ready = false;
        for event in &self.events {
            match event.token() {
                LISTENER => accept = true,
                BELL => continue,
                Token(slot) => {
                    let Some(connection) = self.slots.get_mut(slot).and_then(Option::as_mut) else {
                        continue;
                    };
                    if event.is_readable() && !std::mem::replace(&mut connection.reading, true) {
                        self.reading.push(slot);
                    }
                    if event.is_writable() && !std::mem::replace(&mut connection.flushing, true) {
                        self.flushing.push(slot);
                    }
                }
            }
            ready = true;
        }
        if accept {
            self.accept(now_ns);
        }
        Ok(ready)
    }

    fn accept(&mut self, now_ns: u64) {
        // Any error but "nothing there" concerns the connection being accepted (or the table of open
        // files is full); the next readiness tries again.
        while let Ok((stream, _)) = self.listener.accept() {
            // Latency matters more than segments; a socket that cannot be told so still works.
            let _ = stream.set_nodelay(true);
            self.generations = self.generations.wrapping_add(1);
            let mut connection = Connection::new(stream, self.generations, now_ns);
            if self.len() >= self.sessions_max {
                self.refused += 1;
                let reply = Reply::Rejected { client_order_id: ClientOrderId(0), reason: Reason::Overloaded };
                frame::write_reply(connection.output(), &reply);
                // Told why if the socket takes it; dropping closes it.
                let _ = connection.flush();
                continue;
            }
            let slot = self.free.pop().unwrap_or_else(|| {
                self.slots.push(None);
                self.slots.len() - 1
            });
            let interest = Interest::READABLE.add(Interest::WRITABLE);
            if self.poll.registry().register(connection.stream(), Token(slot), interest).is_ok() {
                self.slots[slot] = Some(connection);
            } else {
                self.free.push(slot);
            }
        }
    }

    /// Reads one buffer of each readable connection and appends its frames to `frames`. Says how many
    /// connections were read.
    pub(super) fn read(&mut self, now_ns: u64, frames: &mut Vec<(SessionId, Incoming)>) -> usize {
        let mut reading = std::mem::take(&mut self.reading);
        let work = reading.len();
        reading.retain(|&slot| {
            let Some(connection) = self.slots[slot].as_mut() else { return false };
            let session = session(slot, connection.generation);
            let state = connection.fill().and_then(|state| {
                connection.take_frames(now_ns, |incoming| frames.push((session, incoming)))?;
                Ok(state)
            });
            connection.reading = state == Ok(ReadState::More);
            if let Err(why) = state {
                connection.broken = Some(why);
                if !std::mem::replace(&mut connection.flushing, true) {
                    self.flushing.push(slot);
                }
            }
            connection.reading
        });
        reading.append(&mut self.reading);
        self.reading = reading;
        work
    }

    /// A session has signed on: from now on it gets a full-sized buffer.
    pub(super) fn sign_on(&mut self, session: SessionId) {
        if let Some(connection) = self.connection(session) {
            connection.sign_on();
        }
    }

    fn connection(&mut self, session: SessionId) -> Option<&mut Connection> {
        let slot = (session.0 & u64::from(u32::MAX)) as usize;
        let connection = self.slots.get_mut(slot)?.as_mut()?;
        (u64::from(connection.generation) == session.0 >> 32).then_some(connection)
    }

    /// The output of a session, if it is still there.
    pub(super) fn output(&mut self, session: SessionId) -> Option<&mut Vec<u8>> {
        let slot = (session.0 & u64::from(u32::MAX)) as usize;
        self.connection(session)?;
        let connection = self.slots[slot].as_mut().expect("just found");
        if !std::mem::replace(&mut connection.flushing, true) {
            self.flushing.push(slot);
        }
        Some(connection.output())
    }

    /// Sends what is waiting and ends what is broken, reporting who is gone to `on_close`.
    pub(super) fn flush(&mut self, mut on_close: impl FnMut(SessionId)) {
        let mut flushing = std::mem::take(&mut self.flushing);
        for slot in flushing.drain(..) {
            let Some(connection) = self.slots[slot].as_mut() else { continue };
            connection.flushing = false;
            let flushed = connection.flush();
            if let Some(why) = connection.broken.or(flushed.err()) {
                on_close(session(slot, connection.generation));
                self.close(slot, why);
            }
        }
        self.flushing = flushing;
    }

    /// Ends connections whose sign-on or frame has been incomplete for too long.
    pub(super) fn sweep(&mut self, now_ns: u64) {
        for slot in 0..self.slots.len() {
            let Some(connection) = self.slots[slot].as_mut() else { continue };
            let since = connection.incomplete_since_ns;
            if since != 0 && now_ns.saturating_sub(since) > PATIENCE_NS {
                connection.broken = Some(Close::Silent);
                if !std::mem::replace(&mut connection.flushing, true) {
                    self.flushing.push(slot);
                }
            }
        }
    }

    fn close(&mut self, slot: usize, why: Close) {
        let mut connection = self.slots[slot].take().expect("only open connections are closed");
        // A socket that cannot be deregistered leaves the poll when it is dropped.
        let _ = self.poll.registry().deregister(connection.stream());
        self.free.push(slot);
        match why {
            Close::Gone => {}
            Close::Malformed => self.malformed += 1,
            Close::Slow => self.slow += 1,
            Close::Silent => self.silent += 1,
        }
    }
}

fn session(slot: usize, generation: u32) -> SessionId {
    SessionId(u64::from(generation) << 32 | slot as u64)
}
