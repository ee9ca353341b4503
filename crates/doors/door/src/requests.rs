//! Messages of the member, one by one.

use pares_fix::dictionary::tag;
use pares_fix::message::FixMessage;
use pares_types::{ClientOrderId, ClientRequest, InstrumentId, List, OrderId, OrderKey, Reason, RequestId};
use pares_wire::frame::ClientFrame;

use crate::codes;
use crate::desk::Desk;
use crate::orders::Known;
use crate::outbound::{CancelReject, Execution, MassReport, Told};
use crate::pending::{Asked, Change, Found, Mass, StatusAsked, What};
use crate::refusals::MASS_OTHER;
use crate::request::{Asking, Refusal, client_order_id, name};
use crate::types::{ExecId, ExecKind, Question, status};

/// Requests that wait for their answers; a gateway lets a session have fewer.
const ASKED_MAX: usize = 1 << 16;
/// CxlRejReason: no such order.
const UNKNOWN_ORDER: u8 = 1;
/// MassCancelRejectReason: not supported; no such instrument.
const MASS_NOT_SUPPORTED: u8 = 0;
const MASS_UNKNOWN_INSTRUMENT: u8 = 1;

impl Desk {
    /// An application message of the member.
    pub(crate) fn take(&mut self, message: &FixMessage<'_>) {
        match message.msg_type() {
            b"D" => self.on_new_order(message),
            b"F" | b"G" => self.on_change(message),
            b"q" => self.on_mass_cancel(message),
            b"H" => self.on_status_question(message),
            b"AF" => self.on_mass_status_question(message),
            b"x" => self.on_list_question(message),
            b"e" => self.on_security_question(message),
            b"V" => {
                let known = (&*self.instruments, self.utc_ns);
                self.told.extend(self.market.on_question(message, self.has_market, known));
            }
            b"AD" => self.on_trades_question(message),
            _ => {}
        }
    }

    /// Asks for it, and remembers that it was asked for.
    fn ask(&mut self, message: &FixMessage<'_>, what: What, request: ClientRequest) {
        let is_duplicate = message.flag(tag::POSS_DUP_FLAG) && !message.flag(tag::POSS_RESEND);
        self.asked.insert(request.client_order_id(), Asked { what, request, is_duplicate });
        self.asks.push(ClientFrame::Request(request));
    }

    /// Whether that may be asked under the name: another question of that name that waits would lose its answer. A copy's would be
    /// taken for the other member's, whose names it receives.
    fn may_ask(&self, request: &ClientRequest) -> Result<(), Refusal> {
        match self.asked.get(&request.client_order_id()) {
            _ if self.is_copy => Err(Refusal::other(codes::text(Reason::NoRight))),
            Some(asked) if asked.request != *request => Err(Refusal::name_used()),
            None if self.asked.len() >= ASKED_MAX => Err(Refusal::other("too many unanswered requests")),
            _ => Ok(()),
        }
    }

    fn on_new_order(&mut self, message: &FixMessage<'_>) {
        match self.new_order(message) {
            Ok((request, known)) => {
                // A name that is taken is answered as before; the order that has it stays as it is.
                if self.orders.get(known.entry).is_none() {
                    self.orders.put(known);
                }
                self.ask(message, What::Enter(known), request);
            }
            Err(refusal) => self.refuse_order(message, refusal),
        }
    }

    fn new_order(&self, message: &FixMessage<'_>) -> Result<(ClientRequest, Known), Refusal> {
        let asking = Asking { message, instruments: &self.instruments };
        let (client_order_id, instrument) = (asking.own_name()?, asking.instrument()?);
        let (order, terms) = asking.order()?;
        let request = ClientRequest::Enter { client_order_id, instrument, order };
        self.may_ask(&request)?;
        let known = Known {
            side: Some(order.side),
            total: Some(order.quantity),
            terms: Some(terms),
            ..Known::unknown(client_order_id, instrument)
        };
        Ok((request, known))
    }

    /// Says that an order is not even asked for.
    fn refuse_order(&mut self, message: &FixMessage<'_>, refusal: Refusal) {
        let asking = Asking { message, instruments: &self.instruments };
        let symbol = message.text(tag::SYMBOL).unwrap_or(b"NONE");
        let execution = Execution {
            name: Some(name(message, tag::CL_ORD_ID)),
            instrument: asking.instrument().map_err(|_| symbol.to_vec()),
            side: asking.side().ok(),
            total: asking.quantity(tag::ORDER_QTY).ok().flatten(),
            rejected: Some(codes::in_version(refusal.code, self.version)),
            text: refusal.text,
            ..self.blank(ExecKind::Rejected, status::REJECTED)
        };
        self.told.push(Told::Execution(Box::new(execution)));
    }

    /// A report without an order, under an id of its own.
    pub(crate) fn blank(&mut self, kind: ExecKind, status: u8) -> Execution {
        self.refusals += 1;
        let id = if kind == ExecKind::Status {
            ExecId::Status
        } else {
            ExecId::Refusal(self.utc_ns, self.refusals)
        };
        Execution::of(kind, status, id)
    }

    fn on_change(&mut self, message: &FixMessage<'_>) {
        match self.change(message) {
            Ok((change, request)) => {
                if let Some(order) = self.orders.get_mut(change.entry).filter(|_| change.terms.is_some()) {
                    order.amending += 1;
                }
                self.ask(message, What::Change(change), request);
            }
            Err((code, text)) => self.refuse_change(message, code, text),
        }
    }

    fn change(&self, message: &FixMessage<'_>) -> Result<(Change, ClientRequest), (u8, String)> {
        let refused = |refusal: Refusal| (refusal.of_change(), refusal.text.into_owned());
        let asking = Asking { message, instruments: &self.instruments };
        let client_order_id = asking.own_name().map_err(refused)?;
        let (original, target) = self.target(message)?;
        let (terms, request) = if message.msg_type() == b"F" {
            (None, ClientRequest::Cancel { client_order_id, target })
        } else {
            let now = self.orders.get(target).and_then(|order| order.terms);
            let (new, terms) = asking.new_terms(now).map_err(refused)?;
            (Some(terms), ClientRequest::Amend { client_order_id, target, terms: new })
        };
        let change = Change { entry: target, original, terms };
        self.may_ask(&request).map_err(refused)?;
        Ok((change, request))
    }

    /// The order that a message is about: its name there, and its first name. By its id, if that is given and known; otherwise by any of its names.
    fn target(&self, message: &FixMessage<'_>) -> Result<(ClientOrderId, ClientOrderId), (u8, String)> {
        let original = message.text(tag::ORIG_CL_ORD_ID).and_then(client_order_id);
        let by_id = message.text(tag::ORDER_ID).and_then(order_id).map(OrderKey::Id);
        let by_id = by_id.and_then(|key| self.orders.names_of(key));
        let by_name = || self.orders.names_of(OrderKey::Name(original?));
        match (by_id.or_else(by_name), original) {
            (Some((newest, entry)), original) => Ok((original.unwrap_or(newest), entry)),
            // It may be one that this door has not heard of: the gateway knows.
            (None, Some(original)) => Ok((original, original)),
            (None, None) => Err((UNKNOWN_ORDER, "OrigClOrdID (41) names no order".into())),
        }
    }

    fn refuse_change(&mut self, message: &FixMessage<'_>, reason: u8, text: String) {
        let target = self.target(message).ok();
        let standing = target.and_then(|(_, entry)| self.orders.standing(OrderKey::Name(entry)));
        self.told.push(Told::CancelReject(CancelReject {
            original: Some(name(message, tag::ORIG_CL_ORD_ID)),
            responds_to: if message.msg_type() == b"F" { b'1' } else { b'2' },
            reason,
            text: text.into(),
            ..CancelReject::of(standing, name(message, tag::CL_ORD_ID))
        }));
    }

    fn on_mass_cancel(&mut self, message: &FixMessage<'_>) {
        match self.mass_cancel(message) {
            Ok((mass, request)) => self.ask(message, What::Mass(mass), request),
            Err((reason, refusal)) => {
                let mass = Mass { asked: mass_type(message), instrument: None, side: None };
                let report = MassReport::of(mass, name(message, tag::CL_ORD_ID), Err(reason));
                self.told.push(Told::MassReport(MassReport { text: refusal.text, ..report }));
            }
        }
    }

    fn mass_cancel(&self, message: &FixMessage<'_>) -> Result<(Mass, ClientRequest), (u8, Refusal)> {
        let asking = Asking { message, instruments: &self.instruments };
        let other = |refusal| (MASS_OTHER, refusal);
        let instrument = match mass_type(message) {
            b'1' => Some(asking.instrument().map_err(|refusal| (MASS_UNKNOWN_INSTRUMENT, refusal))?),
            b'7' => None,
            _ => {
                return Err((
                    MASS_NOT_SUPPORTED,
                    Refusal::other("MassCancelRequestType (530) must be 1 or 7"),
                ));
            }
        };
        let side = message.text(tag::SIDE).map(|_| asking.side()).transpose().map_err(other)?;
        let client_order_id = asking.own_name().map_err(other)?;
        let mass = Mass { asked: mass_type(message), instrument, side };
        let instrument = instrument.unwrap_or(InstrumentId(0));
        let request = ClientRequest::MassCancel { client_order_id, instrument, side };
        self.may_ask(&request).map_err(other)?;
        Ok((mass, request))
    }

    fn on_status_question(&mut self, message: &FixMessage<'_>) {
        let own = message.text(tag::CL_ORD_ID).and_then(client_order_id);
        let by_id = message.text(tag::ORDER_ID).and_then(order_id).map(OrderKey::Id);
        let by_name = || {
            let own = OrderKey::Name(own?);
            Some(self.orders.names_of(own).map_or(own, |(_, entry)| OrderKey::Name(entry)))
        };
        let status_id = message.text(tag::ORD_STATUS_REQ_ID).map(<[u8]>::to_vec);
        let question = Question { status_id, mass: None };
        let name = name(message, tag::CL_ORD_ID);
        match by_id.or_else(by_name).filter(|_| self.status_asked.len() < ASKED_MAX) {
            Some(key) => {
                self.status_asked.put(key, StatusAsked { name, question });
                self.asks.push(ClientFrame::OrderStatusRequest(key));
            }
            None => self.tell_unknown(Some(name), question),
        }
    }

    fn on_mass_status_question(&mut self, message: &FixMessage<'_>) {
        let asking = Asking { message, instruments: &self.instruments };
        let id = message.text(tag::MASS_STATUS_REQ_ID).unwrap_or_default().to_vec();
        let instrument = match message.text(tag::MASS_STATUS_REQ_TYPE) {
            Some(b"1") => asking.instrument().map(Some),
            Some(b"7") => Ok(None),
            _ => Err(Refusal::other("MassStatusReqType (585) must be 1 or 7")),
        };
        match instrument {
            Ok(instrument) => self.list(id, List::Orders, instrument, Found::Orders(None)),
            Err(refusal) => self.tell_none_of_list(id, refusal.text),
        }
    }
}

impl Known {
    /// OrdStatus (39) of an order that lives.
    pub(crate) fn status(&self) -> u8 {
        match () {
            () if !self.is_answered => status::PENDING_NEW,
            () if self.executed.is_zero() => status::NEW,
            () => status::PARTIAL,
        }
    }
}

/// MassCancelRequestType (530).
fn mass_type(message: &FixMessage<'_>) -> u8 {
    message.text(tag::MASS_CANCEL_REQUEST_TYPE).and_then(|text| text.first()).copied().unwrap_or_default()
}

/// An OrderID (37): gateway, colon, sequence.
fn order_id(text: &[u8]) -> Option<OrderId> {
    let (gateway, sequence) = std::str::from_utf8(text).ok()?.split_once(':')?;
    let (gateway, sequence) = (gateway.parse::<u16>().ok()?, sequence.parse::<u64>().ok()?);
    let bits = u64::from(gateway) << 48 | sequence;
    RequestId::from_bits(bits).filter(|_| sequence <= RequestId::SEQUENCE_MAX).map(OrderId)
}
