//! A member's FIX engine, written against the protocol and not with the exchange's own session core: an independent check of numbers.
//!
//! It keeps its numbers, and all that it ever received, over its whole life: whichever gateway it calls, none may come lower than it
//! expects, none may stand for two messages, and what comes twice must say so.

mod expected_messages;
mod guest;
mod message;
mod orders;
mod resend;
mod trades;

use std::collections::BTreeMap;

use pares_fix::dictionary::{FIX42, FIX44, FixDictionary};
use pares_fix::framing::{Cut, cut};
use pares_fix::parser::FixParser;
use pares_flow::Random;
use pares_port::DoorPort;
use pares_types::MemberId;

use crate::guest::Seat;
use crate::scenario::{MS, Scenario};
use crate::{Broken, FixSeen, Verdict, broken, must};

use expected_messages::{Said, expected};
use message::Message;
use orders::{Asked, Open};
use trades::Trades;

/// What a session promises about its numbers.
const NUMBERS: &str = "X1 no number twice";
/// That all is reported, and what is reported twice says so.
const TOLD: &str = "X2 all is told";
/// Before it asks again for what it lacks.
const GAP_PATIENCE_NS: u64 = 5 * MS;

/// A stranger that logs on receives nothing but a Logout under the number 1.
pub(crate) fn check_stranger(bytes: &[u8]) -> Verdict {
    let mut rest = bytes;
    while let (Cut::Whole(frame), used) = cut(rest) {
        let message = Message::read(frame.body);
        must(message.kind() == "5" && message.number(34) == 1, TOLD, || {
            format!("a stranger is told {message:?}")
        })?;
        rest = &rest[used..];
    }
    Ok(())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Away,
    LoggingOn,
    On,
    LoggingOut,
}

pub(crate) struct FixClient {
    member: MemberId,
    comp_id: String,
    /// The member whose orders are reported to it.
    told_of: MemberId,
    dictionary: &'static FixDictionary,
    parser: FixParser,
    random: Random,
    instruments: u32,
    /// Orders and the like that it has still to ask.
    left: u64,
    phase: Phase,
    /// When it last called, or said goodbye.
    since_ns: u64,
    /// What came of a message that is not whole yet.
    input: Vec<u8>,
    next_out: u64,
    next_in: u64,
    /// The number of its last Logon, and whether one under 1 was accepted.
    logged_on_by: u64,
    is_first_taken: bool,
    /// What came under each number, but for gap fills.
    heard: BTreeMap<u64, String>,
    /// Messages that came early, if it keeps such.
    early: BTreeMap<u64, Message>,
    keeps_early: bool,
    highest: u64,
    /// Up to where it asked for what it lacks, and when.
    gap: Option<(u64, u64)>,
    /// Application messages by the number under which they were sent first.
    sent: BTreeMap<u64, orders::Sent>,
    names: u64,
    open: BTreeMap<u64, Open>,
    asked: BTreeMap<u64, Asked>,
    told: BTreeMap<String, Said>,
    /// By name: how often it was sent, and how often it was refused at once.
    said: BTreeMap<u64, u64>,
    refused: BTreeMap<u64, u64>,
    /// What has no ExecID: how often it was reported as new.
    unmarked: BTreeMap<String, u64>,
    trades: Trades,
    /// The exchange may have lost what it knew of the session: a host's disk or power was lost.
    is_excused: bool,
    /// Numbers restart with the next Logon.
    begins_anew: bool,
    counts: FixSeen,
}

impl FixClient {
    /// One that receives reports of its own member, or of another: then it asks for less.
    pub(crate) fn seated(
        member: MemberId,
        copied: Option<MemberId>,
        scenario: &Scenario,
        mut random: Random,
    ) -> Seat {
        let dictionary = if random.chance(300) { &FIX42 } else { &FIX44 };
        let keeps_early = random.chance(500);
        let home = random.next_u64() as usize & 7;
        let requests = scenario.requests_per_client;
        let client = Self {
            member,
            comp_id: format!("M{member}-1"),
            told_of: copied.unwrap_or(member),
            dictionary,
            parser: FixParser::default(),
            keeps_early,
            random,
            instruments: scenario.instruments(),
            left: if copied.is_some() { requests / 4 } else { requests },
            phase: Phase::Away,
            since_ns: 0,
            input: Vec::new(),
            next_out: 1,
            next_in: 1,
            logged_on_by: 0,
            is_first_taken: false,
            heard: BTreeMap::new(),
            early: BTreeMap::new(),
            highest: 0,
            gap: None,
            sent: BTreeMap::new(),
            names: 0,
            open: BTreeMap::new(),
            asked: BTreeMap::new(),
            told: BTreeMap::new(),
            said: BTreeMap::new(),
            refused: BTreeMap::new(),
            unmarked: BTreeMap::new(),
            trades: Trades::new(scenario.trades && dictionary.begin_string == "FIX.4.4"),
            is_excused: false,
            begins_anew: false,
            counts: FixSeen::default(),
        };
        Seat::new(member, Some(DoorPort::Fix), home, client)
    }

    fn is_copy(&self) -> bool {
        self.told_of != self.member
    }

    /// Whether a Logon under the number 1 in its name must be refused. Its first Logons may not have come: then 1 is waited for.
    fn has_gone_on(&self) -> bool {
        !self.is_copy() && self.is_first_taken && self.next_out > 3 && !self.begins_anew && !self.is_excused
    }

    /// Each message is right by its dictionary.
    fn parser_accepts(&mut self, frame: &pares_fix::framing::FixFrame<'_>) -> Verdict {
        let fault = self.parser.parse(self.dictionary, frame).map(|message| message.fault());
        match fault {
            Ok(None) => Ok(()),
            fault => broken("the protocol", format!("{fault:?}: {}", frame.bytes.escape_ascii())),
        }
    }

    fn on_message(&mut self, now_ns: u64, message: Message, out: &mut Vec<u8>) -> Result<bool, Broken> {
        match (self.phase, message.kind()) {
            // Its number is no number of the session's.
            (Phase::LoggingOn, "5") => return self.on_refused(&message),
            (Phase::LoggingOn, "A") => self.on_logged_on(now_ns, &message, out),
            (Phase::LoggingOn, _) => {
                return broken("the protocol", format!("before a Logon is answered: {message:?}"));
            }
            _ => {}
        }
        let number = message.number(34);
        if number < self.next_in && !message.is_duplicate() {
            let what = format!("{} expects {} and is sent {message:?}", self.comp_id, self.next_in);
            return self.loses_count(what);
        }
        if let Err(what) = self.hear(number, &message) {
            return self.loses_count(what);
        }
        self.highest = self.highest.max(number);
        if message.kind() == "2" {
            self.send_again(now_ns, message.number(7), message.number(16), out);
        }
        let is_over = message.kind() == "5" && self.on_logout(now_ns, &message, out)?;
        if number > self.next_in && self.keeps_early {
            self.early.insert(number, message);
        } else if number == self.next_in {
            self.take(now_ns, &message, out)?;
        }
        while let Some(message) = self.early.remove(&self.next_in) {
            self.take(now_ns, &message, out)?;
        }
        self.early = self.early.split_off(&self.next_in);
        self.ask_for_gap(now_ns, out);
        Ok(is_over)
    }

    fn on_logged_on(&mut self, now_ns: u64, message: &Message, out: &mut Vec<u8>) {
        self.counts.logons += 1;
        self.counts.anew += u64::from(self.begins_anew);
        self.is_first_taken |= self.logged_on_by == 1;
        (self.phase, self.begins_anew) = (Phase::On, false);
        // Who says what it expects is not asked.
        if let Some(expected) = message.get(789).and_then(|text| text.parse::<u64>().ok())
            && expected < self.next_out
        {
            self.send_again(now_ns, expected, 0, out);
        }
    }

    /// The exchange's numbers are below the ones known here. Says that the connection is to be closed.
    fn loses_count(&mut self, what: String) -> Result<bool, Broken> {
        if !self.is_excused {
            return broken(NUMBERS, what);
        }
        self.begins_anew = true;
        Ok(true)
    }

    fn on_refused(&mut self, message: &Message) -> Result<bool, Broken> {
        self.counts.refused += 1;
        let text = message.get(58).unwrap_or_default();
        if text.contains("too low") || text.contains("too high") {
            return self.loses_count(format!("{} is told {text}", self.comp_id));
        }
        Ok(true)
    }

    /// Under one number there is one message.
    fn hear(&mut self, number: u64, message: &Message) -> Result<(), String> {
        if message.kind() == "4" {
            return Ok(());
        }
        let content = message.content();
        let before = self.heard.entry(number).or_insert_with(|| content.clone());
        if *before == content {
            return Ok(());
        }
        Err(format!("{} heard {number} as {before}, and now {content}", self.comp_id))
    }

    fn on_logout(&mut self, now_ns: u64, message: &Message, out: &mut Vec<u8>) -> Result<bool, Broken> {
        let text = message.get(58).unwrap_or_default();
        if text.contains("too low") {
            return self.loses_count(format!("{} is told {text}", self.comp_id));
        }
        if self.phase == Phase::On {
            self.say(now_ns, "5", "", out);
        }
        Ok(true)
    }

    /// A message in its turn.
    fn take(&mut self, now_ns: u64, message: &Message, out: &mut Vec<u8>) -> Verdict {
        match message.kind() {
            "4" => {
                self.next_in = self.next_in.max(message.number(36));
                return Ok(());
            }
            "1" => {
                self.counts.tests += 1;
                let fields = format!("112={}|", message.get(112).unwrap_or_default());
                self.say(now_ns, "0", &fields, out);
            }
            "8" | "9" | "r" => self.on_told(message)?,
            "AQ" => self.on_trades_answer(message)?,
            "AE" => self.on_trade(message)?,
            _ => {}
        }
        self.next_in += 1;
        Ok(())
    }

    /// Asks for what is missing, once, and again if nothing comes.
    fn ask_for_gap(&mut self, now_ns: u64, out: &mut Vec<u8>) {
        self.gap = self.gap.filter(|(to, at_ns)| *to >= self.next_in && now_ns < at_ns + GAP_PATIENCE_NS);
        if self.gap.is_none() && self.highest >= self.next_in && self.phase == Phase::On {
            self.counts.gaps += 1;
            self.gap = Some((self.highest, now_ns));
            let to = if self.random.chance(500) { 0 } else { self.highest };
            let fields = format!("7={}|16={to}|", self.next_in);
            self.say(now_ns, "2", &fields, out);
        }
    }
}
