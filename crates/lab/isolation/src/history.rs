//! What clients did and saw, in the order of a clock that all of them share.
//!
//! The form as text is a line for each operation, so that a history can be kept as a file and read by people:
//!
//! ```text
//! session invoked completed ending micro-operations
//! 0 1 4 done +7:1 9=[2,3]        session 0 appended 1 to list 7, and read [2,3] from list 9
//! 1 2 9 unknown +7:4 9=?         it may have happened, and what it read was not told
//! ```

use core::fmt;
use core::str::FromStr;

use thiserror::Error;

/// Which list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ListName(pub u32);

/// What is appended. Each is appended once to a list, by one operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Element(pub u64);

/// A part of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MicroOperation {
    /// An element was put at the end of a list.
    Append(ListName, Element),
    /// A list was read; nothing is known of it if the client received no answer.
    Read(ListName, Option<Vec<Element>>),
}

/// What the client received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It is done.
    Done,
    /// It is not done, and never will be.
    NotDone,
    /// Nothing: it may be done, or be done later.
    Unknown,
}

/// A transaction as its client saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation {
    /// Whose. A session has one operation at a time.
    pub session: u32,
    /// When it was asked.
    pub invoked: u64,
    /// When it was answered, or given up.
    pub completed: u64,
    /// How it ended.
    pub ending: Ending,
    /// In the order in which they were asked.
    pub parts: Vec<MicroOperation>,
}

/// A line that is no operation.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "`{0}` is no operation: SESSION INVOKED COMPLETED done|not-done|unknown, then +LIST:ELEMENT or LIST=[ELEMENT,..]"
)]
pub struct NoOperation(String);

/// Reads a history: a line for each operation; empty lines, and those that begin with `#`, count for nothing.
///
/// # Errors
/// The first line that is no operation.
pub fn parse(text: &str) -> Result<Vec<Operation>, NoOperation> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(str::parse).collect()
}

impl FromStr for Operation {
    type Err = NoOperation;

    fn from_str(line: &str) -> Result<Self, NoOperation> {
        operation(line).ok_or_else(|| NoOperation(line.into()))
    }
}

fn operation(line: &str) -> Option<Operation> {
    let mut words = line.split_whitespace();
    let session = words.next()?.parse().ok()?;
    let invoked = words.next()?.parse().ok()?;
    let completed = words.next()?.parse().ok()?;
    let ending = match words.next()? {
        "done" => Ending::Done,
        "not-done" => Ending::NotDone,
        "unknown" => Ending::Unknown,
        _ => return None,
    };
    let parts = words.map(part).collect::<Option<_>>()?;
    Some(Operation { session, invoked, completed, ending, parts })
}

fn part(word: &str) -> Option<MicroOperation> {
    if let Some(append) = word.strip_prefix('+') {
        let (list, element) = append.split_once(':')?;
        return Some(MicroOperation::Append(ListName(list.parse().ok()?), Element(element.parse().ok()?)));
    }
    let (list, read) = word.split_once('=')?;
    let list = ListName(list.parse().ok()?);
    if read == "?" {
        return Some(MicroOperation::Read(list, None));
    }
    let inner = read.strip_prefix('[')?.strip_suffix(']')?;
    let elements = inner.split(',').filter(|element| !element.is_empty());
    let elements = elements.map(|element| element.parse().ok().map(Element)).collect::<Option<_>>()?;
    Some(MicroOperation::Read(list, Some(elements)))
}

impl fmt::Display for Ending {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Done => "done",
            Self::NotDone => "not-done",
            Self::Unknown => "unknown",
        })
    }
}

impl fmt::Display for MicroOperation {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Append(list, element) => write!(out, "+{}:{}", list.0, element.0),
            Self::Read(list, None) => write!(out, "{}=?", list.0),
            Self::Read(list, Some(elements)) => {
                let elements: Vec<String> = elements.iter().map(|element| element.0.to_string()).collect();
                write!(out, "{}=[{}]", list.0, elements.join(","))
            }
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} {} {} {}", self.session, self.invoked, self.completed, self.ending)?;
        self.parts.iter().try_for_each(|part| write!(out, " {part}"))
    }
}
