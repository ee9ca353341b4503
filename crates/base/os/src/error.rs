//! Why shared memory is not available.

use std::io;
use std::path::PathBuf;

use crate::descriptors;

/// Why a file could not be mapped. Nothing is mapped and no other file was touched.
#[derive(Debug, thiserror::Error)]
pub enum MapError {
    /// The kernel refused `step` on the file.
    #[error("cannot {step} {path}: {source}", path = path.display())]
    Io {
        /// What was tried: open, size, allocate, map.
        step: &'static str,
        /// On which file.
        path: PathBuf,
        /// What the kernel said. `StorageFull` when the disk has no room for the whole mapping.
        source: io::Error,
    },
    /// The file is empty, so there is nothing to map (its creator may be about to size it: try again).
    #[error("{path} is empty: its creator has not sized it yet", path = path.display())]
    Empty {
        /// Which file.
        path: PathBuf,
    },
}

impl MapError {
    /// Whether the file (or its content) does not exist yet, so that trying again later makes sense.
    pub fn is_not_yet(&self) -> bool {
        match self {
            MapError::Io { source, .. } => source.kind() == io::ErrorKind::NotFound,
            MapError::Empty { .. } => true,
        }
    }

    /// Whether the disk (or quota) had no room, or there was [no descriptor](descriptors::are_out).
    pub fn is_full(&self) -> bool {
        match self {
            MapError::Io { source, .. } => {
                matches!(source.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
                    || descriptors::are_out(source)
            }
            MapError::Empty { .. } => false,
        }
    }
}
