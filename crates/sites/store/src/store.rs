//! The face of every store.

use core::ops::{ControlFlow, Deref};
use std::sync::Arc;

use pares_wice::{Key, KeyRange, Value, Version};

use crate::error::StoreError;
use crate::mark::Mark;

/// What one version left behind: values as they are now, not how they came about, so that applying is only writing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Applied {
    /// The version.
    pub version: Version,
    /// Its items and what they are from now on; `None` is deleted. If an item stands here twice, the later one holds.
    pub writes: Vec<(Key, Option<Value>)>,
}

/// Called with one item after the other; says whether it wants another.
pub type Visit<'a> = dyn FnMut(Key, Value) -> ControlFlow<()> + 'a;

/// Items to be read, all of one moment.
pub trait Reads {
    /// The item's value, if it exists.
    ///
    /// # Errors
    /// If the store cannot be read.
    fn get(&self, key: &Key) -> Result<Option<Value>, StoreError>;

    /// Shows the items of `range` in the order of their keys, until `visit` breaks.
    ///
    /// # Errors
    /// If the store cannot be read. Some items may have been shown before.
    fn range(&self, range: &KeyRange, visit: &mut Visit<'_>) -> Result<(), StoreError>;

    /// The first `limit` items of `range`.
    ///
    /// # Errors
    /// If the store cannot be read.
    fn first(&self, range: &KeyRange, limit: usize) -> Result<Vec<(Key, Value)>, StoreError> {
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
}

impl<P: Deref<Target: Reads>> Reads for P {
    fn get(&self, key: &Key) -> Result<Option<Value>, StoreError> {
        (**self).get(key)
    }

    fn range(&self, range: &KeyRange, visit: &mut Visit<'_>) -> Result<(), StoreError> {
        (**self).range(range, visit)
    }
}

/// The database as it was after one version. It stays that while later versions are applied; what it holds on to is
/// kept by the engine until it is dropped, so a snapshot is for a transaction, not for a day.
pub trait StoreSnapshot: Reads + Send {
    /// What stood beside the items then.
    fn mark(&self) -> &Mark;

    /// Which version.
    fn version(&self) -> Version {
        self.mark().version
    }

    /// What was stored beside the items then.
    fn meta(&self) -> &[u8] {
        &self.mark().meta
    }
}

/// A prefix of the commit order. One thread applies; any number read.
///
/// Object-safe: a site holds an `Arc<dyn Store>` of whichever engine its settings name.
pub trait Store: Send + Sync {
    /// The last version applied: after opening, replay the log from the next one.
    fn applied(&self) -> Version;

    /// What was last stored beside the items; empty at first.
    fn meta(&self) -> Arc<[u8]>;

    /// Applies versions, which must follow the last one applied and each other without a gap, and stores `meta` beside
    /// the items if it is given; all of it or, if this process dies, nothing. Does not wait for the disk.
    ///
    /// # Errors
    /// [`StoreError::Order`] with nothing changed. After [`StoreError::Io`] it is open whether the batch is kept, and
    /// every later call fails until the store is opened again.
    fn apply(&self, batch: &[Applied], meta: Option<&[u8]>) -> Result<(), StoreError>;

    /// The database as it is now. Never waits for the writer.
    ///
    /// # Errors
    /// [`StoreError::Unfinished`] during a state transfer, [`StoreError::Busy`], or if the store cannot be read.
    fn snapshot(&self) -> Result<Box<dyn StoreSnapshot>, StoreError>;

    /// Brings what was applied to the disk; gives the version that now survives even a loss of power, up to which
    /// the log is no longer needed. The writer waits meanwhile, readers do not. Worth doing every few seconds: more seldom
    /// makes a restart replay more, more often writes the same pages again and again.
    ///
    /// # Errors
    /// As [`Store::apply`].
    fn flush(&self) -> Result<Version, StoreError>;

    /// Takes a piece of a state transfer; with the last one comes the mark that makes the store whole. Between the first
    /// and the last nothing can be applied or read. [`crate::Import`] calls this in the right order.
    ///
    /// # Errors
    /// [`StoreError::NotEmpty`] with nothing changed; otherwise as [`Store::apply`].
    fn load(&self, items: &[(Key, Value)], seal: Option<&Mark>) -> Result<(), StoreError>;
}

/// Whether no key can lie in `range`.
pub(crate) fn is_empty(range: &KeyRange) -> bool {
    range.to.as_ref().is_some_and(|to| *to <= range.from)
}

/// The first key after `key`.
pub(crate) fn successor(key: &[u8]) -> Key {
    let mut bytes = key.to_vec();
    bytes.push(0);
    Key::new(bytes)
}

/// What `mark` becomes when `batch` is applied, which must follow it without a gap.
pub(crate) fn behind(mark: Mark, batch: &[Applied], meta: Option<&[u8]>) -> Result<Mark, StoreError> {
    let mut mark = mark.readable()?;
    for next in batch {
        if next.version != mark.version.next() {
            return Err(StoreError::Order { applied: mark.version, got: next.version });
        }
        mark.version = next.version;
    }
    Ok(Mark { meta: meta.map_or(mark.meta, <[u8]>::to_vec), ..mark })
}
