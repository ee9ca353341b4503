//! A mirror: a log that has the offsets, bytes and checksums of another host's, its source.
//!
//! Copying records and appending them again would give other bytes: where a source began a segment early, its copy would not. So
//! what is taken is a *stretch*: bytes of one segment as they lie there, whole records and perhaps the pad that closes it. Each checksum covers its place, so a stretch that is damaged, or of
//! another place, is found before anything of it is stored.
//!
//! ```text
//!   source   |rec|rec|rec|rec|pad|          stretch: rec rec pad, from 3
//!   mirror   |rec|rec|                      continues at 3; the segment is closed when the next one begins
//! ```
//! Of `durable` a mirror repeats what its source says, and never more than it has. That it lies in a page cache of its own is no promise of
//! the source's, whose readers would count one device twice.
//!
//! A log is a mirror or its writer's own, as its marks say. [`take_over`] makes a mirror an own log, for good.

use std::path::Path;

use crate::config::{Config, Durability};
use crate::error::{AppendError, MirrorError, OpenError};
use crate::marks::{Mark, Marks};
use crate::offset::Offset;
use crate::record::{self, End, Scan};
use crate::recover;
use crate::replace::{self, Replacement};
use crate::segment::HEADER_BYTES;
use crate::writer::Writer;

/// The one writer of a mirror.
#[derive(Debug)]
pub struct Mirror {
    writer: Writer,
    /// The segment's pad has come: the next record is in the next segment.
    is_closed: bool,
}

impl Mirror {
    /// Opens the mirror in `dir`, cut to what is whole. If there is none, and none of `config`'s is wanted to exist, it is made.
    /// With `afresh` the one there is set aside, as [`Replacement`] does, and another begins: its source is another log now.
    ///
    /// # Errors
    /// As [`Writer::open`] and [`Replacement::begin`]; and [`OpenError::NotAMirror`] if the log there is its writer's own.
    pub fn open(dir: &Path, config: Config, afresh: bool) -> Result<Mirror, OpenError> {
        // It promises nothing by itself: what it has is in the page cache.
        let first = config.begins_at();
        let config = config.durability(Durability::Os).mirror_from(first);
        if afresh && dir.join("marks").exists() {
            Replacement::begin(dir, config.clone())?.complete()?;
        }
        let (writer, _) = Writer::open(dir, config)?;
        Ok(Mirror { writer, is_closed: false })
    }

    /// Where the next record lies at the source: in the next segment, if this one is closed.
    #[must_use]
    pub fn next(&self) -> Offset {
        next_place(self.writer.tail(), self.writer.shared.geometry.segment_bytes, self.is_closed)
    }

    /// Stores a stretch of the source that begins at `from`. Not readable before [`publish`](Mirror::publish).
    ///
    /// # Errors
    /// [`MirrorError`]; the mirror is then as before.
    pub fn take(&mut self, from: Offset, stretch: &[u8]) -> Result<(), MirrorError> {
        self.writer.shared.check_poison()?;
        let segment_bytes = self.writer.shared.geometry.segment_bytes;
        let (scan, closes) = check_stretch(self.next(), segment_bytes, from, stretch)?;
        if from != self.writer.tail() {
            self.writer.begin_next_segment()?;
            self.is_closed = false;
        }
        self.writer.append_records(&stretch[..scan.position], scan)?;
        self.is_closed = closes;
        Ok(())
    }

    /// Makes what was taken readable, and durable up to what the source says, as far as it is there. Says up to where it is durable.
    pub fn publish(&mut self, durable: Offset) -> Offset {
        let end = self.writer.publish();
        let marks = &self.writer.shared.marks;
        let durable = durable.min(end).0.max(marks.get(Mark::Durable));
        marks.set(Mark::Durable, durable);
        Offset(durable)
    }

    /// As [`Writer::release_before`].
    pub fn release_before(&mut self, offset: Offset) -> Offset {
        self.writer.release_before(offset)
    }
}

/// Where what follows lies in a mirror whose records end at `tail`, and whose segment's pad has come if it `is_closed`.
#[must_use]
pub fn next_place(tail: Offset, segment_bytes: u64, is_closed: bool) -> Offset {
    let end = tail.0.saturating_sub(1) / segment_bytes * segment_bytes + segment_bytes;
    Offset(if is_closed || tail.0 == end { end + HEADER_BYTES as u64 } else { tail.0 })
}

/// Looks through a stretch that came for `next`: its records, and whether it closes their segment.
///
/// # Errors
/// [`MirrorError`], if it is not what follows, or not what was sealed there.
pub fn check_stretch(
    next: Offset,
    segment_bytes: u64,
    from: Offset,
    stretch: &[u8],
) -> Result<(Scan, bool), MirrorError> {
    if from != next {
        return Err(MirrorError::Gap { next, from });
    }
    let room = (segment_bytes - from.0 % segment_bytes) as usize;
    let scan = record::scan(&stretch[..stretch.len().min(room)], from.0, 0, usize::MAX);
    let closes = scan.position < room && scan.position + record::HEADER_BYTES == stretch.len();
    let what = match scan.end {
        End::Sealed if scan.position == stretch.len() || closes => return Ok((scan, closes)),
        End::Invalid(what) => what,
        End::Sealed | End::Open => record::Invalid::Kind,
    };
    Err(MirrorError::Damaged { offset: Offset(from.0 + scan.position as u64), what })
}

/// Makes the mirror in `dir` a log of its next writer's own, which continues behind its last whole record. Its source must not write any more, or there are
/// two logs of one name. Says whether there was one.
///
/// # Errors
/// [`OpenError`]: a process still writes the mirror, or the marks cannot be read or synced.
pub fn take_over(dir: &Path) -> Result<bool, OpenError> {
    if !dir.join("marks").exists() {
        return Ok(false);
    }
    let _lock = recover::lock(dir)?;
    let config = Config::default();
    replace::settle(dir, &*config.device)?;
    let Some(marks) = Marks::open(dir)?.filter(Marks::is_mirror) else { return Ok(false) };
    marks.set_mirror(false);
    let path = dir.join("marks");
    config.device.sync(&path, marks.file()).map_err(OpenError::io("sync", &path))?;
    Ok(true)
}

impl From<AppendError> for MirrorError {
    fn from(refused: AppendError) -> MirrorError {
        MirrorError::Append(refused)
    }
}
