//! Records of the logs.

use super::*;
use expect_test::expect;
use pares_types::Band;

#[test]
fn a_request_to_enter_an_order() {
    check(
        &recorded(Command::Enter(sell())),
        expect![[r#"
            0000  01 02 32 31 74 73 72 71 58 57 56 55 54 53 52 51
            0010  68 67 66 65 64 63 62 61 18 17 16 15 14 13 12 11
            0020  00 00 00 00 00 00 00 00 f8 26 22 00 00 00 00 00
            0030  64 00 00 00 00 00 00 00 24 23 22 21 01 02 03 01
        "#]],
    );
}

#[test]
fn a_request_to_amend_one() {
    let command = Command::Amend(Amendment::new(OrderId(id()), Price(-1), QUANTITY));
    check(
        &recorded(command),
        expect![[r#"
            0000  01 02 32 31 74 73 72 71 58 57 56 55 54 53 52 51
            0010  68 67 66 65 64 63 62 61 18 17 16 15 14 13 12 11
            0020  58 57 56 55 54 53 52 51 ff ff ff ff ff ff ff ff
            0030  64 00 00 00 00 00 00 00 24 23 22 21 02 00 00 00
        "#]],
    );
}

#[test]
fn a_request_to_cancel_one() {
    let command = Command::Cancel { target: OrderId(id()) };
    check(
        &recorded(command),
        expect![[r#"
            0000  01 02 32 31 74 73 72 71 58 57 56 55 54 53 52 51
            0010  68 67 66 65 64 63 62 61 18 17 16 15 14 13 12 11
            0020  58 57 56 55 54 53 52 51 00 00 00 00 00 00 00 00
            0030  00 00 00 00 00 00 00 00 24 23 22 21 03 00 00 00
        "#]],
    );
}

#[test]
fn a_request_to_cancel_all() {
    check(
        &recorded(Command::MassCancel { side: None }),
        expect![[r#"
            0000  01 02 32 31 74 73 72 71 58 57 56 55 54 53 52 51
            0010  68 67 66 65 64 63 62 61 18 17 16 15 14 13 12 11
            0020  00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00
            0030  00 00 00 00 00 00 00 00 24 23 22 21 04 00 00 00
        "#]],
    );
}

#[test]
fn a_result_with_a_fill_and_a_cancel() {
    let fill = Event::Fill {
        resting: OrderId(id()),
        resting_member: MemberId(0x7172_7374),
        resting_client_order_id: NAME,
        resting_side: Side::Buy,
        price: PRICE,
        quantity: QUANTITY,
        resting_remaining: Quantity(7),
    };
    let cancelled = Event::Cancelled {
        order: OrderId(id()),
        member: MemberId(0x7172_7374),
        client_order_id: NAME,
        side: Side::Sell,
        price: PRICE,
        quantity: QUANTITY,
        cause: CancelCause::Remainder,
    };
    let place = ResultPlace {
        shard: SHARD,
        epoch: Epoch(0x8182_8384),
        position: POSITION,
        venue: VenueId(0x9192),
        state_hash: 0xa1a2_a3a4_a5a6_a7a8,
    };
    let outcome = Outcome {
        status: Status::Cancelled,
        reason: Reason::NothingToTrade,
        order: OrderId(id()),
        executed: Quantity(3),
        remaining: Quantity(4),
    };
    let mut bytes = vec![0; record::result_bytes(&request(Command::Enter(sell())), 2)];
    record::write_result(&mut bytes, &place, &request(Command::Enter(sell())), &outcome, &[fill, cancelled]);
    check(
        &bytes,
        expect![[r#"
            0000  02 02 32 31 84 83 82 81 48 47 46 45 44 43 42 41
            0010  58 57 56 55 54 53 52 51 03 00 00 00 00 00 00 00
            0020  04 00 00 00 00 00 00 00 a8 a7 a6 a5 a4 a3 a2 a1
            0030  03 0b 02 00 92 91 00 00 01 02 32 31 74 73 72 71
            0040  58 57 56 55 54 53 52 51 68 67 66 65 64 63 62 61
            0050  18 17 16 15 14 13 12 11 00 00 00 00 00 00 00 00
            0060  f8 26 22 00 00 00 00 00 64 00 00 00 00 00 00 00
            0070  24 23 22 21 01 02 03 01 58 57 56 55 54 53 52 51
            0080  18 17 16 15 14 13 12 11 f8 26 22 00 00 00 00 00
            0090  64 00 00 00 00 00 00 00 07 00 00 00 00 00 00 00
            00a0  74 73 72 71 01 00 01 00 58 57 56 55 54 53 52 51
            00b0  18 17 16 15 14 13 12 11 f8 26 22 00 00 00 00 00
            00c0  64 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00
            00d0  74 73 72 71 02 03 02 00
        "#]],
    );
}

#[test]
fn orders_that_say_more_within_64_bytes() {
    let order = NewOrder {
        kind: OrderKind::Pegged { to: Peg::Best, limit: PRICE },
        time_in_force: TimeInForce::AtClose,
        self_trade: SelfTrade::CancelBoth,
        ..NewOrder::limit(Side::Buy, PRICE, QUANTITY)
    };
    check(
        &recorded(Command::Enter(order)),
        expect![[r#"
            0000  01 02 32 31 74 73 72 71 58 57 56 55 54 53 52 51
            0010  68 67 66 65 64 63 62 61 18 17 16 15 14 13 12 11
            0020  00 00 00 00 00 00 00 00 f8 26 22 00 00 00 00 00
            0030  64 00 00 00 00 00 00 00 24 23 22 21 01 01 05 37
        "#]],
    );
    check(
        &recorded(Command::MassCancel { side: Some(Side::Sell) }),
        expect![[r#"
            0000  01 02 32 31 74 73 72 71 58 57 56 55 54 53 52 51
            0010  68 67 66 65 64 63 62 61 18 17 16 15 14 13 12 11
            0020  00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00
            0030  00 00 00 00 00 00 00 00 24 23 22 21 04 02 00 00
        "#]],
    );
    check(
        &recorded(Command::TIME),
        expect![[r#"
            0000  01 02 32 31 74 73 72 71 58 57 56 55 54 53 52 51
            0010  68 67 66 65 64 63 62 61 18 17 16 15 14 13 12 11
            0020  00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00
            0030  00 00 00 00 00 00 00 00 24 23 22 21 05 00 00 00
        "#]],
    );
    check(
        &recorded(Command::RemoveInstrument),
        expect![[r#"
            0000  01 02 32 31 74 73 72 71 58 57 56 55 54 53 52 51
            0010  68 67 66 65 64 63 62 61 18 17 16 15 14 13 12 11
            0020  00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00
            0030  00 00 00 00 00 00 00 00 24 23 22 21 09 00 00 00
        "#]],
    );
}

#[test]
fn orders_and_amends_that_need_more() {
    check(
        &recorded(Command::Enter(elaborate())),
        expect![[r#"
            0000  01 02 32 31 74 73 72 71 58 57 56 55 54 53 52 51
            0010  68 67 66 65 64 63 62 61 18 17 16 15 14 13 12 11
            0020  00 00 00 00 00 00 00 00 f8 26 22 00 00 00 00 00
            0030  64 00 00 00 00 00 00 00 24 23 22 21 81 02 06 45
            0040  0a 00 00 00 00 00 00 00 14 00 00 00 00 00 00 00
            0050  fe ff ff ff ff ff ff ff b8 b7 b6 b5 b4 b3 b2 b1
            0060  01 00 00 00 00 00 00 00
        "#]],
    );
    check(
        &recorded(Command::Amend(terms().of(OrderId(id()), ClientOrderId(0)))),
        expect![[r#"
            0000  01 02 32 31 74 73 72 71 58 57 56 55 54 53 52 51
            0010  68 67 66 65 64 63 62 61 18 17 16 15 14 13 12 11
            0020  58 57 56 55 54 53 52 51 ff ff ff ff ff ff ff ff
            0030  64 00 00 00 00 00 00 00 24 23 22 21 82 00 00 04
            0040  00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00
            0050  fe ff ff ff ff ff ff ff 00 00 00 00 00 00 00 00
            0060  03 00 00 00 00 00 00 00
        "#]],
    );
}

#[test]
fn requests_of_the_exchange() {
    check(
        &recorded(Command::SetPhase(Phase::Halted)),
        expect![[r#"
            0000  01 02 32 31 74 73 72 71 58 57 56 55 54 53 52 51
            0010  68 67 66 65 64 63 62 61 18 17 16 15 14 13 12 11
            0020  00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00
            0030  00 00 00 00 00 00 00 00 24 23 22 21 86 00 00 00
            0040  00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00
            0050  00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00
            0060  00 00 00 00 00 00 07 00
        "#]],
    );
    let rule = Rule::Schedule { at_ns: 0xb1b2, phase: Some(Phase::ClosingCall) };
    check(
        &recorded(Command::SetRule(rule)),
        expect![[r#"
            0000  01 02 32 31 74 73 72 71 58 57 56 55 54 53 52 51
            0010  68 67 66 65 64 63 62 61 18 17 16 15 14 13 12 11
            0020  00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00
            0030  00 00 00 00 00 00 00 00 24 23 22 21 87 00 00 00
            0040  b2 b1 00 00 00 00 00 00 05 00 00 00 00 00 00 00
            0050  00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00
            0060  00 00 00 00 00 00 0b 00
        "#]],
    );
    check(
        &recorded(Command::AddInstrument(Symbol::new("ALFA").unwrap())),
        expect![[r#"
            0000  01 02 32 31 74 73 72 71 58 57 56 55 54 53 52 51
            0010  68 67 66 65 64 63 62 61 18 17 16 15 14 13 12 11
            0020  00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00
            0030  00 00 00 00 00 00 00 00 24 23 22 21 88 00 00 00
            0040  00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00
            0050  41 4c 46 41 00 00 00 00 00 00 00 00 00 00 00 00
            0060  00 00 00 00 00 00 00 00
        "#]],
    );
    check(
        &recorded(Command::Block { member: MemberId(0xb1b2_b3b4) }),
        expect![[r#"
            0000  01 02 32 31 74 73 72 71 58 57 56 55 54 53 52 51
            0010  68 67 66 65 64 63 62 61 18 17 16 15 14 13 12 11
            0020  00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00
            0030  00 00 00 00 00 00 00 00 24 23 22 21 8a 00 00 00
            0040  00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00
            0050  00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00
            0060  b4 b3 b2 b1 00 00 00 00
        "#]],
    );
    let day = BusinessDay(0x21_2223);
    check(
        &recorded(Command::BeginDay { day }),
        expect![[r#"
            0000  01 02 32 31 74 73 72 71 58 57 56 55 54 53 52 51
            0010  68 67 66 65 64 63 62 61 18 17 16 15 14 13 12 11
            0020  00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00
            0030  00 00 00 00 00 00 00 00 24 23 22 21 8d 00 00 00
            0040  23 22 21 00 00 00 00 00 00 00 00 00 00 00 00 00
            0050  00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00
            0060  00 00 00 00 00 00 00 00
        "#]],
    );
    check(
        &recorded(Command::EndDay { day }),
        expect![[r#"
            0000  01 02 32 31 74 73 72 71 58 57 56 55 54 53 52 51
            0010  68 67 66 65 64 63 62 61 18 17 16 15 14 13 12 11
            0020  00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00
            0030  00 00 00 00 00 00 00 00 24 23 22 21 8e 00 00 00
            0040  23 22 21 00 00 00 00 00 00 00 00 00 00 00 00 00
            0050  00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00
            0060  00 00 00 00 00 00 00 00
        "#]],
    );
    check(
        &recorded(Command::Unblock { member: MemberId(0xb1b2_b3b4) }),
        expect![[r#"
            0000  01 02 32 31 74 73 72 71 58 57 56 55 54 53 52 51
            0010  68 67 66 65 64 63 62 61 18 17 16 15 14 13 12 11
            0020  00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00
            0030  00 00 00 00 00 00 00 00 24 23 22 21 8b 00 00 00
            0040  00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00
            0050  00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00
            0060  b4 b3 b2 b1 00 00 00 00
        "#]],
    );
    let proposal = Proposal {
        instrument: InstrumentId(0xe1e2_e3e4),
        kind: 3,
        operand: 0xf1f2_f3f4,
        detail: 0xd1d2_d3d4_d5d6_d7d8_d9da_dbdc_ddde_dfd0,
    };
    let entry = Entry::Propose(proposal);
    let change = Registration { member: MemberId(0), session: 0x8182, entry };
    check(
        &recorded(Command::Register(change)),
        expect![[r#"
            0000  01 02 32 31 74 73 72 71 58 57 56 55 54 53 52 51
            0010  68 67 66 65 64 63 62 61 18 17 16 15 14 13 12 11
            0020  00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00
            0030  00 00 00 00 00 00 00 00 24 23 22 21 8f 00 00 00
            0040  e4 e3 e2 e1 f4 f3 f2 f1 d0 df de dd dc db da d9
            0050  d8 d7 d6 d5 d4 d3 d2 d1 03 00 00 00 00 00 00 00
            0060  00 00 00 00 82 81 09 00
        "#]],
    );
    let entry = Entry::ListInstrument(InstrumentId(0xe1e2_e3e4));
    check(
        &recorded(Command::Register(Registration { member: MemberId(7), session: 0x8182, entry })),
        expect![[r#"
            0000  01 02 32 31 74 73 72 71 58 57 56 55 54 53 52 51
            0010  68 67 66 65 64 63 62 61 18 17 16 15 14 13 12 11
            0020  00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00
            0030  00 00 00 00 00 00 00 00 24 23 22 21 8f 00 00 00
            0040  e4 e3 e2 e1 00 00 00 00 00 00 00 00 00 00 00 00
            0050  00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00
            0060  07 00 00 00 82 81 0a 00
        "#]],
    );
    check(
        &recorded(Command::Bust(trade_to_bust())),
        expect![[r#"
            0000  01 02 32 31 74 73 72 71 58 57 56 55 54 53 52 51
            0010  68 67 66 65 64 63 62 61 18 17 16 15 14 13 12 11
            0020  58 57 56 55 54 53 52 51 f8 26 22 00 00 00 00 00
            0030  64 00 00 00 00 00 00 00 24 23 22 21 8c 00 00 00
            0040  48 47 46 45 44 43 42 41 02 00 00 00 00 00 01 00
            0050  0b 00 00 00 00 00 00 00 15 00 00 00 00 00 00 00
            0060  01 00 00 00 02 00 00 00 d2 d1 02 00 00 00 00 00
        "#]],
    );
}

/// Rules are told by a code and two operands, in records and frames alike.
#[test]
fn the_codes_of_rules() {
    let (first, second) = (Price(5), Price(6));
    let rules = [
        Rule::PriceRange { min: first, max: second },
        Rule::Tick { from: first, tick: second },
        Rule::Lot(Quantity(5)),
        Rule::QuantityMax(Quantity(5)),
        Rule::ValueMax(5),
        Rule::OrdersMax(5),
        Rule::StepMax(5),
        Rule::StaticBand(Band { width: 5, least: second }),
        Rule::DynamicBand(Band { width: 5, least: second }),
        Rule::CallTime { ns: 5 },
        Rule::Schedule { at_ns: 5, phase: None },
        Rule::Reference(first),
        Rule::Extension { ns: 5, max: 6, market: false },
        Rule::AuctionMin(Quantity(5)),
    ];
    for (rule, code) in rules.into_iter().zip(1..) {
        let bytes = recorded(Command::SetRule(rule));
        assert_eq!((bytes[64], bytes[102]), (5, code), "{rule:?}");
        let has_second = matches!(code, 1 | 2 | 8 | 9 | 13);
        assert_eq!(bytes[72], if has_second { 6 } else { 0 }, "{rule:?}");
    }
}

#[test]
fn the_other_events_of_a_result() {
    let (order, member, client_order_id) = (OrderId(id()), MemberId(0x7172_7374), NAME);
    let (side, price, quantity) = (Side::Sell, PRICE, QUANTITY);
    let cause = IncomingCause::Repriced;
    let busted = trade_to_bust();
    let events = [
        Event::Incoming { order, member, client_order_id, side, price, quantity, cause },
        Event::Rested {
            order,
            member,
            client_order_id,
            side,
            price,
            quantity,
            shown: Quantity(7),
            cause: RestCause::Refilled,
        },
        Event::PhaseEntered {
            phase: Phase::VolatilityCall,
            until: Timestamp(0xb1b2),
            reference: Some(price),
        },
        Event::PhaseEntered { phase: Phase::Halted, until: Timestamp::NEVER, reference: None },
        Event::Auction { price, quantity, surplus: Quantity(7), surplus_side: side, firm: true },
        Event::Busted {
            resting: busted.resting,
            incoming: busted.incoming,
            position: busted.position,
            index: busted.index,
            price,
            quantity,
        },
        Event::Instrument(INSTRUMENT),
        Event::DayPrices { open: Price(1), high: Price(2), low: Price(3), last: Price(4) },
        Event::DayVolume { closing: Some(price), quantity, trades: 9 },
        Event::DayEnded {
            day: BusinessDay(0x21_2223),
            requests: 1,
            orders: 2,
            trades: 3,
            quantity,
            state_hash: 0xf1f2_f3f4_f5f6_f7f8,
        },
    ];
    let request = request(Command::TIME);
    let order = OrderId(id());
    let (status, reason) = (Status::Accepted, Reason::Unfinished);
    let (executed, remaining) = (Quantity::ZERO, Quantity::ZERO);
    let outcome = Outcome { status, reason, order, executed, remaining };
    let place =
        ResultPlace { shard: SHARD, epoch: Epoch(1), position: POSITION, venue: VenueId(0), state_hash: 0 };
    let mut bytes = vec![0; record::result_bytes(&request, events.len())];
    record::write_result(&mut bytes, &place, &request, &outcome, &events);
    check(
        &bytes[120..],
        expect![[r#"
            0000  58 57 56 55 54 53 52 51 18 17 16 15 14 13 12 11
            0010  f8 26 22 00 00 00 00 00 64 00 00 00 00 00 00 00
            0020  00 00 00 00 00 00 00 00 74 73 72 71 03 02 02 00
            0030  58 57 56 55 54 53 52 51 18 17 16 15 14 13 12 11
            0040  f8 26 22 00 00 00 00 00 64 00 00 00 00 00 00 00
            0050  07 00 00 00 00 00 00 00 74 73 72 71 04 03 02 00
            0060  00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00
            0070  f8 26 22 00 00 00 00 00 b2 b1 00 00 00 00 00 00
            0080  00 00 00 00 00 00 00 00 00 00 00 00 05 04 00 01
            0090  00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00
            00a0  00 00 00 00 00 00 00 00 ff ff ff ff ff ff ff ff
            00b0  00 00 00 00 00 00 00 00 00 00 00 00 05 07 00 00
            00c0  00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00
            00d0  f8 26 22 00 00 00 00 00 64 00 00 00 00 00 00 00
            00e0  07 00 00 00 00 00 00 00 00 00 00 00 06 00 02 01
            00f0  58 57 56 55 54 53 52 51 02 00 00 00 00 00 01 00
            0100  f8 26 22 00 00 00 00 00 64 00 00 00 00 00 00 00
            0110  48 47 46 45 44 43 42 41 d2 d1 00 00 07 00 00 00
            0120  00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00
            0130  00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00
            0140  00 00 00 00 00 00 00 00 24 23 22 21 08 00 00 00
            0150  01 00 00 00 00 00 00 00 02 00 00 00 00 00 00 00
            0160  04 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00
            0170  03 00 00 00 00 00 00 00 00 00 00 00 09 00 00 00
            0180  00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00
            0190  f8 26 22 00 00 00 00 00 64 00 00 00 00 00 00 00
            01a0  09 00 00 00 00 00 00 00 00 00 00 00 0a 00 00 01
            01b0  02 00 00 00 00 00 00 00 01 00 00 00 00 00 00 00
            01c0  f8 f7 f6 f5 f4 f3 f2 f1 64 00 00 00 00 00 00 00
            01d0  03 00 00 00 00 00 00 00 23 22 21 00 0b 00 00 00
        "#]],
    );
}

#[test]
fn a_checkpoint_chunk() {
    let chunk = CheckpointChunk {
        schema: record::CHECKPOINT_CHUNK,
        version: record::VERSION,
        shard: SHARD.0.into(),
        epoch: 0x8182_8384.into(),
        position: POSITION.0.into(),
        total_bytes: 0xb1b2_b3b4.into(),
        start: 0xc1c2_c3c4.into(),
    };
    check(
        chunk.as_bytes(),
        expect![[r#"
            0000  03 02 32 31 84 83 82 81 48 47 46 45 44 43 42 41
            0010  b4 b3 b2 b1 c4 c3 c2 c1
        "#]],
    );
}

#[test]
fn a_checkpoint_stored() {
    let stored = CheckpointStored {
        schema: record::CHECKPOINT_STORED,
        version: record::VERSION,
        shard: SHARD.0.into(),
        epoch: 0x8182_8384.into(),
        position: POSITION.0.into(),
    };
    check(
        stored.as_bytes(),
        expect![[r#"
            0000  04 02 32 31 84 83 82 81 48 47 46 45 44 43 42 41
        "#]],
    );
}

/// Its fields might mean something else: a cancelled order of version 1 has no side and no price.
#[test]
fn a_record_of_another_version_is_refused_by_its_version() {
    let mut bytes = recorded(Command::MassCancel { side: None });
    bytes[1] = 1;
    let refused = record::RequestRecord::read(&bytes);
    assert_eq!(
        refused.err(),
        Some(pares_wire::WireError::UnknownSchema { schema: record::REQUEST, version: 1 })
    );
}

#[test]
fn a_session_mark() {
    let mark = SessionMark {
        member: MemberId(0x8182_8384),
        session: 0x9192,
        next_in: 0xa1a2,
        out_max: 0xb1b2,
        copied: Some(MemberId(0x6162_6364)),
        told: vec![(SHARD, 0xc1c2)],
    };
    let marked = SessionMarkRecord { reign: 0xd1d2, gateway: GatewayId(0xe1e2), mark };
    check(
        &marked.bytes(),
        expect![[r#"
        0000  05 02 92 91 84 83 82 81 a2 a1 00 00 00 00 00 00
        0010  b2 b1 00 00 00 00 00 00 d2 d1 00 00 e2 e1 01 00
        0020  c2 c1 00 00 00 00 00 00 32 31 64 63 62 61 00 00
    "#]],
    );
    assert_eq!(SessionMarkRecord::read(&marked.bytes()), Ok(marked));
}
