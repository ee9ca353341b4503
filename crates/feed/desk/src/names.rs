//! What was ordered under which name.
//!
//! A trader that lost its server repeats what it got no answer to at another one, while the first may have written it down before it died.
//! Then both are ordered. Which of them counts must be the same on every server and must not depend on who answered whom: the first in the
//! stream counts, and a later one is a repeat. Since numbers rise, one number for each submitter decides that; the last places are
//! kept to answer with.

use std::collections::{BTreeMap, VecDeque};

use pares_types::Position;

use crate::item::{ItemName, TraderId};

/// Places remembered of each submitter.
pub const PLACES_MAX: usize = 256;

/// Where a name stands that was ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SubmissionState {
    /// There.
    At(Position),
    /// Longer ago than is remembered.
    Earlier,
}

impl SubmissionState {
    /// The position, or the highest number.
    #[must_use]
    pub fn position(self) -> Position {
        match self {
            Self::At(position) => position,
            Self::Earlier => Position(u64::MAX),
        }
    }
}

/// One submitter's names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Used {
    /// The highest number ordered.
    through: u64,
    /// The last ones, with their places.
    places: VecDeque<(u64, Position)>,
}

/// The names that were ordered, of all submitters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ItemNames {
    used: BTreeMap<TraderId, Used>,
}

impl ItemNames {
    /// Where the name stands, if it was ordered: names up to the highest number count as used.
    #[must_use]
    pub fn find(&self, name: ItemName) -> Option<SubmissionState> {
        let used = self.used.get(&name.trader)?;
        if name.number > used.through {
            return None;
        }
        let place = used.places.binary_search_by_key(&name.number, |&(number, _)| number);
        Some(place.map_or(SubmissionState::Earlier, |index| SubmissionState::At(used.places[index].1)))
    }

    /// Where the highest number of a submitter stands.
    #[must_use]
    pub fn newest(&self, trader: TraderId) -> Option<Position> {
        self.used.get(&trader)?.places.back().map(|&(_, position)| position)
    }

    /// The highest number of a submitter that was ordered; 0 if none was.
    #[must_use]
    pub fn through(&self, trader: TraderId) -> u64 {
        self.used.get(&trader).map_or(0, |used| used.through)
    }

    /// How many submitters there are.
    #[must_use]
    pub fn submitters(&self) -> usize {
        self.used.len()
    }

    /// A name stands there now.
    ///
    /// # Panics
    /// If it was used before.
    pub(crate) fn note(&mut self, name: ItemName, position: Position) {
        let used = self.used.entry(name.trader).or_default();
        assert!(name.number > used.through, "{name:?} is noted twice");
        used.through = name.number;
        if used.places.len() == PLACES_MAX {
            used.places.pop_front();
        }
        used.places.push_back((name.number, position));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(trader: u32, number: u64) -> ItemName {
        ItemName { trader: TraderId(trader), number }
    }

    #[test]
    fn a_name_is_found_where_it_stands_first() {
        let mut names = ItemNames::default();
        names.note(name(1, 3), Position(10));
        names.note(name(2, 1), Position(11));
        assert_eq!(names.find(name(1, 3)), Some(SubmissionState::At(Position(10))));
        assert_eq!(names.find(name(1, 4)), None);
        assert_eq!(names.find(name(3, 1)), None);
        assert_eq!((names.through(TraderId(1)), names.through(TraderId(3))), (3, 0));
        assert_eq!((names.newest(TraderId(2)), names.newest(TraderId(3))), (Some(Position(11)), None));
    }

    #[test]
    fn a_number_that_was_passed_over_counts_as_used() {
        let mut names = ItemNames::default();
        names.note(name(1, 3), Position(10));
        assert_eq!(names.find(name(1, 2)), Some(SubmissionState::Earlier));
    }

    #[test]
    fn places_are_bounded_and_the_oldest_is_forgotten() {
        let mut names = ItemNames::default();
        (1..=300).for_each(|number| names.note(name(1, number), Position(number)));
        assert_eq!(names.find(name(1, 44)), Some(SubmissionState::Earlier));
        assert_eq!(names.find(name(1, 45)), Some(SubmissionState::At(Position(45))));
        assert_eq!(names.used[&TraderId(1)].places.len(), PLACES_MAX);
    }
}
