//! The tap: entries of its log, and the secrets that are blanked before they come there.

use pares_fix::dictionary::FIX44;
use pares_fix::writer::FixWriter;
use pares_port::{SecretScan, TapDoor, TapEntry, TapHead, TapKind, TapLoss};
use pares_publisher::logged::{blocks, push_block};
use pares_tap::{Blank, Tape, TapedMeaning, TapedPiece, TapedTalk};
use pares_wire::frame::{self, ChangeRegister, Ping, Proof, SignOn};
use zerocopy::IntoBytes;
use zerocopy::little_endian::U64;

const DOORS: [TapDoor; 3] = [TapDoor::Binary, TapDoor::Fix, TapDoor::Ouch];

/// Entries, each behind its length, as `pares tap` reads them. A message ends in the piece that it is reported with, or has waited; and no more is missing than there was.
pub fn entries(bytes: &[u8]) {
    let (mut tape, mut talks) = (Tape::default(), Vec::<TapedTalk>::new());
    for record in blocks(bytes) {
        let Ok(entry) = TapEntry::read(record) else { continue };
        let Some(index) = tape.take(&entry) else { continue };
        let door = tape.connections[index].door;
        talks.resize_with(tape.connections.len().max(talks.len()), || TapedTalk::new(door));
        let Some(piece) = TapedPiece::of(&entry) else { continue };
        talks[index].take(&piece, |said| check(&said, door, &piece));
    }
    talks
        .iter_mut()
        .for_each(|talk| talk.finish(|said| assert!(said.message.is_in, "only what came in waits")));
    for connection in &tape.connections {
        for way in 0..2 {
            assert!(connection.before[way] <= connection.missing[way], "what was before is missing");
            assert!(connection.missing[way] <= connection.totals[way], "what is missing was there");
        }
    }
}

/// A message is of the moment at which its last byte passed.
fn check(said: &TapedMeaning, door: TapDoor, piece: &TapedPiece<'_>) {
    let TapedMeaning { message, .. } = said;
    let length = message.bytes.len() as u64;
    assert!(length > 0 && said.blanked_bytes(door) <= length);
    let ends = |at: u64, length: u64| at.saturating_add(length);
    let (end, piece_end) = (ends(message.at, length), ends(piece.at, piece.bytes.len() as u64));
    let may_wait = door == TapDoor::Fix && message.is_in;
    assert!(may_wait || !message.is_whole || (piece.at..=piece_end).contains(&end), "it ends with the piece");
}

/// What comes in at the door that the first byte says: however it comes in pieces, the same is blanked, and who cuts what is left finds the same messages.
pub fn secrets(bytes: &[u8]) {
    let Some((&first, stream)) = bytes.split_first() else { return };
    let door = DOORS[usize::from(first) % DOORS.len()];
    let blanked = blanked(door, stream, stream.len().max(1));
    for at_once in [1, 7] {
        assert_eq!(self::blanked(door, stream, at_once), blanked, "pieces make no difference");
    }
    assert_eq!(cuts(door, &blanked), cuts(door, stream), "the same messages are found");
}

fn blanked(door: TapDoor, stream: &[u8], at_once: usize) -> Vec<u8> {
    let (mut blank, mut out) = (Blank::new(door), Vec::new());
    for piece in stream.chunks(at_once) {
        let begun = out.len();
        out.extend_from_slice(piece);
        blank.pass(piece, &mut |secret| out[begun..][secret].fill(b'*'));
    }
    out
}

/// Where messages begin, and how long they are, up to what is none: there the gateway ends the connection.
fn cuts(door: TapDoor, stream: &[u8]) -> Vec<(u64, usize)> {
    let piece = TapedPiece { wall_ns: 0, mono_ns: 0, is_in: true, at: 0, bytes: stream, is_blanked: false };
    let mut said = Vec::new();
    TapedTalk::new(door).take(&piece, |one| said.push(one.message));
    let whole = said.iter().take_while(|message| message.is_whole);
    whole.map(|message| (message.at, message.bytes.len())).collect()
}

/// What members say at each door when they sign on.
fn signing_on() -> [Vec<u8>; 3] {
    let mut binary = Vec::new();
    frame::write(&mut binary, &SignOn { member: 7.into(), ..SignOn::default() });
    frame::write(&mut binary, &Proof { first: [7; 32], second: [8; 32] });
    frame::write(&mut binary, &ChangeRegister { value: [9; 32], entry: 4, ..ChangeRegister::default() });
    frame::write(&mut binary, &Ping { token: 1.into() });
    let mut fix = Vec::new();
    for (msg_type, fields) in [("A", "98=0|95=5|96=a|b=c|554=secret|"), ("D", "11=7|44=1.5|")] {
        let mut writer = FixWriter::begin(&mut fix, FIX44.begin_string, msg_type.as_bytes());
        writer.number(34, 1);
        writer.fields(fields.replace('|', "\x01").as_bytes());
        writer.finish();
    }
    let ouch = b"\0\x2fL7     password      1-0                   1\0\x01R\0\x04UXab".to_vec();
    [binary, fix, ouch]
}

/// What comes in at each door.
#[must_use]
pub fn secret_seeds() -> Vec<Vec<u8>> {
    (0..).zip(signing_on()).map(|(door, stream)| [&[door][..], &stream].concat()).collect()
}

/// The life of a gateway with a connection at each door.
#[must_use]
pub fn entry_seeds() -> Vec<Vec<u8>> {
    let one = |(door, stream): (TapDoor, Vec<u8>)| {
        let mut log = Vec::new();
        let mut put = |kind, at: usize, bytes: &[u8]| {
            let (at, life) = ((at as u64).into(), 64.into());
            let head = TapHead { at, life, ..TapHead::new(kind, door, 1) };
            push_block(&mut log, &[head.as_bytes(), bytes].concat());
        };
        put(TapKind::Began, 0, b"");
        put(TapKind::Opened, 0, b"127.0.0.1:4000 127.0.0.1:7100");
        let (first, second) = stream.split_at(stream.len() / 2);
        put(TapKind::In, 0, first);
        put(TapKind::In, first.len(), second);
        put(TapKind::Out, 0, &stream);
        put(TapKind::Lost, 0, TapLoss { entries: 1.into(), bytes: 2.into() }.as_bytes());
        put(TapKind::Ended, 0, [U64::new(stream.len() as u64); 2].as_bytes());
        log
    };
    DOORS.into_iter().zip(signing_on()).map(one).collect()
}
