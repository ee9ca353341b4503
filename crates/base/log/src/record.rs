//! The encoding of records, on plain slices: no files, no shared memory, nothing unsafe.
//!
//! ```text
//!   0          4          8                      8 + len     next multiple of 8
//!   +----------+----------+----------------------+-----------+
//!   | word u32 | crc u32  | payload              | padding   |
//!   +----------+----------+----------------------+-----------+
//!   word: kind (8 bits: 1 data, 2 pad) | payload length (24 bits), little-endian
//!   crc:  CRC-32C over word, offset of the record (u64), payload
//! ```
//!
//! The checksum covers the offset, so that an intact record at another place than its own (an old copy, a file
//! renamed, a block misdirected by the disk) never validates. A *pad* closes a segment whose rest is too short for the
//! next record; records never span segments. Zeros are the absence of a record.

/// Bytes before the payload.
pub const HEADER_BYTES: usize = 8;

/// Longest payload the encoding can express; a log may allow less.
pub const PAYLOAD_BYTES_MAX: usize = (1 << 24) - 1;

const KIND_DATA: u32 = 1 << 24;
const KIND_PAD: u32 = 2 << 24;
const KIND_MASK: u32 = 0xff << 24;

/// What lies at a place where a record may begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decoded<'a> {
    /// Zeros: nothing was appended here.
    Nothing,
    /// The rest of the segment is unused.
    Pad,
    /// A record with this payload.
    Data(&'a [u8]),
}

/// Why bytes are not an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Invalid {
    /// The kind is neither data nor pad, or fewer than 8 bytes are left.
    #[error("no record begins here")]
    Kind,
    /// The length reaches past the end of the segment.
    #[error("the record's length reaches past its segment")]
    Length,
    /// The content is not what was sealed at this offset.
    #[error("the record's checksum does not match")]
    Checksum,
}

/// Bytes that a record with `len` bytes of payload takes.
#[inline]
pub const fn size(len: usize) -> usize {
    (HEADER_BYTES + len).next_multiple_of(8)
}

/// Completes a record whose payload of `len` bytes already lies behind the header's place.
///
/// # Panics
/// If `bytes` is shorter than header and payload, or `len` exceeds [`PAYLOAD_BYTES_MAX`].
#[inline]
pub fn seal(bytes: &mut [u8], offset: u64, len: usize) {
    assert!(len <= PAYLOAD_BYTES_MAX, "a payload of {len} bytes cannot be encoded");
    let word = KIND_DATA | len as u32;
    let crc = checksum(word, offset, &bytes[HEADER_BYTES..HEADER_BYTES + len]);
    put_header(bytes, word, crc);
}

/// Writes the pad that closes a segment.
///
/// # Panics
/// If `bytes` is shorter than a header.
pub fn seal_pad(bytes: &mut [u8], offset: u64) {
    put_header(bytes, KIND_PAD, checksum(KIND_PAD, offset, &[]));
}

/// Reads the entry at the beginning of `bytes`, which reach to the end of the segment. Without `verify` the content
/// is taken on trust and only the header's shape is checked.
///
/// # Errors
/// [`Invalid`], and never a panic, whatever the bytes.
#[inline]
pub fn decode(bytes: &[u8], offset: u64, verify: bool) -> Result<Decoded<'_>, Invalid> {
    let Some((header, rest)) = bytes.split_first_chunk::<HEADER_BYTES>() else { return Err(Invalid::Kind) };
    let [a, b, c, d, e, f, g, h] = *header;
    let (word, crc) = (u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes([e, f, g, h]));
    let payload = match word & KIND_MASK {
        KIND_DATA => rest.get(..(word & !KIND_MASK) as usize).ok_or(Invalid::Length)?,
        KIND_PAD if word == KIND_PAD => &[],
        0 if word == 0 && crc == 0 => return Ok(Decoded::Nothing),
        _ => return Err(Invalid::Kind),
    };
    if verify && crc != checksum(word, offset, payload) {
        return Err(Invalid::Checksum);
    }
    Ok(if word == KIND_PAD { Decoded::Pad } else { Decoded::Data(payload) })
}

fn put_header(bytes: &mut [u8], word: u32, crc: u32) {
    bytes[..4].copy_from_slice(&word.to_le_bytes());
    bytes[4..8].copy_from_slice(&crc.to_le_bytes());
}

/// Aligned, so that the checksum takes it by words and not by bytes.
#[repr(align(8))]
struct Place([u8; 12]);

#[inline]
fn checksum(word: u32, offset: u64, payload: &[u8]) -> u32 {
    let mut place = Place([0; 12]);
    place.0[..4].copy_from_slice(&word.to_le_bytes());
    place.0[4..].copy_from_slice(&offset.to_le_bytes());
    crc32c::crc32c_append(crc32c::crc32c(&place.0), payload)
}

/// How the records of a segment end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// With zeros, or at the limit asked for: more may follow here.
    Open,
    /// With a pad or at the last byte: the next record is in the next segment.
    Sealed,
    /// With something that is no record.
    Invalid(Invalid),
}

/// What a scan of a segment found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scan {
    /// How it ended.
    pub end: End,
    /// Where in the segment: behind the last whole record.
    pub position: usize,
    /// Whole records.
    pub records: u64,
    /// Bytes of their payloads.
    pub payload_bytes: u64,
}

/// Walks the records of a segment by their checksums, from byte `from` up to `limit`. `base` is the offset of byte 0.
pub fn scan(segment: &[u8], base: u64, from: usize, limit: usize) -> Scan {
    let mut scan = Scan { end: End::Sealed, position: from, records: 0, payload_bytes: 0 };
    while scan.position < segment.len() {
        if scan.position >= limit {
            scan.end = End::Open;
            break;
        }
        match decode(&segment[scan.position..], base + scan.position as u64, true) {
            Ok(Decoded::Data(payload)) => {
                scan.position += size(payload.len());
                scan.records += 1;
                scan.payload_bytes += payload.len() as u64;
                continue;
            }
            Ok(Decoded::Nothing) => scan.end = End::Open,
            Ok(Decoded::Pad) => {}
            Err(why) => scan.end = End::Invalid(why),
        }
        break;
    }
    scan
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sealed(payload: &[u8], offset: u64) -> Vec<u8> {
        let mut bytes = vec![0; size(payload.len())];
        bytes[HEADER_BYTES..HEADER_BYTES + payload.len()].copy_from_slice(payload);
        seal(&mut bytes, offset, payload.len());
        bytes
    }

    #[test]
    fn the_bytes_of_a_record_are_frozen() {
        assert_eq!(sealed(b"hello", 64), *b"\x05\0\0\x01\x08\x95\x2e\x78hello\0\0\0");
    }

    #[test]
    fn a_record_at_another_place_than_its_own_is_invalid() {
        assert_eq!(decode(&sealed(b"x", 64), 72, true), Err(Invalid::Checksum));
    }

    #[test]
    fn zeros_are_nothing_and_an_empty_record_is_something() {
        assert_eq!(decode(&[0; 16], 0, true), Ok(Decoded::Nothing));
        assert_eq!(decode(&sealed(b"", 0), 0, true), Ok(Decoded::Data(b"")));
    }

    #[test]
    fn a_scan_stops_at_pad_zeros_limit_and_damage() {
        let mut segment = [sealed(b"one", 4096), sealed(b"two", 4112), vec![0; 32]].concat();
        assert_eq!((scan(&segment, 4096, 0, 64).end, scan(&segment, 4096, 0, 64).position), (End::Open, 32));
        assert_eq!(scan(&segment, 4096, 0, 16).records, 1);
        seal_pad(&mut segment[32..], 4128);
        assert_eq!(
            (scan(&segment, 4096, 0, 64).end, scan(&segment, 4096, 0, 64).position),
            (End::Sealed, 32)
        );
        segment[25] ^= 1;
        let found = scan(&segment, 4096, 0, 64);
        assert_eq!((found.end, found.position, found.records), (End::Invalid(Invalid::Checksum), 16, 1));
    }

    proptest! {
        #[test]
        fn what_was_sealed_is_decoded(payload: Vec<u8>, offset: u64) {
            let bytes = sealed(&payload, offset);
            prop_assert_eq!(decode(&bytes, offset, true), Ok(Decoded::Data(&payload[..])));
        }

        #[test]
        fn any_flipped_bit_is_detected(payload: Vec<u8>, offset: u64, bit: prop::sample::Index) {
            let mut bytes = sealed(&payload, offset);
            let bit = bit.index((HEADER_BYTES + payload.len()) * 8);
            bytes[bit / 8] ^= 1 << (bit % 8);
            prop_assert_ne!(decode(&bytes, offset, true), Ok(Decoded::Data(&payload[..])));
            prop_assert!(decode(&bytes, offset, true).is_err());
        }

        #[test]
        fn garbage_never_panics(bytes: Vec<u8>, offset: u64, verify: bool) {
            let _any = decode(&bytes, offset, verify);
            let _any = scan(&bytes, offset >> 1, 0, usize::MAX);
        }
    }
}
