//! Every kind of question.

use super::*;
use crate::commands::history;

#[test]
fn orders_are_found_by_each_condition_and_by_all_together() {
    let index = busy_day().index();
    let none = Filter::default;
    assert_eq!(orders(&index, none()), [6, 5, 4, 3, 2, 1]);
    assert_eq!(orders(&index, Filter { instrument: Some(InstrumentId(2)), ..none() }), [4, 3]);
    assert_eq!(orders(&index, Filter { member: Some(MemberId(3)), ..none() }), [6, 5, 4]);
    assert_eq!(orders(&index, Filter { client_order_id: Some(ClientOrderId(2_002)), ..none() }), [2]);
    assert_eq!(orders(&index, Filter { status: Some("resting".into()), ..none() }), [6, 5, 1]);
    let (from, to) = (Some(Timestamp(2_000_000_000)), Some(Timestamp(4_000_000_000)));
    assert_eq!(orders(&index, Filter { from, to, ..none() }), [3, 2]);
    let (instrument, member) = (Some(InstrumentId(1)), Some(MemberId(3)));
    assert_eq!(orders(&index, Filter { instrument, member, from, ..none() }), [6, 5]);
}

#[test]
fn trades_are_found_by_each_condition() {
    let index = busy_day().index();
    let none = Filter::default;
    assert_eq!(trades(&index, none()), [(3, 4), (2, 1)]);
    assert_eq!(trades(&index, Filter { instrument: Some(InstrumentId(1)), ..none() }), [(2, 1)]);
    assert_eq!(trades(&index, Filter { member: Some(MemberId(1)), ..none() }), [(3, 4), (2, 1)]);
    assert_eq!(trades(&index, Filter { member: Some(MemberId(2)), ..none() }), [(2, 1)]);
    assert_eq!(trades(&index, Filter { to: Some(Timestamp(3_000_000_000)), ..none() }), [(2, 1)]);
    let order = Some(OrderId(RequestId::new(GatewayId(0), 4)));
    assert_eq!(trades(&index, Filter { order, ..none() }), [(3, 4)]);
    let client_order_id = Some(ClientOrderId(1_001));
    assert_eq!(trades(&index, Filter { client_order_id, member: Some(MemberId(1)), ..none() }), [(2, 1)]);
    // Member 2 was on the other side of that order's trade, but the name is not member 2's.
    assert_eq!(trades(&index, Filter { client_order_id, member: Some(MemberId(2)), ..none() }), []);
}

#[test]
fn the_limit_cuts_and_says_so() {
    let index = busy_day().index();
    let found = |limit| index.orders(&Filter { limit, ..Filter::default() }).unwrap();
    assert_eq!((found(2).rows.len(), found(2).more), (2, true));
    assert_eq!((found(6).rows.len(), found(6).more), (6, false));
}

#[test]
fn prices_are_shown_in_currency() {
    let mut day = Day::new();
    day.limit(1, 1, Side::Sell, 1, 2_238_200);
    let (symbols, found) = (Symbols::of(&SystemConfig::default()), day.index().orders(&Filter::default()));
    let found = found.unwrap();
    let json: serde_json::Value = serde_json::from_str(&print::orders(&found, &symbols, true)).unwrap();
    assert_eq!(
        (&json["orders"][0]["price"], &json["orders"][0]["symbol"]),
        (&"223.8200".into(), &"ALFA".into())
    );
    assert!(print::orders(&found, &symbols, false).contains("  223.8200  "));
}

#[test]
fn the_recorder_with_the_most_records_is_asked() {
    let day = busy_day();
    let (mut longer, _) = Writer::open(&day.dir.path().join("recorder-1"), Config::default()).unwrap();
    let (config, layout) = (SystemConfig::default(), Layout::new(day.dir.path()));
    assert_eq!(history::recorder(None, &config, &layout).unwrap().0, 0);
    (0..7).for_each(|_| assert!(longer.append(b"x").is_ok()));
    longer.publish();
    assert_eq!(history::recorder(None, &config, &layout).unwrap().0, 1);
    assert_eq!(history::recorder(Some(0), &config, &layout).unwrap().0, 0);
    assert!(history::recorder(Some(2), &config, &layout).is_err());
}

#[test]
fn instruments_go_by_symbol_or_id() {
    let symbols = Symbols::of(&SystemConfig::default());
    assert_eq!(history::instrument("bravo", &symbols).unwrap(), InstrumentId(2));
    assert_eq!(history::instrument("2", &symbols).unwrap(), InstrumentId(2));
    assert!(history::instrument("ZULU", &symbols).unwrap_err().to_string().contains("ALFA, BRAVO"));
}

#[test]
fn order_ids_are_read_as_they_print() {
    let id = OrderId(RequestId::new(GatewayId(3), 17));
    assert_eq!(history::order_id(&id.to_string()), Ok(id));
    for wrong in ["17", "0:0", "x:1", "0:281474976710656"] {
        assert!(history::order_id(wrong).is_err(), "{wrong}");
    }
}
