//! Places in a log.

use std::fmt;
use std::path::{Path, PathBuf};

/// A place in a log, in bytes since it began. Never reused, so a reader that remembers one resumes exactly there.
///
/// Segments are equally long, so the offset alone names the segment and the place in it. Every record starts at a
/// multiple of 8.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Offset(pub u64);

impl Offset {
    /// The beginning of a log, wherever its first record lies.
    pub const START: Offset = Offset(0);

    /// Bytes from `earlier` to here; zero if it is not earlier.
    pub fn since(self, earlier: Offset) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

impl fmt::Display for Offset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// How offsets map to segments of one log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Geometry {
    /// Bytes of offset space (and of file) per segment.
    pub(crate) segment_bytes: u64,
}

impl Geometry {
    /// First offset of the segment that `offset` lies in.
    pub(crate) fn base(self, offset: u64) -> u64 {
        offset - offset % self.segment_bytes
    }

    /// Byte inside the segment's file.
    pub(crate) fn position(self, offset: u64) -> usize {
        (offset % self.segment_bytes) as usize
    }

    /// First offset of the segment that the end mark `end` closes or lies in: an end at a boundary belongs to the
    /// segment it ends, not to the next, which may not exist yet.
    pub(crate) fn base_of_end(self, end: u64) -> u64 {
        self.base(end.saturating_sub(1))
    }
}

/// Path of the segment that begins at `base`, in the log's directory.
pub(crate) fn segment_path(dir: &Path, base: u64) -> PathBuf {
    dir.join(format!("{base:020}.seg"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_at_a_boundary_belongs_to_the_segment_it_ends() {
        let g = Geometry { segment_bytes: 4096 };
        assert_eq!((g.base(4096), g.base_of_end(4096), g.base_of_end(4097)), (4096, 0, 4096));
        assert_eq!((g.position(4096), g.base_of_end(0)), (0, 0));
    }
}
