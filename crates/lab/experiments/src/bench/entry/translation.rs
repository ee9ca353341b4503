//! What the translation costs.

use std::sync::Arc;

use pares_exercise::replies::{self, ACME, SHARD, instrument_status};
use pares_ouch::OuchDoor;
use pares_port::{DoorAction, DoorConfig, DoorTime, ProtocolDoor};
use pares_types::{
    ClientOrderId, GatewayId, List, ListEnd, ListRequest, Quantity, Reason, Reply, Role, Trade,
};
use pares_wire::frame::{ClientFrame, GatewayFrame, SignedOn};

use super::median_ns;

const BATCH: u32 = 5_000;
const AT: DoorTime = DoorTime { utc_ns: 1_790_000_000_000_000_000, mono_ns: 1 };

/// Nanoseconds for an order in, and for a trade out.
pub(super) fn measure() -> (f64, f64) {
    let (mut door, mut order, mut number) = (logged_on(), order(), 0_u32);
    let enter_order_ns = median_ns(BATCH, || {
        number += 1;
        order[4..8].copy_from_slice(&number.to_be_bytes());
        let mut asked = None;
        door.on_bytes(AT, &order, &mut |action| {
            if let DoorAction::Ask(frame) = action {
                asked = Some(frame);
            }
        });
        assert!(matches!(asked, Some(ClientFrame::Request(_))));
        asked
    });
    let (mut door, mut number) = (logged_on(), 0_u64);
    let report_ns = median_ns(BATCH, || {
        number += 1;
        let mut sent = 0;
        door.on_frame(AT, &GatewayFrame::Reply(Reply::Trade(trade(number))), &mut |action| {
            if let DoorAction::Send(bytes) = action {
                sent += bytes.len();
            }
        });
        assert!(sent > 0);
        sent
    });
    (enter_order_ns, report_ns)
}

/// Session 1 of member 7, from the first message on.
fn logged_on() -> OuchDoor {
    let config = DoorConfig {
        comp_id: "PARES".into(),
        gateway: GatewayId(0),
        instruments: Vec::new(),
        shards: vec![SHARD],
        has_market: false,
        orders_max: 10_000,
    };
    let mut door = OuchDoor::new(Arc::new(config));
    let login = format!("{:<6}{:10}{:>10}{:>20}", 7, "", "1-0", 1);
    door.on_bytes(AT, &packet(b'L', login.as_bytes()), &mut |_| {});
    door.on_frame(AT, &GatewayFrame::SignedOn(SignedOn::default()), &mut |_| {});
    door.on_frame(AT, &GatewayFrame::InstrumentStatus(instrument_status("ACME", ACME)), &mut |_| {});
    let request = ListRequest { token: 0, list: List::Instruments, instrument: None };
    let end = ListEnd { request, count: 1, reason: Reason::None };
    door.on_frame(AT, &GatewayFrame::ListEnd(end), &mut |_| {});
    door
}

fn packet(kind: u8, payload: &[u8]) -> Vec<u8> {
    let length = u16::try_from(payload.len() + 1).expect("it is short");
    [&length.to_be_bytes()[..], &[kind], payload].concat()
}

/// An Enter Order; its UserRefNum begins at the packet's fourth byte.
fn order() -> Vec<u8> {
    let parts: [&[u8]; 5] =
        [b"O\0\0\0\0B\0\0\0\x64ACME    ", &15_000_u64.to_be_bytes(), b"0YPNN", b"              ", b"\0\0"];
    packet(b'U', &parts.concat())
}

fn trade(number: u64) -> Trade {
    let client_order_id = ClientOrderId(1 << 48 | number);
    let (quantity, remaining) = (Quantity(100), Quantity(0));
    Trade { client_order_id, role: Role::Incoming, quantity, remaining, ..replies::trade(number, number) }
}
