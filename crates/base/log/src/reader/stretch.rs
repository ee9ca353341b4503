//! Many records at once, as they lie there: for who copies them and does not look into them.

use super::{Reader, damaged};
use crate::error::ReadError;
use crate::marks::Mark;
use crate::offset::Offset;
use crate::record::{self, Decoded, End, Invalid};
use crate::segment::HEADER_BYTES;

/// Bytes of one segment as they lie there: whole records, and the pad that closes it, if they reach that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RawStretch<'a> {
    /// Where they begin.
    pub offset: Offset,
    /// At least a record, or the pad.
    pub bytes: &'a [u8],
}

impl Reader {
    /// The published records from here on that lie below `end`, as far as their segment goes: `bytes_max` of them, and what the last one has beyond. Each is
    /// verified, none copied.
    ///
    /// # Errors
    /// As [`next`](Self::next). Whole records before damage are handed out first.
    pub fn next_stretch(
        &mut self,
        end: Offset,
        bytes_max: usize,
    ) -> Result<Option<RawStretch<'_>>, ReadError> {
        self.limit = self.marks.get(Mark::Written);
        let until = end.0.min(self.limit);
        let at = if self.geometry.position(self.at) == 0 { self.at + HEADER_BYTES as u64 } else { self.at };
        if at >= until {
            return Ok(None);
        }
        self.at = at;
        let (base, position) = (self.geometry.base(self.at), self.geometry.position(self.at));
        self.map_here()?;
        let current = self.current.as_ref().expect("mapped above");
        let until = (until - base).min((position + bytes_max) as u64) as usize;
        let scan = record::scan(current.from(0), base, position, until);
        let is_pad = || matches!(record::decode(current.from(scan.position), base, false), Ok(Decoded::Pad));
        let end = match scan.end {
            End::Sealed if is_pad() => scan.position + record::HEADER_BYTES,
            _ => scan.position,
        };
        if end == position {
            let what = if let End::Invalid(what) = scan.end { what } else { Invalid::Kind };
            return Err(damaged(self.at, what));
        }
        let offset = Offset(self.at);
        self.at = if end > scan.position { base + self.geometry.segment_bytes } else { base + end as u64 };
        Ok(Some(RawStretch { offset, bytes: current.map.bytes(position..end) }))
    }
}
