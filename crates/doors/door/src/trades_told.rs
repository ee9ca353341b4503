//! Trades as a session receives them that asks for them: each (AE), and what came of the question (AQ).

use pares_fix::dictionary::tag;
use pares_fix::time::{DATE_BYTES, stamp};
use pares_fix::writer::FixWriter;
use pares_types::{ClientOrderId, InstrumentId, MemberId, OrderId, Price, Quantity, Reply, Side};

use crate::decimal::price_text;
use crate::types::{ExecId, Pen, Version, side};

/// PartyIDSource (447): an id of the exchange's own.
const PROPRIETARY: u8 = b'D';
/// PartyRole (452): the firm whose order it is.
const EXECUTING_FIRM: u64 = 1;

/// TradeRequestStatus (750).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TradesStatus {
    Accepted = 0,
    Completed = 1,
    Rejected = 2,
}

/// A TradeCaptureReport.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TradeReport {
    /// TradeRequestID.
    pub(crate) request: Vec<u8>,
    id: ExecId,
    /// The trade that is declared void.
    void: Option<ExecId>,
    instrument: InstrumentId,
    pub(crate) order: OrderId,
    name: ClientOrderId,
    pub(crate) side: Option<Side>,
    price: Price,
    quantity: Quantity,
    /// Whether it is the last of those that were.
    pub(crate) is_last: bool,
}

/// A TradeCaptureReportRequestAck.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TradesAnswer {
    /// TradeRequestID.
    pub(crate) request: Vec<u8>,
    /// TradeRequestType, as it was asked.
    pub(crate) kind: Vec<u8>,
    /// How many there were, if there was none.
    pub(crate) total: Option<u64>,
    /// TradeRequestResult.
    pub(crate) result: u64,
    pub(crate) status: TradesStatus,
    pub(crate) text: &'static str,
}

impl TradeReport {
    /// A trade, or that one is void; `None` of anything else.
    pub(crate) fn of(reply: &Reply, request: &[u8]) -> Option<Self> {
        let request = request.to_vec();
        Some(match reply {
            Reply::Trade(trade) => Self {
                request,
                id: ExecId::Trade(trade.shard, trade.position, trade.index, trade.client_order_id),
                void: None,
                instrument: trade.instrument,
                order: trade.order,
                name: trade.client_order_id,
                side: Some(trade.side),
                price: trade.price,
                quantity: trade.quantity,
                is_last: false,
            },
            Reply::Busted(bust) => Self {
                request,
                id: ExecId::Number(bust.shard, bust.number),
                void: Some(ExecId::Trade(bust.shard, bust.traded_at, bust.index, bust.client_order_id)),
                instrument: bust.instrument,
                order: bust.order,
                name: bust.client_order_id,
                side: None,
                price: bust.price,
                quantity: bust.quantity,
                is_last: false,
            },
            Reply::Answer(_)
            | Reply::Cancelled(_)
            | Reply::News(_)
            | Reply::Journalled { .. }
            | Reply::Rejected { .. } => return None,
        })
    }

    /// Writes what follows the header that every message has.
    pub(crate) fn write(&self, pen: Pen<'_>, writer: &mut FixWriter<'_>) {
        let id = self.id.text();
        writer.text(tag::TRADE_REPORT_ID, id.as_bytes());
        writer.letter(tag::TRADE_REPORT_TRANS_TYPE, if self.void.is_some() { b'1' } else { b'0' });
        writer.text(tag::TRADE_REQUEST_ID, &self.request);
        if let Some(trade) = self.void {
            writer.text(tag::TRADE_REPORT_REF_ID, trade.text().as_bytes());
        }
        writer.text(tag::EXEC_ID, id.as_bytes());
        writer.letter(tag::PREVIOUSLY_REPORTED, b'N');
        writer.text(tag::SYMBOL, pen.instruments.symbol(self.instrument).as_bytes());
        writer.number(tag::LAST_QTY, self.quantity.0);
        writer.text(tag::LAST_PX, price_text(self.price).as_bytes());
        writer.text(tag::TRADE_DATE, &stamp(pen.utc_ns)[..DATE_BYTES]);
        writer.time(tag::TRANSACT_TIME, pen.utc_ns);
        if self.is_last {
            writer.letter(tag::LAST_RPT_REQUESTED, b'Y');
        }
        writer.number(tag::NO_SIDES, 1);
        writer.letter(tag::SIDE, side(self.side));
        writer.text(tag::ORDER_ID, self.order.to_string().as_bytes());
        writer.number(tag::CL_ORD_ID, self.name.0);
        write_party(pen.version, pen.owner.told_of(), writer);
    }
}

impl TradesAnswer {
    /// Writes what follows the header that every message has.
    pub(crate) fn write(&self, writer: &mut FixWriter<'_>) {
        writer.text(tag::TRADE_REQUEST_ID, &self.request);
        writer.text(tag::TRADE_REQUEST_TYPE, &self.kind);
        if let Some(total) = self.total {
            writer.number(tag::TOT_NUM_TRADE_REPORTS, total);
        }
        writer.number(tag::TRADE_REQUEST_RESULT, self.result);
        writer.number(tag::TRADE_REQUEST_STATUS, self.status as u64);
        if !self.text.is_empty() {
            writer.text(tag::TEXT, self.text.as_bytes());
        }
    }
}

/// Writes whose order it is: the executing firm of Parties, or, in FIX 4.2, ExecBroker.
pub(crate) fn write_party(version: Version, member: MemberId, writer: &mut FixWriter<'_>) {
    let member = member.to_string();
    if version == Version::Fix42 {
        return writer.text(tag::EXEC_BROKER, member.as_bytes());
    }
    writer.number(tag::NO_PARTY_IDS, 1);
    writer.text(tag::PARTY_ID, member.as_bytes());
    writer.letter(tag::PARTY_ID_SOURCE, PROPRIETARY);
    writer.number(tag::PARTY_ROLE, EXECUTING_FIRM);
}
