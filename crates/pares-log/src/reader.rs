//! Tailing a log, or looking up places in it.
//!
//! A reader maps everything read-only and tells the writer nothing: it cannot slow it, and being stopped or killed
//! leaves no trace. It loads the written mark once per batch and then walks plain memory.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use pares_shm::Mapping;

use crate::error::ReadError;
use crate::marks::{Mark, Marks, MarksReader};
use crate::offset::{Geometry, Offset};
use crate::record::{self, Entry, Invalid};
use crate::segment::{self, HEADER_BYTES, Segment};

/// A record of a log, where it lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record<'a> {
    /// Names it for good.
    pub offset: Offset,
    /// What was appended. Begins at a multiple of 8 in memory.
    pub payload: &'a [u8],
}

/// A reader of a log: a place in it that moves from record to record.
#[derive(Debug)]
pub struct Reader {
    dir: PathBuf,
    marks: Marks,
    geometry: Geometry,
    verify: bool,
    /// Which log this is, so that another one in its place is told from it.
    identity: Option<Identity>,
    /// Where the next record is expected.
    at: u64,
    /// The written mark as last loaded.
    limit: u64,
    /// Segment that `next` walks, and the one that `read_at` looked into last.
    current: Option<Mapped>,
    lookup: Option<Mapped>,
}

/// Device and inode of a log's marks. As long as they are mapped no other file gets them.
type Identity = (u64, u64);

fn identity(dir: &Path) -> Option<Identity> {
    let found = std::fs::metadata(dir.join("marks")).ok()?;
    Some((found.dev(), found.ino()))
}

#[derive(Debug)]
struct Mapped {
    base: u64,
    map: Mapping,
}

impl Reader {
    /// Opens the log in `dir` to read from `from`: [`Offset::START`], or the [`offset`](Reader::offset) of an earlier
    /// reader, or the offset of a record.
    ///
    /// # Errors
    /// [`ReadError`]: `NotYet` while there is no log, `Released` or `BeyondEnd` if `from` is not in it any more or yet.
    pub fn open(dir: &Path, from: Offset) -> Result<Reader, ReadError> {
        let identity = identity(dir);
        let marks = Marks::open_read_only(dir)?;
        let (geometry, limit) = (marks.geometry(), marks.get(Mark::Written));
        let dir = dir.to_owned();
        let (current, lookup) = (None, None);
        let mut reader =
            Reader { dir, marks, geometry, verify: true, identity, at: 0, limit, current, lookup };
        reader.seek(from)?;
        Ok(reader)
    }

    /// Opens the log at the first record that is not released.
    ///
    /// # Errors
    /// As [`Reader::open`].
    pub fn at_start(dir: &Path) -> Result<Reader, ReadError> {
        let first = Marks::open_read_only(dir)?.get(Mark::Released);
        Reader::open(dir, Offset(first))
    }

    /// Opens the log behind the last record published.
    ///
    /// # Errors
    /// As [`Reader::open`].
    pub fn at_end(dir: &Path) -> Result<Reader, ReadError> {
        let written = Marks::open_read_only(dir)?.get(Mark::Written);
        Reader::open(dir, Offset(written))
    }

    /// Whether checksums are verified (they are, unless told otherwise). Without, damage may be read as data.
    pub fn verify_checksums(self, verify: bool) -> Reader {
        Reader { verify, ..self }
    }

    /// Whether another log lies in the place of this one: its directory was removed and made anew. This one stays readable
    /// where it is mapped, and will never grow. Costs a system call.
    #[must_use]
    pub fn is_replaced(&self) -> bool {
        identity(&self.dir).is_some_and(|found| self.identity != Some(found))
    }

    /// Moves to `from`.
    ///
    /// # Errors
    /// `Released` or `BeyondEnd`; the reader stays where it was.
    pub fn seek(&mut self, from: Offset) -> Result<(), ReadError> {
        let written = self.marks.get(Mark::Written);
        // The place before a segment's first record means that record.
        let header = self.geometry.position(from.0) < HEADER_BYTES && from.0 < written;
        let at = if header { self.geometry.base(from.0) + HEADER_BYTES as u64 } else { from.0 };
        self.check_place(from.0, at, written)?;
        self.at = at;
        self.limit = written;
        Ok(())
    }

    /// The next published record, or `None` when all are read.
    ///
    /// # Errors
    /// [`ReadError::Damaged`], or `Released` if the writer gave up this part before it was read; the reader stays.
    // Not an Iterator: the record borrows the reader, so that nothing is copied.
    #[allow(clippy::should_implement_trait)]
    #[inline]
    pub fn next(&mut self) -> Result<Option<Record<'_>>, ReadError> {
        loop {
            if self.at >= self.limit {
                self.limit = self.marks.get(Mark::Written);
                if self.at >= self.limit {
                    return Ok(None);
                }
            }
            let (base, position) = (self.geometry.base(self.at), self.geometry.position(self.at));
            if position == 0 {
                self.at = base + HEADER_BYTES as u64;
                continue;
            }
            map_segment(&mut self.current, &self.dir, &self.marks, base)?;
            let map = &self.current.as_ref().expect("mapped above").map;
            match record::decode(map.bytes(position..map.len()), self.at, self.verify) {
                Ok(Entry::Data(payload)) => {
                    let from = position + record::HEADER_BYTES;
                    let range = from..from + payload.len();
                    return Ok(Some(self.pass(range)));
                }
                Ok(Entry::Pad) => self.at = base + self.geometry.segment_bytes,
                Ok(Entry::Nothing) => return Err(damaged(self.at, Invalid::Kind)),
                Err(what) => return Err(damaged(self.at, what)),
            }
        }
    }

    /// Moves behind the record whose payload lies at `range` of the current segment, and returns it.
    #[inline]
    fn pass(&mut self, range: std::ops::Range<usize>) -> Record<'_> {
        let offset = Offset(self.at);
        self.at += record::size(range.len()) as u64;
        let current = self.current.as_ref().expect("the caller mapped it");
        Record { offset, payload: current.map.bytes(range) }
    }

    /// The record at `offset`, wherever this reader stands.
    ///
    /// # Errors
    /// [`ReadError`]: `Damaged` if no intact record begins there, `Released` or `BeyondEnd` if it is not in the log.
    pub fn read_at(&mut self, offset: Offset) -> Result<Record<'_>, ReadError> {
        let written = self.marks.get(Mark::Written);
        self.check_place(offset.0, offset.0, written)?;
        if offset.0 >= written {
            return Err(ReadError::BeyondEnd { offset, written: Offset(written) });
        }
        let position = self.geometry.position(offset.0);
        if position < HEADER_BYTES || !position.is_multiple_of(8) {
            return Err(damaged(offset.0, Invalid::Kind));
        }
        map_segment(&mut self.lookup, &self.dir, &self.marks, self.geometry.base(offset.0))?;
        let map = &self.lookup.as_ref().expect("mapped above").map;
        match record::decode(map.bytes(position..map.len()), offset.0, self.verify) {
            Ok(Entry::Data(payload)) => Ok(Record { offset, payload }),
            Ok(_) => Err(damaged(offset.0, Invalid::Kind)),
            Err(what) => Err(damaged(offset.0, what)),
        }
    }

    /// Where the next record is expected: what to remember in order to resume here.
    pub fn offset(&self) -> Offset {
        Offset(self.at)
    }

    /// Readable below this.
    pub fn written(&self) -> Offset {
        Offset(self.marks.get(Mark::Written))
    }

    /// Kept below this, as the writer's durability setting promises.
    pub fn durable(&self) -> Offset {
        Offset(self.marks.get(Mark::Durable))
    }

    /// The log begins here; earlier segments are gone.
    pub fn released(&self) -> Offset {
        Offset(self.marks.get(Mark::Released))
    }

    /// Error number of the failure that poisoned the log, if one did.
    pub fn poisoned(&self) -> Option<i32> {
        Some(self.marks.poisoned()).filter(|&errno| errno != 0)
    }

    /// All marks, counters and latencies of the log.
    pub fn marks(&self) -> MarksReader {
        MarksReader::of(&self.marks)
    }

    fn check_place(&self, asked: u64, at: u64, written: u64) -> Result<(), ReadError> {
        let released = self.marks.get(Mark::Released);
        if at < released {
            return Err(ReadError::Released { offset: Offset(asked), first: Offset(released) });
        }
        if asked != 0 && at > written {
            return Err(ReadError::BeyondEnd { offset: Offset(asked), written: Offset(written) });
        }
        Ok(())
    }
}

fn damaged(at: u64, what: Invalid) -> ReadError {
    ReadError::Damaged { offset: Offset(at), what }
}

/// Makes `slot` hold the segment of `base`.
#[inline]
fn map_segment(slot: &mut Option<Mapped>, dir: &Path, marks: &Marks, base: u64) -> Result<(), ReadError> {
    if slot.as_ref().is_some_and(|mapped| mapped.base == base) {
        return Ok(());
    }
    *slot = Some(Mapped { base, map: open_segment(dir, marks, base)? });
    Ok(())
}

#[cold]
fn open_segment(dir: &Path, marks: &Marks, base: u64) -> Result<Mapping, ReadError> {
    let path = segment::path(dir, base);
    match Mapping::open_read_only(&path) {
        Ok(map) if Segment::header_is_right(&map, base, marks.geometry()) => Ok(map),
        Ok(_) => Err(ReadError::Foreign { path, what: "the segment's header is damaged" }),
        Err(_) if base < marks.get(Mark::Released) => {
            let first = Offset(marks.get(Mark::Released));
            Err(ReadError::Released { offset: Offset(base + HEADER_BYTES as u64), first })
        }
        Err(e) => Err(e.into()),
    }
}
