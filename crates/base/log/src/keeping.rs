//! Syncing what belongs to a log.
//!
//! A file that the device failed to keep is never synced again: the kernel reports a lost write once, and the second sync
//! would be believed. Which file it was decides what happens instead:
//!
//! ```text
//!   an unfinished file, X.tmp or below repair/      thrown away; the next attempt makes another
//!   a segment, the marks, the log's directory       the log is poisoned (Keeping)
//! ```

use std::fs::File;
use std::io;
use std::path::Path;

use crate::config::Config;
use crate::device::Device;
use crate::error::AppendError;
use crate::marks::Marks;
use crate::offset::segment_path;

/// Syncs what belongs to a log. What cannot be kept poisons it.
#[derive(Clone, Copy)]
pub(crate) struct Keeping<'a> {
    pub(crate) dir: &'a Path,
    pub(crate) marks: &'a Marks,
    pub(crate) device: &'a dyn Device,
}

impl<'a> Keeping<'a> {
    pub(crate) fn of(config: &'a Config, dir: &'a Path, marks: &'a Marks) -> Self {
        Self { dir, marks, device: &*config.device }
    }

    pub(crate) fn segment(&self, base: u64, file: &File) -> Result<(), AppendError> {
        self.kept(self.device.sync(&segment_path(self.dir, base), file))
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
