//! Secrets in a stream of FIX.
//!
//! Data (RawData) may contain anything, so the field before says how long they are. Its sender may lie, and a length that were believed beyond the end
//! of its message would blank the orders that follow. So the messages are followed as the gateway cuts them ([`pares_fix::framing`]), and with a message
//! all that is open in it ends. The bytes that a cut is made by are never blanked: a reader that cuts the tap's bytes finds the same messages.
//!
//! ```text
//!  Outside --8=FIX--> Head --|9=LENGTH|--> Body --LENGTH bytes--> Trailer --|10=SUM|--> Outside
//! ```

use pares_fix::SOH;
use pares_fix::framing::{
    BEGIN, BEGIN_BYTES_MAX, LENGTH_DIGITS_MAX, MESSAGE_BYTES_MAX, TRAILER_VALUE_BYTES_MAX,
};

const RAW_DATA_LENGTH: u32 = 95;
const RAW_DATA: u32 = 96;
const PASSWORDS: [u32; 2] = [554, 925];
/// The longest data that a length is believed for.
const DATA_MAX: u32 = 8_192;
/// What a trailer begins with, and the end of the field before it.
const TRAILER: &[u8] = b"\x0110=";
/// Up to the end of BodyLength.
const HEAD_BYTES_MAX: usize = BEGIN_BYTES_MAX + 2 + LENGTH_DIGITS_MAX + 1;

/// Where in a stream.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Fix {
    frame: Frame,
    field: Field,
}

impl Fix {
    /// Behind the next byte; whether that is part of a secret.
    pub(super) fn next(&mut self, byte: u8) -> bool {
        let (field, is_secret) = self.field.next(byte);
        let step = self.frame.next(byte);
        self.field = match step {
            Step::Begun => Field::Value,
            Step::Ended => Field::Tag(0),
            Step::Within | Step::Framing => field,
        };
        is_secret && step == Step::Within
    }
}

/// What a byte is to the cutting of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Within,
    /// It may be one of those by which messages are found.
    Framing,
    /// With it a message has begun, or ended.
    Begun,
    Ended,
}

/// Where in a message, as the gateway cuts them.
#[derive(Clone, Copy, Debug)]
enum Frame {
    /// In none; so many bytes of its beginning were there.
    Outside(usize),
    /// In what may be a head: its bytes, and how many there are.
    Head([u8; HEAD_BYTES_MAX], usize),
    /// So many bytes of the body are left.
    Body(usize),
    /// Behind the body. Of a trailer so many bytes were there; so many bytes are looked at yet.
    Trailer(usize, usize),
    /// The length was one that nobody keeps.
    Over,
}

impl Default for Frame {
    fn default() -> Self {
        Self::Outside(0)
    }
}

impl Frame {
    fn next(&mut self, byte: u8) -> Step {
        match *self {
            Self::Outside(there) => self.outside(there, byte),
            Self::Head(mut head, length) => {
                head[length] = byte;
                self.head(head, length + 1)
            }
            Self::Body(1) => self.trailer(0, MESSAGE_BYTES_MAX + 1, byte),
            Self::Body(left) => {
                *self = Self::Body(left - 1);
                Step::Within
            }
            Self::Trailer(there, left) => self.trailer(there, left, byte),
            Self::Over => Step::Within,
        }
    }

    fn outside(&mut self, there: usize, byte: u8) -> Step {
        let there = if byte == BEGIN[there] { there + 1 } else { usize::from(byte == BEGIN[0]) };
        *self = Self::Outside(there);
        if there == BEGIN.len() {
            let mut head = [0; HEAD_BYTES_MAX];
            head[..there].copy_from_slice(BEGIN);
            *self = Self::Head(head, there);
            return Step::Begun;
        }
        if there > 0 { Step::Framing } else { Step::Within }
    }

    fn head(&mut self, head: [u8; HEAD_BYTES_MAX], length: usize) -> Step {
        *self = match look(&head[..length]) {
            Head::Unfinished => Self::Head(head, length),
            // What is behind the body begins with the end of the field before.
            Head::Length(0) => Self::Trailer(1, MESSAGE_BYTES_MAX),
            Head::Length(length) if length > MESSAGE_BYTES_MAX => Self::Over,
            Head::Length(length) => Self::Body(length),
            Head::None => {
                *self = Self::default();
                let rest = head[BEGIN.len()..length].iter();
                return rest.fold(Step::Within, |_, byte| self.next(*byte));
            }
        };
        Step::Framing
    }

    /// `left` is what is looked at with this byte.
    fn trailer(&mut self, there: usize, left: usize, byte: u8) -> Step {
        let is_value = there >= TRAILER.len();
        let there = match there {
            _ if is_value && byte == SOH => {
                *self = Self::default();
                return Step::Ended;
            }
            _ if is_value && there + 1 < TRAILER.len() + TRAILER_VALUE_BYTES_MAX => there + 1,
            _ if !is_value && byte == TRAILER[there] => there + 1,
            _ => usize::from(byte == SOH),
        };
        *self = Self::Trailer(there, left - 1);
        if left == 1 {
            *self = Self::default();
            return Step::Ended;
        }
        if there > 0 { Step::Framing } else { Step::Within }
    }
}

/// What a head says.
enum Head {
    Unfinished,
    /// Bytes of the body.
    Length(usize),
    /// There is none.
    None,
}

fn look(head: &[u8]) -> Head {
    let Some(end) = head.iter().take(BEGIN_BYTES_MAX).position(|byte| *byte == SOH) else {
        return if head.len() < BEGIN_BYTES_MAX { Head::Unfinished } else { Head::None };
    };
    let rest = &head[end + 1..];
    let (tag, value) = rest.split_at(rest.len().min(2));
    let digits = value.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let length = value[..digits].iter().fold(0, |length, digit| length * 10 + usize::from(digit - b'0'));
    match value.get(digits) {
        _ if tag != &b"9="[..tag.len()] || digits > LENGTH_DIGITS_MAX => Head::None,
        None => Head::Unfinished,
        Some(&SOH) if digits > 0 => Head::Length(length),
        Some(_) => Head::None,
    }
}

/// Where in a field.
#[derive(Clone, Copy, Debug)]
enum Field {
    /// In the tag, which is that so far.
    Tag(u32),
    /// In the tag, behind a length of data.
    TagOf(u32, u32),
    /// In a value of no interest.
    Value,
    /// In the length of data, which is that so far.
    Length(u32),
    /// In data: so many bytes are left.
    Data(u32),
    /// In a secret, up to the end of the field.
    Secret,
}

impl Default for Field {
    fn default() -> Self {
        Self::Tag(0)
    }
}

impl Field {
    /// Behind the next byte, and whether that is part of a secret.
    fn next(self, byte: u8) -> (Self, bool) {
        let digit = |number: u32| {
            byte.is_ascii_digit().then(|| number.saturating_mul(10).saturating_add(u32::from(byte - b'0')))
        };
        match self {
            Self::Value if byte != SOH => (self, false),
            Self::Data(left) => (if left > 1 { Self::Data(left - 1) } else { Self::Value }, true),
            Self::Secret if byte != SOH => (self, true),
            Self::Length(length) if byte != SOH => (digit(length).map_or(Self::Value, Self::Length), false),
            Self::Length(length) if length > 0 => (Self::TagOf(0, length.min(DATA_MAX)), false),
            _ if byte == SOH => (Self::Tag(0), false),
            Self::Tag(tag) if byte == b'=' => (Self::after(tag, None), false),
            Self::TagOf(tag, length) if byte == b'=' => (Self::after(tag, Some(length)), false),
            Self::Tag(tag) => (digit(tag).map_or(Self::Value, Self::Tag), false),
            Self::TagOf(tag, length) => {
                (digit(tag).map_or(Self::Value, |tag| Self::TagOf(tag, length)), false)
            }
            Self::Value | Self::Secret | Self::Length(_) => (Self::Tag(0), false),
        }
    }

    fn after(tag: u32, length: Option<u32>) -> Self {
        match tag {
            RAW_DATA_LENGTH => Self::Length(0),
            RAW_DATA => length.map_or(Self::Secret, Self::Data),
            tag if PASSWORDS.contains(&tag) => Self::Secret,
            _ => Self::Value,
        }
    }
}
