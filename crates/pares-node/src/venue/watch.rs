//! Noticing that the matching engine does not come back from a request.
//!
//! A panic can be caught. An endless loop cannot, nor can memory be refused to it: whoever executes the request is gone with
//! everything it held. So a venue has two threads: one takes the turns, the other, here, only looks on. Before each request the
//! first says which one it begins; when the same request is still being executed some milliseconds later, and the thread has
//! really used the processor meanwhile (one that was stopped, or had to wait for its turn, has not), the other takes the
//! venue over: everything but the shard that is being executed lies under a lock that is not held during execution.
//!
//! ```text
//!  turns:   lock | read, choose a shard | unlock | begin r1 .. begin r2 ........................... (never ends)
//!  watch:                        look        look: r2   look: r2, and has run for 4 ms: takes over
//!  new turns:                                                  lock | the shard is lost: restore it | go on
//! ```
//! What is being executed stands in shared memory, so that it survives a process that dies of it (no memory, no stack): a
//! venue that starts and finds that two of its predecessors ended at the same request suspects that request.

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

use pares_shm::{CountersReader, CountersWriter};
use pares_types::{Position, ShardId};

use crate::NodeError;

/// Between two looks while requests are executed, and while there are none.
const LOOK: Duration = Duration::from_millis(1);
const LOOK_IDLE: Duration = Duration::from_millis(20);
/// Looks without a request after which the venue counts as idle.
const IDLE_AFTER: u32 = 100;
/// Processes that end at the same request before it is suspected: one may have been killed there by chance.
const DEATHS: u64 = 2;

const NAMES: [&str; 6] =
    ["requests", "shard", "position_plus_1", "died_shard", "died_position_plus_1", "deaths"];
const REQUESTS: usize = 0;
const SHARD: usize = 1;
const POSITION: usize = 2;
const DIED_SHARD: usize = 3;
const DIED_POSITION: usize = 4;
const DIED: usize = 5;

/// What a venue's turns are at. Written by the thread that takes the turns, in memory that outlives the process.
pub(super) struct Watch {
    marks: CountersWriter,
    thread: AtomicI32,
}

/// A place in a shard's total order.
pub(super) type Place = (ShardId, Position);

impl Watch {
    /// Opens a venue's marks. Gives the request that its last processes died of, if they did.
    pub(super) fn open(path: &Path) -> Result<(Self, Option<Place>), NodeError> {
        let before = CountersReader::open(path).ok();
        let old = |index: usize| before.as_ref().and_then(|marks| marks.get(NAMES[index])).unwrap_or(0);
        let (died, known) = ((old(SHARD), old(POSITION)), (old(DIED_SHARD), old(DIED_POSITION)));
        let (place, deaths) = match died {
            (_, 0) => (known, old(DIED)),
            again if again == known => (again, old(DIED) + 1),
            new => (new, 1),
        };
        drop(before);
        let watch = Self { marks: CountersWriter::create(path, &NAMES)?, thread: AtomicI32::new(0) };
        watch.note(place, deaths);
        let suspect = (deaths >= DEATHS).then(|| (shard(place.0), Position(place.1.saturating_sub(1))));
        Ok((watch, suspect))
    }

    fn note(&self, (shard, position_plus_1): (u64, u64), deaths: u64) {
        self.marks.set(DIED_SHARD, shard);
        self.marks.set(DIED_POSITION, position_plus_1);
        self.marks.set(DIED, deaths);
    }

    /// The engine does not come back from there: should this process end before that is void, the next one suspects it.
    pub(super) fn accuse(&self, (shard, position): Place) {
        self.note((shard.0.into(), position.0 + 1), DEATHS);
    }

    /// The calling thread takes the turns from now on.
    pub(super) fn take_turns(&self) {
        self.end();
        self.thread.store(rustix::thread::gettid().as_raw_pid(), Ordering::Release);
    }

    /// A request is about to be executed.
    #[inline]
    pub(super) fn begin(&self, shard: ShardId, position: Position) {
        self.marks.set(SHARD, shard.0.into());
        self.marks.set(POSITION, position.0 + 1);
        self.marks.add(REQUESTS, 1);
    }

    /// Nothing is being executed.
    #[inline]
    pub(super) fn end(&self) {
        self.marks.set(POSITION, 0);
    }

    /// What is being executed, and its number among all that were.
    fn at(&self) -> Option<(u64, Place)> {
        let position = self.marks.get(POSITION).checked_sub(1)?;
        Some((self.marks.get(REQUESTS), (shard(self.marks.get(SHARD)), Position(position))))
    }

    /// What is being executed.
    pub(super) fn place(&self) -> Option<Place> {
        self.at().map(|(_, place)| place)
    }

    /// How long the thread that takes the turns has run, and its id.
    fn ran(&self) -> io::Result<(i32, Duration)> {
        let thread = self.thread.load(Ordering::Acquire);
        // "time on the processor, ns" is the first number there.
        let text = std::fs::read_to_string(format!("/proc/self/task/{thread}/schedstat"))?;
        let ns = text.split_ascii_whitespace().next().and_then(|ns| ns.parse().ok());
        ns.map(|ns| (thread, Duration::from_nanos(ns))).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }
}

fn shard(mark: u64) -> ShardId {
    ShardId(u16::try_from(mark).unwrap_or(u16::MAX))
}

/// The one who looks on.
pub(super) struct Watcher {
    /// How long a request may keep the processor.
    budget: Duration,
    /// The request met at the last look, and how long the thread had run then.
    seen: Option<(u64, Duration)>,
    idle: u32,
}

impl Watcher {
    pub(super) fn new(budget: Duration) -> Self {
        Self { budget, seen: None, idle: 0 }
    }

    /// How long to wait before the next look.
    pub(super) fn pause(&self) -> Duration {
        if self.idle < IDLE_AFTER { LOOK } else { LOOK_IDLE }
    }

    /// Looks. Gives the thread that does not come back from a request, and the request.
    pub(super) fn look(&mut self, watch: &Watch) -> Option<(i32, Place)> {
        let Some((request, place)) = watch.at() else {
            self.seen = None;
            self.idle = self.idle.saturating_add(1);
            return None;
        };
        self.idle = 0;
        let (thread, ran) = watch.ran().ok()?;
        match self.seen {
            Some((same, since)) if same == request => {
                let hangs = ran.saturating_sub(since) >= self.budget;
                // It may have come back between the two readings.
                (hangs && watch.at() == Some((request, place))).then(|| {
                    self.seen = None;
                    (thread, place)
                })
            }
            _ => {
                self.seen = Some((request, ran));
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    const PLACE: Place = (ShardId(3), Position(7));

    fn watch(dir: &Path) -> (Watch, Option<Place>) {
        Watch::open(&dir.join("marks")).unwrap()
    }

    #[test]
    fn a_request_is_suspected_once_two_processes_ended_at_it() {
        let dir = tempfile::tempdir().unwrap();
        for expected in [None, None, Some(PLACE), Some(PLACE)] {
            let (watch, suspect) = watch(dir.path());
            assert_eq!(suspect, expected);
            watch.begin(PLACE.0, PLACE.1);
        }
    }

    #[test]
    fn processes_that_ended_at_different_requests_or_at_none_suspect_nothing() {
        let dir = tempfile::tempdir().unwrap();
        for position in [Some(1), Some(2), Some(1), None, None, Some(5), None, Some(1), None] {
            let (watch, suspect) = watch(dir.path());
            assert_eq!(suspect, None);
            if let Some(position) = position {
                watch.begin(ShardId(0), Position(position));
            }
        }
    }

    #[test]
    fn what_a_process_accused_before_it_ended_is_suspected_by_the_next() {
        let dir = tempfile::tempdir().unwrap();
        watch(dir.path()).0.accuse(PLACE);
        assert_eq!(watch(dir.path()).1, Some(PLACE));
        assert_eq!(watch(dir.path()).1, Some(PLACE));
    }

    /// A thread at one request: spinning, or asleep.
    fn look_on(spin: bool) -> Option<Place> {
        let dir = tempfile::tempdir().unwrap();
        let (watch, _) = watch(dir.path());
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                watch.take_turns();
                watch.begin(PLACE.0, PLACE.1);
                while !stop.load(Ordering::Relaxed) {
                    if !spin {
                        std::thread::sleep(Duration::from_millis(100));
                    }
                }
            });
            let mut watcher = Watcher::new(Duration::from_millis(4));
            let begun = std::time::Instant::now();
            let mut found = None;
            // One that spins is found whenever it gets the processor; one that sleeps is not, however long one looks.
            while found.is_none() && begun.elapsed() < Duration::from_secs(if spin { 60 } else { 1 }) {
                std::thread::sleep(watcher.pause());
                found = watcher.look(&watch);
            }
            stop.store(true, Ordering::Relaxed);
            found.map(|(_, place)| place)
        })
    }

    #[test]
    fn who_spins_in_a_request_is_found() {
        assert_eq!(look_on(true), Some(PLACE));
    }

    #[test]
    fn who_sleeps_in_a_request_is_not() {
        assert_eq!(look_on(false), None);
    }
}
