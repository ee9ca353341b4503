//! How many of the places that all share each one has, and who gives a place when there is none left.
//!
//! A bound that many share lets the first of them bar all others. So where the places are out, the one with most gives one: it comes
//! back as others come, and no one is pushed out by one who has as much (max-min fairness).

use std::collections::{BTreeMap, BTreeSet};

/// Places taken, by those who have them. The same on every machine that saw the same.
#[derive(Clone, Debug)]
pub struct SharedPlaces<K> {
    counts: BTreeMap<K, usize>,
    by_count: BTreeSet<(usize, K)>,
    total: usize,
}

impl<K> Default for SharedPlaces<K> {
    fn default() -> Self {
        Self { counts: BTreeMap::new(), by_count: BTreeSet::new(), total: 0 }
    }
}

impl<K: Copy + Ord> SharedPlaces<K> {
    /// Places taken by all.
    #[must_use]
    pub fn total(&self) -> usize {
        self.total
    }

    /// Places that `who` has.
    #[must_use]
    pub fn count(&self, who: K) -> usize {
        self.counts.get(&who).copied().unwrap_or_default()
    }

    /// `who` has one place more.
    pub fn add(&mut self, who: K) {
        self.set(who, self.count(who) + 1);
        self.total += 1;
    }

    /// `who` has one place less.
    ///
    /// # Panics
    /// If it has none.
    pub fn remove(&mut self, who: K) {
        let count = self.count(who);
        assert!(count > 0, "a place that is given back was taken");
        self.set(who, count - 1);
        self.total -= 1;
    }

    fn set(&mut self, who: K, count: usize) {
        self.by_count.remove(&(self.count(who), who));
        if count == 0 {
            self.counts.remove(&who);
        } else {
            self.counts.insert(who, count);
            self.by_count.insert((count, who));
        }
    }

    /// Who gives a place so that `who` gets one: the one with most, or `who` itself where that one would be left with fewer; `None` if `who`
    /// has none to give either.
    #[must_use]
    pub fn giver(&self, who: K) -> Option<K> {
        let own = self.count(who);
        let most = self.by_count.last().filter(|(most, _)| own + 1 < *most).map(|(_, other)| *other);
        most.or((own > 0).then_some(who))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_one_with_most_gives_until_shares_are_equal() {
        let mut shares = SharedPlaces::default();
        (0..9).for_each(|_| shares.add('a'));
        shares.add('b');
        for _ in 0..4 {
            assert_eq!(shares.giver('b'), Some('a'));
            shares.remove('a');
            shares.add('b');
        }
        assert_eq!((shares.count('a'), shares.count('b'), shares.total()), (5, 5, 10));
        assert_eq!((shares.giver('a'), shares.giver('b')), (Some('a'), Some('b')), "each its own");
        assert_eq!(shares.giver('c').map(|giver| shares.count(giver)), Some(5));
    }

    #[test]
    fn one_without_a_place_pushes_out_no_one_with_one() {
        let mut shares = SharedPlaces::default();
        ['a', 'b'].into_iter().for_each(|who| shares.add(who));
        assert_eq!(shares.giver('c'), None);
        shares.remove('a');
        shares.add('b');
        assert_eq!((shares.giver('a'), shares.count('a'), shares.total()), (Some('b'), 0, 2));
    }
}
