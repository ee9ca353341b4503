//! When versions were stored, by the site's own clock, for those who keep all versions and are asked for a moment later.
//!
//! The rules give no time, and versions carry none: a stamp would be one more thing on which sites had to agree. A stamp that the keeper makes when
//! a version reaches it is wrong by as long as it was away. So each site remembers when its store came to a version, a few times a second. What it
//! does not know, of its life before or of too long ago, it says to be as old as the oldest moment that it knows. So a version may be said to be
//! younger than it is, and never older.

use std::collections::VecDeque;
use std::time::Duration;

use pares_wice::Version;

/// Time between two moments: finer than any client asks for.
const BETWEEN: Duration = Duration::from_millis(100);
/// Moments that are remembered, one and a half mebibytes: nearly two hours under load.
const MOMENTS_MAX: usize = 65_536;

/// Versions and when the store had come to them, in order.
pub(crate) struct Moments(VecDeque<(Version, Duration)>);

impl Moments {
    /// Of a site that begins `now` with a store of that version.
    pub(crate) fn new(version: Version, now: Duration) -> Self {
        Self(VecDeque::from([(version, now)]))
    }

    /// The store has come to `version`.
    pub(crate) fn note(&mut self, version: Version, now: Duration) {
        assert!(self.0.back().is_none_or(|(last, _)| *last <= version), "a store only moves on");
        assert!(self.0.back().is_none_or(|(_, last)| *last <= now), "the clock never goes back");
        let before = self.0.len().checked_sub(2).and_then(|before| self.0.get(before));
        // The newest is moved on until it is far enough from the one before.
        let is_near = before.is_some_and(|(_, before)| now.saturating_sub(*before) < BETWEEN);
        if is_near {
            self.0.pop_back();
        }
        self.0.push_back((version, now));
        self.0.drain(..self.0.len().saturating_sub(MOMENTS_MAX));
    }

    /// How long ago, at `now`, the store had come to `version` for sure.
    pub(crate) fn age(&self, version: Version, now: Duration) -> Duration {
        let at = self.0.partition_point(|(known, _)| *known < version);
        let moment = self.0.get(at).map_or(now, |(_, moment)| *moment);
        now.saturating_sub(moment)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_as_old_as_the_first_moment_that_had_it() {
        let ms = Duration::from_millis;
        let mut moments = Moments::new(Version(10), ms(1_000));
        moments.note(Version(20), ms(2_000));
        moments.note(Version(25), ms(2_050));
        moments.note(Version(30), ms(3_000));
        let age = |version| moments.age(Version(version), ms(5_000)).as_millis();
        assert_eq!(
            [age(1), age(10), age(11), age(20), age(25), age(30)],
            [4_000, 4_000, 3_000, 3_000, 2_950, 2_000]
        );
        assert_eq!(age(31), 0, "what is not stored yet is new");
    }

    #[test]
    fn moments_are_few_under_any_load() {
        let mut moments = Moments::new(Version(0), Duration::ZERO);
        (1..=100_000).for_each(|at| moments.note(Version(at), Duration::from_micros(at * 100)));
        assert!(moments.0.len() <= 102, "{}", moments.0.len());
        (1..=100_000).for_each(|at| moments.note(Version(100_000 + at), Duration::from_secs(10 + at)));
        assert_eq!(moments.0.len(), MOMENTS_MAX);
    }
}
