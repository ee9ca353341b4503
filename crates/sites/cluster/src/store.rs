//! What raft-rs reads: the entries since the base, in memory, with their places in the journal.

use std::cell::Cell;
use std::collections::VecDeque;

use raft::eraftpb::{ConfState, Entry, HardState, Snapshot};
use raft::{GetEntriesContext, RaftState, Storage, StorageError};

use crate::journal::Place;

/// The log as the journal has it. The replica writes the journal first and this after.
#[derive(Debug)]
pub(crate) struct Store {
    /// Everybody votes: membership never changes.
    pub(crate) voters: ConfState,
    /// As last appended to the journal.
    pub(crate) hard: HardState,
    /// The last entry that is not here any more.
    pub(crate) base_index: u64,
    pub(crate) base_term: u64,
    entries: VecDeque<Entry>,
    places: VecDeque<Place>,
    /// The state at some place at or after the base, for members that are behind it.
    pub(crate) snapshot: Option<Snapshot>,
    /// Raft looked for such a state and there was none.
    wanted: Cell<bool>,
}

impl Store {
    pub(crate) fn new(members: u8) -> Store {
        let voters = ConfState { voters: (0..members).map(raft_id).collect(), ..ConfState::default() };
        Store {
            voters,
            hard: HardState::default(),
            base_index: 0,
            base_term: 0,
            entries: VecDeque::new(),
            places: VecDeque::new(),
            snapshot: None,
            wanted: Cell::new(false),
        }
    }

    pub(crate) fn last(&self) -> u64 {
        self.base_index + self.entries.len() as u64
    }

    /// Puts `entry` at its index; whatever was there or above is replaced.
    ///
    /// # Panics
    /// If it leaves a gap or replaces what is compacted.
    pub(crate) fn put(&mut self, entry: Entry, place: Place) {
        assert!(
            (self.base_index + 1..=self.last() + 1).contains(&entry.index),
            "entry {} does not follow {} to {}",
            entry.index,
            self.base_index,
            self.last()
        );
        let keep = (entry.index - self.base_index - 1) as usize;
        self.entries.truncate(keep);
        self.places.truncate(keep);
        self.entries.push_back(entry);
        self.places.push_back(place);
    }

    /// Drops entries up to `index`, of which the last was of `term`, and a state too old to be continued.
    pub(crate) fn compact(&mut self, index: u64, term: u64) {
        let count = index.saturating_sub(self.base_index).min(self.entries.len() as u64) as usize;
        self.entries.drain(..count);
        self.places.drain(..count);
        (self.base_index, self.base_term) = (index, term);
        self.snapshot.take_if(|snapshot| snapshot.get_metadata().index < index);
    }

    /// Drops everything: the log goes on after `index`.
    pub(crate) fn restart(&mut self, index: u64, term: u64) {
        self.entries.clear();
        self.places.clear();
        self.compact(index, term);
    }

    /// The earliest record that is still needed, `base` being that of the base.
    pub(crate) fn first_place(&self, base: Place) -> Place {
        self.places.front().map_or(base, |&first| first.min(base))
    }

    pub(crate) fn take_wanted(&self) -> bool {
        self.wanted.take()
    }
}

/// Raft's name for a member: it has no member 0.
pub(crate) fn raft_id(member: u8) -> u64 {
    u64::from(member) + 1
}

/// The member that Raft calls so; none for its "nobody".
pub(crate) fn member(raft_id: u64) -> Option<u8> {
    raft_id.checked_sub(1).and_then(|member| member.try_into().ok())
}

impl Storage for Store {
    fn initial_state(&self) -> raft::Result<RaftState> {
        Ok(RaftState::new(self.hard.clone(), self.voters.clone()))
    }

    fn entries(
        &self,
        low: u64,
        high: u64,
        max_size: impl Into<Option<u64>>,
        _context: GetEntriesContext,
    ) -> raft::Result<Vec<Entry>> {
        if low <= self.base_index {
            return Err(StorageError::Compacted.into());
        }
        assert!(high <= self.last() + 1, "entries up to {high} asked, {} there", self.last());
        let at = |index: u64| (index - self.base_index - 1) as usize;
        let mut entries = self.entries.range(at(low)..at(high)).cloned().collect();
        raft::util::limit_size(&mut entries, max_size.into());
        Ok(entries)
    }

    fn term(&self, index: u64) -> raft::Result<u64> {
        match index.checked_sub(self.base_index) {
            None => Err(StorageError::Compacted.into()),
            Some(0) => Ok(self.base_term),
            Some(at) => match self.entries.get(at as usize - 1) {
                Some(entry) => Ok(entry.term),
                None => Err(StorageError::Unavailable.into()),
            },
        }
    }

    fn first_index(&self) -> raft::Result<u64> {
        Ok(self.base_index + 1)
    }

    fn last_index(&self) -> raft::Result<u64> {
        Ok(self.last())
    }

    fn snapshot(&self, request_index: u64, _to: u64) -> raft::Result<Snapshot> {
        match &self.snapshot {
            Some(snapshot) if snapshot.get_metadata().index >= request_index.max(1) => Ok(snapshot.clone()),
            _ => {
                self.wanted.set(true);
                Err(StorageError::SnapshotTemporarilyUnavailable.into())
            }
        }
    }
}
