//! Records of the logs.

use super::*;
use pares_types::Band;

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
    check("a_result_with_a_fill_and_a_cancel", &bytes);
}

#[test]
fn records_of_requests_keep_their_bytes() {
    let (target, day) = (OrderId(id()), BusinessDay(0x21_2223));
    let member = MemberId(0xb1b2_b3b4);
    let proposal = Proposal {
        instrument: InstrumentId(0xe1e2_e3e4),
        kind: 3,
        operand: 0xf1f2_f3f4,
        detail: 0xd1d2_d3d4_d5d6_d7d8_d9da_dbdc_ddde_dfd0,
    };
    let register =
        |member, entry| Command::Register(Registration { member: MemberId(member), session: 0x8182, entry });
    let schedule = Rule::Schedule { at_ns: 0xb1b2, phase: Some(Phase::ClosingCall) };
    for (name, command) in [
        ("a_request_to_enter_an_order", Command::Enter(sell())),
        ("a_request_to_amend_one", Command::Amend(Amendment::new(target, Price(-1), QUANTITY))),
        ("a_request_to_cancel_one", Command::Cancel { target }),
        ("a_request_to_cancel_all", Command::MassCancel { side: None }),
        ("orders_that_say_more_within_64_bytes enter", Command::Enter(pegged())),
        ("orders_that_say_more_within_64_bytes masscancel", Command::MassCancel { side: Some(Side::Sell) }),
        ("orders_that_say_more_within_64_bytes time", Command::TIME),
        ("orders_that_say_more_within_64_bytes removeinstrument", Command::RemoveInstrument),
        ("orders_and_amends_that_need_more enter", Command::Enter(elaborate())),
        ("orders_and_amends_that_need_more amend", Command::Amend(terms().of(target, ClientOrderId(0)))),
        (
            "orders_and_amends_that_need_more reduction",
            Command::Amend(NewTerms::reduction(QUANTITY).of(target, ClientOrderId(0))),
        ),
        ("requests_of_the_exchange setphase", Command::SetPhase(Phase::Halted)),
        ("requests_of_the_exchange setrule", Command::SetRule(schedule)),
        ("requests_of_the_exchange addinstrument", Command::AddInstrument(Symbol::new("ALFA").unwrap())),
        ("requests_of_the_exchange block", Command::Block { member }),
        ("requests_of_the_exchange beginday", Command::BeginDay { day }),
        ("requests_of_the_exchange endday", Command::EndDay { day }),
        ("requests_of_the_exchange unblock", Command::Unblock { member }),
        ("requests_of_the_exchange register", register(0, Entry::Propose(proposal))),
        ("requests_of_the_exchange register 2", register(7, Entry::ListInstrument(proposal.instrument))),
        ("requests_of_the_exchange bust", Command::Bust(trade_to_bust())),
    ] {
        check(name, &recorded(command));
    }
}

/// Rules are a code and two operands, in records and frames alike.
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
        Rule::Call { ns: 5 },
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
    check("the_other_events_of_a_result", &bytes[120..]);
}

#[test]
fn records_of_checkpoints_keep_their_bytes() {
    let (version, shard, epoch) = (record::VERSION, SHARD.0.into(), 0x8182_8384.into());
    let (position, total_bytes, start) = (POSITION.0.into(), 0xb1b2_b3b4.into(), 0xc1c2_c3c4.into());
    let schema = record::CHECKPOINT_CHUNK;
    let chunk = CheckpointChunk { schema, version, shard, epoch, position, total_bytes, start };
    check("a_checkpoint_chunk", chunk.as_bytes());
    let stored = CheckpointStored { schema: record::CHECKPOINT_STORED, version, shard, epoch, position };
    check("a_checkpoint_stored", stored.as_bytes());
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
    let unproven = SessionMarkRecord { reign: 0xd1d2, gateway: GatewayId(0xe1e2), logon_ns: 0, mark };
    check("a_session_mark", &unproven.bytes());
    let proven = SessionMarkRecord { logon_ns: 0xf1f2, ..unproven.clone() };
    check("a_session_mark_of_a_proven_logon", &proven.bytes());
    for marked in [unproven, proven] {
        assert_eq!(SessionMarkRecord::read(&marked.bytes()), Ok(marked));
    }
}

#[test]
fn a_spent_logon() {
    let spent =
        SpentLogonRecord::new((MemberId(0x8182_8384), 0x9192), (0xa1a2, NUMBER), 0xb1b2_b3b4_b5b6_b7b8);
    check("a_spent_logon", spent.as_bytes());
    assert_eq!(SpentLogonRecord::read(spent.as_bytes()), Ok(spent));
    let reversed = SpentLogonRecord::new(spent.who(), (2, 1), 3);
    let invalid = Err(pares_wire::WireError::InvalidField("last_ns"));
    assert_eq!(SpentLogonRecord::read(reversed.as_bytes()), invalid);
}
