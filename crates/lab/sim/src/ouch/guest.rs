//! The program as a guest, and what the record says of it.

use pares_flow::Random;

use super::expected::message;
use super::packets::{Message, put_packet, take_packet};
use super::{ONCE, OuchClient, Phase, TOLD};
use crate::guest::{Guest, PATIENCE_NS, Recorded, spoil};
use crate::{Broken, Summary, Verdict, must};

impl Guest for OuchClient {
    fn call(&mut self, now_ns: u64, out: &mut Vec<u8>) {
        self.log_in(now_ns, out);
    }

    fn wake(&mut self, now_ns: u64, _: bool, out: &mut Vec<u8>) {
        self.go_on(now_ns, out);
    }

    fn log_out(&mut self, _: u64, out: &mut Vec<u8>) {
        if self.phase == Phase::On {
            put_packet(out, 'O', b"");
            self.is_spoilt = true;
        }
    }

    fn misbehave(&mut self, now_ns: u64, out: &mut Vec<u8>) {
        self.send_something_wrong(now_ns, out);
    }

    /// Garbage, half a login, none, one of another length or of nobody, one in its name; or nothing at all.
    fn forge(&self, _: u64, random: &mut Random) -> Vec<u8> {
        let mut login = self.login(1);
        match random.below(7) {
            0..=2 => login = spoil(login, random),
            3 => login = b"\0\x02UQ".to_vec(),
            4 => login[1] -= 1,
            5 => login[3..9].copy_from_slice(b"zzzzzz"),
            _ => {}
        }
        login
    }

    fn on_bytes(&mut self, now_ns: u64, bytes: &[u8], out: &mut Vec<u8>) -> Result<bool, Broken> {
        self.input.extend_from_slice(bytes);
        while let Some((kind, payload)) = take_packet(&mut self.input) {
            if self.on_packet(now_ns, (kind, &payload), out)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn on_disconnected(&mut self) {
        self.phase = Phase::Away;
        self.input.clear();
        self.questions.clear();
    }

    fn is_stuck(&self, now_ns: u64) -> bool {
        let is_late = now_ns > self.since_ns + PATIENCE_NS;
        let is_waiting = matches!(self.phase, Phase::LoggingIn(_)) || self.lacks_something();
        self.is_spoilt || is_late && is_waiting || self.phase == Phase::On && self.waits_too_long(now_ns)
    }

    fn is_quiet(&self) -> bool {
        self.phase == Phase::On && self.left == 0 && self.open.is_empty() && !self.lacks_something()
    }

    fn calm_down(&mut self) {
        (self.left, self.is_calm) = (0, true);
    }

    fn state(&self) -> String {
        let Self { phase, next, at, open, number, .. } = self;
        let open: Vec<_> = open.keys().take(3).collect();
        format!("{} {phase:?}, next {next}, at {at}, last UserRefNum {number}, open {open:?}", self.name())
    }

    fn untold(&self, recorded: Recorded<'_>) -> Option<String> {
        let told = recorded.stream(self.shard, self.member).len() as u64;
        let what = || format!("member {} {} lacks {} of {told}", self.member, self.name(), self.next);
        (self.next <= told).then(what)
    }

    fn check_asked(&self, recorded: Recorded<'_>) -> Verdict {
        recorded.check_entered(ONCE, self.member, |request, order| {
            let number = self.series().number(request.client_order_id);
            let asked = u32::try_from(number).ok().and_then(|number| self.asked.get(&number));
            let terms = (u64::from(request.instrument.0), order.side, order.quantity.0);
            let is_it = asked.is_some_and(|asked| asked.allows(terms));
            (number > 0 && !is_it).then(|| format!("{asked:?} over {}", self.name()))
        })
    }

    fn check_told(&self, recorded: Recorded<'_>) -> Verdict {
        let all = recorded.stream(self.shard, self.member);
        for (number, packet) in &self.heard {
            let reply = all.get(*number as usize - 1);
            let expected = reply.and_then(|reply| message(self.series(), reply));
            let told = Message::read(packet).ok();
            must(told.is_some() && told == expected, TOLD, || {
                format!("{number} of {}: {told:?}; the record: {expected:?}", self.name())
            })?;
        }
        Ok(())
    }

    fn count(&self, summary: &mut Summary) {
        summary.ouch = summary.ouch.and(&self.counts);
    }
}
