//! How often an address is answered: a replayer answers all, and no address may keep it from that by asking.
//!
//! Each address has an allowance of time that refills as time passes; an answer takes its share of it. Addresses of datagrams can be forged,
//! so there is one allowance over all of them too, and the table has a bound.

use std::collections::BTreeMap;

/// An allowance that answers are taken from.
#[derive(Clone, Copy, Debug)]
struct Allowance {
    left_ns: u64,
    at_ns: u64,
}

/// How much may be answered: one answer each `every_ns`, and so many at once after a rest.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rate {
    pub(crate) every_ns: u64,
    pub(crate) at_once: u64,
}

impl Rate {
    fn full(self) -> u64 {
        self.every_ns * self.at_once
    }
}

impl Allowance {
    /// Takes an answer's share, if it is there.
    fn take(&mut self, rate: Rate, now_ns: u64) -> bool {
        let passed_ns = now_ns.saturating_sub(self.at_ns);
        self.left_ns = rate.full().min(self.left_ns.saturating_add(passed_ns));
        self.at_ns = self.at_ns.max(now_ns);
        let is_there = self.left_ns >= rate.every_ns;
        if is_there {
            self.left_ns -= rate.every_ns;
        }
        is_there
    }
}

/// Those who asked lately, and what they may ask yet.
#[derive(Debug)]
pub(crate) struct Pace<A> {
    each: Rate,
    all: Rate,
    askers_max: usize,
    askers: BTreeMap<A, Allowance>,
    total: Allowance,
}

impl<A: Copy + Ord> Pace<A> {
    pub(crate) fn new(each: Rate, all: Rate, askers_max: usize) -> Self {
        let total = Allowance { left_ns: all.full(), at_ns: 0 };
        Self { each, all, askers_max, askers: BTreeMap::new(), total }
    }

    /// Whether `asker` is answered now.
    pub(crate) fn allows(&mut self, asker: A, now_ns: u64) -> bool {
        if !self.askers.contains_key(&asker) && self.askers.len() >= self.askers_max {
            self.forget_longest_silent();
        }
        let full = Allowance { left_ns: self.each.full(), at_ns: now_ns };
        let own = self.askers.entry(asker).or_insert(full);
        own.take(self.each, now_ns) && self.total.take(self.all, now_ns)
    }

    fn forget_longest_silent(&mut self) {
        let silent = self.askers.iter().min_by_key(|(_, allowance)| allowance.at_ns).map(|(asker, _)| *asker);
        if let Some(asker) = silent {
            self.askers.remove(&asker);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: Rate = Rate { every_ns: 10, at_once: 3 };

    fn allowed(pace: &mut Pace<u32>, asker: u32, now_ns: u64) -> usize {
        (0..100).filter(|_| pace.allows(asker, now_ns)).count()
    }

    #[test]
    fn one_who_floods_is_answered_at_his_rate_and_others_at_theirs() {
        let mut pace = Pace::new(RATE, Rate { every_ns: 1, at_once: 100 }, 8);
        assert_eq!(allowed(&mut pace, 1, 1_000), 3);
        assert_eq!(allowed(&mut pace, 2, 1_000), 3, "another");
        assert_eq!(allowed(&mut pace, 1, 1_020), 2);
        assert_eq!(allowed(&mut pace, 1, 900), 0, "a clock that goes back gives nothing");
        assert_eq!(allowed(&mut pace, 1, 9_000), 3, "a rest gives no more than it may");
    }

    #[test]
    fn forged_addresses_share_bounded_allowance() {
        let mut pace = Pace::new(RATE, Rate { every_ns: 1, at_once: 100 }, 8);
        let answered: usize = (0..1_000).map(|asker| allowed(&mut pace, asker, 1_000)).sum();
        assert_eq!((answered, pace.askers.len()), (100, 8));
    }
}
