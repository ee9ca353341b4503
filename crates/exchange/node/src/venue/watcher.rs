//! Noticing that the matching engine does not come back from a request.
//!
//! A panic can be caught. An endless loop cannot, nor can memory be refused to it: the thread that executes the request is gone with
//! everything it held. So a venue has two threads: one takes the turns, the other, here, only looks on. Before each request the
//! first says which one it begins ([`Watch`]); when the same request is still being executed some milliseconds later, and the
//! thread has really used the processor meanwhile (one that was stopped, or had to wait for its turn, has not; nor has one of a machine
//! that stood still as a whole), the other takes the venue over: everything but the shard that is being executed lies under a lock that is not held during execution.
//!
//! ```text
//!  turns:   lock | read, choose a shard | unlock | begin r1 .. begin r2 ........................... (never ends)
//!  watch:                        look        look: r2   look: r2, and has run for 4 ms: takes over
//!  new turns:                                                  lock | the shard is lost: restore it | go on
//! ```

use std::io;
use std::time::Duration;

use pares_roles::World;
use pares_roles::venue::{Place, Watch};

use crate::world::complain;

/// Between two looks while requests are executed, and while there are none.
const LOOK: Duration = Duration::from_millis(1);
const LOOK_IDLE: Duration = Duration::from_millis(20);
/// What one look may add to the time that a request has taken. The kernel counts as running also the time in which the host gave this
/// machine no processor at all; but then nobody looked either.
const STEP_MAX: Duration = Duration::from_millis(2);
/// Looks without a request after which the venue counts as idle.
const IDLE_AFTER: u32 = 100;

/// Where the kernel says how long a thread has run.
const SCHEDSTAT: &str = "/proc/self/task/TID/schedstat";

/// The one who looks on.
pub(super) struct Watcher {
    /// How long a request may keep the processor.
    budget: Duration,
    /// The request met at the last look, how long the thread had run then, and how much of that counts for the request.
    seen: Option<(u64, Duration, Duration)>,
    idle: u32,
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
        Self { budget, seen: None, idle: 0 }
    }

    /// How long to wait before the next look.
    pub(super) fn pause(&self) -> Duration {
        if self.idle < IDLE_AFTER { LOOK } else { LOOK_IDLE }
    }

    /// Looks at what that thread executes. Gives the request that it does not come back from.
    pub(super) fn look<W: World>(&mut self, watch: &Watch<W>, thread: i32) -> Option<Place> {
        let Some((request, place)) = watch.at() else {
            self.seen = None;
            self.idle = self.idle.saturating_add(1);
            return None;
        };
        self.idle = 0;
        let ran = ran(thread).ok()?;
        match self.seen {
            Some((same, before, took)) if same == request => {
                let took = took + ran.saturating_sub(before).min(STEP_MAX);
                self.seen = Some((request, ran, took));
                // It may have come back between the two readings.
                (took >= self.budget && watch.at() == Some((request, place))).then(|| {
                    self.seen = None;
                    place
                })
            }
            _ => {
                self.seen = Some((request, ran, Duration::ZERO));
                None
            }
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
