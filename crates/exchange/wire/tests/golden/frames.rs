//! Frames of the order entry protocol.

use super::*;

#[test]
fn frames_of_sessions_keep_their_bytes() {
    let token = 0xd1d2_d3d4_d5d6_d7d8.into();
    let (gateway, member, heartbeat_ms) = (0x5152.into(), 0x7172_7374.into(), 0x4142_4344.into());
    let (next, shard, reason) = (NUMBER.into(), SHARD.0.into(), Reason::NotKept as u8);
    let (in_flight_max, copied) = (0xe1e2.into(), 0x6162_6364.into());
    let flags = frame::SIGN_ON_JOURNALLED.into();
    let frames = [
        ("sign_on", framed(&SignOn { member, flags, token, heartbeat_ms, ..SignOn::default() })),
        ("signed_on", framed(&SignedOn { token, gateway, in_flight_max, member, heartbeat_ms, copied })),
        ("ping_and_pong ping", framed(&Ping { token })),
        ("ping_and_pong pong", framed(&Pong { token })),
        ("resume_and_resumed resume", framed(&Resume { next, shard, reserved: [0; 6] })),
        ("resume_and_resumed resumed", framed(&Resumed { next, shard, reason, reserved: [0; 13] })),
        ("cancel_after", framed(&CancelAfter { after_ms: heartbeat_ms, reserved: 0.into() })),
        (
            "challenge_and_proof challenge",
            framed(&Challenge { nonce: [0xa1; 32], gateway, reserved: [0; 6] }),
        ),
        ("challenge_and_proof proof", framed(&Proof { first: [0xb1; 32], second: [0xc1; 32] })),
    ];
    frames.iter().for_each(|(name, bytes)| check(name, bytes));
}

#[test]
fn frames_of_requests_keep_their_bytes() {
    let (client_order_id, instrument, target) = (NAME, INSTRUMENT, ClientOrderId(2));
    let enter = |order| ClientRequest::Enter { client_order_id, instrument, order };
    let amend = |terms| ClientRequest::Amend { client_order_id, target, terms };
    let mass_cancel = |side| ClientRequest::MassCancel { client_order_id, instrument, side };
    for (name, request) in [
        ("enter_order", enter(sell())),
        ("amend_order", amend(NewTerms::new(Price(-1), QUANTITY))),
        ("cancel_order", ClientRequest::Cancel { client_order_id, target }),
        ("mass_cancel", mass_cancel(None)),
        ("plain_frames_take_what_needs_no_room enter", enter(pegged())),
        ("plain_frames_take_what_needs_no_room masscancel", mass_cancel(Some(Side::Sell))),
        ("extended_frames request", enter(elaborate())),
        ("extended_frames amend", amend(terms())),
        ("extended_frames reduction", amend(NewTerms::reduction(QUANTITY))),
    ] {
        check(name, &asked(&request));
    }
}

#[test]
fn frames_of_the_exchange_keep_their_bytes() {
    let (member, day) = (MemberId(0x7172_7374), BusinessDay(0x21_2223));
    let limits =
        Limits { quantity_max: 1, value_max: 2, collar: 3, orders_max: 4, rate_max: 5, burst_max: 6 };
    let registration = Registration { member, session: 0x8182, entry: Entry::SetLimits(limits) };
    for (name, command) in [
        ("setphase", Command::SetPhase(Phase::Halted)),
        ("setrule", Command::SetRule(Rule::PriceRange { min: Price(-1), max: PRICE })),
        ("addinstrument", Command::AddInstrument(Symbol::new("ALFA").unwrap())),
        ("removeinstrument", Command::RemoveInstrument),
        ("block", Command::Block { member }),
        ("unblock", Command::Unblock { member }),
        ("bust", Command::Bust(trade_to_bust())),
        ("beginday", Command::BeginDay { day }),
        ("endday", Command::EndDay { day }),
        ("setlimits", Command::Register(registration)),
        ("time", Command::TIME),
    ] {
        let request = ClientRequest::Exchange { client_order_id: NAME, instrument: INSTRUMENT, command };
        check(&format!("frames_of_the_exchange {name}"), &asked(&request));
    }
}

#[test]
fn frames_of_replies_keep_their_bytes() {
    let (client_order_id, request, order) = (NAME, id(), OrderId(id()));
    let (shard, position, instrument, number) = (SHARD, POSITION, INSTRUMENT, NUMBER);
    let (price, quantity) = (PRICE, QUANTITY);
    let answer = Answer {
        client_order_id,
        request,
        order,
        shard,
        position,
        instrument,
        status: Status::Cancelled,
        reason: Reason::NothingToTrade,
        executed: Quantity(3),
        remaining: Quantity(4),
        events: 5,
        repeat: true,
        number,
        asked: RequestDigest::from_bits(0x63_6261),
    };
    let trade = Trade {
        client_order_id,
        order,
        shard,
        position,
        instrument,
        side: Side::Sell,
        role: Role::Incoming,
        price,
        quantity,
        remaining: Quantity(7),
        index: 0x3132,
        number,
    };
    let (side, cause) = (Side::Sell, CancelCause::Reduced);
    let cancelled = Cancelled {
        client_order_id,
        order,
        shard,
        position,
        instrument,
        side,
        price,
        quantity,
        cause,
        number,
    };
    let news = OrderNews {
        client_order_id,
        order,
        shard,
        position,
        instrument,
        side: Side::Buy,
        change: OrderChange::Refilled,
        price,
        remaining: quantity,
        shown: Quantity(10),
        number,
    };
    let (traded_at, index) = (Position(5), 0xd1d2);
    let bust = TradeBusted {
        client_order_id,
        order,
        shard,
        position,
        traded_at,
        index,
        instrument,
        price,
        quantity,
        number,
    };
    for (name, reply) in [
        ("journalled_and_rejected journalled", Reply::Journalled { client_order_id, request }),
        ("journalled_and_rejected rejected", Reply::Rejected { client_order_id, reason: Reason::Overloaded }),
        ("answer", Reply::Answer(answer)),
        ("trade", Reply::Trade(trade)),
        ("cancelled", Reply::Cancelled(cancelled)),
        ("order_news_and_trade_busted news", Reply::News(news)),
        ("order_news_and_trade_busted busted", Reply::Busted(bust)),
    ] {
        check(name, &told(&reply));
    }
}
