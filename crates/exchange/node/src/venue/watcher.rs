//! Noticing that the matching engine does not come back from a request.
//!
//! A panic can be caught. An endless loop cannot, nor can memory be refused to it: the thread that executes the request is gone with
//! everything it held. So a venue has two threads: one takes the turns, the other, here, only looks on. Before each request the
//! first says which one it begins ([`Watch`]); when the same request is still being executed some milliseconds later, and the
//! thread has really used the processor meanwhile (one that was stopped, or had to wait for its turn, has not), the other takes the
//! venue over: everything but the shard that is being executed lies under a lock that is not held during execution.
//!
//! **A host that takes a processor away.** The kernel of a virtual machine counts a thread as running while the host runs somebody else on
//! that processor. So who has used up a part of its budget by the kernel's word is only suspected. The watcher then looks on from the suspect's own
//! processor, where it gets no turn either while the host has taken it, and each look counts no more than the pause before it. Only a
//! budget used up under those eyes is believed.
//!
//! ```text
//!  turns:   lock | read, choose a shard | unlock | begin r1 .. begin r2 ........................... (never ends)
//!  watch:                        look        look: r2   has run for 1 ms: suspected   and for 4 ms more, seen from beside it: takes over
//!  new turns:                                                                               lock | the shard is lost: restore it | go on
//! ```

use std::io;
use std::time::Duration;

use pares_roles::World;
use pares_roles::venue::{Place, Watch};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::world::complain;

/// Between two looks while requests are executed, and while there are none.
const LOOK: Duration = Duration::from_millis(1);
const LOOK_IDLE: Duration = Duration::from_millis(20);
/// What one look may add to the time that a request has taken: nobody looks while the whole machine stands still.
const STEP_MAX: Duration = Duration::from_millis(2);
/// Which part of the budget makes a suspect: what the venue loses by a hanging engine is this and the budget.
const SUSPECTED_AFTER: u32 = 4;
/// Looks without a request after which the venue counts as idle.
const IDLE_AFTER: u32 = 100;

/// Where the kernel says how long a thread has run, and on which processor.
const SCHEDSTAT: &str = "/proc/self/task/TID/schedstat";
const STAT: &str = "/proc/self/task/TID/stat";

/// The one who looks on.
pub(super) struct Watcher {
    /// How long a request may keep the processor.
    budget: Duration,
    seen: Option<Seen>,
    /// The processors that the watcher may use, while it stays on the suspect's.
    anywhere: Option<CpuSet>,
    idle: u32,
}

/// A request met at the last look.
#[derive(Clone, Copy)]
struct Seen {
    request: u64,
    /// How long the thread had run then.
    ran: Duration,
    /// How much of that counts for the request.
    took: Duration,
}

impl Watcher {
    /// The operator is told if this kernel does not say how long a thread has run: then nothing is ever found.
    pub(super) fn new(budget: Duration) -> Self {
        if let Err(error) = ran(rustix::thread::gettid().as_raw_pid()) {
            complain(&format_args!(
                "{SCHEDSTAT} cannot be read ({error}): a matching engine that does not come back from a request is not noticed; \
                 use a kernel with CONFIG_SCHED_INFO"
            ));
        }
        Self { budget, seen: None, anywhere: None, idle: 0 }
    }

    /// How long to wait before the next look.
    pub(super) fn pause(&self) -> Duration {
        if self.idle < IDLE_AFTER { LOOK } else { LOOK_IDLE }
    }

    /// Looks at what that thread executes. Gives the request that it does not come back from.
    pub(super) fn look<W: World>(&mut self, watch: &Watch<W>, thread: i32) -> Option<Place> {
        let Some((request, place)) = watch.at() else {
            self.trust();
            self.idle = self.idle.saturating_add(1);
            return None;
        };
        self.idle = 0;
        let ran = ran(thread).ok()?;
        if self.seen.is_none_or(|seen| seen.request != request) {
            self.trust();
            self.seen = Some(Seen { request, ran, took: Duration::ZERO });
            return None;
        }
        let beside = self.anywhere.is_some();
        let seen = self.seen.as_mut()?;
        seen.took += ran.saturating_sub(seen.ran).min(if beside { LOOK } else { STEP_MAX });
        seen.ran = ran;
        let took = seen.took;
        if !beside && took >= self.budget / SUSPECTED_AFTER && self.suspect(thread) {
            return None;
        }
        // It may have come back between the two readings.
        if took < self.budget || watch.at() != Some((request, place)) {
            return None;
        }
        self.trust();
        Some(place)
    }

    /// Goes to the suspect's processor and counts anew; false if that is not to be had: then the kernel's word is all there is.
    fn suspect(&mut self, thread: i32) -> bool {
        let (Ok(anywhere), Some(processor)) = (sched_getaffinity(None), processor(thread)) else {
            return false;
        };
        let mut beside = CpuSet::new();
        beside.set(processor);
        if sched_setaffinity(None, &beside).is_err() {
            return false;
        }
        self.anywhere = Some(anywhere);
        if let Some(seen) = &mut self.seen {
            seen.took = Duration::ZERO;
        }
        true
    }

    /// Nobody is suspected any more.
    fn trust(&mut self) {
        self.seen = None;
        if let Some(anywhere) = self.anywhere.take() {
            // If it is refused, the watcher stays where it is: looks come later then, and none is wrong.
            let _ = sched_setaffinity(None, &anywhere);
        }
    }
}

/// How long a thread of this process has run.
fn ran(thread: i32) -> io::Result<Duration> {
    // "time on the processor, ns" is the first number there.
    let text = std::fs::read_to_string(SCHEDSTAT.replace("TID", &thread.to_string()))?;
    let ns = text.split_ascii_whitespace().next().and_then(|ns| ns.parse().ok());
    ns.map(Duration::from_nanos).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// The processor that a thread of this process runs on, or last ran on.
fn processor(thread: i32) -> Option<usize> {
    let text = std::fs::read_to_string(STAT.replace("TID", &thread.to_string())).ok()?;
    // The 39th field; the second is a name in brackets, which may hold blanks.
    text.rsplit_once(')')?
        .1
        .split_ascii_whitespace()
        .nth(36)?
        .parse()
        .ok()
        .filter(|processor| *processor < CpuSet::MAX_CPU)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{HostWorld, Layout};
    use pares_types::{Epoch, Position, ShardId, VenueId};
    use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

    const PLACE: Place = (ShardId(3), Position(7));

    /// A thread at one request: spinning, or asleep.
    fn look_on(spin: bool) -> Option<Place> {
        let dir = tempfile::tempdir().unwrap();
        let world = HostWorld::new(&Layout::new(dir.path())).unwrap();
        let (watch, _) = Watch::open(&world, VenueId(0), Epoch(3)).unwrap();
        let (stop, thread) = (AtomicBool::new(false), AtomicI32::new(0));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                thread.store(rustix::thread::gettid().as_raw_pid(), Ordering::Relaxed);
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
                found = watcher.look(&watch, thread.load(Ordering::Relaxed));
            }
            stop.store(true, Ordering::Relaxed);
            found
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
