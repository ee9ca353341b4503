//! What the threads of a log's owner share, and syncing to the device.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pares_shm::clock::mono_ns;
use pares_shm::histogram::HistogramWriter;

use crate::config::{Config, Durability, Faults};
use crate::error::AppendError;
use crate::marks::{Mark, Marks};
use crate::offset::{Geometry, Offset};
use crate::segment::{self, Segment};

/// Shared by writer, syncers and preparer of one log.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) dir: PathBuf,
    pub(crate) marks: Marks,
    pub(crate) geometry: Geometry,
    pub(crate) config: Config,
    /// Segments that may hold bytes not yet synced, oldest first; the last is the current one. Held for a push, a pop
    /// or a clone, never across a system call.
    segments: Mutex<VecDeque<Arc<Segment>>>,
    /// One sync at a time; only those who sync wait here.
    syncing: Mutex<HistogramWriter>,
    /// The exclusive right to write, released when the last of us is gone.
    _lock: File,
}

impl Shared {
    pub(crate) fn new(
        dir: PathBuf,
        marks: Marks,
        config: Config,
        current: Arc<Segment>,
        lock: File,
    ) -> Shared {
        Shared {
            dir,
            geometry: marks.geometry(),
            syncing: Mutex::new(marks.sync_latency()),
            marks,
            config,
            segments: Mutex::new(VecDeque::from([current])),
            _lock: lock,
        }
    }

    /// Enters a new current segment. With durability `Os` the older ones are let go: nobody need ever sync, and their
    /// mappings would pile up.
    pub(crate) fn push_segment(&self, segment: Arc<Segment>) {
        let mut segments = self.segments();
        if self.config.durability == Durability::Os {
            segments.clear();
        }
        segments.push_back(segment);
    }

    /// The segment being written.
    pub(crate) fn current(&self) -> Arc<Segment> {
        let segments = self.segments();
        segments.back().expect("there is always a current segment").clone()
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
            self.sync_segment(base).map_err(|e| self.marks.poison(&e))?;
        }
        if first != last && self.config.durability == Durability::Os {
            crate::marks::sync_dir(&self.dir).map_err(|e| self.marks.poison(&e))?;
        }
        self.segments().retain(|s| s.base >= last);
        Ok(())
    }

    fn sync_segment(&self, base: u64) -> io::Result<()> {
        Faults::check(&self.config.faults.sync)?;
        let held = self.segments().iter().find(|s| s.base == base).cloned();
        match held {
            Some(segment) => segment.map.sync(),
            None => match File::open(segment::path(&self.dir, base)) {
                Ok(file) => file.sync_data(),
                Err(_) if base < self.marks.get(Mark::Released) => Ok(()),
                Err(e) => Err(e),
            },
        }
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
/// While one sync is under way the writer goes on appending; the next covers whatever came meanwhile (group commit).
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
