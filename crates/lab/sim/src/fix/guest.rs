//! The engine as a guest, and what the record says it must have been told.

use std::collections::BTreeMap;

use pares_fix::framing::{Cut, cut};
use pares_flow::Random;
use pares_types::{Command, Request};

use super::{Asked, FixClient, Message, Phase, Said, TOLD, broken, expected};
use crate::guest::{Guest, PATIENCE_NS, Recorded, spoil};
use crate::{Broken, Summary, Verdict, must};

impl Guest for FixClient {
    fn call(&mut self, now_ns: u64, out: &mut Vec<u8>) {
        (self.phase, self.since_ns) = (Phase::LoggingOn, now_ns);
        if self.begins_anew {
            (self.next_out, self.next_in, self.highest) = (1, 1, 0);
            self.heard.clear();
            self.sent.clear();
        }
        self.logged_on_by = self.next_out;
        let heartbeat_s = [0, 1, 1, 30][self.random.index(4)];
        let mut fields = format!("98=0|108={heartbeat_s}|");
        if self.begins_anew {
            fields += "141=Y|";
        }
        if self.dictionary.begin_string == "FIX.4.4" && self.random.chance(300) {
            fields += &format!("789={}|", self.next_in);
        }
        self.say(now_ns, "A", &fields, out);
    }

    fn wake(&mut self, now_ns: u64, is_calm: bool, out: &mut Vec<u8>) {
        self.go_on(now_ns, is_calm, out);
    }

    fn log_out(&mut self, now_ns: u64, out: &mut Vec<u8>) {
        if self.phase == Phase::On {
            (self.phase, self.since_ns) = (Phase::LoggingOut, now_ns);
            self.say(now_ns, "5", "", out);
        }
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
        let mut input = std::mem::take(&mut self.input);
        input.extend_from_slice(bytes);
        let (mut rest, mut is_over) = (&input[..], false);
        while !is_over {
            let (found, used) = cut(rest);
            match found {
                Cut::Incomplete => break,
                Cut::Whole(frame) => {
                    self.parser_accepts(&frame)?;
                    is_over = self.on_message(now_ns, Message::read(frame.body), out)?;
                }
                Cut::Garbled | Cut::TooLong => {
                    return broken("the protocol", format!("no FIX: {}", rest.escape_ascii()));
                }
            }
            rest = &rest[used..];
        }
        self.input = rest.to_vec();
        Ok(is_over)
    }

    fn on_disconnected(&mut self) {
        (self.phase, self.gap) = (Phase::Away, None);
        self.input.clear();
        self.early.clear();
        self.highest = self.next_in - 1;
        self.counts.trades_cut += u64::from(self.trades.forget_connection());
    }

    fn is_stuck(&self, now_ns: u64) -> bool {
        matches!(self.phase, Phase::LoggingOn | Phase::LoggingOut) && now_ns > self.since_ns + PATIENCE_NS
    }

    fn is_quiet(&self) -> bool {
        let lacks_nothing = self.gap.is_none() && self.highest < self.next_in;
        self.phase == Phase::On
            && lacks_nothing
            && self.left == 0
            && self.open.is_empty()
            && self.trades.waits_for_nothing()
    }

    fn calm_down(&mut self) {
        self.left = 0;
        self.trades.calm_down();
    }

    fn excuse(&mut self) {
        self.is_excused = true;
    }

    fn state(&self) -> String {
        let Self { phase, next_in, highest, gap, open, next_out, .. } = self;
        let open: Vec<_> = open.keys().take(3).collect();
        format!("{phase:?}, next in {next_in} of {highest}, gap {gap:?}, next out {next_out}, open {open:?}")
    }

    fn untold(&self, recorded: Recorded<'_>) -> Option<String> {
        if self.is_excused {
            return None;
        }
        recorded.shards().find_map(|shard| {
            let all = expected(recorded, shard, self.told_of);
            // A copy receives reports from its first Logon on.
            let was_told =
                |(key, _): &(&String, &(u64, Option<Said>))| of_record(key) && self.told.contains_key(*key);
            let first = all.iter().filter(was_told).map(|(_, (number, _))| *number).min();
            let first = if self.is_copy() { first.unwrap_or(u64::MAX) } else { 0 };
            // FIX 4.2 has no report of a mass cancel, which the other member may have asked for by 4.4.
            let has_none = |key: &str| self.dictionary.begin_string == "FIX.4.2" && key.starts_with("r:");
            let mut untold = all.into_iter().filter(|(key, (number, said))| {
                *number >= first && said.is_some() && !self.told.contains_key(key) && !has_none(key)
            });
            untold.next().map(|(key, said)| format!("member {} was not told {key}: {said:?}", self.member))
        })
    }

    fn check_asked(&self, recorded: Recorded<'_>) -> Verdict {
        let mut requests =
            recorded.shards().flat_map(|shard| recorded.of(shard)).map(|record| &record.request);
        requests.try_for_each(|request| self.was_asked(request))
    }

    fn check_told(&self, recorded: Recorded<'_>) -> Verdict {
        let all: BTreeMap<_, _> =
            recorded.shards().flat_map(|shard| expected(recorded, shard, self.told_of)).collect();
        for (key, said) in self.told.iter().filter(|(key, _)| of_record(key)) {
            let recorded = all.get(key).map(|(_, said)| said);
            must(recorded.is_some_and(|one| one.as_ref().is_none_or(|one| one == said)), TOLD, || {
                format!("member {} was told {key} {said:?}; the record says {recorded:?}", self.member)
            })?;
        }
        self.trades.check(recorded, self.told_of)
    }

    fn count(&self, summary: &mut Summary) {
        summary.fix = summary.fix.and(&self.counts);
    }
}

/// Whether what is reported under it has a place in the record.
fn of_record(key: &str) -> bool {
    key.contains('-') && !key.starts_with('R')
}

impl FixClient {
    /// Whether what is recorded was asked for, in all its terms, and not only refused at once.
    fn was_asked(&self, request: &Request) -> Verdict {
        if request.member != self.member {
            return Ok(());
        }
        let name = request.client_order_id.0;
        let asked = self.asked.get(&name).filter(|_| !self.is_copy());
        let is_it = match (request.command, asked) {
            (Command::Enter(order), Some(Asked::Order(instrument, asked))) => {
                (*instrument, *asked) == (request.instrument, order)
            }
            (Command::Amend(terms), Some(Asked::Replacement(price, quantity))) => {
                let others = (terms.display, terms.trigger, terms.time_in_force);
                (*price, *quantity, (None, None, None)) == (terms.price, terms.quantity, others)
            }
            (Command::MassCancel { .. }, Some(Asked::Mass(instrument))) => *instrument == request.instrument,
            (Command::Cancel { .. }, Some(Asked::Cancel)) => true,
            (
                Command::Enter(_) | Command::Amend(_) | Command::MassCancel { .. } | Command::Cancel { .. },
                _,
            ) => false,
            // Not the member's own.
            _ => return Ok(()),
        };
        must(is_it, TOLD, || format!("recorded: {request:?}; asked: {asked:?}"))?;
        let (said, refused) = (self.said.get(&name), self.refused.get(&name));
        must(refused.copied().unwrap_or_default() < said.copied().unwrap_or_default(), TOLD, || {
            format!("recorded: {request:?}; sent {said:?} times, and refused at once as often")
        })
    }
}
