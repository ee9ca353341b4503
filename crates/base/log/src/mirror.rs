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
use crate::record::{self, End};
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
    /// Opens the mirror in `dir`, cut to what is whole. If there is none, and none of `config`'s is wanted to exist, it is made, to begin with the segment at `first`.
    ///
    /// # Errors
    /// As [`Writer::open`]; and [`OpenError::NotAMirror`] if the log there is its writer's own.
    pub fn open(dir: &Path, config: Config, first: Offset) -> Result<Mirror, OpenError> {
        let (writer, _) = Writer::open(dir, of(config, first))?;
        Ok(Mirror { writer, is_closed: false })
    }

    /// Sets aside the mirror in `dir`, and whatever lies beside it, as [`Replacement`] does, and begins another: its source is another log now.
    ///
    /// # Errors
    /// As [`Mirror::open`] and [`Replacement::begin`].
    pub fn begin_anew(dir: &Path, config: Config, first: Offset) -> Result<Mirror, OpenError> {
        let _set_aside = Replacement::begin(dir, of(config.clone(), first))?.complete()?;
        Mirror::open(dir, config, first)
    }

    /// Where the next record lies at the source: in the next segment, if this one is closed.
    #[must_use]
    pub fn next(&self) -> Offset {
        let tail = &self.writer.tail;
        match self.is_closed || tail.room() == 0 {
            true => Offset(tail.segment.base + tail.segment.map.len() as u64 + HEADER_BYTES as u64),
            false => Offset(tail.offset()),
        }
    }

    /// Stores a stretch of the source that begins at `from`. Not readable before [`publish`](Mirror::publish).
    ///
    /// # Errors
    /// [`MirrorError`]; the mirror is then as before.
    pub fn take(&mut self, from: Offset, stretch: &[u8]) -> Result<(), MirrorError> {
        self.writer.shared.check_poison()?;
        if from != self.next() {
            return Err(MirrorError::Gap { next: self.next(), from });
        }
        let scan = record::scan(stretch, from.0, 0, usize::MAX);
        let damaged = |at: usize, what| MirrorError::Damaged { offset: Offset(from.0 + at as u64), what };
        let closes = match scan.end {
            End::Sealed if scan.position == stretch.len() => false,
            End::Sealed if scan.position + record::HEADER_BYTES == stretch.len() => true,
            End::Invalid(what) => return Err(damaged(scan.position, what)),
            End::Sealed | End::Open => return Err(damaged(scan.position, record::Invalid::Kind)),
        };
        let geometry = self.writer.shared.geometry;
        let room = geometry.segment_bytes as usize - geometry.position(from.0);
        if stretch.len() > room {
            return Err(damaged(room, record::Invalid::Length));
        }
        if self.is_closed || self.writer.tail.room() == 0 {
            self.writer.begin_next_segment()?;
            self.is_closed = false;
        }
        self.writer.append_records(&stretch[..scan.position], scan.records, scan.payload_bytes);
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

/// A mirror promises nothing by itself: what it has is in the page cache.
fn of(config: Config, first: Offset) -> Config {
    Config { mirror_from: Some(first.0), ..config.durability(Durability::Os) }
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
