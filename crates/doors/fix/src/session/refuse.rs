//! Faults of a message, and the Rejects that report them.

use super::{At, FixSession, FixSink};
use crate::dictionary::tag;
use crate::fault::{FixFault, FixRejectReason};
use crate::message::FixMessage;
use crate::writer::FixWriter;

/// Where a message came from on another's behalf, and where its answer is delivered to; and the other way round.
const ROUTES: [(u16, u16); 6] = [
    (tag::DELIVER_TO_COMP_ID, tag::ON_BEHALF_OF_COMP_ID),
    (tag::DELIVER_TO_SUB_ID, tag::ON_BEHALF_OF_SUB_ID),
    (tag::DELIVER_TO_LOCATION_ID, tag::ON_BEHALF_OF_LOCATION_ID),
    (tag::ON_BEHALF_OF_COMP_ID, tag::DELIVER_TO_COMP_ID),
    (tag::ON_BEHALF_OF_SUB_ID, tag::DELIVER_TO_SUB_ID),
    (tag::ON_BEHALF_OF_LOCATION_ID, tag::DELIVER_TO_LOCATION_ID),
];

/// Why a BusinessMessageReject refuses a message: BusinessRejectReason and Text.
type BusinessReason = (u8, &'static str);
/// The application does not take such messages.
const UNSUPPORTED: BusinessReason = (b'3', "Unsupported Message Type");
/// It arrived early, and the peer's SequenceReset skipped it.
const SKIPPED: BusinessReason = (b'0', "Skipped by a SequenceReset: not executed");

/// A fault, and whether the session ends by it.
struct Refusal {
    fault: FixFault,
    is_fatal: bool,
}

impl FixSession {
    /// Whether a message may be acted on. If not, it is counted if it is the next one, and its sender receives a Reject.
    pub(super) fn is_acceptable(
        &mut self,
        at: At,
        message: &FixMessage<'_>,
        sink: &mut impl FixSink,
    ) -> bool {
        let ids = (!self.is_for(message)).then_some(FixRejectReason::CompIdProblem);
        let time = || {
            (!self.has_right_time(at.received_ns, message)).then_some(FixRejectReason::SendingTimeAccuracy)
        };
        let fatal = |reason| Refusal { fault: FixFault::of_message(reason), is_fatal: true };
        let fault = message.fault().map(|fault| Refusal { fault, is_fatal: false });
        let refusal = fault.or_else(|| ids.or_else(time).map(fatal)).or_else(|| wrong_origin(message));
        let Some(refusal) = refusal else { return true };
        let is_next = message.number(tag::MSG_SEQ_NUM) == Some(self.numbers.next_in);
        if is_next && !is_reset(message) {
            self.count_in();
        }
        self.refuse(at.now_ns, message, &refusal, sink);
        false
    }

    /// Looks at when a message that may be a duplicate was sent first.
    pub(super) fn refuse_wrong_origin(&mut self, at: At, message: &FixMessage<'_>, sink: &mut impl FixSink) {
        if let Some(refusal) = wrong_origin(message) {
            self.refuse(at.now_ns, message, &refusal, sink);
        }
    }

    fn refuse(&mut self, now_ns: u64, message: &FixMessage<'_>, refusal: &Refusal, sink: &mut impl FixSink) {
        self.reject(now_ns, message, refusal.fault, sink);
        if refusal.is_fatal {
            self.log_out(now_ns, "", sink);
        }
    }

    /// Whether a message has this session's ids.
    #[must_use]
    pub fn is_for(&self, message: &FixMessage<'_>) -> bool {
        message.text(tag::SENDER_COMP_ID) == Some(self.settings.peer_comp_id.as_bytes())
            && message.text(tag::TARGET_COMP_ID) == Some(self.settings.own_comp_id.as_bytes())
    }

    pub(super) fn has_right_time(&self, now_ns: u64, message: &FixMessage<'_>) -> bool {
        let sent_ns = message.time_ns(tag::SENDING_TIME);
        sent_ns.is_some_and(|sent_ns| now_ns.abs_diff(sent_ns) <= self.settings.time_tolerance_ns)
    }

    /// Sends a Reject. A Reject is never answered by one, or two sides could continue for ever.
    pub(super) fn reject(
        &mut self,
        now_ns: u64,
        message: &FixMessage<'_>,
        fault: FixFault,
        sink: &mut impl FixSink,
    ) {
        if message.msg_type() == b"3" {
            return;
        }
        let reason = fault.reason.number().to_string();
        let has_reason = self.settings.dictionary.allows(tag::SESSION_REJECT_REASON, reason.as_bytes());
        self.send(now_ns, b"3", sink, |writer| {
            reverse_route(message, writer);
            writer.number(tag::REF_SEQ_NUM, message.number(tag::MSG_SEQ_NUM).unwrap_or_default());
            writer.text(tag::TEXT, fault.reason.text().as_bytes());
            if let Some(tag) = fault.tag {
                writer.text(tag::REF_TAG_ID, tag.to_string().as_bytes());
            }
            writer.text(tag::REF_MSG_TYPE, message.msg_type());
            if has_reason {
                writer.text(tag::SESSION_REJECT_REASON, reason.as_bytes());
            }
        });
    }

    /// Says that the application does not take such messages.
    pub(super) fn refuse_type(&mut self, now_ns: u64, message: &FixMessage<'_>, sink: &mut impl FixSink) {
        // Neither is a rejection of a rejection taken up.
        if message.msg_type() != b"j" {
            self.refuse_business(now_ns, message, UNSUPPORTED, sink);
        }
    }

    /// Says of an application message that arrived early that it was skipped: its sender would wait for the outcome.
    pub(super) fn refuse_skipped(&mut self, now_ns: u64, message: &FixMessage<'_>, sink: &mut impl FixSink) {
        if self.takes(message.msg_type()) {
            self.refuse_business(now_ns, message, SKIPPED, sink);
        }
    }

    fn refuse_business(
        &mut self,
        now_ns: u64,
        message: &FixMessage<'_>,
        (reason, text): BusinessReason,
        sink: &mut impl FixSink,
    ) {
        self.send(now_ns, b"j", sink, |writer| {
            reverse_route(message, writer);
            writer.number(tag::REF_SEQ_NUM, message.number(tag::MSG_SEQ_NUM).unwrap_or_default());
            writer.text(tag::TEXT, text.as_bytes());
            writer.text(tag::REF_MSG_TYPE, message.msg_type());
            writer.letter(tag::BUSINESS_REJECT_REASON, reason);
        });
    }
}

fn is_reset(message: &FixMessage<'_>) -> bool {
    message.msg_type() == b"4" && !message.flag(tag::GAP_FILL_FLAG)
}

/// A message that may be a duplicate says when it was sent first, and not after now.
fn wrong_origin(message: &FixMessage<'_>) -> Option<Refusal> {
    if !message.flag(tag::POSS_DUP_FLAG) || message.msg_type() == b"4" {
        return None;
    }
    let Some(first_ns) = message.time_ns(tag::ORIG_SENDING_TIME) else {
        let fault = FixFault::of(FixRejectReason::RequiredTagMissing, i32::from(tag::ORIG_SENDING_TIME));
        return Some(Refusal { fault, is_fatal: false });
    };
    let is_after = message.time_ns(tag::SENDING_TIME).is_some_and(|sent_ns| first_ns > sent_ns);
    let fault = FixFault::of_message(FixRejectReason::SendingTimeAccuracy);
    is_after.then_some(Refusal { fault, is_fatal: true })
}

/// Sends the answer back the way that the message came.
fn reverse_route(message: &FixMessage<'_>, writer: &mut FixWriter<'_>) {
    for (came_by, goes_by) in ROUTES {
        if let Some(value) = message.text_or_none(came_by) {
            writer.text(goes_by, value);
        }
    }
}
