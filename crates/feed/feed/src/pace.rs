//! How often an address is answered: a replayer answers all, and no address may keep it from that by asking.
//!
//! Each address has an allowance of time that refills as time passes; an answer takes its share of it. Addresses of datagrams can be forged,
//! so there is one allowance over all of them too, and the table has a bound. A client has as many addresses as a host has ports, so
//! there is one for each network between them: no network has all.

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

/// How much may be answered, of whom.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rates {
    pub(crate) address: Rate,
    pub(crate) network: Rate,
    pub(crate) all: Rate,
}

/// Those who asked lately, and what they may ask yet: addresses, their networks, and all together.
#[derive(Debug)]
pub(crate) struct Pace<N, A> {
    addresses: Allowances<A>,
    networks: Allowances<N>,
    all: Rate,
    total: Allowance,
}

impl<N: Copy + Ord, A: Copy + Ord> Pace<N, A> {
    pub(crate) fn new(rates: Rates, askers_max: usize) -> Self {
        let total = Allowance { left_ns: rates.all.full(), at_ns: 0 };
        let (addresses, networks) =
            (Allowances::new(rates.address, askers_max), Allowances::new(rates.network, askers_max));
        Self { addresses, networks, all: rates.all, total }
    }

    /// Whether that address of that network is answered now.
    pub(crate) fn allows(&mut self, (network, address): (N, A), now_ns: u64) -> bool {
        self.addresses.take(address, now_ns)
            && self.networks.take(network, now_ns)
            && self.total.take(self.all, now_ns)
    }
}

/// One allowance each.
#[derive(Debug)]
struct Allowances<K> {
    each: Rate,
    most: usize,
    lately: BTreeMap<K, Allowance>,
}

impl<K: Copy + Ord> Allowances<K> {
    fn new(each: Rate, most: usize) -> Self {
        Self { each, most, lately: BTreeMap::new() }
    }

    fn take(&mut self, who: K, now_ns: u64) -> bool {
        if !self.lately.contains_key(&who) && self.lately.len() >= self.most {
            self.forget_longest_silent();
        }
        let full = Allowance { left_ns: self.each.full(), at_ns: now_ns };
        self.lately.entry(who).or_insert(full).take(self.each, now_ns)
    }

    fn forget_longest_silent(&mut self) {
        let silent = self.lately.iter().min_by_key(|(_, allowance)| allowance.at_ns).map(|(who, _)| *who);
        if let Some(who) = silent {
            self.lately.remove(&who);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: Rate = Rate { every_ns: 10, at_once: 3 };
    const RATES: Rates = Rates {
        address: RATE,
        network: Rate { every_ns: 2, at_once: 50 },
        all: Rate { every_ns: 1, at_once: 100 },
    };

    fn allowed(pace: &mut Pace<u32, u32>, asker: (u32, u32), now_ns: u64) -> usize {
        (0..100).filter(|_| pace.allows(asker, now_ns)).count()
    }

    #[test]
    fn one_who_floods_is_answered_at_his_rate_and_others_at_theirs() {
        let mut pace = Pace::new(RATES, 8);
        assert_eq!(allowed(&mut pace, (1, 1), 1_000), 3);
        assert_eq!(allowed(&mut pace, (1, 2), 1_000), 3, "another");
        assert_eq!(allowed(&mut pace, (1, 1), 1_020), 2);
        assert_eq!(allowed(&mut pace, (1, 1), 900), 0, "a clock that goes back gives nothing");
        assert_eq!(allowed(&mut pace, (1, 1), 9_000), 3, "a rest gives no more than it may");
    }

    #[test]
    fn network_that_floods_leaves_half_to_others() {
        let mut pace = Pace::new(RATES, 1_000);
        let mut answered = |network, askers: u32| {
            (0..askers).map(|one| allowed(&mut pace, (network, one), 1_000)).sum::<usize>()
        };
        assert_eq!(answered(1, 500), 50);
        assert_eq!((allowed(&mut pace, (1, 600), 1_000), allowed(&mut pace, (2, 601), 1_000)), (0, 3));
    }

    #[test]
    fn forged_addresses_share_bounded_allowance() {
        let mut pace = Pace::new(RATES, 8);
        let answered: usize = (0..1_000).map(|asker| allowed(&mut pace, (asker, asker), 1_000)).sum();
        let kept = (pace.addresses.lately.len(), pace.networks.lately.len());
        assert_eq!((answered, kept), (100, (8, 8)));
    }
}
