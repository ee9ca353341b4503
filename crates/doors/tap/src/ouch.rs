//! Packets of SoupBinTCP and messages of OUCH as text, field by field, by docs/protocols/ouch.md.

use std::fmt::Write;

use pares_types::{ClientOrderId, Position, ShardId};

use crate::meaning::Meant;
use crate::{TapedMessage, TapedRole};

/// Bits of a name below the session.
const NUMBER_BITS: u32 = 48;

/// What the login says of the names that follow.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OuchSession {
    session: u16,
    is_guarded: bool,
    shard: u16,
}

impl OuchSession {
    /// Reads `12G3`: session, whether it is guarded, shard.
    fn log_in(&mut self, name: &str) {
        let Some(letter) = name.find(['-', 'G']) else { return };
        let (session, shard) = (name[..letter].parse(), name[letter + 1..].parse());
        if let (Ok(session), Ok(shard)) = (session, shard) {
            *self = Self { session, is_guarded: name[letter..].starts_with('G'), shard };
        }
    }

    fn name(&self, user_ref_num: u32) -> u64 {
        let number = u64::from(user_ref_num);
        match self.is_guarded {
            true => ClientOrderId::guarded(self.session, number).0,
            false => u64::from(self.session) << NUMBER_BITS | number,
        }
    }
}

/// A field: its name and how many bytes it has; text if negative.
type Layout = &'static [(&'static str, i8)];

const REF: (&str, i8) = ("UserRefNum", 4);
const TIME: (&str, i8) = ("Timestamp", 8);

fn layout(is_in: bool, kind: u8) -> (&'static str, Layout) {
    match (is_in, kind) {
        (true, b'O') => (
            "EnterOrder",
            &[
                REF,
                ("Side", -1),
                ("Quantity", 4),
                ("Symbol", -8),
                ("Price", 8),
                ("TimeInForce", -1),
                ("Display", -1),
                ("Capacity", -1),
                ("InterMarketSweep", -1),
                ("CrossType", -1),
                ("ClOrdID", -14),
            ],
        ),
        (true, b'U') => (
            "ReplaceOrder",
            &[
                ("OrigUserRefNum", 4),
                REF,
                ("Quantity", 4),
                ("Price", 8),
                ("TimeInForce", -1),
                ("Display", -1),
                ("InterMarketSweep", -1),
                ("ClOrdID", -14),
            ],
        ),
        (true, b'X') => ("CancelOrder", &[REF, ("Quantity", 4)]),
        (true, b'M') => ("ModifyOrder", &[REF, ("Side", -1), ("Quantity", 4)]),
        (true, b'C') => ("MassCancel", &[REF, ("Firm", -4), ("Symbol", -8)]),
        (true, b'D') => ("DisableEntry", &[REF, ("Firm", -4)]),
        (true, b'E') => ("EnableEntry", &[REF, ("Firm", -4)]),
        (true, b'Q') => ("AccountQuery", &[]),
        (false, b'A') => (
            "Accepted",
            &[
                TIME,
                REF,
                ("Side", -1),
                ("Quantity", 4),
                ("Symbol", -8),
                ("Price", 8),
                ("TimeInForce", -1),
                ("Display", -1),
                ("OrderReferenceNumber", 8),
                ("Capacity", -1),
                ("InterMarketSweep", -1),
                ("CrossType", -1),
                ("OrderState", -1),
                ("ClOrdID", -14),
            ],
        ),
        (false, b'U') => (
            "Replaced",
            &[
                TIME,
                ("OrigUserRefNum", 4),
                REF,
                ("Side", -1),
                ("Quantity", 4),
                ("Symbol", -8),
                ("Price", 8),
                ("TimeInForce", -1),
                ("Display", -1),
                ("OrderReferenceNumber", 8),
                ("Capacity", -1),
                ("InterMarketSweep", -1),
                ("CrossType", -1),
                ("OrderState", -1),
                ("ClOrdID", -14),
            ],
        ),
        (false, b'M') => ("Modified", &[TIME, REF, ("Side", -1), ("Quantity", 4)]),
        (false, b'E') => (
            "Executed",
            &[TIME, REF, ("Quantity", 4), ("Price", 8), ("LiquidityFlag", -1), ("MatchNumber", 8)],
        ),
        (false, b'C') => ("Canceled", &[TIME, REF, ("Quantity", 4), ("Reason", -1)]),
        (false, b'D') => (
            "AiqCanceled",
            &[
                TIME,
                REF,
                ("DecrementQuantity", 4),
                ("Reason", -1),
                ("QuantityPrevented", 4),
                ("ExecutionPrice", 8),
                ("LiquidityFlag", -1),
                ("AiqStrategy", -1),
            ],
        ),
        (false, b'B') => ("BrokenTrade", &[TIME, REF, ("MatchNumber", 8), ("Reason", -1), ("ClOrdID", -14)]),
        (false, b'J') => ("Rejected", &[TIME, REF, ("Reason", 2), ("ClOrdID", -14)]),
        (false, b'I') => ("CancelReject", &[TIME, REF]),
        (false, b'T') => {
            ("PriorityUpdate", &[TIME, REF, ("Price", 8), ("Display", -1), ("OrderReferenceNumber", 8)])
        }
        (false, b'R') => ("Restated", &[TIME, REF, ("Reason", -1)]),
        (false, b'X') => ("MassCancelResponse", &[TIME, REF, ("Firm", -4), ("Symbol", -8)]),
        (false, b'S') => ("SystemEvent", &[TIME, ("EventCode", -1)]),
        _ => ("?", &[]),
    }
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
    for (name, width) in fields {
        let Some((value, after)) = rest.split_at_checked(usize::from(width.unsigned_abs())) else { break };
        rest = after;
        if *name == REF.0 {
            read.user_ref_num = u32::try_from(number(value)).ok();
        }
        let _ = match width {
            0.. => write!(read.text, " {name}={}", number(value)),
            _ => write!(read.text, " {name}={}", value.trim_ascii_end().escape_ascii()),
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
    match (message.is_in, kind) {
        (true, b'U') => {
            let read = read(true, payload);
            let name = read.user_ref_num.map(|number| session.name(number));
            // X and M have names of the gateway's making; D, E and Q are not recorded.
            match payload.first() {
                Some(b'O' | b'U' | b'C') => {
                    Meant { name, role: TapedRole::Request, ..Meant::other(read.kind, read.text) }
                }
                _ => Meant { about: name, ..Meant::other(read.kind, read.text) },
            }
        }
        (false, b'S') => {
            let read = read(false, payload);
            let place = read.position.map(|position| (ShardId(session.shard), Position(position)));
            let is_answer = matches!(payload.first(), Some(b'A' | b'U' | b'M' | b'J' | b'I' | b'X' | b'S'));
            let role = match place {
                Some((shard, position)) if is_answer => TapedRole::Answer(shard, position),
                Some((shard, position)) => TapedRole::Told(shard, position),
                None => TapedRole::Other,
            };
            Meant { name: read.name, role, ..Meant::other(read.kind, read.text) }
        }
        (false, b'+') => session.debug(&text),
        (false, b'A') => {
            session.log_in(text.split(' ').next().unwrap_or_default());
            Meant::other("LoginAccepted", format!("LoginAccepted {text}"))
        }
        (_, kind) => {
            let name = match kind {
                b'L' => "LoginRequest",
                b'J' => "LoginRejected",
                b'H' | b'R' => "Heartbeat",
                b'Z' => "EndOfSession",
                b'O' => "LogoutRequest",
                b'+' => "Debug",
                _ => "?",
            };
            Meant::other(name, format!("{name} {text}").trim_end().to_owned())
        }
    }
}

impl OuchSession {
    /// An answer that is not recorded: `J 5 throttled`.
    fn debug(&self, text: &str) -> Meant {
        let mut words = text.split(' ');
        let is_refusal = words.next() == Some("J");
        let number = words.next().and_then(|word| word.parse().ok()).filter(|_| is_refusal);
        let role = if number.is_some() { TapedRole::Refusal } else { TapedRole::Other };
        let name = number.map(|number| self.name(number));
        Meant { name, role, ..Meant::other("Debug", format!("Debug {text}")) }
    }
}
