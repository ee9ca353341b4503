//! Why a connection ends, or a line is not executed.

use pares_broker::{COMMANDS_OF_SESSION, WorkloadLine};
use pares_front::loader_lines::{lost, shown_number};

use super::Loaders;

impl Loaders {
    /// A connection receives why it ends, if its socket takes it.
    pub(super) fn dismiss(&mut self, number: u64, why: &str) -> Option<()> {
        self.end_with(number, &lost(0, why))
    }

    /// Its line is too long: it receives that under the number that the line shows.
    pub(super) fn dismiss_for_length(&mut self, number: u64) -> Option<()> {
        let last = lost(shown_number(self.port.conn(number)?.rest()), "a line may have at most 1,024 bytes");
        self.end_with(number, &last)
    }

    fn end_with(&mut self, number: u64, last: &str) -> Option<()> {
        let conn = self.port.conn(number)?;
        conn.push(last.as_bytes());
        // It may be gone already.
        let _ = conn.flush();
        None
    }
}

/// Why no line has such a number.
pub(super) const BEYOND: &str = "a session's numbers must be below 16777216: continue in a new session";

/// Why no command can have this number there, if none can.
pub(super) fn out_of_order(line: &WorkloadLine, after: Option<u64>) -> Option<String> {
    let number = line.number;
    match after {
        _ if number >= COMMANDS_OF_SESSION => Some(BEYOND.into()),
        Some(after) if after >= COMMANDS_OF_SESSION => {
            Some("its number must be above the one it follows".into())
        }
        Some(after) if after >= number => Some(format!("its number must be above {after}, which it follows")),
        _ => None,
    }
}

/// What is said of a command that was given up.
pub(super) fn given_up(number: u64) -> String {
    format!(
        "line {number} was given up, because the previous line is missing, or the sites reject it: repeat it on another connection, after the previous line"
    )
}
