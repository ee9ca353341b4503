//! What a log asks of its device: room for a segment, and to keep what was written.
//!
//! Devices fail seldom and never on request, so what a log does then is tried with devices that tests make: they implement
//! [`Device`] and refuse, or take their time. Without another choice a log has [`Plain`].

use std::fmt::Debug;
use std::fs::File;
use std::io;
use std::path::Path;

use pares_os::{MapError, Mapping};

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
