//! Connections at the ports of other protocols: their doors' time has come, their frames become messages.

use pares_gateway::SessionId;
use pares_port::{DoorTime, ProtocolDoor, Sink};
use pares_roles::world::Sockets;
use pares_types::InstrumentId;
use pares_wire::record::SessionMark;

use super::{Close, Connections, session, slot};
use crate::door_end::Heard;

impl<S: Sockets> Connections<S> {
    /// Hands what was read to the connection's door.
    pub(super) fn take_messages(&mut self, slot: usize, at: DoorTime) {
        self.step(slot, at, |connection, session, heard| {
            connection.take_messages(session, at, heard);
            false
        });
    }

    /// The session's numbers, as far as any gateway knows them.
    pub(crate) fn claimed(&mut self, session: SessionId, at: DoorTime, mark: Option<&SessionMark>) {
        if self.connection(session).is_none() {
            return;
        }
        self.step(slot(session), at, |connection, session, heard| {
            connection.with_door(session, heard, |door, sink| door.on_claimed(at, mark, sink));
            connection.translate(session, at, heard)
        });
    }

    /// Which instrument has the symbol that the session's door sought.
    pub(crate) fn found(&mut self, session: SessionId, at: DoorTime, instrument: Option<InstrumentId>) {
        self.tell_door(session, at, |door, sink| door.on_found(at, instrument, sink));
    }

    /// A Logon within the session is used up.
    pub(crate) fn proven(&mut self, session: SessionId, at: DoorTime) {
        self.tell_door(session, at, |door, sink| door.on_proven(at, sink));
    }

    fn tell_door(
        &mut self,
        session: SessionId,
        at: DoorTime,
        tell: impl FnOnce(&mut dyn ProtocolDoor, Sink<'_>),
    ) {
        if self.connection(session).is_some() {
            self.step(slot(session), at, |connection, session, heard| {
                connection.with_door(session, heard, tell);
                false
            });
        }
    }

    pub(crate) fn has_doors(&self) -> bool {
        self.doors.is_some()
    }

    /// Tells those doors the time for which it has come, and translates what is to be flushed. Says how much there is to do about it.
    pub(crate) fn translate(&mut self, at: DoorTime) -> usize {
        while let Some(&(due_ns, slot)) = self.doors_due.first().filter(|(due_ns, _)| *due_ns <= at.mono_ns) {
            self.doors_due.remove(&(due_ns, slot));
            self.step(slot, at, |connection, session, heard| {
                connection.with_door(session, heard, |door, sink| door.on_time(at, sink));
                false
            });
        }
        self.tell_market(at);
        for index in 0..self.flushing.len() {
            let slot = self.flushing[index];
            if self.slots[slot].as_ref().is_some_and(|one| one.has_door()) {
                self.step(slot, at, |connection, session, heard| connection.translate(session, at, heard));
            }
        }
        self.heard.incoming.len()
    }

    /// Marks that are to be kept before anything is flushed.
    pub(crate) fn marks(&mut self) -> Vec<(SessionId, SessionMark)> {
        std::mem::take(&mut self.heard.marks)
    }

    /// The session's numbers are not this connection's any more, or cannot be: nothing more is sent.
    pub(crate) fn take_over(&mut self, session: SessionId) {
        if let Some(connection) = self.connection(session) {
            connection.unsay(Close::TakenOver);
            self.end(slot(session), Close::TakenOver);
        }
    }

    /// Takes a step with a connection that has a door; has it flushed, and read again if there is room again as the step says.
    pub(super) fn step(
        &mut self,
        slot: usize,
        at: DoorTime,
        step: impl FnOnce(&mut super::Connection<S::Stream>, SessionId, &mut Heard) -> bool,
    ) {
        let connection = self.slots[slot].as_mut().expect("only open connections have doors");
        assert!(connection.has_door(), "only connections at other ports have doors that take steps");
        let session = session(slot, connection.generation);
        let has_room_again = step(connection, session, &mut self.heard);
        if !std::mem::replace(&mut connection.flushing, true) {
            self.flushing.push(slot);
        }
        let is_news = has_room_again && !std::mem::replace(&mut connection.reading, true);
        if let Some(end) = &mut connection.end {
            // One that wants the time at once has it in the next turn.
            let due_ns = end.next_deadline_ns().map(|due_ns| due_ns.max(at.mono_ns + 1));
            let before = std::mem::replace(&mut end.due_ns, due_ns);
            before.map(|due_ns| self.doors_due.remove(&(due_ns, slot)));
            self.doors_due.extend(due_ns.map(|due_ns| (due_ns, slot)));
            self.watchers.note(slot, end);
        }
        if is_news {
            self.read_again(slot);
        }
    }
}
