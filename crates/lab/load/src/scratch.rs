//! A directory for the files of one benchmark.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::error::LabError;

/// A directory for the files of one benchmark, removed when it ends.
pub struct ScratchDirectory {
    path: PathBuf,
}

impl ScratchDirectory {
    /// Makes one in `within`, or where temporary files go.
    ///
    /// # Errors
    /// If it cannot be made.
    pub fn create(within: Option<&Path>) -> Result<Self, LabError> {
        let within = within.map_or_else(std::env::temp_dir, Path::to_owned);
        static MADE: AtomicU32 = AtomicU32::new(0);
        let made = MADE.fetch_add(1, Ordering::Relaxed);
        let path = within.join(format!("pares-books-{}-{made}", std::process::id()));
        std::fs::create_dir_all(&path)
            .map_err(LabError::io(format!("making the directory {}", path.display())))?;
        Ok(Self { path })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for ScratchDirectory {
    fn drop(&mut self) {
        // What cannot be removed now is reported by nobody: the command has its result already.
        let _ = std::fs::remove_dir_all(&self.path);
    }
}
