//! Backups of a running database, its versions since, and another database made of them.
//!
//! Sites keep copies of each other, and that is no backup: what an application deletes, or spoils, is deleted at all of them within a moment. A copy of a
//! site's directory is none either: a site that is put back to what it was votes with what it has forgotten. So a backup is taken through the
//! port for clients, of one version, while the site serves; and what is restored is *another database*, which begins with these items, under
//! an identity that no site of the first lets in.
//!
//! ```text
//!   site ==copy of version V==> base-V.copy                  restore: another database, which begins with version W
//!   site ==V+1, V+2, ... W ==> log-V.versions                 base, then versions up to W; at each its digest is compared
//! ```
//! | module | what |
//! |---|---|
//! | `messages` | what a site hands out |
//! | `sealed` | files in which nothing changes unseen |
//! | `copy_file` | a copy in a file |
//! | `version_log` | versions in files |
//! | `folder` | what a directory of backups holds |
//! | `pursuing` | that at one site after another |
//! | `ranges` | which versions that restores, and where some are missing |
//! | `hose` | questions to one site, over one connection |
//! | `taking` | taking a copy |
//! | `following` | taking all versions behind it |
//! | `looking` | whether a copy can be continued |
//! | `mending` | what is damaged, under other names |
//! | `restoring` | stores of another database, filled from there |
//!
//! The bytes are in `docs/protocols/site-backup.md`.

mod copy_file;
mod folder;
mod following;
mod hose;
mod looking;
mod mending;
pub(crate) mod messages;
mod pursuing;
mod ranges;
mod restoring;
mod sealed;
mod taking;
mod version_log;

use std::io;
use std::path::{Path, PathBuf};

use pares_store::StoreError;
use pares_wice::Version;
use pares_wice::codec::DecodeError;
use thiserror::Error;

use crate::config::ConfigError;
use crate::error::ProcessError;

pub use copy_file::{CopyFacts, CopyHead};
pub use folder::{BackupFolder, FolderFacts};
pub use following::Following;
pub use hose::BackupConnection;
pub use looking::{Finding, SoundBase, UnusableBase};
pub use mending::DamagedLog;
pub use pursuing::{BackupStall, Followed, StallEvent};
pub use ranges::{BackupRun, LogFacts};
pub use restoring::{Restoration, Restored, Until};
pub use taking::{Copied, Copying, Pace, take};

/// Why a backup is none, or cannot be taken or restored. Every message says what to do.
#[derive(Debug, Error)]
pub enum BackupError {
    /// The operating system refuses something.
    #[error("{path}: {source}")]
    Io {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file is not what was written.
    #[error(
        "{path} is damaged at byte {at}: {what}. Restore from another base, or until a version before the damage"
    )]
    Damaged {
        /// Which file.
        path: PathBuf,
        /// Where the record begins that is not what it was.
        at: u64,
        /// How it shows.
        what: String,
    },
    /// A file ends in the middle of a record.
    #[error(
        "{path} ends in the middle of the record at byte {at}: it was not completely written, or has been cut. \
         If the backup has an older base, move this file away and restore from that one"
    )]
    Torn {
        /// Which file.
        path: PathBuf,
        /// Where that record begins.
        at: u64,
    },
    /// The last record of a file has the length that it says, and is not what was written.
    #[error("the last record of {path}, at byte {at}, was not completely written, or has changed")]
    LastChanged {
        /// Which file.
        path: PathBuf,
        /// Where that record begins.
        at: u64,
    },
    /// A file is of a release that writes another form.
    #[error(
        "{path} has format {found}, but this release reads format {known}: restore with the release that wrote it"
    )]
    Form {
        /// Which file.
        path: PathBuf,
        /// The form found.
        found: u32,
        /// The form that is known.
        known: u32,
    },
    /// Files of two databases, or of two histories of one.
    #[error("{0}")]
    Another(String),
    /// Versions are missing in the middle, and what was asked for is among them or may be.
    #[error(
        "this backup has a gap between versions {last} and {next}, so the wanted version may be missing. \
         `--until {last}` restores everything before the gap; `pares site backup verify` lists what can be \
         restored after it"
    )]
    Gap {
        /// The last version before it.
        last: Version,
        /// When that was stored, milliseconds since 1970.
        last_ms: u64,
        /// Where the existing copy continues: a base of that version, or a log behind it.
        next: Version,
    },
    /// What was asked for is not there.
    #[error("{0}")]
    Absent(String),
    /// The site does not hand it out now; another may.
    #[error("{0}")]
    Later(String),
    /// The site's copy would lie before the log that exists already; another's may not.
    #[error(
        "{site} has only version {version}, but the copy's log begins after {log}: the site lags. If no \
         other site gives a copy, start again; the log is then set aside"
    )]
    Behind {
        /// Which site.
        site: String,
        /// What its copy would be of.
        version: Version,
        /// What the log begins behind.
        log: Version,
    },
    /// The site does not hand it out.
    #[error("{0}")]
    No(String),
    /// The connection to the site failed.
    #[error("the connection to {site}: {source}")]
    Broken {
        /// Where.
        site: String,
        /// Why.
        source: io::Error,
    },
    /// What a site says is not what a site says.
    #[error("a site sent an invalid answer ({0}): check that it runs the same build")]
    Answer(#[from] DecodeError),
    /// The versions asked for are kept no more.
    #[error("this site no longer has the versions after {0}: take a new base copy")]
    Gone(Version),
    /// Versions lead to other items than they did at the site that handed them out.
    #[error(
        "version {version} (in {path}, record at byte {at}) gives different items than at its site: the \
         file, the base or this machine's memory is corrupt. Restore until the version before, or from \
         another base"
    )]
    Digest {
        /// Which.
        version: Version,
        /// In which log.
        path: PathBuf,
        /// Where its record begins.
        at: u64,
    },
    /// A new store cannot be filled.
    #[error("the new store: {0}")]
    Store(#[from] StoreError),
    /// The configuration cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A new site's directory cannot be used.
    #[error(transparent)]
    Site(Box<ProcessError>),
}

impl BackupError {
    fn io(path: &Path, source: io::Error) -> Self {
        Self::Io { path: path.to_owned(), source }
    }

    /// Where the file has nothing whole any more, if a loss of power may have left it so while it grew.
    fn tail(&self) -> Option<u64> {
        match self {
            Self::Torn { at, .. } | Self::LastChanged { at, .. } => Some(*at),
            _ => None,
        }
    }

    fn damaged(path: &Path, at: u64, what: &str) -> Self {
        Self::Damaged { path: path.to_owned(), at, what: what.to_owned() }
    }

    /// Whether asking again, or another site, may help.
    #[must_use]
    pub fn may_pass(&self) -> bool {
        matches!(self, Self::Later(_) | Self::Behind { .. } | Self::Broken { .. })
    }
}

impl From<ProcessError> for BackupError {
    fn from(error: ProcessError) -> Self {
        Self::Site(Box::new(error))
    }
}

#[cfg(test)]
mod tests;
