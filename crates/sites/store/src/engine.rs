//! What all engines have in common: order, atomicity and the refusal to continue after a failed write are decided here,
//! once, so that an engine only has to write and read.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};

use pares_wice::{Key, Value, Version};

use crate::error::StoreError;
use crate::mark::Mark;
use crate::store::{Applied, Store, StoreSnapshot, behind};

/// Items and what they are from now on, in the order of their keys, each once.
pub type Changes<'a> = [(&'a Key, Option<&'a Value>)];

/// What a storage engine has to do to become a [`Store`]. Calls that write come one at a time.
pub trait StorageEngine: Send + Sync {
    /// The mark found when it was opened; `None` in one that was just made.
    ///
    /// # Errors
    /// If it cannot be read.
    fn mark(&self) -> Result<Option<Mark>, StoreError>;

    /// Writes items and mark in one transaction, without waiting for the disk.
    ///
    /// # Errors
    /// If it is not certain that everything was written.
    fn commit(&self, changes: &Changes<'_>, mark: &Mark) -> Result<(), StoreError>;

    /// Items and mark as they are now, both of one moment.
    ///
    /// # Errors
    /// What [`Mark::readable`] says of that mark, or if they cannot be read.
    fn snapshot(&self) -> Result<Box<dyn StoreSnapshot>, StoreError>;

    /// Brings everything committed to the disk.
    ///
    /// # Errors
    /// If it is not certain that it is there.
    fn sync(&self) -> Result<(), StoreError>;
}

/// A store over an engine.
#[derive(Debug)]
pub struct EngineStore<E> {
    engine: E,
    /// Held while writing.
    writer: Mutex<Writer>,
    /// What one learns without asking the engine.
    shown: RwLock<Mark>,
}

#[derive(Debug, Default)]
struct Writer {
    /// A write failed: nobody knows what the engine holds now.
    failed: bool,
}

impl<E: StorageEngine> EngineStore<E> {
    /// Puts a store over an engine that was just opened.
    ///
    /// # Errors
    /// If the engine cannot be read, or a state transfer into it was interrupted.
    pub fn over(engine: E) -> Result<Self, StoreError> {
        let mark = match engine.mark()? {
            Some(mark) => mark.readable()?,
            None => {
                let mark = Mark::default();
                engine.commit(&[], &mark)?;
                engine.sync()?;
                mark
            }
        };
        Ok(Self { engine, writer: Mutex::default(), shown: RwLock::new(mark) })
    }

    /// The engine.
    #[must_use]
    pub fn engine(&self) -> &E {
        &self.engine
    }

    fn shown(&self) -> RwLockReadGuard<'_, Mark> {
        self.shown.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// The writer's turn, unless a write failed before: a writer that died in the middle counts as that.
    fn writer(&self) -> Result<MutexGuard<'_, Writer>, StoreError> {
        let writer = self.writer.lock().map_err(|_| StoreError::Failed)?;
        if writer.failed { Err(StoreError::Failed) } else { Ok(writer) }
    }

    fn commit(&self, writer: &mut Writer, changes: &Changes<'_>, mark: Mark) -> Result<(), StoreError> {
        self.engine.commit(changes, &mark).inspect_err(|_| writer.failed = true)?;
        *self.shown.write().unwrap_or_else(PoisonError::into_inner) = mark;
        Ok(())
    }
}

impl<E: StorageEngine> Store for EngineStore<E> {
    fn applied(&self) -> Version {
        self.shown().version
    }

    fn meta(&self) -> Arc<[u8]> {
        self.shown().meta.as_slice().into()
    }

    fn apply(&self, batch: &[Applied], meta: Option<&[u8]>) -> Result<(), StoreError> {
        let mut writer = self.writer()?;
        let mark = behind(self.shown().clone(), batch, meta)?;
        self.commit(&mut writer, &last_values(batch), mark)
    }

    fn snapshot(&self) -> Result<Box<dyn StoreSnapshot>, StoreError> {
        self.engine.snapshot()
    }

    fn flush(&self) -> Result<Version, StoreError> {
        let mut writer = self.writer()?;
        self.engine.sync().inspect_err(|_| writer.failed = true)?;
        Ok(self.applied())
    }

    fn load(&self, items: &[(Key, Value)], seal: Option<&Mark>) -> Result<(), StoreError> {
        let mut writer = self.writer()?;
        let now = self.shown().clone();
        if now.version > Version(0) {
            return Err(StoreError::NotEmpty(now.version));
        }
        let mark = seal.cloned().unwrap_or(Mark { whole: false, ..now });
        let mut changes: Vec<_> = items.iter().map(|(key, value)| (key, Some(value))).collect();
        changes.sort_by_key(|(key, _)| *key);
        self.commit(&mut writer, &changes, mark)
    }
}

/// What a batch leaves behind. Of an item that several versions changed only the last value is written: nobody can see
/// the others, because the batch becomes visible as one.
fn last_values(batch: &[Applied]) -> Vec<(&Key, Option<&Value>)> {
    let writes = batch.iter().flat_map(|applied| &applied.writes);
    let mut all: Vec<_> = writes.map(|(key, value)| (key, value.as_ref())).collect();
    // Newest first, then stably by key: the first of each key is its last value.
    all.reverse();
    all.sort_by_key(|(key, _)| *key);
    all.dedup_by_key(|(key, _)| *key);
    all
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    /// Refuses to write when told to.
    #[derive(Default)]
    struct Disk {
        full: AtomicBool,
    }

    impl Disk {
        fn write(&self) -> Result<(), StoreError> {
            match self.full.load(Ordering::Relaxed) {
                true => Err(StoreError::Io("no space left".into())),
                false => Ok(()),
            }
        }
    }

    impl StorageEngine for Disk {
        fn mark(&self) -> Result<Option<Mark>, StoreError> {
            Ok(None)
        }

        fn commit(&self, _changes: &Changes<'_>, _mark: &Mark) -> Result<(), StoreError> {
            self.write()
        }

        fn snapshot(&self) -> Result<Box<dyn StoreSnapshot>, StoreError> {
            Err(StoreError::Busy(0))
        }

        fn sync(&self) -> Result<(), StoreError> {
            self.write()
        }
    }

    fn version(number: u64) -> [Applied; 1] {
        [Applied { version: Version(number), writes: vec![(Key::from("a"), None)] }]
    }

    #[test]
    fn after_a_failed_write_nothing_is_written_any_more() {
        type Call = fn(&EngineStore<Disk>) -> Result<(), StoreError>;
        let failing: [Call; 2] = [|store| store.apply(&version(2), None), |store| store.flush().map(drop)];
        for call in failing {
            let store = EngineStore::over(Disk::default()).unwrap();
            store.apply(&version(1), None).unwrap();
            store.engine().full.store(true, Ordering::Relaxed);
            assert!(matches!(call(&store), Err(StoreError::Io(_))));
            store.engine().full.store(false, Ordering::Relaxed);
            assert!(matches!(store.apply(&version(2), None), Err(StoreError::Failed)));
            assert!(matches!(store.flush(), Err(StoreError::Failed)));
            assert_eq!(store.applied(), Version(1));
        }
    }

    #[test]
    fn a_batch_that_was_refused_does_no_harm() {
        let store = EngineStore::over(Disk::default()).unwrap();
        store.engine().full.store(true, Ordering::Relaxed);
        assert!(matches!(store.apply(&version(2), None), Err(StoreError::Order { .. })));
        store.engine().full.store(false, Ordering::Relaxed);
        store.apply(&version(1), None).unwrap();
    }
}
