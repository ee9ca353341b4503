//! The thread that makes segments ahead of the writer, so that rolling costs it nothing.
//!
//! Paper 5 measured up to 300 us for rolling to a new file, hidden below its instrumentation. Creating, allocating,
//! zeroing and faulting in 64 MiB takes tens of milliseconds; here it is done while the previous segment fills, by a
//! thread of its own and in portions. Not by one of low priority: where the processors are full it had not made the next segment
//! when the writer needed it, who then stood for thirty milliseconds, one roll in three. It also
//!
//! - keeps the pages just ahead of the tail writable: the kernel write-protects a page after writing it back, and the
//!   next store to it would then fault (only with durability `Os`; with `Disk` it would make every sync write zeros);
//! - unmaps finished segments and unlinks released ones, which takes milliseconds.
//!
//! The writer never talks to it: it looks at the marks every few milliseconds while they move, and more seldom while
//! they do not. The writer takes what lies ready, or makes a segment itself and counts that.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::config::Durability;
use crate::marks::Mark;
use crate::offset::segment_path;
use crate::segment::{self, Making, Segment};
use crate::shared::Shared;

/// Pause between looks while the log grows, and while it does not.
const BUSY: Duration = Duration::from_millis(5);
const IDLE: Duration = Duration::from_millis(100);

/// How far ahead of the tail pages are kept writable.
const WARM_BYTES: u64 = 1 << 20;

/// Handle of the preparing thread; stops it when dropped.
#[derive(Debug)]
pub(crate) struct Preparer {
    state: Arc<State>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct State {
    shared: Arc<Shared>,
    /// The next segment, ready to be written. Held for a pointer's move only.
    ready: Mutex<Option<Arc<Segment>>>,
    stop: AtomicBool,
}

impl Preparer {
    pub(crate) fn start(shared: Arc<Shared>) -> std::io::Result<Preparer> {
        let state = Arc::new(State { shared, ready: Mutex::new(None), stop: AtomicBool::new(false) });
        let theirs = state.clone();
        let thread = thread::Builder::new().name("log-prepare".into()).spawn(move || theirs.run())?;
        Ok(Preparer { state, thread: Some(thread) })
    }

    /// The segment of `base`, if it is ready. Never waits.
    pub(crate) fn take(&self, base: u64) -> Option<Arc<Segment>> {
        let mut ready = self.state.ready.try_lock().ok()?;
        ready.take_if(|segment| segment.base == base)
    }
}

impl Drop for Preparer {
    fn drop(&mut self) {
        self.state.stop.store(true, Ordering::Release);
        let Some(thread) = self.thread.take() else { return };
        thread.thread().unpark();
        // A panic of the preparer was printed by it; the log itself is intact.
        let _ended = thread.join();
    }
}

impl State {
    fn run(&self) {
        // It may have been started by a node that was in the background then.
        pares_os::scheduling::ordinary();
        let (mut seen, mut unlinked) = (0, 0);
        // What the device failed to keep is never synced again, by nobody.
        while !self.stopped() && self.shared.marks.poisoned() == 0 {
            let written = self.shared.marks.get(Mark::Written);
            self.shared.retire_segments();
            let next = self.prepare_next();
            unlinked = self.unlink_released(unlinked);
            if written != seen && self.shared.config.promises_when_published() {
                self.warm(written, next.as_deref());
            }
            thread::park_timeout(if written != seen { BUSY } else { IDLE });
            seen = written;
        }
    }

    fn stopped(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    /// Makes the segment after the current one unless it is ready. A failure (most often a full disk) is counted and
    /// tried again at the next look.
    fn prepare_next(&self) -> Option<Arc<Segment>> {
        let wanted = self.shared.current_base.load(Ordering::Acquire) + self.shared.geometry.segment_bytes;
        let ready = self.ready.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if ready.as_ref().is_some_and(|segment| segment.base == wanted) {
            return ready;
        }
        match self.make(wanted) {
            Ok(segment) => {
                let segment = Arc::new(segment);
                self.shared.marks.add(Mark::Prepared, 1);
                *self.ready.lock().unwrap_or_else(PoisonError::into_inner) = Some(segment.clone());
                Some(segment)
            }
            Err(_) => {
                self.shared.marks.add(Mark::PrepareFailures, 1);
                None
            }
        }
    }

    fn make(&self, base: u64) -> Result<Segment, pares_os::MapError> {
        let pause = || self.pause();
        let synced = self.shared.config.durability == Durability::Disk;
        let (keeping, geometry) = (self.shared.keeping(), self.shared.geometry);
        let pause: Option<&dyn Fn()> = if self.shared.config.is_mirror() { None } else { Some(&pause) };
        let making = Making { keeping, geometry, temporary: "next.tmp", synced, pause };
        let segment = making.make(base)?;
        if synced {
            // So that after a loss of power recovery starts no more than about a segment back.
            // If they cannot be kept the log is poisoned, and the writer told at its next step.
            let _poisoned = keeping.marks();
        }
        self.fault_in(&segment);
        Ok(segment)
    }

    fn fault_in(&self, segment: &Segment) {
        if !self.shared.config.promises_when_published() {
            return;
        }
        let len = segment.map.len();
        for from in (0..len).step_by(WARM_BYTES as usize) {
            segment.map.prefault(from..len.min(from + WARM_BYTES as usize));
            self.pause();
        }
    }

    /// Leaves processor and disk to the writer for a moment, unless it will need the segment soon.
    fn pause(&self) {
        let written = self.shared.marks.get(Mark::Written);
        let half_full =
            self.shared.geometry.position(written) as u64 > self.shared.geometry.segment_bytes / 2;
        if !half_full && !self.stopped() {
            thread::sleep(Duration::from_millis(1));
        }
    }

    fn warm(&self, written: u64, next: Option<&Segment>) {
        let Some(current) = self.shared.current() else { return };
        let len = current.map.len();
        let from = written.saturating_sub(current.base).min(len as u64) as usize;
        let to = len.min(from + WARM_BYTES as usize);
        current.map.prefault(from..to);
        let beyond = WARM_BYTES as usize - (to - from);
        if let Some(next) = next.filter(|_| beyond > 0) {
            next.map.prefault(0..len.min(beyond));
        }
    }

    /// Removes the segments released since `unlinked`; returns up to where they are gone.
    fn unlink_released(&self, unlinked: u64) -> u64 {
        let released = self.shared.marks.get(Mark::Released);
        let keeping = self.shared.keeping();
        // The marks go to the device first: recovery must not look for a segment that is gone.
        if released == unlinked || keeping.marks().is_err() {
            return unlinked;
        }
        let Ok(bases) = segment::list(&self.shared.dir) else { return unlinked };
        for base in bases.into_iter().take_while(|&base| base < released) {
            // Tried again when the next ones are released or the log is opened again.
            let _best_effort = std::fs::remove_file(segment_path(&self.shared.dir, base));
        }
        released
    }
}
