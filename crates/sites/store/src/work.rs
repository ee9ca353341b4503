//! A transaction while an application works on it.
//!
//! Storage engines have transactions of their own, but none says what a transaction *read*, which certification by
//! [`pares_wice::Isolation::Serialisable`] needs exactly, and all keep locks or versions until commit, which here is
//! a journey round the world away. So a transaction is a map of its own writes over a snapshot, which costs nobody
//! anything, and notes what it looks at (paper 3, section 2.1: read set, write set, written values).
//!
//! What is noted:
//!
//! | the application | read set | write set |
//! |---|---|---|
//! | gets an item | the item, unless the transaction itself put or deleted it before | - |
//! | walks a range | the part of it that was walked: up to and with the last item shown, if it stopped there | - |
//! | puts, deletes | - | the item |
//! | holds an item | the item | the item, as it is |
//! | adds to a counter | - (that the item *is* a counter is looked at, but is no more than a form) | the sum added |

use core::ops::{Bound, ControlFlow};
use std::collections::BTreeSet;
use std::collections::btree_map::{BTreeMap, Entry};

use pares_wice::{Change, Key, KeyRange, Transaction, TransactionId, Value, Version, Write};

use crate::error::WorkError;
use crate::store::{Reads, Visit, is_empty, successor};

/// A transaction over the snapshot `R`. Nothing leaves it before [`Work::finish`]; dropping it undoes it.
#[derive(Debug)]
pub struct Work<R> {
    base: R,
    reads: BTreeSet<Key>,
    ranges: BTreeSet<KeyRange>,
    writes: BTreeMap<Key, Change>,
}

impl<R: Reads> Work<R> {
    /// Begins on `base`, which must not change meanwhile.
    pub fn new(base: R) -> Self {
        Self { base, reads: BTreeSet::new(), ranges: BTreeSet::new(), writes: BTreeMap::new() }
    }

    /// What it works on, without its own changes.
    pub fn base(&self) -> &R {
        &self.base
    }

    /// The item as this transaction sees it: as it was, with its own changes.
    ///
    /// # Errors
    /// If the snapshot cannot be read.
    pub fn get(&mut self, key: &Key) -> Result<Option<Value>, WorkError> {
        let added = match self.writes.get(key) {
            Some(Change::Put(value)) => return Ok(Some(value.clone())),
            Some(Change::Delete) => return Ok(None),
            Some(Change::Add(delta)) => Some(*delta),
            None => None,
        };
        let base = self.base.get(key)?;
        let value = match added {
            Some(delta) => Some(sum(key, base.as_ref(), delta)?),
            None => base,
        };
        self.reads.insert(key.clone());
        Ok(value)
    }

    /// A counter's total; 0 if the item is absent.
    ///
    /// # Errors
    /// [`WorkError::NotACounter`], or if the snapshot cannot be read.
    pub fn counter(&mut self, key: &Key) -> Result<i128, WorkError> {
        total(key, self.get(key)?.as_ref())
    }

    /// The item has this value from now on.
    pub fn put(&mut self, key: &Key, value: Value) {
        self.writes.insert(key.clone(), Change::Put(value));
    }

    /// The item is no more.
    pub fn delete(&mut self, key: &Key) {
        self.writes.insert(key.clone(), Change::Delete);
    }

    /// Reads an item, and counts as writing it: of two concurrent transactions that write or hold it, the first to be certified commits. Nothing that a
    /// transaction decided by can change before it commits if it holds that, under [`pares_wice::Isolation::Snapshot`] too, where what is read alone is not
    /// protected. The item is put as it is, or deleted where it is absent; so this costs as much as writing it.
    ///
    /// # Errors
    /// If the snapshot cannot be read.
    pub fn hold(&mut self, key: &Key) -> Result<Option<Value>, WorkError> {
        let value = self.get(key)?;
        match &value {
            Some(value) => self.put(key, value.clone()),
            None => self.delete(key),
        }
        Ok(value)
    }

    /// Adds to a counter without reading it: concurrent transactions that add to it do not conflict with this one.
    ///
    /// # Errors
    /// [`WorkError::NotACounter`], [`WorkError::Overflow`], or if the snapshot cannot be read.
    pub fn add(&mut self, key: &Key, delta: i64) -> Result<(), WorkError> {
        let overflow = || WorkError::Overflow(key.clone());
        let change = match self.writes.get(key) {
            Some(Change::Put(value)) => Change::Put(sum(key, Some(value), delta)?),
            Some(Change::Delete) => Change::Put(Value::counter(i128::from(delta))),
            earlier => {
                let earlier = if let Some(Change::Add(earlier)) = earlier { *earlier } else { 0 };
                let delta = earlier.checked_add(delta).ok_or_else(overflow)?;
                // Looked at for its form only, and for a sum that cannot be: neither counts as reading.
                sum(key, self.base.get(key)?.as_ref(), delta)?;
                Change::Add(delta)
            }
        };
        self.writes.insert(key.clone(), change);
        Ok(())
    }

    /// Shows the items of `range` as this transaction sees them, in the order of their keys, until `visit` breaks.
    ///
    /// # Errors
    /// If the snapshot cannot be read. What was shown before counts as read.
    pub fn range(&mut self, range: &KeyRange, visit: &mut Visit<'_>) -> Result<(), WorkError> {
        if is_empty(range) {
            return Ok(());
        }
        let mut last = None;
        let walked = merged(&self.base, &self.writes, range, &mut |key, value| {
            let flow = visit(key.clone(), value);
            if flow.is_break() {
                last = Some(key);
            }
            flow
        });
        let to = last.map_or_else(|| range.to.clone(), |key| Some(successor(key.as_bytes())));
        self.ranges.insert(KeyRange { from: range.from.clone(), to });
        walked
    }

    /// The first `limit` items of `range`, as [`Work::range`] shows them.
    ///
    /// # Errors
    /// As [`Work::range`].
    pub fn first(&mut self, range: &KeyRange, limit: usize) -> Result<Vec<(Key, Value)>, WorkError> {
        let mut items = Vec::new();
        if limit == 0 {
            return Ok(items);
        }
        self.range(range, &mut |key, value| {
            items.push((key, value));
            if items.len() < limit { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        Ok(items)
    }

    /// Whether it has changed nothing so far: then it needs no certification.
    #[must_use]
    pub fn is_read_only(&self) -> bool {
        self.writes.is_empty()
    }

    /// Whether it has changed an item whose name is such.
    #[must_use]
    pub fn writes_any(&self, is_such: impl Fn(&Key) -> bool) -> bool {
        self.writes.keys().any(is_such)
    }

    /// What it saw and did, to be submitted. `snapshot` is the version of what it read.
    pub fn finish(self, id: TransactionId, attempt: u32, snapshot: Version) -> Transaction {
        let ranges = joined(self.ranges);
        let mut reads: Vec<Key> = self.reads.into_iter().collect();
        reads.retain(|key| !ranges.iter().any(|range| range.contains(key)));
        let writes = self.writes.into_iter().map(|(key, change)| Write { key, change }).collect();
        Transaction { id, attempt, snapshot, reads, ranges, writes }
    }
}

fn total(key: &Key, value: Option<&Value>) -> Result<i128, WorkError> {
    match value {
        None => Ok(0),
        Some(value) => value.as_counter().ok_or_else(|| WorkError::NotACounter(key.clone())),
    }
}

fn sum(key: &Key, base: Option<&Value>, delta: i64) -> Result<Value, WorkError> {
    let sum = total(key, base)?.checked_add(i128::from(delta));
    sum.map(Value::counter).ok_or_else(|| WorkError::Overflow(key.clone()))
}

/// Walks `base` and `writes` side by side.
fn merged<R: Reads>(
    base: &R,
    writes: &BTreeMap<Key, Change>,
    range: &KeyRange,
    visit: &mut Visit<'_>,
) -> Result<(), WorkError> {
    let to = range.to.as_ref().map_or(Bound::Unbounded, Bound::Excluded);
    let mut own = writes.range::<Key, _>((Bound::Included(&range.from), to)).peekable();
    let mut outcome = Ok(ControlFlow::Continue(()));
    base.range(range, &mut |key, value| {
        while let Some((own_key, change)) = own.next_if(|(own_key, _)| **own_key < key) {
            outcome = show(own_key, None, Some(change), visit);
            if !matches!(outcome, Ok(ControlFlow::Continue(()))) {
                return ControlFlow::Break(());
            }
        }
        let change = own.next_if(|(own_key, _)| **own_key == key).map(|(_, change)| change);
        outcome = show(&key, Some(value), change, visit);
        if matches!(outcome, Ok(ControlFlow::Continue(()))) {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    })?;
    for (key, change) in own {
        if outcome?.is_break() {
            return Ok(());
        }
        outcome = show(key, None, Some(change), visit);
    }
    outcome.map(|_| ())
}

/// Shows an item that is there after `change`.
fn show(
    key: &Key,
    base: Option<Value>,
    change: Option<&Change>,
    visit: &mut Visit<'_>,
) -> Result<ControlFlow<()>, WorkError> {
    let value = match change {
        None => base,
        Some(Change::Put(value)) => Some(value.clone()),
        Some(Change::Delete) => None,
        Some(Change::Add(delta)) => Some(sum(key, base.as_ref(), *delta)?),
    };
    Ok(value.map_or(ControlFlow::Continue(()), |value| visit(key.clone(), value)))
}

/// The same keys in as few ranges as possible.
fn joined(ranges: BTreeSet<KeyRange>) -> Vec<KeyRange> {
    let mut joined: BTreeMap<Key, Option<Key>> = BTreeMap::new();
    for KeyRange { from, to } in ranges {
        // They come by their beginning, so only the last one can touch this one.
        if let Some(mut last) = joined.last_entry()
            && last.get().as_ref().is_none_or(|end| from <= *end)
        {
            let reaches_further = match (&to, last.get()) {
                (_, None) => false,
                (None, Some(_)) => true,
                (Some(to), Some(end)) => to > end,
            };
            if reaches_further {
                last.insert(to);
            }
            continue;
        }
        if let Entry::Vacant(place) = joined.entry(from) {
            place.insert(to);
        }
    }
    joined.into_iter().map(|(from, to)| KeyRange { from, to }).collect()
}
