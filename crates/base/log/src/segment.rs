//! Segment files: making, opening, and the writer's place in one.
//!
//! ```text
//!   0         8           12     16      24              64                            segment_bytes
//!   +---------+-----------+------+-------+---------------+--------+--------+- - -+-----+
//!   |"PARESSEG"| version u32 | - | base u64 | segment_bytes u64, 0 | record | record | ... | zeros or pad |
//!   +---------+-----------+------+-------+---------------+--------+--------+- - -+-----+
//! ```
//!
//! A segment is made under a temporary name and renamed when complete, so a file with a segment's name is a whole
//! segment. It is never overwritten by a rename and never reused for other offsets: once released it is unlinked, and a
//! reader that still maps it keeps reading the old content.
#![allow(unsafe_code)]

use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use pares_os::mapping::{MapError, Mapping, PAGE};
use rustix::fs::{CWD, RenameFlags};

use crate::keeping::Keeping;
use crate::offset::{Geometry, segment_path};
use crate::record;

/// Bytes before the first record of a segment.
pub(crate) const HEADER_BYTES: usize = 64;

/// Zeros written at once to a segment that is synced in small batches, and to one that is not.
const SYNCED_BYTES: usize = 16 << 10;
const UNSYNCED_BYTES: usize = 256 << 10;

const MAGIC: [u8; 8] = *b"PARESSEG";
const VERSION: u32 = 1;

/// Bases of all segments in the directory, ascending.
pub(crate) fn list(dir: &Path) -> io::Result<Vec<u64>> {
    let mut bases = Vec::new();
    for entry in std::fs::read_dir(dir)? {
        let name = entry?.file_name();
        let digits = name.to_str().and_then(|name| name.strip_suffix(".seg"));
        bases.extend(digits.and_then(|digits| digits.parse::<u64>().ok()));
    }
    bases.sort_unstable();
    Ok(bases)
}

/// One mapped segment of a log that this process writes.
#[derive(Debug)]
pub(crate) struct Segment {
    pub(crate) map: Mapping,
    pub(crate) base: u64,
}

impl Segment {
    /// Whether the first bytes say that this is the segment of `base`.
    pub(crate) fn header_is_right(map: &Mapping, base: u64, geometry: Geometry) -> bool {
        map.len() as u64 == geometry.segment_bytes && map.bytes(0..HEADER_BYTES) == header(base, geometry)
    }

    /// All bytes below `end`, which the caller has seen published (or owns).
    pub(crate) fn bytes(&self) -> &[u8] {
        self.map.bytes(0..self.map.len())
    }
}

fn header(base: u64, geometry: Geometry) -> [u8; HEADER_BYTES] {
    let mut bytes = [0; HEADER_BYTES];
    bytes[..8].copy_from_slice(&MAGIC);
    bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
    bytes[16..24].copy_from_slice(&base.to_le_bytes());
    bytes[24..32].copy_from_slice(&geometry.segment_bytes.to_le_bytes());
    bytes
}

/// How carefully a segment is made.
pub(crate) struct Making<'a> {
    pub(crate) keeping: Keeping<'a>,
    pub(crate) geometry: Geometry,
    /// Temporary name: differs between the threads that may make the same segment.
    pub(crate) temporary: &'static str,
    /// Sync file and directory before it counts.
    pub(crate) synced: bool,
    /// Called between portions of zeros; the file is only allocated, not zero-filled, without it.
    pub(crate) pause: Option<&'a dyn Fn()>,
}

impl Making<'_> {
    /// Makes the segment of `base`, or opens it if another thread was faster. That one may not have synced the directory yet:
    /// each caller that returns has.
    pub(crate) fn make(&self, base: u64) -> Result<Segment, MapError> {
        let temporary = self.keeping.dir.join(self.temporary);
        let made = self.fill(&temporary, base);
        if made.is_err() {
            // Whatever room was taken goes back: on a full disk it is needed elsewhere.
            let _best_effort = std::fs::remove_file(&temporary);
        }
        made
    }

    fn fill(&self, temporary: &Path, base: u64) -> Result<Segment, MapError> {
        let fail = |step| move |source| MapError::Io { step, path: temporary.to_owned(), source };
        let _left_by_a_crash = std::fs::remove_file(temporary);
        let len = self.geometry.segment_bytes as usize;
        let device = self.keeping.device;
        let mut map = device.make(temporary, len)?;
        if let Some(pause) = self.pause {
            self.zero(&map, temporary, pause).map_err(fail("zero"))?;
        }
        map.write(0, &header(base, self.geometry));
        if self.synced {
            device.sync(temporary, map.file()).map_err(fail("sync"))?;
        }
        let target = segment_path(self.keeping.dir, base);
        match rustix::fs::renameat_with(CWD, temporary, CWD, &target, RenameFlags::NOREPLACE) {
            Ok(()) => {}
            Err(rustix::io::Errno::EXIST) => {
                let _best_effort = std::fs::remove_file(temporary);
                map = Mapping::open(&target)?;
            }
            Err(e) => return Err(fail("rename")(e.into())),
        }
        if self.synced {
            self.keeping.name().map_err(fail("sync the directory of"))?;
        }
        Ok(Segment { map, base })
    }

    /// Synced portion by portion: one sync of the whole segment would keep the device from the writer's small ones.
    fn zero(&self, map: &Mapping, temporary: &Path, pause: &dyn Fn()) -> io::Result<()> {
        let at_once = if self.synced { SYNCED_BYTES } else { UNSYNCED_BYTES };
        zero_fill(map, at_once, &|| {
            let synced = if self.synced { self.keeping.device.sync(temporary, map.file()) } else { Ok(()) };
            pause();
            synced
        })
    }
}

/// Writes zeros over allocated but unwritten blocks, `at_once` bytes in a write. The kernel takes folios as large as the write: making,
/// mapping and dropping a segment then cost a third of what they do page by page. But a sync writes whole folios, so those of a log that is
/// synced in small batches stay small. `portion` is called behind each MiB.
fn zero_fill(map: &Mapping, at_once: usize, portion: &dyn Fn() -> io::Result<()>) -> io::Result<()> {
    static ZEROS: [u8; UNSYNCED_BYTES] = [0; UNSYNCED_BYTES];
    for at in (0..map.len()).step_by(at_once) {
        map.file().write_all_at(&ZEROS[..at_once.min(map.len() - at)], at as u64)?;
        if (at + at_once).is_multiple_of(1 << 20) {
            portion()?;
        }
    }
    Ok(())
}

/// The end of the log: the one place where bytes of segments are written.
///
/// There is one per log: [`Writer`](crate::Writer) makes it while it holds the log's lock, and a part of memory below
/// `written` is never touched again.
#[derive(Debug)]
pub(crate) struct Tail {
    pub(crate) segment: Arc<Segment>,
    position: usize,
}

impl Tail {
    pub(crate) fn new(segment: Arc<Segment>, position: usize) -> Tail {
        assert!(position.is_multiple_of(8) && (HEADER_BYTES..=segment.map.len()).contains(&position));
        Tail { segment, position }
    }

    /// Where the next record goes.
    #[inline]
    pub(crate) fn offset(&self) -> u64 {
        self.segment.base + self.position as u64
    }

    /// Whether no record lies in the segment.
    pub(crate) fn is_empty(&self) -> bool {
        self.position == HEADER_BYTES
    }

    /// Bytes left in the segment.
    #[inline]
    pub(crate) fn room(&self) -> usize {
        self.segment.map.len() - self.position
    }

    /// Appends a record whose payload `fill` writes in place. There must be room.
    #[inline]
    pub(crate) fn append(&mut self, len: usize, fill: impl FnOnce(&mut [u8])) {
        let (offset, size) = (self.offset(), record::size(len));
        let bytes = self.rest(size);
        fill(&mut bytes[record::HEADER_BYTES..record::HEADER_BYTES + len]);
        record::seal(bytes, offset, len);
        self.position += size;
    }

    /// Appends records that were sealed for this place. There must be room. They are written and not copied to the mapping: of whole pages
    /// the kernel then needs nothing that was there before, neither zeros nor a fault.
    pub(crate) fn append_sealed(&mut self, records: &[u8]) -> io::Result<()> {
        self.segment.map.file().write_all_at(records, self.position as u64)?;
        self.position += records.len();
        Ok(())
    }

    /// Closes the segment.
    pub(crate) fn seal(&mut self) {
        if self.room() > 0 {
            let offset = self.offset();
            record::seal_pad(self.rest(record::HEADER_BYTES), offset);
            self.position = self.segment.map.len();
        }
    }

    /// Zeroes what follows, where it is not zero already. Returns how far from here the last other byte lay.
    pub(crate) fn clear_rest(&mut self) -> u64 {
        let position = self.position;
        let mut found = 0;
        for (i, block) in self.rest(self.room()).chunks_mut(PAGE).enumerate() {
            if let Some(last) = last_byte(block) {
                block.fill(0);
                found = i * PAGE + last + 1;
            }
        }
        debug_assert_eq!(position, self.position);
        found as u64
    }

    /// As [`Tail::clear_rest`], and has the next sync write all of it. Where a sync of zeros failed, memory has them and the device may
    /// still have records, which would follow on the next ones after a loss of power.
    pub(crate) fn clear_rest_anew(&mut self) -> u64 {
        let found = self.clear_rest();
        self.rest(self.room()).fill(0);
        found
    }

    #[inline]
    fn rest(&mut self, len: usize) -> &mut [u8] {
        // SAFETY: `self` is the only writer of the log (one Tail per held lock) and borrowed for as long as the slice
        // lives; the range lies at or above the tail, which is above `written`, so no reader reads it.
        unsafe { self.segment.map.slice_mut(self.position..self.position + len) }
    }
}
/// Where the last byte that is not zero lies. Recovery looks at whole segments that are nearly always zero, so what
/// matters is to see that at the speed of memory: lines without an early way out, which the compiler widens.
pub(crate) fn last_byte(bytes: &[u8]) -> Option<usize> {
    const LINE: usize = 256;
    let lines = bytes.chunks(LINE).enumerate().rev();
    let mut busy = lines.filter(|(_, line)| line.iter().fold(0, |any, &b| any | b) != 0);
    let (index, line) = busy.next()?;
    line.iter().rposition(|&b| b != 0).map(|last| index * LINE + last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_byte_is_found_wherever_it_lies() {
        assert_eq!(last_byte(&[0; 1000]), None);
        for at in [0, 1, 255, 256, 511, 999] {
            let mut bytes = [0; 1000];
            bytes[at] = 7;
            bytes[at / 2] = 1;
            assert_eq!(last_byte(&bytes), Some(at));
        }
    }
}
