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
    #[error("the certificate, its key and the authority do not match ({0}): issue new ones")]
    Mismatch(String),
    /// The certificate is another's.
    #[error("the certificate does not name {0}: issue one in that name")]
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
    #[error("{path} is missing: restore it to issue certificates, or delete ca.pem to replace all certificates", path = .0.display())]
    NoKey(PathBuf),
    /// The authority's certificate cannot be read.
    #[error("{0}. Restore the authority's ca.pem, or delete it to replace all certificates")]
    Authority(#[from] TlsError),
    /// What the key signs, nobody would believe.
    #[error("{path} is not the key of the ca.pem there: restore the right one, or delete ca.pem to replace all certificates", path = .0.display())]
    OtherKey(PathBuf),
    /// A name cannot stand in a certificate, or the authority's key is not one.
    #[error("cannot make certificates: {0}: names must consist of letters, digits, dots and dashes")]
    Certificate(#[from] rcgen::Error),
}
