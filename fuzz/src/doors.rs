//! A FIX door between an engine and a gateway, of which each says what it likes.

use std::sync::Arc;

use pares_door::{DoorAction, DoorConfig, DoorTime, FixDoor, SessionMark};
use pares_fix::dictionary::FIX44;
use pares_fix::framing::{Cut, cut};
use pares_fix::parser::FixParser;
use pares_fix::writer::FixWriter;
use pares_types::{InstrumentId, MemberId, ShardId, Symbol};
use pares_wire::frame::decode_gateway;

const NOW_NS: u64 = 1_790_000_000_000_000_000;
const LOGON: &str = "A 1 98=0|108=30|";
const ORDER: &str = "11=1|55=ACME|54=1|60=20260921-12:00:00|40=2|44=1.5|38=100|";

/// What both sides say, line by line: a message by its type, its number and its fields; `<`, a frame's kind and its body as hex digits; an empty line lets time pass.
/// What the door sends is right by its dictionary.
pub fn doors(bytes: &[u8]) {
    let symbol = Symbol::new("ACME").expect("a symbol");
    let config = DoorConfig {
        comp_id: "PARES".into(),
        instruments: vec![(InstrumentId(17), symbol)],
        shards: vec![ShardId(0)],
        has_market: false,
        orders_max: 8,
    };
    let mut door = FixDoor::new(Arc::new(config));
    let told = vec![(ShardId(0), 5)];
    let mark = SessionMark { member: MemberId(7), session: 1, next_in: 1, out_max: 9, copied: None, told };
    let (mut at, mut sent, mut is_claimed) = (DoorTime { utc_ns: NOW_NS, mono_ns: 0 }, Vec::new(), false);
    for line in std::iter::once(LOGON.as_bytes()).chain(bytes.split(|byte| *byte == b'\n')) {
        let mut sink = |action: DoorAction<'_>| match action {
            DoorAction::Send(bytes) => sent.extend_from_slice(bytes),
            DoorAction::Claim { .. } => is_claimed = true,
            _ => {}
        };
        match line.split_first() {
            None => {
                let due_ns = door.next_deadline_ns().unwrap_or(at.mono_ns).max(at.mono_ns);
                let passed_ns = due_ns - at.mono_ns;
                at = DoorTime { utc_ns: at.utc_ns + passed_ns, mono_ns: due_ns };
                door.on_time(at, &mut sink);
            }
            Some((b'<', frame)) => {
                let frame = unhex(frame);
                let frame = frame.split_first().and_then(|(kind, body)| decode_gateway(*kind, body).ok());
                frame.iter().for_each(|frame| door.on_frame(at, frame, &mut sink));
            }
            Some(_) => {
                door.on_bytes(at, &spoken(line), &mut sink);
            }
        }
        if std::mem::take(&mut is_claimed) {
            door.on_claimed(at, Some(&mark), &mut |_| {});
        }
    }
    check(&sent);
}

fn check(mut rest: &[u8]) {
    let mut parser = FixParser::default();
    while !rest.is_empty() {
        let (Cut::Whole(frame), used) = cut(rest) else { panic!("a door sends whole messages") };
        let message = parser.parse(&FIX44, &frame).expect("with fields");
        assert_eq!(message.fault(), None, "{}", frame.bytes.escape_ascii());
        rest = &rest[used..];
    }
}

fn unhex(digits: &[u8]) -> Vec<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16).unwrap_or_default() as u8;
    digits.chunks(2).map(|pair| pair.iter().fold(0, |byte, next| byte << 4 | digit(*next))).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn spoken(line: &[u8]) -> Vec<u8> {
    let mut words = line.splitn(3, |byte| *byte == b' ');
    let msg_type = words.next().unwrap_or_default();
    let number = words.next().and_then(|word| std::str::from_utf8(word).ok()?.parse().ok());
    let fields: Vec<u8> =
        words.next().unwrap_or_default().iter().map(|byte| if *byte == b'|' { 1 } else { *byte }).collect();
    let mut bytes = Vec::new();
    let mut writer = FixWriter::begin(&mut bytes, FIX44.begin_string, msg_type);
    writer.number(34, number.unwrap_or_default());
    writer.text(49, b"M7-1");
    writer.time(52, NOW_NS);
    writer.text(56, b"PARES");
    writer.fields(&fields);
    writer.finish();
    bytes
}

/// Conversations: a logon, orders and what becomes of them, questions, resends.
#[must_use]
pub fn door_seeds() -> Vec<Vec<u8>> {
    let little = |parts: &[(u64, usize)]| -> Vec<u8> {
        parts.iter().flat_map(|(value, bytes)| u128::from(*value).to_le_bytes()[..*bytes].to_vec()).collect()
    };
    let line = |kind: u8, body: Vec<u8>| format!("<{kind:02x}{}\n", hex(&body));
    let id = 1 << 48 | 1;
    let signed_on = line(129, vec![0; 24]);
    let orders = line(147, little(&[(0, 8), (0, 4), (0, 4), (1, 1), (0, 7)]));
    let resumed = line(139, little(&[(5, 8), (0, 2), (0, 14)]));
    let joined = format!("{signed_on}{orders}{resumed}");
    let answer = |status: u64, executed: u64, remaining: u64, number: u64| {
        let ids = [(1, 8), (id, 8), (id, 8), (number, 8)];
        let rest = [(executed, 8), (remaining, 8), (17, 4), (0, 2), (status, 1), (0, 1), (0, 8), (number, 8)];
        line(131, little(&[&ids[..], &rest[..]].concat()))
    };
    let trade = line(
        132,
        little(&[
            (1, 8),
            (id, 8),
            (6, 8),
            (15_000, 8),
            (40, 8),
            (60, 8),
            (17, 4),
            (0, 2),
            (1, 1),
            (1, 1),
            (0, 8),
            (6, 8),
        ]),
    );
    let order = format!("{joined}D 2 {ORDER}\n{}{trade}2 3 7=1|16=0|\n\n5 4 ", answer(1, 0, 100, 5));
    let change = format!(
        "G 3 41=1|37=1:1|{}\nF 4 41=1|11=3|55=ACME|54=1|60=20260921-12:00:00|",
        ORDER.replace("11=1", "11=2")
    );
    let ask = "H 3 11=1|55=ACME|54=1|\nAF 4 584=x|585=7|\nq 5 11=9|530=7|60=20260921-12:00:00|\n";
    let asked = format!("{joined}{ask}{orders}{}", answer(4, 0, 0, 0));
    [order.clone(), format!("{joined}D 2 {ORDER}\n{change}\n{}", answer(3, 0, 0, 5)), asked]
        .map(String::into_bytes)
        .into()
}
