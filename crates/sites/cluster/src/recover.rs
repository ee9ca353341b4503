//! From the journal's records back to the log.
//!
//! A journal whose beginning was released starts somewhere: its first entries belong to a log whose base comes
//! later. Until then the log *floats*: its base is taken to lie just before the first entry met.

use raft::eraftpb::{Entry, HardState};

use crate::config::ReplicaConfig;
use crate::error::ReplicaError;
use crate::journal::{Journal, Place};
use crate::record::{self, Head, Kind, Owner};
use crate::store::Store;

/// What the journal held.
pub(crate) struct Recovered {
    pub(crate) store: Store,
    /// A state that a delegate sent, which the caller's own has not reached.
    pub(crate) restored: Option<Vec<u8>>,
}

/// Reads `journal` and checks that it is the log that `config` and the caller's state belong to.
pub(crate) fn recover(journal: &mut impl Journal, config: &ReplicaConfig) -> Result<Recovered, ReplicaError> {
    let mut replay = Replay::new(config);
    journal.replay(|place, bytes| replay.record(place, bytes))?;
    let Replay { mut store, floats, state, .. } = replay;
    if floats && store.base_index > 0 {
        return Err(ReplicaError::Record { what: "the base that its first entries follow is missing" });
    }
    let (applied, base, last) = (config.applied, store.base_index, store.last());
    if applied > last {
        return Err(ReplicaError::Short { applied, last });
    }
    let restored = state.filter(|(index, _)| *index == base && applied < base).map(|(_, state)| state);
    if applied < base && restored.is_none() {
        return Err(ReplicaError::Behind { applied, base });
    }
    if store.hard.commit > last {
        return Err(ReplicaError::Record { what: "a commit index beyond the log" });
    }
    // It is written without a sync, so it may be older than what was handed out.
    store.hard.commit = store.hard.commit.max(base).max(applied);
    Ok(Recovered { store, restored })
}

struct Replay {
    owner: Owner,
    store: Store,
    floats: bool,
    /// Pieces of a state, while they are contiguous from its beginning.
    parts: Vec<u8>,
    /// The last state that became the base, and its place.
    state: Option<(u64, Vec<u8>)>,
}

impl Replay {
    fn new(config: &ReplicaConfig) -> Replay {
        let owner = Owner { member: config.member, members: config.members };
        let store = Store::new(config.members);
        Replay { owner, store, floats: true, parts: Vec::new(), state: None }
    }

    fn record(&mut self, place: Place, bytes: &[u8]) -> Result<(), ReplicaError> {
        let (owner, head, body) = record::decode(bytes).map_err(|what| ReplicaError::Record { what })?;
        if owner != self.owner {
            return Err(ReplicaError::Foreign { member: owner.member, members: owner.members });
        }
        match head.kind {
            Kind::Entry => self.entry(head, body, place),
            Kind::Hard => {
                let (term, vote, commit) = (head.term, head.extra, head.index);
                self.store.hard = HardState { term, vote, commit, ..HardState::default() };
                Ok(())
            }
            Kind::Base => self.base(head),
            Kind::Part => {
                self.part(head.extra, body);
                Ok(())
            }
        }
    }

    fn entry(&mut self, head: Head, body: &[u8], place: Place) -> Result<(), ReplicaError> {
        let before = head.index.checked_sub(1).ok_or(ReplicaError::Record { what: "an entry at index 0" })?;
        let nothing = self.store.last() == self.store.base_index;
        if self.floats && (before < self.store.base_index || nothing) {
            self.store.restart(before, 0);
        }
        if !(self.store.base_index..=self.store.last()).contains(&before) {
            return Err(ReplicaError::Record { what: "an entry that follows nothing" });
        }
        self.store.put(entry(head.term, head.index, body), place);
        Ok(())
    }

    fn base(&mut self, head: Head) -> Result<(), ReplicaError> {
        let parts = std::mem::take(&mut self.parts);
        if head.extra > 0 {
            self.state = (parts.len() as u64 == head.extra).then_some((head.index, parts));
            self.store.restart(head.index, head.term);
        } else if head.index > self.store.last() && self.floats {
            self.store.restart(head.index, head.term);
        } else if self.floats && head.index < self.store.base_index {
            // Of a log that began earlier than what is left; a later base follows.
            return Ok(());
        } else if (self.store.base_index..=self.store.last()).contains(&head.index) {
            self.store.compact(head.index, head.term);
        } else {
            return Err(ReplicaError::Record { what: "a base outside the log" });
        }
        self.floats = false;
        Ok(())
    }

    fn part(&mut self, at: u64, piece: &[u8]) {
        if at == 0 {
            self.parts.clear();
        }
        if at == self.parts.len() as u64 {
            self.parts.extend_from_slice(piece);
        } else {
            // Its beginning was released, so it is not the last.
            self.parts.clear();
        }
    }
}

/// An entry as Raft has it.
pub(crate) fn entry(term: u64, index: u64, payload: &[u8]) -> Entry {
    Entry { term, index, data: payload.to_vec().into(), ..Entry::default() }
}
