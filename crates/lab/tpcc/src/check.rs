//! One-copy snapshot isolation, checked on every run by who sees all sites.
//!
//! | | what |
//! |---|---|
//! | C1 | every site delivers the same transaction at the same version, without gaps |
//! | C2 | a committed transaction had seen the last earlier version of everything it put; of what it adds to, the last that was put |
//! | C3 | a transaction commits at most once, and none whose abort was reported |
//! | C4 | what was reported to a client as committed, both clusters had |
//! | C5 | readers read a prefix of the commit order, and are answered when both clusters have it |

use std::collections::{BTreeSet, HashMap, HashSet}; // hashed ones are looked up only

use crate::item::{Item, Written};
use crate::network::{Site, side};
use crate::setting::SITES;

/// A transaction, the same over all its attempts.
pub(crate) type Number = u64;

/// Last writers of an item.
#[derive(Clone, Copy, Debug, Default)]
struct Last {
    put: u64,
    added: u64,
}

/// Sees everything.
#[derive(Debug, Default)]
pub(crate) struct Checker {
    /// Transaction of each version, from version 1 on; none for versions that change no item.
    order: Vec<Option<Number>>,
    last: HashMap<Item, Last>,
    /// Version of each transaction.
    committed: HashMap<Number, u64>,
    aborted: HashSet<(Number, u32)>,
    /// All versions up to this one are delivered, by site.
    delivered: [u64; SITES],
    /// All versions up to this one are installed, by site; and those above it.
    installed: [u64; SITES],
    above: [BTreeSet<u64>; SITES],
    /// Sides that have a transaction where nobody can lose it.
    held: HashMap<Number, u8>,
    violation: Option<String>,
    digest: u64,
}

impl Checker {
    /// The first thing found wrong.
    pub(crate) fn violation(&self) -> Option<&str> {
        self.violation.as_deref()
    }

    /// Equal for equal histories.
    pub(crate) fn digest(&self) -> u64 {
        self.digest
    }

    /// Versions in the commit order.
    pub(crate) fn versions(&self) -> u64 {
        self.order.len() as u64
    }

    fn expect(&mut self, holds: bool, what: impl FnOnce() -> String) {
        if !holds && self.violation.is_none() {
            self.violation = Some(what());
        }
    }

    /// `site` delivers `version`: transaction, attempt, snapshot and writes, or nothing that changes an item.
    pub(crate) fn delivers(
        &mut self,
        site: Site,
        version: u64,
        what: Option<(Number, u32, u64, &[Written])>,
    ) {
        let next = self.delivered[site] + 1;
        self.expect(version == next, || format!("C1: site {site} delivers {version} instead of {next}"));
        if version != next {
            return;
        }
        self.delivered[site] = version;
        let number = what.map(|(number, ..)| number);
        if version > self.versions() {
            self.order.push(number);
            if let Some((number, attempt, snapshot, writes)) = what {
                self.commits(version, number, attempt, snapshot, writes);
            }
        }
        let first = self.order[version as usize - 1];
        self.expect(first == number, || {
            format!("C1: version {version} is {first:?} and at site {site} {number:?}")
        });
    }

    fn commits(&mut self, version: u64, number: Number, attempt: u32, snapshot: u64, writes: &[Written]) {
        self.digest = pares_random::mix(self.digest ^ version ^ number.rotate_left(32));
        let earlier = self.committed.insert(number, version);
        self.expect(earlier.is_none(), || format!("C3: {number} commits at {earlier:?} and at {version}"));
        let aborted = self.aborted.contains(&(number, attempt));
        self.expect(!aborted, || {
            format!("C3: {number}, attempt {attempt}, was reported aborted and commits at {version}")
        });
        self.expect(snapshot < version, || format!("C2: {version} has seen {snapshot}"));
        for written in writes {
            let last = self.last.entry(written.item).or_default();
            let seen = if written.adds { last.put } else { last.put.max(last.added) };
            let slot = if written.adds { &mut last.added } else { &mut last.put };
            *slot = version;
            self.expect(seen <= snapshot, || {
                format!(
                    "C2: version {version}, snapshot {snapshot}, overwrites {:?} of version {seen}",
                    written.item
                )
            });
        }
    }

    /// `site` has installed `version`.
    pub(crate) fn installs(&mut self, site: Site, version: u64) {
        self.above[site].insert(version);
        while self.above[site].remove(&(self.installed[site] + 1)) {
            self.installed[site] += 1;
        }
    }

    /// A transaction is where nobody on that side can lose it.
    pub(crate) fn holds(&mut self, site: Site, number: Number) {
        *self.held.entry(number).or_default() |= 1 << side(site);
    }

    /// A transaction begins at `site` on `snapshot`.
    pub(crate) fn reads(&mut self, site: Site, snapshot: u64) {
        let installed = self.installed[site];
        self.expect(snapshot <= installed, || {
            format!("C5: site {site} reads {snapshot} and has installed all up to {installed}")
        });
    }

    /// A reader of `snapshot` is answered.
    pub(crate) fn answers_reader(&mut self, snapshot: u64) {
        let number =
            snapshot.checked_sub(1).and_then(|index| self.order.get(index as usize).copied().flatten());
        let held = number.is_none_or(|number| self.held.get(&number) == Some(&0b11));
        self.expect(held, || format!("C5: a reader of {snapshot} is answered before both clusters have it"));
    }

    /// A client receives the answer that its transaction is committed.
    pub(crate) fn acknowledges(&mut self, number: Number) {
        let held = self.held.get(&number) == Some(&0b11) && self.committed.contains_key(&number);
        self.expect(held, || format!("C4: {number} is acknowledged before both clusters have it"));
    }

    /// A client received the answer that this attempt was aborted.
    pub(crate) fn aborts(&mut self, number: Number, attempt: u32) {
        let committed = self.committed.contains_key(&number);
        self.expect(!committed, || {
            format!("C3: {number}, attempt {attempt}, is reported aborted after its commit")
        });
        self.aborted.insert((number, attempt));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::item::Table;

    fn put(row: u32) -> [Written; 1] {
        [Written::put(Item::new(Table::Stock, 0, 0, row))]
    }

    fn add(row: u32) -> [Written; 1] {
        [Written::add(Item::new(Table::Stock, 0, 0, row))]
    }

    fn found(history: impl FnOnce(&mut Checker)) -> String {
        let mut checker = Checker::default();
        history(&mut checker);
        checker.violation().unwrap_or_default().to_owned()
    }

    #[test]
    fn a_history_in_order_passes() {
        let what = found(|checker| {
            for site in [0, 3] {
                checker.delivers(site, 1, Some((10, 0, 0, &put(1))));
                checker.delivers(site, 2, Some((11, 0, 1, &put(1))));
                checker.delivers(site, 3, None);
                checker.delivers(site, 4, Some((12, 0, 0, &add(2))));
                checker.delivers(site, 5, Some((13, 0, 0, &add(2))));
                checker.holds(site, 10);
            }
            checker.acknowledges(10);
        });
        assert_eq!(what, "");
    }

    #[test]
    fn each_rule_is_seen_broken() {
        let lost_update = |checker: &mut Checker| {
            checker.delivers(0, 1, Some((10, 0, 0, &put(1))));
            checker.delivers(0, 2, Some((11, 0, 0, &put(1))));
        };
        assert!(found(lost_update).starts_with("C2"));
        let put_over_add = |checker: &mut Checker| {
            checker.delivers(0, 1, Some((10, 0, 0, &add(1))));
            checker.delivers(0, 2, Some((11, 0, 0, &put(1))));
        };
        assert!(found(put_over_add).starts_with("C2"));
        let forked = |checker: &mut Checker| {
            checker.delivers(0, 1, Some((10, 0, 0, &put(1))));
            checker.delivers(1, 1, Some((11, 0, 0, &put(2))));
        };
        assert!(found(forked).starts_with("C1"));
        assert!(found(|checker| checker.delivers(0, 2, None)).starts_with("C1"));
        let twice = |checker: &mut Checker| {
            checker.delivers(0, 1, Some((10, 0, 0, &put(1))));
            checker.delivers(0, 2, Some((10, 1, 1, &put(1))));
        };
        assert!(found(twice).starts_with("C3"));
        let after_abort = |checker: &mut Checker| {
            checker.aborts(10, 0);
            checker.delivers(0, 1, Some((10, 0, 0, &put(1))));
        };
        assert!(found(after_abort).starts_with("C3"));
        let too_early = |checker: &mut Checker| {
            checker.delivers(0, 1, Some((10, 0, 0, &put(1))));
            checker.holds(0, 10);
            checker.acknowledges(10);
        };
        assert!(found(too_early).starts_with("C4"));
        assert!(found(|checker| checker.reads(0, 1)).starts_with("C5"));
    }
}
