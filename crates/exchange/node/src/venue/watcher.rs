//! Noticing that the matching engine does not come back from a request.
//!
//! A panic can be caught. An endless loop cannot, nor can memory be refused to it: the thread that executes the request is gone with
//! everything it held. So a venue has two threads: one takes the turns, the other, here, only looks on. Before each request the
//! first says which one it begins ([`Watch`]); when the same request is still being executed some milliseconds later, and the
//! thread has really used the processor meanwhile by its own clock (one that was stopped, or had to wait for its turn, has not), the other takes the
//! venue over: everything but the shard that is being executed lies under a lock that is not held during execution.
//!
//! **A host that takes a processor away.** The kernel of a virtual machine counts a thread as running while the host runs another guest on
//! that processor. So who has used up a part of its budget by the kernel's word is only suspected. The watcher then looks on from the suspect's own
//! processor, where it gets no turn either while the host has taken it, and each look counts no more than the pause before it. Only a
//! budget used up under those eyes is believed.
//!
//! ```text
//!  turns:   lock | read, choose a shard | unlock | begin r1 .. begin r2 ........................... (never ends)
//!  watch:                        look        look: r2   has run for 1 ms: suspected   and for 4 ms more, seen from beside it: takes over
//!  new turns:                                                                               lock | the shard is lost: restore it | continue
//! ```

use std::time::Duration;

use crate::world::complain;
use pares_os::scheduling::time_on_processor;
use pares_roles::World;
use pares_roles::venue::{Place, Watch};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Between two looks while requests are executed, and while there are none.
const LOOK: Duration = Duration::from_millis(1);
const LOOK_IDLE: Duration = Duration::from_millis(20);
/// What one look may add to the time that a request has taken: nobody looks while the whole machine stalls.
const STEP_MAX: Duration = Duration::from_millis(2);
/// Which part of the budget makes a suspect: what the venue loses by a hanging engine is this and the budget.
const SUSPECTED_AFTER: u32 = 4;
/// Looks between which no request began after which the venue counts as idle.
const IDLE_AFTER: u32 = 100;

/// Where the kernel says on which processor a thread is.
const STAT: &str = "/proc/self/task/TID/stat";

/// The one who looks on.
pub(super) struct Watcher {
    case: Case,
    /// The processors that the watcher may use, while it stays on the suspect's.
    anywhere: Option<CpuSet>,
    /// Requests that had begun at the last look.
    begun: u64,
    idle: u32,
}

/// What the looks at one request say.
struct Case {
    /// How long a request may keep the processor.
    budget: Duration,
    seen: Option<Seen>,
    /// Whether the watcher looks on from the suspect's processor.
    beside: bool,
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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// Another request than at the last look.
    Other,
    /// It may take that long.
    Patience,
    /// It is to be looked at from its own processor.
    Suspect,
    /// Its budget is used up.
    Hangs,
}

impl Case {
    fn new(budget: Duration) -> Self {
        Self { budget, seen: None, beside: false }
    }

    /// A request is being executed by a thread that has run for so long.
    fn on_look(&mut self, request: u64, ran: Duration) -> Verdict {
        let Some(seen) = self.seen.as_mut().filter(|seen| seen.request == request) else {
            (self.seen, self.beside) = (Some(Seen { request, ran, took: Duration::ZERO }), false);
            return Verdict::Other;
        };
        seen.took += ran.saturating_sub(seen.ran).min(if self.beside { LOOK } else { STEP_MAX });
        seen.ran = ran;
        if !self.beside && seen.took >= self.budget / SUSPECTED_AFTER {
            // From here on it counts from zero.
            (seen.took, self.beside) = (Duration::ZERO, true);
            return Verdict::Suspect;
        }
        if seen.took < self.budget { Verdict::Patience } else { Verdict::Hangs }
    }
}

impl Watcher {
    pub(super) fn new(budget: Duration) -> Self {
        if let Err(error) = time_on_processor(rustix::thread::gettid().as_raw_pid()) {
            complain(&format_args!(
                "a thread's processor time cannot be read ({error}): a stuck matching engine will not be detected"
            ));
        }
        Self { case: Case::new(budget), anywhere: None, begun: 0, idle: 0 }
    }

    /// How long to wait before the next look.
    pub(super) fn pause(&self) -> Duration {
        if self.idle < IDLE_AFTER { LOOK } else { LOOK_IDLE }
    }

    /// Looks at what that thread executes. Gives the request that it does not come back from.
    pub(super) fn look<W: World>(&mut self, watch: &Watch<W>, thread: i32) -> Option<Place> {
        // Most looks meet none, however many there are.
        let begun = watch.begun();
        self.idle = if self.begun == begun { self.idle.saturating_add(1) } else { 0 };
        self.begun = begun;
        let Some((request, place)) = watch.at() else {
            self.trust();
            self.case.seen = None;
            return None;
        };
        self.idle = 0;
        match self.case.on_look(request, time_on_processor(thread).ok()?) {
            Verdict::Other => self.trust(),
            Verdict::Patience => {}
            Verdict::Suspect => self.go_beside(thread),
            // It may have come back between the two readings.
            Verdict::Hangs if watch.at() == Some((request, place)) => {
                self.trust();
                self.case.seen = None;
                return Some(place);
            }
            Verdict::Hangs => {}
        }
        None
    }

    /// Goes to the suspect's processor; if that is not available, the kernel's word is all there is.
    fn go_beside(&mut self, thread: i32) {
        let (Ok(anywhere), Some(processor)) = (sched_getaffinity(None), processor(thread)) else { return };
        let mut beside = CpuSet::new();
        beside.set(processor);
        if sched_setaffinity(None, &beside).is_ok() {
            self.anywhere = Some(anywhere);
        }
    }

    /// Nobody is suspected any more.
    fn trust(&mut self) {
        if let Some(anywhere) = self.anywhere.take() {
            // If it is refused, the watcher stays where it is: looks come later then, and none is wrong.
            let _ = sched_setaffinity(None, &anywhere);
        }
    }
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

    const BUDGET: Duration = Duration::from_millis(4);

    /// The first verdict but patience on a request of a thread that runs for so long between two looks, and the look it came at.
    fn verdicts(case: &mut Case, each: Duration, looks: u32) -> Option<(u32, Verdict)> {
        let verdicts = (1..=looks).map(|look| (look, case.on_look(7, each * look)));
        verdicts.into_iter().find(|(look, verdict)| *look > 1 && *verdict != Verdict::Patience)
    }

    #[test]
    fn who_has_no_processor_is_not_suspected_however_long_it_takes() {
        assert_eq!(verdicts(&mut Case::new(BUDGET), Duration::ZERO, 1_000_000), None);
    }

    #[test]
    fn endless_loop_is_detected_by_run_time_only() {
        for (each, suspected, hangs) in [(100, 11, 40), (1_000, 2, 4), (1_000_000, 2, 4)] {
            let (mut case, each) = (Case::new(BUDGET), Duration::from_micros(each));
            assert_eq!(verdicts(&mut case, each, 1_000), Some((suspected, Verdict::Suspect)));
            let mut ran = each * suspected;
            let beside = (1..1_000).find(|_| {
                ran += each;
                case.on_look(7, ran) == Verdict::Hangs
            });
            assert_eq!(beside, Some(hangs));
        }
    }

    #[test]
    fn busy_thread_across_requests_is_not_suspected() {
        let mut case = Case::new(BUDGET);
        for request in 0..1_000 {
            assert_eq!(case.on_look(request, Duration::from_secs(request)), Verdict::Other);
        }
    }
}
