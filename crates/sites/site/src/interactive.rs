//! Transactions of programs: read, decide, write, for as long as the program likes, over [`Items`](crate::items::Items).
//!
//! A transaction that a site keeps open for a client dies with the site, holds a snapshot back from being reclaimed, and must be ended for a client that is gone. So
//! no site knows of these. The client keeps what was read, with the values, and what is to be written; a commit is one request, *expect what was read, then
//! write*. It has a number like every other: it happens once, at whichever site.
//!
//! ```text
//!   get a --> read: get a                       a is 5
//!   get b --> read: expect a 5, get b           b is 7, and a was 5 at that moment; or Changed
//!   put a 6
//!   commit -> execute: expect a 5, expect b 7, put a 6
//! ```
//! Each read asks for all before it again, so what a transaction has seen is always *one* state of the database, that of its last read: a program meets
//! no torn state, not even in a transaction that does not commit. And as a commit counts as writing what was read, nobody changes that before it is done, whatever
//! the isolation of the database. The price: as many bytes up the line as were read, at each read; and two that have read the same item conflict.

use std::collections::BTreeMap;
use std::time::Duration;

use pares_wice::{Change, Value};
use thiserror::Error;

use crate::client::{CallError, Client};
use crate::items::CHANGED;
use crate::protocol::Code;
use crate::steps::{ItemStep, StepKind, found, written};

/// How often [`Client::transaction`] tries.
pub const TRIES_MAX: u32 = 64;

/// Why a transaction does not continue.
#[derive(Debug, Error)]
pub enum TransactionError {
    /// What it has read is not so any more: nothing of it is done. Begin again.
    #[error("{0}")]
    Changed(String),
    /// Something is added to an item that is no counter, or the sum is beyond what a counter holds.
    #[error("{0} is not a counter, or the sum is too large")]
    NotACounter(String),
    /// Its commit was asked for: it can only be asked for again.
    #[error("this transaction has ended")]
    Ended,
    /// As for every other request. After [`CallError::Silence`] of a commit it is not known whether it is done: commit again.
    #[error(transparent)]
    Call(#[from] CallError),
}

/// A transaction that a client has begun. Dropping it undoes it.
pub struct ClientTransaction<'c> {
    client: &'c mut Client,
    patience: Duration,
    reads: BTreeMap<String, Option<Value>>,
    writes: BTreeMap<String, Change>,
    /// The commit's number and request, once it was asked for.
    asked: Option<(u64, Vec<u8>)>,
}

impl Client {
    /// Begins a transaction, each step of which waits at most for `patience`.
    pub fn begin(&mut self, patience: Duration) -> ClientTransaction<'_> {
        let (reads, writes) = Default::default();
        ClientTransaction { client: self, patience, reads, writes, asked: None }
    }

    /// Does in a transaction what `body` says, and commits it; again from the beginning while what was read changes, [`TRIES_MAX`] times at most. `body` has no effects
    /// but through the transaction.
    ///
    /// # Errors
    /// What `body` returns, and [`TransactionError`]. After [`CallError::Silence`] it is not known whether it is done; who must know begins a transaction himself.
    pub fn transaction<T>(
        &mut self,
        patience: Duration,
        mut body: impl FnMut(&mut ClientTransaction<'_>) -> Result<T, TransactionError>,
    ) -> Result<T, TransactionError> {
        let mut tries = 0;
        loop {
            tries += 1;
            let mut transaction = self.begin(patience);
            let done = body(&mut transaction).and_then(|done| transaction.commit().map(|()| done));
            match done {
                Err(TransactionError::Changed(_)) if tries < TRIES_MAX => {}
                done => return done,
            }
        }
    }
}

impl ClientTransaction<'_> {
    /// The item as this transaction sees it: as it was, with its own changes. None if there is no such item.
    ///
    /// # Errors
    /// [`TransactionError`].
    pub fn get(&mut self, name: &str) -> Result<Option<Value>, TransactionError> {
        self.goes_on()?;
        match self.writes.get(name).cloned() {
            Some(Change::Put(value)) => Ok(Some(value)),
            Some(Change::Delete) => Ok(None),
            Some(Change::Add(amount)) => {
                let value = self.read(name)?;
                Ok(Some(sum(name, value.as_ref(), amount)?))
            }
            None => self.read(name),
        }
    }

    /// The item has this value from now on.
    ///
    /// # Errors
    /// [`TransactionError::Ended`].
    pub fn put(&mut self, name: &str, value: impl Into<Value>) -> Result<(), TransactionError> {
        self.write(name, Change::Put(value.into()))
    }

    /// The item is no more.
    ///
    /// # Errors
    /// [`TransactionError::Ended`].
    pub fn delete(&mut self, name: &str) -> Result<(), TransactionError> {
        self.write(name, Change::Delete)
    }

    /// Adds to a counter, which is 0 where it is absent. Unless it was read, it does not conflict with others that add to it. If it is no counter, the commit says so.
    ///
    /// # Errors
    /// [`TransactionError`].
    pub fn add(&mut self, name: &str, amount: i64) -> Result<(), TransactionError> {
        let change = match self.writes.get(name) {
            Some(Change::Put(value)) => Change::Put(sum(name, Some(value), amount)?),
            Some(Change::Delete) => Change::Put(sum(name, None, amount)?),
            Some(Change::Add(earlier)) => {
                let sum = earlier.checked_add(amount);
                Change::Add(sum.ok_or_else(|| TransactionError::NotACounter(name.into()))?)
            }
            None => Change::Add(amount),
        };
        self.write(name, change)
    }

    /// Commits it: all of it is done, once, and nothing that it has read had changed. One that writes nothing has read one state already, and asks nobody.
    /// After [`CallError::Silence`], asks again under the same number.
    ///
    /// # Errors
    /// [`TransactionError`]. Nothing is done, except after silence.
    pub fn commit(&mut self) -> Result<(), TransactionError> {
        if self.writes.is_empty() {
            return Ok(());
        }
        let again = self.asked.is_some();
        let (sequence, request) = match self.asked.take() {
            Some(asked) => asked,
            None => (self.client.next(), written(&self.steps())),
        };
        let reply = self.client.execute_as(sequence, &request, self.patience, again);
        self.asked = Some((sequence, request));
        reply.map(drop).map_err(changed)
    }

    fn goes_on(&self) -> Result<(), TransactionError> {
        if self.asked.is_some() { Err(TransactionError::Ended) } else { Ok(()) }
    }

    fn write(&mut self, name: &str, change: Change) -> Result<(), TransactionError> {
        self.goes_on()?;
        self.writes.insert(name.into(), change);
        Ok(())
    }

    /// The item as it was, at a moment when all that was read before was as it was.
    fn read(&mut self, name: &str) -> Result<Option<Value>, TransactionError> {
        assert!(self.asked.is_none(), "nothing is read once the commit was asked for");
        if let Some(value) = self.reads.get(name) {
            return Ok(value.clone());
        }
        let mut steps = self.expected();
        steps.push(ItemStep { name: name.into(), what: StepKind::Get });
        let reply = self.client.read(&written(&steps), self.patience).map_err(changed)?;
        let value = found(&reply).ok().and_then(|mut values| values.pop()).ok_or_else(|| {
            let why = "it does not answer with items: check that it runs the same application".into();
            CallError::No { code: Code::Impossible, why }
        })?;
        self.reads.insert(name.into(), value.clone());
        Ok(value)
    }

    fn expected(&self) -> Vec<ItemStep> {
        let expect = |(name, value): (&String, &Option<Value>)| ItemStep {
            name: name.clone(),
            what: StepKind::Expect(value.clone()),
        };
        self.reads.iter().map(expect).collect()
    }

    fn steps(&self) -> Vec<ItemStep> {
        let write = |(name, change): (&String, &Change)| {
            let what = match change {
                Change::Put(value) => StepKind::Put(value.clone()),
                Change::Delete => StepKind::Delete,
                Change::Add(amount) => StepKind::Add(*amount),
            };
            ItemStep { name: name.clone(), what }
        };
        self.expected().into_iter().chain(self.writes.iter().map(write)).collect()
    }
}

fn sum(name: &str, value: Option<&Value>, amount: i64) -> Result<Value, TransactionError> {
    let total = value.map_or(Some(0), Value::as_counter);
    let sum = total.and_then(|total| total.checked_add(i128::from(amount))).map(Value::counter);
    sum.ok_or_else(|| TransactionError::NotACounter(name.into()))
}

/// A refusal that says so is one of what was expected.
fn changed(error: CallError) -> TransactionError {
    match error {
        CallError::No { code: Code::Refused, why } if why.starts_with(CHANGED) => {
            TransactionError::Changed(why)
        }
        other => other.into(),
    }
}
