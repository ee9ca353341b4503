//! The task that writes the store: stable versions, in order, as many at once as have come.
//!
//! Writing costs the store more than executing and certifying cost the site. No request waits for it: until it is done, the versions are read from
//! memory. Nor is it synced for every batch: what a crash undoes of it, the cluster's log brings back.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::time::Duration;

use pares_store::{Applied, Reads, Store, StoreError, StoreSnapshot, changes_schema};
use pares_wice::codec::{Coded, DecodeError};
use pares_wice::{Change, Key, Stored, Value, Version, Write};

use crate::digest::digest;

/// Between two tries to get a snapshot.
const BUSY_PAUSE: Duration = Duration::from_millis(1);

/// Versions to be written.
struct Batch {
    versions: Vec<(Version, Vec<Write>)>,
    /// Without the digest, which follows from what is written.
    stored: Stored,
    /// Whether to bring all that was written to the disk then.
    flush: bool,
}

/// What the store holds now.
pub(crate) struct Done {
    pub(crate) snapshot: Box<dyn StoreSnapshot>,
    /// The version that is on the disk, if that is new.
    pub(crate) flushed: Option<Version>,
    /// The digests of the versions that were written, in order.
    pub(crate) digests: Vec<u64>,
}

/// The duty cycle's end of the writing task.
pub(crate) struct Applier<T> {
    // In this order: the task ends when there is nothing more to come, and its last word can still be said.
    batches: Sender<Batch>,
    _task: T,
    done: Receiver<Result<Done, StoreError>>,
    /// The last version it was given.
    pub(crate) given: Version,
    busy: bool,
    flush_every: Duration,
    flushed: Duration,
}

impl Applier<()> {
    /// Both ends of the task that writes to `store`, to which no other may write.
    pub(crate) fn new(store: Arc<dyn Store>, flush_every: Duration) -> (Self, StoreWriter) {
        let given = store.applied();
        let (batches, work) = channel();
        let (results, done) = channel();
        let flushed = Duration::ZERO;
        let own = Self { batches, _task: (), done, given, busy: false, flush_every, flushed };
        (own, StoreWriter { store, batches: work, done: results })
    }

    /// With what runs the other end.
    pub(crate) fn run_by<T>(self, task: T) -> Applier<T> {
        let Self { batches, _task, done, given, busy, flush_every, flushed } = self;
        Applier { batches, _task: task, done, given, busy, flush_every, flushed }
    }
}

impl<T> Applier<T> {
    /// Whether it can take a batch now.
    pub(crate) fn is_idle(&self) -> bool {
        !self.busy
    }

    /// Writes these versions, which follow the last ones; and brings all to the disk, if that is `due` or was not done for long.
    pub(crate) fn give(
        &mut self,
        versions: Vec<(Version, Vec<Write>)>,
        stored: Stored,
        now: Duration,
        due: bool,
    ) {
        let Some((last, _)) = versions.last() else { return };
        assert!(!self.busy, "one batch at a time");
        assert_eq!(stored.version, *last, "a store says to hold the last version that it is given");
        assert_eq!(versions[0].0, self.given.next(), "versions are written without a gap");
        assert_eq!(versions.len() as u64, last.0 - self.given.0, "a batch has every version up to its last");
        (self.given, self.busy) = (*last, true);
        let flush = due || now.saturating_sub(self.flushed) > self.flush_every;
        if flush {
            self.flushed = now;
        }
        // If the task is gone, its last word says why.
        let _ = self.batches.send(Batch { versions, stored, flush });
    }

    /// What has been written since it was asked last.
    pub(crate) fn done(&mut self) -> Option<Result<Done, StoreError>> {
        let done = match self.done.try_recv() {
            Ok(done) => {
                assert!(self.busy, "what is done was given");
                done
            }
            Err(TryRecvError::Empty) => return None,
            Err(TryRecvError::Disconnected) => {
                Err(StoreError::Io("the task that writes the store has ended".into()))
            }
        };
        if let Ok(done) = &done {
            assert_eq!(
                done.snapshot.version(),
                self.given,
                "a store holds the last version that it was given"
            );
        }
        self.busy = false;
        Some(done)
    }
}

/// Writes the store, beside the duty cycle.
pub struct StoreWriter {
    store: Arc<dyn Store>,
    batches: Receiver<Batch>,
    done: Sender<Result<Done, StoreError>>,
}

impl StoreWriter {
    /// Writes all that comes, until no more can or the store fails; calls `wake` after each batch. For a thread of its own.
    pub fn run(self, wake: impl Fn()) {
        while let Ok(batch) = self.batches.recv() {
            let goes_on = self.write(&batch);
            wake();
            if !goes_on {
                return;
            }
        }
        let _ = self.store.flush();
    }

    /// Writes the next batch, if one has come; whether one had. For a world without threads.
    pub fn step(&self) -> bool {
        let batch = self.batches.try_recv();
        batch.is_ok_and(|batch| {
            self.write(&batch);
            true
        })
    }

    /// Whether more can be written.
    fn write(&self, batch: &Batch) -> bool {
        let done = write_batch(&*self.store, batch);
        let failed = done.is_err();
        self.done.send(done).is_ok() && !failed
    }
}

/// Writes versions that follow the store's, for a store that no site uses yet; their digests, in order.
pub(crate) fn apply_versions(
    store: &dyn Store,
    versions: Vec<(Version, Vec<Write>)>,
    stored: Stored,
) -> Result<Vec<u64>, StoreError> {
    Ok(write_batch(store, &Batch { versions, stored, flush: false })?.digests)
}

/// The first of these versions, as many as may be written at once: a change of the schema is written by itself.
pub(crate) fn in_one_batch(versions: &mut Vec<(Version, Vec<Write>)>) {
    if let Some(at) = versions.iter().position(|(_, writes)| changes_schema(writes)) {
        versions.truncate(at.max(1));
    }
}

fn write_batch(store: &dyn Store, batch: &Batch) -> Result<Done, StoreError> {
    let before = snapshot(store)?;
    let mut values: HashMap<&Key, Option<Value>> = HashMap::new();
    let mut applied: Vec<Applied> = Vec::with_capacity(batch.versions.len());
    let mut digests = Vec::with_capacity(batch.versions.len());
    let mut last = digest_of(&*before)?;
    for (version, changes) in &batch.versions {
        let follows = applied.last().is_none_or(|last| last.version.next() == *version);
        assert!(follows, "versions are written without a gap");
        let mut writes = Vec::with_capacity(changes.len());
        for Write { key, change } in changes {
            let value = match change {
                Change::Put(value) => Some(value.clone()),
                Change::Delete => None,
                Change::Add(delta) => {
                    let known = values.get(key).cloned();
                    let value = if let Some(known) = known { known } else { before.get(key)? };
                    Some(Value::counter(sum(key, value.as_ref(), *delta)?))
                }
            };
            values.insert(key, value.clone());
            writes.push((key.clone(), value));
        }
        last = digest(last, *version, &writes);
        digests.push(last);
        applied.push(Applied { version: *version, writes });
    }
    assert_eq!(digests.len(), batch.versions.len(), "each version has a digest");
    let stored = Stored { digest: last, ..batch.stored };
    store.apply(&applied, Some(&stored.to_bytes()))?;
    let flushed = if batch.flush { Some(store.flush()?) } else { None };
    let snapshot = snapshot(store)?;
    // A server that crashed and is back may have lost the last versions, and shows that here first.
    if batch.versions.last().is_some_and(|(last, _)| snapshot.version() != *last) {
        let why = format!(
            "it shows version {} behind what was written: its server has lost that",
            snapshot.version()
        );
        return Err(StoreError::Io(why));
    }
    Ok(Done { snapshot, flushed, digests })
}

fn digest_of(snapshot: &dyn StoreSnapshot) -> Result<u64, StoreError> {
    let stored = stored_of(snapshot.meta());
    stored.map(|stored| stored.digest).map_err(|error| StoreError::Damaged(format!("its mark: {error}")))
}

/// Waits for those who read, if they have all the snapshots that the engine can give.
fn snapshot(store: &dyn Store) -> Result<Box<dyn StoreSnapshot>, StoreError> {
    loop {
        match store.snapshot() {
            Err(StoreError::Busy(_)) => std::thread::sleep(BUSY_PAUSE),
            snapshot => return snapshot,
        }
    }
}

/// A peer may add to what is no counter, or beyond all numbers: then the store is as damaged as the peer.
fn sum(key: &Key, value: Option<&Value>, delta: i64) -> Result<i128, StoreError> {
    let total = value.map_or(Some(0), Value::as_counter);
    let sum = total.and_then(|total| total.checked_add(i128::from(delta)));
    sum.ok_or_else(|| {
        StoreError::Damaged(format!("{key:?} is not a counter, so {delta} cannot be added to it"))
    })
}

/// What a snapshot says of itself.
pub(crate) fn stored_of(meta: &[u8]) -> Result<Stored, DecodeError> {
    if meta.is_empty() { Ok(Stored::default()) } else { Stored::from_bytes(meta) }
}

#[cfg(test)]
mod tests {
    use pares_store::Memory;

    use super::*;
    use crate::testing::Rotting;

    /// Five versions; one has a key twice, one writes nothing.
    fn versions() -> Vec<(Version, Vec<Write>)> {
        let writes = [
            vec![Write::add("n", 5), Write::put("a", Value::from("x"))],
            vec![Write::add("n", -7), Write::add("n", 1)],
            vec![],
            vec![Write::delete("a"), Write::add("n", 40)],
            vec![Write::put("a", Value::from("y"))],
        ];
        (1..).map(Version).zip(writes).collect()
    }

    fn write(store: &dyn Store, versions: &[(Version, Vec<Write>)], position: u64) -> Vec<u64> {
        let stored = Stored { version: versions.last().unwrap().0, position, ..Stored::default() };
        write_batch(store, &Batch { versions: versions.to_vec(), stored, flush: false }).unwrap().digests
    }

    #[test]
    fn the_digest_is_the_same_whatever_the_batches_are() {
        let whole = write(&Memory::default(), &versions(), 9);
        for cut in 1..5 {
            let store = Memory::default();
            let mut digests = write(&store, &versions()[..cut], 3);
            // All that continues between two batches stands in the store: so it is after a restart, and in a copy.
            assert_eq!(stored_of(&store.meta()).unwrap().digest, whole[cut - 1]);
            digests.extend(write(&store, &versions()[cut..], 40));
            assert_eq!(digests, whole, "cut behind {cut}");
        }
    }

    #[test]
    fn a_copy_goes_on_with_the_digest_of_what_it_is_a_copy_of() {
        let (one, copy) = (Memory::default(), Memory::default());
        write(&one, &versions()[..3], 3);
        let snapshot = one.snapshot().unwrap();
        let stored = Stored { position: 77, ..stored_of(snapshot.meta()).unwrap() };
        let items = snapshot.first(&pares_wice::KeyRange::prefix(b""), usize::MAX).unwrap();
        let mark = pares_store::Mark { whole: true, version: stored.version, meta: stored.to_bytes() };
        copy.load(&items, Some(&mark)).unwrap();
        let rest = &versions()[3..];
        assert_eq!(write(&copy, rest, 99), write(&one, rest, 4));
    }

    #[test]
    fn a_store_with_another_value_has_another_digest_for_good() {
        let (right, wrong) = (Memory::default(), Memory::default());
        write(&right, &versions()[..1], 3);
        let mut other = versions()[..1].to_vec();
        other[0].1[0] = Write::add("n", 6);
        write(&wrong, &other, 3);
        let rest = &versions()[1..];
        assert!(write(&right, rest, 4).iter().zip(write(&wrong, rest, 4)).all(|(one, other)| *one != other));
    }

    #[test]
    fn store_that_lost_writes_is_an_error() {
        let versions = versions()[..1].to_vec();
        let stored = Stored { version: Version(1), ..Stored::default() };
        let written = apply_versions(&Rotting::relapsed(), versions, stored);
        assert!(matches!(written, Err(StoreError::Io(why)) if why.contains("has lost")));
    }
}
