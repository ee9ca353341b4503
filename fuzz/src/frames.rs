//! Frames of the order entry protocol, from either end.

use pares_exercise::replies::{answer, busted, cancelled, instrument_status, news, trade};
use pares_types::{
    Answer, Band, BusinessDay, CancelCause, Cancelled, ClientOrderId, ClientRequest, Command, Entry,
    InstrumentId, InstrumentStatus, Key, Limits, List, ListEnd, ListRequest, MemberId, NewOrder, NewTerms,
    OrderId, OrderKey, OrderKind, OwnLimits, Peg, Phase, Position, Price, Quantity, Reason, Registration,
    Reply, Rights, Rule, ShardId, Side, Symbol, TimeInForce, Timestamp,
};
use pares_wire::frame::{self, CancelAfter, Challenge, ClientFrame, GatewayFrame, Ping, Pong, Proof, SignOn};

use crate::records::{busted as busted_trade, id};

/// Splits a client's stream and decodes each frame.
pub fn client(bytes: &[u8]) {
    split_all(bytes, |kind, body| {
        // The name of a frame that cannot be read goes into its rejection: it must always be found.
        let _name = frame::request_name(kind, body);
        let Ok(read) = frame::decode_client(kind, body) else { return };
        let mut written = Vec::new();
        match &read {
            ClientFrame::Request(request) => frame::write_request(&mut written, request),
            ClientFrame::ListRequest(request) => frame::write_list_request(&mut written, request),
            _ => return,
        }
        assert_eq!(whole(&written, frame::decode_client), read, "it reads back as written");
    });
}

/// Splits a gateway's stream and decodes each frame.
pub fn gateway(bytes: &[u8]) {
    split_all(bytes, |kind, body| {
        let Ok(read) = frame::decode_gateway(kind, body) else { return };
        let mut written = Vec::new();
        match &read {
            GatewayFrame::Reply(reply) => frame::write_reply(&mut written, reply),
            GatewayFrame::OrderStatus(key, status) => frame::write_order_status(&mut written, *key, *status),
            GatewayFrame::InstrumentStatus(status) => frame::write_instrument_status(&mut written, status),
            GatewayFrame::ListEnd(end) => frame::write_list_end(&mut written, end),
            GatewayFrame::OwnLimits(own) => frame::write_own_limits(&mut written, own),
            _ => return,
        }
        assert_eq!(whole(&written, frame::decode_gateway), read, "it reads back as written");
    });
}

/// Whether the bytes are nothing but whole, readable frames of a client.
#[must_use]
pub fn client_accepts(mut bytes: &[u8]) -> bool {
    while let Ok(Some((kind, body, rest))) = frame::split(bytes) {
        if frame::decode_client(kind, body).is_err() {
            return false;
        }
        bytes = rest;
    }
    bytes.is_empty()
}

fn split_all(mut bytes: &[u8], mut on_frame: impl FnMut(u8, &[u8])) {
    while let Ok(Some((kind, body, rest))) = frame::split(bytes) {
        assert!(rest.len() < bytes.len(), "every frame takes the reader forward");
        on_frame(kind, body);
        bytes = rest;
    }
}

fn whole<F>(bytes: &[u8], decode: impl Fn(u8, &[u8]) -> Result<F, pares_wire::WireError>) -> F {
    let (kind, body, rest) = frame::split(bytes).expect("what was written is legal").expect("and whole");
    assert!(rest.is_empty(), "one frame was written");
    decode(kind, body).expect("what was written is readable")
}

/// A request of each kind, alone and all together.
#[must_use]
pub fn client_seeds() -> Vec<Vec<u8>> {
    let client_order_id = ClientOrderId(7);
    let (target, instrument) = (ClientOrderId(3), InstrumentId(1));
    let enter = |order| ClientRequest::Enter { client_order_id, instrument, order };
    let registered = |session, entry| ClientRequest::Exchange {
        client_order_id,
        instrument: InstrumentId(0),
        command: Command::Register(Registration { member: MemberId(9), session, entry }),
    };
    let plain = NewOrder::limit(Side::Sell, Price(1_000_000), Quantity(100));
    let until = TimeInForce::Gtd { until: Timestamp(5) };
    let terms = NewTerms::new(Price(-5), Quantity(1));
    let more = NewTerms { display: Some(Quantity(1)), time_in_force: Some(until), ..terms };
    let exchange = |command| ClientRequest::Exchange { client_order_id, instrument, command };
    let everywhere = InstrumentId(0);
    let requests = [
        enter(NewOrder { post_only: true, ..plain }),
        enter(NewOrder::market(Side::Sell, Quantity(100))),
        enter(NewOrder { display: Quantity(10), time_in_force: until, ..plain }),
        enter(NewOrder { trigger: Some(Price(7)), ..plain }),
        enter(NewOrder { kind: OrderKind::Pegged { to: Peg::Mid, limit: Price(7) }, ..plain }),
        ClientRequest::Amend { client_order_id, target, terms },
        ClientRequest::Amend { client_order_id, target, terms: more },
        ClientRequest::Cancel { client_order_id, target },
        ClientRequest::MassCancel { client_order_id, instrument: everywhere, side: None },
        ClientRequest::MassCancel { client_order_id, instrument, side: Some(Side::Buy) },
        exchange(Command::SetPhase(Phase::Halted)),
        exchange(Command::SetRule(Rule::StaticBand(Band::of(500)))),
        exchange(Command::AddInstrument(Symbol::new("ALFA").expect("a legal name"))),
        exchange(Command::RemoveInstrument),
        exchange(Command::TIME),
        ClientRequest::Exchange {
            client_order_id,
            instrument: everywhere,
            command: Command::EndDay { day: BusinessDay(7) },
        },
        exchange(Command::Bust(busted_trade())),
        ClientRequest::Exchange {
            client_order_id,
            instrument: everywhere,
            command: Command::Block { member: MemberId(9) },
        },
        registered(0, Entry::AddMember),
        registered(1, Entry::SetKey(Key::Ed25519([5; 32]))),
        registered(1, Entry::SetRights(Rights::TRADING)),
        registered(1, Entry::ListInstrument(InstrumentId(2))),
        registered(1, Entry::SetPositionMax(900)),
        registered(0, Entry::SetLimits(Limits { collar: 500, ..Limits::NONE })),
    ];
    let sign_on = SignOn {
        member: 1.into(),
        flags: frame::SIGN_ON_JOURNALLED.into(),
        token: 9.into(),
        session: 1.into(),
        heartbeat_ms: 1_000.into(),
        reserved: [0; 26],
    };
    let mut seeds: Vec<Vec<u8>> =
        requests.iter().map(|request| framed(|out| frame::write_request(out, request))).collect();
    seeds.push(framed(|out| frame::write(out, &sign_on)));
    seeds.push(framed(|out| frame::write(out, &Proof { first: [1; 32], second: [2; 32] })));
    seeds.push(framed(|out| frame::write(out, &Ping { token: 1.into() })));
    seeds.push(framed(|out| frame::write(out, &CancelAfter { after_ms: 500.into(), reserved: 0.into() })));
    seeds.push(framed(|out| frame::write_order_status_request(out, OrderKey::Id(OrderId(id(1))))));
    seeds.push(framed(|out| frame::write_resume(out, Some(ShardId(2)), 7)));
    seeds.push(framed(|out| frame::write_resume(out, None, 0)));
    let orders = ListRequest { token: 7, list: List::Orders, instrument: Some(instrument) };
    seeds.push(framed(|out| frame::write_list_request(out, &orders)));
    seeds.push(framed(|out| frame::write_limits_request(out, 7)));
    seeds.push(seeds.concat());
    seeds
}

/// A reply of each kind, alone and all together.
#[must_use]
pub fn gateway_seeds() -> Vec<Vec<u8>> {
    let client_order_id = ClientOrderId(7);
    let replies = [
        Reply::Journalled { client_order_id, request: id(2) },
        Reply::Answer(Answer { executed: Quantity(5), events: 3, repeat: true, ..answer(7, 4) }),
        Reply::Trade(trade(7, 4)),
        Reply::Cancelled(Cancelled { cause: CancelCause::Reduced, ..cancelled(7, 4) }),
        Reply::News(news(7, 4)),
        Reply::Busted(busted(7, 4)),
        Reply::Rejected { client_order_id, reason: Reason::Overloaded },
    ];
    let mut seeds: Vec<Vec<u8>> =
        replies.iter().map(|reply| framed(|out| frame::write_reply(out, reply))).collect();
    let challenge = Challenge { nonce: [7; 32], gateway: 1.into(), reserved: [0; 6] };
    seeds.push(framed(|out| frame::write(out, &challenge)));
    seeds.push(framed(|out| frame::write(out, &Pong { token: 1.into() })));
    seeds.push(framed(|out| frame::write_resumed(out, ShardId(2), 7, Reason::None)));
    seeds.extend(answer_seeds());
    seeds.push(seeds.concat());
    seeds
}

/// What answers a question.
fn answer_seeds() -> [Vec<u8>; 4] {
    let request = ListRequest { token: 7, list: List::Instruments, instrument: None };
    let status = InstrumentStatus {
        shard: ShardId(2),
        next: Position(99),
        last: Some(Price(10)),
        static_band: 500,
        tick_rows: 1,
        ..instrument_status("ALFA", InstrumentId(1))
    };
    let own = OwnLimits {
        token: 7,
        next: Position(99),
        member: MemberId(9),
        session: 1,
        rights: Rights::TRADING,
        limits: Limits { collar: 500, ..Limits::NONE },
        position_max: 900,
        orders: 3,
        in_flight: 1,
        in_flight_max: 64,
    };
    [
        framed(|out| frame::write_list_end(out, &ListEnd { request, count: 1, reason: Reason::None })),
        framed(|out| frame::write_instrument_status(out, &status)),
        framed(|out| frame::write_tick_row(out, InstrumentId(1), Price(0), Price(1))),
        framed(|out| frame::write_own_limits(out, &own)),
    ]
}

fn framed(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut bytes = Vec::new();
    write(&mut bytes);
    bytes
}
