//! The first message of a connection, and the one that resets numbers.
//!
//! Before a session is known to be the peer's, nothing is said: a Logon with wrong ids, a wrong time or a wrong form is answered by a closed connection.

use super::gaps::ResendAsked;
use super::{FixAction, FixNumbers, FixSession, FixSink, Phase, S};
use crate::dictionary::tag;
use crate::message::FixMessage;

/// The longest interval of heartbeats: a peer that is gone should be missed within a day's trading.
const HEARTBEAT_S_MAX: u64 = 3_600;

impl FixSession {
    /// A Logon; while logged on, only one that resets numbers.
    pub(super) fn on_logon(&mut self, now_ns: u64, message: &FixMessage<'_>, sink: &mut impl FixSink) {
        let number = message.number(tag::MSG_SEQ_NUM);
        let is_logon = message.msg_type() == b"A" && message.fault().is_none();
        let is_ours = self.is_for(message) && self.has_right_time(now_ns, message);
        let Some(number) = number.filter(|_| is_logon && is_ours) else {
            return self.cut(sink);
        };
        let is_reset = message.flag(tag::RESET_SEQ_NUM_FLAG);
        let anew = is_reset || (self.settings.begins_anew && self.phase == Phase::Away);
        let numbers = if anew { FixNumbers::default() } else { self.numbers };
        match objection(numbers, number, is_reset, message) {
            Some(text) => {
                self.send_logout(now_ns, &text, sink);
                self.cut(sink);
            }
            None => {
                if anew {
                    // All that is open, such as a gap, was about the numbers before.
                    self.on_disconnected();
                    self.numbers = numbers;
                }
                self.log_on(now_ns, number, message, sink);
                sink.act(FixAction::LoggedOn { anew });
                self.catch_up(now_ns, number, message, sink);
            }
        }
    }

    fn log_on(&mut self, now_ns: u64, number: u64, message: &FixMessage<'_>, sink: &mut impl FixSink) {
        let heartbeat_s = message.number(tag::HEART_BT_INT).expect("looked at before");
        self.heartbeat_ns = heartbeat_s * S;
        (self.phase, self.last_in_ns) = (Phase::LoggedOn, now_ns);
        if number == self.numbers.next_in {
            self.count_in();
        }
        let next_in = self.numbers.next_in;
        self.send(now_ns, b"A", sink, |writer| {
            writer.letter(tag::ENCRYPT_METHOD, b'0');
            writer.number(tag::HEART_BT_INT, heartbeat_s);
            if message.flag(tag::RESET_SEQ_NUM_FLAG) {
                writer.letter(tag::RESET_SEQ_NUM_FLAG, b'Y');
            }
            if message.text(tag::NEXT_EXPECTED_MSG_SEQ_NUM).is_some() {
                writer.number(tag::NEXT_EXPECTED_MSG_SEQ_NUM, next_in);
            }
        });
    }

    /// Asks for messages before the Logon that are missing here, and sends those that the peer says it misses.
    fn catch_up(&mut self, now_ns: u64, number: u64, message: &FixMessage<'_>, sink: &mut impl FixSink) {
        let expected = message.number(tag::NEXT_EXPECTED_MSG_SEQ_NUM);
        let own = self.numbers.next_out - 1;
        if number >= self.numbers.next_in {
            self.keep_place(number);
            // A peer that says what it expects learns what we expect, and sends it unasked.
            let asked = if expected.is_none() { ResendAsked::Due } else { ResendAsked::NotNeeded };
            self.note_gap(now_ns, number, asked, sink);
        }
        if let Some(expected) = expected.filter(|&expected| expected > 0 && expected < own) {
            // Our Logon, too: a peer that ignored it, since its number is too high, would wait for it.
            self.begin_resend(expected, own, sink);
        }
    }
}

/// Why a Logon of the right peer is not taken, by the numbers that would hold.
fn objection(numbers: FixNumbers, number: u64, is_reset: bool, message: &FixMessage<'_>) -> Option<String> {
    let FixNumbers { next_in, next_out } = numbers;
    let heartbeat_s = message.number(tag::HEART_BT_INT);
    let expected = message.number(tag::NEXT_EXPECTED_MSG_SEQ_NUM).unwrap_or_default();
    match () {
        () if number < next_in => {
            Some(format!("MsgSeqNum too low, expecting {next_in} but received {number}"))
        }
        () if is_reset && number != 1 => Some("MsgSeqNum must be 1 where ResetSeqNumFlag is Y".into()),
        () if message.number(tag::ENCRYPT_METHOD) != Some(0) => Some("EncryptMethod must be 0".into()),
        () if heartbeat_s.is_none_or(|seconds| seconds > HEARTBEAT_S_MAX) => {
            Some(format!("HeartBtInt must be 0 to {HEARTBEAT_S_MAX}"))
        }
        () if expected > next_out => Some(format!(
            "NextExpectedMsgSeqNum too high, expecting {next_out} at most but received {expected}"
        )),
        () => None,
    }
}
