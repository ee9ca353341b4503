//! Prices, quantities and time: integers whose arithmetic is checked.

use core::fmt;

use crate::ids::id;

/// Venues hash a shard's state at every position that is a multiple of this (design section 3), and recorders compare the hashes.
pub const HASH_EVERY: u64 = 1_024;

/// A price in *price units*: ten-thousandths of the instrument's currency (223.82 is 2,238,200), the
/// resolution of the US equity feeds. A legal price is a multiple of the instrument's tick; it may be
/// negative where the instrument's range allows that (spreads).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Price(pub i64);

impl fmt::Display for Price {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        let units = self.0.unsigned_abs();
        write!(f, "{sign}{}.{:04}", units / 10_000, units % 10_000)
    }
}

id! {
    /// A number of shares (or contracts). A legal order quantity is a positive multiple of the lot.
    Quantity(u64)
}

impl Quantity {
    /// Nothing.
    pub const ZERO: Self = Self(0);

    /// Whether nothing is left.
    #[must_use]
    #[inline]
    pub fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// `self - other`.
    ///
    /// # Panics
    /// If `other` is larger: shares would be created.
    #[must_use]
    #[inline]
    pub fn minus(self, other: Self) -> Self {
        Self(self.0.checked_sub(other.0).expect("a quantity never falls below zero"))
    }

    /// `self + other`.
    ///
    /// # Panics
    /// On overflow: the maximum order size of an instrument keeps sums far below it.
    #[must_use]
    #[inline]
    pub fn plus(self, other: Self) -> Self {
        Self(self.0.checked_add(other.0).expect("quantities stay far below 2^64"))
    }
}

/// Nanoseconds since the Unix epoch, read once, by the gateway, and carried by the request from then
/// on: replicas read no clock, so they cannot disagree about the time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(pub u64);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices_print_in_currency() {
        assert_eq!(Price(2_238_200).to_string(), "223.8200");
        assert_eq!(Price(-5).to_string(), "-0.0005");
    }

    #[test]
    #[should_panic(expected = "below zero")]
    fn shares_cannot_go_negative() {
        let _ = Quantity(1).minus(Quantity(2));
    }
}
