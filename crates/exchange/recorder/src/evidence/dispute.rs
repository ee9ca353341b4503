//! A position about which venues said different things, and which venue said what.

use pares_types::{Position, RequestId, VenueId, VenueSet};

use crate::statement::Statement;

/// One of the things said about a position, and who said it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DisputeSide {
    /// What.
    pub statement: Statement,
    /// Who. Empty if only a venue says so that has said something else before.
    pub venues: VenueSet,
}

/// A position about which different things were said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dispute {
    /// The position.
    pub position: Position,
    /// At least two; what was taken comes first.
    pub sides: Vec<DisputeSide>,
    /// Who has said two things.
    pub unsteady: VenueSet,
}

impl Dispute {
    /// Everyone who said something about the position.
    pub(super) fn spoken(&self) -> VenueSet {
        self.sides.iter().fold(self.unsteady, |all, side| all.or(side.venues))
    }

    pub(super) fn request(&self) -> RequestId {
        self.sides.first().expect("a dispute has sides").statement.request
    }

    /// A venue's first statement is its vote; another one makes it wrong whatever is believed.
    pub(super) fn hear(&mut self, venue: VenueId, said: &Statement) {
        let side = self.sides.iter().position(|side| side.statement.agrees(said));
        let side = side.unwrap_or_else(|| {
            self.sides.push(DisputeSide { statement: *said, venues: VenueSet::NONE });
            self.sides.len() - 1
        });
        let elsewhere =
            (0..).zip(&self.sides).any(|(other, all)| other != side && all.venues.contains(venue));
        match elsewhere {
            true => self.unsteady.insert(venue),
            false => self.sides[side].venues.insert(venue),
        }
    }

    pub(super) fn forget(&mut self, venue: VenueId) {
        self.unsteady.remove(venue);
        self.sides.iter_mut().for_each(|side| {
            side.venues.remove(venue);
        });
        self.sides.retain(|side| !side.venues.is_empty());
    }
}
