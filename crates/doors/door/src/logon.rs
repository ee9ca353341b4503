//! From the first message to the answer to the Logon.

use std::sync::Arc;

use pares_fix::dictionary::{FIX42, FIX44, FixDictionary, tag};
use pares_fix::framing::FixFrame;
use pares_fix::parser::FixParser;
use pares_fix::session::{FixNumbers, FixSession, FixSettings};
use pares_types::{List, ListEnd, ListRequest, MemberId, Reason, Reply};
use pares_wire::frame::{ClientFrame, GatewayFrame, SIGN_ON_RESUMES, SignOn};

use crate::codes;
use crate::desk::Desk;
use crate::instruments::Instruments;
use crate::interface::{DoorAction, DoorConfig, DoorTime, SessionMark};
use crate::line::{Line, Owner};
use crate::orders::Known;
use crate::streams::Streams;
use crate::told::Version;

/// Replies that wait for the Logon's answer.
const WAITING_MAX: usize = 1 << 14;
/// Numbers of messages have 18 digits at most.
const NUMBER_MAX: u64 = 1_000_000_000_000_000_000 - 1;
const TYPES_42: &[&str] = &["D", "F", "G", "H"];
const TYPES_44: &[&str] = &["D", "F", "G", "H", "q", "AF"];
const NO_PROOF: &str = "this exchange asks for a proof at sign-on, for which this door has no message";

/// Who called, and how.
#[derive(Debug)]
pub(crate) struct Caller {
    pub(crate) owner: Owner,
    version: Version,
    comp_id: String,
    /// Numbers begin anew.
    is_anew: bool,
    logon: Vec<u8>,
}

impl Caller {
    /// The caller by his first message; `None` if that is no Logon of a member to this exchange.
    pub(crate) fn of(config: &DoorConfig, parser: &mut FixParser, frame: &FixFrame<'_>) -> Option<Self> {
        let version = match frame.begin_string {
            b"FIX.4.2" => Version::Fix42,
            b"FIX.4.4" => Version::Fix44,
            _ => return None,
        };
        let message = parser.parse(dictionary(version), frame).ok()?;
        let is_logon = message.msg_type() == b"A" && message.fault().is_none();
        let is_for_us = message.text(tag::TARGET_COMP_ID) == Some(config.comp_id.as_bytes());
        let comp_id = std::str::from_utf8(message.text(tag::SENDER_COMP_ID)?).ok()?;
        let owner = owner(comp_id).filter(|_| is_logon && is_for_us)?;
        let is_anew = message.flag(tag::RESET_SEQ_NUM_FLAG);
        let (comp_id, logon) = (comp_id.to_owned(), frame.bytes.to_vec());
        Some(Self { owner, version, comp_id, is_anew, logon })
    }
}

fn dictionary(version: Version) -> &'static FixDictionary {
    match version {
        Version::Fix42 => &FIX42,
        Version::Fix44 => &FIX44,
    }
}

/// `M7-1` is session 1 of member 7, and `M7` its session 0.
fn owner(comp_id: &str) -> Option<Owner> {
    let rest = comp_id.strip_prefix('M')?;
    let (member, session) = rest.split_once('-').unwrap_or((rest, "0"));
    let owner = Owner { member: MemberId(member.parse().ok()?), session: session.parse().ok()? };
    // Each session is called by one name only, and the exchange itself by none.
    let is_written_so = member == owner.member.to_string() && session == owner.session.to_string();
    let is_named = rest.contains('-') == (owner.session > 0);
    (is_written_so && is_named && owner.member.0 > 0).then_some(owner)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    SigningOn,
    Instruments,
    Orders,
    Resuming,
}

/// A session whose Logon is not answered yet.
#[derive(Debug)]
pub(crate) struct Joining {
    pub(crate) line: Line,
    pub(crate) logon: Vec<u8>,
    /// What was told before.
    pub(crate) waiting: Vec<Reply>,
    step: Step,
}

impl Joining {
    pub(crate) fn new(
        config: &DoorConfig,
        caller: Caller,
        mark: Option<&SessionMark>,
        sink: &mut impl FnMut(DoorAction<'_>),
    ) -> Self {
        let Caller { owner, version, comp_id, is_anew, logon } = caller;
        let types = if version == Version::Fix42 { TYPES_42 } else { TYPES_44 };
        let settings = FixSettings {
            application_types: types,
            ..FixSettings::new(dictionary(version), &config.comp_id, &comp_id)
        };
        let goes_on = mark.filter(|_| !is_anew);
        let numbers = goes_on.map_or_else(FixNumbers::default, |mark| FixNumbers {
            next_in: mark.next_in.clamp(1, NUMBER_MAX),
            next_out: mark.out_max.min(NUMBER_MAX) + 1,
        });
        let streams = Streams::new(&config.shards, mark.map_or(&[], |mark| &mark.told));
        let mut instruments = Instruments::default();
        config.instruments.iter().for_each(|(instrument, symbol)| instruments.add(*instrument, *symbol));
        let desk = Desk::new(version, Arc::new(instruments), config.orders_max, streams);
        let line = Line::new(owner, FixSession::new(settings, numbers), desk);
        sink(DoorAction::Ask(ClientFrame::SignOn(SignOn {
            member: owner.member.0.into(),
            flags: SIGN_ON_RESUMES.into(),
            session: owner.session.into(),
            ..SignOn::default()
        })));
        Self { line, logon, waiting: Vec::new(), step: Step::SigningOn }
    }

    /// Whether the Logon can be answered.
    pub(crate) fn is_placed(&self) -> bool {
        self.step == Step::Resuming && self.line.desk.streams.are_placed() && !self.line.is_over()
    }

    pub(crate) fn on_frame(
        &mut self,
        at: DoorTime,
        frame: &GatewayFrame,
        sink: &mut impl FnMut(DoorAction<'_>),
    ) {
        match frame {
            GatewayFrame::Challenge(_) => self.line.end(at, NO_PROOF),
            GatewayFrame::Reply(Reply::Rejected { reason, .. }) => self.line.end(at, &codes::text(*reason)),
            GatewayFrame::SignedOn(_) if self.step == Step::SigningOn => self.ask_next(sink),
            GatewayFrame::InstrumentStatus(status) => {
                Arc::make_mut(&mut self.line.desk.instruments).add(status.instrument, status.symbol);
            }
            GatewayFrame::OrderStatus(_, Some(status)) => self.line.desk.orders.put(Known::listed(status)),
            GatewayFrame::ListEnd(end) => self.on_list_end(at, end, sink),
            GatewayFrame::Resumed { .. } => self.line.on_frame(at, frame),
            GatewayFrame::Reply(reply) if self.waiting.len() < WAITING_MAX => self.waiting.push(*reply),
            GatewayFrame::Reply(_) => self.line.end(at, "too much happens meanwhile: try again"),
            _ => {}
        }
        self.line.desk.asks.drain(..).for_each(|frame| sink(DoorAction::Ask(frame)));
    }

    fn on_list_end(&mut self, at: DoorTime, end: &ListEnd, sink: &mut impl FnMut(DoorAction<'_>)) {
        match end.reason {
            Reason::None => self.ask_next(sink),
            reason => self.line.end(at, &codes::text(reason)),
        }
    }

    /// Asks for what is to be known next.
    fn ask_next(&mut self, sink: &mut impl FnMut(DoorAction<'_>)) {
        let list = |list| {
            DoorAction::Ask(ClientFrame::ListRequest(ListRequest { token: 0, list, instrument: None }))
        };
        match self.step {
            Step::SigningOn if self.line.desk.instruments.is_empty() => {
                self.step = Step::Instruments;
                sink(list(List::Instruments));
            }
            Step::SigningOn | Step::Instruments => {
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
