//! What a publisher of one shard keeps of its sessions, wherever it keeps it: docs/protocols/market-data.md, *Sending*.
//!
//! What is sent again, replayed over TCP, and continued from a snapshot is the same messages under the same numbers. So there is one way to
//! them: a process reads them from its log on disk, tests from memory ([`Kept`](crate::kept::Kept)).

use pares_types::{BusinessDay, ShardId};

use crate::publication::Session;

/// Sessions that are kept: the one that is on, or was last, and the one before.
pub const SESSIONS_KEPT: usize = 2;

/// How far a session has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionStanding {
    /// Its name.
    pub session: Session,
    /// The number of its next message, 1 at the start.
    pub next: u64,
    /// Whether it is over: the next message never comes.
    pub over: bool,
}

/// Why no messages were handed out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// The session is not kept.
    #[error("the session is not kept")]
    NotKept,
    /// The messages are kept, and cannot be read.
    #[error("the messages cannot be read")]
    Unreadable,
}

/// The sessions that a publisher of one shard keeps.
pub trait SessionStore {
    /// Its sessions, oldest first; the last one is the *current* one, even if it is over.
    fn standing(&self) -> &[SessionStanding];

    /// Hands out the messages of a session from number `from` on, until `take` says that it did not take one, or there are no more.
    ///
    /// # Errors
    /// If the session is not kept or cannot be read. What was handed out before is right.
    fn read(
        &mut self,
        session: Session,
        from: u64,
        take: &mut dyn FnMut(&[u8]) -> bool,
    ) -> Result<(), StoreError>;
}

/// The session of that name among some.
#[must_use]
pub fn find(standing: &[SessionStanding], session: Session) -> Option<SessionStanding> {
    standing.iter().copied().find(|one| one.session == session)
}

impl Session {
    /// The shard that its name begins with; `None` if it is no name of a session.
    #[must_use]
    pub fn shard(&self) -> Option<ShardId> {
        let (shard, day) = self.0.split_at(4);
        day.iter().all(|&digit| is_digit(digit)).then_some(())?;
        shard_of(shard)
    }

    /// The business day that its name ends with; `None` if it is no name of a session.
    #[must_use]
    pub fn day(&self) -> Option<BusinessDay> {
        let digits = std::str::from_utf8(&self.0[4..]).ok().filter(|_| self.shard().is_some())?;
        u32::from_str_radix(digits, 16).ok().map(BusinessDay)
    }
}

/// The shard of four hexadecimal digits.
pub(crate) fn shard_of(digits: &[u8]) -> Option<ShardId> {
    let is_name = digits.len() == 4 && digits.iter().all(|&digit| is_digit(digit));
    let digits = std::str::from_utf8(digits).ok().filter(|_| is_name)?;
    u16::from_str_radix(digits, 16).ok().map(ShardId)
}

/// Whether it is a digit as names of sessions have them.
fn is_digit(digit: u8) -> bool {
    matches!(digit, b'0'..=b'9' | b'a'..=b'f')
}

#[cfg(test)]
mod tests {
    use pares_types::BusinessDay;

    use super::*;

    #[test]
    fn a_session_names_its_shard_and_other_names_none() {
        let shard = ShardId(0xab3);
        assert_eq!(Session::of(shard, BusinessDay(20_000)).shard(), Some(shard));
        for name in [b"0001      ", b"0001+12345", b"00 1000000", b"+001000000", b"\xff\xff\xff\xff000000"] {
            assert_eq!(Session(*name).shard(), None);
        }
    }
}
