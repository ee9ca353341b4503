//! The one source of chance: the laboratory's generator, and the distributions the paper names.
//!
//! Floating point comes in here only, since nothing but a
//! model of load depends on it.

use core::f64::consts::TAU;

use pares_flow::Random;

/// A seeded stream of numbers.
#[derive(Clone, Debug)]
pub struct Dice(Random);

impl Dice {
    /// The stream of `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(Random::new(seed))
    }

    /// Any 64 bits.
    pub(crate) fn next(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number in `0..bound`; 0 if the bound is 0.
    pub fn below(&mut self, bound: u32) -> u32 {
        self.0.below(bound.into()) as u32
    }

    /// A number in `low..=high`, which must not be empty.
    pub fn between(&mut self, low: u32, high: u32) -> u32 {
        low + self.below(high - low + 1)
    }

    /// True in `percent` of 100 cases.
    pub fn chance(&mut self, percent: u32) -> bool {
        self.below(100) < percent
    }

    /// A number in `0.0..1.0`.
    pub(crate) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Evenly between two values.
    pub(crate) fn uniform(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.unit()
    }

    /// Normally distributed (Box and Muller, 1958), never below a tenth of the mean: no work takes less than no time.
    pub(crate) fn normal(&mut self, mean: f64, deviation: f64) -> f64 {
        let radius = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
        (mean + deviation * radius * (TAU * self.unit()).cos()).max(mean / 10.0)
    }

    /// Exponentially distributed, cut at ten times the mean (TPC-C, clause 5.2.5.4).
    pub(crate) fn exponential(&mut self, mean: f64) -> f64 {
        (-mean * (1.0 - self.unit()).ln()).min(10.0 * mean)
    }

    /// TPC-C's uneven choice in `low..=high` (clause 2.1.6), `a` one less than a power of two; its constant C is fixed.
    pub fn uneven(&mut self, a: u32, low: u32, high: u32) -> u32 {
        let c = 123 & a;
        ((self.between(0, a) | self.between(low, high)) + c) % (high - low + 1) + low
    }

    /// One of `0..count` (at least 1) that is not `home`; `home` if there is no other.
    pub fn elsewhere(&mut self, home: u32, count: u32) -> u32 {
        (home + 1 + self.below(count - 1)) % count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mean_and_deviation(mut draw: impl FnMut(&mut Dice) -> f64) -> (f64, f64) {
        let mut random = Dice::new(7);
        let drawn: Vec<f64> = (0..200_000).map(|_| draw(&mut random)).collect();
        let mean = drawn.iter().sum::<f64>() / drawn.len() as f64;
        let variance = drawn.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / drawn.len() as f64;
        (mean, variance.sqrt())
    }

    #[test]
    fn distributions_have_the_moments_they_are_asked_for() {
        let near = |(mean, deviation): (f64, f64), wanted: (f64, f64)| {
            assert!((mean / wanted.0 - 1.0).abs() < 0.01, "mean {mean}, wanted {}", wanted.0);
            assert!((deviation / wanted.1 - 1.0).abs() < 0.01, "deviation {deviation}, wanted {}", wanted.1);
        };
        near(mean_and_deviation(|random| random.normal(143.70, 2.33)), (143.70, 2.33));
        near(mean_and_deviation(|random| random.exponential(12.0)), (12.0, 12.0));
        near(mean_and_deviation(|random| random.uniform(6.45, 16.83)), (11.64, 2.9965));
    }

    #[test]
    fn uneven_choices_stay_in_their_range() {
        let mut random = Dice::new(1);
        let drawn: Vec<u32> = (0..10_000).map(|_| random.uneven(1023, 1, 3000)).collect();
        assert!(drawn.iter().all(|row| (1..=3000).contains(row)));
        let again: std::collections::BTreeSet<u32> = drawn.iter().copied().collect();
        assert!(
            again.len() < 2_700,
            "an even choice would give about 2,890 different ones, not {}",
            again.len()
        );
    }
}
