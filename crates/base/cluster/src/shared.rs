//! The twin: one vector that all members of a cluster look at, for tests.
//!
//! There is no protocol that could be wrong: an entry is committed when the delegate's cycle moves one number, and every member hands
//! out what lies below it. Who is delegate, and what a lost delegate's uncommitted entries become, is said by the test
//! ([`Group::elect`]).

use std::cell::RefCell;
use std::rc::Rc;

use crate::config::Beginning;
use crate::error::{EntryError, LogError, MessageError};
use crate::log::{ClusterLog, MemberRole, Sink};
use crate::members::{MemberId, Members};

/// Longest payload, as a replica over [`Disk`](crate::memory::Disk) takes it.
const PAYLOAD_BYTES_MAX: usize = (1 << 20) - 32;
const BACKLOG_BYTES_MAX: usize = 64 << 20;

/// A cluster. Clones are the same one.
#[derive(Clone, Debug)]
pub struct Group(Rc<RefCell<Content>>);

#[derive(Debug)]
struct Content {
    /// Whether a member has opened its end.
    open: Vec<bool>,
    term: u64,
    delegate: Option<u8>,
    /// Place of the first entry of this term, the log's own.
    opening: u64,
    /// Place 1 is the first. The log's own entries have no payload.
    entries: Vec<Entry>,
    committed: u64,
    /// Nothing is committed while this is set.
    held: bool,
    /// The delegates have compacted up to here.
    base: u64,
}

#[derive(Debug)]
struct Entry {
    term: u64,
    payload: Vec<u8>,
}

impl Group {
    /// A cluster of `members` with an empty log and no delegate.
    #[must_use]
    pub fn new(members: u8) -> Group {
        Group(Rc::new(RefCell::new(Content {
            open: vec![false; members.into()],
            term: 0,
            delegate: None,
            opening: 0,
            entries: Vec::new(),
            committed: 0,
            held: false,
            base: 0,
        })))
    }

    /// Opens the end of `member`, whose state holds everything up to place `applied`. A cluster of one has its delegate then.
    ///
    /// # Panics
    /// If it is open, or the log does not reach `applied`.
    #[must_use]
    pub fn open(&self, member: u8, applied: u64) -> Shared {
        let mut content = self.0.borrow_mut();
        assert!(applied <= content.committed, "a state beyond the log");
        assert!(!std::mem::replace(&mut content.open[usize::from(member)], true), "open already");
        if content.open.len() == 1 {
            content.elect(member, usize::MAX);
        }
        let members = Members::first(u8::try_from(content.open.len()).expect("at most nine"));
        Shared { group: self.clone(), member, members, handed: applied, told: 0, role: MemberRole::default() }
    }

    /// Makes `member` the delegate of the next term. Of what its predecessor proposed without success it inherits the first `inherited`
    /// entries; the rest is lost.
    pub fn elect(&self, member: u8, inherited: usize) {
        self.0.borrow_mut().elect(member, inherited);
    }

    /// Whether what is proposed stays uncommitted for now.
    pub fn hold(&self, held: bool) {
        self.0.borrow_mut().held = held;
    }

    /// Who is delegate.
    #[must_use]
    pub fn delegate(&self) -> Option<u8> {
        self.0.borrow().delegate
    }
}

impl Content {
    fn elect(&mut self, member: u8, inherited: usize) {
        self.entries.truncate((self.committed as usize).saturating_add(inherited));
        self.term += 1;
        self.delegate = Some(member);
        self.entries.push(Entry { term: self.term, payload: Vec::new() });
        self.opening = self.entries.len() as u64;
    }

    fn uncommitted_bytes(&self) -> usize {
        self.entries.iter().skip(self.committed as usize).map(|entry| entry.payload.len()).sum()
    }
}

/// One member's end of a [`Group`]. Closed when it is dropped.
#[derive(Debug)]
pub struct Shared {
    group: Group,
    member: u8,
    /// For ever the same.
    members: Members,
    handed: u64,
    /// It was said to lack what lies up to here.
    told: u64,
    role: MemberRole,
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.group.0.borrow_mut().open[usize::from(self.member)] = false;
    }
}

impl Shared {
    fn current_role(&self) -> MemberRole {
        let content = self.group.0.borrow();
        let leads = content.delegate == Some(self.member) && self.handed >= content.opening;
        MemberRole { term: content.term, delegate: content.delegate, leads }
    }

    fn is_delegate(&self) -> bool {
        self.group.delegate() == Some(self.member)
    }

    fn hand_role(&mut self, role: MemberRole, out: &mut (impl Sink + ?Sized)) {
        if role != self.role {
            self.role = role;
            out.role(role);
        }
    }

    fn hand_out(&mut self, out: &mut (impl Sink + ?Sized)) {
        let content = self.group.0.borrow();
        for (index, entry) in (1..=content.committed).zip(&content.entries).skip(self.handed as usize) {
            self.handed = index;
            if !entry.payload.is_empty() {
                out.committed(index, entry.term, &entry.payload);
            }
        }
    }
}

impl ClusterLog for Shared {
    fn tick(&mut self) {}

    fn lost(&mut self, _member: u8) {}

    fn impatient(&mut self) {}

    fn receive(&mut self, _from: u8, _message: &[u8]) -> Result<(), MessageError> {
        Err(MessageError::Malformed { what: "members of a shared log send none" })
    }

    fn propose(&mut self, payload: &[u8]) -> Result<(), EntryError> {
        let mut content = self.group.0.borrow_mut();
        let in_office = content.delegate == Some(self.member) && content.term == self.role.term;
        if !self.role.leads || !in_office {
            return Err(EntryError::NotDelegate { delegate: content.delegate });
        }
        let backlog = content.uncommitted_bytes();
        match payload.len() {
            0 => Err(EntryError::Empty),
            len if len > PAYLOAD_BYTES_MAX => Err(EntryError::TooLarge { len, max: PAYLOAD_BYTES_MAX }),
            len if backlog > 0 && backlog + len > BACKLOG_BYTES_MAX => {
                Err(EntryError::Backlog { bytes: backlog })
            }
            _ => {
                let term = content.term;
                content.entries.push(Entry { term, payload: payload.to_vec() });
                Ok(())
            }
        }
    }

    fn cycle(&mut self, out: &mut (impl Sink + ?Sized)) -> Result<(), LogError> {
        let role = self.current_role();
        self.hand_role(MemberRole { leads: role.leads && self.role.leads, ..role }, out);
        let mut content = self.group.0.borrow_mut();
        if content.delegate == Some(self.member) && !content.held {
            content.committed = content.entries.len() as u64;
        }
        let base = content.base;
        drop(content);
        if self.handed < base {
            self.told = base;
            out.lacks(base);
            return Ok(());
        }
        self.hand_out(out);
        self.hand_role(self.current_role(), out);
        Ok(())
    }

    fn pending(&self) -> bool {
        let content = self.group.0.borrow();
        let to_commit = !content.held && content.committed < content.entries.len() as u64;
        let to_do = self.is_delegate() && to_commit;
        let waits = self.handed < content.base && self.told == content.base;
        to_do || (self.handed < content.committed && !waits) || self.current_role() != self.role
    }

    fn role(&self) -> MemberRole {
        self.role
    }

    fn compact(&mut self, up_to: u64) {
        let mut content = self.group.0.borrow_mut();
        if content.delegate == Some(self.member) {
            content.base = content.base.max(up_to.min(self.handed));
        }
    }

    fn members(&self) -> &Members {
        &self.members
    }

    fn beginning(&self, index: u64) -> Option<Beginning> {
        let content = self.group.0.borrow();
        let is_here = (content.base..=self.handed).contains(&index);
        let entry = content.entries.get((index as usize).wrapping_sub(1));
        let term = entry.map_or(0, |entry| entry.term);
        is_here.then(|| Beginning { index, term, members: self.members.clone() })
    }

    fn admit(&mut self, _id: MemberId) {}

    fn dismiss(&mut self, _number: u8) {}

    fn resign(&mut self) -> Option<u8> {
        let mut content = self.group.0.borrow_mut();
        if content.delegate != Some(self.member) {
            return None;
        }
        let mut others = (0..content.open.len() as u8).filter(|&other| other != self.member);
        let next = others.find(|&other| content.open[usize::from(other)])?;
        content.elect(next, usize::MAX);
        Some(next)
    }

    fn claim(&mut self) {
        let mut content = self.group.0.borrow_mut();
        if content.delegate.is_some_and(|delegate| delegate != self.member) {
            content.elect(self.member, usize::MAX);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Keeps what was committed.
    #[derive(Default)]
    struct Site(Vec<Vec<u8>>);

    impl Sink for Site {
        fn send(&mut self, _to: u8, _message: Vec<u8>) {}
        fn committed(&mut self, _index: u64, _term: u64, payload: &[u8]) {
            self.0.push(payload.to_vec());
        }
        fn role(&mut self, _role: MemberRole) {}
        fn lacks(&mut self, _at_least: u64) {}
    }

    #[test]
    fn a_new_delegate_inherits_as_much_as_the_test_says() {
        let group = Group::new(2);
        let (mut first, mut second) = (group.open(0, 0), group.open(1, 0));
        let mut site = Site::default();
        group.elect(0, 0);
        first.cycle(&mut site).unwrap();
        group.hold(true);
        (0..3u8).for_each(|number| first.propose(&[number]).unwrap());
        first.cycle(&mut site).unwrap();
        assert!(site.0.is_empty());
        group.elect(1, 2);
        group.hold(false);
        second.cycle(&mut site).unwrap();
        assert_eq!(site.0, [[0], [1]]);
        assert!(second.role().leads);
        assert_eq!(first.propose(b"x"), Err(EntryError::NotDelegate { delegate: Some(1) }));
    }
}
