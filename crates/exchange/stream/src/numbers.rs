//! How many messages each member's stream has.

use std::collections::BTreeMap;

use pares_types::MemberId;

/// Members below this number are counted in a table, 8 bytes each up to the highest; it is asked for every message.
const NEAR: usize = 1 << 16;

/// How many messages each member's stream of a shard has.
#[derive(Clone, Debug, Default)]
pub struct StreamNumbers {
    near: Vec<u64>,
    far: BTreeMap<MemberId, u64>,
}

impl StreamNumbers {
    /// One more for the member: its number, from 1.
    pub fn next(&mut self, member: MemberId) -> u64 {
        let last = self.count_of(member);
        *last += 1;
        *last
    }

    fn count_of(&mut self, member: MemberId) -> &mut u64 {
        let at = member.0 as usize;
        if at >= NEAR {
            return self.far.entry(member).or_default();
        }
        if at >= self.near.len() {
            self.near.resize(at + 1, 0);
        }
        &mut self.near[at]
    }

    /// The number of the member's last message; 0 if there was none.
    #[must_use]
    pub fn last(&self, member: MemberId) -> u64 {
        let near = self.near.get(member.0 as usize);
        near.or_else(|| self.far.get(&member)).copied().unwrap_or_default()
    }

    /// All members whose streams have messages, in order, with the numbers of the last ones.
    #[must_use]
    pub fn sorted(&self) -> Vec<(MemberId, u64)> {
        let near = (0..).map(MemberId).zip(self.near.iter().copied()).filter(|(_, last)| *last > 0);
        near.chain(self.far.iter().map(|(member, last)| (*member, *last))).collect()
    }

    /// What [`sorted`](Self::sorted) gave; `None` if it could not have.
    #[must_use]
    pub fn restore(sorted: &[(MemberId, u64)]) -> Option<Self> {
        let rises = sorted.windows(2).all(|pair| pair[0].0 < pair[1].0);
        let counts = sorted.iter().all(|(_, last)| *last > 0);
        let mut numbers = Self::default();
        (rises && counts).then(|| {
            sorted.iter().for_each(|&(member, last)| *numbers.count_of(member) = last);
            numbers
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_restored_counts_on() {
        let mut numbers = StreamNumbers::default();
        for member in [9, 3, 70_000, 9] {
            numbers.next(MemberId(member));
        }
        let sorted = numbers.sorted();
        assert_eq!(sorted, [(MemberId(3), 1), (MemberId(9), 2), (MemberId(70_000), 1)]);
        let mut restored = StreamNumbers::restore(&sorted).unwrap();
        assert_eq!((restored.next(MemberId(9)), restored.next(MemberId(1))), (3, 1));
        assert_eq!((restored.last(MemberId(70_000)), restored.last(MemberId(80_000))), (1, 0));
    }

    #[test]
    fn no_shard_has_counted_so() {
        assert!(StreamNumbers::restore(&[(MemberId(3), 0)]).is_none(), "nothing told");
        assert!(StreamNumbers::restore(&[(MemberId(3), 1), (MemberId(3), 1)]).is_none(), "twice");
    }
}
