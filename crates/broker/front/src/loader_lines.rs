//! Lines between loaders and fronts: text that a person can type.
//!
//! ```text
//!   front:  SESSION 262145                     which session this connection's commands are of
//!   client: SESSION 262145                     it continues one that it had before, perhaps at another front
//!   client: [7>3] BUY,jo,S,10.00               the 7th line of the session; of this user the 3rd came before
//!   client: [8] COMMIT_BUY,jo                  what came before is known by now
//!   front:  [7] OK pending 2 5.00 1800000060000
//!   front:  [8] REFUSED 16 nothing is pending
//!   front:  [9] LOST overtaken                 it was not executed, and will not be under this number
//!   front:  [5] UNWRITTEN the log could not be written: say the line again
//!   front:  [3] UNKNOWN repeated               executed long ago, or never
//! ```
//! A line of another shape ends its connection: a web page can have a browser send any bytes here, behind the head of an HTTP request.

use std::fmt::Display;

use pares_broker::{BrokerReply, Refusal, WorkloadLine, dollars};

/// Longest line, bytes.
pub const LINE_MAX: usize = 1 << 10;

/// What a client says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoaderLine {
    /// Nothing, perhaps a blank line.
    Nothing,
    /// It continues this session.
    Session(u64),
    /// A command; and which one of its user came before in the session, if it says so.
    Command(WorkloadLine, Option<u64>),
    /// Note hits that no command used, and say when that is done.
    Note,
    /// It is no command: its number, 0 if that cannot be read, and why.
    Wrong(u64, Refusal),
    /// Its number, in digits, is larger than any.
    Beyond(String),
    /// No loader says this.
    Foreign,
}

impl LoaderLine {
    /// Reads a line, without its end.
    pub fn parse(line: &[u8]) -> Self {
        let line = line.trim_ascii();
        if line.is_empty() {
            return Self::Nothing;
        }
        if line == b"NOTE" {
            return Self::Note;
        }
        if let Some(session) = line.strip_prefix(b"SESSION ") {
            // Lines behind one that cannot be read would be executed in another session, perhaps once more.
            let session = digits(session).and_then(|session| session.parse().ok());
            return session.map_or(Self::Foreign, Self::Session);
        }
        if !line.starts_with(b"[") {
            return Self::Foreign;
        }
        let read = split_after(line).and_then(|(plain, after)| Ok((WorkloadLine::parse(&plain)?, after)));
        match read {
            Ok((command, after)) => Self::Command(command, after),
            Err(refusal) => match shown_number(line).parse() {
                Ok(number) => Self::Wrong(number, refusal),
                Err(_) => Self::Beyond(shown_number(line).into()),
            },
        }
    }
}

/// The number that a line shows that is no command, or the beginning of one: digits behind `[`, as many as a line may have, if they end there or before `]`, `>`
/// or a blank; 0 if there is none.
pub fn shown_number(line: &[u8]) -> &str {
    let shown = line.trim_ascii_start().strip_prefix(b"[").unwrap_or_default();
    let is_end = |byte: &u8| matches!(byte, b']' | b'>') || byte.is_ascii_whitespace();
    let shown = shown.split(is_end).next().filter(|shown| shown.len() <= LINE_MAX).and_then(digits);
    shown.map(|digits| digits.trim_start_matches('0')).filter(|digits| !digits.is_empty()).unwrap_or("0")
}

/// The line without `>after`, and that.
fn split_after(line: &[u8]) -> Result<(Vec<u8>, Option<u64>), Refusal> {
    let end = line.iter().position(|byte| *byte == b']').unwrap_or(0);
    let Some(at) = line[..end].iter().position(|byte| *byte == b'>') else {
        return Ok((line.to_vec(), None));
    };
    let after = digits(&line[at + 1..end]).filter(|digits| !digits.is_empty()).ok_or(Refusal::NoNumber)?;
    // It is behind every line, as is any number that is larger.
    let after = after.parse().unwrap_or(u64::MAX);
    Ok(([&line[..at], &line[end..]].concat(), Some(after)))
}

fn digits(bytes: &[u8]) -> Option<&str> {
    str::from_utf8(bytes).ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()))
}

/// The answer to the line of that number.
pub fn answer(number: u64, reply: &BrokerReply) -> String {
    let words = match reply {
        BrokerReply::Refused { refusal } => return refused(number, *refusal),
        BrokerReply::Cash { cash_cents } => format!(" cash {}", dollars(*cash_cents)),
        BrokerReply::Price { price_cents, server_ms } => {
            format!(" price {} {server_ms}", dollars(*price_cents))
        }
        BrokerReply::Held { shares, price_cents, until_ms } => {
            format!(" pending {shares} {} {until_ms}", dollars(*price_cents))
        }
        BrokerReply::Settled { symbol, shares, cents } => {
            format!(" settled {symbol} {shares} {}", dollars(*cents))
        }
        BrokerReply::Armed { shares } => format!(" armed {shares}"),
        BrokerReply::Done => String::new(),
        BrokerReply::Overtaken => return lost(number, "overtaken"),
        BrokerReply::NameTaken => return lost(number, "another command has this number"),
        BrokerReply::Repeated => return format!("[{number}] UNKNOWN repeated\n"),
        BrokerReply::Early => return lost(number, "the previous one is missing"),
        BrokerReply::Unchanged
        | BrokerReply::Lapsed { .. }
        | BrokerReply::FrontNumber { .. }
        | BrokerReply::Order { .. }
        | BrokerReply::Person { .. } => return format!("[{number}] UNKNOWN no answer to a command\n"),
    };
    format!("[{number}] OK{words}\n")
}

/// The answer to a line that is not executed, and why.
pub fn lost(number: impl Display, why: &str) -> String {
    format!("[{number}] LOST {why}\n")
}

/// The answer to a line that was executed, and is to have a log written that could not be.
pub fn unwritten(number: u64) -> String {
    format!("[{number}] UNWRITTEN the log could not be written: say the line again\n")
}

/// The answer to a line that is refused.
pub fn refused(number: u64, refusal: Refusal) -> String {
    format!("[{number}] REFUSED {} {refusal}\n", refusal as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_command_a_session_or_wrong() {
        let parse = |line: &str| LoaderLine::parse(line.as_bytes());
        let command = |line: &str| WorkloadLine::parse(line.as_bytes()).unwrap();
        assert_eq!(parse("  \r"), LoaderLine::Nothing);
        assert_eq!(parse("SESSION 262144"), LoaderLine::Session(262_144));
        assert_eq!(parse("NOTE"), LoaderLine::Note);
        let plain = command("[7] ADD,jo,1.00");
        assert_eq!(parse("[7] ADD,jo,1.00 "), LoaderLine::Command(plain.clone(), None));
        assert_eq!(parse("[7>3] ADD,jo,1.00"), LoaderLine::Command(plain, Some(3)));
        let sessions =
            ["SESSION", "SESSION x", "SESSION -1", "SESSION +1", "SESSION  1", "SESSION 1,", "SESSIONS 1"];
        let others = [
            "POST / HTTP/1.1",
            "ADD,jo,1.00",
            "NOTED",
            "\u{1}[1] ADD,jo,1.00",
            "SESSION 18446744073709551616",
        ];
        for line in sessions.into_iter().chain(others) {
            assert_eq!(parse(line), LoaderLine::Foreign, "{line}");
        }
    }

    #[test]
    fn wrong_line_is_refused_under_the_number_that_it_shows() {
        for (line, number, refusal) in [
            (&b"[5] FOO,jo"[..], 5, Refusal::UnknownCommand),
            (b"[5>4] FOO,jo", 5, Refusal::UnknownCommand),
            (b"[5]", 5, Refusal::UnknownCommand),
            (b"[5] ADD,j\xff,1.00", 5, Refusal::NotText),
            (b"[7>] ADD,jo,1.00", 7, Refusal::NoNumber),
            (b"[7>3>2] ADD,jo,1.00", 7, Refusal::NoNumber),
            (b"[>3] ADD,jo,1.00", 0, Refusal::NoNumber),
            (b"[] ADD,jo,1.00", 0, Refusal::NoNumber),
            (b"[+5] ADD,jo,1.00", 0, Refusal::NoNumber),
            (b"[5 FOO", 5, Refusal::NoNumber),
            (b"[5>4 FOO", 5, Refusal::NoNumber),
            (b"[5", 5, Refusal::NoNumber),
            (b"[5FOO", 0, Refusal::NoNumber),
            (b"[ 5] FOO", 0, Refusal::NoNumber),
            (b"[\xff", 0, Refusal::NotText),
        ] {
            assert_eq!(
                LoaderLine::parse(line),
                LoaderLine::Wrong(number, refusal),
                "{}",
                line.escape_ascii()
            );
        }
    }

    #[test]
    fn number_larger_than_any_is_shown_as_it_is() {
        for shown in ["18446744073709551616", &"9".repeat(200)] {
            let line = format!("[{shown}] ADD,jo,1.00");
            assert_eq!(LoaderLine::parse(line.as_bytes()), LoaderLine::Beyond(shown.to_owned()));
        }
        assert_eq!(shown_number(b"[007] FOO"), "7");
        assert_eq!(shown_number(format!("[{}", "9".repeat(LINE_MAX + 1)).as_bytes()), "0");
        let after = LoaderLine::parse(b"[7>18446744073709551616] ADD,jo,1.00");
        assert!(matches!(after, LoaderLine::Command(_, Some(u64::MAX))), "{after:?}");
    }

    #[test]
    fn answers_say_what_came_of_it() {
        let held = BrokerReply::Held { shares: 2, price_cents: 500, until_ms: 60_000 };
        assert_eq!(answer(7, &held), "[7] OK pending 2 5.00 60000\n");
        let refused = BrokerReply::Refused { refusal: Refusal::NothingPending };
        assert_eq!(answer(8, &refused), "[8] REFUSED 16 nothing is pending\n");
        assert_eq!(answer(9, &BrokerReply::Done), "[9] OK\n");
        assert_eq!(answer(9, &BrokerReply::Overtaken), "[9] LOST overtaken\n");
        for not_executed in [BrokerReply::NameTaken, BrokerReply::Repeated, BrokerReply::Unchanged] {
            assert!(!answer(9, &not_executed).contains("OK"), "{not_executed:?}");
        }
    }
}
