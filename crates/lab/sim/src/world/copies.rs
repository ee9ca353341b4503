//! A session that receives another member's streams: the exchange enters it, step by step, while gateways die.

use pares_register::Register;
use pares_types::{Command, Entry, MemberId, Position, Registration, Status};

use super::World;
use super::revocations::{SESSION, key};
use crate::client::EXCHANGE;
use crate::record::Record;
use crate::scenario::MS;

/// After it is recorded every gateway that takes a connection has read it.
const READ_NS: u64 = 8 * MS;

/// Who copies whom, and how far that is entered.
pub(super) struct Copies {
    member: MemberId,
    copied: MemberId,
    register: Register,
    /// The last position of the lowest shard that was looked at.
    last: Option<Position>,
    asked: Option<u64>,
    /// Since when it is recorded.
    since_ns: Option<u64>,
}

impl Copies {
    pub(super) fn new((member, copied): (MemberId, MemberId)) -> Self {
        Self { member, copied, register: Register::new(None), last: None, asked: None, since_ns: None }
    }

    /// What is to be entered next.
    fn next(&self) -> Option<Command> {
        let Self { member, copied, ref register, .. } = *self;
        let lacks = |member| register.members().all(|(one, _)| one != member);
        let (member, session, entry) = match () {
            () if lacks(member) => (member, 0, Entry::AddMember),
            () if lacks(copied) => (copied, 0, Entry::AddMember),
            () if register.key(member, SESSION).is_none() => (member, SESSION, Entry::SetKey(key(member))),
            () if register.told_of(member, SESSION) != copied => (member, SESSION, Entry::SetCopied(copied)),
            () => return None,
        };
        Some(Command::Register(Registration { member, session, entry }))
    }
}

impl World<'_> {
    /// The exchange asks for the next step, once the last was answered.
    pub(super) fn enter_copy(&mut self, exchange: usize) {
        let Some(copies) = self.copies.as_ref().filter(|_| self.clients[exchange].member == EXCHANGE) else {
            return;
        };
        let is_open = copies.asked.is_some_and(|name| self.clients[exchange].open.contains_key(&name));
        let Some(command) = copies.next().filter(|_| !is_open) else { return };
        let name = self.clients[exchange].ask_of_register(command, self.now_ns);
        self.copies.iter_mut().for_each(|copies| copies.asked = Some(name));
        self.ask_gateway(exchange, name);
    }

    /// A record of a recorder.
    pub(super) fn note_copies(&mut self, record: &Record) {
        let Some(copies) = self.copies.as_mut() else { return };
        let Command::Register(change) = record.request.command else { return };
        if record.shard().0 != 0 || copies.last.is_some_and(|last| last >= record.position) {
            return;
        }
        copies.last = Some(record.position);
        let is_done = record.outcome.status == Status::Accepted;
        if is_done && copies.register.apply(record.request.stamp, &change).is_ok() && copies.next().is_none()
        {
            copies.since_ns = Some(self.now_ns);
        }
    }

    /// Whether there is nothing to enter any more.
    pub(super) fn copies_are_entered(&self) -> bool {
        self.copies.as_ref().is_none_or(|copies| copies.since_ns.is_some())
    }

    /// Whether that member may call: one that copies another once the register says so.
    pub(super) fn may_call(&self, member: MemberId) -> bool {
        let copies = self.copies.as_ref().filter(|copies| copies.member == member);
        copies.is_none_or(|copies| copies.since_ns.is_some_and(|since_ns| self.now_ns >= since_ns + READ_NS))
    }
}
