//! Questions and their answers: the status of an order, lists, limits.

use super::*;

fn status_told(key: OrderKey, status: Option<OrderStatus>) -> Vec<u8> {
    let mut bytes = Vec::new();
    frame::write_order_status(&mut bytes, key, status);
    let (kind, body, _) = frame::split(&bytes).expect("it is legal").expect("it is whole");
    assert_eq!(frame::decode_gateway(kind, body), Ok(frame::GatewayFrame::OrderStatus(key, status)));
    bytes
}

#[test]
fn order_status_request() {
    for (name, key) in [
        ("order_status_request name", OrderKey::Name(NAME)),
        ("order_status_request id", OrderKey::Id(OrderId(id()))),
    ] {
        let mut bytes = Vec::new();
        frame::write_order_status_request(&mut bytes, key);
        check(name, &bytes);
        let (kind, body, _) = frame::split(&bytes).unwrap().unwrap();
        assert_eq!(frame::decode_client(kind, body), Ok(frame::ClientFrame::OrderStatusRequest(key)));
        let both = [1; 16];
        assert!(frame::decode_client(kind, &both).is_err(), "either the name or the id");
    }
}

#[test]
fn order_status() {
    let status = OrderStatus {
        client_order_id: NAME,
        order: OrderId(id()),
        instrument: INSTRUMENT,
        shard: SHARD,
        next: POSITION,
        state: OrderState::Working,
        remaining: QUANTITY,
        side: Some(Side::Sell),
        executed: Quantity(0x9192),
    };
    check("order_status name", &status_told(OrderKey::Name(NAME), Some(status)));
    check("order_status id", &status_told(OrderKey::Id(OrderId(id())), None));
}

fn read(bytes: &[u8]) -> frame::GatewayFrame {
    let (kind, body, _) = frame::split(bytes).expect("it is legal").expect("it is whole");
    frame::decode_gateway(kind, body).expect("it is readable")
}

#[test]
fn list_request_and_its_end() {
    for (instrument, list) in [(None, List::Orders), (Some(INSTRUMENT), List::Instruments)] {
        let request = ListRequest { token: NUMBER, list, instrument };
        let mut bytes = Vec::new();
        frame::write_list_request(&mut bytes, &request);
        let (kind, body, _) = frame::split(&bytes).unwrap().unwrap();
        assert_eq!(frame::decode_client(kind, body), Ok(frame::ClientFrame::ListRequest(request)));
        let end = ListEnd { request, count: 0x6162_6364, reason: Reason::AlreadyAsked };
        let before = bytes.len();
        frame::write_list_end(&mut bytes, &end);
        assert_eq!(read(&bytes[before..]), frame::GatewayFrame::ListEnd(end));
        if list == List::Instruments {
            check("list_request_and_its_end", &bytes);
        }
    }
    assert!(frame::decode_client(28, &[9; 16]).is_err(), "no such list");
}

#[test]
fn instrument_status_and_tick_row() {
    let status = InstrumentStatus {
        instrument: INSTRUMENT,
        symbol: Symbol::new("KNOT").unwrap(),
        shard: SHARD,
        next: POSITION,
        phase: Phase::OpeningCall,
        quarantined: true,
        last: Some(PRICE),
        reference: None,
        lot: Quantity(1),
        quantity_max: QUANTITY,
        value_max: 0x6162_6364_6566_6768,
        price_min: Price(-2),
        price_max: PRICE,
        orders_max: 0x7172_7374,
        static_band: 500,
        dynamic_band: 300,
        call_ns: NUMBER,
        tick_rows: 2,
    };
    let mut bytes = Vec::new();
    frame::write_instrument_status(&mut bytes, &status);
    assert_eq!(read(&bytes), frame::GatewayFrame::InstrumentStatus(status));
    let before = bytes.len();
    frame::write_tick_row(&mut bytes, INSTRUMENT, Price(-2), Price(100));
    let row = frame::GatewayFrame::TickRow { instrument: INSTRUMENT, from: Price(-2), tick: Price(100) };
    assert_eq!(read(&bytes[before..]), row);
    check("instrument_status_and_tick_row", &bytes);
}

#[test]
fn limits_request_and_own_limits() {
    let mut bytes = Vec::new();
    frame::write_limits_request(&mut bytes, NUMBER);
    let (kind, body, _) = frame::split(&bytes).unwrap().unwrap();
    assert_eq!(frame::decode_client(kind, body), Ok(frame::ClientFrame::LimitsRequest { token: NUMBER }));
    let own = OwnLimits {
        token: NUMBER,
        next: POSITION,
        member: MemberId(0x7172_7374),
        session: 0x5152,
        rights: Rights::TRADING,
        limits: Limits { quantity_max: 1, value_max: 2, collar: 3, orders_max: 4, rate_max: 5, burst_max: 6 },
        position_max: 11,
        orders: 7,
        in_flight: 8,
        in_flight_max: 9,
    };
    let before = bytes.len();
    frame::write_own_limits(&mut bytes, &own);
    assert_eq!(read(&bytes[before..]), frame::GatewayFrame::OwnLimits(own));
    check("limits_request_and_own_limits", &bytes);
}
