//! A site: its state is the list of all payloads it was given, and it notices what must not happen to one.

use pares_cluster::{MemberRole, Sink};

/// Place, term and payload of an entry.
pub(crate) type Given = (u64, u64, Vec<u8>);

#[derive(Default, Clone)]
pub(crate) struct Site {
    /// Everything up to here is in the state.
    pub(crate) applied: u64,
    /// The state: all that was committed, in order.
    pub(crate) entries: Vec<Given>,
    pub(crate) role: MemberRole,
    pub(crate) roles: Vec<MemberRole>,
    pub(crate) outbox: Vec<(u8, Vec<u8>)>,
    /// A copy of the state is needed, of this place or later.
    pub(crate) lacks: Option<u64>,
    pub(crate) copies: u64,
}

impl Site {
    pub(crate) fn payloads(&self) -> Vec<&[u8]> {
        self.entries.iter().map(|(_, _, payload)| payload.as_slice()).collect()
    }

    /// What a restart finds: the state, nothing else.
    pub(crate) fn saved(&self) -> Site {
        Site { applied: self.applied, entries: self.entries.clone(), copies: self.copies, ..Site::default() }
    }

    /// The state of another that goes further.
    pub(crate) fn copy(&mut self, from: &Site) {
        assert!(from.entries.starts_with(&self.entries), "a state that lacks what was committed");
        *self = Site { copies: self.copies + 1, ..from.saved() };
    }
}

impl Sink for Site {
    fn send(&mut self, to: u8, message: Vec<u8>) {
        self.outbox.push((to, message));
    }

    fn committed(&mut self, index: u64, term: u64, payload: &[u8]) {
        assert!(index > self.applied, "place {index} again, after {}", self.applied);
        assert!(!self.role.leads || self.role.term == term, "a delegate was given another's entry");
        self.applied = index;
        self.entries.push((index, term, payload.to_vec()));
    }

    fn role(&mut self, role: MemberRole) {
        assert!(role.term >= self.role.term, "from term {} to {}", self.role.term, role.term);
        assert_ne!(role, self.role, "no change");
        self.role = role;
        self.roles.push(role);
    }

    fn lacks(&mut self, at_least: u64) {
        assert!(at_least > self.applied, "a state of {at_least} after {}", self.applied);
        self.lacks = Some(at_least);
    }
}
