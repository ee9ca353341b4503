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

    /// Those that are among the others too.
    #[must_use]
    pub fn and(self, others: Self) -> Self {
        Self(self.0 & others.0)
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

/// Who has a vote about a shard. While it moves, two sets of venues have: those before and those after. What takes a majority then
/// takes one of each, so that two who judge by neighbouring steps of a move never believe different things.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Voters {
    /// Those before.
    pub before: VenueSet,
    /// Those after; the same where nothing moves.
    pub after: VenueSet,
}

impl From<VenueSet> for Voters {
    fn from(venues: VenueSet) -> Self {
        Self { before: venues, after: venues }
    }
}

impl Voters {
    /// Those of either set.
    #[must_use]
    pub fn all(self) -> VenueSet {
        self.before.or(self.after)
    }

    /// Whether these are more than half of each set.
    #[must_use]
    pub fn is_majority(self, venues: VenueSet) -> bool {
        let most = |set: VenueSet| 2 * set.and(venues).len() > set.len();
        most(self.before) && most(self.after)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_majority_while_a_shard_moves_is_one_of_each_set() {
        let set = |venues: &[u16]| venues.iter().copied().map(VenueId).collect::<VenueSet>();
        let voters = Voters { before: set(&[0, 1, 2]), after: set(&[2, 3, 4]) };
        for (venues, is_majority) in
            [(&[0, 1, 2][..], false), (&[0, 1, 3, 4], true), (&[1, 2, 3], true), (&[2, 3, 4], false)]
        {
            assert_eq!(voters.is_majority(set(venues)), is_majority, "{venues:?}");
        }
        assert_eq!(voters.all(), VenueSet::first(5));
    }

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
