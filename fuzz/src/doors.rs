//! A FIX door between an engine and a gateway, of which each says what it likes.

use std::collections::BTreeSet;
use std::sync::Arc;

use pares_door::FixDoor;
use pares_fix::writer::soh;
use pares_port::{DoorAction, DoorConfig, DoorTime, ProtocolDoor, SecretScan, SessionMark, Sink, TapDoor};
use pares_tap::{Blank, TapedMeaning, TapedPiece, TapedRole, TapedTalk};
use pares_types::{GatewayId, InstrumentId, MemberId, ShardId, Symbol};
use pares_wire::frame::{ClientFrame, decode_gateway};

use pares_random::Random;

use crate::fix::{LOGON, NOW_NS, check, spoken};

const TERMS: &str = "55=ACME|54=1|60=20260921-12:00:00|40=2|44=1.5|38=100|";

/// What both sides say, line by line: a message by its type, its number and its fields, `!` before one whose sum is wrong; `=`, bytes as they are; `<`, a frame's kind
/// and its body as hex digits; an empty line lets time pass. What the door sends is right by its dictionary, and a tap tells what it asks for.
pub fn doors(bytes: &[u8]) {
    converse(1, std::iter::once(LOGON.as_bytes()).chain(bytes.split(|byte| *byte == b'\n')));
}

fn converse<'a>(next_in: u64, lines: impl Iterator<Item = &'a [u8]>) {
    let mut conversation = Conversation::new();
    let told = vec![(ShardId(0), 5)];
    let mark = SessionMark { member: MemberId(7), session: 1, next_in, out_max: 9, copied: None, told };
    for line in lines {
        conversation.says(line);
        while std::mem::take(&mut conversation.is_proven) {
            conversation.step(|door, at, sink| door.on_proven(at, sink));
        }
        if std::mem::take(&mut conversation.is_claimed) {
            conversation.step(|door, at, sink| door.on_claimed(at, Some(&mark), sink));
        }
        // A gateway reads nothing more of a connection that it closes.
        if conversation.is_closed {
            break;
        }
    }
    check(&conversation.sent);
    conversation.tape.check(&conversation.asked);
}

/// A door's of one shard.
pub(crate) fn config(instruments: Vec<(InstrumentId, Symbol)>) -> Arc<DoorConfig> {
    let (comp_id, gateway, shards) = ("PARES".into(), GatewayId(0), vec![ShardId(0)]);
    Arc::new(DoorConfig { comp_id, gateway, instruments, shards, has_market: false, orders_max: 8 })
}

/// A door, and the tap of its connection.
struct Conversation {
    door: FixDoor,
    at: DoorTime,
    /// What it has not taken yet.
    left: Vec<u8>,
    sent: Vec<u8>,
    /// Names of requests.
    asked: Vec<u64>,
    /// It is to be said that a Logon is used up; of the first one nobody waits for that.
    is_proven: bool,
    is_claimed: bool,
    is_closed: bool,
    tape: Taped,
}

impl Conversation {
    fn new() -> Self {
        let symbol = Symbol::new("ACME").expect("a symbol");
        Self {
            door: FixDoor::new(config(vec![(InstrumentId(17), symbol)])),
            at: DoorTime { utc_ns: NOW_NS, mono_ns: 0 },
            left: Vec::new(),
            sent: Vec::new(),
            asked: Vec::new(),
            is_proven: false,
            is_claimed: false,
            is_closed: false,
            tape: Taped::new(),
        }
    }

    fn says(&mut self, line: &[u8]) {
        match line.split_first() {
            None => {
                let due_ns = self.door.next_deadline_ns().unwrap_or_default().max(self.at.mono_ns);
                let utc_ns = self.at.utc_ns + (due_ns - self.at.mono_ns);
                self.at = DoorTime { utc_ns, mono_ns: due_ns };
                self.step(|door, at, sink| door.on_time(at, sink));
            }
            Some((b'<', frame)) => {
                let frame = unhex(frame);
                let frame = frame.split_first().and_then(|(kind, body)| decode_gateway(*kind, body).ok());
                let Some(frame) = frame else { return };
                self.step(|door, at, sink| door.on_frame(at, &frame, sink));
            }
            Some(_) => {
                let bytes = said(line);
                self.tape.passed(true, self.at.utc_ns, &bytes);
                let (mut left, mut used) = (std::mem::take(&mut self.left), 0);
                left.extend_from_slice(&bytes);
                self.step(|door, at, sink| used = door.on_bytes(at, &left, sink));
                left.drain(..used);
                self.left = left;
            }
        }
    }

    fn step(&mut self, act: impl FnOnce(&mut FixDoor, DoorTime, Sink<'_>)) {
        let Self { door, at, sent, asked, is_proven, is_claimed, is_closed, tape, .. } = self;
        let begun = sent.len();
        act(door, *at, &mut |action| match action {
            DoorAction::Send(bytes) => sent.extend_from_slice(bytes),
            DoorAction::Ask(ClientFrame::Request(request)) => asked.push(request.client_order_id().0),
            DoorAction::LogOn { .. } => *is_proven = true,
            DoorAction::Claim { .. } => *is_claimed = true,
            DoorAction::Close => *is_closed = true,
            _ => {}
        });
        tape.passed(false, at.utc_ns, &sent[begun..]);
    }
}

/// What a tap of the connection tells.
struct Taped {
    blank: Blank,
    talk: TapedTalk,
    /// Bytes that went each way.
    passed: [u64; 2],
    requests: Vec<(Option<u64>, TapedRole)>,
    refused: BTreeSet<u64>,
}

impl Taped {
    fn new() -> Self {
        let (blank, talk) = (Blank::new(TapDoor::Fix), TapedTalk::new(TapDoor::Fix));
        Self { blank, talk, passed: [0; 2], requests: Vec::new(), refused: BTreeSet::new() }
    }

    fn passed(&mut self, is_in: bool, wall_ns: u64, given: &[u8]) {
        let (Self { blank, talk, passed, requests, refused }, mut bytes) = (self, given.to_vec());
        if is_in {
            blank.pass(given, &mut |secret| bytes[secret].fill(b'*'));
        }
        let at = &mut passed[usize::from(is_in)];
        let piece = TapedPiece { wall_ns, mono_ns: 0, is_in, at: *at, bytes: &bytes, is_blanked: false };
        *at += bytes.len() as u64;
        talk.take(&piece, |TapedMeaning { name, role, .. }| match role {
            TapedRole::Request | TapedRole::Unsure => requests.push((name, role)),
            TapedRole::Refusal => refused.extend(name),
            _ => {}
        });
    }

    /// The door has asked for what the tap tells, in that order, but for what it refused. Of what is unsure no order is known.
    fn check(self, asked: &[u64]) {
        let (Self { mut talk, mut requests, refused, .. }, mut rest) = (self, asked);
        talk.finish(|one| requests.extend((one.role == TapedRole::Request).then_some((one.name, one.role))));
        for (name, _) in requests.iter().filter(|(_, role)| *role == TapedRole::Request) {
            match (name, rest.split_first()) {
                (Some(name), Some((first, others))) if name == first => rest = others,
                _ => {
                    let is_refused = name.is_none_or(|name| refused.contains(&name));
                    assert!(is_refused, "{name:?} was not asked for: {requests:?}, {asked:?}");
                }
            }
        }
        let is_unsure = |name: &u64| requests.contains(&(Some(*name), TapedRole::Unsure));
        assert!(rest.iter().all(is_unsure), "asked for, and not told by the tap: {requests:?}, {asked:?}");
    }
}

/// A session of which each byte chooses what a hostile client says next; the first two say from where it continues, and what is said before the Logon is answered.
pub fn tapped(bytes: &[u8]) {
    let Some(([from, early], rest)) = bytes.split_first_chunk().map(|(first, rest)| (*first, rest)) else {
        return;
    };
    let (logon, next_in) = (u64::from(from % 5) + 1, u64::from(from / 5 % 4) + 1);
    let expected = if from & 64 > 0 { "789=5|" } else { "" };
    let reset = if from & 128 > 0 { "141=Y|" } else { "" };
    let logon_line = format!("A {logon} 98=0|108=30|{reset}{expected}");
    let mut next = logon + 1;
    let said = rest.iter().enumerate().map(|(at, byte)| hostile(*byte, at + 1, &mut next));
    let said: Vec<String> = said.collect();
    let (before, behind) = said.split_at(usize::from(early % 4).min(said.len()));
    let joined = joined();
    let lines = std::iter::once(&*logon_line).chain(before.iter().map(String::as_str));
    let lines = lines.chain(joined.lines()).chain(behind.iter().map(String::as_str));
    converse(next_in, lines.map(str::as_bytes));
}

/// A line: what it says by its low bits, and under which number by its high ones; mostly the next.
fn hostile(byte: u8, name: usize, next: &mut u64) -> String {
    let (what, off) = (byte % 16, u64::from(byte / 16));
    let number = if off < 8 { *next } else { (*next + off).saturating_sub(11) };
    let (new, order) = (number + off % 5, format!("11={name}|{TERMS}"));
    *next = match what {
        7 | 9 => new,
        11 => 2,
        4 | 6 | 10 | 14 => *next,
        _ => number + 1,
    };
    match what {
        2 => format!("D {number} 43=Y|122=20200101-00:00:00|{order}"),
        3 => format!("D {number} 43=Y|{order}"),
        4 => format!("D {number} foo|{order}"),
        5 => format!("D {number} 36=1|{order}"),
        6 => format!("!D {number} {order}"),
        7 => format!("4 {number} 43=Y|122=20200101-00:00:00|123=Y|36={new}|"),
        8 => format!("4 {number} 123=Y|36=1000000|55=X|"),
        9 => format!("4 {number} 123=N|36={new}|"),
        10 => format!("4 {number} 123=N|36=1000000|55=X|"),
        11 => "A 1 98=0|108=30|141=Y|".into(),
        12 => format!("0 {number} "),
        13 => format!("2 {number} 7=1|16=0|"),
        14 => String::new(),
        15 if off == 0 => format!("5 {number} "),
        15 if off == 1 => format!("A {number} 98=0|108=30|"),
        15 if off == 2 => format!("D {number} 95=8192|96=x|{order}"),
        15 if off == 3 => "=8=FIX.4.4|9=99999|".into(),
        _ => format!("D {number} {order}"),
    }
}

/// What such clients say, by chance.
#[must_use]
pub fn tapped_seeds() -> Vec<Vec<u8>> {
    (0..32).map(|seed| Random::new(seed).bytes(40)).collect()
}

fn unhex(digits: &[u8]) -> Vec<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16).unwrap_or_default() as u8;
    digits.chunks(2).map(|pair| pair.iter().fold(0, |byte, next| byte << 4 | digit(*next))).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn said(line: &[u8]) -> Vec<u8> {
    if let Some(bytes) = line.strip_prefix(b"=") {
        return soh(bytes);
    }
    let (is_right, line) = line.strip_prefix(b"!").map_or((true, line), |line| (false, line));
    let mut bytes = spoken(line, ["M7-1", "PARES"]);
    if !is_right {
        let digit = bytes.len() - 2;
        bytes[digit] = b'0' + (bytes[digit] - b'0' + 1) % 10;
    }
    bytes
}

pub(crate) fn little(parts: &[(u64, usize)]) -> Vec<u8> {
    parts.iter().flat_map(|(value, bytes)| u128::from(*value).to_le_bytes()[..*bytes].to_vec()).collect()
}

fn frame_line(kind: u8, body: &[u8]) -> String {
    format!("<{kind:02x}{}\n", hex(body))
}

/// The gateway tells that there is no order.
fn orders() -> String {
    frame_line(147, &little(&[(0, 8), (0, 4), (0, 4), (1, 1), (0, 7)]))
}

/// What the gateway says until the Logon is answered.
fn joined() -> String {
    let (signed_on, resumed) = (frame_line(129, &[0; 24]), little(&[(5, 8), (0, 2), (0, 14)]));
    format!("{signed_on}{}{}", orders(), frame_line(139, &resumed))
}

/// Conversations: a logon, orders and what becomes of them, questions, resends.
#[must_use]
pub fn door_seeds() -> Vec<Vec<u8>> {
    let (id, joined, orders) = (1 << 48 | 1, joined(), orders());
    let order_terms = format!("11=1|{TERMS}");
    let answer = |status: u64, executed: u64, remaining: u64, number: u64| {
        let ids = [(1, 8), (id, 8), (id, 8), (number, 8)];
        let rest = [(executed, 8), (remaining, 8), (17, 4), (0, 2), (status, 1), (0, 1), (0, 8), (number, 8)];
        frame_line(131, &little(&[&ids[..], &rest[..]].concat()))
    };
    let (ids, amounts) = ([(1, 8), (id, 8), (6, 8)], [(15_000, 8), (40, 8), (60, 8)]);
    let rest = [(17, 4), (0, 2), (1, 1), (1, 1), (0, 8), (6, 8)];
    let trade = frame_line(132, &little(&[&ids[..], &amounts, &rest].concat()));
    let order = format!("{joined}D 2 {order_terms}\n{}{trade}2 3 7=1|16=0|\n\n5 4 ", answer(1, 0, 100, 5));
    let change = format!(
        "G 3 41=1|37=1:1|{}\nF 4 41=1|11=3|55=ACME|54=1|60=20260921-12:00:00|",
        order_terms.replace("11=1", "11=2")
    );
    let ask = "H 3 11=1|55=ACME|54=1|\nAF 4 584=x|585=7|\nq 5 11=9|530=7|60=20260921-12:00:00|\n";
    let asked = format!("{joined}{ask}{orders}{}", answer(4, 0, 0, 0));
    [order.clone(), format!("{joined}D 2 {order_terms}\n{change}\n{}", answer(3, 0, 0, 5)), asked]
        .map(String::into_bytes)
        .into()
}
