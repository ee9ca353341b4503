//! Why a site ends.

use std::error::Error as _;
use std::path::PathBuf;

use pares_cluster::{EntryError, LogError};
use pares_os::descriptors::are_out;
use pares_store::StoreError;
use pares_wice::Version;
use pares_wice::codec::DecodeError;
use thiserror::Error;

use crate::config::ConfigError;

/// What helps when what a disk kept is not to be trusted.
const REFILL: &str =
    "move the whole directory of this site away; other sites will refill it (docs/operations/sites.md)";

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
    #[error("{0}: check that this build wrote it")]
    Content(#[from] DecodeError),
    /// The count of a site's starts says nothing.
    #[error(
        "the file `life` contains {0:?} instead of the number of this site's starts: write a number that is \
         certainly larger, below 16384"
    )]
    Life(String),
    /// A note has changed on the disk, or something else than a file has its name.
    #[error("the file `{0}` is damaged: {REFILL}")]
    Note(&'static str),
    /// A note cannot be read.
    #[error("the file `{note}` cannot be read: {source}")]
    Unread {
        /// Which.
        note: &'static str,
        /// Why.
        source: std::io::Error,
    },
    /// A note cannot be written.
    #[error("the file `{note}` cannot be written: {source}")]
    Unwritten {
        /// Which.
        note: &'static str,
        /// Why.
        source: std::io::Error,
    },
    /// A note is written in a form that this release does not know.
    #[error(
        "the file `{note}` has format {found}, but this release reads format {known}: start the release \
         that wrote it; if this one did, the file is damaged (docs/operations/sites.md)"
    )]
    Form {
        /// Which.
        note: &'static str,
        /// The form found.
        found: u32,
        /// The form that is known.
        known: u32,
    },
    /// Another process has the directory.
    #[error("another process runs this site in {}: stop it, or use another --dir", .0.display())]
    InUse(std::path::PathBuf),
    /// The directory belongs to another database.
    #[error(
        "this directory belongs to database {found}, but sites.toml to {expected}: give this site its own \
         directory, or the right sites.toml"
    )]
    Stranger {
        /// Whose it is.
        found: String,
        /// Whose it should be.
        expected: String,
    },
    /// Its cluster has taken this site's disk for lost.
    #[error(
        "this site was removed, or replaced by another disk in its cluster, so this directory is obsolete. \
         If it was removed, take it out of sites.toml and leave it stopped; otherwise {REFILL}"
    )]
    Expelled,
    /// It is alone with what it has applied.
    #[error(
        "up to version {version} this site differs from a majority of sites: its memory, disk or build is \
         faulty. It has stopped serving: {REFILL}"
    )]
    Differs {
        /// A version at which it differs.
        version: Version,
    },
    /// The log begins behind what the store holds.
    #[error(
        "the store holds version {stored}, but the log begins at {base}: the store was lost, or is an old copy: {REFILL}"
    )]
    Gap {
        /// The store's version.
        stored: Version,
        /// The log's beginning.
        base: Version,
    },
    /// The log that it leads ends before what its store was written behind, and no other site can bring the rest.
    #[error(
        "the store holds version {stored}, but this site's log ends at {delivered}, as does its cluster's: \
         the log is an old copy, or lost its end in a power failure, and no other site has more: {REFILL}"
    )]
    Ahead {
        /// The store's version.
        stored: Version,
        /// Where the log has come to.
        delivered: Version,
    },
    /// Its place is gone, and its log's base is not.
    #[error("the file `place` is missing, so the other files cannot be identified: restore it, or {REFILL}")]
    NoPlace,
    /// Something else than a directory has the name of one.
    #[error("{0} is not a directory: {REFILL}")]
    NoDirectory(PathBuf),
    /// Its log is gone, and its place is not.
    #[error("the log of this site is missing: {REFILL}")]
    NoLog,
    /// Its log takes no more.
    #[error("log: {0}; restart this site")]
    Refused(EntryError),
    /// It cannot certify any more in its term, and there is no site to take its office.
    #[error("this site must begin a new term: restart it")]
    Spent,
    /// A read has panicked.
    #[error("a reader thread has ended, because the application panicked (see the message above)")]
    Reader,
    /// Its part has changed: it begins again with what it has noted.
    #[error("this site restarts from its notes")]
    Again,
    /// The operating system refuses something.
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

impl ProcessError {
    /// Whether a site that is started again ends the same way, until an operator has repaired something.
    #[must_use]
    pub fn is_damage(&self) -> bool {
        match self {
            Self::Store(error) => {
                matches!(
                    error,
                    StoreError::Damaged(_)
                        | StoreError::Unfinished
                        | StoreError::Form { .. }
                        | StoreError::Owned(_)
                        | StoreError::Schema { .. }
                )
            }
            Self::Open(error) => error.is_damage(),
            Self::Journal(error) | Self::Log(LogError::Journal(error)) => error.is_damage(),
            Self::Log(LogError::Forgotten { .. }) => true,
            Self::Content(_)
            | Self::Life(_)
            | Self::Note(_)
            | Self::Form { .. }
            | Self::Stranger { .. }
            | Self::Expelled
            | Self::Differs { .. }
            | Self::NoPlace
            | Self::NoDirectory(_)
            | Self::NoLog
            | Self::Ahead { .. }
            | Self::Gap { .. } => true,
            Self::Config(_)
            | Self::Links(_)
            | Self::InUse(_)
            | Self::Refused(_)
            | Self::Spent
            | Self::Again
            | Self::Reader
            | Self::Unread { .. }
            | Self::Unwritten { .. }
            | Self::Io(_) => false,
        }
    }

    /// Whether the process may have too few files open.
    #[must_use]
    pub fn lacks_descriptors(&self) -> bool {
        if let Self::Io(error) = self {
            return are_out(error);
        }
        let mut below = self.source();
        while let Some(error) = below {
            if error.downcast_ref().is_some_and(are_out) {
                return true;
            }
            below = error.source();
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn that_too_few_files_may_be_open_is_seen_wherever_it_shows() {
        let none_left = || io::Error::from_raw_os_error(24);
        let unread = ProcessError::Unread { note: "life", source: none_left() };
        assert!(unread.lacks_descriptors() && ProcessError::Io(none_left()).lacks_descriptors());
        assert!(!ProcessError::Io(io::ErrorKind::NotFound.into()).lacks_descriptors());
        assert!(!ProcessError::NoLog.lacks_descriptors());
    }
}
