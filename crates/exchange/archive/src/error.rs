//! Why something about days could not be done.

use std::path::PathBuf;

use pares_log::ReadError;
use pares_wire::WireError;

/// Why something about days could not be done.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// A log cannot be read.
    #[error(transparent)]
    Log(#[from] ReadError),
    /// A log holds something that this build does not understand.
    #[error("{0}")]
    Wire(WireError),
    /// A file cannot be read or written.
    #[error("{path}: {source}", path = path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file cannot be copied: either end may be at fault.
    #[error("{from} cannot be copied to {to}: {source}", from = from.display(), to = to.display())]
    Copy {
        /// Which.
        from: PathBuf,
        /// Where.
        to: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// What was asked cannot be done; says why.
    #[error("{0}")]
    Refused(String),
}

impl From<WireError> for ArchiveError {
    fn from(error: WireError) -> Self {
        Self::Wire(error)
    }
}
