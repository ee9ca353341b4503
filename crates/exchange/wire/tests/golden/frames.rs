//! Frames of the order entry protocol.

use super::*;
use expect_test::expect;

#[test]
fn sign_on() {
    let sign_on = SignOn {
        member: 0x7172_7374.into(),
        flags: frame::SIGN_ON_JOURNALLED.into(),
        token: 0xd1d2_d3d4_d5d6_d7d8.into(),
        session: 0.into(),
        heartbeat_ms: 0x4142_4344.into(),
        reserved: [0; 26],
    };
    check(
        &framed(&sign_on),
        expect![[r#"
            0000  34 00 01 01 74 73 72 71 01 00 00 00 d8 d7 d6 d5
            0010  d4 d3 d2 d1 00 00 44 43 42 41 00 00 00 00 00 00
            0020  00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00
            0030  00 00 00 00
        "#]],
    );
}

#[test]
fn enter_order() {
    let request = ClientRequest::Enter { client_order_id: NAME, instrument: INSTRUMENT, order: sell() };
    check(
        &asked(&request),
        expect![[r#"
        0000  24 00 02 01 18 17 16 15 14 13 12 11 f8 26 22 00
        0010  00 00 00 00 64 00 00 00 00 00 00 00 24 23 22 21
        0020  02 03 01 00
    "#]],
    );
}

#[test]
fn amend_order() {
    let target = ClientOrderId(2);
    let request =
        ClientRequest::Amend { client_order_id: NAME, target, terms: NewTerms::new(Price(-1), QUANTITY) };
    check(
        &asked(&request),
        expect![[r#"
        0000  24 00 03 01 18 17 16 15 14 13 12 11 02 00 00 00
        0010  00 00 00 00 ff ff ff ff ff ff ff ff 64 00 00 00
        0020  00 00 00 00
    "#]],
    );
}

#[test]
fn cancel_order() {
    let request = ClientRequest::Cancel { client_order_id: NAME, target: ClientOrderId(2) };
    check(
        &asked(&request),
        expect![[r#"
        0000  14 00 04 01 18 17 16 15 14 13 12 11 02 00 00 00
        0010  00 00 00 00
    "#]],
    );
}

#[test]
fn mass_cancel() {
    let request = ClientRequest::MassCancel { client_order_id: NAME, instrument: INSTRUMENT, side: None };
    check(
        &asked(&request),
        expect![[r#"
        0000  14 00 05 01 18 17 16 15 14 13 12 11 24 23 22 21
        0010  00 00 00 00
    "#]],
    );
}

#[test]
fn ping_and_pong() {
    check(
        &framed(&Ping { token: 0xd1d2_d3d4_d5d6_d7d8.into() }),
        expect![[r#"
        0000  0c 00 06 01 d8 d7 d6 d5 d4 d3 d2 d1
    "#]],
    );
    check(
        &framed(&Pong { token: 0xd1d2_d3d4_d5d6_d7d8.into() }),
        expect![[r#"
        0000  0c 00 87 01 d8 d7 d6 d5 d4 d3 d2 d1
    "#]],
    );
}

#[test]
fn signed_on() {
    let signed_on = SignedOn {
        token: 0xd1d2_d3d4_d5d6_d7d8.into(),
        gateway: 0x5152.into(),
        in_flight_max: 0xe1e2.into(),
        member: 0x7172_7374.into(),
        heartbeat_ms: 0x4142_4344.into(),
        copied: 0x6162_6364.into(),
    };
    check(
        &framed(&signed_on),
        expect![[r#"
            0000  1c 00 81 01 d8 d7 d6 d5 d4 d3 d2 d1 52 51 e2 e1
            0010  74 73 72 71 44 43 42 41 64 63 62 61
        "#]],
    );
}

#[test]
fn journalled_and_rejected() {
    check(
        &told(&Reply::Journalled { client_order_id: NAME, request: id() }),
        expect![[r#"
        0000  14 00 82 01 18 17 16 15 14 13 12 11 58 57 56 55
        0010  54 53 52 51
    "#]],
    );
    check(
        &told(&Reply::Rejected { client_order_id: NAME, reason: Reason::Overloaded }),
        expect![[r#"
        0000  14 00 86 01 18 17 16 15 14 13 12 11 11 00 00 00
        0010  00 00 00 00
    "#]],
    );
}

#[test]
fn answer() {
    let answer = Answer {
        client_order_id: NAME,
        request: id(),
        order: OrderId(id()),
        shard: SHARD,
        position: POSITION,
        instrument: INSTRUMENT,
        status: Status::Cancelled,
        reason: Reason::NothingToTrade,
        executed: Quantity(3),
        remaining: Quantity(4),
        events: 5,
        repeat: true,
        number: NUMBER,
    };
    check(
        &told(&Reply::Answer(answer)),
        expect![[r#"
            0000  4c 00 83 01 18 17 16 15 14 13 12 11 58 57 56 55
            0010  54 53 52 51 58 57 56 55 54 53 52 51 48 47 46 45
            0020  44 43 42 41 03 00 00 00 00 00 00 00 04 00 00 00
            0030  00 00 00 00 24 23 22 21 32 31 03 0b 01 00 00 00
            0040  05 00 00 00 a8 a7 a6 a5 a4 a3 a2 a1
        "#]],
    );
}

#[test]
fn trade() {
    let trade = Trade {
        client_order_id: NAME,
        order: OrderId(id()),
        shard: SHARD,
        position: POSITION,
        instrument: INSTRUMENT,
        side: Side::Sell,
        role: Role::Incoming,
        price: PRICE,
        quantity: QUANTITY,
        remaining: Quantity(7),
        index: 0x3132,
        number: NUMBER,
    };
    check(
        &told(&Reply::Trade(trade)),
        expect![[r#"
            0000  4c 00 84 01 18 17 16 15 14 13 12 11 58 57 56 55
            0010  54 53 52 51 48 47 46 45 44 43 42 41 f8 26 22 00
            0020  00 00 00 00 64 00 00 00 00 00 00 00 07 00 00 00
            0030  00 00 00 00 24 23 22 21 32 31 02 02 32 31 00 00
            0040  00 00 00 00 a8 a7 a6 a5 a4 a3 a2 a1
        "#]],
    );
}

#[test]
fn cancelled() {
    let cancelled = Cancelled {
        client_order_id: NAME,
        order: OrderId(id()),
        shard: SHARD,
        position: POSITION,
        instrument: INSTRUMENT,
        side: Side::Sell,
        price: PRICE,
        quantity: QUANTITY,
        cause: CancelCause::Reduced,
        number: NUMBER,
    };
    check(
        &told(&Reply::Cancelled(cancelled)),
        expect![[r#"
            0000  3c 00 85 01 18 17 16 15 14 13 12 11 58 57 56 55
            0010  54 53 52 51 48 47 46 45 44 43 42 41 64 00 00 00
            0020  00 00 00 00 24 23 22 21 32 31 05 02 a8 a7 a6 a5
            0030  a4 a3 a2 a1 f8 26 22 00 00 00 00 00
        "#]],
    );
}

#[test]
fn plain_frames_take_what_needs_no_room() {
    let order = NewOrder {
        kind: OrderKind::Pegged { to: Peg::Best, limit: PRICE },
        time_in_force: TimeInForce::AtClose,
        self_trade: SelfTrade::CancelBoth,
        ..NewOrder::limit(Side::Buy, PRICE, QUANTITY)
    };
    check(
        &asked(&ClientRequest::Enter { client_order_id: NAME, instrument: INSTRUMENT, order }),
        expect![[r#"
            0000  24 00 02 01 18 17 16 15 14 13 12 11 f8 26 22 00
            0010  00 00 00 00 64 00 00 00 00 00 00 00 24 23 22 21
            0020  01 05 07 03
        "#]],
    );
    let side = Some(Side::Sell);
    check(
        &asked(&ClientRequest::MassCancel { client_order_id: NAME, instrument: INSTRUMENT, side }),
        expect![[r#"
            0000  14 00 05 01 18 17 16 15 14 13 12 11 24 23 22 21
            0010  02 00 00 00
        "#]],
    );
}

#[test]
fn extended_frames() {
    let request = ClientRequest::Enter { client_order_id: NAME, instrument: INSTRUMENT, order: elaborate() };
    check(
        &asked(&request),
        expect![[r#"
        0000  4c 00 07 01 18 17 16 15 14 13 12 11 f8 26 22 00
        0010  00 00 00 00 64 00 00 00 00 00 00 00 0a 00 00 00
        0020  00 00 00 00 14 00 00 00 00 00 00 00 fe ff ff ff
        0030  ff ff ff ff b8 b7 b6 b5 b4 b3 b2 b1 24 23 22 21
        0040  02 06 05 04 01 00 00 00 00 00 00 00
    "#]],
    );
    let amend = ClientRequest::Amend { client_order_id: NAME, target: ClientOrderId(2), terms: terms() };
    check(
        &asked(&amend),
        expect![[r#"
        0000  44 00 08 01 18 17 16 15 14 13 12 11 02 00 00 00
        0010  00 00 00 00 ff ff ff ff ff ff ff ff 64 00 00 00
        0020  00 00 00 00 00 00 00 00 00 00 00 00 fe ff ff ff
        0030  ff ff ff ff 00 00 00 00 00 00 00 00 04 03 00 00
        0040  00 00 00 00
    "#]],
    );
}

#[test]
fn frames_of_the_exchange() {
    let asked =
        |command| asked(&ClientRequest::Exchange { client_order_id: NAME, instrument: INSTRUMENT, command });
    let member = MemberId(0x7172_7374);
    check(
        &asked(Command::SetPhase(Phase::Halted)),
        expect![[r#"
        0000  14 00 09 01 18 17 16 15 14 13 12 11 24 23 22 21
        0010  07 00 00 00
    "#]],
    );
    let rule = Rule::PriceRange { min: Price(-1), max: PRICE };
    check(
        &asked(Command::SetRule(rule)),
        expect![[r#"
        0000  24 00 0a 01 18 17 16 15 14 13 12 11 ff ff ff ff
        0010  ff ff ff ff f8 26 22 00 00 00 00 00 24 23 22 21
        0020  01 00 00 00
    "#]],
    );
    check(
        &asked(Command::AddInstrument(Symbol::new("ALFA").unwrap())),
        expect![[r#"
        0000  24 00 0b 01 18 17 16 15 14 13 12 11 41 4c 46 41
        0010  00 00 00 00 00 00 00 00 00 00 00 00 24 23 22 21
        0020  00 00 00 00
    "#]],
    );
    check(
        &asked(Command::RemoveInstrument),
        expect![[r#"
        0000  14 00 0c 01 18 17 16 15 14 13 12 11 24 23 22 21
        0010  00 00 00 00
    "#]],
    );
    check(
        &asked(Command::Block { member }),
        expect![[r#"
        0000  14 00 0d 01 18 17 16 15 14 13 12 11 74 73 72 71
        0010  00 00 00 00
    "#]],
    );
    check(
        &asked(Command::Unblock { member }),
        expect![[r#"
        0000  14 00 0e 01 18 17 16 15 14 13 12 11 74 73 72 71
        0010  00 00 00 00
    "#]],
    );
    check(
        &asked(Command::Bust(trade_to_bust())),
        expect![[r#"
            0000  54 00 0f 01 18 17 16 15 14 13 12 11 48 47 46 45
            0010  44 43 42 41 58 57 56 55 54 53 52 51 02 00 00 00
            0020  00 00 01 00 f8 26 22 00 00 00 00 00 64 00 00 00
            0030  00 00 00 00 24 23 22 21 d2 d1 02 00 0b 00 00 00
            0040  00 00 00 00 15 00 00 00 00 00 00 00 01 00 00 00
            0050  02 00 00 00
        "#]],
    );
    let day = BusinessDay(0x21_2223);
    check(
        &asked(Command::BeginDay { day }),
        expect![[r#"
        0000  14 00 18 01 18 17 16 15 14 13 12 11 23 22 21 00
        0010  00 00 00 00
    "#]],
    );
    check(
        &asked(Command::EndDay { day }),
        expect![[r#"
        0000  14 00 19 01 18 17 16 15 14 13 12 11 23 22 21 00
        0010  00 00 00 00
    "#]],
    );
    let limits =
        Limits { quantity_max: 1, value_max: 2, collar: 3, orders_max: 4, rate_max: 5, burst_max: 6 };
    check(
        &asked(Command::Register(Registration { member, session: 0x8182, entry: Entry::SetLimits(limits) })),
        expect![[r#"
            0000  34 00 11 01 18 17 16 15 14 13 12 11 01 00 00 00
            0010  00 00 00 00 02 00 00 00 00 00 00 00 03 00 00 00
            0020  04 00 00 00 05 00 00 00 06 00 00 00 74 73 72 71
            0030  82 81 07 00
        "#]],
    );
    check(
        &asked(Command::TIME),
        expect![[r#"
        0000  14 00 10 01 18 17 16 15 14 13 12 11 24 23 22 21
        0010  00 00 00 00
    "#]],
    );
}

#[test]
fn order_news_and_trade_busted() {
    let news = OrderNews {
        client_order_id: NAME,
        order: OrderId(id()),
        shard: SHARD,
        position: POSITION,
        instrument: INSTRUMENT,
        side: Side::Buy,
        change: OrderChange::Refilled,
        price: PRICE,
        remaining: QUANTITY,
        shown: Quantity(10),
        number: NUMBER,
    };
    check(
        &told(&Reply::News(news)),
        expect![[r#"
            0000  44 00 88 01 18 17 16 15 14 13 12 11 58 57 56 55
            0010  54 53 52 51 48 47 46 45 44 43 42 41 f8 26 22 00
            0020  00 00 00 00 64 00 00 00 00 00 00 00 0a 00 00 00
            0030  00 00 00 00 24 23 22 21 32 31 01 04 a8 a7 a6 a5
            0040  a4 a3 a2 a1
        "#]],
    );
    let bust = TradeBusted {
        client_order_id: NAME,
        order: OrderId(id()),
        shard: SHARD,
        position: POSITION,
        traded_at: Position(5),
        index: 0xd1d2,
        instrument: INSTRUMENT,
        price: PRICE,
        quantity: QUANTITY,
        number: NUMBER,
    };
    check(
        &told(&Reply::Busted(bust)),
        expect![[r#"
            0000  44 00 89 01 18 17 16 15 14 13 12 11 58 57 56 55
            0010  54 53 52 51 48 47 46 45 44 43 42 41 05 00 00 00
            0020  00 00 00 00 f8 26 22 00 00 00 00 00 64 00 00 00
            0030  00 00 00 00 24 23 22 21 32 31 d2 d1 a8 a7 a6 a5
            0040  a4 a3 a2 a1
        "#]],
    );
}

#[test]
fn resume_and_resumed() {
    check(
        &framed(&Resume { next: NUMBER.into(), shard: SHARD.0.into(), reserved: [0; 6] }),
        expect![[r#"
        0000  14 00 12 01 a8 a7 a6 a5 a4 a3 a2 a1 32 31 00 00
        0010  00 00 00 00
    "#]],
    );
    let (next, shard, reason) = (NUMBER.into(), SHARD.0.into(), Reason::NotKept as u8);
    check(
        &framed(&Resumed { next, shard, reason, reserved: [0; 13] }),
        expect![[r#"
        0000  1c 00 8b 01 a8 a7 a6 a5 a4 a3 a2 a1 32 31 36 00
        0010  00 00 00 00 00 00 00 00 00 00 00 00
    "#]],
    );
}

#[test]
fn cancel_after() {
    check(
        &framed(&CancelAfter { after_ms: 0x4142_4344.into(), reserved: 0.into() }),
        expect![[r#"
        0000  0c 00 13 01 44 43 42 41 00 00 00 00
    "#]],
    );
}

#[test]
fn challenge_and_proof() {
    let challenge = Challenge { nonce: [0xa1; 32], gateway: 0x5152.into(), reserved: [0; 6] };
    check(
        &framed(&challenge),
        expect![[r#"
        0000  2c 00 8a 01 a1 a1 a1 a1 a1 a1 a1 a1 a1 a1 a1 a1
        0010  a1 a1 a1 a1 a1 a1 a1 a1 a1 a1 a1 a1 a1 a1 a1 a1
        0020  a1 a1 a1 a1 52 51 00 00 00 00 00 00
    "#]],
    );
    check(
        &framed(&Proof { first: [0xb1; 32], second: [0xc1; 32] }),
        expect![[r#"
        0000  44 00 1a 01 b1 b1 b1 b1 b1 b1 b1 b1 b1 b1 b1 b1
        0010  b1 b1 b1 b1 b1 b1 b1 b1 b1 b1 b1 b1 b1 b1 b1 b1
        0020  b1 b1 b1 b1 c1 c1 c1 c1 c1 c1 c1 c1 c1 c1 c1 c1
        0030  c1 c1 c1 c1 c1 c1 c1 c1 c1 c1 c1 c1 c1 c1 c1 c1
        0040  c1 c1 c1 c1
    "#]],
    );
}
