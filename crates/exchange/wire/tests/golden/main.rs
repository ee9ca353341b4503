//! The bytes of every record and frame, frozen. A change here is a change of the protocol: it needs a new
//! version, not a new expectation.

mod frames;
mod queries;
mod records;

use pares_types::{
    Amendment, Answer, BusinessDay, BustedTrade, CancelCause, Cancelled, ClientOrderId, ClientRequest,
    Command, Entry, Epoch, Event, GatewayId, IncomingCause, InstrumentId, InstrumentStatus, Limits, List,
    ListEnd, ListRequest, MemberId, NewOrder, NewTerms, OrderChange, OrderId, OrderKey, OrderKind, OrderNews,
    OrderState, OrderStatus, Outcome, OwnLimits, Peg, Phase, Position, Price, Proposal, Quantity, Reason,
    Registration, Reply, Request, RequestDigest, RequestId, RestCause, Rights, Role, Rule, SelfTrade,
    ShardId, Side, Status, Symbol, TimeInForce, Timestamp, Trade, TradeBusted, VenueId,
};
use pares_wire::frame::{
    self, CancelAfter, Challenge, Message, Ping, Pong, Proof, Resume, Resumed, SignOn, SignedOn,
};
use pares_wire::record::{
    self, CheckpointChunk, CheckpointStored, ResultPlace, SessionMark, SessionMarkRecord, SpentLogonRecord,
};
use zerocopy::IntoBytes;

/// Compares bytes with those of that name in `bytes.txt`, where they are written sixteen a line, as the protocol pages show them.
fn check(name: &str, bytes: &[u8]) {
    let line = |(at, bytes): (usize, &[u8])| {
        let hex: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("    {:04x}  {}", at * 16, hex.join(" "))
    };
    let shown: Vec<String> = bytes.chunks(16).enumerate().map(line).collect();
    let behind = include_str!("bytes.txt").lines().skip_while(|line| *line != name).skip(1);
    let frozen: Vec<&str> = behind.take_while(|line| !line.is_empty()).collect();
    assert_eq!(shown, frozen, "{name}, now:\n{}\n", shown.join("\n"));
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
const INSTRUMENT: InstrumentId = InstrumentId(0x21_222324);
const SHARD: ShardId = ShardId(0x3132);
const POSITION: Position = Position(0x4142_4344_4546_4748);
const PRICE: Price = Price(2_238_200);
const QUANTITY: Quantity = Quantity(100);
const NUMBER: u64 = 0xa1a2_a3a4_a5a6_a7a8;

fn id() -> RequestId {
    RequestId::new(GatewayId(0x5152), 0x5354_5556_5758)
}

fn sell() -> NewOrder {
    NewOrder { post_only: true, ..NewOrder::limit(Side::Sell, PRICE, QUANTITY) }
}

/// An order that says as much as a plain frame or record holds.
fn pegged() -> NewOrder {
    NewOrder {
        kind: OrderKind::Pegged { to: Peg::Best, limit: PRICE },
        time_in_force: TimeInForce::AtClose,
        self_trade: SelfTrade::CancelBoth,
        ..NewOrder::limit(Side::Buy, PRICE, QUANTITY)
    }
}

/// An order with everything, though no venue would take it.
fn elaborate() -> NewOrder {
    NewOrder {
        kind: OrderKind::Pegged { to: Peg::Mid, limit: PRICE },
        time_in_force: TimeInForce::Gtd { until: Timestamp(0xb1b2_b3b4_b5b6_b7b8) },
        self_trade: SelfTrade::Decrement,
        display: Quantity(10),
        minimum: Quantity(20),
        trigger: Some(Price(-2)),
        ..NewOrder::limit(Side::Sell, PRICE, QUANTITY)
    }
}

fn terms() -> NewTerms {
    NewTerms {
        display: Some(Quantity(0)),
        trigger: Some(Price(-2)),
        time_in_force: Some(TimeInForce::Gtc),
        ..NewTerms::new(Price(-1), QUANTITY)
    }
}

fn trade_to_bust() -> BustedTrade {
    BustedTrade {
        position: POSITION,
        index: 0xd1d2,
        resting: OrderId(id()),
        incoming: OrderId(RequestId::new(GatewayId(1), 2)),
        price: PRICE,
        quantity: QUANTITY,
        resting_side: Side::Sell,
        resting_owner: (MemberId(1), ClientOrderId(11)),
        incoming_owner: (MemberId(2), ClientOrderId(21)),
    }
}

fn recorded(command: Command) -> Vec<u8> {
    let request = request(command);
    let mut bytes = vec![0; record::request_bytes(&request)];
    record::write_request(&mut bytes, &request);
    bytes
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
