//! How fast a session is read that is refused again and again.
//!
//! Refusing is cheap, but it is not free: a program that asks as fast as it can keeps a gateway busy with nothing but reading,
//! refusing and answering, three million times a second. Disconnecting it would take its cancels away just when it needs
//! them, and dropping requests would leave it without an answer. So every request is answered, but a session that is
//! refused faster than [`EACH`] is read more slowly. Its requests then wait in its own socket, the operating system stops it from
//! sending more, and nobody else is kept waiting. Also when it is the exchange that is full, since what refusing costs is missing
//! where it would help; but that is refused so early that it counts for an [`CHEAPER`]th: the orders of a session that is read slowly wait where no
//! gateway sees them, and refusing is to prevent that.
//!
//! ```text
//!   refusals:   |||||||||||||||||||| allowance used up  ||||....||||....||||....   a portion, a pause, a portion
//! ```
//! The bound is on refusals only, so a session that stays within its pace is never slowed, and one that does not still
//! has as many orders taken in as its pace allows. A thousand sessions that flood a little are as bad as one that floods a lot: all
//! together have [`ALL`], and beyond it a session that has had more than a [`FEW`] refusals just now waits its turn.

use pares_types::Timestamp;

use crate::Pace;

/// Refusals of one session in a second, and how many at once, before it is read more slowly.
const EACH: (u32, u32) = (32_000, 1_000);
/// The same of all sessions together.
const ALL: (u32, u32) = (100_000, 1_000);
/// Refusals of one session at once that slow it never, however many the others have.
const FEW: u32 = 100;
/// So many refusals because too much waits cost what one of another reason does.
const CHEAPER: u32 = 8;
/// A session is left unread for so long at most: beyond it a clock that was set back is the cause. What comes in one
/// portion costs less.
const PAUSE_MAX_NS: u64 = 200_000_000;
/// The same where many sessions share what is refused: one portion of each of some ten thousand.
const SHARED_PAUSE_MAX_NS: u64 = 5_000_000_000;

/// Counts what is refused.
pub(crate) struct Refusals {
    early: Paces,
    late: Paces,
    /// See [`Pace::overuse`].
    all_used: Timestamp,
}

/// How fast is refused what costs the same.
struct Paces {
    each: Pace,
    few: Pace,
    all: Pace,
}

impl Paces {
    /// So many times as many.
    fn new(times: u32) -> Self {
        let pace = |(per_second, burst)| Pace::new(times * per_second, times * burst);
        Self { each: pace(EACH), few: pace((EACH.0, FEW)), all: pace(ALL) }
    }
}

impl Default for Refusals {
    fn default() -> Self {
        Self { early: Paces::new(CHEAPER), late: Paces::new(1), all_used: Timestamp(0) }
    }
}

impl Refusals {
    /// A session whose refusals have used up the time until `used` is refused once more, `early` if because too much waits. For how long it is to
    /// be left unread, nanoseconds; 0: not at all.
    pub(crate) fn count(&mut self, used: &mut Timestamp, early: bool, now: Timestamp) -> u64 {
        let paces = if early { &self.early } else { &self.late };
        let own_ns = paces.each.overuse(used, now, PAUSE_MAX_NS);
        let shared_ns = paces.all.overuse(&mut self.all_used, now, SHARED_PAUSE_MAX_NS);
        if paces.few.is_used_up(*used, now) { own_ns.max(shared_ns) } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Sessions that ask as fast as they are read, in portions of 80, for a second, and how many refusals each then got.
    fn refused_in_a_second(sessions: usize) -> Vec<u64> {
        let mut refusals = Refusals::default();
        let mut state = vec![(Timestamp(0), 0, 0); sessions];
        for now in (0..1_000 * MS).step_by(100_000) {
            for (used, due, refused) in &mut state {
                for _ in 0..if now >= *due { 80 } else { 0 } {
                    *due = now + refusals.count(used, false, Timestamp(now));
                    *refused += 1;
                }
            }
        }
        state.into_iter().map(|(_, _, refused)| refused).collect()
    }

    #[test]
    fn refusals_within_the_allowance_slow_nobody() {
        let (mut refusals, mut used) = (Refusals::default(), Timestamp(0));
        let at_once = (0..999).map(|_| refusals.count(&mut used, false, Timestamp(MS))).max();
        assert_eq!(at_once, Some(0));
        let steady =
            (1..10_000).map(|n| refusals.count(&mut used, false, Timestamp(100 * MS + n * 40_000))).max();
        assert_eq!(steady, Some(0), "25,000 a second");
    }

    #[test]
    fn a_session_that_floods_is_refused_at_a_bounded_rate() {
        let refused = refused_in_a_second(1)[0];
        assert!((31_000..34_000).contains(&refused), "{refused}");
    }

    #[test]
    fn eight_times_as_many_are_refused_because_too_much_waits() {
        let (mut refusals, mut used) = (Refusals::default(), Timestamp(0));
        let at = |n: u64| Timestamp(MS + n * 400_000);
        let early =
            (1..1_000).map(|n| (0..100).map(|_| refusals.count(&mut used, true, at(n))).max().unwrap()).max();
        assert_eq!(early, Some(0), "250,000 a second");
        let too_many = (1_000..2_000)
            .map(|n| (0..120).map(|_| refusals.count(&mut used, true, at(n))).max().unwrap())
            .max();
        assert!(too_many > Some(0), "300,000 a second");
    }

    #[test]
    fn flooding_sessions_share_bounded_rate_and_all_are_read() {
        let refused = refused_in_a_second(100);
        let (sum, least) = (refused.iter().sum::<u64>(), refused.iter().min());
        // The gateway reads the last requests of the first instant once before it knows that they are a flood.
        assert!((100_000..130_000).contains(&sum), "{sum}");
        assert!(least > Some(&500), "{least:?}");
    }

    #[test]
    fn a_few_refusals_slow_nobody_while_others_flood() {
        let (mut refusals, mut flood, mut few) = (Refusals::default(), Timestamp(0), Timestamp(0));
        let now = Timestamp(MS);
        assert!(
            (0..200_000).map(|_| refusals.count(&mut flood, false, now)).max() > Some(PAUSE_MAX_NS),
            "shared"
        );
        assert_eq!((0..FEW).map(|_| refusals.count(&mut few, false, now)).max(), Some(0));
        assert!(refusals.count(&mut few, false, now) > PAUSE_MAX_NS);
    }

    #[test]
    fn a_clock_that_is_set_back_makes_nobody_wait() {
        let (mut refusals, mut used) = (Refusals::default(), Timestamp(0));
        refusals.count(&mut used, false, Timestamp(3_600_000 * MS));
        assert_eq!(refusals.count(&mut used, false, Timestamp(0)), 0);
    }
}
