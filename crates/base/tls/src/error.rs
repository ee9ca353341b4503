//! Why certificates cannot be made or used.

use std::io;
use std::path::{Path, PathBuf};

/// Why certificates cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read as what it should be.
    #[error("{path}: {why}: issue certificates first, or correct the path", path = path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// They do not go together.
    #[error("the certificate, its key and the authority do not go together ({0}): issue them anew")]
    Mismatch(String),
    /// The certificate is another's.
    #[error("the certificate does not name {0}: give its owner one that does")]
    WrongName(String),
}

impl TlsError {
    pub(crate) fn file(path: &Path, why: impl ToString) -> Self {
        Self::File { path: path.to_owned(), why: why.to_string() }
    }
}

/// Why certificates could not be made.
#[derive(Debug, thiserror::Error)]
pub enum IssueError {
    /// A file could not be written or read.
    #[error("{path}: {source}", path = path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// What the operating system says.
        source: io::Error,
    },
    /// The authority is there, and its key is not.
    #[error("{path} is missing: bring it back to issue more, or delete ca.pem to begin anew with all certificates", path = .0.display())]
    NoKey(PathBuf),
    /// The authority's certificate cannot be read.
    #[error("{0}. Bring the authority's ca.pem back, or delete it to begin anew with all certificates")]
    Authority(#[from] TlsError),
    /// What the key signs, nobody would believe.
    #[error("{path} is not the key of the ca.pem there: bring back the one that is, or delete ca.pem to begin anew with all certificates", path = .0.display())]
    OtherKey(PathBuf),
    /// A name cannot stand in a certificate, or the authority's key is not one.
    #[error("cannot make certificates: {0}: are names made of letters, digits, dots and dashes?")]
    Certificate(#[from] rcgen::Error),
}
