//! The thread that writes the store: stable versions, in order, as many at once as have come.
//!
//! Writing costs the store more than executing and certifying cost the site. Nobody waits for it: until it is done, the versions are read from
//! memory. Nor is it synced for every batch: what a crash undoes of it, the cluster's log brings back.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use pares_link::Waker;
use pares_store::{Applied, Reads, Snapshot, Store, StoreError};
use pares_wice::codec::Coded;
use pares_wice::{Change, Key, Stored, Value, Version, Write};

/// How often what was written is brought to the disk, so that the log could be shortened and engines let go of memory.
const FLUSH_EVERY: Duration = Duration::from_secs(5);

/// Versions to be written.
struct Batch {
    versions: Vec<(Version, Vec<Write>)>,
    stored: Stored,
}

/// What the store holds now.
pub(crate) struct Done {
    pub(crate) snapshot: Box<dyn Snapshot>,
    /// The version that is on the disk, if that is new.
    pub(crate) flushed: Option<Version>,
}

/// The writing thread's other end.
pub(crate) struct Applier {
    batches: Option<Sender<Batch>>,
    done: Receiver<Result<Done, StoreError>>,
    thread: Option<JoinHandle<()>>,
    /// The last version it was given.
    given: Version,
    busy: bool,
}

impl Applier {
    /// Begins to write to `store`, which must be used by nobody else for writing. `waker` is used when a batch is done.
    pub(crate) fn start(store: Arc<dyn Store>, waker: Waker) -> std::io::Result<Self> {
        let given = store.applied();
        let (batches, work) = channel();
        let (results, done) = channel();
        let thread = std::thread::Builder::new()
            .name("applier".into())
            .spawn(move || write(&*store, &work, &results, &waker))?;
        Ok(Self { batches: Some(batches), done, thread: Some(thread), given, busy: false })
    }

    /// The last version it was given; the next batch begins after it.
    pub(crate) fn given(&self) -> Version {
        self.given
    }

    /// Whether it can take a batch now.
    pub(crate) fn is_idle(&self) -> bool {
        !self.busy
    }

    /// Writes these versions, which follow the last ones.
    pub(crate) fn give(&mut self, versions: Vec<(Version, Vec<Write>)>, stored: Stored) {
        let Some((last, _)) = versions.last() else { return };
        self.given = *last;
        self.busy = true;
        let batches = self.batches.as_ref().expect("open until it is dropped");
        // If the thread is gone, its last word says why.
        let _ = batches.send(Batch { versions, stored });
    }

    /// What has been written since it was asked last.
    pub(crate) fn done(&mut self) -> Option<Result<Done, StoreError>> {
        let done = match self.done.try_recv() {
            Ok(done) => done,
            Err(TryRecvError::Empty) => return None,
            Err(TryRecvError::Disconnected) => {
                Err(StoreError::Io("the thread that writes the store has ended".into()))
            }
        };
        self.busy = false;
        Some(done)
    }
}

impl Drop for Applier {
    fn drop(&mut self) {
        drop(self.batches.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn write(
    store: &dyn Store,
    work: &Receiver<Batch>,
    results: &Sender<Result<Done, StoreError>>,
    waker: &Waker,
) {
    let mut flushed = Instant::now();
    while let Ok(batch) = work.recv() {
        let flush = flushed.elapsed() > FLUSH_EVERY;
        let done = write_batch(store, &batch, flush);
        if flush {
            flushed = Instant::now();
        }
        let failed = done.is_err();
        if results.send(done).is_err() || failed {
            let _ = waker.wake();
            return;
        }
        let _ = waker.wake();
    }
    let _ = store.flush();
}

fn write_batch(store: &dyn Store, batch: &Batch, flush: bool) -> Result<Done, StoreError> {
    let before = store.snapshot()?;
    let mut values: HashMap<&Key, Option<Value>> = HashMap::new();
    let mut applied = Vec::with_capacity(batch.versions.len());
    for (version, changes) in &batch.versions {
        let mut writes = Vec::with_capacity(changes.len());
        for Write { key, change } in changes {
            let value = match change {
                Change::Put(value) => Some(value.clone()),
                Change::Delete => None,
                Change::Add(delta) => {
                    let known = values.get(key).cloned();
                    let value = if let Some(known) = known { known } else { before.get(key)? };
                    let total =
                        value.map_or(0, |value| value.as_counter().expect("only counters are added to"));
                    Some(Value::counter(total + i128::from(*delta)))
                }
            };
            values.insert(key, value.clone());
            writes.push((key.clone(), value));
        }
        applied.push(Applied { version: *version, writes });
    }
    store.apply(&applied, Some(&batch.stored.to_bytes()))?;
    let flushed = if flush { Some(store.flush()?) } else { None };
    Ok(Done { snapshot: store.snapshot()?, flushed })
}
