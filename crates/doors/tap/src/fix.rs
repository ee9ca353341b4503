//! Messages of FIX: what they do, and which of them a session does not look at.
//!
//! Such a message is never answered, and is no difference. Which ones these are is known by the session's next number, and the tap has no session: it follows
//! the numbers as far as they tell. A number that it takes for the next one is never too high, so that nothing that was looked at counts as ignored.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::str::FromStr;

use pares_fix::framing::{Cut, cut};
use pares_fix::{EARLY_BYTES_MAX, EARLY_MAX, SOH};
use pares_types::{Position, ShardId};

use crate::meaning::Meant;
use crate::{Blank, TapDoor, TapedMessage, TapedRole};

/// A Reject is of one of the last messages.
const NUMBERS_MAX: usize = 4_096;

/// A session, as far as its connection shows it.
#[derive(Default)]
pub(crate) struct FixSession {
    /// The names of requests, by the numbers of their messages: a Reject says only the number.
    names: BTreeMap<u64, u64>,
    /// The number that comes next of the member.
    next: Option<u64>,
    /// Messages that wait for those before them, with their lengths; and these together.
    early: BTreeMap<u64, usize>,
    early_bytes: usize,
    /// The gateway has sent a Logout.
    is_ending: bool,
}

/// The first value of a tag.
fn field<T: FromStr>(message: &[u8], tag: u16) -> Option<T> {
    let fields = message.split(|byte| *byte == SOH);
    let mut pairs = fields.filter_map(|field| std::str::from_utf8(field).ok()?.split_once('='));
    pairs.find(|(found, _)| found.parse() == Ok(tag)).and_then(|(_, value)| value.parse().ok())
}

/// Whether a gateway cannot read it. One in which something is blanked has another sum than it had.
fn is_garbled(message: &[u8]) -> bool {
    match cut(message) {
        (Cut::Whole(frame), _) => !frame.body.starts_with(b"35="),
        _ => {
            let mut is_blanked = false;
            Blank::new(TapDoor::Fix).pass(message, |_| is_blanked = true);
            !is_blanked
        }
    }
}

impl FixSession {
    /// What a message means.
    pub(crate) fn mean(&mut self, message: &TapedMessage) -> Meant {
        let bytes = &message.bytes;
        let kind: String = field(bytes, 35).unwrap_or_else(|| "?".into());
        let is_looked_at = if message.is_in { self.looks_at(&kind, bytes) } else { self.said(&kind, bytes) };
        let (name, about) = (field(bytes, 11), field(bytes, 41));
        let refused = || field(bytes, 379).or_else(|| self.names.get(&field(bytes, 45)?).copied());
        let (name, role) = match (message.is_in, kind.as_str()) {
            (true, "D" | "F" | "G" | "q") if is_looked_at => {
                self.names.extend(field(bytes, 34).zip(name));
                while self.names.len() > NUMBERS_MAX {
                    self.names.pop_first();
                }
                (name, TapedRole::Request)
            }
            (true, "D" | "F" | "G" | "q") => (name, TapedRole::Ignored),
            (false, "8" | "AE") => (name, of_report(bytes)),
            (false, "9" | "r") => (name, TapedRole::AnswerOnly),
            (false, "3" | "j") => (refused(), TapedRole::Refusal),
            _ => (name, TapedRole::Other),
        };
        let number = field(bytes, 34).filter(|_| message.is_in);
        Meant { kind, text: text(bytes), name, about, role, number }
    }

    /// A message that came in. Whether its session looks at it.
    fn looks_at(&mut self, kind: &str, bytes: &[u8]) -> bool {
        if is_garbled(bytes) {
            return false;
        }
        let Some(number) = field::<u64>(bytes, 34) else { return true };
        let after = number.saturating_add(1);
        let new = field(bytes, 36).filter(|new| *new > number);
        match (kind, self.next) {
            // A gap before it is asked for at once.
            ("A", _) => (self.next, self.is_ending) = (Some(after), false),
            // A reset: its own number means nothing.
            ("4", Some(next)) if field(bytes, 123) != Some('Y') => {
                self.next = field(bytes, 36).max(Some(next))
            }
            (_, Some(next)) if number < next => return false,
            ("4", Some(next)) if number == next => self.next = new.or(self.next),
            (_, Some(next)) if number > next => self.keep(number, bytes.len()),
            _ => self.next = Some(after),
        }
        self.pass_early();
        !self.is_ending
    }

    /// A message ahead of the numbers, which the gateway keeps if it has room, and else asks for again.
    fn keep(&mut self, number: u64, length: usize) {
        let has_room = self.early.len() < EARLY_MAX && self.early_bytes + length <= EARLY_BYTES_MAX;
        if has_room && self.early.insert(number, length).is_none() {
            self.early_bytes += length;
        }
    }

    /// Those that are next now are taken, and those before are over.
    fn pass_early(&mut self) {
        while let (Some(first), Some(next)) = (self.early.first_entry(), self.next)
            && *first.key() <= next
        {
            self.next = Some(next.max(first.key().saturating_add(1)));
            self.early_bytes -= first.remove();
        }
    }

    /// Whether a message of that number waits for one before it.
    pub(crate) fn is_ahead(&self, number: u64) -> bool {
        self.next.is_some_and(|next| number >= next)
    }

    /// A message of the gateway: what it asks for again it lacks, from there on.
    fn said(&mut self, kind: &str, bytes: &[u8]) -> bool {
        match kind {
            "2" => self.next = field(bytes, 7).or(self.next),
            "5" => self.is_ending = true,
            _ => {}
        }
        true
    }
}

/// With `|` for SOH.
fn text(bytes: &[u8]) -> String {
    let mut text = String::new();
    for byte in bytes {
        match byte {
            &SOH => text.push('|'),
            byte => _ = write!(text, "{}", byte.escape_ascii()),
        }
    }
    text
}

/// Of an ExecutionReport or a TradeCaptureReport, by its ExecID and ExecType: ExecIDs are places in the record (docs/protocols/fix.md).
fn of_report(message: &[u8]) -> TapedRole {
    let (exec_id, exec_type): (Option<String>, Option<String>) = (field(message, 17), field(message, 150));
    let exec_id = exec_id.unwrap_or_default();
    let mut parts = exec_id.split('-');
    let shard = parts.next().and_then(|shard| shard.parse().ok()).map(ShardId);
    let position = parts.next().and_then(|position| position.parse().ok()).map(Position);
    match (shard, position, parts.next()) {
        _ if exec_type.as_deref() == Some("I") => TapedRole::Other,
        (Some(shard), Some(position), Some("A")) => TapedRole::Answer(shard, position),
        (Some(shard), Some(position), Some(_)) => TapedRole::Told(shard, position),
        _ if exec_id.starts_with('R') => TapedRole::Refusal,
        _ => TapedRole::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(is_in: bool, fields: &str) -> TapedMessage {
        let body = format!("{fields}|").replace('|', "\x01");
        let mut bytes = format!("8=FIX.4.4\x019={}\x01{body}", body.len()).into_bytes();
        let sum = bytes.iter().fold(0_u8, |sum, byte| sum.wrapping_add(*byte));
        bytes.extend_from_slice(format!("10={sum:03}\x01").as_bytes());
        TapedMessage { wall_ns: 0, mono_ns: 0, is_in, at: 0, bytes, is_whole: true }
    }

    /// Of these messages, `<` before those of the gateway, the names of requests that are looked at, of those that are not, and of those that wait.
    fn looked_at(messages: &[&str]) -> [Vec<u64>; 3] {
        let (mut session, mut names) = (FixSession::default(), [const { Vec::new() }; 3]);
        let mut asked = BTreeMap::new();
        for text in messages {
            let said = text.strip_prefix('<');
            let mut message = message(said.is_none(), said.unwrap_or(text).trim_end_matches('!'));
            if text.ends_with('!') {
                let sum = message.bytes.len() - 2;
                message.bytes[sum] = if message.bytes[sum] == b'0' { b'1' } else { b'0' };
            }
            let meant = session.mean(&message);
            match meant.role {
                TapedRole::Request => {
                    names[0].extend(meant.name);
                    asked.extend(meant.name.zip(meant.number));
                }
                TapedRole::Ignored => names[1].extend(meant.name),
                _ => {}
            }
        }
        names[2].extend(asked.iter().filter(|(_, number)| session.is_ahead(**number)).map(|(name, _)| *name));
        names
    }

    #[test]
    fn what_has_a_wrong_sum_or_an_old_number_is_ignored_and_what_is_sent_again_is_not() {
        let said = [
            "35=A|34=1",
            "35=D|34=2|11=1",
            "35=D|34=3|11=2!",
            "35=D|34=4|11=3",
            "<35=2|34=2|7=3|16=0",
            "35=D|34=3|43=Y|11=2",
            "35=D|34=2|43=Y|11=1",
            "35=D|34=1|11=9",
        ];
        assert_eq!(looked_at(&said), [vec![1, 3, 2], vec![2, 1, 9], vec![]]);
    }

    #[test]
    fn numbers_go_on_behind_a_gap_fill_and_from_where_the_gateway_asks_again() {
        let filled = ["35=A|34=1", "35=4|34=2|123=Y|36=9", "35=D|34=8|11=1", "35=D|34=9|11=2"];
        assert_eq!(looked_at(&filled), [vec![2], vec![1], vec![]]);
        // The Logon was ahead of what the gateway had.
        let ahead = ["35=A|34=40", "<35=2|34=2|7=30|16=0", "35=D|34=30|43=Y|11=1", "35=D|34=29|43=Y|11=2"];
        assert_eq!(looked_at(&ahead), [vec![1], vec![2], vec![]]);
    }

    #[test]
    fn behind_a_logout_nothing_is_looked_at() {
        assert_eq!(looked_at(&["35=A|34=1", "<35=5|34=2", "35=D|34=2|11=1"]), [vec![], vec![1], vec![]]);
    }

    #[test]
    fn a_message_with_blanked_bytes_is_looked_at_whatever_its_sum() {
        assert_eq!(looked_at(&["35=A|34=1", "35=D|34=2|11=1|554=***!"]), [vec![1], vec![], vec![]]);
        // Its type is not where it stands.
        assert_eq!(looked_at(&["34=2|35=D|11=1"]), [vec![], vec![1], vec![]]);
    }
    #[test]
    fn what_follows_a_gap_waits_until_it_is_filled() {
        let gap = ["35=A|34=1", "35=D|34=3|11=1", "35=D|34=4|11=2", "<35=2|34=2|7=2|16=0"];
        assert_eq!(looked_at(&gap), [vec![1, 2], vec![], vec![1, 2]]);
        let filled = [&gap[..], &["35=D|34=2|43=Y|11=3"]].concat();
        assert_eq!(looked_at(&filled), [vec![1, 2, 3], vec![], vec![]]);
        // The gateway has taken those that it kept: what comes next follows no gap.
        let on = [&filled[..], &["35=D|34=5|11=4"]].concat();
        assert_eq!(looked_at(&on), [vec![1, 2, 3, 4], vec![], vec![]]);
        let reset = [&gap[..], &["35=4|34=1|36=9"], &["35=D|34=9|11=3"]].concat();
        assert_eq!(looked_at(&reset), [vec![1, 2, 3], vec![], vec![]]);
    }
}
