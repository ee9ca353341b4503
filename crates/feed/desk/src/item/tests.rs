//! Items: what is written is read, and the bytes are frozen.

use super::*;
use pares_types::{ClientOrderId, GatewayId, InstrumentId, Price, Quantity, Reason, Reply};
use pares_wire::frame as entry;

const REQUEST: fn() -> RequestId = || RequestId::new(GatewayId(1), 0x0203);

fn submitted(kind: u8, body: &[u8]) -> SubmittedItem<'_> {
    let name = ItemName { trader: TraderId(7), number: 9 };
    SubmittedItem { name, request: REQUEST(), stamp_ns: 0x0102, kind, body }
}

fn bodies() -> Vec<ItemBody<'static>> {
    let (to, instrument) = (TraderId(2), InstrumentId(3));
    vec![
        ItemBody::Message { to, text: "sälu" },
        ItemBody::Note { instrument, text: "" },
        ItemBody::QuoteRequest { to, instrument, quantity: Quantity(500) },
        ItemBody::IndicativeQuote {
            to,
            instrument,
            bid: (Price(-1), Quantity(10)),
            offer: (Price(2), Quantity(0)),
            answers: 8,
        },
        ItemBody::Report { shard: ShardId(4), frame: &[1, 2, 3] },
    ]
}

#[test]
fn every_body_is_read_as_it_was_written() {
    for body in bodies() {
        let mut bytes = Vec::new();
        body.write(&mut bytes);
        assert_eq!(ItemBody::read(body.kind(), &bytes), Ok(body));
    }
}

#[test]
fn an_ordered_item_is_read_as_it_was_written() {
    for repeats in [None, Some(Position(1))] {
        let ordered =
            OrderedItem { epoch: Epoch(2), position: Position(5), repeats, item: submitted(1, b"body") };
        let mut bytes = Vec::new();
        ordered.write(&mut bytes);
        assert_eq!(OrderedItem::read(&bytes), Ok(ordered));
    }
}

#[test]
fn the_bytes_of_an_ordered_message_stay_as_they_are() {
    let mut body = Vec::new();
    ItemBody::Message { to: TraderId(2), text: "hi" }.write(&mut body);
    let ordered =
        OrderedItem { epoch: Epoch(2), position: Position(5), repeats: None, item: submitted(1, &body) };
    let mut bytes = Vec::new();
    ordered.write(&mut bytes);
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let golden = "2201000002000000" // schema, version, flags; epoch
        .to_owned()
        + "05000000000000000500000000000000" // position, first
        + "2101010007000000" // schema, version, kind; trader
        + "0900000000000000" // number
        + "0302000000000100" // request: sequence, server
        + "0201000000000000" // stamp
        + "020000006869"; // to, text
    assert_eq!(hex, golden);
}

#[test]
fn a_report_is_read_back_as_what_the_exchange_told() {
    let reply = Reply::Rejected { client_order_id: ClientOrderId(4), reason: Reason::NotKept };
    let mut frame = Vec::new();
    entry::write_reply(&mut frame, &reply);
    assert_eq!(ItemBody::Report { shard: ShardId(0), frame: &frame }.reply(), Some(reply));
    assert_eq!(ItemBody::Report { shard: ShardId(0), frame: &frame[..3] }.reply(), None);
}

#[test]
fn cut_bytes_are_no_items_and_no_bytes_cause_a_panic() {
    let mut body = Vec::new();
    ItemBody::QuoteRequest { to: TraderId(0), instrument: InstrumentId(1), quantity: Quantity(1) }
        .write(&mut body);
    let ordered =
        OrderedItem { epoch: Epoch(1), position: Position(0), repeats: None, item: submitted(3, &body) };
    let mut bytes = Vec::new();
    ordered.write(&mut bytes);
    for length in 0..bytes.len() {
        let read = OrderedItem::read(&bytes[..length]).and_then(|read| read.item.says());
        assert!(read.is_err(), "{length}");
    }
    assert!(matches!(ItemBody::read(1, &[0, 0, 0, 0, 0xff]), Err(ItemError::Field("text"))));
    assert!(matches!(ItemBody::read(9, &[]), Err(ItemError::Unknown { kind: 9, .. })));
}
