//! Versions in files: `log-V.versions` begins behind version V, and is followed by another when it has become long.
//!
//! | record | content |
//! |---|---|
//! | 1 head | identity, the version it begins behind `u64`, the digest there (if it is known) |
//! | 2 versions | of each: when the site had stored it (`u64`, milliseconds since 1970), digest (if it is known), entry |
//! | 3 end | the last version `u64`, its digest: another file continues |

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;

use pares_wice::codec::Coded;
use pares_wice::{Entry, Version};

use super::BackupError;
use super::copy_file::record;
use super::sealed::{RECORD_HEAD_BYTES, SealedReader, SealedWriter};

/// The kind of such a file.
pub(super) const KIND: u8 = 2;
const HEAD: u8 = 1;
const VERSIONS: u8 = 2;
const END: u8 = 3;
/// Bytes of the last record, at most: length, checksum, kind, format, version, digest.
const END_BYTES_MAX: u64 = 4 + 4 + 1 + 1 + 8 + 9;

/// A version, and when it was there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Kept {
    pub(super) at_ms: u64,
    pub(super) digest: Option<u64>,
    pub(super) entry: Arc<Entry>,
}

/// A place in the history: a version, its digest if that is known, and when that was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Point {
    pub(super) version: Version,
    pub(super) digest: Option<u64>,
    pub(super) at_ms: u64,
}

impl Point {
    /// Behind `kept`.
    pub(super) fn behind(kept: &Kept) -> Self {
        Self { version: kept.entry.version, digest: kept.digest, at_ms: kept.at_ms }
    }

    /// Whether the two may be the same: no digest that both know differs.
    pub(super) fn agrees(&self, digest: Option<u64>) -> bool {
        self.digest.zip(digest).is_none_or(|(one, other)| one == other)
    }
}

/// What a file begins with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LogHead {
    pub(super) identity: String,
    pub(super) behind: Version,
    pub(super) digest: Option<u64>,
}
pares_wice::fields! {
    Kept { at_ms, digest, entry }
    LogHead { identity, behind, digest }
}

/// A file that grows.
pub(super) struct LogWriter {
    file: SealedWriter,
    last: Point,
    has_ended: bool,
}

impl LogWriter {
    /// Begins one at `path`, behind `last`.
    pub(super) fn create(path: &Path, identity: &str, last: Point) -> Result<Self, BackupError> {
        let mut file = SealedWriter::create(path, KIND)?;
        let head = LogHead { identity: identity.to_owned(), behind: last.version, digest: last.digest };
        file.write(&record(HEAD, &head))?;
        file.sync()?;
        super::folder::sync(path)?;
        Ok(Self { file, last, has_ended: false })
    }

    /// Continues where `read` has come to; what stands behind that was half written, and goes.
    pub(super) fn go_on(path: &Path, read: &LogReader) -> Result<Self, BackupError> {
        assert!(read.last.version >= read.head.behind, "a log ends where it begins, or behind that");
        Ok(Self { file: read.file.go_on(path)?, last: read.last, has_ended: read.has_ended })
    }

    /// The next versions; they survive the loss of power from then on.
    ///
    /// # Panics
    /// If they do not follow the last one, or it has ended.
    pub(super) fn write(&mut self, versions: &Vec<Kept>) -> Result<(), BackupError> {
        assert!(!self.has_ended, "nothing is written behind an end");
        assert!(!versions.is_empty(), "a record holds a version at least");
        for kept in versions {
            assert_eq!(kept.entry.version, self.last.version.next(), "versions are kept without a gap");
            self.last = Point::behind(kept);
        }
        self.file.write(&record(VERSIONS, versions))?;
        self.file.sync()
    }

    /// Nothing more comes into this file; that survives the loss of power from then on. Ended again it stays as it is.
    pub(super) fn end(&mut self) -> Result<(), BackupError> {
        if self.has_ended {
            return Ok(());
        }
        let end = record(END, &(self.last.version, self.last.digest));
        let bytes = (RECORD_HEAD_BYTES + end.len()) as u64;
        assert!(bytes <= END_BYTES_MAX, "the end of a log lies in the bytes that are read for it");
        self.file.write(&end)?;
        self.has_ended = true;
        self.file.sync()
    }

    pub(super) fn last(&self) -> Point {
        self.last
    }

    pub(super) fn bytes(&self) -> u64 {
        self.file.bytes()
    }
}

/// The version with which a file says that it ends, by its last bytes alone; none if it says nothing. Whether all of it is as it was written is not looked at.
pub(super) fn end_of(path: &Path) -> Result<Option<Version>, BackupError> {
    let io = |source| BackupError::io(path, source);
    let mut file = pares_os::open_file(File::options().read(true), path).map_err(io)?;
    let length = file.metadata().map_err(io)?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(END_BYTES_MAX))).map_err(io)?;
    let mut tail = Vec::new();
    file.read_to_end(&mut tail).map_err(io)?;
    // A record is its length, its checksum and its content; a digest may be in it or not.
    let ends = (0..tail.len()).filter_map(|from| {
        let (length, rest) = tail[from..].split_first_chunk::<4>()?;
        let content =
            rest.get(4..).filter(|content| content.len() as u64 == u64::from(u32::from_le_bytes(*length)))?;
        let content = content.strip_prefix(&[END])?;
        <(Version, Option<u64>)>::from_bytes(content).ok()
    });
    Ok(ends.map(|(version, _)| version).next())
}

/// A file that is read.
pub(super) struct LogReader {
    file: SealedReader,
    pub(super) head: LogHead,
    last: Point,
    /// Whether it has come to its end, behind which another file continues.
    pub(super) has_ended: bool,
}

impl LogReader {
    /// Opens it.
    pub(super) fn open(path: &Path) -> Result<Self, BackupError> {
        let mut file = SealedReader::open(path, KIND)?;
        let torn = || BackupError::Torn { path: path.to_owned(), at: 0 };
        let first = file.next()?.ok_or_else(torn)?;
        let head = match first.split_first() {
            Some((&HEAD, content)) => LogHead::from_bytes(content).ok(),
            _ => None,
        };
        let head = head.ok_or_else(|| file.damaged("it does not name the version that it follows"))?;
        let last = Point { version: head.behind, digest: head.digest, at_ms: 0 };
        Ok(Self { file, head, last, has_ended: false })
    }

    /// The next versions; none where the file ends. [`LogReader::has_ended`] says whether another continues.
    pub(super) fn next(&mut self) -> Result<Option<Vec<Kept>>, BackupError> {
        let Some(record) = self.file.next()? else { return Ok(None) };
        match record.split_first() {
            _ if self.has_ended => Err(self.file.damaged("data follow its end")),
            Some((&VERSIONS, content)) => {
                let versions = Vec::<Kept>::from_bytes(content);
                self.take(versions.map_err(|_| self.file.damaged("a record contains no versions"))?).map(Some)
            }
            Some((&END, content)) => {
                let end = <(Version, Option<u64>)>::from_bytes(content);
                if end != Ok((self.last.version, self.last.digest)) {
                    return Err(self.file.damaged("its last version differs from its header"));
                }
                self.has_ended = true;
                self.next()
            }
            _ => Err(self.file.damaged("a record has an unknown kind")),
        }
    }

    fn take(&mut self, versions: Vec<Kept>) -> Result<Vec<Kept>, BackupError> {
        for kept in &versions {
            if Some(kept.entry.version.0) != self.last.version.0.checked_add(1) {
                return Err(self.file.damaged("a version does not follow the previous one"));
            }
            self.last = Point::behind(kept);
        }
        Ok(versions)
    }

    /// The last version read.
    pub(super) fn last(&self) -> Point {
        self.last
    }

    /// Bytes of the file up to where it was read.
    pub(super) fn bytes(&self) -> u64 {
        self.file.at()
    }

    /// Where the record begins that was read last.
    pub(super) fn began(&self) -> u64 {
        self.file.began()
    }

    /// That nothing says that it ends here.
    pub(super) fn without_end(&self) -> BackupError {
        self.file.damaged("its end is missing")
    }
}
