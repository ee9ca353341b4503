//! What a venue says about a position.

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_compared_where_both_took_one() {
        let said = Statement { request: RequestId::NONE, content: 7, state_hash: Some(1) };
        assert!(said.agrees(&Statement { state_hash: None, ..said }));
        assert!(!said.agrees(&Statement { state_hash: Some(2), ..said }));
        assert!(!said.agrees(&Statement { content: 8, ..said }));
    }
}
