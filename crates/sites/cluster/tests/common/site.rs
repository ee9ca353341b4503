//! A site: its state is the list of all payloads it was given, and it notices what must not happen to one.

use pares_cluster::{Role, Sink};

/// Place, term and payload of an entry.
pub(crate) type Given = (u64, u64, Vec<u8>);

#[derive(Default, Clone)]
pub(crate) struct Site {
    /// Everything up to here is in the state.
    pub(crate) applied: u64,
    /// The state: all that was committed, in order.
    pub(crate) entries: Vec<Given>,
    pub(crate) role: Role,
    pub(crate) roles: Vec<Role>,
    pub(crate) outbox: Vec<(u8, Vec<u8>)>,
    pub(crate) wanted: Option<u64>,
    pub(crate) restores: u64,
}

impl Site {
    pub(crate) fn payloads(&self) -> Vec<&[u8]> {
        self.entries.iter().map(|(_, _, payload)| payload.as_slice()).collect()
    }

    /// What a restart finds: the state, nothing else.
    pub(crate) fn saved(&self) -> Site {
        Site { applied: self.applied, entries: self.entries.clone(), ..Site::default() }
    }

    /// The state as bytes.
    pub(crate) fn state(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (index, term, payload) in &self.entries {
            bytes.extend_from_slice(&index.to_le_bytes());
            bytes.extend_from_slice(&term.to_le_bytes());
            bytes.extend_from_slice(&(payload.len() as u64).to_le_bytes());
            bytes.extend_from_slice(payload);
        }
        bytes
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

    fn role(&mut self, role: Role) {
        assert!(role.term >= self.role.term, "from term {} to {}", self.role.term, role.term);
        assert_ne!(role, self.role, "no change");
        self.role = role;
        self.roles.push(role);
    }

    fn snapshot_wanted(&mut self, at_least: u64) {
        self.wanted = Some(at_least);
    }

    fn restore(&mut self, index: u64, state: &[u8]) {
        assert!(index > self.applied, "a state of {index} after {}", self.applied);
        let number = |at: usize| u64::from_le_bytes(state[at..at + 8].try_into().expect("eight"));
        let (mut at, mut entries) = (0, Vec::new());
        while at < state.len() {
            let len = number(at + 16) as usize;
            entries.push((number(at), number(at + 8), state[at + 24..at + 24 + len].to_vec()));
            at += 24 + len;
        }
        assert!(entries.starts_with(&self.entries), "a state that lacks what was committed");
        self.applied = index;
        self.entries = entries;
        self.restores += 1;
    }
}
