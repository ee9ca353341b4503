//! A directory of backups: copies, and logs of versions that lead from one to the next.
//!
//! ```text
//!   base-00000000000000001000.copy
//!   log-00000000000000001000.versions       1001 .. 5000, then its end
//!   log-00000000000000005000.versions       5001 .. : it grows
//!   base-00000000000000004200.copy          a later base: the log goes through it
//! ```
//! Files begin with what they are, so a file under the wrong name, or of another database, is found.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use pares_os::process::Lock;
use pares_wice::Version;

use super::BackupError;
use super::copy_file::{CopyFacts, CopyReader};
use super::ranges::{self, BackupRun, LogFacts};
use super::version_log::{LogReader, Point, end_of};

/// A directory of backups.
#[derive(Clone, Debug)]
pub struct BackupFolder(PathBuf);

/// What it holds, when all of it was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FolderFacts {
    /// The database that all of it is of.
    pub identity: String,
    /// Copies, in order of versions.
    pub bases: Vec<CopyFacts>,
    /// Logs, in order.
    pub logs: Vec<LogFacts>,
}

impl BackupFolder {
    /// That directory, which is made if it is missing.
    ///
    /// # Errors
    /// As the operating system says.
    pub fn create(dir: &Path) -> Result<Self, BackupError> {
        fs::create_dir_all(dir).map_err(|source| BackupError::io(dir, source))?;
        Ok(Self(dir.to_owned()))
    }

    /// That directory, which must be there.
    #[must_use]
    pub fn open(dir: &Path) -> Self {
        Self(dir.to_owned())
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    pub(super) fn copy_path(&self, version: Version) -> PathBuf {
        self.0.join(format!("base-{:020}.copy", version.0))
    }

    pub(super) fn log_path(&self, behind: Version) -> PathBuf {
        self.0.join(format!("log-{:020}.versions", behind.0))
    }

    /// Copies, in order of versions.
    pub(super) fn bases(&self) -> Result<Vec<(Version, PathBuf)>, BackupError> {
        self.named("base-", ".copy")
    }

    /// Logs, in order of the versions they begin behind.
    pub(super) fn logs(&self) -> Result<Vec<(Version, PathBuf)>, BackupError> {
        self.named("log-", ".versions")
    }

    /// The last copy in the unbroken run of logs that ends with the last one, at version `last`.
    pub(super) fn base_before(&self, last: Version) -> Result<Option<(Version, PathBuf)>, BackupError> {
        let Some((base, copy)) = self.bases()?.into_iter().rfind(|(base, _)| *base <= last) else {
            return Ok(None);
        };
        let mut logs = self.logs()?.into_iter().rev();
        let Some((mut begins, _)) = logs.next() else { return Ok(None) };
        for (behind, path) in logs {
            if begins <= base || end_of(&path)? != Some(begins) {
                break;
            }
            assert!(behind <= begins, "logs are in their order");
            begins = behind;
        }
        Ok((begins <= base).then_some((base, copy)))
    }

    fn named(&self, before: &str, behind: &str) -> Result<Vec<(Version, PathBuf)>, BackupError> {
        let io = |source| BackupError::io(&self.0, source);
        let mut found = Vec::new();
        for entry in fs::read_dir(&self.0).map_err(io)? {
            let path = entry.map_err(io)?.path();
            let name = path.file_name().and_then(|name| name.to_str());
            let number = name.and_then(|name| name.strip_prefix(before)?.strip_suffix(behind)?.parse().ok());
            found.extend(number.map(|number| (Version(number), path.clone())));
        }
        found.sort_unstable();
        Ok(found)
    }

    /// Whether nothing that it holds is of another database. Only heads are read; what is damaged says nothing.
    ///
    /// # Errors
    /// [`BackupError::Another`] if something is.
    pub(super) fn takes(&self, identity: &str) -> Result<(), BackupError> {
        let bases = self.bases()?.into_iter();
        let of_bases = bases.map(|(_, path)| CopyReader::open(&path).map(|read| read.head.identity));
        let logs = self.logs()?.into_iter();
        let of_logs = logs.map(|(_, path)| LogReader::open(&path).map(|read| read.head.identity));
        of_bases.chain(of_logs).try_for_each(|found| match found {
            Ok(found) if found != identity => Err(BackupError::Another(format!(
                "{} contains copies of database {found}, but the site belongs to {identity}: use one backup directory per database, or name the right --dir",
                self.0.display()
            ))),
            Ok(_) => Ok(()),
            Err(error @ BackupError::Io { .. }) => Err(error),
            Err(_) => Ok(()),
        })
    }

    /// One copy is written at a time: two of one version would have one name.
    pub(super) fn lock_for_copy(&self) -> Result<Lock, BackupError> {
        let path = self.0.join("copying");
        let lock = Lock::take(&path).map_err(|source| BackupError::io(&path, source))?;
        let taken =
            || format!("another copy is being written into {}: wait until it has finished", self.0.display());
        lock.ok_or_else(|| BackupError::Another(taken()))
    }

    /// Reads all of it, and says what it holds. Versions may be missing: [`FolderFacts::faults`].
    ///
    /// # Errors
    /// If anything has changed, or is of another database or another history than the rest.
    pub fn verify(&self) -> Result<FolderFacts, BackupError> {
        let (bases, logs) = (self.bases()?, self.logs()?);
        if bases.is_empty() && logs.is_empty() {
            return Err(BackupError::Absent(format!("{} contains no backup", self.0.display())));
        }
        let mut facts = FolderFacts::default();
        for (version, path) in bases {
            let read = CopyReader::open(&path)?;
            facts.is_of(&read.head.identity, &path)?;
            is_named(&path, version, read.head.stored.version)?;
            facts.bases.push(read.verify()?);
        }
        assert!(facts.bases.is_sorted_by_key(|base| base.version), "bases are in the order of versions");
        let count = logs.len();
        for (at, (version, path)) in logs.into_iter().enumerate() {
            facts.read_log(&path, version, at + 1 == count)?;
        }
        assert_eq!(facts.logs.len(), count, "each log is read, and counted once");
        Ok(facts)
    }
}

impl FolderFacts {
    /// Which versions there are without a gap, in order.
    #[must_use]
    pub fn runs(&self) -> Vec<BackupRun> {
        ranges::runs(&self.bases, &self.logs)
    }

    /// What is missing though every file is whole, in sentences: versions before a log, or a base that it continues from.
    #[must_use]
    pub fn faults(&self) -> Vec<String> {
        ranges::faults(&self.runs())
    }

    fn is_of(&mut self, identity: &str, path: &Path) -> Result<(), BackupError> {
        if self.identity.is_empty() {
            identity.clone_into(&mut self.identity);
        }
        is_of(&self.identity, identity, path)
    }

    fn read_log(&mut self, path: &Path, version: Version, is_last: bool) -> Result<(), BackupError> {
        let mut read = match LogReader::open(path) {
            Err(error) if is_last && error.tail().is_some() => {
                let (digest, torn_at) = (None, error.tail());
                self.logs.push(LogFacts { behind: version, last: version, digest, last_ms: 0, torn_at });
                return Ok(());
            }
            opened => opened?,
        };
        self.is_of(&read.head.identity, path)?;
        is_named(path, version, read.head.behind)?;
        self.meets(read.last(), path)?;
        let torn_at = loop {
            match next_of(&mut read, is_last)? {
                Next::Versions(versions) => {
                    versions.iter().try_for_each(|kept| self.meets(Point::behind(kept), path))?;
                }
                Next::End => break None,
                Next::Torn(at) => break Some(at),
            }
        };
        assert!(self.logs.last().is_none_or(|log| log.behind <= version), "logs are in their order");
        let Point { version: last, digest, at_ms: last_ms } = read.last();
        self.logs.push(LogFacts { behind: version, last, digest, last_ms, torn_at });
        Ok(())
    }

    /// Whether that place in a log agrees with the base of that version and with the log before.
    fn meets(&self, point: Point, path: &Path) -> Result<(), BackupError> {
        let base = self.bases.binary_search_by_key(&point.version, |base| base.version).ok();
        let base = base.map(|at| Some(self.bases[at].digest)).into_iter();
        let log = self.logs.last().filter(|log| log.last == point.version).map(|log| log.digest);
        match base.chain(log).all(|digest| point.agrees(digest)) {
            true => Ok(()),
            false => Err(BackupError::Another(format!(
                "{}: version {} differs from the adjoining file: there are two histories, or one of the files has changed",
                path.display(),
                point.version
            ))),
        }
    }
}

/// What comes next in a log.
pub(super) enum Next {
    Versions(Vec<super::version_log::Kept>),
    End,
    /// What was half written, or is the last record and has changed, in the last log.
    Torn(u64),
}

/// The next of a log. Only the last one may be without an end.
pub(super) fn next_of(read: &mut LogReader, is_last: bool) -> Result<Next, BackupError> {
    match read.next() {
        Ok(Some(versions)) => Ok(Next::Versions(versions)),
        Ok(None) if is_last || read.has_ended => Ok(Next::End),
        Ok(None) => Err(read.without_end()),
        Err(error) => error.tail().filter(|_| is_last).map(Next::Torn).ok_or(error),
    }
}

/// Whether a file is of that database.
pub(super) fn is_of(identity: &str, found: &str, path: &Path) -> Result<(), BackupError> {
    match found == identity {
        true => Ok(()),
        false => Err(BackupError::Another(format!(
            "{} belongs to database {found}, but other files here to {identity}: use one directory per database",
            path.display()
        ))),
    }
}

pub(super) fn is_named(path: &Path, named: Version, found: Version) -> Result<(), BackupError> {
    match found == named {
        true => Ok(()),
        false => Err(BackupError::damaged(
            path,
            0,
            &format!("it holds version {found}, which differs from its name"),
        )),
    }
}

/// The name of that file survives the loss of power from now on.
pub(super) fn sync(path: &Path) -> Result<(), BackupError> {
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let synced = fs::File::open(dir).and_then(|dir| dir.sync_all());
    match synced {
        Err(error) if error.kind() != ErrorKind::InvalidInput => Err(BackupError::io(dir, error)),
        _ => Ok(()),
    }
}
