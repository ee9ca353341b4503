//! A site's cluster log: the shipped one, with a listener.

use std::sync::Arc;

use pares_cluster::{
    Beginning, ClusterLog, EntryError, LogError, MemberId, MemberRole, Members, MessageError, Replica, Sink,
};
use pares_wice::codec::Coded;
use pares_wice::{LogEntry, Message};

use super::Defect;
use super::machine::{Machine, Records};

/// The shipped cluster log, listened to; and broken where it takes what the site proposes.
pub(super) struct Tapped {
    pub(super) replica: Replica<Records>,
    pub(super) machine: Machine,
}

impl Tapped {
    fn broken(&self, payload: &[u8]) -> Vec<u8> {
        let Some(defect) = self.machine.defect else { return payload.to_vec() };
        let mut entries = Vec::<LogEntry>::from_bytes(payload).expect("a site proposes entries");
        for entry in &mut entries {
            let LogEntry::Stream { era, entry } = entry else { continue };
            match defect {
                Defect::VouchesForLaterEra => era.takeovers = u32::MAX >> 1,
                Defect::StreamsTooEarly => {
                    let early = Message::Stream { era: *era, entries: vec![Arc::clone(entry)] };
                    self.machine.others.iter().for_each(|&other| self.machine.send_rules(other, &early));
                }
                _ => {}
            }
        }
        if defect == Defect::KeepsItsOwn {
            entries.retain(|entry| !matches!(entry, LogEntry::Discard { .. }));
        }
        entries.to_bytes()
    }
}

impl ClusterLog for Tapped {
    fn tick(&mut self) {
        self.replica.tick();
    }
    fn lost(&mut self, member: u8) {
        self.replica.lost(member);
    }
    fn impatient(&mut self) {
        self.replica.impatient();
    }
    fn receive(&mut self, from: u8, message: &[u8]) -> Result<(), MessageError> {
        self.replica.receive(from, message)
    }
    fn propose(&mut self, payload: &[u8]) -> Result<(), EntryError> {
        self.replica.propose(&self.broken(payload))
    }
    fn cycle(&mut self, out: &mut (impl Sink + ?Sized)) -> Result<(), LogError> {
        self.replica.cycle(&mut Tap { machine: &self.machine, out })
    }
    fn pending(&self) -> bool {
        self.replica.pending()
    }
    fn role(&self) -> MemberRole {
        self.replica.role()
    }
    fn compact(&mut self, up_to: u64) {
        self.replica.compact(up_to);
    }
    fn members(&self) -> &Members {
        self.replica.members()
    }
    fn beginning(&self, index: u64) -> Option<Beginning> {
        self.replica.beginning(index)
    }
    fn admit(&mut self, id: MemberId) {
        self.replica.admit(id);
    }
    fn dismiss(&mut self, number: u8) {
        if self.machine.defect != Some(Defect::DismissesNobody) {
            self.replica.dismiss(number);
        }
    }
    fn resign(&mut self) -> Option<u8> {
        self.replica.resign()
    }
    fn claim(&mut self) {
        self.replica.claim();
    }
}

struct Tap<'a, S: ?Sized> {
    machine: &'a Machine,
    out: &'a mut S,
}

impl<S: Sink + ?Sized> Sink for Tap<'_, S> {
    fn send(&mut self, to: u8, message: Vec<u8>) {
        self.out.send(to, message);
    }
    fn committed(&mut self, index: u64, term: u64, payload: &[u8]) {
        self.machine.committed.borrow_mut().push((index, payload.to_vec()));
        self.out.committed(index, term, payload);
    }
    fn role(&mut self, role: MemberRole) {
        self.out.role(role);
    }
    fn lacks(&mut self, at_least: u64) {
        self.out.lacks(at_least);
    }
}
