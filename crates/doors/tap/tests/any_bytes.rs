//! Whatever a tap's log holds is shown or refused.
#![allow(clippy::unwrap_used)] // a test

use pares_fix::framing;
use pares_port::{SecretScan, TAP_HEAD_BYTES, TapDoor, TapEntry, TapHead, TapKind};
use pares_tap::{Blank, Tape, TapeEnd, TapedMeaning, TapedPiece, TapedRole, TapedTalk};
use pares_wire::frame::{self, Message as _};
use proptest::prelude::*;
use zerocopy::IntoBytes;

const DOORS: [TapDoor; 3] = [TapDoor::Binary, TapDoor::Fix, TapDoor::Ouch];

fn record(kind: TapKind, door: TapDoor, at: u64, bytes: &[u8]) -> Vec<u8> {
    let head = TapHead { at: at.into(), ..TapHead::new(kind, door, 1) };
    [head.as_bytes(), bytes].concat()
}

/// A connection over which these pieces came in, at these places; and what was said on it.
fn tape(door: TapDoor, kind: TapKind, pieces: &[(u64, Vec<u8>)]) -> (Tape, Vec<TapedMeaning>) {
    let (mut tape, mut talk, mut said) = (Tape::default(), TapedTalk::new(door), Vec::new());
    for (at, bytes) in pieces {
        let record = record(kind, door, *at, bytes);
        let entry = TapEntry::read(&record).unwrap();
        assert_eq!(tape.take(&entry), Some(0));
        talk.take(&TapedPiece::of(&entry).unwrap(), |one| said.push(one));
    }
    talk.finish(|one| said.push(one));
    (tape, said)
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

/// Parts of FIX streams, of which some lie.
fn fix_parts() -> impl Strategy<Value = Vec<u8>> {
    let parts = [
        "8=FIX.4.4|",
        "8=FIX",
        "8",
        "9=5|",
        "9=0|",
        "9=22|",
        "9=900|",
        "9=99999|",
        "9=12345678901|",
        "35=0|",
        "35=D|11=1|",
        "95=8192|",
        "95=4|",
        "96=",
        "96=ab|c|",
        "554=x",
        "|",
        "10=163|",
        "10=1|",
        "10=123456789|",
        "10=",
        "8=FIX.4.4|9=5|35=0|10=163|",
        "8=FIX.4.4|9=13|95=8192|96=a|10=000|",
    ];
    let part = prop::sample::select(parts.to_vec());
    prop::collection::vec(part, 0..24).prop_map(|parts| parts.concat().replace('|', "\x01").into_bytes())
}

/// Where messages of FIX begin and end.
fn cuts(mut bytes: &[u8]) -> Vec<usize> {
    let mut lengths = Vec::new();
    loop {
        let (cut, used) = framing::cut(bytes);
        // Behind it the connection has ended.
        if matches!(cut, framing::Cut::Incomplete | framing::Cut::TooLong) {
            return lengths;
        }
        lengths.push(used);
        bytes = &bytes[used..];
    }
}

proptest! {
    #[test]
    fn blanked_fix_bytes_still_split_into_messages(given in fix_parts()) {
        let mut blanked = given.clone();
        Blank::new(TapDoor::Fix).pass(&given, &mut |secret| blanked[secret].fill(b'*'));
        prop_assert_eq!(cuts(&blanked), cuts(&given));
    }

    #[test]
    fn whatever_passed_is_told(pieces in prop::collection::vec((0_u64..200, bytes()), 0..8)) {
        for (door, kind) in DOORS.into_iter().flat_map(|door| [(door, TapKind::In), (door, TapKind::Out)]) {
            let (tape, said) = tape(door, kind, &pieces);
            let total: usize = said.iter().map(|one| one.message.bytes.len()).sum();
            prop_assert!(total <= pieces.iter().map(|(_, bytes)| bytes.len()).sum::<usize>());
            prop_assert!(tape.connections.len() <= 1);
        }
    }

    #[test]
    fn whatever_lies_in_the_log_is_read_or_refused(record in prop::collection::vec(any::<u8>(), 0..2 * TAP_HEAD_BYTES)) {
        if let Ok(entry) = TapEntry::read(&record) {
            Tape::default().take(&entry);
        }
    }
}

#[test]
fn messages_reassemble_and_resync_after_gap() {
    let mut one = Vec::new();
    frame::write(&mut one, &frame::Ping { token: 7.into() });
    let stream = one.repeat(3);
    let length = one.len() as u64;
    for at_once in [1, 5, stream.len()] {
        let pieces = stream.chunks(at_once).enumerate();
        let pieces: Vec<_> =
            pieces.map(|(index, piece)| ((index * at_once) as u64, piece.to_vec())).collect();
        let (_, said) = tape(TapDoor::Binary, TapKind::In, &pieces);
        let whole: Vec<u64> = said.iter().map(|one| one.message.at).collect();
        assert_eq!(whole, [0, length, 2 * length]);
    }
    let gap = [(0, one[..3].to_vec()), (length, one.clone())];
    let (tape, said) = tape(TapDoor::Binary, TapKind::In, &gap);
    let told: Vec<_> = said.iter().map(|one| (one.message.at, one.message.is_whole)).collect();
    assert_eq!((told, tape.connections[0].missing), (vec![(0, false), (length, true)], [length - 3, 0]));
}

#[test]
fn connections_of_gateway_runs_differ_without_start_entry() {
    let mut tape = Tape::default();
    for (life, at) in [(7_u64, 100), (7, 103), (9, 50)] {
        let head = TapHead { life: life.into(), at: at.into(), ..TapHead::new(TapKind::In, TapDoor::Fix, 1) };
        tape.take(&TapEntry::read(&[head.as_bytes(), b"abc"].concat()).unwrap());
    }
    let told: Vec<_> = tape.connections.iter().map(|one| (one.place(), one.end, one.before)).collect();
    assert_eq!(told, [((7, 1), TapeEnd::Gateway, [100, 0]), ((9, 1), TapeEnd::Open, [50, 0])]);
}

#[test]
fn operator_requests_use_protocol_names() {
    let mut bytes = Vec::new();
    frame::write(&mut bytes, &frame::SetPhase { client_order_id: 5.into(), ..frame::SetPhase::default() });
    let mut cut = frame::ChangeRegister { client_order_id: 6.into(), ..frame::ChangeRegister::default() };
    cut.value = [b'*'; 32];
    frame::write(&mut bytes, &cut);
    let (_, said) = tape(TapDoor::Binary, TapKind::In, &[(0, bytes)]);
    let kinds: Vec<_> = said.iter().map(|one| (one.kind.as_str(), one.name)).collect();
    assert_eq!(kinds, [("SetPhase", Some(5)), ("ChangeRegister", Some(6))]);
}

#[test]
fn blanked_bytes_outside_proofs_are_counted() {
    let message =
        |body: &str| format!("8=FIX.4.4|9={}|{body}10=000|", body.len()).replace('|', "\x01").into_bytes();
    let logon = message("35=A|95=3|96=***|");
    let order = message("35=D|11=7|95=9|96=*********|");
    let (_, said) = tape(TapDoor::Fix, TapKind::In, &[(0, [logon, order, b"96=****".to_vec()].concat())]);
    let blanked: Vec<_> = said.iter().map(|one| one.blanked_bytes(TapDoor::Fix)).collect();
    assert_eq!(blanked, [0, 9, 4]);
}

#[test]
fn requests_behind_an_unknown_frame_are_ignored() {
    let cancel = |name: u64| {
        let mut bytes = Vec::new();
        let cancel = frame::CancelOrder { client_order_id: name.into(), ..frame::CancelOrder::default() };
        frame::write(&mut bytes, &cancel);
        bytes
    };
    let (first, unknown, second) = (cancel(5), vec![4, 0, 200, 1], cancel(6));
    let roles = |pieces: &[(u64, Vec<u8>)]| {
        let (_, said) = tape(TapDoor::Binary, TapKind::In, pieces);
        said.iter().map(|one| one.role).collect::<Vec<_>>()
    };
    let all = [first.clone(), unknown.clone(), second.clone()].concat();
    assert_eq!(roles(&[(0, all)]), [TapedRole::Request, TapedRole::Other, TapedRole::Ignored]);
    // The gateway answers a question that is cut short, and reads on.
    let cut = vec![4, 0, frame::ListRequest::KIND, 1];
    let all = [first.clone(), cut, second.clone()].concat();
    assert_eq!(roles(&[(0, all)]), [TapedRole::Request, TapedRole::Other, TapedRole::Request]);
    // What a certain end is followed by stays unread, though bytes are missing.
    let pieces = [(0, [first.clone(), unknown.clone()].concat()), (1_000, second.clone())];
    assert_eq!(roles(&pieces), [TapedRole::Request, TapedRole::Other, TapedRole::Ignored]);
    // Behind missing bytes it may have been the middle of a frame.
    let pieces = [(0, first), (1_000, [unknown, second].concat())];
    assert_eq!(roles(&pieces), [TapedRole::Request, TapedRole::Other, TapedRole::Request]);
}
