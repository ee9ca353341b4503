//! How often each may try and be wrong: ten times at once, then twice a second.
//!
//! What is counted is who tries. Counted by what is tried, anyone could keep its owner out; counted in places that several fall
//! together in, others could.

use std::collections::{BTreeMap, BTreeSet};

/// After so many nanoseconds one attempt is forgiven.
const EVERY_NS: u64 = 500_000_000;
/// Wrong attempts at once.
const AT_ONCE: u64 = 10;
/// Those that were wrong lately, at most; further ones make the one forget that is forgiven next.
const CALLERS_MAX: usize = 4_096;

/// Those who were wrong lately, and when all of it is forgiven.
#[derive(Clone, Debug)]
pub struct Attempts<K> {
    until_ns: BTreeMap<K, u64>,
    by_time: BTreeSet<(u64, K)>,
}

impl<K> Default for Attempts<K> {
    fn default() -> Self {
        Self { until_ns: BTreeMap::new(), by_time: BTreeSet::new() }
    }
}

impl<K: Copy + Ord> Attempts<K> {
    /// Whether `who` may try at `now_ns`.
    #[must_use]
    pub fn may_try(&self, who: K, now_ns: u64) -> bool {
        self.used_ns(who, now_ns) <= EVERY_NS * (AT_ONCE - 1)
    }

    /// `who` was wrong at `now_ns`.
    pub fn count(&mut self, who: K, now_ns: u64) {
        let used_ns = (self.used_ns(who, now_ns) + EVERY_NS).min(EVERY_NS * AT_ONCE);
        self.forget(who);
        self.make_room(now_ns);
        self.put(who, now_ns, used_ns);
    }

    /// One attempt that was counted was not wrong after all.
    pub fn forgive(&mut self, who: K, now_ns: u64) {
        let used_ns = self.used_ns(who, now_ns).saturating_sub(EVERY_NS);
        self.forget(who);
        if used_ns > 0 {
            self.put(who, now_ns, used_ns);
        }
    }

    fn put(&mut self, who: K, now_ns: u64, used_ns: u64) {
        let until_ns = now_ns.saturating_add(used_ns);
        self.until_ns.insert(who, until_ns);
        self.by_time.insert((until_ns, who));
    }

    /// What `who` has used, as time. No one gets further ahead than all at once: the clock was set back then.
    fn used_ns(&self, who: K, now_ns: u64) -> u64 {
        let used_ns = self.until_ns.get(&who).map_or(0, |until_ns| until_ns.saturating_sub(now_ns));
        if used_ns > EVERY_NS * AT_ONCE { 0 } else { used_ns }
    }

    fn make_room(&mut self, now_ns: u64) {
        while let Some(&(until_ns, who)) = self.by_time.first()
            && (until_ns <= now_ns || self.by_time.len() >= CALLERS_MAX)
        {
            self.forget(who);
        }
    }

    fn forget(&mut self, who: K) {
        if let Some(until_ns) = self.until_ns.remove(&who) {
            self.by_time.remove(&(until_ns, who));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW_NS: u64 = 1 << 60;

    fn wrong(attempts: &mut Attempts<u32>, who: u32, times: usize) {
        (0..times).for_each(|_| attempts.count(who, NOW_NS));
    }

    #[test]
    fn ten_wrong_attempts_then_two_a_second_of_each() {
        let mut attempts = Attempts::default();
        for _ in 0..10 {
            assert!(attempts.may_try(1, NOW_NS));
            attempts.count(1, NOW_NS);
        }
        assert!(!attempts.may_try(1, NOW_NS) && attempts.may_try(2, NOW_NS));
        let later_ns = NOW_NS + EVERY_NS;
        assert!(attempts.may_try(1, later_ns));
        attempts.count(1, later_ns);
        assert!(!attempts.may_try(1, later_ns));
        assert!(attempts.may_try(1, NOW_NS - 60 * EVERY_NS), "the clock was set back");
    }

    #[test]
    fn an_attempt_that_was_not_wrong_is_given_back() {
        let mut attempts = Attempts::default();
        wrong(&mut attempts, 1, 10);
        attempts.forgive(1, NOW_NS);
        assert!(attempts.may_try(1, NOW_NS));
        wrong(&mut attempts, 1, 1);
        assert!(!attempts.may_try(1, NOW_NS), "one alone");
        (0..20).for_each(|_| attempts.forgive(1, NOW_NS));
        assert_eq!((attempts.until_ns.len(), attempts.by_time.len()), (0, 0));
        wrong(&mut attempts, 1, 10);
        assert!(!attempts.may_try(1, NOW_NS), "none is given in advance");
    }

    #[test]
    fn however_many_are_wrong_only_they_wait() {
        let mut attempts = Attempts::default();
        for who in 1..=2 * CALLERS_MAX as u32 {
            wrong(&mut attempts, who, 10);
            assert!(!attempts.may_try(who, NOW_NS) && attempts.may_try(0, NOW_NS));
        }
        assert_eq!(attempts.until_ns.len(), CALLERS_MAX);
        attempts.count(0, NOW_NS + EVERY_NS * AT_ONCE);
        assert_eq!((attempts.until_ns.len(), attempts.by_time.len()), (1, 1), "all is forgiven");
    }
}
