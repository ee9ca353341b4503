//! Looking at a log from outside, and the last resort when it is damaged.
//!
//! Everything but [`cut`] only reads, and works while the log is being written.

use std::path::Path;

use pares_os::Mapping;

use crate::error::{OpenError, ReadError};
use crate::marks::{LogStats, Mark, Marks, MarksReader};
use crate::offset::{Offset, segment_path};
use crate::record::{self, End};
use crate::recover;
use crate::segment::{self, HEADER_BYTES, Segment};

/// A log at a glance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inspection {
    /// Marks and counters.
    pub stats: LogStats,
    /// First offset of each segment file, ascending, prepared ones included.
    pub segments: Vec<Offset>,
    /// Bytes the files take.
    pub file_bytes: u64,
}

/// What verifying a log found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Verification {
    /// Whole records.
    pub records: u64,
    /// Bytes of their payloads.
    pub payload_bytes: u64,
    /// Bytes of log examined.
    pub log_bytes: u64,
    /// Segments examined.
    pub segments: u64,
    /// Where records should be and are not. Within a segment nothing can be found behind the first.
    pub damage: Vec<Damage>,
}

/// A place where a published record should be and is not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// Where the first unreadable record begins.
    pub offset: Offset,
    /// Everything from there up to here is unreadable.
    pub until: Offset,
    /// What is wrong.
    pub what: String,
}

/// Reads the marks and lists the files.
///
/// # Errors
/// [`ReadError`] when there is no log or it cannot be read.
pub fn inspect(dir: &Path) -> Result<Inspection, ReadError> {
    let stats = MarksReader::open(dir)?.stats();
    let segments: Vec<Offset> = bases(dir)?.into_iter().map(Offset).collect();
    let file_bytes = segments.len() as u64 * stats.segment_bytes;
    Ok(Inspection { stats, segments, file_bytes })
}

/// Checks every published record of a log. `progress` receives bytes done and bytes in all, segment by segment.
///
/// # Errors
/// [`ReadError`] when there is no log or a file cannot be read; damage is not an error but the result.
pub fn verify(dir: &Path, progress: &mut dyn FnMut(u64, u64)) -> Result<Verification, ReadError> {
    let marks = Marks::open_read_only(dir)?;
    let (released, written) = (marks.get(Mark::Released), marks.get(Mark::Written));
    let segment_bytes = marks.geometry().segment_bytes;
    let mut found = Verification::default();
    for base in (released..written).step_by(segment_bytes as usize) {
        let until = written.min(base + segment_bytes);
        verify_segment(dir, &marks, base, until, &mut found)?;
        progress(until - released, written - released);
    }
    Ok(found)
}

fn verify_segment(
    dir: &Path,
    marks: &Marks,
    base: u64,
    until: u64,
    found: &mut Verification,
) -> Result<(), ReadError> {
    found.segments += 1;
    let mut damage = |position: usize, what: String| {
        found.damage.push(Damage { offset: Offset(base + position as u64), until: Offset(until), what });
    };
    let map = match Mapping::open_read_only(&segment_path(dir, base)) {
        Ok(map) => map,
        // Released while we were looking: nothing to verify any more.
        Err(_) if base < marks.get(Mark::Released) => return Ok(()),
        Err(e) if e.is_not_yet() => {
            damage(HEADER_BYTES, "the file is missing or empty".into());
            return Ok(());
        }
        Err(e) => return Err(e.into()),
    };
    if !Segment::header_is_right(&map, base, marks.geometry()) {
        damage(0, "the segment's header is damaged or the file has another length".into());
    }
    let bytes = map.bytes(0..map.len());
    let scan = record::scan(bytes, base, HEADER_BYTES, (until - base) as usize);
    match scan.end {
        End::Invalid(why) => damage(scan.position, why.to_string()),
        End::Open if base + (scan.position as u64) < until => {
            damage(scan.position, "zeros instead of a record".into())
        }
        End::Open | End::Sealed => {}
    }
    found.records += scan.records;
    found.payload_bytes += scan.payload_bytes;
    found.log_bytes += scan.position as u64;
    Ok(())
}

/// Ends a log at `at`, giving up whatever follows: the last resort for a damaged or poisoned log that no peer can
/// replace. `at` is where a record begins or ends: what [`verify`] or the error of opening named. Returns the bytes given
/// up. Poison is lifted if `at` is not above what is known to be on the device.
///
/// # Errors
/// [`OpenError::Locked`] while the log is written, [`OpenError::NotABoundary`], or what the kernel refused.
pub fn cut(dir: &Path, at: Offset) -> Result<u64, OpenError> {
    recover::cut(dir, at)
}

fn bases(dir: &Path) -> Result<Vec<u64>, ReadError> {
    segment::list(dir).map_err(|source| {
        ReadError::Map(pares_os::MapError::Io { step: "list", path: dir.to_owned(), source })
    })
}
