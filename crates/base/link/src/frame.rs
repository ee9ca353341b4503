//! Frames: a length, then that many bytes.
//!
//! ```text
//!  0          4
//! +----------+---------------------+
//! | length   | payload             |   length: u32, little-endian, of the payload alone
//! +----------+---------------------+
//! ```
//! TCP is a stream: what one side wrote at once comes in pieces, or glued to its neighbour. The length tells the pieces
//! apart, and it is the first thing a broken or hostile sender gets wrong, so it is believed only up to a bound.

/// Bytes before the payload.
pub const HEAD_BYTES: usize = 4;

/// A length beyond the bound: nothing after it can be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLong {
    /// What the head says, in bytes.
    pub bytes: usize,
}

/// A payload, and what follows it.
pub type Split<'a> = (&'a [u8], &'a [u8]);

/// The first payload in `bytes` and what follows it, or nothing if it is not there as a whole yet.
///
/// # Errors
/// If the head announces more than `max` bytes of payload. That is said as soon as the head is there.
pub fn split(bytes: &[u8], max: usize) -> Result<Option<Split<'_>>, TooLong> {
    let Some((head, rest)) = bytes.split_first_chunk::<HEAD_BYTES>() else { return Ok(None) };
    let length = u32::from_le_bytes(*head) as usize;
    if length > max {
        return Err(TooLong { bytes: length });
    }
    Ok(rest.split_at_checked(length))
}

/// Appends a frame.
///
/// # Panics
/// If the payload is longer than a length can say (4 GiB).
pub fn append(out: &mut Vec<u8>, payload: &[u8]) {
    let length = u32::try_from(payload.len()).expect("payloads are bounded far below 4 GiB");
    out.reserve(HEAD_BYTES + payload.len());
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(payload);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn half_a_frame_is_waited_for() {
        let mut bytes = Vec::new();
        append(&mut bytes, b"abc");
        for cut in 0..bytes.len() {
            assert_eq!(split(&bytes[..cut], 3), Ok(None));
        }
        assert_eq!(split(&bytes, 3), Ok(Some((&b"abc"[..], &b""[..]))));
    }

    #[test]
    fn a_giant_length_is_refused_before_its_bytes_come() {
        assert_eq!(split(&u32::MAX.to_le_bytes(), 1 << 20), Err(TooLong { bytes: u32::MAX as usize }));
        assert_eq!(split(&4u32.to_le_bytes(), 3), Err(TooLong { bytes: 4 }));
    }

    #[test]
    fn an_empty_frame_is_a_frame() {
        assert_eq!(split(&[0, 0, 0, 0, 9], 0), Ok(Some((&b""[..], &[9u8][..]))));
    }

    proptest! {
        #[test]
        fn whatever_the_pieces_the_payloads_are_the_same(
            payloads in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..40), 0..12),
            pieces in proptest::collection::vec(1usize..17, 1..40),
        ) {
            let mut stream = Vec::new();
            payloads.iter().for_each(|payload| append(&mut stream, payload));
            let (mut buffer, mut seen, mut at) = (Vec::new(), Vec::new(), 0);
            for piece in pieces.iter().cycle() {
                if at == stream.len() {
                    break;
                }
                let end = stream.len().min(at + piece);
                buffer.extend_from_slice(&stream[at..end]);
                at = end;
                while let Some((payload, rest)) = split(&buffer, 40).unwrap() {
                    seen.push(payload.to_vec());
                    buffer = rest.to_vec();
                }
            }
            prop_assert_eq!(seen, payloads);
            prop_assert!(buffer.is_empty());
        }

        #[test]
        fn rubbish_is_split_or_refused_and_nothing_is_invented(bytes in proptest::collection::vec(any::<u8>(), 0..200), max in 0usize..300) {
            let (mut rest, mut taken) = (&bytes[..], 0);
            while let Ok(Some((payload, after))) = split(rest, max) {
                prop_assert!(payload.len() <= max);
                taken += HEAD_BYTES + payload.len();
                prop_assert_eq!(taken + after.len(), bytes.len());
                rest = after;
            }
        }
    }
}
