//! A member's OUCH program, written against the page alone (docs/protocols/ouch.md).
//!
//! It keeps every packet that it was ever told by its number: whichever gateway it calls, and from whichever number on, the same packet must
//! come. It keeps its UserRefNums too, and sends again what was not answered when it logs in.

mod expected;
mod guest;
mod orders;
mod packets;

use std::collections::{BTreeMap, VecDeque};

use pares_flow::Random;
use pares_port::DoorPort;
use pares_types::{MemberId, ShardId};

use crate::guest::Seat;
use crate::scenario::Scenario;
use crate::{Broken, OuchSeen, Verdict, broken};

use expected::Series;
use orders::{Asked, Open};
use packets::{Message, put_packet};

/// That a packet is the same at every gateway and every telling.
const SAME: &str = "Y1 a packet is the same everywhere";
/// That all of the stream is sent, as it is in the record.
const TOLD: &str = "Y2 all is told";
/// That an order is entered once.
const ONCE: &str = "Y3 an order once";
const PROTOCOL: &str = "the protocol";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Away,
    /// From which number on it wants to be told.
    LoggingIn(u64),
    On,
}

/// A member's program, of one session, and all it knows.
pub(crate) struct OuchClient {
    member: MemberId,
    session: u16,
    shard: ShardId,
    is_guarded: bool,
    random: Random,
    /// Numbers of its shard's instruments, the first and the last, and of one of another shard.
    instruments: (u64, u64),
    elsewhere: Option<u64>,
    left: u64,
    is_calm: bool,
    phase: Phase,
    since_ns: u64,
    /// It has sent what makes its connection of no more use.
    is_spoilt: bool,
    input: Vec<u8>,
    /// The number of the connection's first packet, and of its next one.
    first: u64,
    at: u64,
    /// The first number that it has not heard.
    next: u64,
    heard: BTreeMap<u64, Vec<u8>>,
    /// The last UserRefNum, and the last one of this connection.
    number: u32,
    sent: u32,
    /// The last one at each Q that is not answered.
    questions: VecDeque<u32>,
    open: BTreeMap<u32, Open>,
    asked: BTreeMap<u32, Asked>,
    counts: OuchSeen,
}

impl OuchClient {
    pub(crate) fn seated(member: MemberId, shard: usize, scenario: &Scenario, mut random: Random) -> Seat {
        let each = scenario.instruments_per_shard as u64;
        let first = shard as u64 * each + 1;
        let shard = u16::try_from(shard).expect("few shards");
        let (is_guarded, home) = (random.chance(300), random.index(8));
        let client = Self {
            member,
            session: shard + 1,
            shard: ShardId(shard),
            is_guarded,
            instruments: (first, first + each - 1),
            elsewhere: (scenario.shards > 1).then(|| if shard == 0 { each + 1 } else { 1 }),
            left: scenario.requests_per_client,
            is_calm: false,
            random,
            phase: Phase::Away,
            since_ns: 0,
            is_spoilt: false,
            input: Vec::new(),
            first: 1,
            at: 1,
            next: 1,
            heard: BTreeMap::new(),
            number: 0,
            sent: 0,
            questions: VecDeque::new(),
            open: BTreeMap::new(),
            asked: BTreeMap::new(),
            counts: OuchSeen::default(),
        };
        Seat::new(member, Some(DoorPort::Ouch), home, client)
    }

    fn series(&self) -> Series {
        Series::of(self.session, self.is_guarded)
    }

    /// The session as logins name it.
    fn name(&self) -> String {
        format!("{}{}{}", self.session, if self.is_guarded { 'G' } else { '-' }, self.shard.0)
    }

    /// A Login Request from a number on.
    fn login(&self, from: u64) -> Vec<u8> {
        let payload = format!("{:<6}{:10}{:>10}{from:>20}", self.member.0, "", self.name());
        let mut out = Vec::new();
        put_packet(&mut out, 'L', payload.as_bytes());
        out
    }

    /// Logs in from the number that it lacks; sometimes from an older one, or from whatever comes next.
    fn log_in(&mut self, now_ns: u64, out: &mut Vec<u8>) {
        let from = match self.random.below(10) {
            0..=2 => 1 + self.random.below(self.next),
            3 if !self.is_calm => 0,
            _ => self.next,
        };
        (self.phase, self.since_ns, self.is_spoilt, self.sent) = (Phase::LoggingIn(from), now_ns, false, 0);
        out.extend_from_slice(&self.login(from));
    }

    fn lacks_something(&self) -> bool {
        self.phase == Phase::On && self.next < self.first
    }

    /// A packet. Says whether the connection is over.
    fn on_packet(&mut self, now_ns: u64, packet: (char, &[u8]), out: &mut Vec<u8>) -> Result<bool, Broken> {
        match (self.phase, packet) {
            (Phase::LoggingIn(from), ('A', payload)) => self.on_accepted(now_ns, from, payload, out)?,
            (Phase::LoggingIn(_), ('J', b"A" | b"S")) => {
                self.counts.rejected += 1;
                return Ok(true);
            }
            (Phase::On, ('S', message)) => self.on_sequenced(message)?,
            (Phase::On, ('+', text)) => self.on_said(&String::from_utf8_lossy(text))?,
            (Phase::On, ('H', b"")) => {}
            (Phase::On, ('Z', b"")) => return Ok(true),
            (phase, (kind, payload)) => {
                return broken(PROTOCOL, format!("{phase:?}: {kind} {}", payload.escape_ascii()));
            }
        }
        Ok(false)
    }

    fn on_accepted(&mut self, now_ns: u64, from: u64, payload: &[u8], out: &mut Vec<u8>) -> Verdict {
        let text = String::from_utf8_lossy(payload).into_owned();
        let (name, first) = text.split_at_checked(10).unwrap_or_default();
        let first = first.trim_start().parse::<u64>().ok().filter(|first| from == 0 || *first == from);
        let Some(first) = first.filter(|_| payload.len() == 30 && name.trim_start() == self.name()) else {
            return broken(PROTOCOL, format!("{} asks for {from} and is let in to {text}", self.name()));
        };
        self.counts.logins += 1;
        (self.phase, self.first, self.at, self.since_ns) = (Phase::On, first, first, now_ns);
        self.send_again(now_ns, out);
        Ok(())
    }

    fn on_sequenced(&mut self, message: &[u8]) -> Verdict {
        let number = self.at;
        self.at += 1;
        self.counts.packets += 1;
        if let Some(before) = self.heard.get(&number) {
            self.counts.told_again += 1;
            if before == message {
                return Ok(());
            }
            let (before, now) = (before.escape_ascii(), message.escape_ascii());
            return broken(SAME, format!("{} {}: {number} was {before}, is {now}", self.member, self.name()));
        }
        self.heard.insert(number, message.to_vec());
        while self.heard.contains_key(&self.next) {
            self.next += 1;
        }
        match Message::read(message) {
            Ok(told) => self.on_told(&told),
            Err(why) => return broken(PROTOCOL, format!("{why}: {}", message.escape_ascii())),
        }
        Ok(())
    }

    /// Beside the stream.
    fn on_said(&mut self, text: &str) -> Verdict {
        self.counts.beside += 1;
        let mut words = text.split(' ');
        let (letter, number) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        match (letter, number.parse::<u32>()) {
            ("J", Ok(number)) => _ = self.open.remove(&number),
            ("Q", Ok(number)) if self.questions.pop_front().is_some_and(|sent| number > sent) => {}
            // S: answered in another shard, where an X of an order that nobody knows may come to.
            ("I" | "G" | "K" | "S" | "?", Ok(_)) => {}
            // Why the session ends: but nothing was lost that would take a packet away.
            ("taken_over" | "too_many_sessions" | "malformed_request", _) => {}
            _ => return broken(PROTOCOL, format!("{} is told {text}", self.name())),
        }
        Ok(())
    }
}
