//! How much each member was told.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use pares_types::{Event, MemberId, Outcome, Position, Request};

use crate::Told;

/// How many messages of a shard each member was told. The map is iterated only in the order of its keys.
#[derive(Clone, Debug, Default)]
pub struct Numbers {
    last: HashMap<MemberId, u64, BuildHasherDefault<Mixer>>,
}

impl Numbers {
    /// One more for the member: its number, from 1.
    pub fn next(&mut self, member: MemberId) -> u64 {
        let last = self.last.entry(member).or_default();
        *last += 1;
        *last
    }

    /// Counts what the record of a request tells, wherever it lies.
    pub fn count(&mut self, request: &Request, outcome: &Outcome, events: &[Event]) {
        let told = Told { position: Position(0), request, outcome, events };
        told.read(|member, _| _ = self.next(member));
    }

    /// The number of what the member was told last; 0 if nothing was.
    #[must_use]
    pub fn last(&self, member: MemberId) -> u64 {
        self.last.get(&member).copied().unwrap_or_default()
    }

    /// All members that were told something, in order, with the numbers of what they were told last.
    #[must_use]
    pub fn sorted(&self) -> Vec<(MemberId, u64)> {
        let mut all: Vec<_> = self.last.iter().map(|(member, last)| (*member, *last)).collect();
        all.sort_unstable();
        all
    }

    /// What [`sorted`](Self::sorted) gave; `None` if it could not have.
    #[must_use]
    pub fn restore(sorted: &[(MemberId, u64)]) -> Option<Self> {
        let rises = sorted.windows(2).all(|pair| pair[0].0 < pair[1].0);
        let counts = sorted.iter().all(|(_, last)| *last > 0);
        (rises && counts).then(|| Self { last: sorted.iter().copied().collect() })
    }
}

/// A fixed hasher for members.
#[derive(Default)]
struct Mixer(u64);

impl Hasher for Mixer {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u32(byte.into()));
    }

    fn write_u32(&mut self, value: u32) {
        let mixed = (self.0 ^ u64::from(value)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ (mixed >> 32);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_restored_counts_on() {
        let mut numbers = Numbers::default();
        for member in [9, 3, 9] {
            numbers.next(MemberId(member));
        }
        let sorted = numbers.sorted();
        assert_eq!(sorted, [(MemberId(3), 1), (MemberId(9), 2)]);
        let mut restored = Numbers::restore(&sorted).unwrap();
        assert_eq!((restored.next(MemberId(9)), restored.next(MemberId(1))), (3, 1));
    }

    #[test]
    fn no_shard_has_counted_so() {
        assert!(Numbers::restore(&[(MemberId(3), 0)]).is_none(), "nothing told");
        assert!(Numbers::restore(&[(MemberId(3), 1), (MemberId(3), 1)]).is_none(), "twice");
    }
}
