//! Sets of a load's requests, by their number from its first: one bit each, as they come without gaps.

/// A set of requests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Numbers(Vec<u64>);

impl Numbers {
    /// Adds a request. Whether it was not in the set yet.
    pub fn insert(&mut self, number: u64) -> bool {
        let (word, bit) = ((number / 64) as usize, 1_u64 << (number % 64));
        if word >= self.0.len() {
            self.0.resize((word + 1).next_power_of_two(), 0);
        }
        let new = self.0[word] & bit == 0;
        self.0[word] |= bit;
        new
    }

    /// How many of these are not in `other`.
    #[must_use]
    pub fn count_missing_in(&self, other: &Self) -> u64 {
        let others = other.0.iter().chain(std::iter::repeat(&0));
        self.0.iter().zip(others).map(|(ours, theirs)| u64::from((ours & !theirs).count_ones())).sum()
    }
}

#[cfg(test)]
mod tests {
    use crate::*;

    #[test]
    fn what_is_in_one_set_and_not_in_the_other_is_counted() {
        let (mut ours, mut theirs) = (Numbers::default(), Numbers::default());
        assert!([0, 63, 64, 1_000].into_iter().all(|number| ours.insert(number)));
        assert!(!ours.insert(63));
        assert_eq!((ours.count_missing_in(&theirs), theirs.count_missing_in(&ours)), (4, 0));
        theirs.insert(64);
        theirs.insert(65);
        assert_eq!((ours.count_missing_in(&theirs), theirs.count_missing_in(&ours)), (3, 1));
    }
}
