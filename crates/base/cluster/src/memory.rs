//! A journal in memory that forgets as a disk does, for simulation.
//!
//! A crash keeps what was synced and of the rest only a beginning. That happens between any two calls, so a fault can
//! be set to strike at the n-th append or sync from now; the simulation then crashes the member.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use crate::error::JournalError;
use crate::journal::{Journal, Place};

/// A disk with one journal on it. Clones are the same disk: keep one, and give another to each life of the replica.
#[derive(Clone, Debug, Default)]
pub struct Disk(Rc<RefCell<Content>>);

#[derive(Debug, Default)]
struct Content {
    /// Place of the first record.
    first: Place,
    records: VecDeque<Vec<u8>>,
    /// Kept by a crash: records below this place.
    synced: Place,
    syncs: u64,
    fault_in: Option<u64>,
}

impl Content {
    fn end(&self) -> Place {
        self.first + self.records.len() as u64
    }

    fn check_fault(&mut self) -> Result<(), JournalError> {
        match &mut self.fault_in {
            Some(0) => Err(JournalError::Simulated),
            Some(left) => {
                *left -= 1;
                Ok(())
            }
            None => Ok(()),
        }
    }
}

impl Disk {
    /// An empty disk.
    #[must_use]
    pub fn new() -> Disk {
        Disk::default()
    }

    /// Another disk with the same on it, as a copy of a directory has it.
    #[must_use]
    pub fn copy(&self) -> Disk {
        let Content { first, records, synced, syncs, fault_in } = &*self.0.borrow();
        let records = records.clone();
        let copy = Content { first: *first, records, synced: *synced, syncs: *syncs, fault_in: *fault_in };
        Disk(Rc::new(RefCell::new(copy)))
    }

    /// Appends and syncs fail from the `operations`-th from now on, until the next crash.
    pub fn fail_in(&self, operations: u64) {
        self.0.borrow_mut().fault_in = Some(operations);
    }

    /// Loses all but the first `keep` of the records that were not synced, and takes faults away.
    pub fn crash(&self, keep: u64) {
        let mut content = self.0.borrow_mut();
        let end = content.synced.saturating_add(keep).min(content.end());
        let kept = (end - content.first) as usize;
        content.records.truncate(kept);
        content.synced = end;
        content.fault_in = None;
    }

    /// Takes a fault away that has not struck yet.
    pub fn repair(&self) {
        self.0.borrow_mut().fault_in = None;
    }

    /// Records not synced yet.
    #[must_use]
    pub fn unsynced(&self) -> u64 {
        let content = self.0.borrow();
        content.end() - content.synced
    }

    /// Records held.
    #[must_use]
    pub fn records(&self) -> usize {
        self.0.borrow().records.len()
    }

    /// Syncs so far.
    #[must_use]
    pub fn syncs(&self) -> u64 {
        self.0.borrow().syncs
    }
}

impl Journal for Disk {
    fn replay<E: From<JournalError>>(
        &mut self,
        mut each: impl FnMut(Place, &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let content = self.0.borrow();
        (content.first..).zip(&content.records).try_for_each(|(place, record)| each(place, record))
    }

    fn append(&mut self, head: &[u8], body: &[u8]) -> Result<Place, JournalError> {
        let mut content = self.0.borrow_mut();
        content.check_fault()?;
        content.records.push_back([head, body].concat());
        Ok(content.end() - 1)
    }

    fn publish(&mut self) {}

    fn sync(&mut self) -> Result<(), JournalError> {
        let mut content = self.0.borrow_mut();
        content.check_fault()?;
        content.synced = content.end();
        content.syncs += 1;
        Ok(())
    }

    fn release_before(&mut self, place: Place) {
        let mut content = self.0.borrow_mut();
        assert!(place <= content.synced, "released what nothing durable replaces");
        let count = place.saturating_sub(content.first) as usize;
        content.records.drain(..count);
        content.first = content.first.max(place);
    }

    fn record_bytes_max(&self) -> usize {
        1 << 20
    }
}
