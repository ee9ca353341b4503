//! What the rules need of a transaction, and of a snapshot.
//!
//! Transactions are the sites' (`pares-store`), above a crate of rules. So the rules name the few things they do with one.

use core::convert::Infallible;
use std::collections::BTreeMap;

use pares_wice::codec::DecodeError;
use pares_wice::{Key, KeyRange, Value};

/// A transaction: what it writes commits together or not at all, and of two that write an item at once one does. What it only reads is not protected (brokers' sites run at
/// [`pares_wice::Isolation::Snapshot`]): an item that it decides by and does not write must be held.
pub trait Ledger {
    /// Why it cannot be read.
    type Error;

    /// The item as this transaction sees it.
    ///
    /// # Errors
    /// If it cannot be read.
    fn get(&mut self, key: &Key) -> Result<Option<Value>, Self::Error>;
    /// The same, and nobody else's change of it commits beside this transaction: the item is written as it is.
    ///
    /// # Errors
    /// If it cannot be read.
    fn hold(&mut self, key: &Key) -> Result<Option<Value>, Self::Error> {
        let value = self.get(key)?;
        match &value {
            Some(value) => self.put(key, value.clone()),
            None => self.delete(key),
        }
        Ok(value)
    }
    /// The item has this value from now on.
    fn put(&mut self, key: &Key, value: Value);
    /// The item is no more.
    fn delete(&mut self, key: &Key);
}

/// A snapshot.
pub trait Shelf {
    /// Why it cannot be read.
    type Error;

    /// The first `limit` items of `range`, in the order of their keys.
    ///
    /// # Errors
    /// If they cannot be read.
    fn first(&self, range: &KeyRange, limit: usize) -> Result<Vec<(Key, Value)>, Self::Error>;
}

/// Items in memory: for tests, simulations and stand-ins.
impl Ledger for BTreeMap<Key, Value> {
    type Error = Infallible;

    fn get(&mut self, key: &Key) -> Result<Option<Value>, Infallible> {
        Ok(BTreeMap::get(self, key).cloned())
    }

    fn put(&mut self, key: &Key, value: Value) {
        self.insert(key.clone(), value);
    }

    fn delete(&mut self, key: &Key) {
        self.remove(key);
    }
}

impl Shelf for BTreeMap<Key, Value> {
    type Error = Infallible;

    fn first(&self, range: &KeyRange, limit: usize) -> Result<Vec<(Key, Value)>, Infallible> {
        let found = self.range(range.from.clone()..).take_while(|(key, _)| range.contains(key));
        Ok(found.take(limit).map(|(key, value)| (key.clone(), value.clone())).collect())
    }
}

/// Why a request is not executed at all. Nothing has changed, and the log says nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BrokerError<E> {
    /// The items cannot be read.
    #[error("{0}")]
    Items(E),
    /// An item is not as these rules write it.
    #[error("an item is damaged: {0}")]
    Damaged(DecodeError),
    /// It has no number, or the number it comes after is not that of a command before it.
    #[error("a command of number {0} does not come after {1}")]
    Order(u64, u64),
    /// It says that it was made behind the year 9999.
    #[error("no request is made {0} ms after 1970: set the front's clock")]
    Time(u64),
}

/// What a transaction gives, or why it is not executed.
pub(crate) type Executed<T, L> = Result<T, BrokerError<<L as Ledger>::Error>>;

/// What is found in a snapshot, or why it cannot be read.
pub(crate) type Found<T, S> = Result<T, BrokerError<<S as Shelf>::Error>>;
