//! What people are shown, and what they may write.

use pares_history::{OrderRow, Page};
use pares_log::{Config, Writer};
use pares_types::{Price, Quantity, ShardId, Timestamp};

use super::*;
use print::Symbols;

fn order(price: Price) -> OrderRow {
    OrderRow {
        id: OrderId(RequestId::new(GatewayId(0), 1)),
        member: MemberId(1),
        client_order_id: ClientOrderId(1),
        instrument: InstrumentId(1),
        side: "sell".into(),
        kind: "limit".into(),
        time_in_force: "day".into(),
        post_only: false,
        price: Some(price),
        quantity: Quantity(1),
        executed: Quantity(0),
        remaining: Quantity(1),
        status: "resting".into(),
        reason: "none".into(),
        shard: ShardId(0),
        position: Position(1),
        stamp: Timestamp(0),
        changed_position: Position(1),
        changed_stamp: Timestamp(0),
        display: None,
        minimum: None,
        trigger: None,
        until: None,
    }
}

#[test]
fn prices_are_shown_in_currency() {
    let symbols = Symbols::of(&SystemConfig::default(), Vec::new());
    let found = Page { rows: vec![order(Price(2_238_200))], more: false };
    let json: serde_json::Value = serde_json::from_str(&print::orders(&found, &symbols, true)).unwrap();
    assert_eq!(
        (&json["orders"][0]["price"], &json["orders"][0]["symbol"]),
        (&"223.8200".into(), &"ALFA".into())
    );
    assert!(print::orders(&found, &symbols, false).contains("  223.8200  "));
}

#[test]
fn the_recorder_with_the_most_records_is_asked() {
    let dir = tempfile::tempdir().unwrap();
    let open = |name| Writer::open(&dir.path().join(name), Config::default()).unwrap().0;
    let (_shorter, mut longer) = (open("recorder-0"), open("recorder-1"));
    let (config, layout) = (SystemConfig::default(), Layout::new(dir.path()));
    assert_eq!(recorder(None, &config, &layout).unwrap().0, 0);
    assert!(longer.append(b"x").is_ok());
    longer.publish();
    assert_eq!(recorder(None, &config, &layout).unwrap().0, 1);
    assert_eq!(recorder(Some(RecorderId(0)), &config, &layout).unwrap().0, 0);
    assert!(recorder(Some(RecorderId(2)), &config, &layout).is_err());
}

#[test]
fn a_recorder_is_named_as_a_node_or_by_its_number() {
    assert_eq!((recorder_id("recorder-1"), recorder_id("1")), (Ok(RecorderId(1)), Ok(RecorderId(1))));
    for wrong in ["venue-0", "recorder", "x"] {
        assert!(recorder_id(wrong).unwrap_err().contains("recorder-0"), "{wrong}");
    }
}

#[test]
fn a_trade_that_was_declared_void_has_a_column_that_says_so() {
    let order = |sequence| (OrderId(RequestId::new(GatewayId(0), sequence)), MemberId(1));
    let trade = TradeRow {
        shard: ShardId(0),
        position: Position(1),
        number: 0,
        instrument: InstrumentId(1),
        price: Price(100_000),
        quantity: Quantity(1),
        buy: order(1),
        sell: order(2),
        aggressor: "buy".into(),
        stamp: Timestamp(0),
        busted: true,
    };
    let symbols = Symbols::of(&SystemConfig::default(), Vec::new());
    let table = print::trades(&Page { rows: vec![trade], more: false }, &symbols, false);
    let lines: Vec<&str> = table.lines().collect();
    assert!(lines[0].ends_with("busted") && lines[1].ends_with("yes"), "{table}");
}

#[test]
fn instruments_go_by_symbol_or_id() {
    let symbols = Symbols::of(&SystemConfig::default(), Vec::new());
    assert_eq!(instrument("bravo", &symbols).unwrap(), InstrumentId(2));
    assert_eq!(instrument("2", &symbols).unwrap(), InstrumentId(2));
    assert!(instrument("ZULU", &symbols).unwrap_err().to_string().contains("ALFA, BRAVO"));
}

#[test]
fn order_ids_are_read_as_they_print() {
    let id = OrderId(RequestId::new(GatewayId(3), 17));
    assert_eq!(order_id(&id.to_string()), Ok(id));
    for wrong in ["17", "0:0", "x:1", "0:281474976710656"] {
        assert!(order_id(wrong).is_err(), "{wrong}");
    }
}
