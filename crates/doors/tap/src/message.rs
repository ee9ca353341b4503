//! Messages out of what went over a connection.
//!
//! A message is cut out of its direction's bytes where its protocol says. It is of the moment at which its last byte passed: a request was not there
//! before, an answer was not sent before. Where bytes are missing, what began before them is given up and cutting begins again with the next piece.

use pares_fix::framing;
use pares_wire::frame;

use pares_port::TapDoor;

use crate::TapedPiece;

/// A message, as it passed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TapedMessage {
    /// When its last byte passed, nanoseconds since 1970, and by the clock that never goes back.
    pub wall_ns: u64,
    /// See above.
    pub mono_ns: u64,
    /// Whether it came in.
    pub is_in: bool,
    /// Bytes that went the same way before.
    pub at: u64,
    /// All of it.
    pub bytes: Vec<u8>,
    /// Whether it is one; else bytes that are none.
    pub is_whole: bool,
}

/// What bytes begin with.
enum Cut {
    /// A message of so many bytes.
    Whole(usize),
    /// So many bytes that are none.
    Noise(usize),
    Incomplete,
}

fn cut(door: TapDoor, bytes: &[u8]) -> Cut {
    match door {
        TapDoor::Binary => match frame::split(bytes) {
            Ok(Some((_, _, rest))) => Cut::Whole(bytes.len() - rest.len()),
            Ok(None) => Cut::Incomplete,
            Err(_) => Cut::Noise(bytes.len()),
        },
        TapDoor::Fix => fix(bytes),
        TapDoor::Ouch => match bytes.first_chunk().map(|length| usize::from(u16::from_be_bytes(*length))) {
            Some(0) => Cut::Noise(bytes.len()),
            Some(length) if bytes.len() >= 2 + length => Cut::Whole(2 + length),
            _ => Cut::Incomplete,
        },
    }
}

/// With bytes blanked it has another sum; so a message that is garbled only by its sum counts as one.
fn fix(bytes: &[u8]) -> Cut {
    match framing::cut(bytes) {
        (framing::Cut::Whole(_), used) => Cut::Whole(used),
        (framing::Cut::Incomplete, _) => Cut::Incomplete,
        (framing::Cut::Garbled, used)
            if bytes.starts_with(b"8=FIX") && bytes[..used].ends_with(&[pares_fix::SOH]) =>
        {
            Cut::Whole(used)
        }
        (framing::Cut::Garbled | framing::Cut::TooLong, used) => Cut::Noise(used),
    }
}

/// What has passed one way and is not cut yet.
#[derive(Default)]
struct Rest {
    bytes: Vec<u8>,
    /// Where in the stream it begins.
    at: u64,
}

impl Rest {
    /// Where in the stream the next piece begins, if none is missing.
    fn end(&self) -> u64 {
        self.at.saturating_add(self.bytes.len() as u64)
    }

    fn take(&mut self, door: TapDoor, piece: &TapedPiece<'_>, found: &mut impl FnMut(TapedMessage)) {
        let message = |at, bytes: &[u8], is_whole| TapedMessage {
            wall_ns: piece.wall_ns,
            mono_ns: piece.mono_ns,
            is_in: piece.is_in,
            at,
            bytes: bytes.to_vec(),
            is_whole,
        };
        if piece.at != self.end() {
            if !self.bytes.is_empty() {
                found(message(self.at, &self.bytes, false));
            }
            (self.at, self.bytes) = (piece.at, Vec::new());
        }
        self.bytes.extend_from_slice(piece.bytes);
        let mut used = 0;
        loop {
            let (length, is_whole) = match cut(door, &self.bytes[used..]) {
                Cut::Whole(length) => (length, true),
                Cut::Noise(length) if length > 0 => (length, false),
                Cut::Noise(_) | Cut::Incomplete => break,
            };
            let at = self.at.saturating_add(used as u64);
            found(message(at, &self.bytes[used..][..length], is_whole));
            used += length;
        }
        self.bytes.drain(..used);
        self.at = self.at.saturating_add(used as u64);
    }
}

/// Cuts messages out of a connection's bytes, both ways, as they pass.
pub struct TapedStream {
    door: TapDoor,
    rests: [Rest; 2],
}

impl TapedStream {
    /// At the beginning of a connection.
    #[must_use]
    pub fn new(door: TapDoor) -> Self {
        Self { door, rests: [Rest::default(), Rest::default()] }
    }

    /// Whether no bytes are missing before that piece.
    pub(crate) fn is_followed_by(&self, piece: &TapedPiece<'_>) -> bool {
        self.rests[usize::from(piece.is_in)].end() == piece.at
    }

    /// Continues over a piece, and gives what ends with it.
    pub fn take(&mut self, piece: &TapedPiece<'_>, mut found: impl FnMut(TapedMessage)) {
        self.rests[usize::from(piece.is_in)].take(self.door, piece, &mut found);
    }

    /// Bytes of which no message is made yet.
    #[must_use]
    pub fn rest(&self) -> u64 {
        self.rests.iter().map(|rest| rest.bytes.len() as u64).sum()
    }
}
