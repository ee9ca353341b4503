//! Why a site ends.

use pares_cluster::{LogError, ProposeError};
use pares_store::StoreError;
use pares_wice::Version;
use pares_wice::codec::DecodeError;
use thiserror::Error;

use crate::config::ConfigError;

/// Why a site has ended.
#[derive(Debug, Error)]
pub enum ProcessError {
    /// Its configuration cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// Its store fails.
    #[error("store: {0}")]
    Store(#[from] StoreError),
    /// Its log cannot be opened.
    #[error("log: {0}")]
    Open(#[from] pares_cluster::ReplicaError),
    /// Its log's files cannot be opened.
    #[error("log: {0}")]
    Journal(#[from] pares_cluster::JournalError),
    /// Its log fails.
    #[error("log: {0}")]
    Log(#[from] LogError),
    /// Its connections fail.
    #[error("connections: {0}")]
    Links(#[from] pares_link::LinksError),
    /// What its log or store holds cannot be read.
    #[error("{0}: was it written by another build?")]
    Content(#[from] DecodeError),
    /// The mark of a cluster that has lost its disks says nothing.
    #[error(
        "the file `returning` says {0:?}: it needs the era of those who went on, three numbers (`pares site status` shows them)"
    )]
    Returning(String),
    /// The count of a site's starts says nothing.
    #[error(
        "the file `life` says {0:?}: it needs how often this site was started, as a number; write one that it has surely not \
         reached yet, below 16384"
    )]
    Life(String),
    /// What the log begins with has changed on the disk.
    #[error(
        "the file `base` is damaged: leave this site down, its cluster goes on while most of its sites live, and let it return \
         with its whole cluster, as docs/operations.md says under Sites"
    )]
    Base,
    /// What the log begins with is written in a form that this release does not know.
    #[error(
        "the file `base` has form {found}, this release reads form {known}: start the release that wrote it; if this one did, the \
         file is damaged (docs/operations.md, Sites)"
    )]
    Form {
        /// The form found.
        found: u32,
        /// The form that is known.
        known: u32,
    },
    /// The log begins behind what the store holds.
    #[error(
        "the store holds version {stored}, and the log begins at {base}: the store was lost, or is an old copy; put the store of \
         another site of the same cluster in its place, as docs/operations.md says under Sites"
    )]
    Gap {
        /// The store's version.
        stored: Version,
        /// The log's beginning.
        base: Version,
    },
    /// Its log takes no more.
    #[error("log: {0}; start this site again")]
    Refused(ProposeError),
    /// It cannot certify any more in its term, and there is nobody to take its office.
    #[error("this site has to begin another term: start it again")]
    Spent,
    /// This site was so far behind that it got another's state.
    #[error("this site was far behind and has been sent a state: start it again, and it goes on from there")]
    Replaced,
    /// A read has panicked.
    #[error("a thread that answers reads has ended: the application panicked, and said above why")]
    Reader,
    /// The operating system refuses something.
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

impl ProcessError {
    /// Whether a site that is started again ends the same way, until somebody has repaired something.
    #[must_use]
    pub fn is_damage(&self) -> bool {
        match self {
            Self::Store(error) => {
                matches!(error, StoreError::Damaged(_) | StoreError::Unfinished | StoreError::Form { .. })
            }
            Self::Open(error) => error.is_damage(),
            Self::Journal(error) | Self::Log(LogError::Journal(error)) => error.is_damage(),
            Self::Log(LogError::Forgotten { .. }) => true,
            Self::Content(_)
            | Self::Returning(_)
            | Self::Life(_)
            | Self::Base
            | Self::Form { .. }
            | Self::Gap { .. } => true,
            Self::Config(_)
            | Self::Links(_)
            | Self::Refused(_)
            | Self::Spent
            | Self::Replaced
            | Self::Reader
            | Self::Io(_) => false,
        }
    }
}
