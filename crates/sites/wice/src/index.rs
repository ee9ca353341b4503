//! The certification index: who wrote an item last (paper 3 section 3.1, *Certification*).
//!
//! The paper scans all certified transactions for each that asks. Here an item leads to the versions that wrote it last, so a transaction
//! costs one search for each of its items, however many were certified meanwhile. The memory is a window of the
//! latest versions: what is older than its *floor* is forgotten, and a transaction whose snapshot lies below the floor cannot be judged and
//! is refused. The same window holds the ids of the transactions committed in it, which is all that is needed for none to
//! commit twice: a repeat that could pass has a snapshot at or above the floor, and so was its first commit.
//!
//! The window is bounded by versions and by bytes, whichever is reached first. A key is kept once, however often it was written: the window names it.
//!
//! ```text
//!   versions   1 ........ floor ............................ delivered ....... proposed
//!              forgotten    |  items, ids                        |  at the certifier alone
//! ```

use std::collections::VecDeque;
use std::collections::btree_map::{BTreeMap, Entry};
use std::ops::Bound;

use crate::ids::{TransactionId, Version};
use crate::item::{Change, Key, KeyRange, Write};
use crate::message::AbortReason;
use crate::transaction::Transaction;

/// Versions that are remembered, at most: as many that a transaction has not seen can come before it. What is added to a number unseen is bounded by that.
pub const INDEX_VERSIONS_MAX: usize = 1 << 20;
/// What a version takes in the window and among the ids, about.
const VERSION_BYTES: usize = 128;
/// What a key takes beside its bytes, about: among the items, and its name in the window.
const KEY_BYTES: usize = 128;

/// Who wrote an item last, within the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct LastWriters {
    /// Put or deleted it.
    put: Version,
    /// Added to it.
    add: Version,
}

impl LastWriters {
    fn either(self) -> Version {
        self.put.max(self.add)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Remembered {
    version: Version,
    id: TransactionId,
    keys: Vec<Key>,
}

/// The last writers of all items changed in the latest versions.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Index {
    items: BTreeMap<Key, LastWriters>,
    ids: BTreeMap<TransactionId, Version>,
    /// In order of versions.
    window: VecDeque<Remembered>,
    capacity: usize,
    bytes_max: usize,
    bytes: usize,
    floor: Version,
}

impl Index {
    /// Nothing is known of versions up to `floor`; at most `capacity` versions are remembered, and no more than take `bytes_max`,
    /// the last one excepted.
    ///
    /// # Panics
    /// If `capacity` is 0, or more than [`INDEX_VERSIONS_MAX`].
    #[must_use]
    pub fn new(floor: Version, capacity: usize, bytes_max: usize) -> Self {
        assert!(capacity > 0, "an index of no versions");
        assert!(
            capacity <= INDEX_VERSIONS_MAX,
            "{capacity} versions, of which additions could not be so many"
        );
        let (items, ids, window) = (BTreeMap::new(), BTreeMap::new(), VecDeque::new());
        Self { items, ids, window, capacity, bytes_max, bytes: 0, floor }
    }

    /// Bytes that it takes, about.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        self.bytes
    }

    /// Snapshots below this one cannot be judged.
    #[must_use]
    pub fn floor(&self) -> Version {
        self.floor
    }

    /// The version under which a transaction is remembered.
    #[must_use]
    pub fn version_of(&self, id: TransactionId) -> Option<Version> {
        self.ids.get(&id).copied()
    }

    /// Whether `transaction` may have the next version: nothing it must not have missed lies after its snapshot. *After* means strictly
    /// so; the paper's figure 2 line 23 has "at or after", and holds a transaction against the version it read.
    ///
    /// It must not have missed any change of an item that it puts or deletes, or that it says it has read, by name or in a range. Of an item that it only adds to it
    /// must not have missed a put or a deletion; another's addition it may.
    ///
    /// # Errors
    /// Why it may not.
    pub fn certify(&self, transaction: &Transaction) -> Result<(), AbortReason> {
        let snapshot = transaction.snapshot;
        if snapshot < self.floor {
            return Err(AbortReason::TooOld);
        }
        let written = transaction.writes.iter().filter_map(|write| self.missed(write));
        let read = self.writers_of_what_was_read(transaction);
        match written.chain(read).find(|&writer| writer > snapshot) {
            Some(writer) => Err(AbortReason::Conflict(writer)),
            None => Ok(()),
        }
    }

    /// The last writer that a write must have seen.
    fn missed(&self, write: &Write) -> Option<Version> {
        let last = self.items.get(&write.key)?;
        Some(match write.change {
            Change::Add(_) => last.put,
            Change::Put(_) | Change::Delete => last.either(),
        })
    }

    fn writers_of_what_was_read<'a>(
        &'a self,
        transaction: &'a Transaction,
    ) -> impl Iterator<Item = Version> + 'a {
        let named = transaction.reads.iter().filter_map(|key| self.items.get(key));
        let ranges =
            transaction.ranges.iter().flat_map(|range| self.items.range(bounds(range)).map(|(_, last)| last));
        named.chain(ranges).map(|last| last.either())
    }

    /// A transaction has this version: remembered, at the cost of the oldest.
    ///
    /// # Panics
    /// Unless versions come in order.
    pub fn record(&mut self, version: Version, id: TransactionId, writes: &[Write]) {
        let last = self.window.back().map_or(self.floor, |last| last.version);
        assert!(version > last, "version {version} after {last}");
        let keys: Vec<Key> = writes.iter().map(|write| self.written(write, version)).collect();
        self.ids.insert(id, version);
        self.bytes += VERSION_BYTES + keys.iter().map(key_bytes).sum::<usize>();
        self.window.push_back(Remembered { version, id, keys });
        while self.window.len() > self.capacity || self.bytes > self.bytes_max && self.window.len() > 1 {
            self.forget_oldest();
        }
    }

    /// Notes who wrote an item last; its key as it is kept.
    fn written(&mut self, write: &Write, version: Version) -> Key {
        let item = self.items.entry(write.key.clone());
        let key = item.key().clone();
        let writers = item.or_default();
        match write.change {
            Change::Add(_) => writers.add = version,
            Change::Put(_) | Change::Delete => writers.put = version,
        }
        key
    }

    fn forget_oldest(&mut self) {
        let Some(oldest) = self.window.pop_front() else { return };
        self.bytes -= VERSION_BYTES + oldest.keys.iter().map(key_bytes).sum::<usize>();
        self.floor = oldest.version;
        for key in oldest.keys {
            if let Entry::Occupied(item) = self.items.entry(key)
                && item.get().either() <= self.floor
            {
                item.remove();
            }
        }
        if self.ids.get(&oldest.id) == Some(&oldest.version) {
            self.ids.remove(&oldest.id);
        }
    }

    /// Versions above `keep` never were. Who wrote their items before is not known any more; the last version that is left is said to
    /// have, which refuses a little too much, and nothing that is executed again.
    pub fn truncate(&mut self, keep: Version) {
        let mut lost = Vec::new();
        while let Some(last) = self.window.pop_back_if(|last| last.version > keep) {
            self.ids.remove(&last.id);
            self.bytes -= VERSION_BYTES;
            lost.extend(last.keys);
        }
        let Some(last) = self.window.back_mut() else {
            self.items.clear();
            self.bytes = 0;
            self.floor = self.floor.max(keep);
            return;
        };
        for key in &lost {
            if let Some(writers) = self.items.get_mut(key) {
                writers.put = writers.put.min(last.version);
                writers.add = writers.add.min(last.version);
            }
        }
        last.keys.extend(lost); // forgotten with it
    }
}

/// What a key takes each time that it was written. That it is kept once is not counted on: keys may all differ.
fn key_bytes(key: &Key) -> usize {
    KEY_BYTES + key.as_bytes().len()
}

fn bounds(range: &KeyRange) -> (Bound<&Key>, Bound<&Key>) {
    match &range.to {
        Some(to) if *to <= range.from => (Bound::Included(&range.from), Bound::Excluded(&range.from)),
        Some(to) => (Bound::Included(&range.from), Bound::Excluded(to)),
        None => (Bound::Included(&range.from), Bound::Unbounded),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transaction::Isolation;

    const ID: TransactionId = TransactionId { client: 1, sequence: 1 };

    fn index(history: &[(u64, Write)]) -> Index {
        let mut index = Index::new(Version(0), 100, usize::MAX);
        for (version, write) in history {
            let id = TransactionId { client: 9, sequence: *version };
            index.record(Version(*version), id, std::slice::from_ref(write));
        }
        index
    }

    fn writing(snapshot: u64, write: Write) -> Transaction {
        Transaction { id: ID, snapshot: Version(snapshot), writes: vec![write], ..Transaction::default() }
    }

    #[test]
    fn the_first_committer_wins() {
        let index = index(&[(1, Write::put("a", "x")), (2, Write::put("b", "x"))]);
        let judged = |snapshot| index.certify(&writing(snapshot, Write::put("a", "y")));
        assert_eq!(judged(0), Err(AbortReason::Conflict(Version(1))));
        assert_eq!(judged(1), Ok(()), "what it has read is no conflict");
    }

    #[test]
    fn additions_commute_and_nothing_else_does() {
        let (add, put) = (Write::add("a", 1), Write::put("a", "x"));
        let judged = |first: &Write, second: &Write| {
            index(&[(1, first.clone())]).certify(&writing(0, second.clone())).is_ok()
        };
        assert!(judged(&add, &add));
        assert!(!judged(&add, &put) && !judged(&put, &add) && !judged(&put, &put));
        assert!(!judged(&Write::delete("a"), &add));
    }

    #[test]
    fn declared_reads_count_only_when_serialisable() {
        let index = index(&[(1, Write::put("a2", "x"))]);
        let mut reader = writing(0, Write::put("z", "y"));
        reader.reads = vec![Key::from("a2")];
        let said = |isolation: Isolation| index.certify(&isolation.certified(reader.clone()));
        assert_eq!(said(Isolation::Snapshot), Ok(()));
        assert_eq!(said(Isolation::Serialisable), Err(AbortReason::Conflict(Version(1))));
        reader.reads.clear();
        reader.ranges = vec![KeyRange::prefix(b"a")];
        assert_eq!(index.certify(&reader), Err(AbortReason::Conflict(Version(1))));
        reader.ranges = vec![KeyRange::prefix(b"b")];
        assert_eq!(index.certify(&reader), Ok(()));
    }

    #[test]
    fn what_is_forgotten_is_refused() {
        let mut index = Index::new(Version(0), 2, usize::MAX);
        for version in 1..=3 {
            index.record(
                Version(version),
                TransactionId { client: 9, sequence: version },
                &[Write::put("a", "x")],
            );
        }
        assert_eq!(index.floor(), Version(1));
        assert_eq!(index.certify(&writing(0, Write::put("b", "y"))), Err(AbortReason::TooOld));
        assert_eq!(index.certify(&writing(1, Write::put("b", "y"))), Ok(()));
        assert_eq!((index.items.len(), index.ids.len()), (1, 2), "memory is the window's");
    }

    #[test]
    fn bytes_bound_what_is_remembered_and_a_key_is_kept_once() {
        let mut index = Index::new(Version(0), 1_000, 20_000);
        for version in 1..=500u64 {
            let id = TransactionId { client: 9, sequence: version };
            let key = "k".repeat(500 + (version % 2) as usize);
            index.record(Version(version), id, &[Write::put(key.as_str(), "x")]);
            assert!(index.held_bytes() <= 20_000);
        }
        assert_eq!((index.window.len(), index.items.len(), index.floor()), (26, 2, Version(474)));
        let kept: Vec<*const u8> = index.items.keys().map(|key| key.as_bytes().as_ptr()).collect();
        let named = index.window.iter().flat_map(|version| &version.keys);
        assert!(named.into_iter().all(|key| kept.contains(&key.as_bytes().as_ptr())));
        index.truncate(Version(490));
        index.truncate(Version(0));
        assert_eq!(index.held_bytes(), 0);
        index.record(Version(501), ID, &vec![Write::put("k".repeat(1_000).as_str(), "x"); 100]);
        assert_eq!(index.window.len(), 1, "the last one is remembered whatever it takes");
    }

    #[test]
    fn what_never_was_is_no_conflict_for_whoever_reads_again() {
        let mut index = index(&[(1, Write::put("b", "x")), (2, Write::put("a", "x"))]);
        index.truncate(Version(1));
        assert_eq!(index.certify(&writing(1, Write::put("a", "y"))), Ok(()));
        assert_eq!(index.version_of(TransactionId { client: 9, sequence: 2 }), None);
        index.record(Version(2), ID, &[Write::put("c", "x")]);
        index.truncate(Version(0));
        assert_eq!((index.items.len(), index.ids.len(), index.floor()), (0, 0, Version(0)));
    }
}
