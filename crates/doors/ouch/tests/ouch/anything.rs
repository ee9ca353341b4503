//! Whatever comes from either side, a door answers with whole packets or ends, and panics never.

use pares_exercise::replies::{amount, any_reply};
use pares_random::Random;
use pares_types::{Answer, ClientOrderId, Reply};

use crate::rig::{Rig, cancel, enter, packet, replace};

fn reply(draw: &mut Random, next: &mut u64) -> Reply {
    let name = ClientOrderId(draw.pick(&[1, 1, 0x4001, 2]) << 48 | draw.below(6));
    *next += u64::from(!draw.one_in(50));
    match any_reply(draw, name, *next) {
        Reply::Answer(answer) if draw.one_in(5) => Reply::Answer(Answer { number: 0, ..answer }),
        Reply::Rejected { reason, .. } if draw.one_in(40) => {
            Reply::Rejected { client_order_id: ClientOrderId(0), reason }
        }
        reply => reply,
    }
}

/// A message, mostly a right one, sometimes with a byte of it another one.
fn speak(rig: &mut Rig, draw: &mut Random) {
    let number = draw.below(30) as u32;
    let values =
        [&[2_u8, 6, b'M'][..], &[5, 15, 0, 0, 0, 60], &[9, 200, 1], &[0], &[2, 12, b'P', 2, 29, b'O'], &[]];
    let mut bytes = packet(
        b'U',
        &match draw.below(7) {
            0..2 => enter(number, draw.pick(&["ACME", "FAR", "#17", "?"]), draw.pick(&values)),
            2 => replace(number / 2, number, 7, amount(draw)),
            3 => cancel(number, draw.below(3) as u32),
            4 => [&[draw.pick(b"CDE"), 0, 0, 0, number as u8][..], b"            \0\0"].concat(),
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
        let mut draw = Random::new(seed);
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
    assert!(told > 500, "{told}");
}
