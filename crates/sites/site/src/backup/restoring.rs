//! Stores of another database, filled from a copy and the versions behind it.
//!
//! Put back into the directories of the first database, a backup makes sites that have forgotten what they promised. So it is the beginning of another: under
//! an identity of its own, with the version it was restored up to in every site's configuration ([`SitesConfig::begins`]) and these items in every site's
//! store. Until the configuration is written nothing of it can be started.
//!
//! Each version is executed again on the items before it, as a site does it, and its digest compared with the one that a site of the first database had: what
//! has changed in the base, in the log or on the way shows there, though every checksum fits.

use std::path::{Path, PathBuf};

use pares_store::postgres::claimed;
use pares_store::{Mark, Store, item_bytes};
use pares_wice::codec::Coded;
use pares_wice::{Era, Key, SiteId, Stored, Value, Version, Write};

use super::BackupError;
use super::copy_file::CopyReader;
use super::folder::{BackupFolder, Next, is_of, next_of};
use super::version_log::{Kept, LogReader, Point};
use crate::applier::{apply_versions, in_one_batch};
use crate::config::{SitesConfig, directory_of};
use crate::process::{database_of, open_store};

/// Bytes loaded into a store at once.
const LOAD_BYTES: usize = 4 << 20;
/// Versions written at once, and bytes of them, about.
const BATCH_MAX: usize = 4_096;
const BATCH_BYTES: usize = 8 << 20;

/// Up to where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// All there is.
    Newest,
    /// That version.
    Version(Version),
    /// What had been stored then, milliseconds since 1970.
    Moment(u64),
}

/// What is to be restored.
#[derive(Clone, Debug)]
pub struct Restoration {
    base: PathBuf,
    /// The logs to be read, in order, and the versions they begin behind.
    logs: Vec<(Version, PathBuf)>,
    /// Versions of bases behind the one that is taken, in order.
    later: Vec<Version>,
    until: Until,
}

/// What a store was filled with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Restored {
    /// The version of its items.
    pub version: Version,
    /// The digest of all versions up to there.
    pub digest: u64,
    /// The version of the base.
    pub base: Version,
    /// Items of the base.
    pub items: u64,
    /// When the last version was stored, milliseconds since 1970.
    pub at_ms: u64,
    /// The byte of the last log from which on it holds no whole record, if all of it was wanted and something stands there.
    pub torn_at: Option<u64>,
    /// Whether the backup was read to its end, and ends with that version.
    pub is_last: bool,
}

impl Restoration {
    /// From the latest base in `folder` that is not beyond `until`, and the logs behind it, which are read.
    ///
    /// # Errors
    /// If there is none, or the logs are damaged or do not go so far. Nothing is written by then.
    pub fn plan(folder: &BackupFolder, until: Until) -> Result<Self, BackupError> {
        let (mut found, mut later) = (None, Vec::new());
        for (version, path) in folder.bases()?.into_iter().rev() {
            let is_before = match until {
                Until::Newest => true,
                Until::Version(until) => version <= until,
                Until::Moment(until) => CopyReader::open(&path)?.head.taken_ms <= until,
            };
            if is_before {
                found = Some((version, path));
                break;
            }
            later.insert(0, version);
        }
        let (version, base) = found.ok_or_else(|| {
            let dir = folder.path().display();
            BackupError::Absent(format!("{dir} has no base, or none old enough"))
        })?;
        folder.takes(&CopyReader::open(&base)?.head.identity)?;
        assert!(later.is_sorted(), "bases are in the order of their versions");
        let logs = folder.logs()?;
        assert!(logs.is_sorted_by_key(|(behind, _)| *behind), "logs are in their order");
        let first = logs.partition_point(|(behind, _)| *behind <= version).saturating_sub(1);
        let plan = Self { base, logs: logs.into_iter().skip(first).collect(), later, until };
        plan.check()?;
        Ok(plan)
    }

    /// Whether the logs lead from the base to where they should.
    fn check(&self) -> Result<(), BackupError> {
        let base = CopyReader::open(&self.base)?;
        let mut rebuilding = Rebuilding::behind(None, &base);
        let read = self.read_logs(&base.head.identity, &mut rebuilding)?;
        self.must_be_all(read, rebuilding.restored).map(|_| ())
    }

    /// Fills the store of one site of the new database, which must be empty. `progress` hears of bytes of items and of versions.
    ///
    /// # Errors
    /// If the store is not empty, or the backup is not what it was, or does not go so far. The store is of no use then.
    pub fn fill(
        &self,
        config: &SitesConfig,
        site: SiteId,
        dir: &Path,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Restored, BackupError> {
        let database = database_of(config, site)?;
        let store = open_store(&directory_of(dir, site), database.as_ref())?;
        self.fill_store(&*store, progress)
    }

    /// Databases that bear the names of sites of this configuration already: of no use to any other, should nothing come of it.
    ///
    /// # Errors
    /// If the configuration names no such sites.
    pub fn claimed(config: &SitesConfig) -> Result<Vec<String>, BackupError> {
        let mut names = Vec::new();
        for place in &config.sites {
            names.extend(database_of(config, place.id())?.as_ref().and_then(claimed));
        }
        Ok(names)
    }

    /// The same for a store that is open.
    ///
    /// # Errors
    /// As [`Restoration::fill`].
    pub fn fill_store(
        &self,
        store: &dyn Store,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Restored, BackupError> {
        let (identity, mut rebuilding) = self.load(store, progress)?;
        let read = self.read_logs(&identity, &mut rebuilding)?;
        rebuilding.write()?;
        assert!(rebuilding.pending.is_empty(), "all that was taken is written");
        store.flush()?;
        self.must_be_all(read, rebuilding.restored)
    }

    /// What was restored, if that is what was wanted, when the logs have been read so far.
    fn must_be_all(&self, read: LogRead, last: Restored) -> Result<Restored, BackupError> {
        assert!(last.base <= last.version, "what is restored lies at its base or behind it");
        let later = || self.later.iter().copied().find(|base| *base > last.version);
        let next = match read {
            LogRead::Enough => None,
            LogRead::Gap(next) => Some(later().map_or(next, |base| base.min(next))),
            LogRead::All => later(),
        };
        match (self.until, next) {
            (Until::Version(until), _) if until == last.version => Ok(last),
            (_, Some(next)) => Err(BackupError::Gap { last: last.version, last_ms: last.at_ms, next }),
            (Until::Version(until), None) => Err(BackupError::Absent(format!(
                "this backup ends at version {}, before {until}{}",
                last.version,
                last.torn_at.map_or("", |_| ": its last log ends with an incomplete record")
            ))),
            (Until::Newest | Until::Moment(_), None) => {
                Ok(Restored { is_last: read == LogRead::All, ..last })
            }
        }
    }

    fn load<'a>(
        &self,
        store: &'a dyn Store,
        progress: &mut dyn FnMut(u64),
    ) -> Result<(String, Rebuilding<'a>), BackupError> {
        let mut base = CopyReader::open(&self.base)?;
        let (mut pending, mut bytes): (Vec<(Key, Value)>, _) = (Vec::new(), 0);
        while let Some(items) = base.next()? {
            bytes += items.iter().map(item_bytes).sum::<usize>();
            pending.extend(items);
            if bytes >= LOAD_BYTES {
                store.load(&pending, None)?;
                progress(bytes as u64);
                pending.clear();
                bytes = 0;
            }
        }
        let rebuilding = Rebuilding::behind(Some(store), &base);
        let Restored { version, digest, .. } = rebuilding.restored;
        let meta = stored(version, digest).to_bytes();
        store.load(&pending, Some(&Mark { whole: true, version, meta }))?;
        progress(bytes as u64);
        Ok((base.head.identity, rebuilding))
    }

    /// Takes the versions of all logs that are wanted.
    fn read_logs(&self, identity: &str, rebuilding: &mut Rebuilding<'_>) -> Result<LogRead, BackupError> {
        let count = self.logs.len();
        for (at, (behind, path)) in self.logs.iter().enumerate() {
            if *behind > rebuilding.restored.version {
                return Ok(LogRead::Gap(*behind));
            }
            match self.read_log(path, at + 1 == count, identity, rebuilding)? {
                LogRead::All => {}
                ended => return Ok(ended),
            }
        }
        Ok(LogRead::All)
    }

    /// Takes the versions of a log that are wanted.
    fn read_log(
        &self,
        path: &Path,
        is_last: bool,
        identity: &str,
        rebuilding: &mut Rebuilding<'_>,
    ) -> Result<LogRead, BackupError> {
        let mut read = match LogReader::open(path) {
            Err(error) if is_last && error.tail().is_some() => {
                rebuilding.restored.torn_at = error.tail();
                return Ok(LogRead::All);
            }
            opened => opened?,
        };
        is_of(identity, &read.head.identity, path)?;
        match rebuilding.goes_on(&read, path)? {
            true => self.take_log(&mut read, is_last, rebuilding),
            false => Ok(LogRead::Gap(read.head.behind)),
        }
    }

    /// The same of one that continues from what was taken.
    fn take_log(
        &self,
        read: &mut LogReader,
        is_last: bool,
        rebuilding: &mut Rebuilding<'_>,
    ) -> Result<LogRead, BackupError> {
        rebuilding.restored.torn_at = loop {
            match next_of(read, is_last)? {
                Next::Versions(versions) => {
                    if !self.take_all(versions, read.began(), rebuilding)? {
                        return Ok(LogRead::Enough);
                    }
                }
                Next::End => break None,
                Next::Torn(at) => break Some(at),
            }
        };
        Ok(LogRead::All)
    }

    /// Takes those that are wanted of the record at byte `at`; whether more may be.
    fn take_all(
        &self,
        versions: Vec<Kept>,
        at: u64,
        rebuilding: &mut Rebuilding<'_>,
    ) -> Result<bool, BackupError> {
        for kept in versions {
            if self.is_beyond(&kept) {
                return Ok(false);
            }
            rebuilding.take(kept, at)?;
            if self.until == Until::Version(rebuilding.restored.version) {
                return Ok(false); // whatever lies behind it
            }
        }
        Ok(true)
    }

    fn is_beyond(&self, kept: &Kept) -> bool {
        match self.until {
            Until::Newest => false,
            Until::Version(until) => kept.entry.version > until,
            Until::Moment(until) => kept.at_ms > until,
        }
    }
}

/// How the reading of logs has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LogRead {
    /// All that there is was wanted.
    All,
    /// What comes next is beyond what is wanted.
    Enough,
    /// Versions are missing before the next log, which begins behind that one: the follower was away for too long, or a file is gone.
    Gap(Version),
}

/// A store that is being filled.
struct Rebuilding<'a> {
    /// None if it is only looked whether all is there.
    store: Option<&'a dyn Store>,
    /// What it holds when `pending` is written; its digest is that of what is written.
    restored: Restored,
    /// Versions of the log `path`, each with the byte at which its record begins.
    pending: Vec<(Kept, u64)>,
    pending_bytes: usize,
    path: PathBuf,
}

impl<'a> Rebuilding<'a> {
    /// With what was read of a base.
    fn behind(store: Option<&'a dyn Store>, base: &CopyReader) -> Self {
        let Stored { version, digest, .. } = base.head.stored;
        let (items, at_ms) = (base.facts.items, base.head.taken_ms);
        let restored =
            Restored { version, digest, base: version, items, at_ms, torn_at: None, is_last: false };
        Self { store, restored, pending: Vec::new(), pending_bytes: 0, path: PathBuf::new() }
    }

    /// Whether a log continues from what was taken, or from before.
    fn goes_on(&mut self, read: &LogReader, path: &Path) -> Result<bool, BackupError> {
        self.write()?;
        assert!(self.pending.is_empty(), "what was taken of a log is written before the next is begun");
        path.clone_into(&mut self.path);
        if read.head.behind < self.restored.version {
            return Ok(true);
        }
        let Restored { version, digest, at_ms, .. } = self.restored;
        let here = Point { version, digest: self.store.map(|_| digest), at_ms };
        if read.head.behind == version && !here.agrees(read.head.digest) {
            return Err(self.differs(version, read.began()));
        }
        Ok(read.head.behind == version)
    }

    /// Takes the next version, or one that the base has.
    fn take(&mut self, kept: Kept, at: u64) -> Result<(), BackupError> {
        if kept.entry.version <= self.restored.version {
            return Ok(());
        }
        let next = self.restored.version.next();
        assert_eq!(kept.entry.version, next, "versions are taken without a gap");
        (self.restored.version, self.restored.at_ms) = (kept.entry.version, kept.at_ms);
        self.pending_bytes += kept.entry.held_bytes();
        self.pending.push((kept, at));
        let is_enough = self.pending.len() >= BATCH_MAX || self.pending_bytes >= BATCH_BYTES;
        if is_enough { self.write() } else { Ok(()) }
    }

    fn differs(&self, version: Version, at: u64) -> BackupError {
        BackupError::Digest { version, path: self.path.clone(), at }
    }

    /// Writes what was taken, and compares.
    fn write(&mut self) -> Result<(), BackupError> {
        let mut kept = std::mem::take(&mut self.pending);
        let last = kept.last().map_or(self.restored.version, |(last, _)| last.entry.version);
        assert_eq!(last, self.restored.version, "what is written leads to the version that was taken last");
        self.pending_bytes = 0;
        let Some(store) = self.store else { return Ok(()) };
        while !kept.is_empty() {
            let mut batch: Vec<(Version, Vec<Write>)> =
                kept.iter().map(|(kept, _)| (kept.entry.version, kept.entry.writes().to_vec())).collect();
            in_one_batch(&mut batch);
            let rest = kept.split_off(batch.len());
            let last = kept.last().expect("a batch has a version").0.entry.version;
            let digests = apply_versions(store, batch, stored(last, 0))?;
            assert_eq!(digests.len(), kept.len(), "each version has a digest");
            for ((kept, at), digest) in kept.iter().zip(&digests) {
                if kept.digest.is_some_and(|theirs| theirs != *digest) {
                    return Err(self.differs(kept.entry.version, *at));
                }
            }
            self.restored.digest = digests.last().copied().unwrap_or(self.restored.digest);
            kept = rest;
        }
        Ok(())
    }
}

/// What the store of a site says of itself that has not begun.
fn stored(version: Version, digest: u64) -> Stored {
    Stored { version, position: 0, era: Era::default(), digest }
}
