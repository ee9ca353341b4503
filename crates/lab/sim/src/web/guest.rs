//! The member as a guest, and what the record says of it.

use pares_flow::Random;
use pares_types::{ClientRequest, ShardId};
use pares_wire::frame;

use super::follower::{Follower, Stretch};
use super::{ANSWER, ONCE, Phase, TOLD, WebClient, plain};
use crate::guest::{Guest, PATIENCE_NS, Recorded, spoil};
use crate::{Broken, Summary, Verdict, must};

impl Guest for WebClient {
    fn call(&mut self, now_ns: u64, out: &mut Vec<u8>) {
        (self.phase, self.since_ns) = (Phase::SigningOn, now_ns);
        out.extend(self.sign_on());
    }

    fn wake(&mut self, now_ns: u64, is_calm: bool, out: &mut Vec<u8>) {
        self.go_on(now_ns, is_calm);
        self.flush(out);
    }

    /// The session is ended by its client, or the server dies.
    fn log_out(&mut self, _: u64, _: &mut Vec<u8>) {
        self.is_doomed = true;
    }

    fn misbehave(&mut self, _: u64, out: &mut Vec<u8>) {
        self.ask_wrongly();
        self.flush(out);
    }

    /// Garbage, half a sign-on, one that takes the session over; or nothing at all.
    fn forge(&self, _: u64, random: &mut Random) -> Vec<u8> {
        let sign_on = self.sign_on();
        if random.chance(700) { spoil(sign_on, random) } else { sign_on }
    }

    fn on_bytes(&mut self, now_ns: u64, bytes: &[u8], out: &mut Vec<u8>) -> Result<bool, Broken> {
        self.input.extend_from_slice(bytes);
        let input = std::mem::take(&mut self.input);
        let (mut rest, mut is_over) = (&input[..], false);
        while !is_over {
            let Some((kind, body, behind)) = frame::split(rest).expect("gateways send frames") else { break };
            let frame = frame::decode_gateway(kind, body).expect("gateways send frames that are known");
            is_over = self.on_frame(now_ns, frame, out)?;
            rest = behind;
        }
        self.input = rest.to_vec();
        Ok(is_over)
    }

    fn on_disconnected(&mut self) {
        self.phase = Phase::Away;
        self.input.clear();
        self.line.on_lost();
        if self.is_doomed || self.random.chance(200) {
            self.die();
        }
    }

    fn is_stuck(&self, now_ns: u64) -> bool {
        let is_late = now_ns > self.since_ns + PATIENCE_NS;
        let waits = !self.open.is_empty() || !self.waiting.is_empty();
        let waits = waits || self.followers.iter().any(Follower::waits);
        self.is_doomed || is_late && (self.phase == Phase::SigningOn || waits)
    }

    fn is_quiet(&self) -> bool {
        let waits = !self.open.is_empty() || !self.waiting.is_empty() || !self.questions.is_empty();
        self.phase == Phase::On && self.left == 0 && !waits
    }

    fn calm_down(&mut self) {
        self.left = 0;
    }

    fn state(&self) -> String {
        let open: Vec<_> = self.open.keys().take(3).collect();
        let waiting: Vec<_> = self.waiting.values().take(3).collect();
        format!("{:?}, open {open:?}, waiting {waiting:?}, {:?}", self.phase, self.standings())
    }

    fn untold(&self, recorded: Recorded<'_>) -> Option<String> {
        recorded.shards().find_map(|shard| {
            let told = recorded.stream(shard, self.member).len() as u64;
            let next = self.followers.iter().map(|one| one.next(shard)).min().unwrap_or(1);
            (next <= told).then(|| format!("member {} was not told {next} of {told} of {shard}", self.member))
        })
    }

    fn check_asked(&self, recorded: Recorded<'_>) -> Verdict {
        recorded.check_entered(ONCE, self.member, |request, order| {
            let asked = self.asked.get(&request.client_order_id.0);
            let (client_order_id, instrument, order) = (request.client_order_id, request.instrument, *order);
            let entered = ClientRequest::Enter { client_order_id, instrument, order };
            (!asked.is_some_and(|asked| asked.contains(&entered))).then(|| format!("{asked:?}"))
        })
    }

    fn check_told(&self, recorded: Recorded<'_>) -> Verdict {
        for shard in recorded.shards() {
            let stream: Vec<_> = recorded.stream(shard, self.member).into_iter().map(plain).collect();
            let told = self.followers.iter().flat_map(Follower::told).filter(|told| told.shard == shard);
            for Stretch { first, told, .. } in told {
                for (number, told) in (*first..).zip(told) {
                    let reply = stream.get(number as usize - 1);
                    must(reply == Some(told), TOLD, || {
                        format!("{number} of {shard}: {told:?}; the record: {reply:?}")
                    })?;
                }
            }
        }
        for (name, answer) in &self.answered {
            let record = recorded.of(answer.shard).find(|record| record.position == answer.position);
            let said = record.map(|record| {
                let of = (record.request.member, record.request.client_order_id.0);
                (of, record.outcome.status, record.outcome.reason)
            });
            must(said == Some(((self.member, *name), answer.status, answer.reason)), ANSWER, || {
                format!("{name} was told {answer:?}; the record: {said:?}")
            })?;
        }
        Ok(())
    }

    fn count(&self, summary: &mut Summary) {
        summary.web = summary.web.and(&self.counts);
    }
}

impl WebClient {
    /// What comes next for the follower that continues, of each stream.
    fn standings(&self) -> Vec<(ShardId, u64)> {
        let [one, _] = &self.followers;
        one.shards().into_iter().map(|shard| (shard, one.next(shard))).collect()
    }
}
