//! A door, the client that calls it, and a gateway that says what the test says.

use std::sync::Arc;

use pares_exercise::replies::{self, instrument_status, order_id};
pub(crate) use pares_exercise::replies::{ACME, SHARD};
use pares_ouch::OuchDoor;
use pares_port::{DoorAction, DoorConfig, DoorTime, LogonProof, ProtocolDoor, Sink};
use pares_types::{
    Answer, CancelCause, Cancelled, ClientOrderId, ClientRequest, GatewayId, InstrumentId, InstrumentStatus,
    List, ListEnd, ListRequest, OrderChange, OrderId, OrderNews, Quantity, Reason, Reply, ShardId, Status,
    Trade, TradeBusted,
};
use pares_wire::frame::{ClientFrame, GatewayFrame, SignOn, SignedOn};

pub(crate) const NOON_NS: u64 = 1_790_000_000_000_000_000;
/// Of another shard.
pub(crate) const AWAY: InstrumentId = InstrumentId(18);

pub(crate) struct Rig {
    pub(crate) door: OuchDoor,
    pub(crate) at: DoorTime,
    /// What the door has not taken yet.
    left: Vec<u8>,
    pub(crate) asked: Vec<ClientFrame>,
    pub(crate) signs_on: Option<SignOn>,
    pub(crate) sent: Vec<u8>,
    pub(crate) is_closed: bool,
}

impl Rig {
    pub(crate) fn new() -> Self {
        let config = DoorConfig {
            comp_id: "PARES".into(),
            gateway: GatewayId(0),
            instruments: Vec::new(),
            shards: vec![ShardId(1), SHARD],
            has_market: false,
            orders_max: 100,
        };
        Self {
            door: OuchDoor::new(Arc::new(config)),
            at: DoorTime { utc_ns: NOON_NS, mono_ns: 5 },
            left: Vec::new(),
            asked: Vec::new(),
            signs_on: None,
            sent: Vec::new(),
            is_closed: false,
        }
    }

    /// Member 7's session 1, from the number on.
    pub(crate) fn logged_on(session: &str, next: u64) -> Self {
        let mut rig = Self::new();
        rig.gives(&login("7", session, &next.to_string()));
        rig.hears(GatewayFrame::SignedOn(SignedOn::default()));
        rig.lists();
        rig.asked.clear();
        rig.sent.clear();
        rig
    }

    /// All that was there has been told.
    pub(crate) fn is_live(&mut self, next: u64) {
        self.hears(GatewayFrame::Resumed { shard: SHARD, next, reason: Reason::None });
    }

    pub(crate) fn lists(&mut self) {
        for (symbol, instrument, shard) in [("ACME", ACME, SHARD), ("FAR", AWAY, ShardId(1))] {
            let status = InstrumentStatus { shard, ..instrument_status(symbol, instrument) };
            self.hears(GatewayFrame::InstrumentStatus(status));
        }
        let request = ListRequest { token: 0, list: List::Instruments, instrument: None };
        self.hears(GatewayFrame::ListEnd(ListEnd { request, count: 2, reason: Reason::None }));
    }

    pub(crate) fn gives(&mut self, bytes: &[u8]) {
        self.left.extend_from_slice(bytes);
        self.takes();
    }

    fn takes(&mut self) {
        let (at, left) = (self.at, std::mem::take(&mut self.left));
        let mut used = 0;
        self.acts(|door, sink| used = door.on_bytes(at, &left, sink));
        self.left = left[used..].to_vec();
    }

    /// The client sends a message.
    pub(crate) fn says(&mut self, message: &[u8]) {
        self.gives(&packet(b'U', message));
    }

    pub(crate) fn hears(&mut self, frame: GatewayFrame) {
        let at = self.at;
        self.acts(|door, sink| door.on_frame(at, &frame, sink));
        self.takes();
    }

    pub(crate) fn told(&mut self, reply: Reply) {
        self.hears(GatewayFrame::Reply(reply));
    }

    pub(crate) fn waits(&mut self, ns: u64) {
        self.at = DoorTime { utc_ns: self.at.utc_ns + ns, mono_ns: self.at.mono_ns + ns };
        let at = self.at;
        self.acts(|door, sink| door.on_time(at, sink));
    }

    fn acts(&mut self, act: impl FnOnce(&mut OuchDoor, Sink<'_>)) {
        let Self { door, asked, sent, is_closed, signs_on, .. } = self;
        act(door, &mut |action| {
            assert!(!*is_closed, "after the end: {action:?}");
            match action {
                DoorAction::Send(bytes) => sent.extend_from_slice(bytes),
                DoorAction::Ask(frame) => asked.push(frame),
                DoorAction::LogOn { sign_on, proof } => {
                    assert_eq!(proof, Some(&LogonProof::Token(*b"secret    ")));
                    *signs_on = Some(sign_on);
                }
                DoorAction::Close => *is_closed = true,
                other => panic!("{other:?}"),
            }
        });
    }

    /// What was sent since the last time, packet by packet: type and payload.
    pub(crate) fn packets(&mut self) -> Vec<(char, Vec<u8>)> {
        packets(&std::mem::take(&mut self.sent))
    }

    /// The same of packets that are for people.
    pub(crate) fn texts(&mut self) -> Vec<String> {
        let packets = self.packets().into_iter();
        packets
            .map(|(kind, payload)| format!("{kind} {}", String::from_utf8(payload).expect("text")))
            .collect()
    }

    /// What was asked of the gateway since the last time, which is one request.
    pub(crate) fn request(&mut self) -> ClientRequest {
        let asked = std::mem::take(&mut self.asked);
        let [ClientFrame::Request(request)] = asked[..] else { panic!("{asked:?}") };
        request
    }

    /// The client enters an order, for which the gateway is asked.
    pub(crate) fn enters(&mut self, user_ref_num: u32) -> ClientRequest {
        self.says(&enter(user_ref_num, "ACME", &[]));
        self.request()
    }

    /// The same of a cancel.
    pub(crate) fn cancels(&mut self, user_ref_num: u32, quantity: u32) -> ClientRequest {
        self.says(&cancel(user_ref_num, quantity));
        self.request()
    }
}

pub(crate) fn packets(mut bytes: &[u8]) -> Vec<(char, Vec<u8>)> {
    let mut packets = Vec::new();
    while let [high, low, rest @ ..] = bytes {
        let length = usize::from(u16::from_be_bytes([*high, *low]));
        assert!(length > 0 && length <= rest.len(), "whole packets: {}", bytes.escape_ascii());
        packets.push((char::from(rest[0]), rest[1..length].to_vec()));
        bytes = &rest[length..];
    }
    assert!(bytes.is_empty());
    packets
}

pub(crate) fn packet(kind: u8, payload: &[u8]) -> Vec<u8> {
    let length = u16::try_from(payload.len() + 1).expect("short").to_be_bytes();
    [&length[..], &[kind], payload].concat()
}

/// A Login Request by hand.
pub(crate) fn login(member: &str, session: &str, next: &str) -> Vec<u8> {
    packet(b'L', format!("{member:<6}{:<10}{session:>10}{next:>20}", "secret").as_bytes())
}

/// An Enter Order by hand: 100 shares of a symbol at 1.5, and what is appended.
pub(crate) fn enter(user_ref_num: u32, symbol: &str, appendage: &[u8]) -> Vec<u8> {
    let mut message = vec![b'O'];
    message.extend_from_slice(&user_ref_num.to_be_bytes());
    message.extend_from_slice(b"B\0\0\0\x64");
    message.extend_from_slice(format!("{symbol:<8}").as_bytes());
    message.extend_from_slice(&15_000_u64.to_be_bytes());
    message.extend_from_slice(b"0YPNNmy order      ");
    message.extend_from_slice(&u16::try_from(appendage.len()).expect("short").to_be_bytes());
    message.extend_from_slice(appendage);
    message
}

pub(crate) fn cancel(user_ref_num: u32, quantity: u32) -> Vec<u8> {
    [&b"X"[..], &user_ref_num.to_be_bytes(), &quantity.to_be_bytes(), &[0, 0]].concat()
}

pub(crate) fn replace(original: u32, user_ref_num: u32, quantity: u32, units: u64) -> Vec<u8> {
    let mut message = vec![b'U'];
    message.extend_from_slice(&original.to_be_bytes());
    message.extend_from_slice(&user_ref_num.to_be_bytes());
    message.extend_from_slice(&quantity.to_be_bytes());
    message.extend_from_slice(&units.to_be_bytes());
    message.extend_from_slice(b" YNmy order      \0\0");
    message
}

/// Session 1's name of a UserRefNum.
pub(crate) fn named(user_ref_num: u64) -> ClientOrderId {
    ClientOrderId(1 << 48 | user_ref_num)
}

pub(crate) fn order(sequence: u64) -> OrderId {
    order_id(sequence)
}

/// The answer to an O, whose UserRefNum is its sequence.
pub(crate) fn answer(
    user_ref_num: u64,
    number: u64,
    status: Status,
    executed: u64,
    remaining: u64,
) -> Answer {
    let (client_order_id, executed, remaining) =
        (named(user_ref_num), Quantity(executed), Quantity(remaining));
    Answer { client_order_id, status, executed, remaining, ..replies::answer(user_ref_num, number) }
}

pub(crate) fn trade(user_ref_num: u64, number: u64) -> Trade {
    Trade { client_order_id: named(user_ref_num), index: 2, ..replies::trade(user_ref_num, number) }
}

pub(crate) fn cancelled(user_ref_num: u64, number: u64, cause: CancelCause) -> Cancelled {
    let (client_order_id, quantity) = (named(user_ref_num), Quantity(60));
    Cancelled { client_order_id, cause, quantity, ..replies::cancelled(user_ref_num, number) }
}

pub(crate) fn news(user_ref_num: u64, number: u64, change: OrderChange) -> OrderNews {
    OrderNews { client_order_id: named(user_ref_num), change, ..replies::news(user_ref_num, number) }
}

pub(crate) fn busted(user_ref_num: u64, number: u64) -> TradeBusted {
    TradeBusted { client_order_id: named(user_ref_num), index: 2, ..replies::busted(user_ref_num, number) }
}
