//! From the first message to the answer to the Logon.

use std::sync::Arc;

use pares_fix::dictionary::{FIX42, FIX44, tag};
use pares_fix::framing::{FixFrame, NUMBER_MAX};
use pares_fix::message::FixMessage;
use pares_fix::parser::FixParser;
use pares_fix::session::{FixNumbers, FixSession, FixSettings};
use pares_fix::time::stamp;
use pares_fix::writer::FixWriter;
use pares_port::{DoorAction, DoorConfig, DoorTime, LOGON_CLOCK_NS, LogonProof, SessionMark, Sink};
use pares_types::{GatewayId, List, ListEnd, ListRequest, MemberId, Reason, Reply};
use pares_wire::frame::{ClientFrame, GatewayFrame, SIGN_ON_RESUMES, SignOn};

use crate::codes;
use crate::desk::Desk;
use crate::instruments::Instruments;
use crate::line::Line;
use crate::orders::Known;
use crate::streams::Streams;
use crate::types::{Owner, Version};

/// Replies that wait for the Logon's answer.
const WAITING_MAX: usize = 1 << 14;
/// What a Logon begins with.
const LOGON: &[u8] = b"35=A\x01";
const TYPES_42: &[&str] = &["D", "F", "G", "H", "e", "V"];
const TYPES_44: &[&str] = &["D", "F", "G", "H", "q", "AD", "AF", "x", "e", "V"];

/// Who called, and how.
#[derive(Debug)]
pub(crate) struct Caller {
    pub(crate) owner: Owner,
    settings: FixSettings,
    /// Numbers begin again at 1.
    is_anew: bool,
    /// That it is the member, if it says so to this gateway.
    proof: Option<LogonProof>,
    /// SendingTime, nanoseconds since 1970.
    sent_ns: u64,
    gateway: GatewayId,
    pub(crate) logon: Vec<u8>,
}

impl Caller {
    /// Who sends a Logon; `None` if the message is none of a member to this exchange.
    pub(crate) fn of(config: &DoorConfig, parser: &mut FixParser, frame: &FixFrame<'_>) -> Option<Self> {
        if !frame.body.starts_with(LOGON) {
            return None;
        }
        let (message, settings) = read_logon(parser, frame)?;
        let owner = owner(&settings.peer_comp_id).filter(|_| settings.own_comp_id == config.comp_id)?;
        let (gateway, sent_ns) = (config.gateway, message.time_ns(tag::SENDING_TIME)?);
        let (is_anew, proof) = (message.flag(tag::RESET_SEQ_NUM_FLAG), proof(gateway, sent_ns, &message));
        Some(Self { owner, settings, is_anew, proof, sent_ns, gateway, logon: frame.bytes.to_vec() })
    }

    /// Whether SendingTime differs too much from this clock. A Logon with a proof is judged by the gateway, which notes each as used.
    pub(crate) fn has_wrong_clock(&self, at: DoorTime) -> bool {
        self.proof.is_none() && self.sent_ns.abs_diff(at.utc_ns) > LOGON_CLOCK_NS
    }

    /// Tells why the gateway does not sign it on.
    pub(crate) fn refuse_for(&self, at: DoorTime, reason: Reason, sink: Sink<'_>) {
        self.refuse(at, &self.explained(at, reason), sink);
    }

    /// Why the gateway refuses its Logon, and what to look at.
    pub(crate) fn explained(&self, at: DoorTime, reason: Reason) -> String {
        let text = codes::explained(reason);
        let hint = match reason {
            Reason::WrongClock => {
                let [theirs, ours] = [self.sent_ns, at.utc_ns].map(stamp);
                let [theirs, ours] = [theirs, ours].map(|time| String::from_utf8_lossy(&time).into_owned());
                format!(" SendingTime (52) is {theirs}, this gateway's clock says {ours}")
            }
            Reason::WrongKey => format!(
                " TargetSubID (57) must be {}, the number of this gateway, and RawData (96) the proof of all \
                 fields but 9, 10, 95 and 96",
                self.gateway
            ),
            _ => String::new(),
        };
        format!("{text}{hint}")
    }

    /// Has the gateway look at its Logon.
    pub(crate) fn log_on(&self, sink: Sink<'_>) {
        let sign_on = SignOn {
            member: self.owner.member.0.into(),
            flags: SIGN_ON_RESUMES.into(),
            session: self.owner.session.into(),
            ..SignOn::default()
        };
        sink(DoorAction::LogOn { sign_on, proof: self.proof.as_ref() });
    }

    /// Tells why it is not signed on, in a Logout with the number 1: only its member receives the session's own numbers.
    pub(crate) fn refuse(&self, at: DoorTime, text: &str, sink: Sink<'_>) {
        let FixSettings { dictionary, own_comp_id, peer_comp_id, .. } = &self.settings;
        let mut bytes = Vec::new();
        let mut logout = FixWriter::begin(&mut bytes, dictionary.begin_string, b"5");
        logout.number(tag::MSG_SEQ_NUM, 1);
        logout.text(tag::SENDER_COMP_ID, own_comp_id.as_bytes());
        logout.time(tag::SENDING_TIME, at.utc_ns);
        logout.text(tag::TARGET_COMP_ID, peer_comp_id.as_bytes());
        logout.text(tag::TEXT, text.as_bytes());
        logout.finish();
        sink(DoorAction::Send(&bytes));
    }
}

/// What a Logon proves to that gateway: all that it says, so that nothing can be added to it, and nowhere else.
fn proof(gateway: GatewayId, time_ns: u64, logon: &FixMessage<'_>) -> Option<LogonProof> {
    let is_ours = logon.text(tag::TARGET_SUB_ID) == Some(gateway.to_string().as_bytes());
    let proof = from_hex(logon.text(tag::RAW_DATA).filter(|_| is_ours)?)?;
    let message = logon.proven_form([tag::RAW_DATA_LENGTH, tag::RAW_DATA]);
    Some(LogonProof::Signed { message, proof, time_ns })
}

fn from_hex<const N: usize>(digits: &[u8]) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    let (pairs, rest) = digits.as_chunks::<2>();
    let digit = |digit: u8| char::from(digit).to_digit(16);
    for (byte, &[high, low]) in bytes.iter_mut().zip(pairs) {
        *byte = u8::try_from(digit(high)? << 4 | digit(low)?).ok()?;
    }
    (pairs.len() == N && rest.is_empty()).then_some(bytes)
}

/// Reads a Logon: the message, and the settings of the session that it calls. `None` if it is none that a door takes.
pub fn read_logon<'a>(
    parser: &'a mut FixParser,
    frame: &FixFrame<'a>,
) -> Option<(FixMessage<'a>, FixSettings)> {
    let (dictionary, application_types) = match frame.begin_string {
        b"FIX.4.2" => (&FIX42, TYPES_42),
        b"FIX.4.4" => (&FIX44, TYPES_44),
        _ => return None,
    };
    let message = parser.parse(dictionary, frame).ok()?;
    let is_logon = message.msg_type() == b"A" && message.fault().is_none();
    let comp_id = |tag| std::str::from_utf8(message.text(tag)?).ok();
    let (own, peer) = (comp_id(tag::TARGET_COMP_ID)?, comp_id(tag::SENDER_COMP_ID)?);
    let settings = FixSettings { application_types, ..FixSettings::new(dictionary, own, peer) };
    is_logon.then_some((message, settings))
}

/// `M7-1` is session 1 of member 7, and `M7` its session 0.
fn owner(comp_id: &str) -> Option<Owner> {
    let rest = comp_id.strip_prefix('M')?;
    let (member, session) = rest.split_once('-').unwrap_or((rest, "0"));
    let owner =
        Owner { member: MemberId(member.parse().ok()?), session: session.parse().ok()?, copied: None };
    // Each session is called by one name only, and the exchange itself by none.
    let is_written_so = member == owner.member.to_string() && session == owner.session.to_string();
    let is_named = rest.contains('-') == (owner.session > 0);
    (is_written_so && is_named && owner.member.0 > 0).then_some(owner)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    SignedOn,
    Instruments,
    Orders,
    Resuming,
}

/// A session whose Logon is not answered yet.
#[derive(Debug)]
pub(crate) struct Joining {
    pub(crate) line: Line,
    pub(crate) logon: Vec<u8>,
    /// What was sent before.
    pub(crate) waiting: Vec<Reply>,
    step: Step,
}

impl Joining {
    pub(crate) fn new(
        config: &DoorConfig,
        caller: Caller,
        mark: Option<&SessionMark>,
        sink: Sink<'_>,
    ) -> Self {
        let Caller { owner, settings, is_anew, logon, .. } = caller;
        let goes_on = mark.filter(|_| !is_anew);
        let numbers = goes_on.map_or_else(FixNumbers::default, |mark| FixNumbers {
            next_in: mark.next_in.clamp(1, NUMBER_MAX),
            next_out: mark.out_max.min(NUMBER_MAX) + 1,
        });
        // Places in another member's streams are none in these.
        let told = mark.filter(|mark| mark.copied == owner.copied);
        let streams = Streams::new(&config.shards, told.map_or(&[], |mark| &mark.told));
        let mut instruments = Instruments::default();
        config.instruments.iter().for_each(|(instrument, symbol)| instruments.add(*instrument, *symbol));
        let mut desk =
            Desk::new(Version::of(settings.dictionary), Arc::new(instruments), config.orders_max, streams);
        (desk.has_market, desk.is_copy) = (config.has_market, owner.copied.is_some());
        // Each refusal takes a number out, so none after this one is called as one before.
        desk.refusals = numbers.next_out;
        let line = Line::new(owner, FixSession::new(settings, numbers), desk);
        let mut joining = Self { line, logon, waiting: Vec::new(), step: Step::SignedOn };
        joining.ask_next(sink);
        joining
    }

    /// Whether the Logon can be answered.
    pub(crate) fn is_placed(&self) -> bool {
        self.step == Step::Resuming && self.line.desk.streams.are_placed() && !self.line.is_over()
    }

    pub(crate) fn on_frame(&mut self, at: DoorTime, frame: &GatewayFrame, sink: Sink<'_>) {
        match frame {
            GatewayFrame::Reply(Reply::Rejected { reason, .. }) => {
                self.line.end(at, &codes::explained(*reason))
            }
            GatewayFrame::InstrumentStatus(status) => {
                Arc::make_mut(&mut self.line.desk.instruments).add(status.instrument, status.symbol);
            }
            GatewayFrame::OrderStatus(_, Some(status)) => self.line.desk.orders.put(Known::listed(status)),
            GatewayFrame::ListEnd(end) => self.on_list_end(at, end, sink),
            GatewayFrame::Resumed { .. } => self.line.on_frame(at, frame),
            GatewayFrame::Reply(reply) if self.waiting.len() < WAITING_MAX => self.waiting.push(*reply),
            GatewayFrame::Reply(_) => self.line.end(at, "the session changed during the logon: try again"),
            _ => {}
        }
        self.line.desk.asks.drain(..).for_each(|frame| sink(DoorAction::Ask(frame)));
    }

    fn on_list_end(&mut self, at: DoorTime, end: &ListEnd, sink: Sink<'_>) {
        match end.reason {
            Reason::None => self.ask_next(sink),
            reason => self.line.end(at, &codes::explained(reason)),
        }
    }

    /// Asks for what is to be known next.
    fn ask_next(&mut self, sink: Sink<'_>) {
        let list = |list| {
            DoorAction::Ask(ClientFrame::ListRequest(ListRequest { token: 0, list, instrument: None }))
        };
        match self.step {
            Step::SignedOn if self.line.desk.instruments.is_empty() => {
                self.step = Step::Instruments;
                sink(list(List::Instruments));
            }
            Step::SignedOn | Step::Instruments => {
                self.step = Step::Orders;
                sink(list(List::Orders));
            }
            Step::Orders => {
                self.step = Step::Resuming;
                for (shard, next) in self.line.desk.streams.next() {
                    sink(DoorAction::Ask(ClientFrame::Resume { shard: Some(shard), next }));
                }
            }
            Step::Resuming => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comp_id_names_a_session_in_one_way_only() {
        let named = |comp_id| owner(comp_id).map(|owner| (owner.member.0, owner.session));
        assert_eq!((named("M7"), named("M7-1")), (Some((7, 0)), Some((7, 1))));
        for wrong in ["", "M", "7", "M0", "M07", "M7-", "M7-0", "M7-01", "M7-1-2", "M-1", "M7-65536", "m7"] {
            assert_eq!(named(wrong), None, "{wrong}");
        }
    }
}
