//! An OUCH door between a client and a gateway, of which each says what it likes.

use pares_ouch::OuchDoor;
use pares_port::{DoorAction, DoorTime, ProtocolDoor};
use pares_wire::frame::decode_gateway;

use crate::doors::{config, little};
use crate::fix::NOW_NS;

/// What both sides say, one after the other: a byte for who, two for the length, and what is said. An even one is the client; an odd one the
/// gateway, of which a frame's kind and body follow. Nothing said lets time pass. What the door sends is whole packets.
pub fn doors(mut bytes: &[u8]) {
    let mut door = OuchDoor::new(config(Vec::new()));
    let (mut at, mut sent, mut left) = (DoorTime { utc_ns: NOW_NS, mono_ns: 0 }, Vec::new(), Vec::new());
    while let [who, low, high, rest @ ..] = bytes {
        let length = usize::from(u16::from_le_bytes([*low, *high])).min(rest.len());
        let (said, after) = rest.split_at(length);
        bytes = after;
        let mut sink = |action: DoorAction<'_>| {
            if let DoorAction::Send(bytes) = action {
                sent.extend_from_slice(bytes);
            }
        };
        match said.split_first() {
            None => {
                let due_ns = door.next_deadline_ns().unwrap_or(at.mono_ns).max(at.mono_ns);
                at = DoorTime { utc_ns: at.utc_ns + (due_ns - at.mono_ns), mono_ns: due_ns };
                door.on_time(at, &mut sink);
            }
            Some((kind, body)) if who % 2 == 1 => {
                let frame = decode_gateway(*kind, body).ok();
                frame.iter().for_each(|frame| door.on_frame(at, frame, &mut sink));
            }
            Some(_) => left.extend_from_slice(said),
        }
        let used = door.on_bytes(at, &left, &mut sink);
        left.drain(..used);
    }
    check(&sent);
}

fn check(mut rest: &[u8]) {
    while let Some((length, after)) = rest.split_first_chunk() {
        let length = usize::from(u16::from_be_bytes(*length));
        assert!((1..=after.len()).contains(&length), "a door sends whole packets");
        rest = &after[length..];
    }
    assert!(rest.is_empty(), "a door sends whole packets");
}

fn turn(who: u8, said: &[u8]) -> Vec<u8> {
    let length = u16::try_from(said.len()).expect("short").to_le_bytes();
    [&[who], &length[..], said].concat()
}

fn packet(kind: u8, payload: &[u8]) -> Vec<u8> {
    let length = u16::try_from(payload.len() + 1).expect("short").to_be_bytes();
    turn(0, &[&length[..], &[kind], payload].concat())
}

/// Conversations: a login, each message, answers.
#[must_use]
pub fn seeds() -> Vec<Vec<u8>> {
    let login = packet(b'L', b"7     secret           1-0                   5");
    let signed_on = turn(1, &[&[129][..], &[0; 24]].concat());
    let mut acme = vec![149];
    acme.extend_from_slice(b"ACME\0\0\0\0\0\0\0\0\0\0\0\0");
    acme.extend(little(&[(0, 8), (1, 8), (1_000, 8), (0, 8), (1, 8), (99_999, 8), (0, 8), (0, 8), (0, 8)]));
    acme.extend(little(&[(17, 4), (9, 4), (0, 8), (0, 2), (1, 1), (0, 5)]));
    let end = turn(1, &[&[147][..], &little(&[(0, 8), (1, 4), (0, 4), (2, 1), (0, 7)])].concat());
    let joined = [login, signed_on, turn(1, &acme), end].concat();
    let enter = packet(
        b'U',
        b"O\0\0\0\x01B\0\0\0\x64ACME    \0\0\0\0\0\0\x3a\x980YPNNmine          \0\x09\x05\x05\0\0\0\x0a\x02\x0cP",
    );
    let change = packet(b'U', b"U\0\0\0\x01\0\0\0\x02\0\0\0\x50\0\0\0\0\0\0\x3a\x98 YNmine          ");
    let less = packet(b'U', b"X\0\0\0\x01\0\0\0\x28\0\0");
    let rest =
        [packet(b'U', b"C\0\0\0\x03            "), packet(b'U', b"D\0\0\0\x04    "), packet(b'U', b"Q")];
    let (id, name) = (1 << 48 | 1, 1 << 48 | 1);
    let answer = |status: u64, number: u64| {
        let ids = [(name, 8), (id, 8), (id, 8), (number, 8), (0, 8), (100, 8), (17, 4), (0, 2), (status, 1)];
        turn(1, &[&[131][..], &little(&ids), &little(&[(0, 1), (0, 8), (number, 8)])].concat())
    };
    let time = turn(0, b"");
    vec![
        [joined.clone(), enter.clone(), answer(1, 5), less, time.clone()].concat(),
        [joined.clone(), enter, change, answer(4, 5), answer(3, 6)].concat(),
        [joined, rest.concat(), time, answer(5, 5), packet(b'R', b""), packet(b'O', b"")].concat(),
    ]
}
