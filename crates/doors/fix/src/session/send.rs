//! Messages that go out.

use super::{FixAction, FixSession, FixSink, Phase};
use crate::dictionary::tag;
use crate::writer::FixWriter;

impl FixSession {
    /// Sends a message under the next number, which it returns. `fields` writes further fields of the header, if any, and
    /// the body. While nobody is logged on it takes the number only: the peer asks for it when it is back.
    pub fn send(
        &mut self,
        now_ns: u64,
        msg_type: &[u8],
        sink: &mut impl FixSink,
        fields: impl FnOnce(&mut FixWriter<'_>),
    ) -> u64 {
        let number = self.numbers.next_out;
        self.numbers.next_out += 1;
        if self.phase != Phase::Away {
            self.emit(now_ns, number, None, msg_type, sink, fields);
        }
        number
    }

    /// Writes a message and hands it on; `first_sent_ns` is that of a possible duplicate.
    pub(super) fn emit(
        &mut self,
        now_ns: u64,
        number: u64,
        first_sent_ns: Option<u64>,
        msg_type: &[u8],
        sink: &mut impl FixSink,
        fields: impl FnOnce(&mut FixWriter<'_>),
    ) {
        self.scratch.clear();
        let begin_string = self.settings.dictionary.begin_string;
        let mut writer = FixWriter::begin(&mut self.scratch, begin_string, msg_type);
        writer.number(tag::MSG_SEQ_NUM, number);
        if first_sent_ns.is_some() {
            writer.letter(tag::POSS_DUP_FLAG, b'Y');
        }
        writer.text(tag::SENDER_COMP_ID, self.settings.own_comp_id.as_bytes());
        writer.time(tag::SENDING_TIME, now_ns);
        writer.text(tag::TARGET_COMP_ID, self.settings.peer_comp_id.as_bytes());
        if let Some(first_sent_ns) = first_sent_ns {
            writer.time(tag::ORIG_SENDING_TIME, first_sent_ns);
        }
        fields(&mut writer);
        writer.finish();
        self.last_out_ns = now_ns;
        sink.act(FixAction::Send(&self.scratch));
    }

    pub(super) fn send_heartbeat(&mut self, now_ns: u64, answers: Option<&[u8]>, sink: &mut impl FixSink) {
        self.send(now_ns, b"0", sink, |writer| {
            if let Some(test) = answers {
                writer.text(tag::TEST_REQ_ID, test);
            }
        });
    }

    pub(super) fn send_test_request(&mut self, now_ns: u64, sink: &mut impl FixSink) {
        self.send(now_ns, b"1", sink, |writer| writer.text(tag::TEST_REQ_ID, b"TEST"));
    }

    /// Asks for everything from the next number on. Gives the number of the request.
    pub(super) fn send_resend_request(&mut self, now_ns: u64, sink: &mut impl FixSink) -> u64 {
        let from = self.numbers.next_in;
        self.send(now_ns, b"2", sink, |writer| {
            writer.number(tag::BEGIN_SEQ_NO, from);
            writer.letter(tag::END_SEQ_NO, b'0');
        })
    }

    /// Sends a Logout; also to a peer whose Logon is not taken.
    pub(super) fn send_logout(&mut self, now_ns: u64, text: &str, sink: &mut impl FixSink) {
        let number = self.numbers.next_out;
        self.numbers.next_out += 1;
        self.emit(now_ns, number, None, b"5", sink, |writer| {
            if !text.is_empty() {
                writer.text(tag::TEXT, text.as_bytes());
            }
        });
    }
}
