//! SoupBinTCP 4.x: messages over a connection, both ways (docs/protocols/market-data.md, *Over TCP*).
//!
//! ```text
//!  0        2      3
//!  | length | kind | payload ...      length counts the kind and the payload, big-endian
//!
//!  from the server   A accepted   J rejected   S sequenced message   H heartbeat   Z end of session   + debug
//!  from the client   L login      U message    R heartbeat           O logout                         + debug
//! ```
//!
//! A stream brings packets in pieces, and from any client: what is held of an unfinished one has a bound.

use zerocopy::big_endian::U16;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use pares_types::ShardId;

use crate::publication::Session;

/// The most that a client may send in one packet, debug text included, without its length.
pub const CLIENT_BYTES_MAX: usize = 4_096;
/// The most that a server may send in one packet: all that its length can say.
pub const SERVER_BYTES_MAX: usize = u16::MAX as usize;
/// What comes before the payload: length and kind.
pub const HEAD_BYTES: usize = 3;
/// A login, all of it.
pub const LOGIN_BYTES: usize = HEAD_BYTES + size_of::<LoginRequest>();
/// A peer that was silent for so long is gone, nanoseconds.
pub const SILENCE_NS: u64 = 15_000_000_000;
/// The reason of a rejected login: the session or the number is not there.
pub(crate) const NOT_THERE: u8 = b'S';
/// The reason of a rejected login: who asks comes without TLS, or may not ask.
pub const NOT_AUTHORIZED: u8 = b'A';
/// The last message of a snapshot: its kind; the number to continue at follows, as 20 digits.
pub(crate) const END_OF_SNAPSHOT: u8 = b'G';

/// Why a stream of packets has come to its end: what follows cannot be told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SoupError {
    /// A packet without a kind.
    #[error("a packet has no kind")]
    Empty,
    /// A packet that is longer than its sender may send.
    #[error("a packet is too long")]
    Overlong,
    /// A packet of a kind that its sender does not send.
    #[error("a packet is of no known kind")]
    Unknown,
    /// A packet whose payload is not what its kind has.
    #[error("a packet does not match its kind")]
    Malformed,
}

/// The payload of a login.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct LoginRequest {
    /// Who, or what for, then spaces.
    pub username: [u8; 6],
    /// Then spaces.
    pub password: [u8; 10],
    /// Which session; spaces: any.
    pub session: [u8; 10],
    /// The number of the first message, digits with spaces on either side; 0: the next one.
    pub sequence: [u8; 20],
}
const _: () = assert!(size_of::<LoginRequest>() == 46);

/// The payload of an accepted login.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(crate) struct LoginAccepted {
    /// The session.
    pub session: [u8; 10],
    /// The number of the first message that follows.
    pub sequence: [u8; 20],
}
const _: () = assert!(size_of::<LoginAccepted>() == 30);

/// What a client sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FromClient<'a> {
    /// It asks for messages.
    Login(&'a LoginRequest),
    /// A message, which means nothing here.
    Unsequenced(&'a [u8]),
    /// It is there.
    Heartbeat,
    /// It goes.
    Logout,
    /// Text for people.
    Debug(&'a [u8]),
}

/// What a server sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FromServer<'a> {
    /// The login is good: the session, and the number of the first message that follows.
    Accepted(Session, u64),
    /// It is not, for this reason.
    Rejected(u8),
    /// The next message.
    Sequenced(&'a [u8]),
    /// It is there, and there was nothing to send.
    Heartbeat,
    /// The session is over.
    EndOfSession,
    /// Text for people.
    Debug(&'a [u8]),
}

impl<'a> FromClient<'a> {
    /// Reads a packet of a client.
    ///
    /// # Errors
    /// If clients send no such packet.
    pub fn read(packet: RawPacket<'a>) -> Result<Self, SoupError> {
        let RawPacket { kind, payload } = packet;
        match kind {
            b'L' => LoginRequest::ref_from_bytes(payload).map(Self::Login).map_err(|_| SoupError::Malformed),
            b'U' => Ok(Self::Unsequenced(payload)),
            b'R' => Ok(Self::Heartbeat),
            b'O' => Ok(Self::Logout),
            b'+' => Ok(Self::Debug(payload)),
            _ => Err(SoupError::Unknown),
        }
    }
}

impl<'a> FromServer<'a> {
    /// Reads a packet of a server.
    ///
    /// # Errors
    /// If servers send no such packet.
    pub fn read(packet: RawPacket<'a>) -> Result<Self, SoupError> {
        let RawPacket { kind, payload } = packet;
        match kind {
            b'A' => {
                let accepted = LoginAccepted::ref_from_bytes(payload).map_err(|_| SoupError::Malformed)?;
                let sequence = number(&accepted.sequence).ok_or(SoupError::Malformed)?;
                Ok(Self::Accepted(Session(accepted.session), sequence))
            }
            b'J' => payload.first().map(|&reason| Self::Rejected(reason)).ok_or(SoupError::Malformed),
            b'S' => Ok(Self::Sequenced(payload)),
            b'H' => Ok(Self::Heartbeat),
            b'Z' => Ok(Self::EndOfSession),
            b'+' => Ok(Self::Debug(payload)),
            _ => Err(SoupError::Unknown),
        }
    }
}

/// The number in a field: digits, with spaces on either side. `None` if it is none.
#[must_use]
pub fn number(field: &[u8; 20]) -> Option<u64> {
    let digits = field.trim_ascii();
    let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(digits).ok().filter(|_| is_number)?.parse().ok()
}

/// A number in its field, on the right.
#[must_use]
pub fn digits(number: u64) -> [u8; 20] {
    format!("{number:>20}").as_bytes().try_into().expect("20 digits hold every number")
}

/// The number to continue at, of a snapshot's last message; `None` if it is another message.
#[must_use]
pub fn end_of_snapshot(message: &[u8]) -> Option<u64> {
    let (&END_OF_SNAPSHOT, rest) = message.split_first()? else { return None };
    number(rest.try_into().ok()?)
}

/// Writes a packet.
///
/// # Panics
/// If the payload does not go into one.
pub fn write(out: &mut Vec<u8>, kind: u8, payload: &[u8]) {
    let length = u16::try_from(payload.len() + 1).expect("payloads are short");
    out.extend_from_slice(U16::new(length).as_bytes());
    out.push(kind);
    out.extend_from_slice(payload);
}

/// A login, as a packet: what for, of which session, from which number on.
///
/// # Panics
/// Never: a login has its length.
#[must_use]
pub fn login(username: [u8; 6], session: [u8; 10], first: u64) -> [u8; LOGIN_BYTES] {
    let login = LoginRequest { username, password: [b' '; 10], session, sequence: digits(first) };
    let mut bytes = Vec::with_capacity(LOGIN_BYTES);
    write(&mut bytes, b'L', login.as_bytes());
    bytes.try_into().expect("it has this length")
}

/// The session that is on of a shard, as a login asks for it.
///
/// # Panics
/// Never: a shard has four digits.
#[must_use]
pub fn current_session(shard: ShardId) -> [u8; 10] {
    format!("{:04x}      ", shard.0).as_bytes().try_into().expect("ten characters")
}

/// A packet, of whatever kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawPacket<'a> {
    /// Which it is, an ASCII letter.
    pub kind: u8,
    /// What follows.
    pub payload: &'a [u8],
}

/// Puts packets together from the pieces of a stream.
///
/// It holds what it was given last and less than one packet before that.
#[derive(Debug)]
pub struct Pieces {
    /// The longest packet, without its length.
    bytes_max: usize,
    held: Vec<u8>,
    /// Bytes of `held` that were handed out.
    taken: usize,
}

impl Pieces {
    /// For a stream whose packets have at most so many bytes behind their length.
    #[must_use]
    pub fn new(bytes_max: usize) -> Self {
        Self { bytes_max, held: Vec::new(), taken: 0 }
    }

    /// The stream continues with these. Take all packets before you give it more.
    pub fn push(&mut self, bytes: &[u8]) {
        self.held.drain(..self.taken);
        self.taken = 0;
        self.held.extend_from_slice(bytes);
    }

    /// The next packet, if all of it is there.
    ///
    /// # Errors
    /// If its length is not allowed: nothing can be read of the stream any more.
    pub fn take(&mut self) -> Result<Option<RawPacket<'_>>, SoupError> {
        let rest = &self.held[self.taken..];
        let Ok((length, rest)) = U16::ref_from_prefix(rest) else { return Ok(None) };
        let length = usize::from(length.get());
        match length {
            0 => return Err(SoupError::Empty),
            _ if length > self.bytes_max => return Err(SoupError::Overlong),
            _ => {}
        }
        let Some((&kind, payload)) = rest.get(..length).and_then(<[u8]>::split_first) else {
            return Ok(None);
        };
        self.taken += size_of::<U16>() + length;
        Ok(Some(RawPacket { kind, payload }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_come_out_of_any_pieces() {
        let mut stream = Vec::new();
        let login = LoginRequest {
            username: *b"REPLAY",
            password: [b' '; 10],
            session: *b"0001      ",
            sequence: digits(17),
        };
        write(&mut stream, b'L', login.as_bytes());
        write(&mut stream, b'R', b"");
        write(&mut stream, b'+', b"hello");
        assert_eq!(stream.len(), 49 + 3 + 8);
        for piece in 1..stream.len() {
            let (mut pieces, mut kinds) = (Pieces::new(CLIENT_BYTES_MAX), Vec::new());
            for bytes in stream.chunks(piece) {
                pieces.push(bytes);
                while let Some(packet) = pieces.take().unwrap() {
                    kinds.push(packet.kind);
                    match FromClient::read(packet).unwrap() {
                        FromClient::Login(read) => assert_eq!(*read, login),
                        FromClient::Debug(text) => assert_eq!(text, b"hello"),
                        other => assert_eq!(other, FromClient::Heartbeat),
                    }
                }
            }
            assert_eq!(kinds, b"LR+");
        }
    }

    #[test]
    fn what_no_sender_sends_ends_the_stream() {
        let mut pieces = Pieces::new(CLIENT_BYTES_MAX);
        pieces.push(&[0, 0, b'L']);
        assert_eq!(pieces.take(), Err(SoupError::Empty));
        let mut pieces = Pieces::new(CLIENT_BYTES_MAX);
        pieces.push(&[0x10, 0x01]);
        assert_eq!(pieces.take(), Err(SoupError::Overlong), "before any of it is held");
        for (kind, payload, error) in [
            (b'L', &b"short"[..], SoupError::Malformed),
            (b'X', b"", SoupError::Unknown),
            (b'A', &[b' '; 30], SoupError::Unknown),
        ] {
            assert_eq!(FromClient::read(RawPacket { kind, payload }), Err(error));
        }
        for payload in [&[b' '; 30][..], &[b'0'; 29], b""] {
            assert_eq!(FromServer::read(RawPacket { kind: b'A', payload }), Err(SoupError::Malformed));
        }
    }

    #[test]
    fn numbers_stand_on_either_side_of_their_field() {
        assert_eq!(number(&digits(u64::MAX)), Some(u64::MAX));
        assert_eq!(number(b"17                  "), Some(17));
        assert_eq!(number(b"00000000000000000000"), Some(0));
        for field in [b"                    ", b"-1                  ", b"1 7                 "] {
            assert_eq!(number(field), None);
        }
        assert_eq!(number(b"99999999999999999999"), None, "above all numbers");
    }
}
