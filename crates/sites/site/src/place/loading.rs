//! The task that writes a copy into an empty store, beside the duty cycle.
//!
//! A site that lacks its items still has a vote in its cluster's log. Writing some MiB of items keeps a duty cycle busy for longer than its log's clock allows, and
//! bringing a whole copy to the disk takes seconds. So the pieces go to a task, as versions do to the [applier](crate::applier), in batches of some MiB. What waits for
//! the task is bounded by who asks for the pieces.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};

use pares_store::{Mark, Store, StoreError};
use pares_wice::{Key, Value};

/// Items to be written.
struct Load {
    items: Vec<(Key, Value)>,
    bytes: usize,
    /// With the last ones: what makes the store whole, which is then brought to the disk.
    seal: Option<Mark>,
}

/// The duty cycle's end of the loading task.
pub(crate) struct Loading<T> {
    // In this order: the task ends when there is nothing more to come, and its last word can still be said.
    loads: Sender<Load>,
    _task: T,
    done: Receiver<Result<usize, StoreError>>,
    under_way_bytes: usize,
    is_last_given: bool,
}

impl Loading<()> {
    /// Both ends of the task that fills `store`, which is empty and which nobody else uses.
    pub(crate) fn new(store: Arc<dyn Store>) -> (Self, StoreLoader) {
        let (loads, work) = channel();
        let (results, done) = channel();
        let own = Self { loads, _task: (), done, under_way_bytes: 0, is_last_given: false };
        (own, StoreLoader { store, loads: work, done: results })
    }

    /// With what runs the other end.
    pub(crate) fn run_by<T>(self, task: T) -> Loading<T> {
        let Self { loads, _task, done, under_way_bytes, is_last_given } = self;
        Loading { loads, _task: task, done, under_way_bytes, is_last_given }
    }
}

impl<T> Loading<T> {
    /// Has these items written, which come to so many bytes; with the last ones comes the seal.
    pub(crate) fn give(&mut self, items: Vec<(Key, Value)>, bytes: usize, seal: Option<Mark>) {
        self.is_last_given = seal.is_some();
        self.under_way_bytes += bytes;
        // If the task is gone, its last word says why.
        let _ = self.loads.send(Load { items, bytes, seal });
    }

    /// Bytes that wait to be written, or are being written.
    pub(crate) fn under_way_bytes(&self) -> usize {
        self.under_way_bytes
    }

    /// Whether the task has to write what completes the store, and nothing is left to come.
    pub(crate) fn is_last_given(&self) -> bool {
        self.is_last_given
    }

    /// Bytes of a batch that was written since it was asked last.
    ///
    /// # Errors
    /// If the store does not take it.
    pub(crate) fn written(&mut self) -> Result<Option<usize>, StoreError> {
        match self.done.try_recv() {
            Ok(written) => {
                let bytes = written?;
                self.under_way_bytes -= bytes;
                Ok(Some(bytes))
            }
            Err(TryRecvError::Empty) => Ok(None),
            Err(TryRecvError::Disconnected) => {
                Err(StoreError::Io("the task that fills the store has ended".into()))
            }
        }
    }
}

/// Fills a store, beside the duty cycle.
pub struct StoreLoader {
    store: Arc<dyn Store>,
    loads: Receiver<Load>,
    done: Sender<Result<usize, StoreError>>,
}

impl StoreLoader {
    /// Writes all that comes, until no more can or the store fails; calls `wake` after each batch. For a thread of its own.
    pub fn run(self, wake: impl Fn()) {
        while let Ok(load) = self.loads.recv() {
            let goes_on = self.write(&load);
            wake();
            if !goes_on {
                return;
            }
        }
    }

    /// Writes the next batch, if one has come; whether one had. For a world without threads.
    pub fn step(&self) -> bool {
        self.loads.try_recv().is_ok_and(|load| {
            self.write(&load);
            true
        })
    }

    /// Whether more can be written.
    fn write(&self, load: &Load) -> bool {
        let loaded = self.store.load(&load.items, load.seal.as_ref());
        let flushed = loaded.and_then(|()| match load.seal {
            Some(_) => self.store.flush().map(drop),
            None => Ok(()),
        });
        let failed = flushed.is_err();
        self.done.send(flushed.map(|()| load.bytes)).is_ok() && !failed
    }
}
