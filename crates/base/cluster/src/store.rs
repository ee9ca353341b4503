//! What raft-rs reads: the entries since the base, in memory, with their places in the journal.

use std::collections::{BTreeMap, VecDeque};

use raft::eraftpb::{ConfState, Entry, EntryType, HardState, Snapshot};
use raft::{GetEntriesContext, RaftState, Storage, StorageError};

use crate::config::Beginning;
use crate::journal::Place;
use crate::members::{Change, Members};

/// The log as the journal has it. The replica writes the journal first and this after.
#[derive(Debug, Default)]
pub(crate) struct Store {
    /// As last appended to the journal.
    pub(crate) hard: HardState,
    /// The last entry that is not here any more, its term, and the members there.
    pub(crate) base: Beginning,
    /// The members where the caller's state is: what Raft begins with.
    pub(crate) voters: ConfState,
    entries: VecDeque<Entry>,
    places: VecDeque<Place>,
    /// Those of the entries that change the members.
    changes: BTreeMap<u64, Change>,
}

impl Store {
    pub(crate) fn last(&self) -> u64 {
        self.base.index + self.entries.len() as u64
    }

    /// Puts `entry` at its index; whatever was there or above is replaced.
    ///
    /// # Panics
    /// If it leaves a gap or replaces what is compacted.
    pub(crate) fn put(&mut self, entry: Entry, place: Place) {
        assert!(
            (self.base.index + 1..=self.last() + 1).contains(&entry.index),
            "entry {} does not follow {} to {}",
            entry.index,
            self.base.index,
            self.last()
        );
        let keep = (entry.index - self.base.index - 1) as usize;
        self.entries.truncate(keep);
        self.places.truncate(keep);
        drop(self.changes.split_off(&entry.index));
        if let Some(change) = change_in(&entry) {
            self.changes.insert(entry.index, change);
        }
        self.entries.push_back(entry);
        self.places.push_back(place);
    }

    /// The members at `index`, which is not before the base.
    pub(crate) fn members_at(&self, index: u64) -> Members {
        let mut members = self.base.members.clone();
        self.changes.range(..=index).for_each(|(_, change)| members.apply(*change));
        members
    }

    /// Drops entries up to that place, where the members are as it says.
    pub(crate) fn compact(&mut self, base: Beginning) {
        let count = base.index.saturating_sub(self.base.index).min(self.entries.len() as u64) as usize;
        self.entries.drain(..count);
        self.places.drain(..count);
        self.changes = self.changes.split_off(&(base.index + 1));
        self.base = base;
    }

    /// Drops everything: the log continues behind that place.
    pub(crate) fn begin(&mut self, beginning: Beginning) {
        self.entries.clear();
        self.places.clear();
        self.changes.clear();
        self.base = beginning;
    }

    /// The earliest record that is still needed, `base` being that of the base.
    pub(crate) fn first_place(&self, base: Place) -> Place {
        self.places.front().map_or(base, |&first| first.min(base))
    }
}

/// What an entry changes of the members. Raft carries its own form of it in an entry's data; ours is beside it.
pub(crate) fn change_in(entry: &Entry) -> Option<Change> {
    (entry.entry_type == EntryType::EntryConfChangeV2)
        .then(|| Change::from_bytes(&entry.context).expect("checked where it was read or made"))
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
        if low <= self.base.index {
            return Err(StorageError::Compacted.into());
        }
        assert!(high <= self.last() + 1, "entries up to {high} asked, {} there", self.last());
        let at = |index: u64| (index - self.base.index - 1) as usize;
        let mut entries = self.entries.range(at(low)..at(high)).cloned().collect();
        raft::util::limit_size(&mut entries, max_size.into());
        Ok(entries)
    }

    fn term(&self, index: u64) -> raft::Result<u64> {
        match index.checked_sub(self.base.index) {
            None => Err(StorageError::Compacted.into()),
            Some(0) => Ok(self.base.term),
            Some(at) => match self.entries.get(at as usize - 1) {
                Some(entry) => Ok(entry.term),
                None => Err(StorageError::Unavailable.into()),
            },
        }
    }

    fn first_index(&self) -> raft::Result<u64> {
        Ok(self.base.index + 1)
    }

    fn last_index(&self) -> raft::Result<u64> {
        Ok(self.last())
    }

    /// Only its place: who gets this fetches a copy by other means, of any size.
    fn snapshot(&self, _request_index: u64, _to: u64) -> raft::Result<Snapshot> {
        if self.base.index == 0 {
            return Err(StorageError::SnapshotTemporarilyUnavailable.into());
        }
        let mut snapshot = Snapshot::default();
        let metadata = snapshot.mut_metadata();
        (metadata.index, metadata.term) = (self.base.index, self.base.term);
        metadata.set_conf_state(self.base.members.to_raft());
        Ok(snapshot)
    }
}
