//! All clients' connections of a gateway.
//!
//! Readiness is told once (edge-triggered), so a connection that has more than was read stays in the list of those to
//! read. One that is to be read later leaves it for the *parked* until its time has come: however many there are, a
//! turn of the duty cycle looks only at the first of them.
//!
//! ```text
//!              +----- has more -----+
//!              v                    |
//!  ready --> reading --read later--> parked --its time--> reading
//! ```

use std::collections::BTreeSet;
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
/// What the kernel buffers of a connection's input, about twice this: what a cancel behind a flood waits for is bounded by
/// it, and so is the kernel's memory.
const RECEIVE_BYTES: usize = 64 << 10;
/// Frames taken in before their answers are looked after; connections that were not read have the next turn.
const FRAMES_MAX: usize = 4_096;
/// Unsent output of all connections together beyond which a client that does not read is given little of it.
const CROWDED_BYTES: usize = 256 << 20;
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
    /// Readable connections that are read later: when, by the monotonic clock, and which.
    parked: BTreeSet<(u64, usize)>,
    /// Bytes that sockets did not take, of all connections.
    unsent: usize,
    /// How often a connection had something to read and was left unread for a while.
    pub(super) parkings: u64,
    pub(super) refused: u64,
    pub(super) malformed: u64,
    pub(super) slow: u64,
    pub(super) silent: u64,
}

impl Connections {
    pub(super) fn open(address: SocketAddr, bell: BorrowedFd<'_>, sessions_max: usize) -> io::Result<Self> {
        let poll = Poll::new()?;
        let mut listener = TcpListener::bind(address)?;
        // Before it listens: connections inherit it.
        rustix::net::sockopt::set_socket_recv_buffer_size(&listener, RECEIVE_BYTES)?;
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
            parked: BTreeSet::new(),
            unsent: 0,
            parkings: 0,
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
                let _ = connection.flush(false);
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

    /// Reads one buffer of each readable connection whose time has come and appends its frames to `frames`; after
    /// [`FRAMES_MAX`] of them the rest has to wait for the next call. Says how many connections were read.
    pub(super) fn read(
        &mut self,
        now_ns: u64,
        mono_ns: u64,
        frames: &mut Vec<(SessionId, Incoming)>,
    ) -> usize {
        self.unpark(mono_ns);
        let mut reading = std::mem::take(&mut self.reading);
        let mut work = 0;
        let mut unread = Vec::new();
        reading.retain(|&slot| {
            let Some(connection) = self.slots[slot].as_mut() else { return false };
            if connection.later_ns() > mono_ns {
                self.parked.insert((connection.later_ns(), slot));
                self.parkings += 1;
                return false;
            }
            if frames.len() >= FRAMES_MAX {
                unread.push(slot);
                return false;
            }
            work += 1;
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
        if !unread.is_empty() {
            // Who had no turn is first the next time.
            unread.append(&mut reading);
            reading = unread;
        }
        reading.append(&mut self.reading);
        self.reading = reading;
        work
    }

    fn unpark(&mut self, mono_ns: u64) {
        while let Some(&(later_ns, slot)) = self.parked.first().filter(|(later_ns, _)| *later_ns <= mono_ns) {
            self.parked.remove(&(later_ns, slot));
            self.reading.push(slot);
        }
    }

    /// Leaves a session unread for `pause_ns` from now on.
    pub(super) fn read_later(&mut self, session: SessionId, pause_ns: u64, mono_ns: u64) {
        if let Some(connection) = self.connection(session) {
            connection.read_later(mono_ns + pause_ns);
        }
    }

    /// When the next readable connection may be read, by the monotonic clock.
    pub(super) fn next_due_ns(&self) -> Option<u64> {
        self.parked.first().map(|(later_ns, _)| *later_ns)
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
            let crowded = self.unsent > CROWDED_BYTES;
            let before = connection.unsent_noted;
            let flushed = connection.flush(crowded);
            connection.unsent_noted = connection.unsent();
            self.unsent = self.unsent - before + connection.unsent_noted;
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
        self.parked.remove(&(connection.later_ns(), slot));
        self.unsent -= connection.unsent_noted;
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
