//! Tailing a log, or looking up places in it.
//!
//! A reader maps everything read-only and tells the writer nothing: it cannot slow it, and being stopped or killed
//! leaves no trace. It loads the written mark once per batch and then walks plain memory.

mod stretch;

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use pares_os::Mapping;

use crate::error::ReadError;
use crate::marks::{Mark, Marks, MarksReader};
use crate::offset::{Geometry, Offset, segment_path};
use crate::record::{self, Decoded, Invalid};
use crate::segment::{self, HEADER_BYTES, Segment};

pub use stretch::RawStretch;

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
    /// Which log this is, so that another one in its place is recognised.
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
    /// Bytes of it that are the segment's.
    end: usize,
    map: Mapping,
}

impl Mapped {
    /// What lies at `position` and behind it; nothing if the file is too short.
    #[inline]
    fn from(&self, position: usize) -> &[u8] {
        self.map.bytes(position.min(self.end)..self.end)
    }
}

impl Reader {
    /// Opens the log in `dir` to read from `from`: [`Offset::START`], or the [`offset`](Reader::offset) of an earlier
    /// reader, or the offset of a record.
    ///
    /// # Errors
    /// [`ReadError`]: `NotYet` while there is no log, `Released` or `BeyondEnd` if `from` is not in it any more or yet.
    pub fn open(dir: &Path, from: Offset) -> Result<Reader, ReadError> {
        let mut reader = Reader::of(dir)?;
        reader.seek(from)?;
        Ok(reader)
    }

    /// Opens the log at the first record that is not released.
    ///
    /// # Errors
    /// As [`Reader::open`], but never `Released`.
    pub fn at_start(dir: &Path) -> Result<Reader, ReadError> {
        let mut reader = Reader::of(dir)?;
        // The writer may release more at any moment; what is mapped stays readable.
        loop {
            let first = reader.released();
            let begun = reader.seek(first).and_then(|()| reader.map_here());
            match begun {
                Err(ReadError::Released { .. }) => {}
                Err(error @ ReadError::BeyondEnd { .. }) => return Err(error),
                // Damage there is for `next` to tell.
                _ => return Ok(reader),
            }
        }
    }

    /// Opens the log behind the last record published.
    ///
    /// # Errors
    /// As [`Reader::open`], but never `Released` or `BeyondEnd`.
    pub fn at_end(dir: &Path) -> Result<Reader, ReadError> {
        let mut reader = Reader::of(dir)?;
        reader.at = reader.limit;
        Ok(reader)
    }

    fn of(dir: &Path) -> Result<Reader, ReadError> {
        let identity = identity(dir);
        let marks = Marks::open_read_only(dir)?;
        let (geometry, limit) = (marks.geometry(), marks.get(Mark::Written));
        let dir = dir.to_owned();
        let (current, lookup) = (None, None);
        Ok(Reader { dir, marks, geometry, identity, at: 0, limit, current, lookup })
    }

    /// Whether another log lies in the place of this one: its directory was removed and made again. This one stays readable
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
    /// [`ReadError`]: [damage](ReadError::is_damage), or `Released` if the writer gave up this part before it was read; the reader stays.
    // Not an Iterator: the record borrows the reader, so that nothing is copied.
    #[allow(clippy::should_implement_trait)]
    #[inline]
    pub fn next(&mut self) -> Result<Option<Record<'_>>, ReadError> {
        self.next_below(Offset(u64::MAX))
    }

    /// The same, unless it lies at `end` or beyond. Where the next record is expected there may be the end of a segment; the record is
    /// then in the next one.
    ///
    /// # Errors
    /// As [`next`](Self::next).
    #[inline]
    pub fn next_below(&mut self, end: Offset) -> Result<Option<Record<'_>>, ReadError> {
        loop {
            if self.at >= end.0 {
                return Ok(None);
            }
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
            self.map_here()?;
            let current = self.current.as_ref().expect("mapped above");
            match record::decode(current.from(position), self.at, true) {
                Ok(Decoded::Data(payload)) => {
                    let from = position + record::HEADER_BYTES;
                    let range = from..from + payload.len();
                    return Ok(Some(self.pass(range)));
                }
                Ok(Decoded::Pad) => self.at = base + self.geometry.segment_bytes,
                Ok(Decoded::Nothing) => return Err(damaged(self.at, Invalid::Kind)),
                Err(what) => return Err(damaged(self.at, what)),
            }
        }
    }

    /// Passes over the next record, if it lies below `end` and `is_known` says of its payload that nothing of it is needed. The payload is
    /// shown as it lies there, its checksum not looked at: for a reader that has the same from elsewhere, and expects a certain one. Says
    /// whether it did; where it did not, [`next_below`](Self::next_below) tells more.
    #[inline]
    pub fn pass_if(&mut self, end: Offset, is_known: impl FnOnce(&[u8]) -> bool) -> bool {
        if self.at >= end.0.min(self.limit) {
            return false;
        }
        let base = self.geometry.base(self.at);
        let Some(current) = self.current.as_ref().filter(|current| current.base == base) else {
            return false;
        };
        match record::decode(current.from(self.geometry.position(self.at)), self.at, false) {
            Ok(Decoded::Data(payload)) if is_known(payload) => {
                self.at += record::size(payload.len()) as u64;
                true
            }
            _ => false,
        }
    }

    /// Maps the segment of the place where the next record is expected.
    #[inline]
    fn map_here(&mut self) -> Result<(), ReadError> {
        map_segment(&mut self.current, &self.dir, &self.marks, self.geometry.base(self.at))
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
        let lookup = self.lookup.as_ref().expect("mapped above");
        match record::decode(lookup.from(position), offset.0, true) {
            Ok(Decoded::Data(payload)) => Ok(Record { offset, payload }),
            Ok(_) => Err(damaged(offset.0, Invalid::Kind)),
            Err(what) => Err(damaged(offset.0, what)),
        }
    }

    /// After an error that [is damage](ReadError::is_damage): moves to the next whole published record, or to the end of
    /// what is published, and says where that is. A record's checksum covers its place, so behind damage every place is tried until one
    /// validates. A segment's header is not looked at, and a segment that is missing has no records.
    ///
    /// While the kernel does not let it look (no descriptors left, say) the reader stays before what it could not look at.
    pub fn skip_damage(&mut self) -> Offset {
        self.limit = self.marks.get(Mark::Written);
        let here = self.geometry.base(self.at);
        let mut bases = match segment::list(&self.dir) {
            Ok(bases) => bases,
            // The whole log was taken away.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(_) => return Offset(self.at),
        };
        // The one that is mapped may be released meanwhile.
        bases.push(here);
        bases.retain(|&base| (here..self.limit).contains(&base) && self.geometry.position(base) == 0);
        bases.sort_unstable();
        for base in bases {
            let from = self.at.max(base + HEADER_BYTES as u64);
            match self.whole_record(base, from) {
                Ok(Some(at)) => {
                    self.at = at;
                    return Offset(at);
                }
                Ok(None) => {}
                Err(error) if error.is_damage() => {}
                Err(_) => {
                    self.at = from;
                    return Offset(from);
                }
            }
        }
        self.at = self.at.max(self.limit);
        Offset(self.at)
    }

    /// The first place in a segment, from offset `from` on, where a whole published record begins. The segment is then mapped, whatever
    /// its header says.
    fn whole_record(&mut self, base: u64, from: u64) -> Result<Option<u64>, ReadError> {
        let mapped = match self.current.take_if(|mapped| mapped.base == base) {
            Some(mapped) => mapped,
            None => {
                let map = Mapping::open_read_only(&segment_path(&self.dir, base))?;
                Mapped { base, end: map.len().min(self.geometry.segment_bytes as usize), map }
            }
        };
        let is_whole = |at: &u64| {
            let entry = record::decode(mapped.from((*at - base) as usize), *at, true);
            matches!(entry, Ok(Decoded::Data(_) | Decoded::Pad))
        };
        let end = self.limit.min(base + mapped.end as u64);
        let found = (from.next_multiple_of(8)..end).step_by(8).find(is_whole);
        self.current = Some(mapped);
        Ok(found)
    }

    /// Where the next record is expected: what to remember in order to resume here.
    #[inline]
    pub fn offset(&self) -> Offset {
        Offset(self.at)
    }

    /// Readable below this.
    #[inline]
    pub fn written(&self) -> Offset {
        Offset(self.marks.get(Mark::Written))
    }

    /// Kept below this, as the writer's durability setting promises.
    #[inline]
    pub fn durable(&self) -> Offset {
        Offset(self.marks.get(Mark::Durable))
    }

    /// The log begins here; earlier segments are gone.
    #[inline]
    pub fn released(&self) -> Offset {
        Offset(self.marks.get(Mark::Released))
    }

    /// Bytes of a segment: what is dropped of the log ends at a multiple of them.
    pub fn segment_bytes(&self) -> u64 {
        self.geometry.segment_bytes
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
    let map = open_segment(dir, marks, base)?;
    *slot = Some(Mapped { base, end: map.len(), map });
    Ok(())
}

#[cold]
fn open_segment(dir: &Path, marks: &Marks, base: u64) -> Result<Mapping, ReadError> {
    let path = segment_path(dir, base);
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
