//! The bytes of every record and frame, frozen. A change here is a change of the protocol: it needs a new
//! version, not a new expectation.

use expect_test::{Expect, expect};
use pares_types::{
    Answer, CancelCause, Cancellation, ClientOrderId, ClientRequest, Command, Epoch, Event, GatewayId,
    InstrumentId, MemberId, NewOrder, OrderId, OrderKind, Outcome, Position, Price, Quantity, Reason, Reply,
    Request, RequestId, Role, ShardId, Side, Status, TimeInForce, Timestamp, Trade, VenueId,
};
use pares_wire::frame::{self, Message, Ping, Pong, SignOn, SignedOn};
use pares_wire::record::{self, CheckpointChunk, CheckpointStored, RequestRecord, ResultPlace};
use zerocopy::IntoBytes;

/// Sixteen bytes a line, as the protocol pages show them.
fn check(bytes: &[u8], expected: Expect) {
    let line = |(at, bytes): (usize, &[u8])| {
        let hex: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{:04x}  {}\n", at * 16, hex.join(" "))
    };
    expected.assert_eq(&bytes.chunks(16).enumerate().map(line).collect::<String>());
}

fn framed<M: Message>(message: &M) -> Vec<u8> {
    let mut bytes = Vec::new();
    frame::write(&mut bytes, message);
    bytes
}

fn asked(request: &ClientRequest) -> Vec<u8> {
    let mut bytes = Vec::new();
    frame::write_request(&mut bytes, request);
    bytes
}

fn told(reply: &Reply) -> Vec<u8> {
    let mut bytes = Vec::new();
    frame::write_reply(&mut bytes, reply);
    bytes
}

const NAME: ClientOrderId = ClientOrderId(0x1112_1314_1516_1718);
const INSTRUMENT: InstrumentId = InstrumentId(0x2122_2324);
const SHARD: ShardId = ShardId(0x3132);
const POSITION: Position = Position(0x4142_4344_4546_4748);
const PRICE: Price = Price(2_238_200);
const QUANTITY: Quantity = Quantity(100);

fn id() -> RequestId {
    RequestId::new(GatewayId(0x5152), 0x5354_5556_5758)
}

fn sell() -> NewOrder {
    let kind = OrderKind::Limit { price: PRICE };
    NewOrder { side: Side::Sell, kind, time_in_force: TimeInForce::Day, post_only: true, quantity: QUANTITY }
}

fn request(command: Command) -> Request {
    Request {
        id: id(),
        stamp: Timestamp(0x6162_6364_6566_6768),
        member: MemberId(0x7172_7374),
        client_order_id: NAME,
        instrument: INSTRUMENT,
        shard: SHARD,
        command,
    }
}

#[test]
fn a_request_to_enter_an_order() {
    check(
        RequestRecord::from(&request(Command::Enter(sell()))).as_bytes(),
        expect![[r#"
        0000  01 01 32 31 74 73 72 71 58 57 56 55 54 53 52 51
        0010  68 67 66 65 64 63 62 61 18 17 16 15 14 13 12 11
        0020  00 00 00 00 00 00 00 00 f8 26 22 00 00 00 00 00
        0030  64 00 00 00 00 00 00 00 24 23 22 21 01 02 03 01
    "#]],
    );
}

#[test]
fn a_request_to_amend_one() {
    let command = Command::Amend { target: OrderId(id()), price: Price(-1), quantity: QUANTITY };
    check(
        RequestRecord::from(&request(command)).as_bytes(),
        expect![[r#"
        0000  01 01 32 31 74 73 72 71 58 57 56 55 54 53 52 51
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
        RequestRecord::from(&request(command)).as_bytes(),
        expect![[r#"
        0000  01 01 32 31 74 73 72 71 58 57 56 55 54 53 52 51
        0010  68 67 66 65 64 63 62 61 18 17 16 15 14 13 12 11
        0020  58 57 56 55 54 53 52 51 00 00 00 00 00 00 00 00
        0030  00 00 00 00 00 00 00 00 24 23 22 21 03 00 00 00
    "#]],
    );
}

#[test]
fn a_request_to_cancel_all() {
    check(
        RequestRecord::from(&request(Command::MassCancel)).as_bytes(),
        expect![[r#"
        0000  01 01 32 31 74 73 72 71 58 57 56 55 54 53 52 51
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
    let mut bytes = vec![0; record::result_bytes(2)];
    record::write_result(&mut bytes, &place, &request(Command::Enter(sell())), &outcome, &[fill, cancelled]);
    check(
        &bytes,
        expect![[r#"
        0000  02 01 32 31 84 83 82 81 48 47 46 45 44 43 42 41
        0010  58 57 56 55 54 53 52 51 03 00 00 00 00 00 00 00
        0020  04 00 00 00 00 00 00 00 a8 a7 a6 a5 a4 a3 a2 a1
        0030  03 0b 02 00 92 91 00 00 01 01 32 31 74 73 72 71
        0040  58 57 56 55 54 53 52 51 68 67 66 65 64 63 62 61
        0050  18 17 16 15 14 13 12 11 00 00 00 00 00 00 00 00
        0060  f8 26 22 00 00 00 00 00 64 00 00 00 00 00 00 00
        0070  24 23 22 21 01 02 03 01 58 57 56 55 54 53 52 51
        0080  18 17 16 15 14 13 12 11 f8 26 22 00 00 00 00 00
        0090  64 00 00 00 00 00 00 00 07 00 00 00 00 00 00 00
        00a0  74 73 72 71 01 00 01 00 58 57 56 55 54 53 52 51
        00b0  18 17 16 15 14 13 12 11 00 00 00 00 00 00 00 00
        00c0  64 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00
        00d0  74 73 72 71 02 03 00 00
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
        0000  03 01 32 31 84 83 82 81 48 47 46 45 44 43 42 41
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
        0000  04 01 32 31 84 83 82 81 48 47 46 45 44 43 42 41
    "#]],
    );
}

#[test]
fn sign_on() {
    let sign_on = SignOn {
        member: 0x7172_7374.into(),
        flags: frame::SIGN_ON_JOURNALLED.into(),
        token: 0xd1d2_d3d4_d5d6_d7d8.into(),
        credential: [0; 32],
    };
    check(
        &framed(&sign_on),
        expect![[r#"
        0000  34 00 01 01 74 73 72 71 01 00 00 00 d8 d7 d6 d5
        0010  d4 d3 d2 d1 00 00 00 00 00 00 00 00 00 00 00 00
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
        ClientRequest::Amend { client_order_id: NAME, target, price: Price(-1), quantity: QUANTITY };
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
    let request = ClientRequest::MassCancel { client_order_id: NAME, instrument: INSTRUMENT };
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
        reserved: 0.into(),
    };
    check(
        &framed(&signed_on),
        expect![[r#"
        0000  1c 00 81 01 d8 d7 d6 d5 d4 d3 d2 d1 52 51 e2 e1
        0010  74 73 72 71 00 00 00 00 00 00 00 00
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
    };
    check(
        &told(&Reply::Answer(answer)),
        expect![[r#"
        0000  44 00 83 01 18 17 16 15 14 13 12 11 58 57 56 55
        0010  54 53 52 51 58 57 56 55 54 53 52 51 48 47 46 45
        0020  44 43 42 41 03 00 00 00 00 00 00 00 04 00 00 00
        0030  00 00 00 00 24 23 22 21 32 31 03 0b 01 00 00 00
        0040  05 00 00 00
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
    };
    check(
        &told(&Reply::Trade(trade)),
        expect![[r#"
        0000  3c 00 84 01 18 17 16 15 14 13 12 11 58 57 56 55
        0010  54 53 52 51 48 47 46 45 44 43 42 41 f8 26 22 00
        0020  00 00 00 00 64 00 00 00 00 00 00 00 07 00 00 00
        0030  00 00 00 00 24 23 22 21 32 31 02 02
    "#]],
    );
}

#[test]
fn cancelled() {
    let cancelled = Cancellation {
        client_order_id: NAME,
        order: OrderId(id()),
        shard: SHARD,
        position: POSITION,
        instrument: INSTRUMENT,
        quantity: QUANTITY,
        cause: CancelCause::Reduced,
    };
    check(
        &told(&Reply::Cancelled(cancelled)),
        expect![[r#"
        0000  2c 00 85 01 18 17 16 15 14 13 12 11 58 57 56 55
        0010  54 53 52 51 48 47 46 45 44 43 42 41 64 00 00 00
        0020  00 00 00 00 24 23 22 21 32 31 05 00
    "#]],
    );
}
