//! Numbers too high and too low.
//!
//! Both sides may miss messages at once, as after a take-over. A peer that goes strictly by numbers does not look at a ResendRequest before
//! it has what it misses itself, and what fills its gap passes over that request. So what is missing is asked for behind what the peer
//! has asked for, and again if that covers the request.

use super::{At, FixSession, FixSink, Phase, S};
use crate::dictionary::tag;
use crate::fault::{FixFault, FixRejectReason};
use crate::framing::{Cut, cut};
use crate::message::FixMessage;
use crate::parser::FixParser;

/// Messages, and bytes of them, that wait for those before them. Others are not kept: they are asked for when the gap before it is filled.
const EARLY_MAX: usize = 1_024;
/// See above.
const EARLY_BYTES_MAX: usize = 256 << 10;
/// When a gap in which nothing moves is asked for again: the resent messages may have been garbled.
const GAP_WAIT_NS: u64 = 10 * S;
/// How often a gap without progress is requested again before `GAP_WAIT_NS`. Without a bound, a peer that answers each ResendRequest with its own
/// would loop with us for ever.
const REPEATS_MAX: u8 = 3;

/// The numbers that are missing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gap {
    /// The last one, as far as was known.
    to: u64,
    /// When to ask again.
    pub(super) again_ns: u64,
    asked: ResendAsked,
    /// How often it was asked for again before.
    repeats: u8,
}

/// Whether the peer is asked for what is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ResendAsked {
    /// It sends that unasked.
    NotNeeded,
    /// Once it has what it has asked for itself.
    Due,
    /// By the message of that number.
    Sent(u64),
}

/// A message that came early; without bytes a Logon or a ResendRequest, which was handled as it came.
#[derive(Debug)]
pub(super) struct Early {
    received_ns: u64,
    bytes: Vec<u8>,
}

#[cfg(test)]
impl Early {
    pub(super) fn length(&self) -> usize {
        self.bytes.len()
    }
}

impl FixSession {
    /// A number beyond the next one: keeps the message, and asks for those that are missing.
    pub(super) fn on_early(
        &mut self,
        now_ns: u64,
        number: u64,
        message: &FixMessage<'_>,
        sink: &mut impl FixSink,
    ) {
        let bytes = message.frame().bytes;
        let has_room = self.early.len() < EARLY_MAX && self.early_bytes + bytes.len() <= EARLY_BYTES_MAX;
        if has_room && !self.is_early(number) {
            self.early_bytes += bytes.len();
            self.early.insert(number, Early { received_ns: now_ns, bytes: bytes.to_vec() });
        }
        self.note_gap(now_ns, number, ResendAsked::Due, sink);
    }

    /// Whether a message of that number waits for those before it.
    #[must_use]
    pub fn is_early(&self, number: u64) -> bool {
        self.early.contains_key(&number)
    }

    /// Keeps the place of a message that was handled before its turn: a Logon, a ResendRequest.
    pub(super) fn keep_place(&mut self, number: u64) {
        if self.early.len() < EARLY_MAX {
            self.early.entry(number).or_insert(Early { received_ns: 0, bytes: Vec::new() });
        }
    }

    /// Notes that the messages before `number` are missing, and asks for them if that is owed and nothing comes first.
    pub(super) fn note_gap(&mut self, now_ns: u64, number: u64, asked: ResendAsked, sink: &mut impl FixSink) {
        if self.gap.is_some() {
            return;
        }
        self.gap = Some(Gap { to: number - 1, again_ns: now_ns + GAP_WAIT_NS, asked, repeats: 0 });
        if asked == ResendAsked::Due && self.resending.is_none() {
            self.ask(now_ns, sink);
        }
    }

    fn ask(&mut self, now_ns: u64, sink: &mut impl FixSink) {
        let asked = ResendAsked::Sent(self.send_resend_request(now_ns, sink));
        self.gap = self.gap.map(|gap| Gap { again_ns: now_ns + GAP_WAIT_NS, asked, ..gap });
    }

    /// The peer was sent the messages from `from` to `to` again: asks for what is missing, if that is owed, or was asked for by one of them.
    pub(super) fn ask_behind(&mut self, now_ns: u64, from: u64, to: u64, sink: &mut impl FixSink) {
        let Some(gap) = self.gap.as_mut().filter(|_| self.phase == Phase::LoggedOn) else { return };
        let is_due = match gap.asked {
            ResendAsked::NotNeeded => false,
            ResendAsked::Due => true,
            ResendAsked::Sent(number) => (from..=to).contains(&number) && gap.repeats < REPEATS_MAX,
        };
        if is_due {
            gap.repeats += 1;
            self.ask(now_ns, sink);
        }
    }

    /// Missing messages come: the gap need not be asked for again yet.
    pub(super) fn put_off_asking(&mut self, now_ns: u64) {
        if let Some(gap) = &mut self.gap {
            (gap.again_ns, gap.repeats) = (now_ns + GAP_WAIT_NS, 0);
        }
    }

    /// Asks again for a gap in which nothing has moved.
    pub(super) fn ask_again(&mut self, now_ns: u64, sink: &mut impl FixSink) {
        if self.gap.is_some_and(|gap| now_ns >= gap.again_ns) {
            self.ask(now_ns, sink);
        }
    }

    /// A number that was there before: ignored if it says so itself; else the two sides disagree about the messages that were sent, and must not continue.
    pub(super) fn on_late(&mut self, at: At, number: u64, message: &FixMessage<'_>, sink: &mut impl FixSink) {
        if !message.flag(tag::POSS_DUP_FLAG) {
            let expected = self.numbers.next_in;
            let text = format!("MsgSeqNum too low, expecting {expected} but received {number}");
            return self.end(at.now_ns, &text, sink);
        }
        // It may reach into a gap: what it covers does not come any more.
        let may_fill = self.gap.is_some() && message.msg_type() == b"4";
        let fills = message.number(tag::NEW_SEQ_NO).filter(|_| may_fill);
        let Some(new) = fills.filter(|new| *new > self.numbers.next_in) else {
            return self.refuse_wrong_origin(at, message, sink);
        };
        if self.is_acceptable(at, message, sink) {
            self.numbers.next_in = new;
        }
    }

    /// A gap fill in its turn.
    pub(super) fn on_gap_fill(&mut self, now_ns: u64, message: &FixMessage<'_>, sink: &mut impl FixSink) {
        let new = message.number(tag::NEW_SEQ_NO).expect("a message without fault has it");
        if new <= self.numbers.next_in {
            self.count_in();
            return self.reject(now_ns, message, FixFault::of_message(FixRejectReason::ValueIncorrect), sink);
        }
        self.numbers.next_in = new;
    }

    /// A reset: its own number means nothing.
    pub(super) fn on_sequence_reset(&mut self, at: At, message: &FixMessage<'_>, sink: &mut impl FixSink) {
        if !self.is_acceptable(at, message, sink) {
            return;
        }
        let new = message.number(tag::NEW_SEQ_NO).expect("a message without fault has it");
        if new < self.numbers.next_in {
            let fault = FixFault::of_message(FixRejectReason::ValueIncorrect);
            return self.reject(at.now_ns, message, fault, sink);
        }
        self.numbers.next_in = new;
    }

    /// Takes messages that waited and are next now, and asks for what lies before those that still wait.
    pub(super) fn take_early(&mut self, parser: &mut FixParser, now_ns: u64, sink: &mut impl FixSink) {
        while self.phase == Phase::LoggedOn {
            self.drop_skipped(parser, now_ns, sink);
            let Some(Early { received_ns, bytes }) = self.early.remove(&self.numbers.next_in) else {
                if let Some((&number, _)) = self.early.first_key_value() {
                    self.note_gap(now_ns, number, ResendAsked::Due, sink);
                }
                return;
            };
            self.early_bytes -= bytes.len();
            let (Cut::Whole(frame), _) = cut(&bytes) else {
                self.count_in();
                continue;
            };
            if let Ok(message) = parser.parse(self.settings.dictionary, &frame) {
                self.take_next(At { now_ns, received_ns }, &message, sink);
            }
        }
    }

    /// Drops messages before the next number, and refuses those of the application.
    fn drop_skipped(&mut self, parser: &mut FixParser, now_ns: u64, sink: &mut impl FixSink) {
        let next_in = self.numbers.next_in;
        while let Some(first) = self.early.first_entry().filter(|first| *first.key() < next_in) {
            let Early { bytes, .. } = first.remove();
            self.early_bytes -= bytes.len();
            if let (Cut::Whole(frame), _) = cut(&bytes)
                && let Ok(message) = parser.parse(self.settings.dictionary, &frame)
            {
                self.refuse_skipped(now_ns, &message, sink);
            }
        }
        self.gap = self.gap.filter(|gap| gap.to >= next_in);
    }
}
