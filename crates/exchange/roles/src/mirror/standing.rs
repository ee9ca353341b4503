//! Where a mirror stands, and whether that is in a log of its source: a record of the same bytes at the same offset is in the same log.

use pares_log::{LogReader, Offset, ReadError, next_place};

/// Bytes before a segment's first record.
const HEADER: u64 = 64;

/// What a receiver has of a log.
pub(super) struct Has {
    pub(super) segment_bytes: u64,
    pub(super) next: u64,
    pub(super) last: u64,
    pub(super) digest: u32,
}

/// Where the last record of a log lies, and the digest of what it says; zeros if it has none. The segment in which it lies is read.
pub(super) fn last_record(reader: &mut impl LogReader) -> Result<(u64, u32), ReadError> {
    let (segment_bytes, released) = (reader.segment_bytes(), reader.released().0);
    let mut base = reader.written().0.saturating_sub(1);
    base -= base % segment_bytes;
    loop {
        reader.seek(Offset(base.max(released)))?;
        let mut last = None;
        while let Some(record) = reader.next()? {
            last = Some((record.offset.0, crc32c::crc32c(record.payload)));
        }
        // A segment in which no record lies yet.
        match last {
            Some(last) => return Ok(last),
            None if base <= released => return Ok((0, 0)),
            None => base -= segment_bytes,
        }
    }
}

/// Whether what the receiver has is the beginning of this log: its last record lies here too, and what it takes next follows.
pub(super) fn is_the_same(reader: &mut impl LogReader, has: &Has) -> bool {
    let (released, written, segment_bytes) =
        (reader.released().0, reader.written().0, reader.segment_bytes());
    let header = |at: u64| next_place(Offset(at), segment_bytes, false).0;
    if has.segment_bytes != segment_bytes || has.next > header(written) || has.next < released {
        return false;
    }
    if has.last == 0 {
        return has.next == released + HEADER;
    }
    let mut follows = || -> Result<bool, ReadError> {
        reader.seek(Offset(has.last))?;
        let Some(record) = reader.next()? else { return Ok(false) };
        if record.offset.0 != has.last || crc32c::crc32c(record.payload) != has.digest {
            return Ok(false);
        }
        let end = reader.offset().0;
        if [end, header(end)].contains(&has.next) {
            return Ok(true);
        }
        // The pad.
        let closes = reader.next_stretch(Offset(u64::MAX), 1)?.is_some_and(|rest| rest.bytes.len() == 8);
        Ok(closes && reader.offset().0.is_multiple_of(segment_bytes) && has.next == header(reader.offset().0))
    };
    follows().unwrap_or(false)
}
