//! Packets of SoupBinTCP and messages of OUCH as text, field by field, by docs/protocols/ouch.md.

use std::fmt::Write;

use pares_ouch::{OuchNames, UserRefNums};
use pares_types::{ClientOrderId, Position, ShardId};

use crate::meaning::Meant;
use crate::{TapedMessage, TapedRole};

/// Whether a gateway gave that name to an X or M of the session.
#[must_use]
pub fn is_ouch_change(session: u16, name: ClientOrderId) -> bool {
    OuchNames::new(session, false).is_change(name)
}

/// What the login says of the names that follow.
#[derive(Debug, Default)]
pub(crate) struct OuchSession {
    names: OuchNames,
    shard: u16,
    /// What its door takes, by the door's own rule.
    numbers: UserRefNums,
}

impl OuchSession {
    /// Reads `12G3`: session, whether it is guarded, shard.
    fn log_in(&mut self, name: &str) {
        let Some(letter) = name.find(['-', 'G']) else { return };
        let (session, shard) = (name[..letter].parse(), name[letter + 1..].parse());
        if let (Ok(session), Ok(shard)) = (session, shard) {
            self.names = OuchNames::new(session, name[letter..].starts_with('G'));
            self.shard = shard;
        }
    }
}

/// The name of the field that names an order.
const REF: &str = "UserRefNum";

/// Messages of a client: letter, name, and fields with how many bytes each has; `t` for text.
const IN: [(u8, &str, &str); 8] = [
    (
        b'O',
        "EnterOrder",
        "UserRefNum:4 Side:t1 Quantity:4 Symbol:t8 Price:8 TimeInForce:t1 Display:t1 Capacity:t1 \
         InterMarketSweep:t1 CrossType:t1 ClOrdID:t14",
    ),
    (
        b'U',
        "ReplaceOrder",
        "OrigUserRefNum:4 UserRefNum:4 Quantity:4 Price:8 TimeInForce:t1 Display:t1 \
         InterMarketSweep:t1 ClOrdID:t14",
    ),
    (b'X', "CancelOrder", "UserRefNum:4 Quantity:4"),
    (b'M', "ModifyOrder", "UserRefNum:4 Side:t1 Quantity:4"),
    (b'C', "MassCancel", "UserRefNum:4 Firm:t4 Symbol:t8"),
    (b'D', "DisableEntry", "UserRefNum:4 Firm:t4"),
    (b'E', "EnableEntry", "UserRefNum:4 Firm:t4"),
    (b'Q', "AccountQuery", ""),
];

/// The same of the exchange.
const OUT: [(u8, &str, &str); 13] = [
    (
        b'A',
        "Accepted",
        "Timestamp:8 UserRefNum:4 Side:t1 Quantity:4 Symbol:t8 Price:8 TimeInForce:t1 Display:t1 \
         OrderReferenceNumber:8 Capacity:t1 InterMarketSweep:t1 CrossType:t1 OrderState:t1 \
         ClOrdID:t14",
    ),
    (
        b'U',
        "Replaced",
        "Timestamp:8 OrigUserRefNum:4 UserRefNum:4 Side:t1 Quantity:4 Symbol:t8 Price:8 \
         TimeInForce:t1 Display:t1 OrderReferenceNumber:8 Capacity:t1 InterMarketSweep:t1 \
         CrossType:t1 OrderState:t1 ClOrdID:t14",
    ),
    (b'M', "Modified", "Timestamp:8 UserRefNum:4 Side:t1 Quantity:4"),
    (b'E', "Executed", "Timestamp:8 UserRefNum:4 Quantity:4 Price:8 LiquidityFlag:t1 MatchNumber:8"),
    (b'C', "Canceled", "Timestamp:8 UserRefNum:4 Quantity:4 Reason:t1"),
    (
        b'D',
        "AiqCanceled",
        "Timestamp:8 UserRefNum:4 DecrementQuantity:4 Reason:t1 QuantityPrevented:4 \
         ExecutionPrice:8 LiquidityFlag:t1 AiqStrategy:t1",
    ),
    (b'B', "BrokenTrade", "Timestamp:8 UserRefNum:4 MatchNumber:8 Reason:t1 ClOrdID:t14"),
    (b'J', "Rejected", "Timestamp:8 UserRefNum:4 Reason:2 ClOrdID:t14"),
    (b'I', "CancelReject", "Timestamp:8 UserRefNum:4"),
    (b'T', "PriorityUpdate", "Timestamp:8 UserRefNum:4 Price:8 Display:t1 OrderReferenceNumber:8"),
    (b'R', "Restated", "Timestamp:8 UserRefNum:4 Reason:t1"),
    (b'X', "MassCancelResponse", "Timestamp:8 UserRefNum:4 Firm:t4 Symbol:t8"),
    (b'S', "SystemEvent", "Timestamp:8 EventCode:t1"),
];

fn layout(is_in: bool, letter: u8) -> (&'static str, &'static str) {
    let table = if is_in { &IN[..] } else { &OUT[..] };
    let found = table.iter().find(|(of, ..)| *of == letter);
    found.map_or(("?", ""), |(_, name, fields)| (*name, *fields))
}

/// A field of a layout: its name, whether it is text, and how many bytes it has.
fn field(field: &'static str) -> Option<(&'static str, bool, usize)> {
    let (name, width) = field.split_once(':')?;
    let digits = width.trim_start_matches('t');
    Some((name, digits != width, digits.parse().ok()?))
}

fn number(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// A message, read.
struct Read {
    kind: &'static str,
    text: String,
    user_ref_num: Option<u32>,
    /// Tags 210 and 211.
    name: Option<u64>,
    position: Option<u64>,
}

fn read(is_in: bool, message: &[u8]) -> Read {
    let (letter, mut rest) = message.split_first().map_or((0, message), |(letter, rest)| (*letter, rest));
    let (kind, fields) = layout(is_in, letter);
    let mut read = Read { kind, text: kind.to_owned(), user_ref_num: None, name: None, position: None };
    for (name, is_text, width) in fields.split(' ').filter_map(field) {
        let Some((value, after)) = rest.split_at_checked(width) else { break };
        rest = after;
        if name == REF {
            read.user_ref_num = u32::try_from(number(value)).ok();
        }
        let _ = match is_text {
            true => write!(read.text, " {name}={}", value.trim_ascii_end().escape_ascii()),
            false => write!(read.text, " {name}={}", number(value)),
        };
    }
    read.appendage(rest.get(2..).unwrap_or_default());
    read
}

impl Read {
    fn appendage(&mut self, mut rest: &[u8]) {
        while let Some((length, after)) = rest.split_first() {
            let Some((value, after)) = after.split_at_checked(usize::from(*length)) else { return };
            rest = after;
            let Some((tag, value)) = value.split_first() else { return };
            let value = number(value);
            match tag {
                210 => self.name = Some(value),
                211 => self.position = Some(value),
                _ => {}
            }
            let _ = write!(self.text, " {tag}={value}");
        }
    }
}

/// What a packet means; a login is kept in mind.
pub(crate) fn mean(session: &mut OuchSession, message: &TapedMessage) -> Meant {
    let (kind, payload) = (message.bytes[2], &message.bytes[3..]);
    let text = String::from_utf8_lossy(payload).trim().to_owned();
    let name = match (message.is_in, kind) {
        (true, b'U') => return session.request(payload),
        (false, b'S') => return session.report(payload),
        (false, b'+') => return session.debug(&text),
        (false, b'A') => {
            session.log_in(text.split(' ').next().unwrap_or_default());
            "LoginAccepted"
        }
        (_, b'L') => "LoginRequest",
        (_, b'J') => "LoginRejected",
        (_, b'H' | b'R') => "Heartbeat",
        (_, b'Z') => "EndOfSession",
        (_, b'O') => "LogoutRequest",
        (_, b'+') => "Debug",
        _ => "?",
    };
    Meant::other(name, format!("{name} {text}").trim_end().to_owned())
}

impl OuchSession {
    fn request(&mut self, payload: &[u8]) -> Meant {
        let read = read(true, payload);
        let name = read.user_ref_num.map(|number| self.names.of(number).0);
        let other = Meant::other(read.kind, read.text);
        // X and M have names of the gateway's making, and D, E and Q are not recorded.
        let Some(letter @ (b'O' | b'U' | b'C' | b'D' | b'E')) = payload.first() else {
            return Meant { about: name, ..other };
        };
        let is_taken = read.user_ref_num.is_none_or(|number| self.numbers.takes(number));
        match letter {
            b'D' | b'E' => Meant { about: name, ..other },
            _ if is_taken => Meant { name, role: TapedRole::Request, ..other },
            _ => Meant { name, role: TapedRole::Ignored, ..other },
        }
    }

    fn report(&self, payload: &[u8]) -> Meant {
        let read = read(false, payload);
        let is_answer = matches!(payload.first(), Some(b'A' | b'U' | b'M' | b'J' | b'I' | b'X' | b'S'));
        let role = match read.position.map(|position| (ShardId(self.shard), Position(position))) {
            Some((shard, position)) if is_answer => TapedRole::Answer(shard, position),
            Some((shard, position)) => TapedRole::Told(shard, position),
            None => TapedRole::Other,
        };
        Meant { name: read.name, role, ..Meant::other(read.kind, read.text) }
    }

    /// An answer that is not recorded: `J 5 throttled`.
    fn debug(&mut self, text: &str) -> Meant {
        let mut words = text.split(' ');
        let is_refusal = words.next() == Some("J");
        let number = words.next().and_then(|word| word.parse().ok()).filter(|_| is_refusal);
        let role = if number.is_some() { TapedRole::Refusal } else { TapedRole::Other };
        let name = number.map(|number| self.names.of(number).0);
        number.into_iter().for_each(|number| self.numbers.refused(number));
        Meant { name, role, ..Meant::other("Debug", format!("Debug {text}")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_does_not_rise_is_ignored_unless_it_was_refused() {
        let mut session = OuchSession::default();
        let mut enters = |number: u32| session.request(&[&b"O"[..], &number.to_be_bytes()].concat()).role;
        assert_eq!([5, 3, 0].map(&mut enters), [TapedRole::Request, TapedRole::Ignored, TapedRole::Ignored]);
        session.debug("J 5 throttled");
        let mut enters = |number: u32| session.request(&[&b"O"[..], &number.to_be_bytes()].concat()).role;
        assert_eq!([5, 5, 6].map(&mut enters), [TapedRole::Request, TapedRole::Ignored, TapedRole::Request]);
    }
}
