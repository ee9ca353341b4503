//! The task that writes a copy into an empty store, beside the duty cycle.
//!
//! A site that lacks its items still has a vote in its cluster's log. Writing some MiB of items keeps a duty cycle busy for longer than its log's clock allows, and
//! bringing a whole copy to the disk takes seconds. So the pieces go to a task, as versions do to the [applier](crate::applier), in batches of some MiB. What waits for
//! the task is bounded by who asks for the pieces.
//!
//! A copy that is given up may have some batches waiting. Writing them is in vain, and a duty cycle that waits for it misses its log's clock. So the task looks between two batches
//! whether it is to stop, and the cycle goes on meanwhile: the store is closed when [`Ending`] says so.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
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
    // In this order: the task is told to stop, ends when there is nothing more to come, and its last word can still be said.
    stop: Stop,
    loads: Sender<Load>,
    task: T,
    done: Receiver<Result<usize, StoreError>>,
    under_way_bytes: usize,
    is_last_given: bool,
}

/// Has the task stop, behind the batch that it writes, when this is dropped.
struct Stop(Arc<AtomicBool>);

impl Drop for Stop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A loading task that was told to stop, and may have a batch under way.
pub(crate) struct Ending<T> {
    _task: T,
    done: Receiver<Result<usize, StoreError>>,
}

impl<T> Ending<T> {
    /// Whether the task has ended, and uses the store no more.
    pub(crate) fn is_over(&self) -> bool {
        loop {
            match self.done.try_recv() {
                Ok(_) => {} // of a batch that counts for nothing
                Err(error) => return error == TryRecvError::Disconnected,
            }
        }
    }
}

impl Loading<()> {
    /// Both ends of the task that fills `store`, which is empty and which nobody else uses.
    pub(crate) fn new(store: Arc<dyn Store>) -> (Self, StoreLoader) {
        let (loads, work) = channel();
        let (results, done) = channel();
        let stops = Arc::new(AtomicBool::new(false));
        let stop = Stop(Arc::clone(&stops));
        let own = Self { stop, loads, task: (), done, under_way_bytes: 0, is_last_given: false };
        (own, StoreLoader { store, stops, loads: work, done: results })
    }

    /// With what runs the other end.
    pub(crate) fn run_by<T>(self, task: T) -> Loading<T> {
        let Self { stop, loads, task: (), done, under_way_bytes, is_last_given } = self;
        Loading { stop, loads, task, done, under_way_bytes, is_last_given }
    }
}

impl<T> Loading<T> {
    /// Has the task stop: what waits is not written. Nobody waits for it here.
    pub(crate) fn stop(self) -> Ending<T> {
        Ending { _task: self.task, done: self.done }
    }

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
    // In this order: who hears that the task has ended finds the store closed.
    store: Arc<dyn Store>,
    stops: Arc<AtomicBool>,
    loads: Receiver<Load>,
    done: Sender<Result<usize, StoreError>>,
}

impl StoreLoader {
    /// Writes all that comes, until no more can, or it is to stop, or the store fails; calls `wake` after each batch. For a thread of its own.
    pub fn run(self, wake: impl Fn()) {
        while let Ok(load) = self.loads.recv() {
            let goes_on = !self.is_to_stop() && self.write(&load);
            wake();
            if !goes_on {
                return;
            }
        }
    }

    /// Has `loader` write the next batch, if one has come; whether one had. One that is to stop is dropped. For a world without threads.
    pub fn step(loader: &mut Option<Self>) -> bool {
        drop(loader.take_if(|loader| loader.is_to_stop()));
        let next = loader.as_ref().and_then(|loader| Some((loader, loader.loads.try_recv().ok()?)));
        next.is_some_and(|(loader, load)| {
            loader.write(&load);
            true
        })
    }

    fn is_to_stop(&self) -> bool {
        self.stops.load(Ordering::Relaxed)
    }

    /// Whether more can be written.
    fn write(&self, load: &Load) -> bool {
        let loaded = self.store.load(&load.items, load.seal.as_ref());
        let flushed = loaded.and_then(|()| match load.seal {
            Some(_) if !self.is_to_stop() => self.store.flush().map(drop),
            _ => Ok(()),
        });
        let failed = flushed.is_err();
        self.done.send(flushed.map(|()| load.bytes)).is_ok() && !failed
    }
}

#[cfg(test)]
mod tests {
    use pares_store::Memory;
    use pares_wice::Version;

    use super::*;

    fn item(number: u8) -> Vec<(Key, Value)> {
        vec![(Key::new([number]), Value::new(vec![number]))]
    }

    /// A task with three batches before it, the last of which makes the store whole.
    fn begun(store: &Arc<Memory>) -> (Loading<()>, StoreLoader) {
        let (mut loading, loader) = Loading::new(Arc::clone(store) as Arc<dyn Store>);
        let seal = Mark { whole: true, version: Version(7), meta: Vec::new() };
        for (number, seal) in [(1, None), (2, None), (3, Some(seal))] {
            loading.give(item(number), 2, seal);
        }
        (loading, loader)
    }

    #[test]
    fn what_waits_is_not_written_when_the_copy_is_given_up() {
        let store = Arc::new(Memory::default());
        let (loading, loader) = begun(&store);
        let ending = loading.stop();
        assert!(!ending.is_over(), "the task has the store");
        loader.run(|| ());
        assert!(ending.is_over());
        assert_eq!(Arc::strong_count(&store), 1, "it is closed by then");
        assert_eq!(store.applied(), Version(0), "nothing has made it whole");
    }

    #[test]
    fn a_batch_that_is_under_way_is_written_and_the_task_ends_behind_it() {
        let store = Arc::new(Memory::default());
        let (loading, loader) = begun(&store);
        let mut loader = Some(loader);
        assert!(StoreLoader::step(&mut loader));
        let ending = loading.stop();
        assert!(!ending.is_over());
        assert!(!StoreLoader::step(&mut loader) && loader.is_none());
        assert!(ending.is_over());
    }

    #[test]
    fn a_task_without_a_cycle_stops() {
        let store = Arc::new(Memory::default());
        let (loading, loader) = begun(&store);
        drop(loading);
        loader.run(|| ());
        assert_eq!(store.applied(), Version(0));
    }
}
