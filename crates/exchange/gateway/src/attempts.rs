//! How often a wrong key may be tried.
//!
//! A proof costs the gateway some fifty microseconds to look at, and a password can be guessed. So wrong ones are counted by session: ten
//! at once, then two a second; the others are refused unread. Sessions that do not exist share one count: they cost nothing to
//! refuse, but somebody who tries them must not find out.

use std::collections::BTreeMap;

use pares_types::{MemberId, Reason, Timestamp};

use crate::Pace;

const PER_SECOND: u32 = 2;
const AT_ONCE: u32 = 10;

/// A session that the register has; `None` for all it has not.
type Who = Option<(MemberId, u16)>;

/// What is used of each session's attempts. At most one for each session of the register.
#[derive(Default)]
pub(crate) struct Attempts(BTreeMap<Who, Timestamp>);

impl Attempts {
    fn pace() -> Pace {
        Pace::new(PER_SECOND, AT_ONCE)
    }

    pub(crate) fn check(&self, who: Who, now: Timestamp) -> Result<(), Reason> {
        let mut used = self.0.get(&who).copied().unwrap_or_default();
        if Self::pace().admits(&mut used, now) { Ok(()) } else { Err(Reason::TooManyAttempts) }
    }

    /// One more was wrong.
    pub(crate) fn count(&mut self, who: Who, now: Timestamp) {
        Self::pace().admits(self.0.entry(who).or_default(), now);
    }

    /// Forgets those whose sessions are gone.
    pub(crate) fn retain(&mut self, is_there: impl Fn((MemberId, u16)) -> bool) {
        self.0.retain(|who, _| who.is_none_or(&is_there));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_wrong_keys_and_then_two_a_second() {
        let (one, other) = (Some((MemberId(1), 1)), Some((MemberId(1), 2)));
        let mut attempts = Attempts::default();
        let now = Timestamp(1 << 60);
        for _ in 0..10 {
            assert_eq!(attempts.check(one, now), Ok(()));
            attempts.count(one, now);
        }
        assert_eq!(attempts.check(one, now), Err(Reason::TooManyAttempts));
        assert_eq!((attempts.check(other, now), attempts.check(None, now)), (Ok(()), Ok(())));
        let later = Timestamp(now.0 + 500_000_000);
        assert_eq!(attempts.check(one, later), Ok(()));
        attempts.count(one, later);
        assert_eq!(attempts.check(one, later), Err(Reason::TooManyAttempts));
    }
}
