//! What guests say, and what they are told if they were let in.

use pares_fix::dictionary::tag;
use pares_fix::writer::FixWriter;
use pares_os::clock::now_ns;
use pares_types::MemberId;

use super::{Ill, Port};

/// So much of a message that is called huge comes.
const SOME_BYTES: usize = 4 << 10;
const GIGABYTES: &str = "99999999999";

/// What the `turn`th guest says, who calls himself that member where he says who he is.
pub(super) fn opening(ill: Ill, port: Port, turn: u64, member: MemberId) -> Vec<u8> {
    match ill {
        // A guess by the binary protocol is a conversation.
        Ill::WrongKeys => guess(port, member),
        Ill::Garbage => garbage(turn),
        Ill::HugeLengths => [huge(port), vec![b'1'; SOME_BYTES]].concat(),
        Ill::SlowLoris => beginning(port, member),
        Ill::Connections => Vec::new(),
    }
}

/// Whether an answer says that its reader has signed on.
pub(super) fn is_let_in(port: Port, answer: &[u8]) -> bool {
    match port {
        Port::Binary => false,
        Port::Fix => answer.windows(6).any(|field| field == b"\x0135=A\x01"),
        Port::Ouch => answer.get(2) == Some(&b'A'),
        Port::Http => answer.starts_with(b"HTTP/1.1 2"),
    }
}

fn guess(port: Port, member: MemberId) -> Vec<u8> {
    match port {
        Port::Binary => Vec::new(),
        Port::Fix => fix_logon(member),
        Port::Ouch => ouch_login(member),
        Port::Http => b"GET /v1/orders HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\r\n\r\n".to_vec(),
    }
}

fn fix_logon(member: MemberId) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = FixWriter::begin(&mut bytes, "FIX.4.4", b"A");
    writer.number(tag::MSG_SEQ_NUM, 1);
    writer.text(tag::SENDER_COMP_ID, format!("M{member}-1").as_bytes());
    writer.time(tag::SENDING_TIME, now_ns());
    writer.text(tag::TARGET_COMP_ID, b"PARES");
    writer.letter(tag::ENCRYPT_METHOD, b'0');
    writer.number(tag::HEART_BT_INT, 30);
    let proof = "A".repeat(86);
    writer.number(tag::RAW_DATA_LENGTH, proof.len() as u64);
    writer.text(tag::RAW_DATA, proof.as_bytes());
    writer.finish();
    bytes
}

fn ouch_login(member: MemberId) -> Vec<u8> {
    let text = format!("L{:>6}{:<10}{:<10}{:>20}", member.0, "AAAAAAAAAA", "1", 0);
    let length = u16::try_from(text.len()).expect("a login is short");
    [&length.to_be_bytes()[..], text.as_bytes()].concat()
}

/// Bytes that differ from guest to guest: the generator of Park and Miller.
fn garbage(turn: u64) -> Vec<u8> {
    let mut state = turn % 0x7fff_fffe + 1;
    let mut next = || {
        state = state * 48_271 % 0x7fff_ffff;
        state.to_le_bytes()[1]
    };
    (0..SOME_BYTES).map(|_| next()).collect()
}

fn huge(port: Port) -> Vec<u8> {
    match port {
        Port::Binary => vec![0xff; 4],
        Port::Fix => format!("8=FIX.4.4\x019={GIGABYTES}\x0135=A\x01").into_bytes(),
        Port::Ouch => vec![0xff, 0xff, b'L'],
        Port::Http => {
            let head = "POST /v1/sessions HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json";
            format!("{head}\r\ncontent-length: {GIGABYTES}\r\n\r\n").into_bytes()
        }
    }
}

/// The beginning of something that would be right.
fn beginning(port: Port, member: MemberId) -> Vec<u8> {
    match port {
        Port::Binary => vec![64, 0, 0, 0],
        Port::Fix | Port::Ouch => {
            let mut whole = guess(port, member);
            whole.truncate(whole.len() - 1);
            whole
        }
        Port::Http => [&b"GET /v1/orders HTTP/1.1\r\nhost: localhost\r\nx: "[..], &[b'y'; 256]].concat(),
    }
}
