//! Questions and their answers: the status of an order, lists, limits.

use super::*;
use expect_test::expect;

fn status_told(key: OrderKey, status: Option<OrderStatus>) -> Vec<u8> {
    let mut bytes = Vec::new();
    frame::write_order_status(&mut bytes, key, status);
    let (kind, body, _) = frame::split(&bytes).expect("it is legal").expect("it is whole");
    assert_eq!(frame::decode_gateway(kind, body), Ok(frame::GatewayFrame::OrderStatus(key, status)));
    bytes
}

#[test]
fn order_status_request() {
    for (key, expected) in [
        (
            OrderKey::Name(NAME),
            expect![[r#"
                0000  14 00 1b 01 18 17 16 15 14 13 12 11 00 00 00 00
                0010  00 00 00 00
            "#]],
        ),
        (
            OrderKey::Id(OrderId(id())),
            expect![[r#"
                0000  14 00 1b 01 00 00 00 00 00 00 00 00 58 57 56 55
                0010  54 53 52 51
            "#]],
        ),
    ] {
        let mut bytes = Vec::new();
        frame::write_order_status_request(&mut bytes, key);
        check(&bytes, expected);
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
    check(
        &status_told(OrderKey::Name(NAME), Some(status)),
        expect![[r#"
            0000  34 00 92 01 18 17 16 15 14 13 12 11 58 57 56 55
            0010  54 53 52 51 48 47 46 45 44 43 42 41 64 00 00 00
            0020  00 00 00 00 24 23 22 21 32 31 02 02 92 91 00 00
            0030  00 00 00 00
        "#]],
    );
    check(
        &status_told(OrderKey::Id(OrderId(id())), None),
        expect![[r#"
            0000  34 00 92 01 00 00 00 00 00 00 00 00 58 57 56 55
            0010  54 53 52 51 00 00 00 00 00 00 00 00 00 00 00 00
            0020  00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00
            0030  00 00 00 00
        "#]],
    );
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
            check(
                &bytes,
                expect![[r#"
                0000  14 00 1c 01 a8 a7 a6 a5 a4 a3 a2 a1 24 23 22 21
                0010  02 00 00 00 1c 00 93 01 a8 a7 a6 a5 a4 a3 a2 a1
                0020  64 63 62 61 24 23 22 21 02 38 00 00 00 00 00 00
            "#]],
            );
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
    check(
        &bytes,
        expect![[r#"
        0000  74 00 95 01 4b 4e 4f 54 00 00 00 00 00 00 00 00
        0010  00 00 00 00 48 47 46 45 44 43 42 41 01 00 00 00
        0020  00 00 00 00 64 00 00 00 00 00 00 00 68 67 66 65
        0030  64 63 62 61 fe ff ff ff ff ff ff ff f8 26 22 00
        0040  00 00 00 00 f8 26 22 00 00 00 00 00 00 00 00 00
        0050  00 00 00 00 a8 a7 a6 a5 a4 a3 a2 a1 24 23 22 21
        0060  74 73 72 71 f4 01 00 00 2c 01 00 00 32 31 02 05
        0070  02 00 00 00 1c 00 96 01 fe ff ff ff ff ff ff ff
        0080  64 00 00 00 00 00 00 00 24 23 22 21 00 00 00 00
    "#]],
    );
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
    check(
        &bytes,
        expect![[r#"
        0000  0c 00 1d 01 a8 a7 a6 a5 a4 a3 a2 a1 54 00 97 01
        0010  a8 a7 a6 a5 a4 a3 a2 a1 48 47 46 45 44 43 42 41
        0020  01 00 00 00 00 00 00 00 02 00 00 00 00 00 00 00
        0030  0b 00 00 00 00 00 00 00 74 73 72 71 e7 00 00 00
        0040  03 00 00 00 04 00 00 00 05 00 00 00 06 00 00 00
        0050  07 00 00 00 08 00 00 00 09 00 52 51 00 00 00 00
    "#]],
    );
}
