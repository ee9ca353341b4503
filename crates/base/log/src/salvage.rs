//! Reading on behind damage: every record of a log that is still whole, wherever it lies.
//!
//! A reader stops at the first record that is not intact, because behind a wrong length it cannot know where the next one
//! begins. Giving up the rest of the log for one flipped bit would be a poor bargain. But a record's checksum covers
//! the place it lies at, so that hardly anything but a record validates there; and records begin at multiples of 8. So behind
//! damage every such place is tried until one validates.
//!
//! ```text
//!   | record | record | damaged .................. | record | record | pad |     next segment
//!                       ^ ^ ^ ^ ^ ^ ^ ^ ^ ^ ^ ^ ^    in step again             in step in any case
//! ```
//! The files are read, not mapped: a block that the device refuses to give is then an error to pass over, where a mapped one
//! would end the process (SIGBUS). Nothing is checked but the records themselves: headers of segments may be damaged too, and a
//! segment that is missing or short has no records where it has no bytes.
//!
//! What is not there is not reported: only the records tell what should have been between them.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::error::{OpenError, ReadError};
use crate::marks::{Mark, Marks};
use crate::offset::{Offset, segment_path};
use crate::reader::Record;
use crate::record::{self, Decoded};
use crate::segment::{self, HEADER_BYTES};

/// Bytes asked for at once. Of a piece that cannot be read whole, every page is tried alone.
const PIECE: usize = 1 << 20;
const PAGE: usize = 4_096;

/// Reads what is whole of a log, in its order.
#[derive(Debug)]
pub struct Salvage {
    dir: PathBuf,
    /// All segments, and how many of them were begun.
    bases: Vec<u64>,
    begun: usize,
    /// Nothing at or above it is looked at.
    limit: u64,
    current: Loaded,
    /// Where in the current segment the next record may begin.
    position: usize,
    lookup: Option<Loaded>,
}

/// A segment in memory.
#[derive(Debug, Default)]
struct Loaded {
    base: u64,
    bytes: Vec<u8>,
}

impl Salvage {
    /// What is published of a log that a process may be writing.
    ///
    /// # Errors
    /// [`ReadError`] if there is no log, or its directory cannot be listed.
    pub fn published(dir: &Path) -> Result<Salvage, ReadError> {
        let limit = Marks::open_read_only(dir)?.get(Mark::Written);
        Salvage::below(dir, limit).map_err(|source| {
            ReadError::Map(pares_os::MapError::Io { step: "list", path: dir.to_owned(), source })
        })
    }

    /// All there is of a log that no process writes: the caller holds its lock.
    pub(crate) fn everything(dir: &Path) -> Result<Salvage, OpenError> {
        Salvage::below(dir, u64::MAX).map_err(OpenError::io("list", dir))
    }

    fn below(dir: &Path, limit: u64) -> io::Result<Salvage> {
        let bases = segment::list(dir)?;
        let (dir, current) = (dir.to_owned(), Loaded::default());
        Ok(Salvage { dir, bases, begun: 0, limit, current, position: 0, lookup: None })
    }

    /// The next whole record.
    // Not an Iterator: the record borrows what was read.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Option<Record<'_>> {
        loop {
            let offset = self.current.base + self.position as u64;
            if self.position >= self.current.bytes.len() || offset >= self.limit {
                let base = *self.bases.get(self.begun).filter(|&&base| base < self.limit)?;
                self.begun += 1;
                self.current = load(&self.dir, base);
                self.position = HEADER_BYTES;
                continue;
            }
            match record::decode(&self.current.bytes[self.position..], offset, true) {
                Ok(Decoded::Data(payload)) => {
                    let from = self.position + record::HEADER_BYTES;
                    let range = from..from + payload.len();
                    self.position += record::size(range.len());
                    return Some(Record { offset: Offset(offset), payload: &self.current.bytes[range] });
                }
                Ok(Decoded::Pad) => self.position = self.current.bytes.len(),
                Ok(Decoded::Nothing) | Err(_) => self.position += 8,
            }
        }
    }

    /// The record at `offset`, if a whole one begins there.
    pub fn read_at(&mut self, offset: Offset) -> Option<Record<'_>> {
        let next = self.bases.partition_point(|&base| base <= offset.0);
        let base = self.bases[next.checked_sub(1)?];
        let loaded = match self.lookup.take() {
            Some(loaded) if loaded.base == base => loaded,
            _ => load(&self.dir, base),
        };
        let loaded = self.lookup.insert(loaded);
        let bytes = loaded.bytes.get((offset.0 - base) as usize..)?;
        match record::decode(bytes, offset.0, true) {
            Ok(Decoded::Data(payload)) => Some(Record { offset, payload }),
            _ => None,
        }
    }
}

/// A segment's bytes; zeros where they cannot be read, and none at all if the file is gone.
fn load(dir: &Path, base: u64) -> Loaded {
    let opened = pares_os::open_file(File::options().read(true), &segment_path(dir, base));
    let Ok(file) = opened else { return Loaded { base, bytes: Vec::new() } };
    let len = file.metadata().map_or(0, |found| found.len().min(1 << 30) as usize);
    let mut bytes = vec![0; len];
    for (index, piece) in bytes.chunks_mut(PIECE).enumerate() {
        let at = (index * PIECE) as u64;
        if file.read_exact_at(piece, at).is_err() {
            for (index, page) in piece.chunks_mut(PAGE).enumerate() {
                if file.read_exact_at(page, at + (index * PAGE) as u64).is_err() {
                    page.fill(0);
                }
            }
        }
    }
    Loaded { base, bytes }
}
