//! One connection of a member's OUCH client.
//!
//! ```text
//!  Calling --Login Request--> SigningOn --> Listing --> Placing --Login Accepted--> On --> Closed
//!                             the member    symbols     the number, if none was named
//! ```
//! What a client sends before its Login Request is answered is left where it is, and taken then.

use std::sync::Arc;

use pares_port::{DoorAction, DoorConfig, DoorTime, LogonProof, ProtocolDoor, Sink};
use pares_types::{List, ListRequest, Reason, Reply, ShardId};
use pares_wire::frame::{ClientFrame, GatewayFrame, RESUME_NOTHING, SIGN_ON_RESUMES, SignOn};

use crate::desk::Desk;
use crate::names::OuchNames;
use crate::outbound;
use crate::soup::{self, Cut, Login};

/// A client hears something this often.
const HEARTBEAT_NS: u64 = 1_000_000_000;
/// A client that is silent for so long has gone.
const SILENCE_MAX_NS: u64 = 15_000_000_000;
const LIST: ListRequest = ListRequest { token: 0, list: List::Instruments, instrument: None };

/// An OUCH connection, in front of a gateway.
#[derive(Debug)]
pub struct OuchDoor {
    config: Arc<DoorConfig>,
    stage: Stage,
    out: Vec<u8>,
    /// When the client was heard, and when it was sent something.
    heard_ns: u64,
    sent_ns: u64,
}

#[derive(Debug)]
enum Stage {
    Calling,
    SigningOn(Login, ShardId),
    Listing(Box<Session>),
    Placing(Box<Session>),
    On(Box<Session>),
    Closed,
}

#[derive(Debug)]
struct Session {
    login: Login,
    shard: ShardId,
    /// The number of the next message; 0 until it is known.
    next: u64,
    desk: Desk,
}

impl OuchDoor {
    /// A door to which nobody has spoken.
    #[must_use]
    pub fn new(config: Arc<DoorConfig>) -> Self {
        Self { config, stage: Stage::Calling, out: Vec::new(), heard_ns: 0, sent_ns: 0 }
    }

    fn on_packet(&mut self, at: DoorTime, kind: u8, payload: &[u8], sink: Sink<'_>) {
        match (&mut self.stage, kind) {
            (Stage::Calling, b'L') => self.on_login(at, payload, sink),
            (Stage::On(session), b'U') => {
                session.desk.utc_ns = at.utc_ns;
                session.desk.take(payload);
            }
            // Heartbeats, and what is for people.
            (Stage::On(_), b'R' | b'+') | (Stage::Calling, b'+') => {}
            _ => self.end(at, None, sink),
        }
    }

    fn on_login(&mut self, at: DoorTime, payload: &[u8], sink: Sink<'_>) {
        let shards = &self.config.shards;
        let login = Login::read(payload).and_then(|(login, password)| {
            let shard = login.shard.or_else(|| shards.iter().min().copied());
            let shard = shard.filter(|shard| shards.contains(shard));
            shard.map(|shard| (login, shard, password)).ok_or(soup::NO_SUCH_SESSION)
        });
        match login {
            Ok((login, shard, password)) => {
                let sign_on = SignOn {
                    member: login.member.0.into(),
                    flags: SIGN_ON_RESUMES.into(),
                    session: login.session.into(),
                    ..SignOn::default()
                };
                self.stage = Stage::SigningOn(login, shard);
                let proof = password.map(LogonProof::Token);
                sink(DoorAction::LogOn { sign_on, proof: proof.as_ref() });
            }
            Err(code) => self.reject(at, code, sink),
        }
    }

    fn reject(&mut self, at: DoorTime, code: u8, sink: Sink<'_>) {
        soup::write(&mut self.out, b'J', &[code]);
        self.close(at, sink);
    }

    /// The gateway tells of instruments; behind the last the stream is asked for.
    fn on_listed(
        &mut self,
        at: DoorTime,
        mut session: Box<Session>,
        frame: &GatewayFrame,
        sink: Sink<'_>,
    ) -> Stage {
        match frame {
            GatewayFrame::InstrumentStatus(status) => {
                session.desk.list(status.symbol, status.instrument, status.shard);
            }
            GatewayFrame::ListEnd(end) if end.reason == Reason::None => {
                // The highest number asks for nothing: this one is waited for, as every one that is not used yet.
                let (shard, next) = (Some(session.shard), session.next.min(RESUME_NOTHING - 1));
                sink(DoorAction::Ask(ClientFrame::Resume { shard, next }));
                return if next == 0 { Stage::Placing(session) } else { self.accept(at, session) };
            }
            GatewayFrame::ListEnd(_) | GatewayFrame::Reply(Reply::Rejected { .. }) => {
                soup::write(&mut self.out, b'J', &[soup::NO_SUCH_SESSION]);
                return Stage::Closed;
            }
            _ => {}
        }
        Stage::Listing(session)
    }

    fn on_placed(&mut self, at: DoorTime, mut session: Box<Session>, frame: &GatewayFrame) -> Stage {
        match frame {
            GatewayFrame::Resumed { shard, next, reason: Reason::None } if *shard == session.shard => {
                session.next = (*next).max(1);
                self.accept(at, session)
            }
            GatewayFrame::Resumed { .. } | GatewayFrame::Reply(Reply::Rejected { .. }) => {
                soup::write(&mut self.out, b'J', &[soup::NO_SUCH_SESSION]);
                Stage::Closed
            }
            _ => Stage::Placing(session),
        }
    }

    fn accept(&mut self, at: DoorTime, session: Box<Session>) -> Stage {
        session.login.accept(&mut self.out, session.shard, session.next);
        (self.heard_ns, self.sent_ns) = (at.mono_ns, at.mono_ns);
        Stage::On(session)
    }

    /// Ends the connection; of one that was logged on it is said that the session has ended, and why if that is known.
    fn end(&mut self, at: DoorTime, why: Option<&str>, sink: Sink<'_>) {
        if let Some(why) = why {
            soup::write(&mut self.out, b'+', why.as_bytes());
            soup::write(&mut self.out, b'Z', &[]);
        }
        self.close(at, sink);
    }

    fn close(&mut self, at: DoorTime, sink: Sink<'_>) {
        self.flush(at, sink);
        self.stage = Stage::Closed;
        sink(DoorAction::Close);
    }

    /// Gives out what there is to do.
    fn flush(&mut self, at: DoorTime, sink: Sink<'_>) {
        if let Stage::On(session) = &mut self.stage {
            session.desk.asks.drain(..).for_each(|frame| sink(DoorAction::Ask(frame)));
            for text in session.desk.said.drain(..) {
                soup::write(&mut self.out, b'+', text.as_bytes());
            }
        }
        if !self.out.is_empty() {
            sink(DoorAction::Send(&self.out));
            self.out.clear();
            self.sent_ns = at.mono_ns;
        }
    }

    fn is_listening(&self) -> bool {
        matches!(self.stage, Stage::Calling | Stage::On(_))
    }
}

impl ProtocolDoor for OuchDoor {
    fn on_bytes(&mut self, at: DoorTime, bytes: &[u8], sink: Sink<'_>) -> usize {
        let mut used = 0;
        while self.is_listening() {
            match soup::cut(&bytes[used..]) {
                Cut::Packet(kind, payload, length) => {
                    used += length;
                    self.on_packet(at, kind, payload, sink);
                }
                Cut::Incomplete => break,
                Cut::Wrong => self.end(at, None, sink),
            }
        }
        if used > 0 {
            self.heard_ns = at.mono_ns;
        }
        self.flush(at, sink);
        if matches!(self.stage, Stage::Closed) { bytes.len() } else { used }
    }

    fn on_frame(&mut self, at: DoorTime, frame: &GatewayFrame, sink: Sink<'_>) {
        if matches!(self.stage, Stage::Closed) {
            return;
        }
        self.stage = match (std::mem::replace(&mut self.stage, Stage::Closed), frame) {
            // Reports go by the session's own UserRefNums, and another member's orders have none.
            (Stage::SigningOn(..), GatewayFrame::SignedOn(signed_on)) if signed_on.copied.get() != 0 => {
                return self.reject(at, soup::NOT_AUTHORIZED, sink);
            }
            (Stage::SigningOn(login, shard), GatewayFrame::SignedOn(_)) => {
                let names = OuchNames::new(login.session, login.is_guarded);
                let desk = Desk::new(names, shard, &self.config);
                sink(DoorAction::Ask(ClientFrame::ListRequest(LIST)));
                Stage::Listing(Box::new(Session { login, shard, next: login.next, desk }))
            }
            (Stage::SigningOn(..), GatewayFrame::Reply(Reply::Rejected { .. })) => {
                return self.reject(at, soup::NOT_AUTHORIZED, sink);
            }
            (Stage::Listing(session), frame) => self.on_listed(at, session, frame, sink),
            (Stage::Placing(session), frame) => self.on_placed(at, session, frame),
            (Stage::On(mut session), frame) => match session.on_frame(at, frame, &mut self.out) {
                Ok(()) => Stage::On(session),
                Err(why) => return self.end(at, Some(&why), sink),
            },
            (before, _) => before,
        };
        if matches!(self.stage, Stage::Closed) {
            return self.close(at, sink);
        }
        self.flush(at, sink);
    }

    fn on_time(&mut self, at: DoorTime, sink: Sink<'_>) {
        if !matches!(self.stage, Stage::On(_)) {
            return;
        }
        if at.mono_ns >= self.heard_ns.saturating_add(SILENCE_MAX_NS) {
            return self.end(at, None, sink);
        }
        if at.mono_ns >= self.sent_ns.saturating_add(HEARTBEAT_NS) {
            soup::write(&mut self.out, b'H', &[]);
        }
        self.flush(at, sink);
    }

    fn next_deadline_ns(&self) -> Option<u64> {
        let sends_ns = self.sent_ns.saturating_add(HEARTBEAT_NS);
        let ends_ns = self.heard_ns.saturating_add(SILENCE_MAX_NS);
        matches!(self.stage, Stage::On(_)).then_some(sends_ns.min(ends_ns))
    }
}

impl Session {
    /// Something that the gateway says while the session is on; or why the session ends.
    fn on_frame(&mut self, at: DoorTime, frame: &GatewayFrame, out: &mut Vec<u8>) -> Result<(), String> {
        self.desk.utc_ns = at.utc_ns;
        match frame {
            GatewayFrame::Reply(Reply::Rejected { client_order_id, reason }) if client_order_id.0 == 0 => {
                Err(reason.word().to_owned())
            }
            GatewayFrame::Reply(reply) => self.on_reply(reply, out),
            GatewayFrame::Resumed { shard, next, reason } if *shard == self.shard => {
                if *reason == Reason::None { Ok(()) } else { Err(format!("{reason} {next}")) }
            }
            _ => Ok(()),
        }
    }

    fn on_reply(&mut self, reply: &Reply, out: &mut Vec<u8>) -> Result<(), String> {
        let Some((shard, number)) = outbound::place(reply) else {
            self.desk.on_aside(reply);
            return Ok(());
        };
        if shard != self.shard {
            self.desk.on_elsewhere(reply);
            return Ok(());
        }
        self.desk.on_stream(reply);
        if number < self.next {
            return Ok(());
        }
        if number > self.next {
            // The client counts packets: it would take this one for another.
            return Err(format!("gap {}", self.next));
        }
        if let Some(message) = outbound::message(&self.desk.names, reply) {
            soup::write(out, b'S', message.as_bytes());
        }
        self.next = number.saturating_add(1);
        Ok(())
    }
}
