//! A copy in a file: `base-V.copy`.
//!
//! | record | content |
//! |---|---|
//! | 1 head | identity, what the store said of itself, when the site's answer had come (`u64`, milliseconds since 1970) |
//! | 2 piece | items in the order of their keys |
//! | 3 end | items `u64`, bytes of keys and values `u64` |

use std::path::{Path, PathBuf};

use pares_store::item_bytes;
use pares_wice::codec::Coded;
use pares_wice::{Key, Stored, Value, Version};

use super::BackupError;
use super::sealed::{SealedReader, SealedWriter};

/// The kind of such a file.
pub(super) const KIND: u8 = 1;
const HEAD: u8 = 1;
const PIECE: u8 = 2;
const END: u8 = 3;
/// Content of the last record: its kind, its format, items, bytes.
pub(super) const END_BYTES: usize = 18;
const _: () = assert!(END_BYTES == 1 + 1 + 8 + 8, "an end is its kind, its format and two counts");

/// What a copy is of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopyHead {
    /// The database.
    pub identity: String,
    /// What its store says of itself.
    pub stored: Stored,
    /// When the site's answer had come, milliseconds since 1970.
    pub taken_ms: u64,
}
pares_wice::fields! { CopyHead { identity, stored, taken_ms } }

/// What a copy came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyFacts {
    /// The version of all items.
    pub version: Version,
    /// The digest of all versions up to there.
    pub digest: u64,
    /// Items.
    pub items: u64,
    /// Bytes of their keys and values.
    pub bytes: u64,
}

/// A copy that is being written, under another name than it will have.
pub(super) struct CopyWriter {
    file: SealedWriter,
    making: PathBuf,
    path: PathBuf,
    /// What it holds so far.
    pub(super) facts: CopyFacts,
}

impl CopyWriter {
    /// Begins one at `path`; what another process left half written there goes.
    pub(super) fn create(path: &Path, head: &CopyHead) -> Result<Self, BackupError> {
        let making = path.with_added_extension("new");
        match std::fs::remove_file(&making) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(BackupError::io(&making, error));
            }
            _ => {}
        }
        let mut file = SealedWriter::create(&making, KIND)?;
        file.write(&record(HEAD, head))?;
        let Stored { version, digest, .. } = head.stored;
        let facts = CopyFacts { version, digest, items: 0, bytes: 0 };
        Ok(Self { file, making, path: path.to_owned(), facts })
    }

    /// The next items.
    pub(super) fn write(&mut self, items: &Vec<(Key, Value)>) -> Result<(), BackupError> {
        self.facts.add(items);
        self.file.write(&record(PIECE, items))
    }

    /// All has come: from now on it is a copy, also after the loss of power.
    pub(super) fn end(mut self) -> Result<CopyFacts, BackupError> {
        let end = record(END, &(self.facts.items, self.facts.bytes));
        assert!(is_end(&end), "the last record is one by which the end of a copy is known");
        assert_ne!(self.making, self.path, "half a copy does not have the name of one");
        self.file.write(&end)?;
        self.file.sync()?;
        std::fs::rename(&self.making, &self.path).map_err(|source| BackupError::io(&self.path, source))?;
        super::folder::sync(&self.path)?;
        Ok(self.facts)
    }
}

impl CopyFacts {
    fn add(&mut self, items: &[(Key, Value)]) {
        self.items += items.len() as u64;
        self.bytes += items.iter().map(item_bytes).sum::<usize>() as u64;
    }
}

/// A record of `content`.
pub(super) fn record(kind: u8, content: &impl Coded) -> Vec<u8> {
    let mut bytes = vec![kind];
    bytes.extend(content.to_bytes());
    bytes
}

/// Whether that is the content of a copy's last record.
pub(super) fn is_end(content: &[u8]) -> bool {
    content.len() == END_BYTES && content[0] == END
}

/// A copy that is read.
pub(super) struct CopyReader {
    file: SealedReader,
    pub(super) head: CopyHead,
    /// What was read so far.
    pub(super) facts: CopyFacts,
    last: Key,
    is_over: bool,
}

impl CopyReader {
    /// Opens it.
    pub(super) fn open(path: &Path) -> Result<Self, BackupError> {
        let mut file = SealedReader::open(path, KIND)?;
        let first = file.next()?.ok_or_else(|| file.damaged("it is empty"))?;
        let head = match first.split_first() {
            Some((&HEAD, content)) => CopyHead::from_bytes(content).ok(),
            _ => None,
        };
        let head = head.ok_or_else(|| file.damaged("it does not name the database that it is a copy of"))?;
        let Stored { version, digest, .. } = head.stored;
        let facts = CopyFacts { version, digest, items: 0, bytes: 0 };
        Ok(Self { file, head, facts, last: Key::new([]), is_over: false })
    }

    /// The next items; none when all have been read, and are as many as there were.
    pub(super) fn next(&mut self) -> Result<Option<Vec<(Key, Value)>>, BackupError> {
        if self.is_over {
            return Ok(None);
        }
        let record = self.file.next()?.ok_or_else(|| self.file.damaged("its end is missing"))?;
        match record.split_first() {
            Some((&PIECE, content)) => {
                let items = Vec::<(Key, Value)>::from_bytes(content);
                self.take(items.map_err(|_| self.file.damaged("a piece holds no items"))?).map(Some)
            }
            Some((&END, content)) => self.end(content).map(|()| None),
            _ => Err(self.file.damaged("a record has an unknown kind")),
        }
    }

    fn take(&mut self, items: Vec<(Key, Value)>) -> Result<Vec<(Key, Value)>, BackupError> {
        for (key, _) in &items {
            if *key <= self.last {
                return Err(self.file.damaged("keys are not in order"));
            }
            self.last = key.clone();
        }
        self.facts.add(&items);
        Ok(items)
    }

    fn end(&mut self, content: &[u8]) -> Result<(), BackupError> {
        if <(u64, u64)>::from_bytes(content) != Ok((self.facts.items, self.facts.bytes)) {
            return Err(self.file.damaged("its number of items is wrong"));
        }
        if self.file.next()?.is_some() {
            return Err(self.file.damaged("data follow its end"));
        }
        self.is_over = true;
        Ok(())
    }

    /// Reads the rest, and says what it came to.
    pub(super) fn verify(mut self) -> Result<CopyFacts, BackupError> {
        while self.next()?.is_some() {}
        assert!(self.is_over, "a copy is whole when its end was read");
        Ok(self.facts)
    }
}
