//! Every kind of question.

use super::*;

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
fn of_an_instrument_added_twice_the_last_symbol_counts() {
    let mut day = Day::new();
    for symbol in ["OLDER", "ZULU"] {
        day.ask(0, 2, Command::AddInstrument(Symbol::new(symbol).unwrap()));
    }
    let added = day.index().added().unwrap();
    assert_eq!(added.last().unwrap(), &(InstrumentId(2), "ZULU".to_owned()));
}
