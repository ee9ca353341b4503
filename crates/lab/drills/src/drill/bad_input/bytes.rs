//! What guests send, and what they receive when the server has looked at it, or has let them in.

use std::io::{ErrorKind, Read};

use pares_client::Secret;
use pares_load::{fix_logon, ouch_login};
use pares_types::MemberId;
use pares_wire::frame::{self, SignOn};

use super::{Attack, Port};

/// So much of a message that is called huge comes.
const SOME_BYTES: usize = 4 << 10;
const GIGABYTES: &str = "99999999999";
/// What is read of an answer.
const ANSWER_BYTES: u64 = 4 << 10;

/// What the `turn`th guest says, who calls himself that member where he says who he is.
pub(super) fn opening(attack: Attack, port: Port, turn: u64, member: MemberId) -> Vec<u8> {
    match attack {
        Attack::Garbage => garbage(turn),
        Attack::HugeLengths => [huge(port), vec![b'1'; SOME_BYTES]].concat(),
        Attack::SlowLoris => beginning(port, member),
        // Guesses are conversations.
        Attack::Connections | Attack::WrongKeys => Vec::new(),
    }
}

/// What a guest received.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Told {
    /// Nothing, and the connection is there.
    Nothing,
    /// Nothing: the connection was closed when all that it had said was read.
    Closed,
    /// Nothing: the connection is lost, perhaps with what was said on it.
    Lost,
    Answer(Vec<u8>),
}

impl Told {
    /// What has come on a connection, or comes until it ends or its patience does.
    pub(super) fn on(stream: &mut impl Read) -> Self {
        let mut answer = Vec::new();
        let ended = stream.take(ANSWER_BYTES).read_to_end(&mut answer);
        match ended {
            _ if !answer.is_empty() => Self::Answer(answer),
            Ok(_) => Self::Closed,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock) => Self::Nothing,
            Err(_) => Self::Lost,
        }
    }
}

/// Whether that shows that the attack was looked at, and not turned away unread, or for want of room: the promise holds for such alone.
pub(super) fn is_looked_at(attack: Attack, port: Port, told: &Told) -> bool {
    let has = |answer: &[u8], part: &[u8]| answer.windows(part.len()).any(|window| window == part);
    match (attack, port, told) {
        // They are waited for.
        (Attack::SlowLoris | Attack::Connections, _, told) => *told == Told::Nothing,
        (Attack::WrongKeys, Port::Fix, Told::Answer(answer)) => {
            has(answer, b"\x0135=5\x01") && has(answer, b"\x0158=wrong_key: ")
        }
        (Attack::WrongKeys, Port::Ouch, Told::Answer(answer)) => answer == b"\0\x02JA",
        (Attack::Garbage, Port::Http, Told::Answer(answer)) => answer.starts_with(b"HTTP/1.1 400 "),
        (Attack::HugeLengths, Port::Http, Told::Answer(answer)) => answer.starts_with(b"HTTP/1.1 413 "),
        // Gateways have no word for it. At the binary port there is one for want of room, and no more is read than the head.
        (Attack::Garbage | Attack::HugeLengths, Port::Binary, told) => {
            matches!(told, Told::Closed | Told::Lost)
        }
        (Attack::Garbage | Attack::HugeLengths, Port::Fix | Port::Ouch, told) => *told == Told::Closed,
        _ => false,
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
            let head = "POST /v1/sign-on HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json";
            format!("{head}\r\ncontent-length: {GIGABYTES}\r\n\r\n").into_bytes()
        }
    }
}

/// The beginning of something that would be right.
fn beginning(port: Port, member: MemberId) -> Vec<u8> {
    match port {
        Port::Binary => but_the_last(sign_on(member)),
        Port::Fix => but_the_last(fix_logon(member, &Secret::generate())),
        Port::Ouch => but_the_last(ouch_login(member, "AAAAAAAAAA")),
        Port::Http => [&b"GET /v1/orders HTTP/1.1\r\nhost: localhost\r\nx: "[..], &[b'y'; 256]].concat(),
    }
}

fn sign_on(member: MemberId) -> Vec<u8> {
    let mut bytes = Vec::new();
    frame::write(&mut bytes, &SignOn { member: member.0.into(), ..SignOn::default() });
    bytes
}

fn but_the_last(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.pop();
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_looked_at(attack: Attack, port: Port, answer: &[u8]) -> bool {
        super::is_looked_at(attack, port, &Told::Answer(answer.into()))
    }

    #[test]
    fn who_was_turned_away_unread_proves_nothing() {
        let logout = |text: &str| format!("8=FIX.4.4\x019=70\x0135=5\x0134=1\x0158={text}\x0110=000\x01");
        let (wrong, many) = (logout("wrong_key: no"), logout("too_many_attempts: no"));
        let guesses = [
            (Port::Fix, wrong.as_bytes(), true),
            (Port::Fix, many.as_bytes(), false),
            (Port::Ouch, b"\0\x02JA", true),
            (Port::Ouch, b"\0\x02JS", false),
        ];
        for (port, answer, is_proof) in guesses {
            assert_eq!(is_looked_at(Attack::WrongKeys, port, answer), is_proof, "{}", answer.escape_ascii());
        }
        for status in [404, 413, 503] {
            let answer = format!("HTTP/1.1 {status} Reason\r\n");
            assert_eq!(is_looked_at(Attack::HugeLengths, Port::Http, answer.as_bytes()), status == 413);
        }
        assert!(!is_looked_at(Attack::Garbage, Port::Binary, b"no room"));
        assert!(!super::is_looked_at(Attack::Connections, Port::Fix, &Told::Closed));
    }
}
