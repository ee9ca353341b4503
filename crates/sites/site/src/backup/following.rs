//! Taking all versions behind a copy, as sites store them.
//!
//! Sites note nothing of who follows: the next question may go to another site, or be asked tomorrow. A site keeps the last 262,144 versions, or 128 MiB
//! of them; who was away for longer begins with another copy.
//!
//! A log without a copy that it continues from restores nothing, and is content for ever. So it is continued only if a copy lies in the unbroken run of logs
//! that ends with it; otherwise its taker died before the copy was whole, and it is set aside. A file gets its end before the next one has its name:
//! a crash in between leaves a log that has ended, which is whole. Only what can have been half written is cut; a damaged log is kept under another name.

use std::path::{Path, PathBuf};

use pares_os::process::Lock;
use pares_wice::codec::DecodeError;
use pares_wice::{Stored, Version};

use super::BackupError;
use super::folder::BackupFolder;
use super::hose::{BackupConnection, TAG, handed};
use super::looking::{self, Finding};
use super::mending::{self, DamagedLog};
use super::messages::{HandedVersion, HandedVersions};
use super::taking::now_ms;
use super::version_log::{Kept, LogReader, LogWriter, Point};
use crate::protocol::Ask;

/// Bytes of a file of versions, about.
const FILE_BYTES: u64 = 64 << 20;
const LOCK: &str = "following";

/// A log of versions that continues, in a directory that no other process follows into.
pub struct Following {
    folder: BackupFolder,
    identity: String,
    log: LogWriter,
    /// Bytes of a file, about: a longer one is followed by another.
    pub(super) file_bytes: u64,
    _lock: Lock,
}

impl Following {
    /// Continues where the last log in `folder` ends that can be restored from a copy; none if there is none, and a copy is to be taken.
    ///
    /// Later logs are set aside: they are given names that end in `.aside`, which nothing reads. A log that is damaged is kept as `.damaged-N`, and continued
    /// behind its last whole version. A copy that is found unusable is kept as `.damaged-N`, and does not count. `found` hears of each, and of the copy that counts.
    ///
    /// # Errors
    /// If files cannot be read or renamed, or another follows into this directory.
    ///
    /// # Panics
    /// Only if this crate is wrong.
    pub fn resume(
        folder: &BackupFolder,
        mut found: impl FnMut(Finding),
    ) -> Result<Option<Self>, BackupError> {
        let lock = lock(folder.path())?;
        while let Some((path, read)) = last_log(folder, &mut |log| found(Finding::Log(log)))? {
            let Some((version, copy)) = folder.base_before(read.last().version)? else {
                mending::set_aside(&path)?;
                continue;
            };
            assert!(version <= read.last().version, "a log is continued behind a copy that it leads on from");
            let looked = looking::look(version, &copy)?;
            let is_sound = matches!(looked, Finding::Sound(_));
            found(looked);
            if is_sound {
                let log = write_on(folder, &path, &read)?;
                return Ok(Some(Self::over(folder, read.head.identity, log, lock)));
            }
        }
        Ok(None)
    }

    fn over(folder: &BackupFolder, identity: String, log: LogWriter, lock: Lock) -> Self {
        Self { folder: folder.clone(), identity, log, file_bytes: FILE_BYTES, _lock: lock }
    }

    /// Begins behind a copy of the database `identity`, which says of itself `stored`; the site's answer had come at `taken_ms`. A site that is behind others may give a
    /// copy of a version that was followed before: the whole records of that are continued. `damaged` hears of a log that is not whole, which is kept as with [`Following::resume`].
    ///
    /// # Errors
    /// [`BackupError::Another`] if these are of another history than the copy; if the file cannot be made, or another follows into this directory.
    ///
    /// # Panics
    /// Only if this crate is wrong.
    pub fn begin(
        folder: &BackupFolder,
        identity: &str,
        stored: Stored,
        taken_ms: u64,
        mut damaged: impl FnMut(DamagedLog),
    ) -> Result<Self, BackupError> {
        let lock = lock(folder.path())?;
        let first = Point { version: stored.version, digest: Some(stored.digest), at_ms: taken_ms };
        let log = begin_log(folder, identity, first, &mut damaged)?;
        assert!(first.version <= log.last().version, "what is followed lies behind its copy");
        Ok(Self::over(folder, identity.to_owned(), log, lock))
    }

    /// The last version that is kept.
    #[must_use]
    pub fn last(&self) -> Version {
        self.log.last().version
    }

    /// Takes what the site has; whether it has more.
    ///
    /// # Errors
    /// [`BackupError::Gone`] if the site keeps the next version no more, [`BackupError::Another`] if it is of another database or another history.
    pub fn take(&mut self, hose: &mut BackupConnection) -> Result<bool, BackupError> {
        hose.ask(&self.question())?;
        let reply = hose.receive()?;
        self.reply(&reply, hose.site())
    }

    /// What to ask any site.
    #[must_use]
    pub fn question(&self) -> Ask {
        Ask::Versions(TAG, self.last())
    }

    /// Takes what a site has said to that; whether it has more.
    ///
    /// # Errors
    /// As [`Following::take`].
    ///
    /// # Panics
    /// Only if this crate is wrong.
    pub fn reply(&mut self, reply: &[u8], site: &str) -> Result<bool, BackupError> {
        let last = self.log.last();
        let handed: HandedVersions = handed(reply, site)?;
        if handed.identity != self.identity {
            let why = format!(
                "{} contains versions of database {}, but the site belongs to {}: use one backup directory per database, or name the right --dir",
                self.folder.path().display(),
                self.identity,
                handed.identity
            );
            return Err(BackupError::Another(why));
        }
        if !last.agrees(handed.before) {
            let why = format!(
                "version {} differs between this site and the log: there are two histories, or data are corrupt",
                last.version
            );
            return Err(BackupError::Another(why));
        }
        let versions = handed.versions.ok_or(BackupError::Gone(last.version))?;
        let kept = kept(last, versions)?;
        self.keep(&kept)?;
        assert_eq!(self.last().0 - last.version.0, kept.len() as u64, "each version is kept once, in order");
        Ok(!kept.is_empty() && self.last() < handed.stored)
    }

    /// Writes what follows, if there is any.
    pub(super) fn keep(&mut self, kept: &Vec<Kept>) -> Result<(), BackupError> {
        if kept.is_empty() {
            return Ok(());
        }
        self.roll()?;
        self.log.write(kept)?;
        let last = kept.last().map(|kept| kept.entry.version);
        assert_eq!(Some(self.last()), last, "a log ends with what was written last");
        Ok(())
    }

    /// Nothing more comes: what follows has a gap before it.
    ///
    /// # Errors
    /// If that cannot be written.
    pub fn end(mut self) -> Result<(), BackupError> {
        self.log.end()
    }

    /// Another file, if this one is long: first its end, which is durable, then the next one's name.
    fn roll(&mut self) -> Result<(), BackupError> {
        if self.log.bytes() < self.file_bytes {
            return Ok(());
        }
        self.log.end()?;
        let last = self.log.last();
        self.log = LogWriter::create(&self.folder.log_path(last.version), &self.identity, last)?;
        Ok(())
    }
}

/// Stamps what was handed out, which must follow `last`. A clock that was set back does not show.
fn kept(last: Point, versions: Vec<HandedVersion>) -> Result<Vec<Kept>, BackupError> {
    let (now, mut last) = (now_ms(), last);
    let mut kept = Vec::with_capacity(versions.len());
    for HandedVersion { entry, digest, age_ms } in versions {
        if Some(entry.version.0) != last.version.0.checked_add(1) {
            return Err(BackupError::Answer(DecodeError::Length));
        }
        let next = Kept { at_ms: now.saturating_sub(age_ms).max(last.at_ms), digest, entry };
        last = Point::behind(&next);
        kept.push(next);
    }
    Ok(kept)
}

/// A log behind `first`, or behind the last log, if that has come further.
fn begin_log(
    folder: &BackupFolder,
    identity: &str,
    first: Point,
    damaged: &mut dyn FnMut(DamagedLog),
) -> Result<LogWriter, BackupError> {
    if let Some((path, read)) = last_log(folder, damaged)? {
        if read.last().version >= first.version {
            is_of_history(folder, first)?;
            return write_on(folder, &path, &read);
        }
        LogWriter::go_on(&path, &read)?.end()?;
    }
    LogWriter::create(&folder.log_path(first.version), identity, first)
}

/// That the logs, if they have the version of the copy `first`, have that of its history.
fn is_of_history(folder: &BackupFolder, first: Point) -> Result<(), BackupError> {
    let Some((_, path)) = folder.logs()?.into_iter().rfind(|(behind, _)| *behind <= first.version) else {
        return Ok(());
    };
    let digest = match digest_at(&path, first.version) {
        // An earlier log that is damaged is no reason to take no copy.
        Err(error) if is_damage(&error) || matches!(error, BackupError::Torn { .. }) => None,
        digest => digest?,
    };
    match first.agrees(digest) {
        true => Ok(()),
        false => Err(BackupError::Another(format!(
            "version {} differs between {} and the site's copy: there are two histories, or data are \
             corrupt. Back this site up into another directory, or compare the sites first",
            first.version,
            path.display()
        ))),
    }
}

/// The digest that a log has of that version, if it has both.
fn digest_at(path: &Path, version: Version) -> Result<Option<u64>, BackupError> {
    let mut read = LogReader::open(path)?;
    if read.last().version == version {
        return Ok(read.last().digest);
    }
    while let Some(versions) = read.next()? {
        if let Some(kept) = versions.iter().find(|kept| kept.entry.version == version) {
            return Ok(kept.digest);
        }
    }
    Ok(None)
}

/// The last log, read to its last whole record. One that holds nothing is removed; of one that is damaged what is whole is left, and `damaged` hears of it.
fn last_log(
    folder: &BackupFolder,
    damaged: &mut dyn FnMut(DamagedLog),
) -> Result<Option<(PathBuf, LogReader)>, BackupError> {
    while let Some((behind, path)) = folder.logs()?.pop() {
        match read_through(&path)? {
            LogEnd::Void => std::fs::remove_file(&path).map_err(|source| BackupError::io(&path, source))?,
            LogEnd::Whole(read) => return Ok(Some((path, read))),
            LogEnd::Damaged(read, why) => {
                let last = read.as_ref().map_or(behind, |read| read.last().version);
                let kept = mending::set_damaged_aside(&path, read.map(|read| read.bytes()))?;
                damaged(DamagedLog { why, kept, last }); // what is whole of it is read again
            }
        }
    }
    Ok(None)
}

/// What comes behind a log: in its file, or in the next.
fn write_on(folder: &BackupFolder, path: &Path, read: &LogReader) -> Result<LogWriter, BackupError> {
    match read.has_ended {
        false => LogWriter::go_on(path, read),
        true => {
            let last = read.last();
            LogWriter::create(&folder.log_path(last.version), &read.head.identity, last)
        }
    }
}

fn lock(dir: &Path) -> Result<Lock, BackupError> {
    let path = dir.join(LOCK);
    let lock = Lock::take(&path).map_err(|source| BackupError::io(&path, source))?;
    lock.ok_or_else(|| BackupError::No(format!("another process already follows into {}", dir.display())))
}

/// How far a log can be read.
enum LogEnd {
    /// It has not even a head, or has ended without a version.
    Void,
    /// To its last whole record; what may follow was half written.
    Whole(LogReader),
    /// To something that is not what was written; not at all, if that is its head.
    Damaged(Option<LogReader>, BackupError),
}

/// Reads a log to its last whole record.
fn read_through(path: &Path) -> Result<LogEnd, BackupError> {
    let mut read = match LogReader::open(path) {
        Err(BackupError::Torn { .. }) => return Ok(LogEnd::Void),
        Err(error) if is_damage(&error) => return Ok(LogEnd::Damaged(None, error)),
        opened => opened?,
    };
    loop {
        match read.next() {
            Ok(Some(_)) => {}
            Ok(None) | Err(BackupError::Torn { .. }) => {
                let is_void = read.has_ended && read.last().version == read.head.behind;
                return Ok(if is_void { LogEnd::Void } else { LogEnd::Whole(read) });
            }
            Err(error) if is_damage(&error) => return Ok(LogEnd::Damaged(Some(read), error)),
            Err(error) => return Err(error),
        }
    }
}

/// Whether bytes may be lost if the log is cut there: a last record that is as long as it says is no torn write for sure.
fn is_damage(error: &BackupError) -> bool {
    matches!(error, BackupError::Damaged { .. } | BackupError::LastChanged { .. })
}
