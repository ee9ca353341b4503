//! The session layer: sequence numbers, heartbeats, gaps, resends.
//!
//! ```text
//!            Logon                      Logout asked for, or owed
//!   Away ------------> LoggedOn ------------------------------------> LoggingOut
//!    ^                    |  Logout came: answer it; number too low;      |  Logout came; two seconds
//!    +--------------------+  silence <------------------------------------+
//! ```
//! A session is its settings and two numbers, the next to come in and the next to go out. It keeps no message that it sent: asked for old ones
//! it asks its owner ([`FixAction::Resend`]), who makes application messages again from the record and is silent about all others. Numbers
//! that the owner does not fill are filled as gaps. So another process continues a session when it knows the numbers: the next
//! to go out may be any that was surely never used.
//!
//! What comes with a number too high waits, in bounds, while what lies before is asked for. A message
//! that is not taken is not counted, so the peer is asked for it again: nothing is lost by ignoring.

mod clock;
mod gaps;
mod logon;
mod refuse;
mod resend;
mod send;

use std::collections::BTreeMap;

use crate::dictionary::{FixDictionary, tag};
use crate::framing::FixFrame;
use crate::message::FixMessage;
use crate::parser::FixParser;
use gaps::{Early, Gap};
use resend::Resending;

const S: u64 = 1_000_000_000;

/// Who speaks to whom, and how.
#[derive(Clone, Debug)]
pub struct FixSettings {
    /// The version.
    pub dictionary: &'static FixDictionary,
    /// What we sign with: our SenderCompID.
    pub own_comp_id: String,
    /// What the peer signs with.
    pub peer_comp_id: String,
    /// Message types that the application takes; others of the standard are refused by a BusinessMessageReject.
    pub application_types: &'static [&'static str],
    /// Whether numbers are reset at each logon.
    pub begins_anew: bool,
    /// How far a sending time may be from now.
    pub time_tolerance_ns: u64,
    /// How long a Logout waits for its answer.
    pub logout_wait_ns: u64,
}

impl FixSettings {
    /// The usual: two minutes, two seconds, and numbers that continue.
    #[must_use]
    pub fn new(dictionary: &'static FixDictionary, own_comp_id: &str, peer_comp_id: &str) -> Self {
        Self {
            dictionary,
            own_comp_id: own_comp_id.into(),
            peer_comp_id: peer_comp_id.into(),
            application_types: &[],
            begins_anew: false,
            time_tolerance_ns: 120 * S,
            logout_wait_ns: 2 * S,
        }
    }
}

/// The numbers with which a session continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FixNumbers {
    /// The next MsgSeqNum that the peer is to send.
    pub next_in: u64,
    /// The next that goes out. After a take-over it is higher than any that may have been sent: one that is too low ends the session at
    /// the peer, one that is too high is filled when the peer asks.
    pub next_out: u64,
}

impl Default for FixNumbers {
    fn default() -> Self {
        Self { next_in: 1, next_out: 1 }
    }
}

/// What a session wants done.
#[derive(Clone, Copy, Debug)]
pub enum FixAction<'a> {
    /// Send these bytes, one message.
    Send(&'a [u8]),
    /// The peer has logged on.
    LoggedOn {
        /// Whether numbers were reset: earlier messages can no longer be requested.
        anew: bool,
    },
    /// An application message, the next in order.
    Deliver(&'a FixMessage<'a>),
    /// Call [`FixSession::resend`] for each application message with a number from `from` to `to`, in order, and then
    /// [`FixSession::resend_done`]; now, or bit by bit as the connection takes it.
    Resend {
        /// The first number.
        from: u64,
        /// The last one.
        to: u64,
    },
    /// Close the connection once what was sent is out.
    Disconnect,
}

/// Takes a session's actions.
pub trait FixSink {
    /// Takes one.
    fn act(&mut self, action: FixAction<'_>);
}

impl<F: FnMut(FixAction<'_>)> FixSink for F {
    fn act(&mut self, action: FixAction<'_>) {
        self(action);
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Away,
    LoggedOn,
    LoggingOut { until_ns: u64 },
}

/// One session, of the side that is called.
#[derive(Debug)]
pub struct FixSession {
    settings: FixSettings,
    numbers: FixNumbers,
    phase: Phase,
    /// 0: no heartbeats.
    heartbeat_ns: u64,
    last_in_ns: u64,
    last_out_ns: u64,
    is_test_requested: bool,
    gap: Option<Gap>,
    /// What came with a number too high.
    early: BTreeMap<u64, Early>,
    early_bytes: usize,
    resending: Option<Resending>,
    scratch: Vec<u8>,
}

/// When a message is handled, and when it came.
#[derive(Clone, Copy, Debug)]
struct At {
    now_ns: u64,
    received_ns: u64,
}

impl FixSession {
    /// A session with nobody logged on.
    #[must_use]
    pub fn new(settings: FixSettings, numbers: FixNumbers) -> Self {
        Self {
            settings,
            numbers,
            phase: Phase::Away,
            heartbeat_ns: 0,
            last_in_ns: 0,
            last_out_ns: 0,
            is_test_requested: false,
            gap: None,
            early: BTreeMap::new(),
            early_bytes: 0,
            resending: None,
            scratch: Vec::new(),
        }
    }

    /// Its settings.
    #[must_use]
    pub fn settings(&self) -> &FixSettings {
        &self.settings
    }

    /// The numbers with which it continues.
    #[must_use]
    pub fn numbers(&self) -> FixNumbers {
        self.numbers
    }

    /// Whether its peer is logged on, and neither side has sent a Logout.
    #[must_use]
    pub fn is_logged_on(&self) -> bool {
        self.phase == Phase::LoggedOn
    }

    /// Whether a connection is using it.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        self.phase != Phase::Away
    }

    /// Takes a message from the connection. The first one of a connection must be a Logon.
    pub fn on_frame(
        &mut self,
        parser: &mut FixParser,
        now_ns: u64,
        frame: &FixFrame<'_>,
        sink: &mut impl FixSink,
    ) {
        if frame.begin_string != self.settings.dictionary.begin_string.as_bytes() {
            return self.on_other_version(now_ns, sink);
        }
        let Ok(message) = parser.parse(self.settings.dictionary, frame) else {
            return self.on_unreadable(sink);
        };
        self.last_in_ns = now_ns;
        self.is_test_requested = false;
        let at = At { now_ns, received_ns: now_ns };
        let next_before = self.numbers.next_in;
        match self.phase {
            Phase::Away => self.on_logon(now_ns, &message, sink),
            Phase::LoggedOn => self.take(at, &message, sink),
            Phase::LoggingOut { .. } => self.take_at_the_end(at, &message, sink),
        }
        self.take_early(parser, now_ns, sink);
        if self.numbers.next_in > next_before {
            self.put_off_asking(now_ns);
        }
    }

    /// The connection is gone.
    pub fn on_disconnected(&mut self) {
        self.phase = Phase::Away;
        self.gap = None;
        self.early.clear();
        self.early_bytes = 0;
        self.resending = None;
        self.is_test_requested = false;
    }

    /// Ends the session: sends a Logout and waits for the peer's.
    pub fn log_out(&mut self, now_ns: u64, text: &str, sink: &mut impl FixSink) {
        if self.phase == Phase::LoggedOn {
            self.send_logout(now_ns, text, sink);
            self.phase = Phase::LoggingOut { until_ns: now_ns + self.settings.logout_wait_ns };
        }
    }

    /// Ends the connection at once, with a Logout.
    pub fn end(&mut self, now_ns: u64, text: &str, sink: &mut impl FixSink) {
        if self.phase == Phase::LoggedOn {
            self.send_logout(now_ns, text, sink);
        }
        if self.is_connected() {
            self.cut(sink);
        }
    }

    /// Refuses the peer that has called, logged on or not: a Logout that says why, and the end of the connection.
    pub fn refuse_peer(&mut self, now_ns: u64, text: &str, sink: &mut impl FixSink) {
        self.send_logout(now_ns, text, sink);
        self.cut(sink);
    }

    /// A new day: the session is logged off, and numbers are reset.
    pub fn reset(&mut self, now_ns: u64, text: &str, sink: &mut impl FixSink) {
        self.end(now_ns, text, sink);
        self.numbers = FixNumbers::default();
    }

    fn cut(&mut self, sink: &mut impl FixSink) {
        self.on_disconnected();
        sink.act(FixAction::Disconnect);
    }

    fn on_other_version(&mut self, now_ns: u64, sink: &mut impl FixSink) {
        match self.phase {
            Phase::Away => self.cut(sink),
            Phase::LoggedOn => self.log_out(now_ns, "Incorrect BeginString", sink),
            Phase::LoggingOut { .. } => {}
        }
    }

    fn on_unreadable(&mut self, sink: &mut impl FixSink) {
        if self.phase == Phase::Away {
            self.cut(sink);
        }
    }

    /// A message while logged on.
    fn take(&mut self, at: At, message: &FixMessage<'_>, sink: &mut impl FixSink) {
        let Some(number) = message.number(tag::MSG_SEQ_NUM) else {
            return self.end(at.now_ns, "MsgSeqNum missing", sink);
        };
        match message.msg_type() {
            b"5" => self.on_logout(at.now_ns, number, sink),
            b"A" if message.flag(tag::RESET_SEQ_NUM_FLAG) => self.on_logon(at.now_ns, message, sink),
            // These two count for what they say, whatever their own number.
            b"2" => self.on_resend_request(at, number, message, sink),
            b"4" if !message.flag(tag::GAP_FILL_FLAG) => self.on_sequence_reset(at, message, sink),
            _ if number > self.numbers.next_in => self.on_early(at.now_ns, number, message, sink),
            _ if number < self.numbers.next_in => self.on_late(at, number, message, sink),
            _ => self.take_next(at, message, sink),
        }
    }

    /// A message whose number is the next one.
    fn take_next(&mut self, at: At, message: &FixMessage<'_>, sink: &mut impl FixSink) {
        let now_ns = at.now_ns;
        if !self.is_acceptable(at, message, sink) {
            return;
        }
        match message.msg_type() {
            b"4" => return self.on_gap_fill(now_ns, message, sink),
            b"A" => return self.log_out(now_ns, "Already logged on", sink),
            _ => self.count_in(),
        }
        match message.msg_type() {
            b"0" | b"3" => {}
            b"1" => self.send_heartbeat(now_ns, message.text(tag::TEST_REQ_ID), sink),
            other if self.takes(other) => sink.act(FixAction::Deliver(message)),
            _ => self.refuse_type(now_ns, message, sink),
        }
    }

    /// A message while a Logout waits for its answer. What is not looked at is not counted: the peer is asked for it when it is back.
    fn take_at_the_end(&mut self, at: At, message: &FixMessage<'_>, sink: &mut impl FixSink) {
        let Some(number) = message.number(tag::MSG_SEQ_NUM) else { return };
        match message.msg_type() {
            b"5" => self.on_logout(at.now_ns, number, sink),
            b"2" => self.on_resend_request(at, number, message, sink),
            _ => {}
        }
    }

    fn takes(&self, msg_type: &[u8]) -> bool {
        self.settings.application_types.iter().any(|known| known.as_bytes() == msg_type)
    }

    fn on_logout(&mut self, now_ns: u64, number: u64, sink: &mut impl FixSink) {
        if number == self.numbers.next_in {
            self.count_in();
        }
        if self.phase == Phase::LoggedOn {
            self.send_logout(now_ns, "", sink);
        }
        self.cut(sink);
    }

    fn count_in(&mut self) {
        self.numbers.next_in += 1;
    }
}

#[cfg(test)]
mod tests;
