//! A directory that is being filled.
//!
//! What a restore has copied before it fails looks like a system: it has a configuration and logs. So a note lies there until all of it does, and no system
//! starts beside one ([`is_unfinished`]).

use std::fs;
use std::path::{Path, PathBuf};

use crate::ArchiveError;
use crate::manifest::io;

const NOTE: &str = "unfinished";

/// Whether a restore into that directory was begun and did not end.
#[must_use]
pub fn is_unfinished(dir: &Path) -> bool {
    dir.join(NOTE).exists()
}

/// A restore under way.
pub(crate) struct Unfinished {
    note: PathBuf,
}

impl Unfinished {
    /// Into a directory that does not exist or is empty.
    pub(crate) fn begin(dir: &Path) -> Result<Self, ArchiveError> {
        must_be_empty(dir)?;
        let note = dir.join(NOTE);
        let text = "A restore into this directory did not end. Empty it, and restore again.\n";
        pares_os::replace_file(&note, text.as_bytes()).map_err(io(&note))?;
        Ok(Self { note })
    }

    /// All is there.
    pub(crate) fn end(self) -> Result<(), ArchiveError> {
        fs::remove_file(&self.note).map_err(io(&self.note))
    }
}

pub(crate) fn must_be_empty(dir: &Path) -> Result<(), ArchiveError> {
    fs::create_dir_all(dir).map_err(io(dir))?;
    match fs::read_dir(dir).map_err(io(dir))?.next() {
        None => Ok(()),
        Some(_) => Err(ArchiveError::Refused(format!(
            "{} is not empty: name a new directory, or empty it if a restore did not end there",
            dir.display()
        ))),
    }
}
