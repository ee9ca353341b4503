//! How often a wrong key may be tried.
//!
//! A proof costs the gateway some fifty microseconds to look at, and a password can be guessed. So wrong ones are counted by session: ten
//! at once, then two a second; the others are refused unread. To count only sessions that there are would tell who tries names which
//! those are; to count all that a client can think of would take memory without end. So a secret spreads all names over a few thousand counts.

use pares_types::{MemberId, Reason, Timestamp};

use crate::Pace;

const PER_SECOND: u32 = 2;
const AT_ONCE: u32 = 10;
const COUNTS_BITS: u32 = 12;

/// What is used of the attempts of all sessions whose names fall together.
pub(crate) struct Attempts {
    used: Box<[Timestamp]>,
    secret: u64,
}

impl Attempts {
    pub(crate) fn new(secret: u64) -> Self {
        Self { used: vec![Timestamp::default(); 1 << COUNTS_BITS].into(), secret }
    }

    fn pace() -> Pace {
        Pace::new(PER_SECOND, AT_ONCE)
    }

    fn used(&mut self, (member, session): (MemberId, u16)) -> &mut Timestamp {
        let name = u64::from(member.0) << 16 | u64::from(session);
        let mixed = (name ^ self.secret).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mixed = (mixed ^ (mixed >> 29) ^ self.secret.rotate_left(32)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        &mut self.used[(mixed >> (u64::BITS - COUNTS_BITS)) as usize]
    }

    pub(crate) fn check(&mut self, who: (MemberId, u16), now: Timestamp) -> Result<(), Reason> {
        let mut used = *self.used(who);
        if Self::pace().admits(&mut used, now) { Ok(()) } else { Err(Reason::TooManyAttempts) }
    }

    /// One more was wrong.
    pub(crate) fn count(&mut self, who: (MemberId, u16), now: Timestamp) {
        Self::pace().admits(self.used(who), now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_wrong_keys_and_then_two_a_second_by_session() {
        let mut attempts = Attempts::new(1);
        let now = Timestamp(1 << 60);
        let one = (MemberId(1), 1);
        for _ in 0..10 {
            assert_eq!(attempts.check(one, now), Ok(()));
            attempts.count(one, now);
        }
        assert_eq!(attempts.check(one, now), Err(Reason::TooManyAttempts));
        let slowed = (1..1_000).filter(|&other| attempts.check((MemberId(other), 2), now).is_err()).count();
        assert!(slowed < 5, "one in four thousand falls together: {slowed}");
        let later = Timestamp(now.0 + 500_000_000);
        assert_eq!(attempts.check(one, later), Ok(()));
        attempts.count(one, later);
        assert_eq!(attempts.check(one, later), Err(Reason::TooManyAttempts));
    }

    #[test]
    fn which_names_fall_together_is_a_secret() {
        let together = |secret| {
            let mut attempts = Attempts::new(secret);
            (0..10).for_each(|_| attempts.count((MemberId(7), 1), Timestamp(1 << 60)));
            let all = (0..100_000)
                .filter(|&other| attempts.check((MemberId(other), 3), Timestamp(1 << 60)).is_err());
            all.collect::<Vec<_>>()
        };
        assert_ne!(together(1), together(2));
    }
}
