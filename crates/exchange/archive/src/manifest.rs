//! A business day as closed files: which they are, and what they must hash to.
//!
//! A recorder begins another segment when a day has ended in all shards, so the segments before it are whole and will never change.
//! A manifest beside the log names them, and carries a hash of itself ([`seal`](crate::seal)). It says nothing that the log does not: lost or damaged, it is
//! made again.
//!
//! ```text
//! recorder-R/days/2026-11-23.json            the manifest
//! recorder-R/days/2026-11-23/S-P.ckpt        of each shard, the newest checkpoint there was at the day's end
//! recorder-R/days/2026-11-23.archived        where it was archived (`archive`)
//!
//!    day before            this day                     next day
//!  ...seg | seg seg seg ... DayEnded(last shard) pad | BeginDay ...
//!         ^ from                                      ^ until
//! ```

use std::fs;
use std::io::Read;
use std::path::Path;

use pares_types::BusinessDay;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::ArchiveError;
use crate::seal::{Flaw, open, seal};

/// A file of a day.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DayFile {
    /// Its name: a segment in the log's directory, or a checkpoint in the day's.
    pub name: String,
    /// Its length.
    pub bytes: u64,
    /// SHA-256 of all of it, hexadecimal.
    pub sha256: String,
}

/// A shard's part of a day.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DayShard {
    /// The shard.
    pub shard: u16,
    /// Where the day began.
    pub first: u64,
    /// Where it ended.
    pub last: u64,
    /// Of its books, statistics and totals at the end.
    pub state_hash: String,
}

/// A closed day of a recorder's log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// The date.
    pub day: String,
    /// Where its first segment begins.
    pub from: u64,
    /// Where its last segment ends.
    pub until: u64,
    /// Bytes of each segment.
    pub segment_bytes: u64,
    /// Where a reader must begin that looks for the next day.
    pub next_from: u64,
    /// By shard.
    pub shards: Vec<DayShard>,
    /// In the order of the log.
    pub segments: Vec<DayFile>,
    /// At most one of each shard.
    pub checkpoints: Vec<DayFile>,
    /// The system's configuration as it was archived; a recorder's own manifest says nothing of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub configuration: Option<DayFile>,
}

impl Manifest {
    /// The file that says so.
    #[must_use]
    pub fn text(&self) -> Vec<u8> {
        seal(self)
    }

    /// A manifest from outside, if it is believed.
    pub(crate) fn parse(text: &[u8]) -> Result<Self, Flaw> {
        let read: Self = open(text)?;
        let is_name = |file: &DayFile| !file.name.contains('/') && !file.name.starts_with('.');
        let is_possible = read.day().is_ok()
            && read.segment_bytes > 0
            && read.from <= read.until
            && read.has_its_segments()
            && read.segments.iter().chain(&read.checkpoints).all(is_name);
        if is_possible { Ok(read) } else { Err(Flaw::Impossible) }
    }

    /// The same, if it is of that day.
    pub(crate) fn parse_of(day: &str, text: &[u8]) -> Result<Self, Flaw> {
        let read = Self::parse(text)?;
        if read.day == day { Ok(read) } else { Err(Flaw::OtherDay(read.day)) }
    }

    /// Whether its segments are those between its ends, none left out.
    fn has_its_segments(&self) -> bool {
        let (first, step) = (self.from - self.from % self.segment_bytes, self.segment_bytes);
        let count = (self.until - first).div_ceil(step);
        count == self.segments.len() as u64
            && (0..count).zip(&self.segments).all(|(at, file)| file.name == segment_name(first + at * step))
    }

    /// Whether it is of the same history: what was recorded on that day, wherever it lies in the log.
    pub(crate) fn is_same_day(&self, other: &Self) -> bool {
        (&self.day, &self.shards) == (&other.day, &other.shards)
    }

    /// The date.
    ///
    /// # Errors
    /// If it is none.
    pub fn day(&self) -> Result<BusinessDay, ArchiveError> {
        self.day.parse().map_err(|error| ArchiveError::Refused(format!("{}: {error}", self.day)))
    }
}

/// The name of the segment that begins there.
pub(crate) fn segment_name(base: u64) -> String {
    format!("{base:020}.seg")
}

impl DayFile {
    /// The file of that name in `dir`.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn of(dir: &Path, name: String) -> Result<Self, ArchiveError> {
        let path = dir.join(&name);
        let mut file = fs::File::open(&path).map_err(io(&path))?;
        let (mut hash, mut bytes, mut buffer) = (Sha256::new(), 0, vec![0; 256 << 10]);
        loop {
            match file.read(&mut buffer).map_err(io(&path))? {
                0 => break,
                read => {
                    hash.update(&buffer[..read]);
                    bytes += read as u64;
                }
            }
        }
        Ok(Self { name, bytes, sha256: hex(&hash.finalize()) })
    }

    /// A file of that name with that content.
    #[must_use]
    pub fn with(name: &str, content: &[u8]) -> Self {
        Self { name: name.to_owned(), bytes: content.len() as u64, sha256: sha256(content) }
    }

    /// Whether that is its content.
    #[must_use]
    pub fn is(&self, content: &[u8]) -> bool {
        content.len() as u64 == self.bytes && sha256(content) == self.sha256
    }
}

pub(crate) fn sha256(content: &[u8]) -> String {
    hex(&Sha256::digest(content))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What became of a file, with its name.
pub(crate) fn io(path: &Path) -> impl FnOnce(std::io::Error) -> ArchiveError + '_ {
    |source| ArchiveError::Io { path: path.to_owned(), source }
}
