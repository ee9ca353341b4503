//! How fast a session may send orders.
//!
//! One member's runaway program must not cost the others their answers, and refusing it must cost next to nothing, since it
//! keeps asking. Counting requests per second lets twice the rate through around each full second. So a session
//! owns the time up to which it has used its share: each order moves that time on by its interval, and one that would
//! move it too far ahead of now is refused (the generic cell rate algorithm of ITU-T I.371, the token bucket without a bucket).
//!
//! ```text
//!   used up to:      |--order--|--order--|--order--|            interval = 1 s / rate
//!                   now                  | now + burst: no further
//! ```

use pares_types::Timestamp;

const SECOND_NS: u64 = 1_000_000_000;

/// Orders a session may send in a second, and how many of them at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    interval_ns: u64,
    /// How far ahead of now the time used may be for one more order.
    ahead_ns: u64,
    /// As it was asked for.
    per_second: u32,
    burst: u32,
}

impl Pace {
    /// As many as it likes.
    pub const FREE: Self = Self { interval_ns: 0, ahead_ns: u64::MAX, per_second: 0, burst: 0 };

    /// So many orders a second, and `burst` of them at once (at least one). Zero a second is [`Pace::FREE`].
    #[must_use]
    pub fn new(per_second: u32, burst: u32) -> Self {
        if per_second == 0 {
            return Self::FREE;
        }
        let interval_ns = SECOND_NS.div_ceil(u64::from(per_second));
        let burst = burst.max(1);
        Self { interval_ns, ahead_ns: interval_ns * u64::from(burst - 1), per_second, burst }
    }

    /// Orders in a second, 0 for as many as it likes, and how many at once.
    pub(crate) fn rate(self) -> (u32, u32) {
        (self.per_second, self.burst)
    }

    /// The slower of both.
    #[must_use]
    pub(crate) fn slower(self, other: Self) -> Self {
        if other.interval_ns > self.interval_ns { other } else { self }
    }

    /// Whether a session that has used its share up to `used` may send one more order now; if so it has used more.
    pub(crate) fn admits(self, used: &mut Timestamp, now: Timestamp) -> bool {
        if self.interval_ns == 0 {
            return true;
        }
        let ahead_ns = used.0.saturating_sub(now.0);
        if ahead_ns > self.ahead_ns + self.interval_ns {
            // Nobody gets that far ahead: the clock was set back.
            *used = now;
        } else if ahead_ns > self.ahead_ns {
            return false;
        }
        *used = Timestamp(used.0.max(now.0) + self.interval_ns);
        true
    }

    /// Whether more than the burst is used.
    pub(crate) fn is_used_up(self, used: Timestamp, now: Timestamp) -> bool {
        used.0.saturating_sub(now.0) > self.ahead_ns + self.interval_ns
    }

    /// One more of what cannot be refused any more. For how long the next one should be kept waiting, nanoseconds, at most
    /// `wait_max_ns`; 0 while the burst lasts.
    pub(crate) fn overuse(self, used: &mut Timestamp, now: Timestamp, wait_max_ns: u64) -> u64 {
        if self.interval_ns == 0 {
            return 0;
        }
        let most_ns = self.ahead_ns + wait_max_ns;
        // Further ahead is nobody: the clock was set back.
        let ahead_ns = Some(used.0.saturating_sub(now.0)).filter(|&ahead_ns| ahead_ns <= most_ns);
        let ahead_ns = (ahead_ns.unwrap_or(0) + self.interval_ns).min(most_ns);
        *used = Timestamp(now.0 + ahead_ns);
        ahead_ns.saturating_sub(self.ahead_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many of `asked` orders at each of these times are admitted.
    fn admitted(pace: Pace, times_ms: &[u64], asked: usize) -> Vec<usize> {
        let mut used = Timestamp(0);
        let at = |ms: &u64| Timestamp(SECOND_NS + ms * 1_000_000);
        let mut count = |ms: &u64| (0..asked).filter(|_| pace.admits(&mut used, at(ms))).count();
        times_ms.iter().map(&mut count).collect()
    }

    #[test]
    fn a_burst_and_then_the_rate() {
        assert_eq!(admitted(Pace::new(100, 5), &[0, 10, 20, 30], 9), [5, 1, 1, 1]);
    }

    #[test]
    fn what_was_not_used_comes_back_up_to_the_burst() {
        assert_eq!(admitted(Pace::new(100, 5), &[0, 30, 5_000], 9), [5, 3, 5]);
    }

    #[test]
    fn one_at_a_time_without_a_burst() {
        assert_eq!(admitted(Pace::new(1_000, 0), &[0, 1, 2], 9), [1, 1, 1]);
    }

    #[test]
    fn zero_is_no_limit() {
        assert_eq!(admitted(Pace::new(0, 5), &[0], 1_000), [1_000]);
    }

    #[test]
    fn a_clock_that_is_set_back_locks_nobody_out() {
        assert_eq!(admitted(Pace::new(100, 5), &[3_600_000, 0, 10], 9), [5, 5, 1]);
    }

    #[test]
    fn refusals_use_nothing() {
        assert_eq!(admitted(Pace::new(100, 1), &[0, 5, 9, 10], 1_000), [1, 0, 0, 1]);
    }
}
