//! What a log asks of its device: room for a segment, and to keep what was written.
//!
//! Devices fail seldom and never on request, so what a log does then is tried with devices that tests make: they implement
//! [`Device`] and refuse, or take their time. A log that is not told otherwise has [`Plain`].
//!
//! A file that the device failed to keep is never synced again: the kernel reports a lost write once, and the second sync
//! would be believed. Which file it was decides what happens instead:
//!
//! ```text
//!   an unfinished file, X.tmp or below repair/      thrown away; the next attempt makes another
//!   a segment, the marks, the log's directory       the log is poisoned (Keeping)
//! ```

use std::fmt::Debug;
use std::fs::File;
use std::io;
use std::path::Path;

use pares_os::{MapError, Mapping};

use crate::error::AppendError;
use crate::marks::Marks;
use crate::segment;

/// A log's device. Every sync of the log goes through it, at opening, while it is written, and when it is replaced.
pub trait Device: Debug + Send + Sync + 'static {
    /// Writes all changed pages of `file`, which lies at `path`, to the device and waits for it.
    ///
    /// # Errors
    /// What the device said.
    fn sync(&self, _path: &Path, file: &File) -> io::Result<()> {
        file.sync_data()
    }

    /// Makes renames and new names in a directory survive the loss of power.
    ///
    /// # Errors
    /// What the device said.
    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        File::open(dir)?.sync_all()
    }

    /// Makes the file of a segment: `len` bytes, every block allocated. `path` is the unfinished file: `next.tmp` when it is made
    /// ahead, `roll.tmp` when the writer makes it in line, `open.tmp` when the log is opened.
    ///
    /// # Errors
    /// [`MapError::Io`]; with one that [`MapError::is_full`] the log refuses records until there is room, and takes more then.
    fn make(&self, path: &Path, len: usize) -> Result<Mapping, MapError> {
        Mapping::create(path, len)
    }
}

/// The device as it is.
#[derive(Debug, Clone, Copy, Default)]
pub struct Plain;

impl Device for Plain {}

/// Syncs what belongs to a log. What cannot be kept poisons it.
#[derive(Clone, Copy)]
pub(crate) struct Keeping<'a> {
    pub(crate) dir: &'a Path,
    pub(crate) marks: &'a Marks,
    pub(crate) device: &'a dyn Device,
}

impl Keeping<'_> {
    pub(crate) fn segment(&self, base: u64, file: &File) -> Result<(), AppendError> {
        self.kept(self.device.sync(&segment::path(self.dir, base), file))
    }

    pub(crate) fn directory(&self) -> Result<(), AppendError> {
        self.kept(self.device.sync_dir(self.dir))
    }

    /// Keeps the name of a segment just made. Without a descriptor for the directory nothing was synced, so nothing is lost.
    pub(crate) fn name(&self) -> io::Result<()> {
        match self.device.sync_dir(self.dir) {
            Err(error) if pares_os::descriptors::are_out(&error) => Err(error),
            synced => Ok(self.kept(synced)?),
        }
    }

    pub(crate) fn marks(&self) -> Result<(), AppendError> {
        self.kept(self.sync_marks())
    }

    fn kept(&self, result: io::Result<()>) -> Result<(), AppendError> {
        result.map_err(|error| {
            let poisoned = self.marks.poison(&error);
            // Page cache or device: the poison stays as far as this one still keeps anything.
            let _best_effort = self.sync_marks();
            poisoned
        })
    }

    fn sync_marks(&self) -> io::Result<()> {
        self.device.sync(&self.dir.join("marks"), self.marks.file())
    }
}
