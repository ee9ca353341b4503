//! The window in memory shared between processes: the sequencer of one host.
//!
//! A sequencer as a process of its own would cost every decision a round trip, and its death would need a
//! failover. Paper 1 (sections 2 and 5) puts it into a coupling facility, memory that outlives the venues
//! and offers compare-and-swap; a mapped file is that on one host. All rules live in `pares_sequencer`;
//! this is only the memory below them, one 128-bit word per slot.
//!
//! **A new epoch** (full restart, when no venue is alive) is a new file under the old name. The old one
//! is first fenced, slot by slot, so that a venue of the old epoch that slept through all this finds
//! every slot changed: its compare-and-swap fails and it learns that its epoch is over. What the fence
//! cannot undo is a decision made just before it, which is why no venue may be alive.

mod memory;
#[cfg(test)]
mod tests;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use pares_sequencer::{Memory, Overruled, ProposeError, Sequencer, Voiding, Window};
use pares_types::{Epoch, Position, RequestId, ShardId};

use memory::{AT_FIRST, AT_SHARD, SharedMemory, VERSION};
use pares_os::MapError;

/// Why a window could not be created or opened. Whatever was there before is as it was, unless said
/// otherwise.
#[derive(Debug, thiserror::Error)]
pub enum WindowError {
    /// The file could not be mapped.
    #[error(transparent)]
    Map(#[from] MapError),
    /// The new window is made, but could not get its name; the old one is fenced. Create again.
    #[error("cannot put the new window at {path}: {source}", path = path.display())]
    Rename {
        /// The window's name.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// The file is no window.
    #[error("{path} is not a window: check the path", path = path.display())]
    NotAWindow {
        /// Which file.
        path: PathBuf,
    },
    /// The file was made by another version of this program.
    #[error(
        "{path} has layout {found}, this program supports {VERSION}: stop all venues and start a new epoch",
        path = path.display()
    )]
    Version {
        /// Which file.
        path: PathBuf,
        /// Its layout version.
        found: u64,
    },
    /// The file says impossible things of itself.
    #[error("{path} is damaged ({what}): stop all venues and start a new epoch", path = path.display())]
    Damaged {
        /// Which file.
        path: PathBuf,
        /// What is impossible.
        what: &'static str,
    },
    /// The file has been given up for a newer epoch, whose file is about to get this name: open again.
    #[error("{path} was given up for epoch {current}: open it again", path = path.display())]
    GivenUp {
        /// Which file.
        path: PathBuf,
        /// The newer epoch.
        current: Epoch,
    },
    /// A new window must be of a newer epoch than the one it replaces.
    #[error("{path} already belongs to epoch {current}; a new window needs a later epoch", path = path.display())]
    EpochNotNewer {
        /// Which file.
        path: PathBuf,
        /// Its epoch.
        current: Epoch,
    },
}

/// One venue's handle on a shard's window in shared memory. Clones are further handles.
#[derive(Clone, Debug)]
pub struct SharedWindow {
    window: Window<SharedMemory>,
}

impl SharedWindow {
    /// Makes the window of `epoch` and puts it at `path`, where processes find it whole or not at all. A
    /// window already there is fenced: its epoch is over. Only for the process that starts the venues, while none
    /// is alive.
    ///
    /// `capacity` positions can be decided ahead of the record; `first` is the first unrecorded position.
    ///
    /// # Errors
    /// [`WindowError::EpochNotNewer`], [`WindowError::Map`] (disk full, permissions),
    /// [`WindowError::Rename`].
    ///
    /// # Panics
    /// If `capacity` is not a power of two, or `epoch` or `first` do not fit a slot.
    pub fn create(
        path: &Path,
        shard: ShardId,
        capacity: usize,
        epoch: Epoch,
        first: Position,
    ) -> Result<Self, WindowError> {
        assert!(capacity.is_power_of_two(), "window capacity {capacity} is not a power of two");
        let old = predecessor(path, epoch)?;
        let name = path.file_name().expect("a window's path names a file").to_string_lossy();
        // The same at each try: one that a full disk broke off is written over.
        let unfinished = path.with_file_name(format!("{name}.new"));
        let memory = SharedMemory::write(&unfinished, shard, capacity, epoch, first)?;
        if let Some(old) = old {
            old.give_up(epoch);
        }
        fs::rename(&unfinished, path)
            .map_err(|source| WindowError::Rename { path: path.to_owned(), source })?;
        Ok(Self { window: Window::new(memory) })
    }

    /// Opens the window at `path`.
    ///
    /// # Errors
    /// [`WindowError::Map`], which [`MapError::is_not_yet`] tells apart while nobody has created it;
    /// [`WindowError::GivenUp`] when it is being replaced (open again); others when the file is no
    /// intact window.
    pub fn open(path: &Path) -> Result<Self, WindowError> {
        let memory = SharedMemory::open(path)?;
        let current = memory.epoch();
        if current != memory.made_for() {
            return Err(WindowError::GivenUp { path: path.to_owned(), current });
        }
        Ok(Self { window: Window::new(memory) })
    }

    /// The shard it orders.
    #[must_use]
    pub fn shard(&self) -> ShardId {
        let shard = self.window.memory().constant(AT_SHARD);
        ShardId(u16::try_from(shard).expect("checked when the window was opened"))
    }

    /// How many positions can be decided ahead of the record.
    #[must_use]
    pub fn capacity(&self) -> u64 {
        self.window.memory().capacity()
    }

    /// The first position of its epoch.
    #[must_use]
    pub fn first(&self) -> Position {
        Position(self.window.memory().constant(AT_FIRST))
    }
}

impl Sequencer for SharedWindow {
    #[inline]
    fn propose(
        &mut self,
        first: Position,
        requests: &[RequestId],
        decided_max: usize,
        decided: &mut Vec<RequestId>,
    ) -> Result<(), ProposeError> {
        self.window.propose(first, requests, decided_max, decided)
    }

    #[inline]
    fn recorded(&self) -> Position {
        self.window.recorded()
    }

    #[inline]
    fn raise_recorded(&mut self, to: Position) {
        self.window.raise_recorded(to);
    }

    fn follow_record(&mut self, to: Position) {
        self.window.follow_record(to);
    }

    #[inline]
    fn is_void(&mut self, position: Position) -> bool {
        self.window.is_void(position)
    }

    #[inline]
    fn vouch(&mut self, from: Position, to: Position) -> Result<(), Overruled> {
        self.window.vouch(from, to)
    }

    fn void(&mut self, position: Position) -> Voiding {
        self.window.void(position)
    }

    fn epoch(&self) -> Epoch {
        self.window.epoch()
    }

    #[inline]
    fn won(&self) -> u64 {
        self.window.won()
    }
}

/// The window that a new one of `epoch` would replace, if the file at `path` can be read as one. What
/// cannot be read no venue can have open, so there is nobody to fence.
fn predecessor(path: &Path, epoch: Epoch) -> Result<Option<SharedMemory>, WindowError> {
    match SharedMemory::open(path) {
        Ok(old) if old.made_for() < epoch => Ok(Some(old)),
        Ok(old) => Err(WindowError::EpochNotNewer { path: path.to_owned(), current: old.made_for() }),
        Err(WindowError::Map(e)) if !e.is_not_yet() => Err(WindowError::Map(e)),
        Err(_) => Ok(None),
    }
}
