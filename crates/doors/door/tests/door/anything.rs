//! Whatever comes from either side, a door answers with whole messages or ends, and panics never.

use pares_fix::dictionary::{FIX42, FIX44};
use pares_types::{
    Answer, CancelCause, Cancelled, ClientOrderId, InstrumentId, List, ListEnd, ListRequest, OrderChange,
    OrderId, OrderKey, OrderNews, OrderState, OrderStatus, Position, Price, Quantity, Reason, Reply, Role,
    ShardId, Side, Status, Trade, TradeBusted,
};
use pares_wire::frame::GatewayFrame;

use crate::rig::{ACME, Rig, SHARD, request_id};

/// Numbers that are no more than drawn.
struct Draw(u64);

impl Draw {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u64) as usize]
    }

    /// Mostly small, sometimes as large as can be.
    fn amount(&mut self) -> u64 {
        if self.below(16) == 0 { u64::MAX - self.below(3) } else { self.below(12) }
    }
}

fn reply(draw: &mut Draw) -> Reply {
    let name = ClientOrderId(draw.below(6));
    let order = OrderId(request_id(1 + draw.below(6)));
    let shard = draw.of(&[SHARD, SHARD, SHARD, ShardId(9)]);
    let position = Position(draw.amount());
    let (number, instrument) = (draw.amount(), draw.of(&[ACME, ACME, InstrumentId(0), InstrumentId(3)]));
    let (client_order_id, quantity, remaining) = (name, Quantity(draw.amount()), Quantity(draw.amount()));
    let (side, price) = (draw.of(&[Side::Buy, Side::Sell]), Price(draw.amount() as i64));
    match draw.below(8) {
        0..3 => Reply::Answer(Answer {
            client_order_id,
            request: draw.of(&[order.0, request_id(1 + name.0)]),
            order,
            shard,
            position,
            instrument,
            status: draw.of(&Status::ALL),
            reason: draw.of(&Reason::ALL),
            executed: quantity,
            remaining,
            events: 0,
            repeat: draw.below(3) == 0,
            number,
        }),
        3 => Reply::Trade(Trade {
            client_order_id,
            order,
            shard,
            position,
            index: draw.below(3) as u16,
            instrument,
            side,
            role: draw.of(&[Role::Resting, Role::Incoming]),
            price,
            quantity,
            remaining,
            number,
        }),
        4 => {
            let cause = draw.of(&CancelCause::ALL);
            Reply::Cancelled(Cancelled {
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
            })
        }
        5 => {
            let (change, shown) = (draw.of(&OrderChange::ALL), Quantity(draw.amount()));
            Reply::News(OrderNews {
                client_order_id,
                order,
                shard,
                position,
                instrument,
                side,
                change,
                price,
                remaining,
                shown,
                number,
            })
        }
        6 => {
            let (traded_at, index) = (Position(draw.amount()), 0);
            Reply::Busted(TradeBusted {
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
            })
        }
        _ => {
            let client_order_id = ClientOrderId(name.0.max(1));
            Reply::Rejected { client_order_id, reason: draw.of(&Reason::ALL) }
        }
    }
}

fn frame(draw: &mut Draw) -> GatewayFrame {
    match draw.below(12) {
        0 => {
            let status = OrderStatus {
                client_order_id: ClientOrderId(draw.below(6)),
                order: OrderId(request_id(1 + draw.below(6))),
                instrument: ACME,
                shard: SHARD,
                next: Position(draw.amount()),
                state: draw.of(&OrderState::ALL),
                remaining: Quantity(draw.amount()),
                side: draw.of(&[None, Some(Side::Sell)]),
                executed: Quantity(draw.amount()),
            };
            let key = draw.of(&[OrderKey::Name(status.client_order_id), OrderKey::Id(status.order)]);
            GatewayFrame::OrderStatus(key, draw.of(&[None, Some(status)]))
        }
        1 => {
            let (list, token) = (draw.of(&List::ALL), draw.below(3));
            let request = ListRequest { token, list, instrument: None };
            GatewayFrame::ListEnd(ListEnd {
                request,
                count: 0,
                reason: draw.of(&[Reason::None, Reason::AlreadyAsked]),
            })
        }
        2 => {
            let reason = draw.of(&[Reason::None, Reason::NotKept]);
            GatewayFrame::Resumed { shard: draw.of(&[SHARD, ShardId(9)]), next: draw.amount(), reason }
        }
        _ => GatewayFrame::Reply(reply(draw)),
    }
}

const FIELDS: [&str; 30] = [
    "11=1|",
    "11=2|",
    "11=3|",
    "11=x|",
    "41=1|",
    "41=2|",
    "41=y|",
    "37=1:1|",
    "37=x|",
    "55=ACME|",
    "55=NONE|",
    "54=1|",
    "54=2|",
    "54=5|",
    "38=100|",
    "38=0.5|",
    "40=1|",
    "40=2|",
    "40=P|",
    "44=1.5|",
    "44=-99999999999999999999|",
    "99=1|",
    "59=3|",
    "59=6|",
    "126=20260921-12:00:00|",
    "111=7|",
    "18=6 R|",
    "20001=3|",
    "97=Y|",
    "43=Y|122=20200101-00:00:00|",
];

/// A message with some fields; its header's first, so that many are right.
fn speak(rig: &mut Rig, draw: &mut Draw) {
    let msg_type = draw.of(&["D", "D", "F", "G", "H", "q", "AD", "AF", "0", "1", "2", "5", "A", "8", "*"]);
    let right = "11=4|41=3|55=ACME|54=1|38=100|40=2|44=1.5|60=20260921-12:00:00|";
    let fields = match (msg_type, draw.below(3)) {
        ("D", 1..) => right.replace("41=3|", ""),
        ("G", 1..) => right.to_owned(),
        ("F", 1..) => right.replace("40=2|44=1.5|", ""),
        ("H", 1..) => "11=4|55=ACME|54=1|".into(),
        ("q", 1..) => "11=5|530=7|60=20260921-12:00:00|".into(),
        ("AD", 1..) => format!("568=t{}|569=0|263={}|", draw.below(2), draw.below(3)),
        ("AF", 1..) => "584=x|585=7|".into(),
        ("2", 1..) => format!("7={}|16=0|", 1 + draw.below(5)),
        ("0", 1..) => format!("112=TOLD-{}|", draw.below(3)),
        ("5", _) if draw.below(20) > 0 => return,
        _ => (0..draw.below(8)).map(|_| draw.of(&FIELDS)).collect(),
    };
    let at = rig.at;
    let mut bytes = rig.message(msg_type, &fields);
    if draw.below(10) == 0 {
        let place = draw.below(bytes.len() as u64) as usize;
        bytes[place] = draw.below(256) as u8;
    }
    rig.acts(|door, mut sink| {
        door.on_bytes(at, &bytes, &mut sink);
    });
}

#[test]
fn whatever_comes_no_door_panics_and_what_it_says_is_right() {
    for seed in 1..400_u64 {
        let mut draw = Draw(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let mut rig = Rig::new(draw.of(&[&FIX42, &FIX44]));
        if draw.below(4) > 0 {
            rig.logs_on(None, Some(1));
        }
        for _ in 0..draw.below(150) {
            if rig.is_closed {
                break;
            }
            match draw.below(8) {
                0 => rig.waits(draw.below(40) * 1_000_000_000),
                1..4 => speak(&mut rig, &mut draw),
                _ => rig.hears(frame(&mut draw)),
            }
        }
        rig.sent();
    }
}
