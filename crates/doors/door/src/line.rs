//! A session in use: the session layer and the application, and what both want sent.
//!
//! Whatever an input brings about is gathered, and given out in one piece at its end: requests, a mark if one is due, bytes, the end. So no number goes out
//! that the last mark does not cover.

use pares_fix::dictionary::tag;
use pares_fix::framing::{Cut, FixFrame, TRAILER_BYTES, cut};
use pares_fix::parser::FixParser;
use pares_fix::session::{FixAction, FixSession};
use pares_port::{DoorAction, DoorTime, MarketView, SessionMark, Sink};
use pares_types::{Reply, ShardId};
use pares_wire::frame::{ClientFrame, GatewayFrame};

use crate::codes;
use crate::desk::Desk;
use crate::kept::{Keeping, Kept};
use crate::types::{Owner, Pen};

/// Numbers that a mark covers beyond those that are used.
const AHEAD: u64 = 1_024;
/// Bytes of messages that are sent again in one step, so that many who ask at once keep no other waiting.
const RESEND_BYTES: usize = 8 << 10;
/// How the TestRequests that follow marks begin; a number follows.
const TEST: &[u8] = b"TOLD-";

/// What the session layer wants done.
#[derive(Debug, Default)]
struct Output {
    bytes: Vec<u8>,
    resend: Option<(u64, u64)>,
    is_anew: bool,
    is_over: bool,
}

impl Output {
    fn act(&mut self, desk: &mut Desk, action: FixAction<'_>) {
        match action {
            FixAction::Send(bytes) => self.bytes.extend_from_slice(bytes),
            FixAction::LoggedOn { anew } => self.is_anew |= anew,
            FixAction::Deliver(message) => desk.take(message),
            FixAction::Resend { from, to } => self.resend = Some((from, to)),
            FixAction::Disconnect => self.is_over = true,
        }
    }
}

/// A session in use.
#[derive(Debug)]
pub(crate) struct Line {
    owner: Owner,
    session: FixSession,
    pub(crate) desk: Desk,
    kept: Keeping,
    output: Output,
    /// The highest number that the last mark covers.
    out_max: u64,
    /// Whether anything was sent since the last test.
    has_told: bool,
}

impl Line {
    pub(crate) fn new(owner: Owner, session: FixSession, desk: Desk) -> Self {
        let (kept, output) = (Keeping::default(), Output::default());
        Self { owner, session, desk, kept, output, out_max: 0, has_told: false }
    }

    /// A Logon of the peer, whole as it came.
    pub(crate) fn on_logon(&mut self, at: DoorTime, parser: &mut FixParser, logon: &[u8]) {
        if let (Cut::Whole(frame), _) = cut(logon) {
            self.on_message(at, parser, &frame);
        }
    }

    /// A message of the peer.
    pub(crate) fn on_message(&mut self, at: DoorTime, parser: &mut FixParser, frame: &FixFrame<'_>) {
        let Self { session, desk, output, .. } = self;
        desk.utc_ns = at.utc_ns;
        if let Some(number) = answered_test(frame.body) {
            desk.streams.on_test_answered(number);
        }
        session.on_frame(parser, at.utc_ns, frame, &mut |action: FixAction<'_>| output.act(desk, action));
        // Now: by the next message the session may be over, and then no one could receive it.
        self.tell(at);
    }

    /// Something that the gateway says.
    pub(crate) fn on_frame(&mut self, at: DoorTime, frame: &GatewayFrame) {
        self.desk.utc_ns = at.utc_ns;
        match frame {
            GatewayFrame::Reply(Reply::Rejected { client_order_id, reason }) if client_order_id.0 == 0 => {
                self.end(at, &codes::explained(*reason));
            }
            GatewayFrame::Reply(reply) => self.desk.on_reply(*reply),
            GatewayFrame::OrderStatus(key, status) => self.desk.on_status(*key, status.as_ref()),
            GatewayFrame::InstrumentStatus(status) => self.desk.on_instrument(status),
            GatewayFrame::ListEnd(end) => self.desk.on_list_end(end),
            GatewayFrame::Resumed { shard, next, reason } => {
                self.desk.release();
                if let Err(text) = self.desk.on_resumed(*shard, *next, *reason) {
                    self.end(at, &text);
                }
            }
            _ => {}
        }
    }

    /// The market as it is by now.
    pub(crate) fn on_market(&mut self, at: DoorTime, view: &dyn MarketView) {
        self.desk.utc_ns = at.utc_ns;
        let Desk { market, instruments, told, .. } = &mut self.desk;
        market.tell(view, instruments, told);
    }

    pub(crate) fn on_time(&mut self, at: DoorTime) {
        let Self { session, desk, output, .. } = self;
        desk.utc_ns = at.utc_ns;
        session.tick(at.utc_ns, &mut |action: FixAction<'_>| output.act(desk, action));
        // An answer comes in the same turn as what it is about. What still waits is not about one.
        if desk.waits_live() {
            desk.release();
        }
        desk.market.give_up(at.utc_ns, &desk.instruments, &mut desk.told);
        // Now and then also while few messages go out: what is not known to be read is sent again at the next logon.
        self.test_if_told(at);
    }

    /// Why the peer was refused, if it is said: the text of the Logout that is to be sent.
    pub(crate) fn refusal(&self) -> Option<String> {
        let mut fields = self.output.bytes.rsplit(|byte| *byte == pares_fix::SOH);
        let text = fields.find_map(|field| field.strip_prefix(b"58="))?;
        Some(String::from_utf8_lossy(text).into_owned())
    }

    /// Ends the session with a Logout that says why, also if the peer is not logged on yet.
    pub(crate) fn end(&mut self, at: DoorTime, text: &str) {
        let Self { session, desk, output, .. } = self;
        if !output.is_over {
            session.refuse_peer(at.utc_ns, text, &mut |action: FixAction<'_>| output.act(desk, action));
        }
    }

    /// When [`Self::on_time`] has something to do next, nanoseconds since 1970.
    pub(crate) fn next_deadline_ns(&self) -> Option<u64> {
        let is_due = self.output.resend.is_some() || self.desk.waits_live();
        if is_due {
            return Some(0);
        }
        let deadlines = [self.session.next_deadline(), self.desk.market.deadline_ns()];
        deadlines.into_iter().flatten().min()
    }

    pub(crate) fn is_over(&self) -> bool {
        self.output.is_over
    }

    /// Gives out what there is to do.
    pub(crate) fn flush(&mut self, at: DoorTime, sink: Sink<'_>) {
        if self.output.is_anew {
            (self.kept, self.out_max) = (Keeping::default(), 0);
            self.output.is_anew = false;
        }
        self.tell(at);
        self.serve_resend(at);
        self.desk.asks.drain(..).for_each(|frame| sink(DoorAction::Ask(frame)));
        self.desk.finds.drain(..).for_each(|symbol| sink(DoorAction::Find(symbol)));
        self.mark_if_due(at, sink);
        if !self.output.bytes.is_empty() {
            sink(DoorAction::Send(&self.output.bytes));
            self.output.bytes.clear();
        }
        if self.is_over() {
            sink(DoorAction::Close);
        }
    }

    /// Sends what the application tells.
    fn tell(&mut self, at: DoorTime) {
        let Self { owner, session, desk, output, kept, .. } = self;
        for told in std::mem::take(&mut desk.told) {
            if output.is_over {
                return;
            }
            let begins = output.bytes.len();
            let instruments = desk.instruments.clone();
            let pen =
                Pen { version: desk.version, instruments: &instruments, utc_ns: at.utc_ns, owner: *owner };
            let mut send = |action: FixAction<'_>| output.act(desk, action);
            let number =
                session.send(at.utc_ns, told.msg_type(), &mut send, |writer| told.write(pen, writer));
            if !told.is_kept() {
                continue;
            }
            let fields = fields(&output.bytes[begins..]).to_vec();
            kept.keep(Kept { number, sent_ns: at.utc_ns, msg_type: told.msg_type(), fields });
            self.has_told = true;
        }
    }

    /// Sends again what was asked for, as far as it is kept; what is not the stream sends again.
    fn serve_resend(&mut self, at: DoorTime) {
        let Self { session, desk, output, kept, .. } = self;
        let Some((from, to)) = output.resend.take().filter(|_| !output.is_over) else { return };
        let enough = output.bytes.len() + RESEND_BYTES;
        for kept in kept.between(from, to) {
            if output.bytes.len() > enough {
                output.resend = Some((kept.number, to));
                break;
            }
            let mut act = |action: FixAction<'_>| output.act(desk, action);
            session.resend(at.utc_ns, kept.number, kept.sent_ns, kept.msg_type, &mut act, |writer| {
                writer.fields(&kept.fields);
            });
        }
        let lacks = kept.lacks(from);
        if output.resend.is_none() {
            session.resend_done(at.utc_ns, &mut |action: FixAction<'_>| output.act(desk, action));
        }
        if lacks {
            self.desk.replay();
        }
    }

    /// Has a mark kept if numbers went beyond the last one, or the session is over.
    fn mark_if_due(&mut self, at: DoorTime, sink: Sink<'_>) {
        let last = self.session.numbers().next_out - 1;
        if self.is_over() {
            return sink(DoorAction::Mark(&self.mark(last)));
        }
        if last <= self.out_max {
            return;
        }
        self.out_max = last + AHEAD;
        sink(DoorAction::Mark(&self.mark(self.out_max)));
        self.test_if_told(at);
    }

    fn mark(&self, out_max: u64) -> SessionMark {
        let Owner { member, session, copied } = self.owner;
        let next_in = self.session.numbers().next_in;
        SessionMark { member, session, next_in, out_max, copied, told: self.desk.streams.read() }
    }

    /// Asks whether the peer has read what it received.
    fn test_if_told(&mut self, at: DoorTime) {
        let Self { session, desk, output, .. } = self;
        let is_all_sent = desk.held.is_empty() && desk.told.is_empty();
        if !session.is_logged_on() || !self.has_told || !is_all_sent {
            return;
        }
        let Some(number) = desk.streams.begin_test() else { return };
        self.has_told = false;
        let text = [TEST, number.to_string().as_bytes()].concat();
        session.send(at.utc_ns, b"1", &mut |action: FixAction<'_>| output.act(desk, action), |writer| {
            writer.text(tag::TEST_REQ_ID, &text);
        });
    }

    /// The mark with which another connection continues.
    pub(crate) fn last_mark(&self) -> SessionMark {
        self.mark(self.session.numbers().next_out - 1)
    }
}

impl Desk {
    /// A shard is live, or the gateway does not send it from where the door asked.
    fn on_resumed(
        &mut self,
        shard: ShardId,
        next: u64,
        reason: pares_types::Reason,
    ) -> Result<(), std::borrow::Cow<'static, str>> {
        use pares_types::Reason;
        let from = match reason {
            Reason::None => self.on_live(shard, next),
            Reason::NotKept if self.streams.is_for_trades(shard) => self.on_trades_not_kept(shard, next),
            Reason::NotKept => self.streams.on_not_kept(shard, next),
            other => return Err(codes::explained(other)),
        };
        self.asks.extend(from.map(|next| ClientFrame::Resume { shard: Some(shard), next }));
        self.ask_for_trades();
        Ok(())
    }

    /// Has the streams told again from where this connection began.
    fn replay(&mut self) {
        for (shard, next) in self.streams.replay() {
            self.asks.push(ClientFrame::Resume { shard: Some(shard), next });
        }
    }
}

/// What follows the header that every message has, which ends with TargetCompID.
fn fields(message: &[u8]) -> &[u8] {
    let target = message.windows(4).position(|window| window == b"\x0156=");
    let Some(value_at) = target.map(|at| at + 4) else { return &[] };
    let end = message[value_at..].iter().position(|byte| *byte == pares_fix::SOH);
    let from = end.map_or(message.len(), |end| value_at + end + 1);
    message.get(from..message.len().saturating_sub(TRAILER_BYTES)).unwrap_or_default()
}

/// The number of the test that a Heartbeat answers.
fn answered_test(body: &[u8]) -> Option<u64> {
    let rest = body.strip_prefix(b"35=0\x01")?;
    let value = rest.split(|byte| *byte == pares_fix::SOH).find_map(|field| field.strip_prefix(b"112="))?;
    std::str::from_utf8(value.strip_prefix(TEST)?).ok()?.parse().ok()
}
