//! A sorted run: one file.
//!
//! ```text
//! +----------+------+------+----+------+-----------+----------+------------------+----------------+
//! | PARESIX1 | kind | from | to | rows | first key | last key | crc32c of fences | crc32c of head |   88 bytes
//! +----------+------+------+----+------+-----------+----------+------------------+----------------+
//! | page: 512 rows, the last one fewer;   row: key, two u64 | offset                              |   24 bytes a row
//! +-----------------------------------------------------------------------------------------------+
//! | fence for each page: its first key | crc32c of the page                                       |   24 bytes a page
//! +-----------------------------------------------------------------------------------------------+
//! ```
//! All numbers are little-endian u64. Fences are read once and kept; then a look for a key costs one read of a page, rarely two.

use std::io;
use std::path::Path;

use super::{Key, Kind, Row, file_of};
use crate::world::{File, World};

const MAGIC: u64 = u64::from_le_bytes(*b"PARESIX1");
const HEAD_WORDS: usize = 11;
const HEAD_BYTES: usize = HEAD_WORDS * 8;
const ROW_BYTES: usize = 24;
const PAGE_ROWS: usize = 512;
/// Bytes written at once.
const WRITE_BYTES: usize = 256 << 10;
/// Rows that no run exceeds: a length that is not the file's is refused before so much is allocated.
const ROWS_MAX: u64 = 1 << 32;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Head {
    kind: Kind,
    from: u64,
    to: u64,
    rows: u64,
    first: Key,
    last: Key,
    fences_crc: u64,
}

impl Head {
    fn words(&self) -> [u64; HEAD_WORDS - 1] {
        let Self { kind, from, to, rows, first, last, fences_crc } = *self;
        [MAGIC, kind as u64, from, to, rows, first[0], first[1], last[0], last[1], fences_crc]
    }

    fn to_bytes(self) -> Vec<u8> {
        let mut bytes: Vec<u8> = self.words().into_iter().flat_map(u64::to_le_bytes).collect();
        let crc = u64::from(crc32c::crc32c(&bytes));
        bytes.extend_from_slice(&crc.to_le_bytes());
        bytes
    }

    fn from_bytes(bytes: &[u8; HEAD_BYTES], kind: Kind) -> Option<Self> {
        let word = |index: usize| word_at(bytes, index * 8);
        let head = Self {
            kind,
            from: word(2),
            to: word(3),
            rows: word(4),
            first: [word(5), word(6)],
            last: [word(7), word(8)],
            fences_crc: word(9),
        };
        (head.to_bytes() == *bytes && head.rows <= ROWS_MAX).then_some(head)
    }

    fn pages(&self) -> usize {
        (self.rows as usize).div_ceil(PAGE_ROWS)
    }
}

/// A page's first key, and what its bytes must sum up to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Fence {
    first: Key,
    crc: u64,
}

/// Writes the run of a stretch of the log; `rows` are its rows, which this sorts. Whole or not at all; durably if `sync`.
pub(super) fn write<W: World>(
    world: &W,
    (dir, kind, sync): (&Path, Kind, bool),
    (from, to): (u64, u64),
    rows: &mut [Row],
) -> io::Result<()> {
    rows.sort_unstable();
    let (mut body, mut fences) = (Vec::with_capacity(rows.len() * ROW_BYTES), Vec::new());
    for page in rows.chunks(PAGE_ROWS) {
        let start = body.len();
        page.iter().for_each(|row| put(&mut body, row.key, row.offset));
        put(&mut fences, page[0].key, u64::from(crc32c::crc32c(&body[start..])));
    }
    assert_eq!(body.len(), rows.len() * ROW_BYTES, "each row of a run is written once");
    let key = |row: Option<&Row>| row.map_or([0, 0], |row| row.key);
    let (first, last) = (key(rows.first()), key(rows.last()));
    let (rows, fences_crc) = (rows.len() as u64, u64::from(crc32c::crc32c(&fences)));
    let head = Head { kind, from, to, rows, first, last, fences_crc };
    assert_eq!(fences.len(), head.pages() * ROW_BYTES, "each page of a run has a fence");
    let read = head.to_bytes().first_chunk().and_then(|bytes| Head::from_bytes(bytes, kind));
    assert_eq!(read, Some(head), "a head is read as it was written");
    let unfinished = dir.join(format!("{}.new", kind.name()));
    let mut file = world.create_file(&unfinished)?;
    file.append(&head.to_bytes())?;
    body.chunks(WRITE_BYTES).try_for_each(|piece| file.append(piece))?;
    file.append(&fences)?;
    if sync {
        file.sync()?;
    }
    world.rename(&unfinished, &file_of(dir, kind, (from, to)))?;
    if sync { world.sync_dir(dir) } else { Ok(()) }
}

fn put(out: &mut Vec<u8>, key: Key, value: u64) {
    for word in [key[0], key[1], value] {
        out.extend_from_slice(&word.to_le_bytes());
    }
}

fn word_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

/// Three words.
fn triple(bytes: &[u8]) -> (Key, u64) {
    ([word_at(bytes, 0), word_at(bytes, 8)], word_at(bytes, 16))
}

fn row(bytes: &[u8]) -> Row {
    let (key, offset) = triple(bytes);
    Row { key, offset }
}

pub(super) struct Run {
    head: Head,
    fences: Vec<Fence>,
}

impl Run {
    /// Opens the run of a stretch; `None` if it is not one.
    pub(super) fn open<W: World>(
        world: &W,
        (dir, kind): (&Path, Kind),
        stretch: (u64, u64),
    ) -> Option<(Self, W::File)> {
        let file = world.open_file(&file_of(dir, kind, stretch)).ok()?;
        let mut bytes = [0; HEAD_BYTES];
        file.fill(&mut bytes, 0).ok()?;
        let head = Head::from_bytes(&bytes, kind).filter(|head| (head.from, head.to) == stretch)?;
        let fences_at = HEAD_BYTES as u64 + head.rows * ROW_BYTES as u64;
        let length = head.pages() * ROW_BYTES;
        if file.bytes().ok()? != fences_at + length as u64 {
            return None;
        }
        let bytes = read(&file, fences_at, length).ok()?;
        let fence = |bytes: &[u8]| {
            let (first, crc) = triple(bytes);
            Fence { first, crc }
        };
        let fences = bytes.chunks_exact(ROW_BYTES).map(fence).collect();
        (u64::from(crc32c::crc32c(&bytes)) == head.fences_crc).then_some((Self { head, fences }, file))
    }

    /// Where the records of that key lie, as the run has it.
    pub(super) fn find(&self, file: &impl File, key: Key) -> io::Result<Vec<u64>> {
        let mut found = Vec::new();
        if self.head.rows == 0 || key < self.head.first || key > self.head.last {
            return Ok(found);
        }
        let begin = self.fences.partition_point(|fence| fence.first < key).saturating_sub(1);
        assert!(begin < self.fences.len(), "a run that has rows has a page to begin with");
        for page in begin..self.fences.len() {
            if self.fences[page].first > key {
                break;
            }
            let rows = self.page(file, page)?;
            let rows = rows.chunks_exact(ROW_BYTES).map(triple);
            found.extend(rows.filter(|(of, _)| *of == key).map(|(_, offset)| offset));
        }
        Ok(found)
    }

    /// The last row with at most that key.
    pub(super) fn last_to(&self, file: &impl File, key: Key) -> io::Result<Option<Row>> {
        let Some(page) = self.fences.partition_point(|fence| fence.first <= key).checked_sub(1) else {
            return Ok(None);
        };
        let rows = self.page(file, page)?;
        let rows = rows.chunks_exact(ROW_BYTES).map(row);
        Ok(rows.take_while(|row| row.key <= key).last())
    }

    /// The last row whose key begins so.
    pub(super) fn last(&self, file: &impl File, begins: u64) -> io::Result<Option<Row>> {
        Ok(self.last_to(file, [begins, u64::MAX])?.filter(|row| row.key[0] == begins))
    }

    /// All rows.
    pub(super) fn rows(&self, file: &impl File) -> io::Result<Vec<Row>> {
        let mut rows = Vec::with_capacity(self.head.rows as usize);
        for page in 0..self.fences.len() {
            rows.extend(self.page(file, page)?.chunks_exact(ROW_BYTES).map(row));
        }
        assert_eq!(rows.len() as u64, self.head.rows, "the pages of a run have all its rows");
        Ok(rows)
    }

    fn page(&self, file: &impl File, page: usize) -> io::Result<Vec<u8>> {
        assert!(page < self.head.pages(), "a page is one of the run");
        let rows = (self.head.rows as usize - page * PAGE_ROWS).min(PAGE_ROWS);
        let at = HEAD_BYTES + page * PAGE_ROWS * ROW_BYTES;
        let bytes = read(file, at as u64, rows * ROW_BYTES)?;
        match u64::from(crc32c::crc32c(&bytes)) == self.fences[page].crc {
            true => Ok(bytes),
            false => Err(io::Error::other("a page of an index is damaged")),
        }
    }

    /// Whether every page is as it was written.
    pub(super) fn is_whole(&self, file: &impl File) -> bool {
        assert_eq!(self.fences.len(), self.head.pages(), "each page of a run that is read has its fence");
        (0..self.fences.len()).all(|page| self.page(file, page).is_ok())
    }
}

fn read(file: &impl File, at: u64, length: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; length];
    file.fill(&mut bytes, at)?;
    Ok(bytes)
}
