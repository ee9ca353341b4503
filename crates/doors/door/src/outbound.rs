//! Application messages to the member, and how each is written in either version.
//!
//! FIX 4.2 says in two fields what 4.4 says in one: ExecTransType (20) whether a report is new, a cancel of another or a status, and ExecType (150) what
//! happened; a trade's ExecType is its order's status.

use std::borrow::Cow;

use pares_fix::dictionary::tag;
use pares_fix::framing::NUMBER_MAX;
use pares_fix::writer::FixWriter;
use pares_types::{InstrumentId, OrderId, Price, Quantity, Side};

use crate::decimal::price_text;
use crate::market_told::{MarketReject, MarketTold};
use crate::securities_told::{SecurityList, SecurityState};
use crate::trades_told::{TradeReport, TradesAnswer, write_party};
use crate::types::{ExecId, ExecKind, Name, Pen, Question, Terms, Version, side};

/// An ExecutionReport.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Execution {
    pub(crate) kind: ExecKind,
    pub(crate) status: u8,
    pub(crate) id: ExecId,
    pub(crate) refers_to: Option<ExecId>,
    pub(crate) order: Option<OrderId>,
    pub(crate) name: Option<Name>,
    pub(crate) original: Option<Name>,
    pub(crate) instrument: Result<InstrumentId, Vec<u8>>,
    pub(crate) side: Option<Side>,
    pub(crate) total: Option<Quantity>,
    pub(crate) terms: Option<Terms>,
    pub(crate) last: Option<(Price, Quantity)>,
    pub(crate) leaves: Quantity,
    pub(crate) executed: Quantity,
    /// OrdRejReason (103) of a rejection.
    pub(crate) rejected: Option<u8>,
    /// ExecRestatementReason (378), as either version has it.
    pub(crate) restated: Option<(u8, u8)>,
    pub(crate) is_working: Option<bool>,
    pub(crate) question: Question,
    pub(crate) text: Cow<'static, str>,
    pub(crate) is_possible_resend: bool,
}

/// An OrderCancelReject.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CancelReject {
    pub(crate) order: Option<OrderId>,
    pub(crate) name: Name,
    pub(crate) original: Option<Name>,
    pub(crate) status: u8,
    /// CxlRejResponseTo (434): 1 a cancel, 2 a replacement.
    pub(crate) responds_to: u8,
    pub(crate) reason: u8,
    pub(crate) text: Cow<'static, str>,
    pub(crate) is_possible_resend: bool,
}

/// An OrderMassCancelReport.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MassReport {
    pub(crate) order: Option<OrderId>,
    pub(crate) name: Name,
    pub(crate) asked: u8,
    pub(crate) instrument: Option<InstrumentId>,
    pub(crate) side: Option<Side>,
    /// How many orders it cancelled, or why it was refused (532).
    pub(crate) result: Result<u64, u8>,
    pub(crate) text: Cow<'static, str>,
    pub(crate) is_possible_resend: bool,
}

/// An application message to the member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    Execution(Box<Execution>),
    CancelReject(CancelReject),
    MassReport(MassReport),
    Securities(SecurityList),
    Security(SecurityState),
    Market(MarketTold),
    MarketReject(MarketReject),
    Trade(Box<TradeReport>),
    Trades(TradesAnswer),
}

impl Told {
    pub(crate) fn msg_type(&self) -> &'static [u8] {
        match self {
            Self::Execution(_) => b"8",
            Self::CancelReject(_) => b"9",
            Self::MassReport(_) => b"r",
            Self::Securities(_) => b"y",
            Self::Security(_) => b"f",
            Self::Market(told) => told.msg_type(),
            Self::MarketReject(_) => b"Y",
            Self::Trade(_) => b"AE",
            Self::Trades(_) => b"AQ",
        }
    }

    /// Whether it is sent again to who asks: what the market was is no news.
    pub(crate) fn is_kept(&self) -> bool {
        !matches!(self, Self::Market(_))
    }

    /// Writes what follows the header that every message has.
    pub(crate) fn write(&self, pen: Pen<'_>, writer: &mut FixWriter<'_>) {
        let (is_possible_resend, order, text) = match self {
            Self::Execution(told) => (told.is_possible_resend, told.order, &told.text),
            Self::CancelReject(told) => (told.is_possible_resend, told.order, &told.text),
            Self::MassReport(told) => (told.is_possible_resend, told.order, &told.text),
            Self::Securities(told) => return told.write(writer),
            Self::Security(told) => return told.write(pen, writer),
            Self::Market(told) => return told.write(writer),
            Self::MarketReject(told) => return told.write(writer),
            Self::Trade(told) => return told.write(pen, writer),
            Self::Trades(told) => return told.write(writer),
        };
        if is_possible_resend {
            writer.letter(tag::POSS_RESEND, b'Y');
        }
        match order {
            Some(order) => writer.text(tag::ORDER_ID, order.to_string().as_bytes()),
            None => writer.text(tag::ORDER_ID, b"NONE"),
        }
        match self {
            Self::Execution(told) => told.write(pen, writer),
            Self::CancelReject(told) => told.write(pen, writer),
            Self::MassReport(told) => told.write(pen, writer),
            _ => unreachable!("written above"),
        }
        writer.time(tag::TRANSACT_TIME, pen.utc_ns);
        if !text.is_empty() {
            writer.text(tag::TEXT, text.as_bytes());
        }
    }
}

impl Execution {
    fn write(&self, pen: Pen<'_>, writer: &mut FixWriter<'_>) {
        if let Some(name) = &self.name {
            name.write(tag::CL_ORD_ID, writer);
        }
        if let Some(original) = &self.original {
            original.write(tag::ORIG_CL_ORD_ID, writer);
        }
        self.write_question(writer);
        writer.text(tag::EXEC_ID, self.id.text().as_bytes());
        if let Some(trade) = self.refers_to {
            writer.text(tag::EXEC_REF_ID, trade.text().as_bytes());
        }
        // What this session was refused is no other member's.
        if let Some(member) = pen.owner.copied.filter(|_| !matches!(self.id, ExecId::Refusal(..))) {
            write_party(pen.version, member, writer);
        }
        self.write_kind(pen.version, writer);
        match &self.instrument {
            Ok(instrument) => writer.text(tag::SYMBOL, pen.instruments.symbol(*instrument).as_bytes()),
            Err(symbol) => writer.text(tag::SYMBOL, symbol),
        }
        writer.letter(tag::SIDE, side(self.side));
        if let Some(total) = self.total {
            writer.number(tag::ORDER_QTY, total.0);
        }
        self.write_terms(writer);
        if let Some((price, quantity)) = self.last {
            writer.number(tag::LAST_QTY, quantity.0);
            writer.text(tag::LAST_PX, price_text(price).as_bytes());
        }
        writer.number(tag::LEAVES_QTY, self.leaves.0);
        writer.number(tag::CUM_QTY, self.executed.0);
        writer.letter(tag::AVG_PX, b'0');
    }

    fn write_question(&self, writer: &mut FixWriter<'_>) {
        if let Some(id) = &self.question.status_id {
            writer.text(tag::ORD_STATUS_REQ_ID, id);
        }
        if let Some((id, is_last)) = &self.question.mass {
            writer.text(tag::MASS_STATUS_REQ_ID, id);
            writer.letter(tag::LAST_RPT_REQUESTED, if *is_last { b'Y' } else { b'N' });
        }
    }

    fn write_kind(&self, version: Version, writer: &mut FixWriter<'_>) {
        let is_42 = version == Version::Fix42;
        let exec_type = match self.kind {
            ExecKind::New => b'0',
            ExecKind::Canceled => b'4',
            ExecKind::Replaced => b'5',
            ExecKind::Rejected => b'8',
            ExecKind::Expired => b'C',
            ExecKind::Restated => b'D',
            ExecKind::Trade | ExecKind::Busted | ExecKind::Status if is_42 => self.status,
            ExecKind::Trade => b'F',
            ExecKind::Busted => b'H',
            ExecKind::Status => b'I',
        };
        if is_42 {
            let transaction = match self.kind {
                ExecKind::Busted => b'1',
                ExecKind::Status => b'3',
                _ => b'0',
            };
            writer.letter(tag::EXEC_TRANS_TYPE, transaction);
        }
        writer.letter(tag::EXEC_TYPE, exec_type);
        writer.letter(tag::ORD_STATUS, self.status);
        if let Some(reason) = self.rejected {
            writer.number(tag::ORD_REJ_REASON, u64::from(reason));
        }
        if let Some((of_42, of_44)) = self.restated {
            writer.number(tag::EXEC_RESTATEMENT_REASON, u64::from(if is_42 { of_42 } else { of_44 }));
        }
        if let Some(is_working) = self.is_working.filter(|_| !is_42) {
            writer.letter(tag::WORKING_INDICATOR, if is_working { b'Y' } else { b'N' });
        }
    }

    fn write_terms(&self, writer: &mut FixWriter<'_>) {
        let Some(Terms { ord_type, time_in_force, price, stop }) = self.terms else { return };
        writer.letter(tag::ORD_TYPE, ord_type);
        if let Some(price) = price {
            writer.text(tag::PRICE, price_text(price).as_bytes());
        }
        if let Some(stop) = stop {
            writer.text(tag::STOP_PX, price_text(stop).as_bytes());
        }
        if let Some(time_in_force) = time_in_force {
            writer.letter(tag::TIME_IN_FORCE, time_in_force);
        }
    }
}

impl CancelReject {
    fn write(&self, pen: Pen<'_>, writer: &mut FixWriter<'_>) {
        self.name.write(tag::CL_ORD_ID, writer);
        match &self.original {
            Some(original) => original.write(tag::ORIG_CL_ORD_ID, writer),
            None => writer.text(tag::ORIG_CL_ORD_ID, b"NONE"),
        }
        writer.letter(tag::ORD_STATUS, self.status);
        writer.letter(tag::CXL_REJ_RESPONSE_TO, self.responds_to);
        // FIX 4.2 knows of three reasons, and of 2 for all others.
        let is_known = pen.version == Version::Fix44 || self.reason <= 3;
        writer.number(tag::CXL_REJ_REASON, if is_known { u64::from(self.reason) } else { 2 });
    }
}

impl MassReport {
    fn write(&self, pen: Pen<'_>, writer: &mut FixWriter<'_>) {
        self.name.write(tag::CL_ORD_ID, writer);
        writer.letter(tag::MASS_CANCEL_REQUEST_TYPE, self.asked);
        match self.result {
            Ok(cancelled) => {
                writer.letter(tag::MASS_CANCEL_RESPONSE, self.asked);
                writer.number(tag::TOTAL_AFFECTED_ORDERS, cancelled.min(NUMBER_MAX));
            }
            Err(reason) => {
                writer.letter(tag::MASS_CANCEL_RESPONSE, b'0');
                writer.number(tag::MASS_CANCEL_REJECT_REASON, u64::from(reason));
            }
        }
        if let Some(instrument) = self.instrument {
            writer.text(tag::SYMBOL, pen.instruments.symbol(instrument).as_bytes());
        }
        if self.side.is_some() {
            writer.letter(tag::SIDE, side(self.side));
        }
    }
}
