//! One message out of the bytes of a connection.
//!
//! `8=FIX.4.4|9=LENGTH|` LENGTH bytes `10=SUM|`. The length says where the message ends, so nothing is searched. If the trailer is not there, the
//! length is wrong and nothing of the message can be believed, but its end must be found, or the garbage would
//! swallow what follows: the next trailer behind the place that the length names ends it. So a length that is too great takes
//! the next message with it, and its sender is asked for both by the gap in the numbers.

use crate::SOH;

/// The longest message that is taken, in bytes. A length beyond it is not believed, and ends the connection: what is in
/// between cannot be skipped without reading it.
pub const MESSAGE_BYTES_MAX: usize = 8_192;

/// `8=FIX`: where a message may begin.
pub const BEGIN: &[u8] = b"8=FIX";
/// Bytes that a BeginString has at most, with tag and end: `8=FIXT.1.1|`, and room for others.
pub const BEGIN_BYTES_MAX: usize = 20;
/// Digits that a BodyLength has at most.
pub const LENGTH_DIGITS_MAX: usize = 10;
/// `10=123|`.
pub const TRAILER_BYTES: usize = 7;
/// Behind `10=` with SOH, where the length was wrong; what is longer is no trailer.
pub const TRAILER_VALUE_BYTES_MAX: usize = 8;

/// The largest number that fits an integer of FIX, which has 18 digits at most.
pub const NUMBER_MAX: u64 = 999_999_999_999_999_999;

/// A message as it came, whole and with the right sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FixFrame<'a> {
    /// All of it.
    pub bytes: &'a [u8],
    /// The value of tag 8.
    pub begin_string: &'a [u8],
    /// From behind BodyLength to before CheckSum; it ends with SOH.
    pub body: &'a [u8],
}

/// What stands at the beginning of a connection's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut<'a> {
    /// Not yet a whole message.
    Incomplete,
    /// A message.
    Whole(FixFrame<'a>),
    /// What must be ignored.
    Garbled,
    /// A length that no peer keeps: the connection cannot continue.
    TooLong,
}

/// Looks at the beginning of `bytes`: what is there, and how many of them are done with.
#[must_use]
pub fn cut(bytes: &[u8]) -> (Cut<'_>, usize) {
    if !bytes.starts_with(BEGIN) {
        return before_begin(bytes);
    }
    let Some(begin_end) = soh_within(bytes, BEGIN_BYTES_MAX) else {
        return unfinished(bytes, BEGIN_BYTES_MAX);
    };
    let Some((length, body_at)) = body_length(&bytes[begin_end + 1..]) else {
        return unfinished(bytes, begin_end + 16);
    };
    if length > MESSAGE_BYTES_MAX {
        return (Cut::TooLong, bytes.len());
    }
    let body_at = begin_end + 1 + body_at;
    let frame = Place { begin_end, body_at, body_end: body_at + length };
    if bytes.len() < frame.body_end + TRAILER_BYTES { (Cut::Incomplete, 0) } else { frame.cut(bytes) }
}

/// Where the parts of a message are.
struct Place {
    begin_end: usize,
    body_at: usize,
    body_end: usize,
}

impl Place {
    fn cut(self, bytes: &[u8]) -> (Cut<'_>, usize) {
        let trailer = &bytes[self.body_end..self.body_end + TRAILER_BYTES];
        let is_there = self.body_end > self.body_at && bytes[self.body_end - 1] == SOH;
        let sum = checksum(&bytes[..self.body_end]);
        if !is_there || !trailer.starts_with(b"10=") || trailer[TRAILER_BYTES - 1] != SOH {
            return self.search_end(bytes);
        }
        let end = self.body_end + TRAILER_BYTES;
        if trailer[3..6] != digits(sum) {
            return (Cut::Garbled, end);
        }
        let begin_string = &bytes[2..self.begin_end];
        (
            Cut::Whole(FixFrame {
                bytes: &bytes[..end],
                begin_string,
                body: &bytes[self.body_at..self.body_end],
            }),
            end,
        )
    }

    /// Finds where a message ends whose length is wrong: at the first trailer that is one, or where no more is believed.
    fn search_end(&self, bytes: &[u8]) -> (Cut<'static>, usize) {
        let (from, most) = (self.body_end - 1, self.body_end + MESSAGE_BYTES_MAX);
        // Bytes beyond are not looked at, so the end is the same however they come.
        let near = &bytes[..bytes.len().min(most)];
        let trailers = near[from..].windows(4).enumerate().filter(|(_, window)| *window == b"\x0110=");
        let mut values = trailers.map(|(at, _)| from + at + 4);
        match values.find_map(|at| Some(at + 1 + soh_within(&near[at..], TRAILER_VALUE_BYTES_MAX)?)) {
            Some(end) => (Cut::Garbled, end),
            None if bytes.len() >= most => (Cut::Garbled, most),
            None => (Cut::Incomplete, 0),
        }
    }
}

/// Passes over what no message begins with.
fn before_begin(bytes: &[u8]) -> (Cut<'_>, usize) {
    let begin = bytes.windows(BEGIN.len()).position(|window| window == BEGIN);
    let could_begin = (1..BEGIN.len()).rev().find(|&length| bytes.ends_with(&BEGIN[..length]));
    match begin.unwrap_or(bytes.len() - could_begin.unwrap_or_default()) {
        0 => (Cut::Incomplete, 0),
        skipped => (Cut::Garbled, skipped),
    }
}

/// A head that is not there: wait for it, or pass over its first bytes if it can no longer come.
fn unfinished(bytes: &[u8], within: usize) -> (Cut<'_>, usize) {
    if bytes.len() < within && could_be_head(bytes) {
        (Cut::Incomplete, 0)
    } else {
        (Cut::Garbled, BEGIN.len())
    }
}

/// Whether what follows the BeginString may still become a BodyLength.
fn could_be_head(bytes: &[u8]) -> bool {
    let Some(end) = soh_within(bytes, BEGIN_BYTES_MAX) else { return true };
    let rest = &bytes[end + 1..];
    let tag = rest.len().min(2);
    rest[..tag] == b"9="[..tag] && rest[tag..].iter().all(u8::is_ascii_digit)
}

/// Reads `9=LENGTH|`: the length, and how many bytes that took.
fn body_length(bytes: &[u8]) -> Option<(usize, usize)> {
    let value = bytes.strip_prefix(b"9=")?;
    let digits = value.iter().take(LENGTH_DIGITS_MAX).take_while(|byte| byte.is_ascii_digit()).count();
    let is_ended = digits > 0 && value.get(digits) == Some(&SOH);
    let length = value[..digits].iter().fold(0, |length, digit| length * 10 + usize::from(digit - b'0'));
    is_ended.then_some((length, 2 + digits + 1))
}

fn soh_within(bytes: &[u8], most: usize) -> Option<usize> {
    bytes.iter().take(most).position(|byte| *byte == SOH)
}

/// The sum of all bytes, modulo 256.
pub(crate) fn checksum(bytes: &[u8]) -> u8 {
    bytes.iter().fold(0, |sum, byte| sum.wrapping_add(*byte))
}

/// A checksum as it is written.
pub(crate) fn digits(sum: u8) -> [u8; 3] {
    [b'0' + sum / 100, b'0' + sum / 10 % 10, b'0' + sum % 10]
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEARTBEAT: &[u8] = b"8=FIX.4.4\x019=5\x0135=0\x0110=163\x01";

    #[test]
    fn a_message_is_cut_where_its_length_says() {
        let two = [HEARTBEAT, HEARTBEAT].concat();
        let (Cut::Whole(frame), used) = cut(&two) else { panic!("a message") };
        assert_eq!(
            (frame.bytes, frame.begin_string, frame.body),
            (HEARTBEAT, &b"FIX.4.4"[..], &b"35=0\x01"[..])
        );
        assert_eq!(used, HEARTBEAT.len());
    }

    #[test]
    fn each_beginning_of_a_message_waits_for_the_rest() {
        for length in 0..HEARTBEAT.len() {
            assert_eq!(cut(&HEARTBEAT[..length]), (Cut::Incomplete, 0), "{length}");
        }
    }

    #[test]
    fn what_is_no_message_is_passed_over_up_to_the_next_one() {
        let noise = [b"35=0\x01", HEARTBEAT].concat();
        assert_eq!(cut(&noise), (Cut::Garbled, 5));
        assert_eq!(cut(b"noise8=FI"), (Cut::Garbled, 5), "the end may begin a message");
        assert_eq!(cut(b"8=FIX.4.4\x0134=1\x01"), (Cut::Garbled, 5), "no length");
        assert_eq!(cut(b"8=FIX.4.4\x019=x"), (Cut::Garbled, 5), "no number");
    }

    #[test]
    fn a_wrong_sum_is_garbled_as_a_whole() {
        let wrong = [&HEARTBEAT[..HEARTBEAT.len() - 4], b"164\x01"].concat();
        assert_eq!(cut(&wrong), (Cut::Garbled, HEARTBEAT.len()));
    }

    #[test]
    fn a_length_that_is_too_small_ends_at_the_message_s_own_trailer() {
        let short = b"8=FIX.4.4\x019=2\x0135=0\x0110=160\x01";
        assert_eq!(cut(&[&short[..], HEARTBEAT].concat()), (Cut::Garbled, short.len()));
    }

    #[test]
    fn a_length_that_is_too_great_takes_the_next_message_with_it() {
        let long = b"8=FIX.4.4\x019=18\x0135=0\x0110=160\x01";
        assert_eq!(cut(&[&long[..], HEARTBEAT].concat()), (Cut::Garbled, long.len() + HEARTBEAT.len()));
    }

    /// Messages of a stream that comes in parts of so many bytes.
    fn whole(stream: &[u8], at_once: usize) -> usize {
        let (mut input, mut count) = (Vec::new(), 0);
        for part in stream.chunks(at_once) {
            input.extend_from_slice(part);
            loop {
                let (cut, used) = cut(&input);
                count += usize::from(matches!(cut, Cut::Whole(_)));
                if cut == Cut::Incomplete {
                    break;
                }
                input.drain(..used);
            }
        }
        count
    }

    #[test]
    fn bad_trailer_costs_one_message_however_split() {
        let garbled = b"8=FIX.4.4\x019=5\x0135=0\x0110=123456789\x01";
        let stream = [&garbled[..], &HEARTBEAT.repeat(2_000)].concat();
        let far = [&b"8=FIX.4.4\x019=5\x01"[..], &[b'x'; 9_000], &HEARTBEAT.repeat(2_000)].concat();
        for at_once in [1, 7, 1_000, far.len()] {
            assert_eq!(whole(&stream, at_once), 1_999, "{at_once}");
            assert_eq!(whole(&far, at_once), 2_000, "{at_once}");
        }
    }

    #[test]
    fn a_length_beyond_all_bounds_ends_the_connection() {
        let (cut, _) = cut(b"8=FIX.4.4\x019=9999999\x01");
        assert_eq!(cut, Cut::TooLong);
    }
}
