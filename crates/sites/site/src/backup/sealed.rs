//! Files of sealed records: nothing of what they hold can change, go or be added unseen.
//!
//! A checksum for each record finds what changed in it, and not that a whole record is gone, or stands elsewhere, or is another file's. So each
//! checksum continues the one before, and a file that is whole ends with a record that says so.
//!
//! ```text
//!   file      | "PARESBAK" | form u32 | kind u8 | crc u32 | record | record | ... | end
//!   record    | length u32 | crc u32 | content |     crc32c of the crc before, length and content, the first byte of which is its kind
//! ```
//! A file that grows has no end yet. What a process that died has half written behind its last record is shorter than it says, and nothing whole lies behind it, since each record
//! is on the disk before the next one is written. A loss of power may leave it as long as it says and with zeros in it, for pages reach the disk in any order: that cannot be told
//! from damage of the last record, and has an error of its own.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use pares_os::open_file;

use super::BackupError;
use super::hose::FRAME_MAX;

const MAGIC: &[u8; 8] = b"PARESBAK";
/// The form of these files. It changes when an older release could no longer read them.
const FORM: u32 = 1;
const HEAD_BYTES: usize = 17;
pub(super) const RECORD_HEAD_BYTES: usize = 8;
const _: () = assert!(RECORD_HEAD_BYTES == 4 + 4, "a record begins with its length and its checksum");
/// Longest content, bytes: that of a reply.
const CONTENT_MAX: u32 = 8 << 20;
const _: () = assert!(HEAD_BYTES == MAGIC.len() + 4 + 1 + 4, "a head is magic, form, kind and checksum");
const _: () = assert!(FRAME_MAX <= CONTENT_MAX as usize, "a record has room for all that one reply has");

/// A file that is written, record by record.
pub(super) struct SealedWriter {
    file: File,
    path: PathBuf,
    crc: u32,
    bytes: u64,
}

impl SealedWriter {
    /// Makes the file, which must not be there.
    pub(super) fn create(path: &Path, kind: u8) -> Result<Self, BackupError> {
        let io = |source| BackupError::io(path, source);
        let mut file = File::create_new(path).map_err(io)?;
        let head = head(kind);
        let crc = crc32c::crc32c(&head);
        file.write_all(&[&head[..], &crc.to_le_bytes()].concat()).map_err(io)?;
        Ok(Self { file, path: path.to_owned(), crc, bytes: HEAD_BYTES as u64 })
    }

    /// Cuts the file at `at`, up to where `crc` goes, and continues there.
    fn go_on(path: &Path, crc: u32, at: u64) -> Result<Self, BackupError> {
        assert!(at >= HEAD_BYTES as u64, "a file is gone on with behind its head");
        let io = |source| BackupError::io(path, source);
        let mut file = File::options().write(true).open(path).map_err(io)?;
        file.set_len(at).map_err(io)?;
        file.seek(SeekFrom::Start(at)).map_err(io)?;
        Ok(Self { file, path: path.to_owned(), crc, bytes: at })
    }

    /// Appends a record.
    ///
    /// # Panics
    /// If it is longer than a record may be.
    pub(super) fn write(&mut self, content: &[u8]) -> Result<(), BackupError> {
        let is_of_a_kind = content.first().is_some_and(|kind| (1..=3).contains(kind));
        assert!(is_of_a_kind, "a record begins with its kind");
        let length = u32::try_from(content.len()).ok().filter(|length| *length <= CONTENT_MAX);
        let length = length.expect("a reply is no longer than a record").to_le_bytes();
        self.crc = sum(self.crc, length, content);
        let record = [&length[..], &self.crc.to_le_bytes(), content].concat();
        self.bytes += record.len() as u64;
        self.file.write_all(&record).map_err(|source| BackupError::io(&self.path, source))
    }

    /// What was written survives the loss of power from now on.
    pub(super) fn sync(&self) -> Result<(), BackupError> {
        self.file.sync_data().map_err(|source| BackupError::io(&self.path, source))
    }

    /// Bytes of the file so far.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// A file that is read, record by record.
pub(super) struct SealedReader<R = BufReader<File>> {
    from: R,
    path: PathBuf,
    crc: u32,
    /// Where the next record begins, and the last one that was read.
    at: u64,
    began: u64,
}

impl SealedReader {
    /// Opens a file of that kind.
    pub(super) fn open(path: &Path, kind: u8) -> Result<Self, BackupError> {
        let file =
            open_file(File::options().read(true), path).map_err(|source| BackupError::io(path, source))?;
        Self::over(BufReader::with_capacity(64 << 10, file), path, kind)
    }
}

impl<R: Read> SealedReader<R> {
    pub(super) fn over(mut from: R, path: &Path, kind: u8) -> Result<Self, BackupError> {
        let mut bytes = [0; HEAD_BYTES];
        let read = read_all(&mut from, &mut bytes).map_err(|source| BackupError::io(path, source))?;
        let damaged = |at, what: &str| BackupError::damaged(path, at, what);
        let (head, crc) = bytes.split_at(HEAD_BYTES - 4);
        if read < HEAD_BYTES {
            return Err(BackupError::Torn { path: path.to_owned(), at: 0 });
        }
        if head[..8] != MAGIC[..] {
            return Err(damaged(0, "it is not a backup file"));
        }
        let crc = u32::from_le_bytes(crc.try_into().expect("four bytes"));
        if crc32c::crc32c(head) != crc {
            return Err(damaged(0, "its beginning has changed"));
        }
        let form = u32::from_le_bytes(head[8..12].try_into().expect("four bytes"));
        if form != FORM {
            return Err(BackupError::Form { path: path.to_owned(), found: form, known: FORM });
        }
        if head[12] != kind {
            return Err(damaged(12, "it is a file of another kind, under this name"));
        }
        Ok(Self { from, path: path.to_owned(), crc, at: HEAD_BYTES as u64, began: 0 })
    }

    /// The next record; none where the file ends.
    ///
    /// # Errors
    /// [`BackupError::Torn`] if it ends in the middle of a record, [`BackupError::LastChanged`] if the last one is not what was written,
    /// [`BackupError::Damaged`] if another one is not.
    pub(super) fn next(&mut self) -> Result<Option<Vec<u8>>, BackupError> {
        let mut head = [0; RECORD_HEAD_BYTES];
        self.began = self.at;
        let read = self.fill(&mut head)?;
        if read == 0 {
            return Ok(None);
        }
        let [length, crc] = [0, 4].map(|at| *head[at..].first_chunk::<4>().expect("four bytes"));
        let (size, crc) = (u32::from_le_bytes(length), u32::from_le_bytes(crc));
        if size == 0 {
            return Err(self.empty(crc)?);
        }
        if read == RECORD_HEAD_BYTES && size > CONTENT_MAX {
            return Err(self.damaged("a record is longer than the maximum"));
        }
        let mut content = vec![0; if read < RECORD_HEAD_BYTES { 0 } else { size as usize }];
        let filled = self.fill(&mut content)?;
        if read < RECORD_HEAD_BYTES || filled < content.len() {
            return Err(self.cut_off(&content[..filled], crc));
        }
        let sum = sum(self.crc, length, &content);
        if sum != crc {
            let tail = self.with_rest(content)?;
            return Err(self.changed(&tail, &[crc, sum]));
        }
        self.crc = sum;
        self.at += (RECORD_HEAD_BYTES + content.len()) as u64;
        Ok(Some(content))
    }

    /// That a record with this checksum has no more than these bytes.
    fn cut_off(&self, content: &[u8], crc: u32) -> BackupError {
        match holds_a_record(content, crc) {
            true => self.damaged("a record's length exceeds the file, although complete records follow it"),
            false => BackupError::Torn { path: self.path.clone(), at: self.at },
        }
    }

    /// That a record with this checksum says to be empty, as none is. Zeros alone are what a loss of power may leave, if the file was made longer and what was to be there not
    /// written.
    fn empty(&mut self, crc: u32) -> Result<BackupError, BackupError> {
        let tail = self.with_rest(Vec::new())?;
        Ok(match tail.iter().all(|byte| *byte == 0) && self.has_only_zeros_left()? {
            true => BackupError::Torn { path: self.path.clone(), at: self.at },
            false => self.changed(&tail, &[crc]),
        })
    }

    /// That a record, in whose place this stands up to the end of the file, is not what was written: its checksum should be one of these.
    fn changed(&self, tail: &[u8], sums: &[u32]) -> BackupError {
        let is_last =
            tail.len() <= CONTENT_MAX as usize && !sums.iter().any(|sum| holds_a_record(tail, *sum));
        match is_last {
            true => BackupError::LastChanged { path: self.path.clone(), at: self.at },
            false => self.damaged("a record has changed"),
        }
    }

    /// This and what follows it in the file, or more than a record may hold.
    fn with_rest(&mut self, mut content: Vec<u8>) -> Result<Vec<u8>, BackupError> {
        assert!(content.len() <= CONTENT_MAX as usize, "what was read is no longer than a record may be");
        let most = u64::from(CONTENT_MAX) + 1 - content.len() as u64;
        let read = self.from.by_ref().take(most).read_to_end(&mut content);
        read.map_err(|source| BackupError::io(&self.path, source))?;
        Ok(content)
    }

    /// Whether nothing else is left of the file.
    fn has_only_zeros_left(&mut self) -> Result<bool, BackupError> {
        let mut bytes = [0; 4_096];
        loop {
            match self.fill(&mut bytes)? {
                0 => return Ok(true),
                read if bytes[..read].iter().any(|byte| *byte != 0) => return Ok(false),
                _ => {}
            }
        }
    }

    fn fill(&mut self, bytes: &mut [u8]) -> Result<usize, BackupError> {
        read_all(&mut self.from, bytes).map_err(|source| BackupError::io(&self.path, source))
    }

    /// That the file is not what it was, at the record that was read last.
    pub(super) fn damaged(&self, what: &str) -> BackupError {
        BackupError::damaged(&self.path, self.began, what)
    }

    /// Where the record begins that was read last.
    pub(super) fn began(&self) -> u64 {
        self.began
    }

    /// Where what was read ends.
    pub(super) fn at(&self) -> u64 {
        self.at
    }

    /// The same file, to be written on behind the last record read.
    pub(super) fn go_on(&self, path: &Path) -> Result<SealedWriter, BackupError> {
        assert!(self.began <= self.at, "a file is continued behind the last record that was read");
        SealedWriter::go_on(path, self.crc, self.at)
    }
}

fn head(kind: u8) -> [u8; HEAD_BYTES - 4] {
    let mut head = [0; HEAD_BYTES - 4];
    head[..8].copy_from_slice(MAGIC);
    head[8..12].copy_from_slice(&FORM.to_le_bytes());
    head[12] = kind;
    head
}

/// Whether a whole record begins somewhere in `bytes`: its checksum continues `before`, or that of the next continues its own.
fn holds_a_record(bytes: &[u8], before: u32) -> bool {
    (0..bytes.len()).any(|at| {
        let Some((crc, is_next, behind)) = record_at(&bytes[at..], before) else { return false };
        is_next || record_at(behind, crc).is_some_and(|(_, is_next, _)| is_next)
    })
}

/// What would be a record at the beginning of `bytes`: its checksum, whether that continues `before`, and what lies behind.
fn record_at(bytes: &[u8], before: u32) -> Option<(u32, bool, &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    let (crc, rest) = rest.split_first_chunk::<4>()?;
    let (content, behind) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
    let is_of_a_kind = content.first().is_some_and(|kind| (1..=3).contains(kind));
    let crc = u32::from_le_bytes(*crc);
    is_of_a_kind.then(|| (crc, sum(before, *length, content) == crc, behind))
}

fn sum(before: u32, length: [u8; 4], content: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c_append(before, &length), content)
}

/// Fills `bytes` as far as there is something; how far.
fn read_all(from: &mut impl Read, bytes: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < bytes.len() {
        match from.read(&mut bytes[filled..]) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}
