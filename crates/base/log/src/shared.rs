//! What the threads of a log's owner share, and syncing to the device.

use std::collections::VecDeque;
use std::fs::File;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use pares_os::clock::mono_ns;
use pares_os::histogram::HistogramWriter;
use pares_os::open_file;

use crate::config::{Config, Durability};
use crate::error::AppendError;
use crate::keeping::Keeping;
use crate::marks::{Mark, Marks};
use crate::offset::{Geometry, Offset, segment_path};
use crate::recover::WriteLock;
use crate::segment::{HEADER_BYTES, Segment};

/// Shared by writer, syncers and preparer of one log.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) dir: PathBuf,
    pub(crate) marks: Marks,
    pub(crate) geometry: Geometry,
    pub(crate) config: Config,
    /// First offset of the segment being written.
    pub(crate) current_base: AtomicU64,
    /// Segments that may hold bytes not yet synced, oldest first, and the current one.
    segments: Mutex<VecDeque<Arc<Segment>>>,
    /// One sync at a time; only those who sync wait here.
    syncing: Mutex<HistogramWriter>,
    /// The exclusive right to write, released when the last of us is gone.
    _lock: WriteLock,
}

impl Shared {
    pub(crate) fn new(
        dir: PathBuf,
        marks: Marks,
        config: Config,
        current: Arc<Segment>,
        lock: WriteLock,
    ) -> Shared {
        Shared {
            dir,
            geometry: marks.geometry(),
            syncing: Mutex::new(marks.sync_latency()),
            marks,
            config,
            current_base: AtomicU64::new(current.base),
            segments: Mutex::new(VecDeque::from([current])),
            _lock: lock,
        }
    }

    /// Enters segments the writer has begun, unless another thread holds the list just now (it may have been
    /// descheduled there, and the writer waits for no thread). Until it succeeds a sync finds them by their path.
    pub(crate) fn try_enter(&self, begun: &mut Vec<Arc<Segment>>) {
        match self.segments.try_lock() {
            Ok(mut segments) => segments.extend(begun.drain(..)),
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner().extend(begun.drain(..)),
            Err(TryLockError::WouldBlock) => {}
        }
    }

    /// Lets go of the segments that nobody needs mapped any more: synced ones, or with durability `Os`, where nobody
    /// need ever sync, all but the current. Called by the preparer only: unmapping takes a millisecond.
    pub(crate) fn retire_segments(&self) {
        let needed = match self.config.durability {
            Durability::Os => self.current_base.load(Ordering::Acquire),
            Durability::Disk => self.geometry.base_of_end(self.marks.get(Mark::Synced)),
        };
        let retired: Vec<_> = {
            let mut segments = self.segments();
            let count = segments.iter().take_while(|s| s.base < needed).count();
            segments.drain(..count).collect()
        };
        drop(retired);
    }

    /// The segment being written, if it is entered already.
    pub(crate) fn current(&self) -> Option<Arc<Segment>> {
        let base = self.current_base.load(Ordering::Acquire);
        self.segments().iter().find(|segment| segment.base == base).cloned()
    }

    /// Everything published so far is on the device when this returns.
    pub(crate) fn sync_to_written(&self) -> Result<Offset, AppendError> {
        let latency = self.syncing.lock().unwrap_or_else(PoisonError::into_inner);
        let target = self.marks.get(Mark::Written);
        self.check_poison()?;
        if target > self.marks.get(Mark::Synced) {
            let start = mono_ns();
            self.sync_segments(target)?;
            self.marks.set(Mark::Synced, target);
            self.marks.add(Mark::Syncs, 1);
            latency.record(mono_ns() - start);
            // Another thread may have poisoned the log meanwhile: the marks on the device need not know of this sync then.
            self.check_poison()?;
        }
        if self.config.durability == Durability::Disk {
            self.marks.set(Mark::Durable, target);
        }
        Ok(Offset(target))
    }

    /// Syncs every segment that holds bytes between the synced mark and `target`.
    fn sync_segments(&self, target: u64) -> Result<(), AppendError> {
        let released = self.marks.get(Mark::Released);
        let first = self.geometry.base_of_end(self.marks.get(Mark::Synced)).max(released);
        let last = self.geometry.base_of_end(target);
        for base in (first..=last).step_by(self.geometry.segment_bytes as usize) {
            self.sync_segment(base)?;
        }
        // With `disk` a segment's name is kept before anything is in it; with `os` when its first bytes are.
        let named = self.marks.get(Mark::Synced) > last + HEADER_BYTES as u64;
        if !named && self.config.durability == Durability::Os {
            self.keeping().directory()?;
        }
        Ok(())
    }

    fn sync_segment(&self, base: u64) -> Result<(), AppendError> {
        let held = self.segments().iter().find(|s| s.base == base).cloned();
        match held {
            Some(segment) => self.keeping().segment(base, segment.map.file()),
            None => match open_file(File::options().read(true), &segment_path(&self.dir, base)) {
                Ok(file) => self.keeping().segment(base, &file),
                Err(_) if base < self.marks.get(Mark::Released) => Ok(()),
                Err(e) => Err(self.marks.poison(&e)),
            },
        }
    }

    /// Syncs what belongs to the log.
    pub(crate) fn keeping(&self) -> Keeping<'_> {
        Keeping::of(&self.config, &self.dir, &self.marks)
    }

    fn segments(&self) -> MutexGuard<'_, VecDeque<Arc<Segment>>> {
        self.segments.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[inline]
    pub(crate) fn check_poison(&self) -> Result<(), AppendError> {
        match self.marks.poisoned() {
            0 => Ok(()),
            errno => Err(AppendError::Poisoned { errno }),
        }
    }
}

/// Syncs a log from another thread than the writer's, so that a duty cycle never waits for the device.
///
/// While one sync is under way the writer continues appending; the next covers whatever came meanwhile (group commit).
#[derive(Debug, Clone)]
pub struct Syncer {
    pub(crate) shared: Arc<Shared>,
}

impl Syncer {
    /// Waits until everything published before the call is on the device, then raises `synced`, and `durable` if the
    /// setting is [`Durability::Disk`]. Returns the new mark.
    ///
    /// # Errors
    /// [`AppendError::Poisoned`]: the device failed, now or earlier. Marks are not raised, and the log takes nothing more.
    pub fn sync_to_written(&self) -> Result<Offset, AppendError> {
        self.shared.sync_to_written()
    }
}
