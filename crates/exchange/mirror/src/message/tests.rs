//! Bytes that are frozen, and bytes that are none.

use proptest::prelude::*;

use super::*;

const LOG: LogName = LogName::Recorder(258);

fn bytes(message: MirrorMessage<'_>) -> Vec<u8> {
    let mut bytes = vec![9; 3];
    message.encode(&mut bytes);
    bytes
}

/// All of them, and their bytes, as `docs/protocols/mirror.md` has them.
fn golden() -> Vec<(MirrorMessage<'static>, &'static [u8])> {
    let (path, paths) = ("epoch", "epoch\nleft-out/recorder-0\n");
    let of = |message: MirrorMessage<'static>, bytes: &'static [u8]| (message, bytes);
    vec![
        of(MirrorMessage::Hello { speaks: 1, understands: 1 }, b"\x01PMIR\x01\0\x01\0"),
        of(
            MirrorMessage::Have { log: LOG, segment_bytes: 4096, next: 80, last: 64, digest: 7 },
            b"\x02\x01\x02\x01\0\x10\0\0\0\0\0\0\x50\0\0\0\0\0\0\0\x40\0\0\0\0\0\0\0\x07\0\0\0",
        ),
        of(MirrorMessage::HaveFile { bytes: 5, digest: 7, path }, b"\x03\x05\0\0\0\0\0\0\0\x07\0\0\0epoch"),
        of(MirrorMessage::Go, b"\x04"),
        of(MirrorMessage::Taken { log: LogName::Gateway(3), bytes: 5 }, b"\x05\0\x03\0\x05\0\0\0\0\0\0\0"),
        of(MirrorMessage::TakenFiles { bytes: 5 }, b"\x06\x05\0\0\0\0\0\0\0"),
        of(
            MirrorMessage::Begins { log: LOG, segment_bytes: 4096, from: 80, afresh: true },
            b"\x10\x01\x02\x01\0\x10\0\0\0\0\0\0\x50\0\0\0\0\0\0\0\x01",
        ),
        of(
            MirrorMessage::Stretch { log: LOG, from: 80, bytes: b"rec" },
            b"\x11\x01\x02\x01\x50\0\0\0\0\0\0\0rec",
        ),
        of(
            MirrorMessage::Marks { log: LOG, written: 3, durable: 2, released: 1 },
            b"\x12\x01\x02\x01\x03\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0",
        ),
        of(
            MirrorMessage::Piece { at: 0, of: 5, file: (path, b"7 8f") },
            b"\x13\0\0\0\0\0\0\0\0\x05\0\0\0\0\0\0\0\x05\0epoch7 8f",
        ),
        of(MirrorMessage::Keep { paths }, b"\x14epoch\nleft-out/recorder-0\n"),
        of(MirrorMessage::Round { number: 5 }, b"\x15\x05\0\0\0\0\0\0\0"),
        of(MirrorMessage::Ends { why: "no" }, b"\x16no"),
    ]
}

#[test]
fn their_bytes_are_frozen() {
    for (message, frozen) in golden() {
        assert_eq!(bytes(message), frozen, "{message:?}");
        assert_eq!(MirrorMessage::decode(frozen), Ok(message));
    }
}

#[test]
fn cut_ones_are_none() {
    for (message, frozen) in golden() {
        for cut in 0..frozen.len() {
            assert_ne!(MirrorMessage::decode(&frozen[..cut]), Ok(message), "{cut} of {message:?}");
        }
    }
}

#[test]
fn the_lower_version_is_spoken_if_both_understand_it() {
    assert_eq!(agreed(SPEAKS + 1, SPEAKS), Ok(SPEAKS));
    assert_eq!(agreed(SPEAKS + 2, SPEAKS + 1), Err(MirrorFault::Version { theirs: SPEAKS + 2 }));
    assert_eq!(agreed(0, 0), Err(MirrorFault::Version { theirs: 0 }));
    assert!(MirrorMessage::decode(b"\x01PMIR\x02\0\x01\0and more").is_ok(), "what a later one adds");
}

proptest! {
    #[test]
    fn damaged_ones_do_not_panic(which: prop::sample::Index, at: prop::sample::Index, bit in 0..8, more: Vec<u8>) {
        let golden = golden();
        let mut bytes = golden[which.index(golden.len())].1.to_vec();
        let at = at.index(bytes.len());
        bytes[at] ^= 1_u8 << bit;
        bytes.extend(more);
        if let Ok(message) = MirrorMessage::decode(&bytes) && !matches!(message, MirrorMessage::Hello { .. }) {
            prop_assert_eq!(self::bytes(message), bytes);
        }
    }
}
