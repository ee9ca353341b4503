//! Whatever a tap's log holds is told or refused.
#![allow(clippy::unwrap_used)] // a test

use pares_tap::{TAP_HEAD_BYTES, TapDoor, TapEntry, TapHead, TapKind, Tape, meanings, messages};
use pares_wire::frame;
use proptest::prelude::*;
use zerocopy::IntoBytes;

const DOORS: [TapDoor; 3] = [TapDoor::Binary, TapDoor::Fix, TapDoor::Ouch];

fn record(kind: TapKind, door: TapDoor, at: u64, bytes: &[u8]) -> Vec<u8> {
    let head = TapHead { at: at.into(), ..TapHead::new(kind, door, 1) };
    [head.as_bytes(), bytes].concat()
}

/// A connection over which these pieces came in, at these places.
fn tape(door: TapDoor, kind: TapKind, pieces: &[(u64, Vec<u8>)]) -> Tape {
    let mut tape = Tape::default();
    for (at, bytes) in pieces {
        tape.take(&TapEntry::read(&record(kind, door, *at, bytes)).unwrap(), &|_| true);
    }
    tape
}

/// Bytes that look like the beginning of something.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let soh = |text: &str| text.replace('|', "\x01").into_bytes();
    let like = prop::sample::select(vec![
        soh("8=FIX.4.4|9=5|35=0|10=163|"),
        soh("8=FIX.4.4|9=12|35=8|17=0-1-A|10=000|"),
        b"\0\x01U\0\x05UO\0\0\0\0\x05S\0\0\0\xff\0\x02+J".to_vec(),
        b"\x24\0\x02\x01".to_vec(),
        Vec::new(),
    ]);
    (like, prop::collection::vec(any::<u8>(), 0..60)).prop_map(|(like, more)| [like, more].concat())
}

proptest! {
    #[test]
    fn whatever_passed_is_told(pieces in prop::collection::vec((0_u64..200, bytes()), 0..8)) {
        for (door, kind) in DOORS.into_iter().flat_map(|door| [(door, TapKind::In), (door, TapKind::Out)]) {
            for connection in &tape(door, kind, &pieces).connections {
                prop_assert_eq!(meanings(connection).len(), messages(connection).len());
            }
        }
    }

    #[test]
    fn whatever_lies_in_the_log_is_read_or_refused(record in prop::collection::vec(any::<u8>(), 0..2 * TAP_HEAD_BYTES)) {
        if let Ok(entry) = TapEntry::read(&record) {
            Tape::default().take(&entry, &|_| true);
        }
    }
}

#[test]
fn messages_are_whole_however_they_came_and_cutting_begins_anew_behind_a_gap() {
    let mut one = Vec::new();
    frame::write(&mut one, &frame::Ping { token: 7.into() });
    let stream = one.repeat(3);
    let length = one.len() as u64;
    for at_once in [1, 5, stream.len()] {
        let pieces = stream.chunks(at_once).enumerate();
        let pieces: Vec<_> =
            pieces.map(|(index, piece)| ((index * at_once) as u64, piece.to_vec())).collect();
        let tape = tape(TapDoor::Binary, TapKind::In, &pieces);
        let whole: Vec<u64> = messages(&tape.connections[0]).iter().map(|message| message.at).collect();
        assert_eq!(whole, [0, length, 2 * length]);
    }
    let gap = [(0, one[..3].to_vec()), (length, one.clone())];
    let tape = tape(TapDoor::Binary, TapKind::In, &gap);
    let told: Vec<_> =
        messages(&tape.connections[0]).iter().map(|message| (message.at, message.is_whole)).collect();
    assert_eq!((told, tape.connections[0].missing), (vec![(0, false), (length, true)], [length - 3, 0]));
}
