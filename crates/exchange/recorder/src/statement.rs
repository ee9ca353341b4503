//! What a venue says about a position, and sets of venues.

use pares_types::{RequestId, VenueId};

/// Nobody: the author of a record that is held against no venue, and counts for none.
pub const NOBODY: VenueId = VenueId(u16::MAX);

/// What a venue says about one position. Venues that work say the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Statement {
    /// The request at that place.
    pub request: RequestId,
    /// A digest of all the result says, without the venue and the epoch that happened to write it.
    pub content: u32,
    /// The state after it, where one was taken.
    pub state_hash: Option<u64>,
}

impl Statement {
    /// Whether both say the same, as far as both say anything.
    #[must_use]
    pub fn agrees(&self, other: &Self) -> bool {
        let states = self.state_hash.zip(other.state_hash);
        self.request == other.request
            && self.content == other.content
            && states.is_none_or(|(ours, theirs)| ours == theirs)
    }
}

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

    #[test]
    fn a_state_is_compared_where_both_took_one() {
        let said = Statement { request: RequestId::NONE, content: 7, state_hash: Some(1) };
        assert!(said.agrees(&Statement { state_hash: None, ..said }));
        assert!(!said.agrees(&Statement { state_hash: Some(2), ..said }));
        assert!(!said.agrees(&Statement { content: 8, ..said }));
    }
}
