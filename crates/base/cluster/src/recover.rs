//! From the journal's records back to the log.
//!
//! A journal whose beginning was released starts somewhere: its first entries belong to a log whose base comes
//! later. Until then the log *floats*: its base is taken to lie just before the first entry met.

use raft::eraftpb::{Entry, EntryType, HardState};

use crate::config::{Beginning, ReplicaConfig};
use crate::error::ReplicaError;
use crate::journal::{Journal, Place};
use crate::members::{Change, Members};
use crate::record::{self, Head, Kind, Owner};
use crate::store::Store;

/// What the journal held.
pub(crate) struct Recovered {
    pub(crate) store: Store,
    /// Whether its beginning has to be written: it held no record, or begins again.
    pub(crate) begins: bool,
}

/// Reads `journal` and checks that it is the log that `config` and the caller's state belong to.
pub(crate) fn recover(
    journal: &mut impl Journal,
    owner: Owner,
    config: &ReplicaConfig,
) -> Result<Recovered, ReplicaError> {
    let mut replay = Replay { owner, store: Store::default(), floats: true, records: 0 };
    journal.replay(|place, bytes| replay.record(place, bytes))?;
    let Replay { mut store, floats, records, .. } = replay;
    let begins = config.anew || records == 0;
    if begins {
        store.begin(config.beginning.clone());
        keep_promises(&mut store, &config.beginning);
    } else if floats {
        return Err(ReplicaError::Record { what: "the base that its first entries follow is missing" });
    }
    let (applied, base, last) = (config.applied, store.base.index, store.last());
    if applied > last {
        return Err(ReplicaError::Short { applied, last });
    }
    if applied < base {
        return Err(ReplicaError::Behind { applied, base });
    }
    if store.hard.commit > last {
        return Err(ReplicaError::Record { what: "a commit index beyond the log" });
    }
    // It is written without a sync, so it may be older than what was handed out.
    store.hard.commit = store.hard.commit.max(base).max(applied);
    store.voters = store.members_at(applied).to_raft();
    Ok(Recovered { store, begins })
}

/// A member whose log begins again has voted in its term, and must not do so again.
fn keep_promises(store: &mut Store, beginning: &Beginning) {
    if beginning.term > store.hard.term {
        store.hard = HardState { term: beginning.term, ..HardState::default() };
    }
    store.hard.commit = beginning.index;
}

struct Replay {
    owner: Owner,
    store: Store,
    floats: bool,
    records: u64,
}

impl Replay {
    fn record(&mut self, place: Place, bytes: &[u8]) -> Result<(), ReplicaError> {
        let (owner, head, body) = record::decode(bytes).map_err(|what| ReplicaError::Record { what })?;
        if owner != self.owner {
            return Err(ReplicaError::Foreign { number: owner.number });
        }
        self.records += 1;
        match head.kind {
            Kind::Entry => self.put(entry(head.term, head.index, body), place),
            Kind::Change => {
                let what = "an invalid membership change";
                let change = Change::from_bytes(body).ok_or(ReplicaError::Record { what })?;
                self.put(change_entry(head.term, head.index, change), place)
            }
            Kind::Hard => {
                let (term, vote, commit) = (head.term, head.extra, head.index);
                self.store.hard = HardState { term, vote, commit, ..HardState::default() };
                Ok(())
            }
            Kind::Base => self.base(head, members(body)?),
            Kind::Begin => {
                let members = members(body)?;
                self.store.begin(Beginning { index: head.index, term: head.term, members });
                self.floats = false;
                Ok(())
            }
        }
    }

    fn put(&mut self, entry: Entry, place: Place) -> Result<(), ReplicaError> {
        let before =
            entry.index.checked_sub(1).ok_or(ReplicaError::Record { what: "an entry at index 0" })?;
        let nothing = self.store.last() == self.store.base.index;
        if self.floats && (before < self.store.base.index || nothing) {
            self.store.begin(Beginning { index: before, ..Beginning::default() });
        }
        if !(self.store.base.index..=self.store.last()).contains(&before) {
            return Err(ReplicaError::Record { what: "an entry that follows nothing" });
        }
        self.store.put(entry, place);
        Ok(())
    }

    fn base(&mut self, head: Head, members: Members) -> Result<(), ReplicaError> {
        let base = Beginning { index: head.index, term: head.term, members };
        if head.index > self.store.last() && self.floats {
            self.store.begin(base);
        } else if self.floats && head.index < self.store.base.index {
            // Of a log that began earlier than what is left; a later base follows.
            return Ok(());
        } else if (self.store.base.index..=self.store.last()).contains(&head.index) {
            self.store.compact(base);
        } else {
            return Err(ReplicaError::Record { what: "a base entry outside the log" });
        }
        self.floats = false;
        Ok(())
    }
}

fn members(body: &[u8]) -> Result<Members, ReplicaError> {
    Members::from_bytes(body).ok_or(ReplicaError::Record { what: "invalid members" })
}

/// An entry as Raft has it.
pub(crate) fn entry(term: u64, index: u64, payload: &[u8]) -> Entry {
    Entry { term, index, data: payload.to_vec().into(), ..Entry::default() }
}

/// An entry that changes the members. Raft reads only its type, but where it is proposed.
pub(crate) fn change_entry(term: u64, index: u64, change: Change) -> Entry {
    let context = change.to_bytes().to_vec().into();
    Entry { term, index, context, entry_type: EntryType::EntryConfChangeV2, ..Entry::default() }
}
