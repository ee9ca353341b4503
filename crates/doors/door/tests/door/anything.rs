//! Whatever comes from either side, a door answers with whole messages or ends, and panics never.

use pares_exercise::replies::{amount, any_reply, order_status};
use pares_fix::dictionary::{FIX42, FIX44};
use pares_port::ProtocolDoor;
use pares_random::Random;
use pares_types::{
    ClientOrderId, List, ListEnd, ListRequest, OrderKey, OrderState, OrderStatus, Position, Quantity, Reason,
    Reply, ShardId, Side,
};
use pares_wire::frame::GatewayFrame;

use crate::rig::{Rig, SHARD};

fn reply(draw: &mut Random) -> Reply {
    let name = ClientOrderId(draw.below(6));
    let number = amount(draw);
    match any_reply(draw, name, number) {
        // No gateway sends this without a name.
        Reply::Rejected { client_order_id, reason } => {
            Reply::Rejected { client_order_id: ClientOrderId(client_order_id.0.max(1)), reason }
        }
        reply => reply,
    }
}

fn frame(draw: &mut Random) -> GatewayFrame {
    match draw.below(12) {
        0 => {
            let status = OrderStatus {
                next: Position(amount(draw)),
                state: draw.pick(&OrderState::ALL),
                remaining: Quantity(amount(draw)),
                side: draw.pick(&[None, Some(Side::Sell)]),
                executed: Quantity(amount(draw)),
                ..order_status(1 + draw.below(6))
            };
            let key = draw.pick(&[OrderKey::Name(status.client_order_id), OrderKey::Id(status.order)]);
            GatewayFrame::OrderStatus(key, draw.pick(&[None, Some(status)]))
        }
        1 => {
            let (list, token) = (draw.pick(&List::ALL), draw.below(3));
            let request = ListRequest { token, list, instrument: None };
            GatewayFrame::ListEnd(ListEnd {
                request,
                count: 0,
                reason: draw.pick(&[Reason::None, Reason::AlreadyAsked]),
            })
        }
        2 => {
            let reason = draw.pick(&[Reason::None, Reason::NotKept]);
            GatewayFrame::Resumed { shard: draw.pick(&[SHARD, ShardId(9)]), next: amount(draw), reason }
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
fn speak(rig: &mut Rig, draw: &mut Random) {
    let msg_type = draw.pick(&["D", "D", "F", "G", "H", "q", "AD", "AF", "0", "1", "2", "5", "A", "8", "*"]);
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
        _ => (0..draw.below(8)).map(|_| draw.pick(&FIELDS)).collect(),
    };
    let at = rig.at;
    let mut bytes = rig.message(msg_type, &fields);
    if draw.below(10) == 0 {
        let place = draw.below(bytes.len() as u64) as usize;
        bytes[place] = draw.below(256) as u8;
    }
    rig.acts(|door, sink| {
        door.on_bytes(at, &bytes, sink);
    });
}

#[test]
fn whatever_comes_no_door_panics_and_what_it_says_is_right() {
    for seed in 1..400_u64 {
        let mut draw = Random::new(seed);
        let mut rig = Rig::new(draw.pick(&[&FIX42, &FIX44]));
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
            // Within a session. Of the first of a connection one that is right is no answer.
            match rig.logon.take().map(|_| draw.below(4)) {
                None => {}
                Some(0) => rig.hears(GatewayFrame::Reply(Reply::Rejected {
                    client_order_id: ClientOrderId(0),
                    reason: Reason::WrongClock,
                })),
                Some(_) => rig.proves(),
            }
        }
        rig.sent();
    }
}
