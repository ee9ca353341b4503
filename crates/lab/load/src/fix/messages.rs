//! Requests as messages.

use pares_client::{Secret, to_hex};
use pares_fix::dictionary::tag;
use pares_fix::writer::FixWriter;
use pares_types::{ClientRequest, InstrumentId, NewOrder, OrderKind, Price, Side, TimeInForce};

/// Seconds: of a load both ends hear each other all the time.
const HEARTBEAT_S: u64 = 60;

/// The names of both ends.
#[derive(Clone, Debug)]
pub(super) struct Ends {
    pub(super) sender: String,
    pub(super) target: String,
}

impl Ends {
    /// Begins a message with all that each one has at its head.
    pub(super) fn begin<'a>(
        &self,
        out: &'a mut Vec<u8>,
        msg_type: &[u8],
        (number, now_ns): (u64, u64),
    ) -> FixWriter<'a> {
        let mut writer = FixWriter::begin(out, "FIX.4.4", msg_type);
        writer.number(tag::MSG_SEQ_NUM, number);
        writer.text(tag::SENDER_COMP_ID, self.sender.as_bytes());
        writer.time(tag::SENDING_TIME, now_ns);
        writer.text(tag::TARGET_COMP_ID, self.target.as_bytes());
        writer
    }

    /// Writes a Logon; with the secret of the session's key, if it has one, it proves who sends it, to the gateway of that number.
    pub(super) fn log_on(&self, out: &mut Vec<u8>, head: (u64, u64), by: Option<(&Secret, usize)>) {
        let mut writer = self.begin(out, b"A", head);
        if let Some((_, gateway)) = by {
            writer.number(tag::TARGET_SUB_ID, gateway as u64);
        }
        writer.letter(tag::ENCRYPT_METHOD, b'0');
        writer.number(tag::HEART_BT_INT, HEARTBEAT_S);
        if let Some((secret, _)) = by {
            let proof = to_hex(&secret.prove(&writer.proven_form()));
            writer.number(tag::RAW_DATA_LENGTH, proof.len() as u64);
            writer.text(tag::RAW_DATA, proof.as_bytes());
        }
        writer.finish();
    }
}

/// The type of a request's message; none for what no load sends over FIX.
pub(super) fn msg_type(request: &ClientRequest) -> Option<&'static [u8]> {
    match request {
        ClientRequest::Enter { order, .. } => {
            let is_pegged = matches!(order.kind, OrderKind::Pegged { .. });
            (!is_pegged && in_force(order).is_some()).then_some(b"D")
        }
        ClientRequest::Cancel { .. } => Some(b"F"),
        ClientRequest::Amend { .. } => Some(b"G"),
        ClientRequest::MassCancel { .. } | ClientRequest::Exchange { .. } => None,
    }
}

/// Writes a request's fields behind the head.
pub(super) fn body(writer: &mut FixWriter<'_>, request: &ClientRequest, now_ns: u64) {
    match request {
        ClientRequest::Enter { client_order_id, instrument, order } => {
            writer.number(tag::CL_ORD_ID, client_order_id.0);
            new_order(writer, *instrument, order, now_ns);
        }
        ClientRequest::Cancel { client_order_id, target } => {
            writer.number(tag::ORIG_CL_ORD_ID, target.0);
            writer.number(tag::CL_ORD_ID, client_order_id.0);
            // Only names count.
            writer.letter(tag::SIDE, b'1');
            writer.time(tag::TRANSACT_TIME, now_ns);
        }
        ClientRequest::Amend { client_order_id, target, terms } => {
            writer.number(tag::ORIG_CL_ORD_ID, target.0);
            writer.number(tag::CL_ORD_ID, client_order_id.0);
            writer.letter(tag::SIDE, b'1');
            writer.time(tag::TRANSACT_TIME, now_ns);
            writer.number(tag::ORDER_QTY, terms.quantity.0);
            writer.letter(tag::ORD_TYPE, b'2');
            price(writer, terms.price);
        }
        ClientRequest::MassCancel { .. } | ClientRequest::Exchange { .. } => {}
    }
}

fn new_order(writer: &mut FixWriter<'_>, instrument: InstrumentId, order: &NewOrder, now_ns: u64) {
    // Benchmarks and drills call their instruments so.
    writer.text(tag::SYMBOL, format!("SYM{instrument}").as_bytes());
    writer.letter(tag::SIDE, if order.side == Side::Buy { b'1' } else { b'2' });
    writer.time(tag::TRANSACT_TIME, now_ns);
    writer.number(tag::ORDER_QTY, order.quantity.0);
    let is_limit = matches!(order.kind, OrderKind::Limit { .. });
    writer.letter(tag::ORD_TYPE, if is_limit { b'2' } else { b'1' });
    if let OrderKind::Limit { price: limit } = order.kind {
        price(writer, limit);
    }
    in_force(order).into_iter().for_each(|letter| writer.letter(tag::TIME_IN_FORCE, letter));
}

fn in_force(order: &NewOrder) -> Option<u8> {
    match order.time_in_force {
        TimeInForce::Day => Some(b'0'),
        TimeInForce::Ioc => Some(b'3'),
        TimeInForce::Fok => Some(b'4'),
        _ => None,
    }
}

/// Prices have four decimals.
fn price(writer: &mut FixWriter<'_>, price: Price) {
    let units = price.0.unsigned_abs();
    let sign = if price.0 < 0 { "-" } else { "" };
    writer.text(tag::PRICE, format!("{sign}{}.{:04}", units / 10_000, units % 10_000).as_bytes());
}
