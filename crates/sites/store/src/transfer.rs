//! State transfer: a snapshot goes to an empty store in pieces of bounded size.
//!
//! A site that joins may lack more than its cluster's log still has. It gets a snapshot of another's store, then the
//! log from there. The pieces come from one snapshot, so the sender continues applying meanwhile; the receiver's store is
//! unusable until the last piece, and says so if it is opened in between.

use core::ops::ControlFlow;

use pares_wice::{Key, KeyRange, Value, Version};

use crate::error::StoreError;
use crate::mark::Mark;
use crate::store::{Store, StoreSnapshot, successor};

/// Bytes of keys and values in a piece, unless told otherwise.
pub const CHUNK_BYTES: usize = 1 << 20;

/// A piece of a snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// Counts from 0.
    pub number: u32,
    /// The snapshot's version, the same in every piece.
    pub version: Version,
    /// The next items in the order of their keys.
    pub items: Vec<(Key, Value)>,
    /// What stands beside the items; with the last piece only, and what makes it the last.
    pub meta: Option<Vec<u8>>,
}

/// The pieces of a snapshot, one after the other.
pub struct Export<S> {
    snapshot: S,
    bytes: usize,
    number: u32,
    /// From where on the items of the next piece are read; `None` after the last.
    from: Option<Key>,
    /// The item before these, if it was read already, to see that the last piece was not the last of all.
    read_ahead: Option<(Key, Value)>,
}

impl<S: AsRef<dyn StoreSnapshot>> Export<S> {
    /// Cuts `snapshot` into pieces of about `bytes` of keys and values: a piece ends with the item that exceeds it.
    pub fn new(snapshot: S, bytes: usize) -> Self {
        Self { snapshot, bytes, number: 0, from: Some(Key::new([])), read_ahead: None }
    }

    /// Continues with piece `number`, behind the last key before it; the first piece follows no key.
    pub fn seek(&mut self, number: u32, after: &Key) {
        let from = if number == 0 { Key::new([]) } else { successor(after.as_bytes()) };
        (self.number, self.from, self.read_ahead) = (number, Some(from), None);
    }

    fn cut(&mut self, from: Key) -> Result<Chunk, StoreError> {
        let snapshot = self.snapshot.as_ref();
        let mut items = Vec::from_iter(self.read_ahead.take());
        let mut bytes = items.iter().map(item_bytes).sum::<usize>();
        let (bytes_min, read_ahead) = (self.bytes, &mut self.read_ahead);
        snapshot.range(&KeyRange { from, to: None }, &mut |key, value| {
            let item = (key, value);
            if bytes >= bytes_min && !items.is_empty() {
                *read_ahead = Some(item);
                return ControlFlow::Break(());
            }
            bytes += item_bytes(&item);
            items.push(item);
            ControlFlow::Continue(())
        })?;
        let next = self.read_ahead.as_ref().map(|(key, _)| successor(key.as_bytes()));
        let meta = next.is_none().then(|| snapshot.meta().to_vec());
        let chunk = Chunk { number: self.number, version: snapshot.version(), items, meta };
        self.number += 1;
        self.from = next;
        Ok(chunk)
    }
}

/// Bytes of an item's key and value.
#[must_use]
pub fn item_bytes((key, value): &(Key, Value)) -> usize {
    key.as_bytes().len() + value.as_bytes().len()
}

impl<S: AsRef<dyn StoreSnapshot>> Iterator for Export<S> {
    type Item = Result<Chunk, StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        let from = self.from.take()?;
        Some(self.cut(from))
    }
}

/// Receives pieces.
pub struct Import<'a> {
    store: &'a dyn Store,
    next: u32,
    version: Option<Version>,
}

impl<'a> Import<'a> {
    /// Into `store`, which must be empty.
    ///
    /// # Errors
    /// [`StoreError::NotEmpty`].
    pub fn new(store: &'a dyn Store) -> Result<Self, StoreError> {
        match store.applied() {
            Version(0) => Ok(Self { store, next: 0, version: None }),
            applied => Err(StoreError::NotEmpty(applied)),
        }
    }

    /// Takes the next piece; says whether it was the last, after which the store is whole and on the disk.
    ///
    /// # Errors
    /// [`StoreError::Chunk`] with nothing changed if it is not the next piece of the same snapshot; otherwise as
    /// [`Store::apply`].
    pub fn take(&mut self, chunk: &Chunk) -> Result<bool, StoreError> {
        let same = self.version.is_none_or(|version| version == chunk.version);
        if chunk.number != self.next || !same {
            return Err(StoreError::Chunk { expected: self.next, got: chunk.number });
        }
        let seal = chunk.meta.clone().map(|meta| Mark { whole: true, version: chunk.version, meta });
        self.store.load(&chunk.items, seal.as_ref())?;
        self.version = Some(chunk.version);
        self.next += 1;
        if seal.is_some() {
            self.store.flush()?;
        }
        Ok(seal.is_some())
    }
}
