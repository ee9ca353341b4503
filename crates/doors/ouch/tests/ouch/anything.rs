//! Whatever comes from either side, a door answers with whole packets or ends, and panics never.

use pares_types::{
    Answer, CancelCause, Cancelled, ClientOrderId, GatewayId, InstrumentId, OrderChange, OrderId, OrderNews,
    Position, Price, Quantity, Reason, Reply, RequestId, Role, ShardId, Side, Status, Trade, TradeBusted,
};

use crate::rig::{ACME, Rig, SHARD, cancel, enter, packet, replace};

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

fn reply(draw: &mut Draw, next: &mut u64) -> Reply {
    let name = ClientOrderId(draw.of(&[1, 1, 0x4001, 2]) << 48 | draw.below(6));
    let order = OrderId(RequestId::new(GatewayId(1), 1 + draw.below(6)));
    let shard = draw.of(&[SHARD, SHARD, SHARD, ShardId(9)]);
    let position = Position(draw.amount());
    *next += u64::from(draw.below(50) > 0);
    let (number, instrument) = (*next, draw.of(&[ACME, ACME, InstrumentId(0), InstrumentId(3)]));
    let (client_order_id, quantity, remaining) = (name, Quantity(draw.amount()), Quantity(draw.amount()));
    let (side, price) = (draw.of(&[Side::Buy, Side::Sell]), Price(draw.amount() as i64));
    match draw.below(8) {
        0..3 => Reply::Answer(Answer {
            client_order_id,
            request: draw.of(&[order.0, RequestId::new(GatewayId(1), 3)]),
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
            number: if draw.below(5) == 0 { 0 } else { number },
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
            let client_order_id = ClientOrderId(if draw.below(40) == 0 { 0 } else { name.0 });
            Reply::Rejected { client_order_id, reason: draw.of(&Reason::ALL) }
        }
    }
}

/// A message, mostly a right one, sometimes with a byte of it another one.
fn speak(rig: &mut Rig, draw: &mut Draw) {
    let number = draw.below(30) as u32;
    let values =
        [&[2_u8, 6, b'M'][..], &[5, 15, 0, 0, 0, 60], &[9, 200, 1], &[0], &[2, 12, b'P', 2, 29, b'O'], &[]];
    let mut bytes = packet(
        b'U',
        &match draw.below(7) {
            0..2 => enter(number, draw.of(&["ACME", "FAR", "#17", "?"]), draw.of(&values)),
            2 => replace(number / 2, number, 7, draw.amount()),
            3 => cancel(number, draw.below(3) as u32),
            4 => [&[draw.of(b"CDE"), 0, 0, 0, number as u8][..], b"            \0\0"].concat(),
            5 => b"Q".to_vec(),
            _ => (0..draw.below(60)).map(|_| draw.below(256) as u8).collect(),
        },
    );
    if draw.below(12) == 0 {
        let place = 2 + draw.below(bytes.len() as u64 - 2) as usize;
        bytes[place] = draw.below(256) as u8;
    }
    let cut = draw.below(bytes.len() as u64) as usize;
    rig.gives(&bytes[..cut]);
    if !rig.is_closed {
        rig.gives(&bytes[cut..]);
    }
}

#[test]
fn whatever_comes_no_door_panics_and_it_sends_whole_packets() {
    let mut told = 0;
    for seed in 1..800_u64 {
        let mut draw = Draw(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let mut next = 0;
        let mut rig = if draw.below(6) > 0 { Rig::logged_on("1-0", 1) } else { Rig::new() };
        for _ in 0..draw.below(150) {
            if rig.is_closed {
                break;
            }
            match draw.below(8) {
                0 => rig.waits(draw.below(4) * 1_000_000_000),
                1..4 => speak(&mut rig, &mut draw),
                _ => rig.told(reply(&mut draw, &mut next)),
            }
        }
        told += rig.packets().iter().filter(|(kind, _)| *kind == 'S').count();
    }
    assert!(told > 1_000, "{told}");
}
