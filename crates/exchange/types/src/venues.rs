//! Sets of venues.

use crate::VenueId;

/// Some of the venues of a system, of which there are at most 16.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VenueSet(u16);

impl VenueSet {
    /// None.
    pub const NONE: Self = Self(0);

    /// That one alone.
    ///
    /// # Panics
    /// If its number is above 15.
    #[must_use]
    pub fn one(venue: VenueId) -> Self {
        assert!(venue.0 < 16, "a system has at most 16 venues");
        Self(1 << venue.0)
    }

    /// So many, from number 0 on.
    ///
    /// # Panics
    /// If they are more than 16.
    #[must_use]
    pub fn first(count: u16) -> Self {
        (0..count).map(VenueId).collect()
    }

    /// Adds a venue.
    pub fn insert(&mut self, venue: VenueId) {
        self.0 |= Self::one(venue).0;
    }

    /// Takes a venue out. Says whether it was there.
    pub fn remove(&mut self, venue: VenueId) -> bool {
        let was = self.contains(venue);
        self.0 &= !Self::one(venue).0;
        was
    }

    /// Whether the venue is among them.
    #[must_use]
    pub fn contains(self, venue: VenueId) -> bool {
        venue.0 < 16 && self.0 & Self::one(venue).0 != 0
    }

    /// Those of either.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Those of `self` that are not among the others.
    #[must_use]
    pub fn without(self, others: Self) -> Self {
        Self(self.0 & !others.0)
    }

    /// How many.
    #[must_use]
    pub fn len(self) -> u32 {
        self.0.count_ones()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// They, in ascending order.
    pub fn iter(self) -> impl Iterator<Item = VenueId> {
        (0..16).map(VenueId).filter(move |&venue| self.contains(venue))
    }
}

impl FromIterator<VenueId> for VenueSet {
    fn from_iter<I: IntoIterator<Item = VenueId>>(venues: I) -> Self {
        venues.into_iter().fold(Self::NONE, |all, venue| all.or(Self::one(venue)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn venues_are_a_set() {
        let mut venues = VenueSet::one(VenueId(2));
        venues.insert(VenueId(15));
        venues.insert(VenueId(2));
        assert_eq!(venues.iter().collect::<Vec<_>>(), [VenueId(2), VenueId(15)]);
        assert_eq!(venues.len(), 2);
        assert!(venues.remove(VenueId(2)) && !venues.remove(VenueId(2)));
        assert_eq!(venues.without(VenueSet::one(VenueId(15))), VenueSet::NONE);
    }
}
