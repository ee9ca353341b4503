//! The engine as a guest, and what the record says it must have been told.

use std::collections::BTreeMap;

use pares_roles::world::DoorPort;

use super::{Asked, FixClient, TOLD, expected};
use crate::guest::{Guest, Recorded, Seat, spoil};
use crate::random::Random;
use crate::{Broken, Summary};

impl Guest for FixClient {
    fn port(&self) -> Option<DoorPort> {
        Some(DoorPort::Fix)
    }

    fn seat(&self) -> Seat {
        self.seat
    }

    fn seat_mut(&mut self) -> &mut Seat {
        &mut self.seat
    }

    fn call(&mut self, now_ns: u64, out: &mut Vec<u8>) {
        self.log_on(now_ns, out);
    }

    fn wake(&mut self, now_ns: u64, is_calm: bool, out: &mut Vec<u8>) {
        self.go_on(now_ns, is_calm, out);
    }

    fn log_out(&mut self, now_ns: u64, out: &mut Vec<u8>) {
        self.say_goodbye(now_ns, out);
    }

    fn misbehave(&mut self, now_ns: u64, out: &mut Vec<u8>) {
        self.send_something_wrong(now_ns, out);
    }

    /// Garbage, half a Logon, no Logon, one too long, a wrong sum, a Logon in another's name under a number that is gone; or nothing at all.
    fn forge(&self, now_ns: u64, random: &mut Random) -> Vec<u8> {
        let mut logon = self.first_logon(now_ns);
        match random.below(7) {
            0..=2 => logon = spoil(logon, random),
            3 => logon = b"8=FIX.4.4\x019=99999\x0135=A\x01".to_vec(),
            4 => logon = b"8=FIX.4.4\x019=5\x0135=0\x0110=161\x01".to_vec(),
            5 => {
                let at = logon.len() - 2;
                logon[at] ^= 1;
            }
            _ if !self.has_gone_on() => logon.clear(),
            _ => {}
        }
        logon
    }

    fn on_bytes(&mut self, now_ns: u64, bytes: &[u8], out: &mut Vec<u8>) -> Result<bool, Broken> {
        self.read(now_ns, bytes, out)
    }

    fn on_disconnected(&mut self) {
        self.forget_connection();
    }

    fn is_stuck(&self, now_ns: u64) -> bool {
        self.waits_too_long(now_ns)
    }

    fn is_quiet(&self) -> bool {
        self.waits_for_nothing()
    }

    fn calm_down(&mut self) {
        self.left = 0;
    }

    fn excuse(&mut self) {
        self.is_excused = true;
    }

    fn state(&self) -> String {
        self.describe()
    }

    fn untold(&self, recorded: Recorded<'_>) -> Option<String> {
        if self.is_excused {
            return None;
        }
        recorded.shards().find_map(|shard| {
            let all = expected(recorded, shard, self.seat.member);
            let mut untold =
                all.into_iter().filter(|(key, said)| said.is_some() && !self.told.contains_key(key));
            untold
                .next()
                .map(|(key, said)| format!("member {} was not told {key}: {said:?}", self.seat.member))
        })
    }

    fn check_asked(&self, recorded: Recorded<'_>) -> Result<(), Broken> {
        recorded.check_entered(TOLD, self.seat.member, |request, order| {
            let asked = self.asked.get(&request.client_order_id.0);
            let is_it = asked.is_some_and(|&Asked { instrument, side, price, quantity }| {
                let price = pares_types::NewOrder::limit(side, price, quantity).kind;
                (instrument, side, quantity) == (request.instrument, order.side, order.quantity)
                    && price == order.kind
            });
            (!is_it).then(|| format!("{asked:?}"))
        })
    }

    fn check_told(&self, recorded: Recorded<'_>) -> Result<(), Broken> {
        let all: BTreeMap<_, _> =
            recorded.shards().flat_map(|shard| expected(recorded, shard, self.seat.member)).collect();
        for (key, said) in self.told.iter().filter(|(key, _)| key.contains('-')) {
            let recorded = all.get(key);
            if !recorded.is_some_and(|one| one.as_ref().is_none_or(|one| one == said)) {
                let what = format!(
                    "member {} was told {key} {said:?}; the record says {recorded:?}",
                    self.seat.member
                );
                return Err(Broken { invariant: TOLD, what });
            }
        }
        Ok(())
    }

    fn count(&self, summary: &mut Summary) {
        summary.fix = summary.fix.and(&self.counts);
    }
}
