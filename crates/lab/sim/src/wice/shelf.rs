//! A site's store in memory: what is not flushed is lost with the power, and the checker sees what is written; one may err once.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pares_store::{Applied, Mark, Memory, Store, StoreError, StoreSnapshot};
use pares_wice::{Key, KeyRange, Value, Version};

/// What was written and nobody has looked at.
#[derive(Debug)]
pub(super) enum Written {
    Versions(Vec<Applied>),
    /// A whole state, at once.
    State(Version, Vec<(Key, Value)>),
}

#[derive(Default)]
pub(super) struct Shelf {
    memory: Memory,
    /// The last flush.
    flushed: Mutex<(Vec<(Key, Value)>, Mark)>,
    written: Mutex<Vec<Written>>,
    errs: Mutex<Errs>,
}

/// Whether it writes something else than it is given.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Errs {
    #[default]
    Never,
    /// Once, with the first counters that it can.
    ToCome,
    /// It has.
    Done,
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn all(snapshot: &dyn StoreSnapshot) -> Result<Vec<(Key, Value)>, StoreError> {
    snapshot.first(&KeyRange::prefix(b""), usize::MAX)
}

impl Shelf {
    pub(super) fn erring() -> Arc<Self> {
        Arc::new(Self { errs: Mutex::new(Errs::ToCome), ..Self::default() })
    }

    /// An empty one in its place: what is to come still comes.
    pub(super) fn emptied(&self) -> Arc<Self> {
        if *lock(&self.errs) == Errs::ToCome { Self::erring() } else { Arc::default() }
    }

    pub(super) fn has_erred(&self) -> bool {
        *lock(&self.errs) == Errs::Done
    }

    /// What is written in place of `batch`: of the last version's counters one more and one less, so that money is neither made nor destroyed.
    fn erred(&self, batch: &[Applied]) -> Vec<Applied> {
        let mut wrong = batch.to_vec();
        let mut errs = lock(&self.errs);
        if let (Errs::ToCome, Some(last)) = (*errs, wrong.last_mut()) {
            let counters = last.writes.iter_mut().filter(|(key, _)| key.as_bytes().starts_with(b"counter/"));
            let values = counters.filter_map(|(_, value)| value.as_mut());
            for (value, by) in values.zip([1, -1]) {
                *value = Value::counter(value.as_counter().expect("it is a counter") + by);
                *errs = Errs::Done;
            }
        }
        wrong
    }

    pub(super) fn take_written(&self) -> Vec<Written> {
        std::mem::take(&mut *lock(&self.written))
    }

    pub(super) fn flushed(&self) -> Arc<Self> {
        let (items, mark) = lock(&self.flushed).clone();
        let memory = Memory::default();
        memory.load(&items, Some(&mark)).expect("an empty store takes a state");
        Arc::new(Self { memory, flushed: Mutex::new((items, mark)), ..Self::default() })
    }
}

impl Store for Shelf {
    fn applied(&self) -> Version {
        self.memory.applied()
    }

    fn meta(&self) -> Arc<[u8]> {
        self.memory.meta()
    }

    fn apply(&self, batch: &[Applied], meta: Option<&[u8]>) -> Result<(), StoreError> {
        self.memory.apply(&self.erred(batch), meta)?;
        // What follows from wrong values is for the sites to find.
        if !self.has_erred() {
            lock(&self.written).push(Written::Versions(batch.to_vec()));
        }
        Ok(())
    }

    fn snapshot(&self) -> Result<Box<dyn StoreSnapshot>, StoreError> {
        self.memory.snapshot()
    }

    fn flush(&self) -> Result<Version, StoreError> {
        let snapshot = self.memory.snapshot()?;
        let mark = Mark { whole: true, version: snapshot.version(), meta: snapshot.meta().to_vec() };
        *lock(&self.flushed) = (all(&*snapshot)?, mark);
        Ok(snapshot.version())
    }

    fn load(&self, items: &[(Key, Value)], seal: Option<&Mark>) -> Result<(), StoreError> {
        self.memory.load(items, seal)?;
        if let Some(mark) = seal {
            let state = Written::State(mark.version, all(&*self.memory.snapshot()?)?);
            lock(&self.written).push(state);
        }
        Ok(())
    }
}
