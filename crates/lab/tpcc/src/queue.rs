//! Virtual time and its units.

/// Virtual time since the beginning, ns.
pub(crate) type Nanos = u64;

pub(crate) const MICROSECOND: Nanos = 1_000;
pub(crate) const MILLISECOND: Nanos = 1_000_000;
pub(crate) const SECOND: Nanos = 1_000_000_000;
