//! A message, written in one pass behind what is in the buffer already.
//!
//! BodyLength stands before the body whose length it is. So three digits are left free, which fit nearly every message, and
//! the body moves by a byte or two if they do not.
//!
//! A value must not hold SOH: the parser gives none, but for data behind its length, and what we write ourselves has none.

use crate::SOH;
#[cfg(any(test, feature = "testing"))]
use crate::dictionary::tag;
use crate::framing::{checksum, digits};
use crate::time::{PAIRS, stamp};

/// `|9=123|`: BodyLength, and the end of the field before.
const LENGTH: &[u8] = b"\x019=000\x01";
const LENGTH_DIGITS: usize = 3;

/// A message that is being written.
#[derive(Debug)]
pub struct FixWriter<'a> {
    out: &'a mut Vec<u8>,
    start: usize,
    body: usize,
}

impl<'a> FixWriter<'a> {
    /// Begins a message.
    pub fn begin(out: &'a mut Vec<u8>, begin_string: &str, msg_type: &[u8]) -> Self {
        let start = out.len();
        out.extend_from_slice(b"8=");
        out.extend_from_slice(begin_string.as_bytes());
        out.extend_from_slice(LENGTH);
        let body = out.len();
        let mut writer = Self { out, start, body };
        writer.text(35, msg_type);
        writer
    }

    /// Writes a field.
    #[inline]
    pub fn text(&mut self, tag: u16, value: &[u8]) {
        self.tag(tag);
        self.out.extend_from_slice(value);
        self.out.push(SOH);
    }

    /// Writes a field of one letter.
    #[inline]
    pub fn letter(&mut self, tag: u16, letter: u8) {
        self.tag(tag);
        self.out.extend_from_slice(&[letter, SOH]);
    }

    /// Writes a field that is a number.
    #[inline]
    pub fn number(&mut self, tag: u16, number: u64) {
        self.tag(tag);
        let mut text = [SOH; 21];
        let (mut at, mut rest) = (20, number);
        while rest >= 10 {
            at -= 2;
            text[at..at + 2].copy_from_slice(&PAIRS[(rest % 100) as usize]);
            rest /= 100;
        }
        if rest > 0 || at == 20 {
            at -= 1;
            text[at] = b'0' + rest as u8;
        }
        self.out.extend_from_slice(&text[at..]);
    }

    /// Writes a field that is a time.
    pub fn time(&mut self, tag: u16, time_ns: u64) {
        self.text(tag, &stamp(time_ns));
    }

    /// Writes fields that are written already, each with its end.
    pub fn fields(&mut self, written: &[u8]) {
        self.out.extend_from_slice(written);
    }

    /// BeginString and the fields that are written so far, without BodyLength: what a proof is of that is to be written behind them.
    #[must_use]
    pub fn proven_form(&self) -> Vec<u8> {
        let begin_end = self.body - LENGTH.len() + 1;
        [&self.out[self.start..begin_end], &self.out[self.body..]].concat()
    }

    /// Writes length and sum. The message is whole then.
    pub fn finish(self) {
        let Self { out, start, body } = self;
        let length = out.len() - body;
        if (100..1_000).contains(&length) {
            for (at, power) in [100, 10, 1].into_iter().enumerate() {
                out[body - 4 + at] = b'0' + (length / power % 10) as u8;
            }
        } else {
            let free = body - 1 - LENGTH_DIGITS..body - 1;
            out.splice(free, length.to_string().into_bytes());
        }
        let sum = digits(checksum(&out[start..]));
        out.extend_from_slice(&[b'1', b'0', b'=', sum[0], sum[1], sum[2], SOH]);
    }

    #[inline]
    fn tag(&mut self, tag: u16) {
        let digit = |power: u16| b'0' + (tag / power % 10) as u8;
        match tag {
            0..10 => self.out.extend_from_slice(&[digit(1), b'=']),
            10..100 => self.out.extend_from_slice(&[digit(10), digit(1), b'=']),
            100..1_000 => self.out.extend_from_slice(&[digit(100), digit(10), digit(1), b'=']),
            _ => {
                self.out.extend_from_slice(tag.to_string().as_bytes());
                self.out.push(b'=');
            }
        }
    }
}

/// The text with SOH for `|`, as people write fields.
#[cfg(any(test, feature = "testing"))]
#[must_use]
pub fn soh(text: &[u8]) -> Vec<u8> {
    text.iter().map(|byte| if *byte == b'|' { SOH } else { *byte }).collect()
}

/// A whole message of such fields, from a sender at a time to a target: for those that have no session.
#[cfg(any(test, feature = "testing"))]
#[must_use]
pub fn message(
    begin_string: &str,
    msg_type: &[u8],
    (number, sender, time_ns, target): (u64, &str, u64, &str),
    fields: &[u8],
) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = FixWriter::begin(&mut bytes, begin_string, msg_type);
    writer.number(tag::MSG_SEQ_NUM, number);
    writer.text(tag::SENDER_COMP_ID, sender.as_bytes());
    writer.time(tag::SENDING_TIME, time_ns);
    writer.text(tag::TARGET_COMP_ID, target.as_bytes());
    writer.fields(&soh(fields));
    writer.finish();
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dictionary::FIX44;
    use crate::framing::{Cut, cut};
    use crate::parser::FixParser;

    fn written(text: &[u8]) -> Vec<u8> {
        let mut out = b"before".to_vec();
        let mut writer = FixWriter::begin(&mut out, "FIX.4.4", b"B");
        writer.number(34, 0);
        writer.time(52, 0);
        writer.letter(54, b'1');
        writer.text(58, text);
        writer.number(5_001, u64::MAX);
        writer.finish();
        out.split_off(b"before".len())
    }

    #[test]
    fn a_message_is_written_with_its_length_and_its_sum() {
        let expected =
            "8=FIX.4.4|9=71|35=B|34=0|52=19700101-00:00:00.000|54=1|58=x|5001=18446744073709551615|10=138|";
        assert_eq!(String::from_utf8(written(b"x")).unwrap().replace('\x01', "|"), expected);
    }

    #[test]
    fn proven_form_is_the_same_to_writer_and_reader() {
        let mut out = b"before".to_vec();
        let mut writer = FixWriter::begin(&mut out, "FIX.4.4", b"A");
        writer.fields(&soh(b"34=1|49=A|52=20260921-12:00:00|56=B|98=0|108=30|"));
        let form = writer.proven_form();
        assert_eq!(form, soh(b"8=FIX.4.4|35=A|34=1|49=A|52=20260921-12:00:00|56=B|98=0|108=30|"));
        writer.fields(&soh(b"95=4|96=a|9=|"));
        writer.finish();
        let (Cut::Whole(frame), _) = cut(&out[b"before".len()..]) else { panic!("a message") };
        let mut parser = FixParser::default();
        let message = parser.parse(&FIX44, &frame).expect("fields");
        assert_eq!(message.proven_form([tag::RAW_DATA_LENGTH, tag::RAW_DATA]), form);
    }

    #[test]
    fn a_message_of_any_length_can_be_cut_again() {
        for length in [1, 20, 28, 29, 30, 500, 928, 929, 930, 7_000] {
            let bytes = written(&vec![b'y'; length]);
            assert!(matches!(cut(&bytes), (Cut::Whole(frame), _) if frame.bytes == bytes), "{length}");
        }
    }
}
