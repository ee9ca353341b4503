//! The one source of chance: a seeded generator, so that a seed is a whole history.
//!
//! `SplitMix64` (Steele, Lea, Flood, 2014): a counter advanced by the golden ratio and mixed. Integers only,
//! so that a seed means the same on every machine and in every release.

/// A seeded stream of numbers.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Any 64 bits.
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        mix(self.0)
    }

    /// A number in `0..bound`; 0 if the bound is 0.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }

    /// A number in `low..=high`.
    pub(crate) fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }

    /// An index of a list of that length.
    pub(crate) fn index(&mut self, length: usize) -> usize {
        self.below(length as u64) as usize
    }

    /// True in `permille` of 1,000 cases.
    pub(crate) fn chance(&mut self, permille: u64) -> bool {
        self.below(1_000) < permille
    }

    /// Another stream, that draws from this one no further.
    pub(crate) fn fork(&mut self) -> Self {
        Self(self.next())
    }
}

/// The finaliser of `SplitMix64`: every input bit reaches every output bit.
pub(crate) fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stream_of_a_seed_never_changes() {
        let mut random = Random::new(1_234_567);
        // The published reference output of SplitMix64 for this seed.
        assert_eq!(random.next(), 6_457_827_717_110_365_317);
    }

    #[test]
    fn both_ends_of_a_range_come_up() {
        let mut random = Random::new(1);
        let seen: std::collections::BTreeSet<u64> = (0..200).map(|_| random.between(3, 6)).collect();
        assert!(seen.into_iter().eq(3..=6));
    }
}
