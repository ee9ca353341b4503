//! What a replica writes to its journal. The store in memory follows only what was written.

use raft::eraftpb::{Entry, HardState};
use raft::{Ready, Storage as _};

use super::Replica;
use crate::config::Beginning;
use crate::error::{JournalError, LogError};
use crate::journal::{Journal, Place};
use crate::record::{self, Head, Kind, Owner};
use crate::store::{Store, change_in};

/// The first records of a log: where it begins, and what its member has promised. Durable, and all before may go.
pub(super) fn write_beginning(
    journal: &mut impl Journal,
    owner: Owner,
    store: &Store,
) -> Result<(), JournalError> {
    let Beginning { index, term, members } = &store.base;
    let head = Head { kind: Kind::Begin, term: *term, index: *index, extra: 0 };
    let place = journal.append(&record::encode(owner, head), &members.to_bytes())?;
    journal.append(&record::encode(owner, hard_head(&store.hard)), &[])?;
    journal.sync()?;
    journal.release_before(place);
    Ok(())
}

fn hard_head(hard: &HardState) -> Head {
    Head { kind: Kind::Hard, term: hard.term, index: hard.commit, extra: hard.vote }
}

impl<J: Journal> Replica<J> {
    fn write(&mut self, head: Head, body: &[u8]) -> Result<Place, LogError> {
        Ok(self.journal.append(&record::encode(self.owner, head), body)?)
    }

    pub(super) fn write_hard(&mut self, hard: HardState) -> Result<(), LogError> {
        self.write(hard_head(&hard), &[])?;
        self.node.mut_store().hard = hard;
        Ok(())
    }

    /// Of a torn batch the hard state may survive without what follows it, and then the log still holds what that would have
    /// replaced: a commit index that covers it would commit entries of a deposed delegate. So the one written covers
    /// only what lies in the journal before it. It is a hint: who opens the log with less asks the delegate.
    pub(super) fn commit_to_keep(ready: &Ready, commit: u64) -> u64 {
        ready.entries().first().map_or(commit, |first| commit.min(first.index - 1))
    }

    /// Makes durable that a change of the members is committed: after a crash this member would count by those before it until a delegate told it
    /// otherwise, and there could be too few of them left to elect one.
    pub(super) fn keep_change(&mut self) -> Result<(), LogError> {
        let hard = HardState { commit: self.handed.0, ..self.node.raft.hard_state() };
        self.write_hard(hard)?;
        Ok(self.journal.sync()?)
    }

    pub(super) fn write_entries(&mut self, entries: Vec<Entry>) -> Result<(), LogError> {
        for entry in entries {
            let (kind, body) = match change_in(&entry) {
                Some(change) => (Kind::Change, change.to_bytes().to_vec().into()),
                None => (Kind::Entry, entry.data.clone()),
            };
            let head = Head { kind, term: entry.term, index: entry.index, extra: 0 };
            let place = self.write(head, &body)?;
            self.node.mut_store().put(entry, place);
        }
        Ok(())
    }

    /// Writes the new base, and the hard state again because the old one's record may go; both must be durable before anything goes.
    /// Returns the place of the base.
    pub(super) fn write_compaction(&mut self) -> Result<Option<Place>, LogError> {
        let index = self.compact_to;
        let store = self.node.store();
        if index <= store.base.index {
            return Ok(None);
        }
        let term = store.term(index).expect("what was handed out is in the log");
        let base = Beginning { index, term, members: store.members_at(index) };
        let head = Head { kind: Kind::Base, term, index, extra: 0 };
        let place = self.write(head, &base.members.to_bytes())?;
        self.write_hard(self.node.store().hard.clone())?;
        self.node.mut_store().compact(base);
        Ok(Some(place))
    }
}
