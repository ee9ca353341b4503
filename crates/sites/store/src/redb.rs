//! Items in one file of redb, a copy-on-write B-tree: the embedded default.
//!
//! A reader holds the root of the tree as it was and touches nothing that the writer touches; a commit is a new root.
//! Without sync the new root stays in memory, so a crash of the process goes back to the last [`crate::Store::flush`],
//! whole.

use std::fmt;
use std::fs::OpenOptions;
use std::ops::{Bound, ControlFlow};
use std::path::Path;

use pares_os::open_file;
use pares_wice::{Key, KeyRange, Value, Version};
use redb::{
    Builder, Database, DatabaseError, Durability, ReadOnlyTable, ReadableDatabase, ReadableTable,
    TableDefinition, TableError,
};

use crate::checked::CheckedFile;
use crate::engine::{Changes, EngineStore, StorageEngine};
use crate::error::StoreError;
use crate::mark::Mark;
use crate::row;
use crate::store::{Reads, StoreSnapshot, Visit, is_empty};

type Bytes = &'static [u8];
const ITEMS: TableDefinition<'_, Bytes, Bytes> = TableDefinition::new("items");
const MARKS: TableDefinition<'_, Bytes, Bytes> = TableDefinition::new("mark");
const MARK: &[u8] = b"mark";
const FILE: &str = "items.redb";
/// The same while it is made.
const MAKING: &str = "items.redb.new";
/// Memory for pages of the file.
const CACHE_BYTES: usize = 256 << 20;

/// A store in a directory, kept by redb.
pub type RedbStore = EngineStore<Redb>;

/// One open file of redb.
pub struct Redb {
    database: Database,
}

impl RedbStore {
    /// Opens the store in `directory`, which is made if it is missing. Reads the whole file, to check every page.
    ///
    /// # Errors
    /// [`StoreError::InUse`], [`StoreError::Damaged`], [`StoreError::Unfinished`], or what the disk says.
    pub fn open(directory: &Path) -> Result<Self, StoreError> {
        std::fs::create_dir_all(directory).map_err(|error| StoreError::Io(error.to_string()))?;
        let path = directory.join(FILE);
        let open_at = |path: &Path| {
            let mut options = OpenOptions::new();
            let file = open_file(options.read(true).write(true).create(true).truncate(false), path)?;
            let mut builder = Builder::new();
            builder.set_cache_size(CACHE_BYTES).set_check_integrity_on_open(true);
            builder.create_with_backend(CheckedFile::new(file)?)
        };
        let open = || {
            if !path.exists() {
                // A process that dies here leaves a file that is none: under another name, so that it is made again.
                let making = directory.join(MAKING);
                // What cannot be removed is opened, and said to be damaged.
                let _ = std::fs::remove_file(&making);
                drop(open_at(&making)?);
                std::fs::rename(&making, &path)?;
                std::fs::File::open(directory)?.sync_all()?; // the name, too, survives the loss of power
            }
            open_at(&path)
        };
        // What is not a file of redb at all, redb may meet with a panic.
        let database = std::panic::catch_unwind(open)
            .map_err(|_| StoreError::Damaged("redb cannot read it".into()))?
            .map_err(|error| opening(error, &path))?;
        Self::over(Redb { database })
    }
}

impl Redb {
    fn write(
        &self,
        durability: Durability,
        changes: &Changes<'_>,
        mark: Option<&Mark>,
    ) -> Result<(), redb::Error> {
        let version = mark.map_or(Version(0), |mark| mark.version);
        let mut transaction = self.database.begin_write()?;
        transaction.set_durability(durability)?;
        // A later start after a crash then finds the free pages listed instead of walking the whole tree.
        transaction.set_quick_repair(matches!(durability, Durability::Immediate));
        {
            let mut items = transaction.open_table(ITEMS)?;
            let mut row = Vec::new();
            for (key, value) in changes {
                if let Some(value) = value {
                    row::seal(&mut row, key.as_bytes(), value.encoded(), version);
                    items.insert(key.as_bytes(), row.as_slice())?;
                } else {
                    items.remove(key.as_bytes())?;
                }
            }
        }
        if let Some(mark) = mark {
            transaction.open_table(MARKS)?.insert(MARK, mark.encode().as_slice())?;
        }
        Ok(transaction.commit()?)
    }
}

impl StorageEngine for Redb {
    fn mark(&self) -> Result<Option<Mark>, StoreError> {
        let transaction = self.database.begin_read().map_err(failed)?;
        let table = match transaction.open_table(MARKS) {
            Err(TableError::TableDoesNotExist(_)) => return Ok(None),
            table => table.map_err(failed)?,
        };
        let bytes = table.get(MARK).map_err(failed)?;
        let bytes = bytes.ok_or_else(|| StoreError::Damaged("its mark is missing".into()))?;
        Mark::decode(bytes.value()).map(Some)
    }

    fn commit(&self, changes: &Changes<'_>, mark: &Mark) -> Result<(), StoreError> {
        self.write(Durability::None, changes, Some(mark)).map_err(failed)
    }

    fn snapshot(&self) -> Result<Box<dyn StoreSnapshot>, StoreError> {
        let transaction = self.database.begin_read().map_err(failed)?;
        let items = transaction.open_table(ITEMS).map_err(failed)?;
        let marks = transaction.open_table(MARKS).map_err(failed)?;
        let mark = marks.get(MARK).map_err(failed)?;
        let mark = mark.ok_or_else(|| StoreError::Damaged("its mark is missing".into()))?;
        Ok(Box::new(RedbSnapshot { mark: Mark::decode(mark.value())?.readable()?, items }))
    }

    fn sync(&self) -> Result<(), StoreError> {
        self.write(Durability::Immediate, &[], None).map_err(failed)
    }
}

impl fmt::Debug for Redb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redb").finish_non_exhaustive()
    }
}

struct RedbSnapshot {
    mark: Mark,
    /// Keeps the transaction it was opened in.
    items: ReadOnlyTable<Bytes, Bytes>,
}

impl Reads for RedbSnapshot {
    fn get(&self, key: &Key) -> Result<Option<Value>, StoreError> {
        let found = ReadableTable::get(&self.items, key.as_bytes()).map_err(failed)?;
        found.map(|row| row::open(key.as_bytes(), row.value(), self.mark.version)).transpose()
    }

    fn range(&self, range: &KeyRange, visit: &mut Visit<'_>) -> Result<(), StoreError> {
        if is_empty(range) {
            return Ok(());
        }
        let to = range.to.as_ref().map_or(Bound::Unbounded, |to| Bound::Excluded(to.as_bytes()));
        let bounds = (Bound::Included(range.from.as_bytes()), to);
        for item in ReadableTable::range::<&[u8]>(&self.items, bounds).map_err(failed)? {
            let (key, row) = item.map_err(failed)?;
            let value = row::open(key.value(), row.value(), self.mark.version)?;
            if let ControlFlow::Break(()) = visit(Key::new(key.value()), value) {
                break;
            }
        }
        Ok(())
    }
}

impl StoreSnapshot for RedbSnapshot {
    fn mark(&self) -> &Mark {
        &self.mark
    }
}

fn opening(error: DatabaseError, path: &Path) -> StoreError {
    match error {
        DatabaseError::DatabaseAlreadyOpen | DatabaseError::LockProtocolMismatch => {
            StoreError::InUse(path.display().to_string())
        }
        DatabaseError::UpgradeRequired(form) => {
            StoreError::Damaged(format!("its file has redb format {form}, which is too old"))
        }
        error => failed(error),
    }
}

fn failed(error: impl Into<redb::Error>) -> StoreError {
    use std::io::ErrorKind::{InvalidData, UnexpectedEof};
    match error.into() {
        redb::Error::Corrupted(what) => StoreError::Damaged(what),
        // What redb says of a file that is not its own, and of one that is shorter than it left it.
        redb::Error::Io(error) if matches!(error.kind(), InvalidData | UnexpectedEof) => {
            StoreError::Damaged(error.to_string())
        }
        error => StoreError::Io(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{Applied, Store};

    #[test]
    fn what_a_crash_has_left_of_a_file_that_was_made_is_made_again() {
        let scratch = tempfile::tempdir().unwrap();
        let other = scratch.path().join("other");
        drop(RedbStore::open(&other).unwrap());
        let whole = std::fs::read(other.join(FILE)).unwrap();
        for (at, length) in [0, 100, whole.len() / 2, whole.len()].into_iter().enumerate() {
            let directory = scratch.path().join(at.to_string());
            std::fs::create_dir(&directory).unwrap();
            std::fs::write(directory.join(MAKING), &whole[..length]).unwrap();
            let store = RedbStore::open(&directory).unwrap();
            let writes = vec![(Key::from("a"), Some(Value::from("x")))];
            store.apply(&[Applied { version: Version(1), writes }], None).unwrap();
            store.flush().unwrap();
            drop(store);
            assert!(!directory.join(MAKING).exists(), "{length} bytes");
            assert_eq!(RedbStore::open(&directory).unwrap().applied(), Version(1), "{length} bytes");
        }
    }

    #[test]
    fn pipe_in_place_of_store_is_damage_without_waiting() {
        let scratch = tempfile::tempdir().unwrap();
        for name in [FILE, MAKING] {
            let directory = scratch.path().join(name);
            std::fs::create_dir(&directory).unwrap();
            rustix::fs::mkfifoat(rustix::fs::CWD, directory.join(name), rustix::fs::Mode::RWXU).unwrap();
            match (name, RedbStore::open(&directory)) {
                (FILE, Err(StoreError::Damaged(_))) | (MAKING, Ok(_)) => {}
                (_, other) => panic!("{name}: {:?}", other.err()),
            }
        }
    }
}
