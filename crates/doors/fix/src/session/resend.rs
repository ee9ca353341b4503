//! What was sent before, sent again.
//!
//! The owner of a session makes application messages again; everything else that had a number is filled as a gap. One resend is open at a time: a peer that
//! asks again and again while it is served is served once more at the end, from the first to the last number it asked for meanwhile. So a flood of requests costs
//! no memory, if the owner sends again no faster than the connection takes it.

use super::gaps::ResendAsked;
use super::{At, FixAction, FixSession, FixSink, Phase};
use crate::dictionary::tag;
use crate::fault::{FixFault, FixRejectReason};
use crate::message::FixMessage;
use crate::writer::FixWriter;

/// A resend that is open.
#[derive(Clone, Copy, Debug)]
pub(super) struct Resending {
    /// The first and the last number that was asked for since none was open.
    first: u64,
    last: u64,
    /// The next number that is owed.
    next: u64,
    to: u64,
    /// What was asked for meanwhile.
    then: Option<(u64, u64)>,
}

impl FixSession {
    /// The peer asks for old messages. It is served before its turn, which then counts; what it shows to be missing is asked for behind that.
    pub(super) fn on_resend_request(
        &mut self,
        at: At,
        number: u64,
        message: &FixMessage<'_>,
        sink: &mut impl FixSink,
    ) {
        if !self.is_acceptable(at, message, sink) {
            return;
        }
        if number == self.numbers.next_in {
            self.count_in();
        }
        self.serve(at, message, sink);
        if number > self.numbers.next_in && self.phase == Phase::LoggedOn {
            self.keep_place(number);
            self.note_gap(at.now_ns, number, ResendAsked::Due, sink);
        }
    }

    fn serve(&mut self, at: At, message: &FixMessage<'_>, sink: &mut impl FixSink) {
        let [from, to] = [tag::BEGIN_SEQ_NO, tag::END_SEQ_NO].map(|tag| message.number(tag));
        let last = self.numbers.next_out - 1;
        let wrong = |tag: u16| FixFault::of(FixRejectReason::ValueIncorrect, i32::from(tag));
        match (from, to) {
            (Some(from @ 1..), Some(to)) if from <= last && (to == 0 || to >= from) => {
                // 0 is all that was sent.
                let to = if to == 0 { last } else { to.min(last) };
                self.begin_resend(from, to, sink);
            }
            (Some(from @ 1..), _) if from <= last => {
                self.reject(at.now_ns, message, wrong(tag::END_SEQ_NO), sink);
            }
            _ => self.reject(at.now_ns, message, wrong(tag::BEGIN_SEQ_NO), sink),
        }
    }

    pub(super) fn begin_resend(&mut self, from: u64, to: u64, sink: &mut impl FixSink) {
        if let Some(open) = &mut self.resending {
            let (first, last) = open.then.unwrap_or((from, to));
            open.then = Some((first.min(from), last.max(to)));
            return;
        }
        self.resending = Some(Resending { first: from, last: to, next: from, to, then: None });
        sink.act(FixAction::Resend { from, to });
    }

    /// Sends an application message again: its number, when it was sent first, and what it was made of. Nothing happens if the connection for which it
    /// was asked is gone.
    ///
    /// # Panics
    /// If it is not among what was asked for, or not behind the one before.
    pub fn resend(
        &mut self,
        now_ns: u64,
        number: u64,
        first_sent_ns: u64,
        msg_type: &[u8],
        sink: &mut impl FixSink,
        fields: impl FnOnce(&mut FixWriter<'_>),
    ) {
        let Some(open) = self.resending else { return };
        assert!((open.next..=open.to).contains(&number), "{number} is not owed");
        self.fill(now_ns, open.next, number, sink);
        self.emit(now_ns, number, Some(first_sent_ns), msg_type, sink, fields);
        self.resending = Some(Resending { next: number + 1, ..open });
    }

    /// All that was asked for was sent again.
    pub fn resend_done(&mut self, now_ns: u64, sink: &mut impl FixSink) {
        let Some(open) = self.resending.take() else { return };
        self.fill(now_ns, open.next, open.to + 1, sink);
        match open.then {
            Some((from, to)) => {
                self.begin_resend(from, to, sink);
                // What covers our own request may be the first of those that are merged.
                if let Some(again) = &mut self.resending {
                    (again.first, again.last) = (again.first.min(open.first), again.last.max(open.last));
                }
            }
            None => self.ask_behind(now_ns, open.first, open.last, sink),
        }
    }

    /// Fills the numbers from `from` to before `new` as a gap.
    fn fill(&mut self, now_ns: u64, from: u64, new: u64, sink: &mut impl FixSink) {
        if from < new {
            self.emit(now_ns, from, Some(now_ns), b"4", sink, |writer| {
                writer.number(tag::NEW_SEQ_NO, new);
                writer.letter(tag::GAP_FILL_FLAG, b'Y');
            });
        }
    }
}
