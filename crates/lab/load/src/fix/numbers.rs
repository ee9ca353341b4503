//! The numbers of both ends of a session, and what comes too early.

use std::collections::BTreeMap;

use pares_fix::dictionary::tag;
use pares_fix::message::FixMessage;

/// What is to be done with a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// It is the next one.
    Now,
    /// It waits; if `asks`, what lies before it is to be asked for.
    Early { asks: bool },
    /// It was here before.
    Past,
}

/// The numbers of a session. They outlive its connections.
#[derive(Debug)]
pub(crate) struct Numbers {
    /// The number that the gateway's next message must have.
    pub(super) next_in: u64,
    /// The number of our next message.
    pub(super) next_out: u64,
    /// What came with a higher number than expected.
    early: BTreeMap<u64, Vec<u8>>,
    /// Whether what is missing was asked for.
    has_asked: bool,
}

impl Default for Numbers {
    fn default() -> Self {
        Self { next_in: 1, next_out: 1, early: BTreeMap::new(), has_asked: false }
    }
}

impl Numbers {
    /// A new connection: what came early on the last one is asked for again.
    pub(super) fn forget_early(&mut self) {
        (self.early, self.has_asked) = (BTreeMap::new(), false);
    }

    pub(super) fn take_out(&mut self) -> u64 {
        self.next_out += 1;
        self.next_out - 1
    }

    /// Whose turn it is. Who is not early has had it then.
    pub(super) fn turn(&mut self, message: &FixMessage<'_>) -> Turn {
        let number = message.number(tag::MSG_SEQ_NUM).unwrap_or(0);
        if number < self.next_in {
            return Turn::Past;
        }
        if number > self.next_in {
            self.early.insert(number, message.frame().bytes.to_vec());
            return Turn::Early { asks: !std::mem::replace(&mut self.has_asked, true) };
        }
        self.next_in = match (message.msg_type(), message.number(tag::NEW_SEQ_NO)) {
            (b"4", Some(next)) => next.max(number + 1),
            _ => number + 1,
        };
        Turn::Now
    }

    /// What came early and whose turn it is now.
    pub(super) fn take_next(&mut self) -> Option<Vec<u8>> {
        self.early = self.early.split_off(&self.next_in);
        if self.early.is_empty() {
            self.has_asked = false;
        }
        self.early.remove(&self.next_in)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pares_fix::dictionary::FIX44;
    use pares_fix::framing::{Cut, cut};
    use pares_fix::parser::FixParser;
    use pares_fix::writer::FixWriter;

    /// A message with that number; with `next` it fills a gap up to there.
    fn turn(numbers: &mut Numbers, number: u64, next: Option<u64>) -> Turn {
        let mut bytes = Vec::new();
        let mut writer = FixWriter::begin(&mut bytes, "FIX.4.4", if next.is_some() { b"4" } else { b"0" });
        writer.number(tag::MSG_SEQ_NUM, number);
        next.into_iter().for_each(|next| writer.number(tag::NEW_SEQ_NO, next));
        writer.finish();
        let (Cut::Whole(frame), _) = cut(&bytes) else { panic!("a message") };
        let mut parser = FixParser::default();
        numbers.turn(&parser.parse(&FIX44, &frame).unwrap())
    }

    #[test]
    fn gap_requested_once_early_messages_wait_their_turn() {
        let mut numbers = Numbers::default();
        assert_eq!(turn(&mut numbers, 1, None), Turn::Now);
        assert_eq!(turn(&mut numbers, 5, None), Turn::Early { asks: true });
        assert_eq!(turn(&mut numbers, 6, None), Turn::Early { asks: false });
        assert_eq!(turn(&mut numbers, 1, None), Turn::Past);
        assert!(numbers.take_next().is_none());
        assert_eq!(turn(&mut numbers, 2, Some(5)), Turn::Now);
        for expected in [5, 6] {
            let bytes = numbers.take_next().unwrap();
            assert!(bytes.windows(4).any(|field| field == format!("34={expected}").as_bytes()));
            numbers.next_in += 1;
        }
        assert!(numbers.take_next().is_none());
        assert_eq!(turn(&mut numbers, 9, None), Turn::Early { asks: true }, "the next gap");
    }

    #[test]
    fn what_a_gap_fill_passes_over_waits_no_longer() {
        let mut numbers = Numbers::default();
        turn(&mut numbers, 3, None);
        turn(&mut numbers, 1, Some(9));
        assert!(numbers.take_next().is_none());
        assert_eq!(numbers.next_in, 9);
    }
}
