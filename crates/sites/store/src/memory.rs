//! Items in memory: the obviously right store, which the others are compared with, and which tests and the simulator use.
//!
//! Each item has its values with the versions that made them; a snapshot is a number.

use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pares_wice::{Key, KeyRange, Value, Version};

use crate::error::StoreError;
use crate::mark::Mark;
use crate::store::{Applied, Reads, Store, StoreSnapshot, Visit, behind, is_empty};

/// A store in memory; gone when dropped.
#[derive(Clone, Debug, Default)]
pub struct Memory(Arc<Mutex<Inner>>);

#[derive(Debug, Default)]
struct Inner {
    mark: Mark,
    /// An item's values, oldest first; `None` is deleted.
    items: BTreeMap<Key, Vec<(Version, Option<Value>)>>,
    /// Versions that snapshots are reading, with how many.
    reading: BTreeMap<Version, usize>,
}

impl Memory {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn put(&mut self, key: &Key, value: Option<Value>, version: Version) {
        let oldest = self.reading.keys().next().copied().unwrap_or(version);
        let values = self.items.entry(key.clone()).or_default();
        // A value is seen until the next one: what the oldest reader has a successor for, nobody sees.
        let seen = values.partition_point(|(made, _)| *made <= oldest);
        values.drain(..seen.saturating_sub(1));
        values.push((version, value));
        if seen_by_nobody(values, oldest) {
            self.items.remove(key);
        }
    }

    fn at(&self, key: &Key, version: Version) -> Option<&Value> {
        value_at(self.items.get(key)?, version)
    }
}

fn seen_by_nobody(values: &[(Version, Option<Value>)], oldest: Version) -> bool {
    values.last().is_some_and(|(made, value)| *made <= oldest && value.is_none())
}

fn value_at(values: &[(Version, Option<Value>)], version: Version) -> Option<&Value> {
    values.iter().rev().find(|(made, _)| *made <= version)?.1.as_ref()
}

impl Store for Memory {
    fn applied(&self) -> Version {
        self.inner().mark.version
    }

    fn meta(&self) -> Arc<[u8]> {
        self.inner().mark.meta.as_slice().into()
    }

    fn apply(&self, batch: &[Applied], meta: Option<&[u8]>) -> Result<(), StoreError> {
        let mut inner = self.inner();
        let mark = behind(inner.mark.clone(), batch, meta)?;
        for applied in batch {
            for (key, value) in &applied.writes {
                inner.put(key, value.clone(), applied.version);
            }
        }
        inner.mark = mark;
        Ok(())
    }

    fn snapshot(&self) -> Result<Box<dyn StoreSnapshot>, StoreError> {
        let mut inner = self.inner();
        let mark = inner.mark.clone().readable()?;
        *inner.reading.entry(mark.version).or_default() += 1;
        Ok(Box::new(MemorySnapshot { memory: self.clone(), mark }))
    }

    fn flush(&self) -> Result<Version, StoreError> {
        Ok(self.applied())
    }

    fn load(&self, items: &[(Key, Value)], seal: Option<&Mark>) -> Result<(), StoreError> {
        let mut inner = self.inner();
        if inner.mark.version > Version(0) {
            return Err(StoreError::NotEmpty(inner.mark.version));
        }
        for (key, value) in items {
            inner.put(key, Some(value.clone()), Version(0));
        }
        match seal {
            Some(mark) => inner.mark = mark.clone(),
            None => inner.mark.whole = false,
        }
        Ok(())
    }
}

struct MemorySnapshot {
    memory: Memory,
    mark: Mark,
}

impl Reads for MemorySnapshot {
    fn get(&self, key: &Key) -> Result<Option<Value>, StoreError> {
        Ok(self.memory.inner().at(key, self.mark.version).cloned())
    }

    fn range(&self, range: &KeyRange, visit: &mut Visit<'_>) -> Result<(), StoreError> {
        if is_empty(range) {
            return Ok(());
        }
        let to = range.to.clone().map_or(Bound::Unbounded, Bound::Excluded);
        // One item at a time, so that no thread waits for `visit`.
        let mut from = Bound::Included(range.from.clone());
        loop {
            let inner = self.memory.inner();
            let next = inner
                .items
                .range((from, to.clone()))
                .find_map(|(key, values)| Some((key.clone(), value_at(values, self.mark.version)?.clone())));
            drop(inner);
            let Some((key, value)) = next else { return Ok(()) };
            from = Bound::Excluded(key.clone());
            if let ControlFlow::Break(()) = visit(key, value) {
                return Ok(());
            }
        }
    }
}

impl StoreSnapshot for MemorySnapshot {
    fn mark(&self) -> &Mark {
        &self.mark
    }
}

impl Drop for MemorySnapshot {
    fn drop(&mut self) {
        let mut inner = self.memory.inner();
        if let Some(count) = inner.reading.get_mut(&self.mark.version) {
            *count -= 1;
            if *count == 0 {
                inner.reading.remove(&self.mark.version);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_nobody_can_see_are_let_go() {
        let memory = Memory::default();
        let key = Key::from("a");
        let put = |version, value: Option<&str>| {
            let writes = vec![(key.clone(), value.map(Value::from))];
            memory.apply(&[Applied { version: Version(version), writes }], None).unwrap();
        };
        let values = || memory.inner().items.get(&key).map_or(0, Vec::len);
        (1..=10).for_each(|version| put(version, Some("x")));
        assert!(values() <= 2);
        let snapshot = memory.snapshot().unwrap();
        (11..=20).for_each(|version| put(version, Some("y")));
        assert_eq!(snapshot.get(&key).unwrap(), Some(Value::from("x")));
        drop(snapshot);
        put(21, None);
        put(22, None);
        assert_eq!(values(), 0);
    }
}
