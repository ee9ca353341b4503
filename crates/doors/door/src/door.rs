//! One connection of a member's FIX engine.
//!
//! ```text
//!  Calling --Logon--> SigningOn --> Claiming --> Instruments --> Orders --> Resuming --> On --> Closed
//!                     the member    its numbers   if none are    that       where each    the Logon is answered
//!                                                 configured     live       stream is
//! ```
//! The Logon is answered last, so a member that is logged on can do everything and misses nothing. What it sends before waits. Nobody
//! claims a session who has not signed on as its member: a claim ends the connection that had it.
//!
//! A Logon that is sent within a session, whatever the session layer makes of it, would be good for another connection, and who listens has it. So the
//! gateway uses up each one first, and what follows waits for that.

use std::sync::Arc;

use pares_fix::framing::{Cut, FixFrame, cut};
use pares_fix::parser::FixParser;
use pares_port::{
    DoorAction, DoorConfig, DoorTime, MarketSubscription, MarketView, ProtocolDoor, SessionMark, Sink,
};
use pares_types::{InstrumentId, MemberId, Reason, Reply};
use pares_wire::frame::GatewayFrame;

use crate::line::Line;
use crate::logon::{Caller, Joining};
use crate::types::Owner;

/// Bytes that a peer may send behind its Logon before that is answered; more end the connection.
pub const EARLY_BYTES_MAX: usize = 64 << 10;

/// A FIX connection, in front of a gateway.
#[derive(Debug)]
pub struct FixDoor {
    config: Arc<DoorConfig>,
    parser: FixParser,
    stage: Stage,
    /// What came before a Logon was answered, from its first byte on that is not taken.
    early: Vec<u8>,
    /// A Logon within the session that the gateway has not noted as used yet.
    later: Option<Box<Caller>>,
    last: DoorTime,
}

#[derive(Debug)]
enum Stage {
    Calling,
    SigningOn(Box<Caller>),
    Claiming(Box<Caller>),
    Joining(Box<Joining>),
    On(Box<Line>),
    Closed,
}

impl FixDoor {
    /// A door that has received nothing.
    #[must_use]
    pub fn new(config: Arc<DoorConfig>) -> Self {
        let (parser, stage) = (FixParser::default(), Stage::Calling);
        Self { config, parser, stage, early: Vec::new(), later: None, last: DoorTime::default() }
    }

    fn wait(&mut self, bytes: &[u8], sink: Sink<'_>) -> usize {
        if self.early.len() + bytes.len() > EARLY_BYTES_MAX {
            self.close(sink);
        } else {
            self.early.extend_from_slice(bytes);
        }
        bytes.len()
    }

    fn take_early(&mut self, at: DoorTime, sink: Sink<'_>) {
        if !self.is_waiting() {
            let early = std::mem::take(&mut self.early);
            let used = self.take(at, &early, sink);
            self.early = early[used.min(early.len())..].to_vec();
        }
    }

    /// Takes whole messages, as long as they are taken.
    fn take(&mut self, at: DoorTime, bytes: &[u8], sink: Sink<'_>) -> usize {
        let mut used = 0;
        while !self.is_waiting() {
            if matches!(self.stage, Stage::Closed) {
                return bytes.len();
            }
            let (cut, length) = cut(&bytes[used..]);
            used += length;
            match cut {
                Cut::Incomplete => break,
                Cut::Whole(frame) => self.on_message(at, &frame, sink),
                Cut::Garbled => self.on_garbled(sink),
                Cut::TooLong => self.on_too_long(at, sink),
            }
        }
        if let Stage::On(line) = &mut self.stage {
            line.flush(at, sink);
            self.end_if_over();
        }
        used
    }

    fn on_message(&mut self, at: DoorTime, frame: &FixFrame<'_>, sink: Sink<'_>) {
        match &mut self.stage {
            Stage::Calling => match Caller::of(&self.config, &mut self.parser, frame) {
                Some(caller) if caller.has_wrong_clock(at) => {
                    caller.refuse_for(at, Reason::WrongClock, sink);
                    self.close(sink);
                }
                Some(caller) => {
                    caller.log_on(sink);
                    self.stage = Stage::SigningOn(Box::new(caller));
                }
                None => self.close(sink),
            },
            Stage::On(line) => match Caller::of(&self.config, &mut self.parser, frame) {
                Some(caller) => {
                    // What came before is asked for before: behind a Logon that is refused nothing is.
                    line.flush(at, sink);
                    caller.log_on(sink);
                    self.later = Some(Box::new(caller));
                }
                None => {
                    line.on_message(at, &mut self.parser, frame);
                    if line.is_over() {
                        self.flush(at, sink);
                    }
                }
            },
            Stage::SigningOn(_) | Stage::Claiming(_) | Stage::Joining(_) | Stage::Closed => {}
        }
    }

    /// What the gateway says to who wants to sign on.
    fn on_answer(&mut self, at: DoorTime, frame: &GatewayFrame, sink: Sink<'_>) {
        match (std::mem::replace(&mut self.stage, Stage::Closed), frame) {
            (Stage::SigningOn(mut caller), GatewayFrame::SignedOn(signed_on)) => {
                let Owner { member, session, copied } = &mut caller.owner;
                *copied = Some(MemberId(signed_on.copied.get())).filter(|copied| copied.0 != 0);
                let (member, session) = (*member, *session);
                self.stage = Stage::Claiming(caller);
                sink(DoorAction::Claim { member, session });
            }
            (Stage::SigningOn(caller), GatewayFrame::Reply(Reply::Rejected { reason, .. })) => {
                caller.refuse_for(at, *reason, sink);
                self.close(sink);
            }
            (before, _) => self.stage = before,
        }
    }

    fn on_garbled(&mut self, sink: Sink<'_>) {
        if matches!(self.stage, Stage::Calling) {
            self.close(sink);
        }
    }

    fn on_too_long(&mut self, at: DoorTime, sink: Sink<'_>) {
        match &mut self.stage {
            Stage::On(line) => line.end(at, "Message too long"),
            _ => return self.close(sink),
        }
        self.flush(at, sink);
    }

    /// Answers the Logon.
    fn log_on(&mut self, at: DoorTime, sink: Sink<'_>) {
        let Stage::Joining(joining) = std::mem::replace(&mut self.stage, Stage::Closed) else { return };
        let Joining { mut line, logon, waiting, .. } = *joining;
        line.on_logon(at, &mut self.parser, &logon);
        if line.is_over() {
            return self.refuse(at, &logon, &line, sink);
        }
        for reply in waiting {
            line.on_frame(at, &GatewayFrame::Reply(reply));
        }
        self.stage = Stage::On(Box::new(line));
        self.flush(at, sink);
        self.take_early(at, sink);
    }

    /// Refuses a Logon. That leaves no mark: the session's numbers stay. Its other connection at this gateway has ended already if a proof was
    /// required.
    fn refuse(&mut self, at: DoorTime, logon: &[u8], line: &Line, sink: Sink<'_>) {
        if let (Cut::Whole(frame), _) = cut(logon)
            && let Some(caller) = Caller::of(&self.config, &mut self.parser, &frame)
        {
            match line.refusal() {
                Some(text) => caller.refuse(at, &text, sink),
                // The session layer says nothing to a peer whose time has become wrong.
                None => caller.refuse_for(at, Reason::WrongClock, sink),
            }
        }
        self.close(sink);
    }

    fn flush(&mut self, at: DoorTime, sink: Sink<'_>) {
        match &mut self.stage {
            Stage::On(line) => line.flush(at, sink),
            Stage::Joining(joining) if joining.line.is_over() => {
                let Stage::Joining(joining) = std::mem::replace(&mut self.stage, Stage::Closed) else {
                    return;
                };
                self.refuse(at, &joining.logon, &joining.line, sink);
            }
            _ => {}
        }
        self.end_if_over();
    }

    /// Lets a session in use do something.
    fn on_line(&mut self, at: DoorTime, sink: Sink<'_>, act: impl FnOnce(&mut Line)) {
        self.last = at;
        if let Stage::On(line) = &mut self.stage {
            act(line);
        }
        self.flush(at, sink);
    }

    fn end_if_over(&mut self) {
        if matches!(&self.stage, Stage::On(line) if line.is_over()) {
            (self.stage, self.later) = (Stage::Closed, None);
        }
    }

    fn close(&mut self, sink: Sink<'_>) {
        (self.stage, self.later) = (Stage::Closed, None);
        self.early.clear();
        sink(DoorAction::Close);
    }

    /// Whether what comes has to wait for what the gateway says of a Logon.
    fn is_waiting(&self) -> bool {
        let is_joining = matches!(self.stage, Stage::SigningOn(_) | Stage::Claiming(_) | Stage::Joining(_));
        is_joining || self.later.is_some()
    }
}

impl ProtocolDoor for FixDoor {
    fn on_bytes(&mut self, at: DoorTime, bytes: &[u8], sink: Sink<'_>) -> usize {
        self.last = at;
        if self.early.is_empty() && !self.is_waiting() {
            let used = self.take(at, bytes, sink);
            // What follows a Logon waits here for its answer, since more bytes may never come.
            return if self.is_waiting() { used + self.wait(&bytes[used..], sink) } else { used };
        }
        self.wait(bytes, sink);
        self.take_early(at, sink);
        bytes.len()
    }

    fn on_claimed(&mut self, at: DoorTime, mark: Option<&SessionMark>, sink: Sink<'_>) {
        self.last = at;
        match std::mem::replace(&mut self.stage, Stage::Closed) {
            Stage::Claiming(caller) => {
                let joining = Joining::new(&self.config, *caller, mark, sink);
                self.stage = Stage::Joining(Box::new(joining));
            }
            other => self.stage = other,
        }
    }

    fn on_frame(&mut self, at: DoorTime, frame: &GatewayFrame, sink: Sink<'_>) {
        self.last = at;
        match &mut self.stage {
            Stage::Joining(joining) => {
                joining.on_frame(at, frame, sink);
                if joining.is_placed() {
                    self.log_on(at, sink);
                }
            }
            Stage::On(line) => match (&self.later, frame) {
                (Some(caller), GatewayFrame::Reply(Reply::Rejected { client_order_id, reason }))
                    if client_order_id.0 == 0 =>
                {
                    line.end(at, &caller.explained(at, *reason));
                }
                _ => line.on_frame(at, frame),
            },
            Stage::SigningOn(_) => self.on_answer(at, frame, sink),
            Stage::Calling | Stage::Claiming(_) | Stage::Closed => {}
        }
        self.flush(at, sink);
    }

    fn on_proven(&mut self, at: DoorTime, sink: Sink<'_>) {
        self.last = at;
        if let (Some(caller), Stage::On(line)) = (self.later.take(), &mut self.stage) {
            line.on_logon(at, &mut self.parser, &caller.logon);
        }
        self.flush(at, sink);
        self.take_early(at, sink);
    }

    fn on_time(&mut self, at: DoorTime, sink: Sink<'_>) {
        self.on_line(at, sink, |line| line.on_time(at));
    }

    fn on_found(&mut self, at: DoorTime, instrument: Option<InstrumentId>, sink: Sink<'_>) {
        self.on_line(at, sink, |line| {
            line.desk.utc_ns = at.utc_ns;
            line.desk.on_found(instrument);
        });
    }

    fn on_market(&mut self, at: DoorTime, view: &dyn MarketView, sink: Sink<'_>) {
        self.on_line(at, sink, |line| line.on_market(at, view));
    }

    fn market_wish(&self) -> MarketSubscription {
        if let Stage::On(line) = &self.stage { line.desk.market.wish() } else { MarketSubscription::Nothing }
    }

    fn on_disconnected(&mut self) -> Option<SessionMark> {
        match std::mem::replace(&mut self.stage, Stage::Closed) {
            Stage::On(line) => Some(line.last_mark()),
            _ => None,
        }
    }

    fn next_deadline_ns(&self) -> Option<u64> {
        let Stage::On(line) = &self.stage else { return None };
        let ahead_ns = line.next_deadline_ns()?.saturating_sub(self.last.utc_ns);
        Some(self.last.mono_ns.saturating_add(ahead_ns))
    }
}
