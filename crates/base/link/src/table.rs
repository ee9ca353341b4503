//! All connections of one site on one poll, sites and clients alike.
//!
//! Readiness is reported once (edge-triggered): a connection that has more than its turn allowed stays in the list of those to
//! read. What ended stays in its slot until it was reported, so that nothing is reported twice or not at all.

use std::collections::BTreeSet;
use std::io;
use std::net::SocketAddr;
use std::time::Instant;

use mio::net::TcpStream;
use mio::{Interest, Registry, Token};

use crate::ended::Ended;
use crate::wire::{Filled, SCRATCH_BYTES, Wire};

/// Buffers' worth read from one connection before the next has its turn.
const TURN: usize = 8;
/// Buffers' worth read from all of them before what came is done: 8 MiB.
const TURNS_BUFFERS_MAX: usize = 128;
/// What an application may hold, bytes, however much all of them do.
const SHARE_BYTES: usize = 64 << 10;
/// Handshakes that are taken a step further in one turn: each costs a tenth of a millisecond or more, and who is known waits no longer than for these.
const HANDSHAKES: usize = 4;

/// Who is at the other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// A caller who connected here and has not said who it is.
    Stranger,
    /// A site being dialled: not connected, or its hello has not come.
    Dialled(u16),
    /// A site, known.
    Site(u16),
    /// An application, or a caller in the TLS handshake who wants to be one.
    Client,
}

pub(crate) struct Entry {
    pub(crate) wire: Wire,
    pub(crate) role: Role,
    pub(crate) address: SocketAddr,
    /// Tells this connection from others that have had the slot.
    pub(crate) generation: u32,
    /// Whether the socket is connected; only of dialled ones it is not from the start.
    pub(crate) connected: bool,
    /// Whether its caller has been told of it.
    pub(crate) known: bool,
    /// What an application's certificate calls it.
    pub(crate) caller: Option<String>,
    /// What is still to be done must be done by then.
    deadline: Option<Instant>,
    reading: bool,
    dirty: bool,
    ended: Option<Ended>,
    /// What its buffers held when they were last looked at, bytes; of applications only.
    held: usize,
}

impl Entry {
    fn is_unknown(&self, role: Role) -> bool {
        self.role == role && !self.known && self.ended.is_none()
    }
}

#[derive(Default)]
pub(crate) struct Table {
    /// What the buffers of all applications hold, bytes, and the bound beyond which one with more than its share is ended.
    held: usize,
    held_max: usize,
    slots: Vec<Option<Entry>>,
    free: Vec<usize>,
    generations: u32,
    deadlines: BTreeSet<(Instant, usize)>,
    reading: Vec<usize>,
    dirty: Vec<usize>,
    ended: Vec<usize>,
    scratch: Vec<u8>,
}

impl Table {
    pub(crate) fn new(held_max: usize) -> Self {
        Self { held_max, ..Self::default() }
    }

    /// Counts what an application's buffers hold; ends it if all of them hold too much, and it more than its share. Whether it is still there.
    pub(crate) fn recount(&mut self, slot: usize) -> bool {
        let Some(entry) = self.get(slot) else { return false };
        if entry.role != Role::Client {
            return true;
        }
        let held = entry.wire.held();
        let before = std::mem::replace(&mut entry.held, held);
        self.held = self.held - before + held;
        let is_too_much = self.held > self.held_max && held > SHARE_BYTES;
        if is_too_much {
            self.end(slot, Ended::Slow(held));
        }
        !is_too_much
    }

    pub(crate) fn insert(
        &mut self,
        registry: &Registry,
        mut wire: Wire,
        role: Role,
        address: SocketAddr,
        deadline: Option<Instant>,
    ) -> io::Result<usize> {
        let slot = self.free.last().copied().unwrap_or(self.slots.len());
        let interest = Interest::READABLE.add(Interest::WRITABLE);
        registry.register(wire.stream(), Token(slot), interest)?;
        self.generations = self.generations.wrapping_add(1);
        let connected = !matches!(role, Role::Dialled(_));
        let entry = Entry {
            wire,
            role,
            address,
            generation: self.generations,
            connected,
            known: false,
            caller: None,
            deadline,
            reading: false,
            dirty: false,
            ended: None,
            held: 0,
        };
        if self.free.pop().is_some() {
            self.slots[slot] = Some(entry);
        } else {
            self.slots.push(Some(entry));
        }
        self.deadlines.extend(deadline.map(|deadline| (deadline, slot)));
        Ok(slot)
    }

    /// A connection that has not ended.
    pub(crate) fn get(&mut self, slot: usize) -> Option<&mut Entry> {
        self.slots.get_mut(slot)?.as_mut().filter(|entry| entry.ended.is_none())
    }

    /// Bytes waiting to be sent on it, 0 if it has ended.
    pub(crate) fn backlog(&self, slot: usize) -> usize {
        let entry = self.slots.get(slot).and_then(Option::as_ref).filter(|entry| entry.ended.is_none());
        entry.map_or(0, |entry| entry.wire.backlog())
    }

    /// A client's connection, if it is still the same.
    pub(crate) fn client(&mut self, slot: usize, generation: u32) -> Option<&mut Entry> {
        self.get(slot).filter(|entry| entry.role == Role::Client && entry.generation == generation)
    }

    /// How many there are in that role who have not said who they are.
    pub(crate) fn count_unknown(&self, role: Role) -> usize {
        self.slots.iter().flatten().filter(|entry| entry.is_unknown(role)).count()
    }

    /// Ends every connection in TLS.
    pub(crate) fn end_tls(&mut self, why: impl Fn() -> Ended) {
        for slot in 0..self.slots.len() {
            if self.get(slot).is_some_and(|entry| entry.wire.is_tls()) {
                self.end(slot, why());
            }
        }
    }

    /// What must be done next by some time: by when.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        self.deadlines.first().map(|(deadline, _)| *deadline)
    }

    /// Whether something can be done without waiting.
    pub(crate) fn is_busy(&self) -> bool {
        !self.reading.is_empty() || !self.ended.is_empty()
    }

    /// Nothing more has to be done by some time.
    pub(crate) fn settle(&mut self, slot: usize) {
        let Some(entry) = self.get(slot) else { return };
        if let Some(deadline) = entry.deadline.take() {
            self.deadlines.remove(&(deadline, slot));
        }
    }

    pub(crate) fn mark_readable(&mut self, slot: usize) {
        let Some(entry) = self.get(slot) else { return };
        if !std::mem::replace(&mut entry.reading, true) {
            self.reading.push(slot);
        }
    }

    pub(crate) fn mark_dirty(&mut self, slot: usize) {
        let Some(entry) = self.get(slot) else { return };
        if !std::mem::replace(&mut entry.dirty, true) {
            self.dirty.push(slot);
        }
    }

    /// Says nothing more of a connection, whether it has ended or not.
    pub(crate) fn forget(&mut self, slot: usize) {
        self.end(slot, Ended::Replaced);
        if let Some(entry) = self.slots[slot].as_mut() {
            (entry.known, entry.ended) = (false, Some(Ended::Replaced));
        }
    }

    /// Ends a connection; it is reported by the next [`Self::bury`].
    pub(crate) fn end(&mut self, slot: usize, why: Ended) {
        let Some(entry) = self.get(slot) else { return };
        entry.ended = Some(why);
        self.ended.push(slot);
    }

    pub(crate) fn end_late(&mut self, now: Instant) {
        while let Some(&(deadline, slot)) = self.deadlines.first().filter(|(deadline, _)| *deadline <= now) {
            self.deadlines.remove(&(deadline, slot));
            self.end(slot, Ended::Silent);
        }
    }

    /// Of those in that role who have not said who they are, the one that has had the longest time for it; and when that time ends.
    pub(crate) fn oldest_unknown(&self, role: Role) -> Option<(Instant, usize)> {
        let is_unknown = |slot: usize| self.slots[slot].as_ref().is_some_and(|entry| entry.is_unknown(role));
        self.deadlines.iter().find(|(_, slot)| is_unknown(*slot)).copied()
    }

    /// Gives each connection that has something its turn: `on_bytes` is called after each buffer, to take the frames. When much has come the rest
    /// is read the next time, before others.
    pub(crate) fn read(&mut self, mut on_bytes: impl FnMut(&mut Self, usize)) {
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.resize(SCRATCH_BYTES, 0);
        let mut waiting = std::mem::take(&mut self.reading).into_iter();
        let (mut buffers, mut handshakes) = (0, 0);
        while buffers < TURNS_BUFFERS_MAX
            && let Some(slot) = waiting.next()
        {
            let Some(entry) = self.get(slot) else { continue };
            if entry.wire.is_handshaking() {
                handshakes += 1;
                if handshakes > HANDSHAKES {
                    self.reading.push(slot);
                    continue;
                }
            }
            entry.reading = false;
            if !entry.connected {
                continue; // its readiness to write comes first, and asks for this again
            }
            let (filled, taken) = self.turn(slot, &mut scratch, &mut on_bytes);
            buffers += taken;
            if filled == Filled::More {
                self.mark_readable(slot);
            }
        }
        self.reading.splice(0..0, waiting);
        self.scratch = scratch;
    }

    fn turn(
        &mut self,
        slot: usize,
        scratch: &mut [u8],
        on_bytes: &mut impl FnMut(&mut Self, usize),
    ) -> (Filled, usize) {
        for buffers in 0..TURN {
            let Some(entry) = self.get(slot) else { return (Filled::Drained, buffers) };
            match entry.wire.fill(scratch) {
                Ok(filled) => {
                    if entry.wire.wants_flush() {
                        self.mark_dirty(slot);
                    }
                    on_bytes(self, slot);
                    if filled == Filled::Drained || !self.recount(slot) {
                        return (Filled::Drained, buffers + 1);
                    }
                }
                Err(why) => {
                    self.end(slot, why);
                    return (Filled::Drained, buffers);
                }
            }
        }
        (Filled::More, TURN)
    }

    /// Sends what is waiting.
    pub(crate) fn flush(&mut self) {
        for slot in std::mem::take(&mut self.dirty) {
            let Some(entry) = self.get(slot) else { continue };
            entry.dirty = false;
            if !entry.connected {
                continue;
            }
            match entry.wire.flush() {
                Err(why) => self.end(slot, why),
                Ok(()) => drop(self.recount(slot)),
            }
        }
    }

    /// Takes out one that ended, for the caller to report.
    pub(crate) fn bury(&mut self, registry: &Registry) -> Option<(usize, Entry, Ended)> {
        let slot = self.ended.pop()?;
        let mut entry = self.slots[slot].take().expect("it stays until it is buried");
        self.held -= entry.held;
        if let Some(deadline) = entry.deadline {
            self.deadlines.remove(&(deadline, slot));
        }
        if entry.connected {
            entry.wire.close();
        }
        // A socket that cannot be deregistered leaves the poll when it is dropped.
        let _ = registry.deregister(entry.wire.stream());
        self.free.push(slot);
        let why = entry.ended.take().expect("only what ended is buried");
        Some((slot, entry, why))
    }
}

/// Whether a socket that is being connected is so now.
pub(crate) fn is_connected(stream: &TcpStream) -> io::Result<bool> {
    if let Some(error) = stream.take_error()? {
        return Err(error);
    }
    match stream.peer_addr() {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotConnected => Ok(false),
        Err(error) => Err(error),
    }
}
