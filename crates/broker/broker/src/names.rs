//! Names that make repeating harmless: of sessions and commands, of commands by their senders, of hits.
//!
//! A front that dies cannot say what became of its requests, and who asked asks another. A number that each front draws for itself would be executed twice then, or be
//! another's. So numbers are made of one that the database gave out:
//!
//! ```text
//!   number   62 .. front .. 42 | 41 .. session of the front .. 24 | 23 .. command of the session .. 0
//! ```
//! A front asks for its number when it starts ([`Asked::BeginFront`](crate::Asked)), makes sessions of it without asking again, and a session continues through any other front.

use pares_wice::codec::{Coded, DecodeError};
use pares_wice::fields;

use crate::coded::{Text, encode_text};

/// Numbers of fronts end here; 0 is no front's.
pub const FRONT_MAX: u64 = (1 << 21) - 1;
/// So many sessions has each number of a front.
pub const SESSIONS_OF_FRONT: u64 = 1 << 18;
/// So many numbers has each session, the one that no command has among them.
pub const COMMANDS_OF_SESSION: u64 = 1 << 24;

/// A session of a front: `count` is below [`SESSIONS_OF_FRONT`].
#[must_use]
pub fn session_of_front(front: u64, count: u64) -> u64 {
    front * SESSIONS_OF_FRONT + count
}

/// Whether some front can have given out this session: not before the first, nor behind the last of the last.
#[must_use]
pub fn is_session(session: u64) -> bool {
    (1..=FRONT_MAX).contains(&(session / SESSIONS_OF_FRONT))
}

/// A command's number: `count` is 1 to below [`COMMANDS_OF_SESSION`]. With 0 it is what a session's first command comes after.
///
/// # Panics
/// If the session is above all that there are: what a client says is asked of [`is_session`] before.
#[must_use]
pub fn number_in_session(session: u64, count: u64) -> u64 {
    session * COMMANDS_OF_SESSION + count
}

/// The session of a number.
#[must_use]
pub fn session_of(number: u64) -> u64 {
    number / COMMANDS_OF_SESSION
}

/// Whether a command of this number may say that it comes after that one.
#[must_use]
pub fn is_order(number: u64, after: u64) -> bool {
    after == 0 || (after < number && session_of(after) == session_of(number))
}

/// Longest name of a command, bytes.
pub const NAME_BYTES_MAX: usize = 64;

/// A command's name, chosen by its sender: 1 to [`NAME_BYTES_MAX`] visible ASCII characters. For each user it stands for one command, as long as the log is kept.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CommandName(String);

impl CommandName {
    /// The name so written; none if it may not be one.
    #[must_use]
    pub fn new(name: &str) -> Option<Self> {
        let fits = (1..=NAME_BYTES_MAX).contains(&name.len());
        (fits && name.bytes().all(|byte| byte.is_ascii_graphic())).then(|| Self(name.to_owned()))
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Coded for CommandName {
    fn encode(&self, to: &mut Vec<u8>) {
        encode_text(&self.0, to);
    }
    fn decode(from: &mut &[u8]) -> Result<Self, DecodeError> {
        Self::new(&Text::decode(from)?.0).ok_or(DecodeError::Kind(0, "name"))
    }
}

/// A question to the quote server, by the desk that asked: the log has it once, whichever fronts bring it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HitName {
    /// No other desk has this number, nor had it.
    pub desk: u64,
    /// Its how many-th question.
    pub count: u64,
}

fields! { HitName { desk, count } }

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_says_its_session_and_no_two_are_the_same() {
        let last =
            number_in_session(session_of_front(FRONT_MAX, SESSIONS_OF_FRONT - 1), COMMANDS_OF_SESSION - 1);
        assert_eq!(last, (1 << 63) - 1);
        assert_eq!(session_of(last), session_of_front(FRONT_MAX, SESSIONS_OF_FRONT - 1));
        assert_eq!(number_in_session(session_of_front(1, 0), 0), 1 << 42);
        for session in [0, session_of_front(1, 0) - 1, session_of(last) + 1, u64::MAX] {
            assert!(!is_session(session), "{session}");
        }
        assert!(is_session(session_of_front(1, 0)) && is_session(session_of(last)));
    }

    #[test]
    fn a_name_is_visible_and_short() {
        assert!(
            ["", "a b", "\u{e9}", &"x".repeat(65)].into_iter().all(|name| CommandName::new(name).is_none())
        );
        assert!(["a,b", &"x".repeat(64)].into_iter().all(|name| CommandName::new(name).is_some()));
    }
}
