//! What a request writes, until nothing can refuse it any more.
//!
//! Reading and deciding first, and writing when nothing can be refused any more, is not enough: a kill switch cancels one order after the other, and the last can be refused.
//! So what is written lies here, and a refusal drops all of it.

use std::collections::BTreeMap;

use pares_wice::{Key, Value};

use crate::ledger::Ledger;

/// See the [module](self).
pub(crate) struct Draft<'a, L> {
    ledger: &'a mut L,
    /// None: deleted.
    writes: BTreeMap<Key, Option<Value>>,
}

impl<'a, L: Ledger> Draft<'a, L> {
    pub(crate) fn of(ledger: &'a mut L) -> Self {
        Self { ledger, writes: BTreeMap::new() }
    }

    /// What was written stays.
    pub(crate) fn keep(&mut self) {
        for (key, value) in std::mem::take(&mut self.writes) {
            match value {
                Some(value) => self.ledger.put(&key, value),
                None => self.ledger.delete(&key),
            }
        }
    }

    /// What was written since the last [`Self::keep`] never was.
    pub(crate) fn forget(&mut self) {
        self.writes.clear();
    }
}

impl<L: Ledger> Ledger for Draft<'_, L> {
    type Error = L::Error;

    fn get(&mut self, key: &Key) -> Result<Option<Value>, L::Error> {
        match self.writes.get(key) {
            Some(written) => Ok(written.clone()),
            None => self.ledger.get(key),
        }
    }

    fn put(&mut self, key: &Key, value: Value) {
        self.writes.insert(key.clone(), Some(value));
    }

    fn delete(&mut self, key: &Key) {
        self.writes.insert(key.clone(), None);
    }
}
