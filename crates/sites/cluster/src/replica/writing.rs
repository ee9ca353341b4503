//! What a replica writes to its journal. The store in memory follows only what was written.

use raft::eraftpb::{Entry, HardState, Snapshot};
use raft::{Ready, Storage as _};

use super::Replica;
use crate::error::LogError;
use crate::journal::{Journal, Place};
use crate::record::{self, HEAD_BYTES, Head, Kind};

impl<J: Journal> Replica<J> {
    fn write(&mut self, head: Head, body: &[u8]) -> Result<Place, LogError> {
        Ok(self.journal.append(&record::encode(self.owner, head), body)?)
    }

    pub(super) fn write_hard(&mut self, hard: HardState) -> Result<(), LogError> {
        let head = Head { kind: Kind::Hard, term: hard.term, index: hard.commit, extra: hard.vote };
        self.write(head, &[])?;
        self.node.mut_store().hard = hard;
        Ok(())
    }

    /// Of a torn batch the hard state may survive without what follows it, and then the log still holds what that would have
    /// replaced: a commit index that covers it would commit entries of a deposed delegate. So the one written covers
    /// only what lies in the journal before it. It is a hint: who opens the log with less asks the delegate.
    pub(super) fn commit_to_keep(&self, ready: &Ready, commit: u64) -> u64 {
        match ready.entries().first() {
            _ if !ready.snapshot().is_empty() => self.node.store().hard.commit,
            Some(first) => commit.min(first.index - 1),
            None => commit,
        }
    }

    pub(super) fn write_entries(&mut self, entries: Vec<Entry>) -> Result<(), LogError> {
        for entry in entries {
            let head = Head { kind: Kind::Entry, term: entry.term, index: entry.index, extra: 0 };
            let place = self.write(head, &entry.data)?;
            self.node.mut_store().put(entry, place);
        }
        Ok(())
    }

    /// A state of the delegate: its pieces, then the base that makes them count.
    pub(super) fn write_state(&mut self, snapshot: &Snapshot) -> Result<(), LogError> {
        let (index, term) = (snapshot.get_metadata().index, snapshot.get_metadata().term);
        let piece_bytes = self.journal.record_bytes_max() - HEAD_BYTES;
        let mut at = 0;
        for piece in snapshot.data.chunks(piece_bytes) {
            self.write(Head { kind: Kind::Part, term, index, extra: at }, piece)?;
            at += piece.len() as u64;
        }
        self.write(Head { kind: Kind::Base, term, index, extra: at }, &[])?;
        self.node.mut_store().restart(index, term);
        Ok(())
    }

    /// Writes the new base, and the hard state anew because the old one's record may go; both must be durable before anything goes.
    /// Returns the place of the base.
    pub(super) fn write_compaction(&mut self) -> Result<Option<Place>, LogError> {
        let index = self.compact_to;
        if index <= self.node.store().base_index {
            return Ok(None);
        }
        let term = self.node.store().term(index).expect("what was handed out is in the log");
        let place = self.write(Head { kind: Kind::Base, term, index, extra: 0 }, &[])?;
        self.write_hard(self.node.store().hard.clone())?;
        self.node.mut_store().compact(index, term);
        Ok(Some(place))
    }
}
