//! All clients' connections of a gateway.
//!
//! Readiness is reported once (edge-triggered), so a connection that has more than was read stays in the list of those to
//! read. One that is to be read later leaves it for the *parked* until its time has come: however many there are, a
//! turn of the duty cycle looks only at the first of them.
//!
//! ```text
//!              +----- has more -----+
//!              v                    |
//!  ready --> reading --read later--> parked --its time--> reading
//! ```
//! That a client waits to be accepted is reported once too, so it is remembered until nobody does: when descriptors are out, those who
//! wait are accepted as soon as there are some again.
//!
//! However many connect, sign on, hang up or fall silent at once, a turn takes in a few of them: those that trade wait for one turn's
//! work, and not for all of it.
//!
//! Who has connected and not signed on is a *stranger*. Strangers have a share of the room only, and when it is used up one of the network
//! that has most goes, or the oldest: programs that never sign on must not keep members out. A client of the operators' socket has one of the places
//! that are for nobody else.

mod accepting;
mod doors;
mod silence;
mod watchers;

use std::collections::{BTreeSet, VecDeque};
use std::io;
use std::sync::Arc;
use std::time::Duration;

use pares_gateway::SessionId;
use pares_port::DoorTime;
use pares_roles::origins::ConnectionsByOrigin;
use pares_roles::world::{MarketFeed, Ready, RejectedConnections, Sockets};
use pares_table::{Network, Origin};
use pares_types::{ClientOrderId, Reason, Refuser, Reply};
use pares_wire::frame;

use crate::connection::{Connection, ReadState};
use crate::door_end::{Doors, Heard};
use crate::tap::{Tally, Tap};
use crate::types::{Asked, Close, Incoming, session, slot};
pub use accepting::{OPERATORS_MAX, strangers_max};
use watchers::Watchers;

/// Frames taken in before their answers are looked after; connections that were not read have the next turn.
const FRAMES_MAX: usize = 4_096;
/// Unsent output of all connections together beyond which a client that does not read is given little of it.
const CROWDED_BYTES: usize = 256 << 20;
/// A sign-on must be complete within this while there are as many strangers as there may be.
const CROWDED_PATIENCE_NS: u64 = 1_000_000_000;
/// Connections accepted, and strangers read, before those that are signed on are looked after: to sign one on takes some ten microseconds, most of it in the kernel.
const ACCEPTS_MAX: usize = 64;
const KNOCKS_MAX: usize = 64;
/// Connections read, or ended because of their silence, before answers are looked after.
const READS_MAX: usize = 256;

/// The connections, their readiness, and who is waiting to be flushed.
pub(crate) struct Connections<S: Sockets> {
    sockets: S,
    ready: Vec<Ready>,
    slots: Vec<Option<Connection<S::Stream>>>,
    free: Vec<usize>,
    generations: u32,
    sessions_max: usize,
    /// Whether a connection may be waiting to be accepted.
    waiting: bool,
    strangers: ConnectionsByOrigin,
    /// How many came to the operators' socket.
    operators: usize,
    /// Those to read that are signed on, and strangers.
    reading: VecDeque<usize>,
    knocking: VecDeque<usize>,
    /// How often connections were read.
    turns: usize,
    flushing: Vec<usize>,
    /// Readable connections that are read later: when, by the monotonic clock, and which.
    parked: BTreeSet<(u64, usize)>,
    /// Connections with a heartbeat: when to look whether it was missed, and which.
    heartbeats: BTreeSet<(u64, usize)>,
    /// How doors are made, if there is a port of another protocol; when which one gets the time; what they ask.
    doors: Option<Doors>,
    doors_due: BTreeSet<(u64, usize)>,
    heard: Heard,
    watchers: Watchers,
    tap: Tap,
    /// When connections were read last.
    read_ns: u64,
    /// Bytes that sockets did not take, of all connections.
    unsent: usize,
    /// How often a connection had something to read and was left unread for a while.
    pub(crate) parkings: u64,
    pub(crate) refused: u64,
    pub(crate) malformed: u64,
    pub(crate) slow: u64,
    pub(crate) silent: u64,
}

impl<S: Sockets> Connections<S> {
    pub(crate) fn new(
        sockets: S,
        sessions_max: usize,
        doors: Option<Doors>,
        tap: Tap,
        market: Option<Arc<dyn MarketFeed>>,
    ) -> Self {
        Self {
            sockets,
            ready: Vec::new(),
            slots: Vec::new(),
            free: Vec::new(),
            generations: 0,
            sessions_max,
            waiting: true,
            strangers: ConnectionsByOrigin::default(),
            operators: 0,
            reading: VecDeque::new(),
            knocking: VecDeque::new(),
            turns: 0,
            flushing: Vec::new(),
            parked: BTreeSet::new(),
            heartbeats: BTreeSet::new(),
            doors,
            doors_due: BTreeSet::new(),
            heard: Heard::default(),
            watchers: Watchers::new(market),
            tap,
            read_ns: u64::MAX,
            unsent: 0,
            parkings: 0,
            refused: 0,
            malformed: 0,
            slow: 0,
            silent: 0,
        }
    }

    pub(crate) fn turned_away(&self) -> RejectedConnections {
        self.sockets.turned_away()
    }

    /// A turn is over. How much the tap, if there is one, has taken and lost.
    pub(crate) fn tap_turn(&mut self) -> Option<Tally> {
        self.tap.turn()
    }

    pub(crate) fn len(&self) -> usize {
        assert!(self.free.len() <= self.slots.len(), "a free slot is one of the slots");
        self.slots.len() - self.free.len()
    }

    /// Waits for readiness, at most `timeout`, and accepts who wants to connect. Says how many did.
    pub(crate) fn wait(&mut self, timeout: Duration, mono_ns: u64) -> io::Result<usize> {
        let mut ready = std::mem::take(&mut self.ready);
        let polled = self.sockets.poll(timeout, &mut ready);
        for one in ready.drain(..) {
            match one {
                Ready::Listener => self.waiting = true,
                Ready::Stream { slot, readable, writable } => self.on_ready(slot, readable, writable),
            }
        }
        self.ready = ready;
        let accepted = self.accept(mono_ns);
        polled.map(|()| accepted)
    }

    fn on_ready(&mut self, slot: usize, readable: bool, writable: bool) {
        let Some(connection) = self.slots.get_mut(slot).and_then(Option::as_mut) else { return };
        let is_news = readable && !std::mem::replace(&mut connection.reading, true);
        if writable && !std::mem::replace(&mut connection.flushing, true) {
            self.flushing.push(slot);
        }
        if is_news {
            self.read_again(slot);
        }
    }

    /// Tells a session why it is disconnected, and does so once it has been told.
    pub(crate) fn refuse(&mut self, session: SessionId, reason: Reason, why: Close) {
        if self.connection(session).is_some() {
            self.refuse_slot(slot(session), reason, why);
        }
    }

    /// The session has to prove who it is. Says whether it was not asked before.
    pub(crate) fn ask_for_proof(&mut self, session: SessionId, asked: Asked) -> bool {
        let connection = self.connection(session);
        connection.is_some_and(|connection| connection.asked.replace(asked).is_none())
    }

    /// What the session has to prove; asked once.
    pub(crate) fn take_asked(&mut self, session: SessionId) -> Option<Asked> {
        self.connection(session)?.asked.take()
    }

    /// Where the session's client is; of one that is gone that cannot be said.
    pub(crate) fn origin(&mut self, session: SessionId) -> Origin {
        self.connection(session).map_or(Some(Network::UNKNOWN), |connection| connection.origin)
    }

    pub(crate) fn is_heard(&mut self, session: SessionId) -> bool {
        self.connection(session).is_some_and(|connection| !connection.refused)
    }

    fn refuse_slot(&mut self, slot: usize, reason: Reason, why: Close) {
        let connection = self.slots[slot].as_mut().expect("only open connections are refused");
        if let Some(since_ns) = connection.stranger_since_ns {
            self.strangers.remove(connection.origin, since_ns, slot);
        }
        connection.refused = true;
        write_refusal(connection.output(), reason);
        self.end(slot, why);
    }

    fn end(&mut self, slot: usize, why: Close) {
        let connection = self.slots[slot].as_mut().expect("only open connections are ended");
        connection.broken.get_or_insert(why);
        if !std::mem::replace(&mut connection.flushing, true) {
            self.flushing.push(slot);
        }
    }

    /// Reads one buffer each of some readable connections whose time has come and appends its frames to `frames`; the rest has to
    /// wait for the next call. Those that are signed on go first. Says how many were looked at.
    pub(crate) fn read(&mut self, at: DoorTime, frames: &mut Vec<(SessionId, Incoming)>) -> usize {
        let mono_ns = at.mono_ns;
        self.end_unread_operators(mono_ns);
        self.unpark(mono_ns);
        let (members, strangers) = (self.reading.len().min(READS_MAX), self.knocking.len().min(KNOCKS_MAX));
        // Who is read first has most of what room there is: another one in each turn, where all have theirs in it.
        self.turns = self.turns.wrapping_add(1);
        if members == self.reading.len() {
            self.reading.rotate_left(self.turns % members.max(1));
        }
        let mut looked_at = 0;
        while looked_at < members && frames.len() + self.heard.incoming.len() < FRAMES_MAX {
            let slot = self.reading.pop_front().expect("there are so many");
            self.read_one(slot, at, frames);
            looked_at += 1;
        }
        for _ in 0..strangers {
            let slot = self.knocking.pop_front().expect("there are so many");
            self.read_one(slot, at, frames);
        }
        frames.append(&mut self.heard.incoming);
        looked_at + strangers
    }

    fn read_one(&mut self, slot: usize, at: DoorTime, frames: &mut Vec<(SessionId, Incoming)>) {
        let mono_ns = at.mono_ns;
        let Some(connection) = self.slots[slot].as_mut().filter(|one| one.broken.is_none()) else { return };
        if connection.later_ns() > mono_ns {
            self.parked.insert((connection.later_ns(), slot));
            self.parkings += 1;
            return;
        }
        let session = session(slot, connection.generation);
        let has_door = connection.has_door();
        let state = connection.read(mono_ns, &mut self.tap).and_then(|state| {
            if has_door {
                return Ok(state);
            }
            connection.take_frames(mono_ns, |incoming| frames.push((session, incoming)))?;
            Ok(state)
        });
        connection.reading = state == Ok(ReadState::More);
        if has_door && state.is_ok() {
            self.take_messages(slot, at);
        }
        match state {
            Ok(ReadState::More) => self.read_again(slot),
            Ok(ReadState::Drained) => {}
            Err(why) => self.end(slot, why),
        }
    }

    /// The connection has something to read.
    fn read_again(&mut self, slot: usize) {
        let is_stranger = self.slots[slot].as_ref().is_some_and(|one| one.stranger_since_ns.is_some());
        if is_stranger { self.knocking.push_back(slot) } else { self.reading.push_back(slot) }
    }

    fn unpark(&mut self, mono_ns: u64) {
        while let Some(&(later_ns, slot)) = self.parked.first().filter(|(later_ns, _)| *later_ns <= mono_ns) {
            self.parked.remove(&(later_ns, slot));
            self.read_again(slot);
        }
    }

    pub(crate) fn read_later(&mut self, session: SessionId, pause_ns: u64, mono_ns: u64) {
        if let Some(connection) = self.connection(session) {
            connection.read_later(mono_ns + pause_ns);
        }
    }

    /// When the next readable connection may be read, or a heartbeat may have been missed, by the monotonic clock.
    pub(crate) fn next_due_ns(&self) -> Option<u64> {
        let firsts = [self.parked.first(), self.heartbeats.first(), self.doors_due.first()];
        firsts.into_iter().flatten().map(|(due_ns, _)| *due_ns).min()
    }

    /// A session has signed on: from now on it gets a full-sized buffer, and has to be heard if it has a heartbeat.
    pub(crate) fn sign_on(&mut self, session: SessionId, asked: &Asked, mono_ns: u64) {
        let Some(connection) = self.connection(session) else { return };
        let (since_ns, origin, at_operators) =
            (connection.stranger_since_ns, connection.origin, connection.at_operators);
        connection.sign_on(asked.is_of_operator());
        connection.tapped.signed_on(asked.who());
        let has_heartbeat = connection.has_to_beat(asked.heartbeat_ms, mono_ns);
        self.heartbeats.extend(has_heartbeat.map(|due_ns| (due_ns, slot(session))));
        let counted = since_ns.is_some_and(|since_ns| self.strangers.remove(origin, since_ns, slot(session)));
        assert!(counted || at_operators, "who signs on at a port was a stranger until then");
    }

    fn connection(&mut self, session: SessionId) -> Option<&mut Connection<S::Stream>> {
        let connection = self.slots.get_mut(slot(session))?.as_mut()?;
        (u64::from(connection.generation) == session.0 >> 32).then_some(connection)
    }

    /// The output of a session, if it is still there.
    pub(crate) fn output(&mut self, session: SessionId) -> Option<&mut Vec<u8>> {
        let slot = slot(session);
        self.connection(session)?;
        let connection = self.slots[slot].as_mut().expect("just found");
        if !std::mem::replace(&mut connection.flushing, true) {
            self.flushing.push(slot);
        }
        Some(connection.output())
    }

    /// Writes to a session, if it is still there.
    #[inline]
    pub(crate) fn write(&mut self, session: SessionId, write: impl FnOnce(&mut Vec<u8>)) {
        if let Some(output) = self.output(session) {
            write(output);
        }
    }

    /// Bytes that wait to be sent to a session; `None` if it is gone.
    pub(crate) fn unread(&mut self, session: SessionId) -> Option<usize> {
        self.connection(session).map(|connection| connection.unsent())
    }

    /// Sends what is waiting and ends what is broken, reporting who is gone to `on_close`.
    pub(crate) fn flush(&mut self, mut on_close: impl FnMut(SessionId)) {
        assert!(self.heard.marks.is_empty(), "marks are in the log before anything is sent under them");
        let mut flushing = std::mem::take(&mut self.flushing);
        for slot in flushing.drain(..) {
            let Some(connection) = self.slots[slot].as_mut() else { continue };
            assert!(connection.flushing, "a connection is once among those to flush");
            connection.flushing = false;
            let crowded = self.unsent > CROWDED_BYTES;
            let before = connection.unsent_noted;
            assert!(before <= self.unsent, "what a connection has not sent is counted among all");
            let flushed = connection.flush(crowded, &mut self.tap);
            connection.unsent_noted = connection.unsent();
            self.unsent = self.unsent - before + connection.unsent_noted;
            if let Some(why) = connection.broken.or(flushed.err()) {
                on_close(session(slot, connection.generation));
                self.close(slot, why);
            }
        }
        self.flushing = flushing;
    }

    fn close(&mut self, slot: usize, why: Close) {
        let mut connection = self.slots[slot].take().expect("only open connections are closed");
        self.parked.remove(&(connection.later_ns(), slot));
        if let Some(since_ns) = connection.stranger_since_ns {
            self.strangers.remove(connection.origin, since_ns, slot);
        }
        self.operators -= usize::from(connection.at_operators);
        self.heartbeats.remove(&(connection.silent_ns, slot));
        self.watchers.gone(slot);
        if let Some(due_ns) = connection.end.as_ref().and_then(|end| end.due_ns) {
            self.doors_due.remove(&(due_ns, slot));
        }
        assert!(connection.unsent_noted <= self.unsent, "what is not sent is counted among all");
        self.unsent -= connection.unsent_noted;
        self.tap.ended(&connection.tapped, why);
        self.sockets.deregister(connection.stream());
        self.free.push(slot);
        match why {
            Close::Gone => {}
            Close::Malformed => self.malformed += 1,
            Close::Slow => self.slow += 1,
            Close::Silent => self.silent += 1,
            Close::Refused | Close::TakenOver => self.refused += 1,
        }
    }
}

fn write_refusal(output: &mut Vec<u8>, reason: Reason) {
    assert!(reason.refuser().is_some_and(Refuser::is_gateway), "{reason} is no gateway's");
    frame::write_reply(output, &Reply::Rejected { client_order_id: ClientOrderId(0), reason });
}
