//! The task that empties a store and writes a copy into it, beside the duty cycle.
//!
//! A site that lacks its items still has a vote in its cluster's log. Emptying a database, writing some MiB of items and bringing a whole copy to the disk each keep a duty
//! cycle busy for longer than its log's clock allows. So the pieces go to a task, as versions do to the [applier](crate::applier), in batches of some MiB. Before the first
//! it empties the store: over PostgreSQL that is a delete of every row. What waits for the task is bounded by who asks for the pieces.
//!
//! A server notices late that a connection was closed, and has the store locked until then. So a store in use is asked for again, for some time.
//!
//! A copy that is given up may have some batches waiting. Writing them is useless, and a duty cycle that waits for it misses its log's clock. So the task looks between two batches
//! whether it is to stop, and the cycle continues meanwhile: the store is closed when [`Ending`] says so.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::time::Duration;

use pares_store::{Mark, Store, StoreError};
use pares_wice::{Key, Value};

/// Tries to empty a store that is open elsewhere, and the pause between two. A database waits for some time in each by itself.
const TRIES: u32 = 30;
const PAUSE: Duration = Duration::from_millis(100);

/// Empties a store that this site has not open, and opens it. It may be called again if that fails: the store is as it was then, or empty in part, and unsealed.
///
/// # Errors
/// Of the call: [`StoreError::InUse`] while it is open elsewhere, or why it cannot be emptied.
pub type Emptying = Box<dyn FnMut() -> Result<Arc<dyn Store>, StoreError> + Send>;

/// Items to be written.
struct Load {
    items: Vec<(Key, Value)>,
    bytes: usize,
    /// With the last ones: what makes the store whole, which is then brought to the disk.
    seal: Option<Mark>,
}

/// A batch that was written.
pub(crate) struct Loaded {
    pub(crate) bytes: usize,
    /// Behind the last one: the store, which has all of the copy, on the disk.
    pub(crate) whole: Option<Arc<dyn Store>>,
}

/// The duty cycle's end of the loading task.
pub(crate) struct Loading<T> {
    // In this order: the task is asked to stop, ends when there is nothing more to come, and its last word can still be said.
    stop: Stop,
    loads: Sender<Load>,
    task: T,
    done: Receiver<Result<Loaded, StoreError>>,
    /// Bytes that wait to be written, or are being written.
    pub(crate) under_way_bytes: usize,
    /// Whether the task has to write what completes the store, and nothing is left to come.
    pub(crate) is_last_given: bool,
}

/// Has the task stop, behind the batch that it writes, when this is dropped.
struct Stop(Arc<AtomicBool>);

impl Drop for Stop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A loading task that was asked to stop, and may have a batch under way.
pub(crate) struct Ending<T> {
    _task: T,
    done: Receiver<Result<Loaded, StoreError>>,
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
    /// Both ends of the task that fills the store which `emptying` empties, and which nobody else uses.
    pub(crate) fn new(emptying: Emptying) -> (Self, StoreLoader) {
        let (loads, work) = channel();
        let (results, done) = channel();
        let stops = Arc::new(AtomicBool::new(false));
        let stop = Stop(Arc::clone(&stops));
        let own = Self { stop, loads, task: (), done, under_way_bytes: 0, is_last_given: false };
        (own, StoreLoader { store: None, emptying, stops, loads: work, done: results })
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
        assert!(!self.is_last_given, "nothing follows the last items of a copy");
        assert!(!items.is_empty() || bytes == 0, "bytes under way are those of items");
        self.is_last_given = seal.is_some();
        self.under_way_bytes += bytes;
        // If the task is gone, its last word says why.
        let _ = self.loads.send(Load { items, bytes, seal });
    }

    /// A batch that was written since it was asked last.
    ///
    /// # Errors
    /// If the store cannot be emptied, or does not take it.
    pub(crate) fn written(&mut self) -> Result<Option<Loaded>, StoreError> {
        match self.done.try_recv() {
            Ok(loaded) => {
                let loaded = loaded?;
                assert!(loaded.bytes <= self.under_way_bytes, "what was written was under way");
                self.under_way_bytes -= loaded.bytes;
                let is_all_written = loaded.whole.is_none() || self.under_way_bytes == 0;
                assert!(is_all_written, "a store is whole when all of its copy was written");
                Ok(Some(loaded))
            }
            Err(TryRecvError::Empty) => Ok(None),
            Err(TryRecvError::Disconnected) => {
                Err(StoreError::Io("the task that fills the store has ended".into()))
            }
        }
    }
}

/// Empties a store and fills it, beside the duty cycle.
pub struct StoreLoader {
    // In this order: who hears that the task has ended finds the store closed.
    /// When it has been emptied.
    store: Option<Arc<dyn Store>>,
    emptying: Emptying,
    stops: Arc<AtomicBool>,
    loads: Receiver<Load>,
    done: Sender<Result<Loaded, StoreError>>,
}

impl StoreLoader {
    /// Empties the store, and writes all that comes, until no more can, or it is to stop, or the store fails; calls `wake` when it has something to say. For a thread of
    /// its own.
    pub fn run(mut self, wake: impl Fn()) {
        let mut goes_on = self.empty(TRIES);
        while goes_on && let Ok(load) = self.loads.recv() {
            goes_on = !self.is_to_stop() && self.write(&load);
            wake();
        }
        wake();
    }

    /// Has `loader` empty the store, or else write the next batch, if one has come; whether there was something to do. One that is to stop, or has failed, is dropped. For a
    /// world without threads.
    pub fn step(loader: &mut Option<Self>) -> bool {
        drop(loader.take_if(|loader| loader.is_to_stop()));
        let Some(known) = loader else { return false };
        let goes_on = match &known.store {
            None => known.empty(1),
            Some(_) => match known.loads.try_recv() {
                Ok(load) => known.write(&load),
                Err(_) => return false,
            },
        };
        drop(loader.take_if(|_| !goes_on));
        true
    }

    /// Whether the store is empty now, after that many tries at most.
    fn empty(&mut self, tries: u32) -> bool {
        assert!(self.store.is_none(), "a store is emptied once, before the first items");
        let mut emptied = (self.emptying)();
        for _ in 1..tries {
            if self.is_to_stop() || !matches!(emptied, Err(StoreError::InUse(_))) {
                break;
            }
            std::thread::sleep(PAUSE);
            emptied = (self.emptying)();
        }
        // If no receiver is left, the copy was given up.
        self.store = emptied.map_err(|why| drop(self.done.send(Err(why)))).ok();
        self.store.is_some()
    }

    fn is_to_stop(&self) -> bool {
        self.stops.load(Ordering::Relaxed)
    }

    /// Whether more can be written.
    fn write(&self, load: &Load) -> bool {
        let Some(store) = &self.store else { return false };
        let loaded = store.load(&load.items, load.seal.as_ref()).and_then(|()| {
            let is_whole = load.seal.is_some() && !self.is_to_stop();
            let whole = is_whole.then(|| store.flush().map(|_| Arc::clone(store))).transpose()?;
            Ok(Loaded { bytes: load.bytes, whole })
        });
        let failed = loaded.is_err();
        self.done.send(loaded).is_ok() && !failed
    }
}

#[cfg(test)]
mod tests {
    use pares_store::Memory;
    use pares_wice::Version;

    use super::*;
    use crate::error::ProcessError;

    fn item(number: u8) -> Vec<(Key, Value)> {
        vec![(Key::new([number]), Value::new(vec![number]))]
    }

    /// What finds the store in use so many times.
    fn emptying(store: &Arc<Memory>, mut in_use: u32) -> Emptying {
        let store = Arc::clone(store);
        Box::new(move || {
            let is_free = in_use == 0;
            in_use = in_use.saturating_sub(1);
            is_free.then(|| Arc::clone(&store) as _).ok_or_else(|| StoreError::InUse("it".into()))
        })
    }

    /// A task with three batches before it, the last of which makes the store whole.
    fn begun(store: &Arc<Memory>) -> (Loading<()>, StoreLoader) {
        begun_with(emptying(store, 0))
    }

    fn begun_with(emptying: Emptying) -> (Loading<()>, StoreLoader) {
        let (mut loading, loader) = Loading::new(emptying);
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
    fn batch_in_progress_is_written_before_task_ends() {
        let store = Arc::new(Memory::default());
        let (loading, loader) = begun(&store);
        let mut loader = Some(loader);
        assert!(StoreLoader::step(&mut loader), "the store is emptied");
        assert!(StoreLoader::step(&mut loader));
        let ending = loading.stop();
        assert!(!ending.is_over());
        assert!(!StoreLoader::step(&mut loader) && loader.is_none());
        assert!(ending.is_over());
    }

    #[test]
    fn a_store_that_is_still_being_closed_is_waited_for() {
        let store = Arc::new(Memory::default());
        let (mut loading, loader) = begun_with(emptying(&store, 2));
        let Loading { loads, .. } = &mut loading;
        *loads = channel().0; // nothing more comes
        loader.run(|| ());
        assert!((0..2).all(|_| loading.written().unwrap().unwrap().whole.is_none()));
        assert!(loading.written().unwrap().unwrap().whole.is_some(), "the last has made it whole");
        assert_eq!(store.applied(), Version(7));
    }

    #[test]
    fn a_store_that_stays_in_use_ends_the_site_and_is_no_damage() {
        let store = Arc::new(Memory::default());
        let (mut loading, loader) = begun_with(emptying(&store, 1));
        let mut loader = Some(loader);
        assert!(StoreLoader::step(&mut loader) && loader.is_none());
        let why = loading.written().err().map(ProcessError::from);
        assert!(matches!(&why, Some(ProcessError::Store(StoreError::InUse(_)))), "{why:?}");
        assert!(!why.unwrap().is_damage());
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
