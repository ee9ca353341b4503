//! Items in a directory of fjall, a log-structured merge tree: for sites that write much and read little.
//!
//! A commit appends to fjall's journal and to a table in memory; sorting and merging is done later by threads of its
//! own, which is where its long pauses come from. The journal reaches the operating system with each commit, so a crash of the process
//! loses nothing and a crash of the machine what was not flushed; a batch is kept whole or not at all.

use std::fmt;
use std::ops::{Bound, ControlFlow};
use std::path::Path;

use fjall::{Database, Error, Keyspace, KeyspaceCreateOptions, PersistMode, Readable};
use pares_wice::{Key, KeyRange, Value, Version};

use crate::engine::{Changes, Engine, EngineStore};
use crate::error::StoreError;
use crate::mark::Mark;
use crate::store::{Reads, Snapshot, Visit, is_empty};

const MARK: &[u8] = b"mark";
/// Memory for blocks of the files.
const CACHE_BYTES: u64 = 256 << 20;

/// A store in a directory, kept by fjall.
pub type FjallStore = EngineStore<Fjall>;

/// One open directory of fjall.
pub struct Fjall {
    database: Database,
    items: Keyspace,
    marks: Keyspace,
}

impl FjallStore {
    /// Opens the store in `directory`, which is made if it is missing.
    ///
    /// # Errors
    /// [`StoreError::InUse`], [`StoreError::Damaged`], [`StoreError::Unfinished`], or what the disk says.
    pub fn open(directory: &Path) -> Result<Self, StoreError> {
        let open = || {
            let database = Database::builder(directory).cache_size(CACHE_BYTES).open()?;
            let items = database.keyspace("items", KeyspaceCreateOptions::default)?;
            let marks = database.keyspace("mark", KeyspaceCreateOptions::default)?;
            Ok(Fjall { database, items, marks })
        };
        // What is not a directory of fjall at all, fjall may meet with a panic.
        let opened = std::panic::catch_unwind(open)
            .map_err(|_| StoreError::Damaged("fjall cannot make sense of it".into()))?;
        Self::over(opened.map_err(|error| opening(error, directory))?)
    }
}

impl Engine for Fjall {
    fn mark(&self) -> Result<Option<Mark>, StoreError> {
        self.marks.get(MARK).map_err(failed)?.map(|bytes| Mark::decode(&bytes)).transpose()
    }

    fn commit(&self, changes: &Changes<'_>, mark: &Mark) -> Result<(), StoreError> {
        let mut batch = self.database.batch();
        for (key, value) in changes {
            match value {
                Some(value) => batch.insert(&self.items, key.as_bytes(), value.as_bytes()),
                None => batch.remove(&self.items, key.as_bytes()),
            }
        }
        batch.insert(&self.marks, MARK, mark.encode());
        batch.commit().map_err(failed)
    }

    fn snapshot(&self) -> Result<Box<dyn Snapshot>, StoreError> {
        let snapshot = self.database.snapshot();
        let mark = snapshot.get(&self.marks, MARK).map_err(failed)?;
        let mark = mark.ok_or_else(|| StoreError::Damaged("its mark is missing".into()))?;
        Ok(Box::new(FjallSnapshot {
            mark: Mark::decode(&mark)?.readable()?,
            items: self.items.clone(),
            snapshot,
        }))
    }

    fn sync(&self) -> Result<(), StoreError> {
        self.database.persist(PersistMode::SyncData).map_err(failed)
    }
}

impl fmt::Debug for Fjall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fjall").finish_non_exhaustive()
    }
}

struct FjallSnapshot {
    mark: Mark,
    items: Keyspace,
    snapshot: fjall::Snapshot,
}

impl Reads for FjallSnapshot {
    fn get(&self, key: &Key) -> Result<Option<Value>, StoreError> {
        let found = self.snapshot.get(&self.items, key.as_bytes()).map_err(failed)?;
        Ok(found.map(|value| Value::new(&*value)))
    }

    fn range(&self, range: &KeyRange, visit: &mut Visit<'_>) -> Result<(), StoreError> {
        if is_empty(range) {
            return Ok(());
        }
        let to = range.to.as_ref().map_or(Bound::Unbounded, |to| Bound::Excluded(to.as_bytes()));
        let bounds = (Bound::Included(range.from.as_bytes()), to);
        for item in self.snapshot.range::<&[u8], _>(&self.items, bounds) {
            let (key, value) = item.into_inner().map_err(failed)?;
            if let ControlFlow::Break(()) = visit(Key::new(&*key), Value::new(&*value)) {
                break;
            }
        }
        Ok(())
    }
}

impl Snapshot for FjallSnapshot {
    fn version(&self) -> Version {
        self.mark.version
    }

    fn meta(&self) -> &[u8] {
        &self.mark.meta
    }
}

fn opening(error: Error, directory: &Path) -> StoreError {
    match error {
        Error::Locked => StoreError::InUse(directory.display().to_string()),
        error => failed(error),
    }
}

fn failed(error: Error) -> StoreError {
    match error {
        Error::Io(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
            StoreError::Damaged(format!("a file ends too early: {error}"))
        }
        Error::Io(error) => StoreError::Io(error.to_string()),
        Error::Poisoned => StoreError::Failed,
        error => StoreError::Damaged(error.to_string()),
    }
}
