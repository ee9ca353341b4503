//! The turn of a change of the schema.
//!
//! A change of the schema commits only if nobody has written to any table since it was tried, and a trial takes longer than a client's pause between two writes. Beside
//! such a client, at any site, it would lose for ever. So one that has lost often announces its turn by an item. A site that has that item refuses transactions that write: they would
//! lose against the change that is about to come. The change's own version deletes the item; so does its site when it gives up. A site that ends
//! before that leaves it, so a turn has an end at each site.

use std::time::{Duration, Instant};

/// The item of the one who has the turn.
pub(super) const TURN: &str = "sql/turn";

/// A turn lasts no longer, from when a site has seen it first.
const TURN_MAX: Duration = Duration::from_secs(10);

/// The last turn that this site has seen.
#[derive(Default)]
pub(super) struct Turn(Option<(Vec<u8>, Instant)>);

impl Turn {
    /// Whether it is the turn of a change of the schema; `item` is the item's value now.
    pub(super) fn is_taken(&mut self, item: Option<&[u8]>, now: Instant) -> bool {
        match (item, &self.0) {
            (None, _) => self.0 = None,
            (Some(item), Some((seen, _))) if item == seen => {}
            (Some(item), _) => self.0 = Some((item.to_vec(), now)),
        }
        self.0.as_ref().is_some_and(|(_, since)| now.duration_since(*since) < TURN_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turn_ends_when_its_item_goes_or_time_is_up() {
        let (mut turn, began) = (Turn::default(), Instant::now());
        assert!(!turn.is_taken(None, began) && turn.is_taken(Some(b"1"), began));
        assert!(turn.is_taken(Some(b"1"), began + TURN_MAX / 2));
        assert!(!turn.is_taken(Some(b"1"), began + TURN_MAX), "its site may have ended");
        assert!(turn.is_taken(Some(b"2"), began + TURN_MAX), "another one");
        assert!(!turn.is_taken(None, began + TURN_MAX));
        assert!(turn.is_taken(Some(b"2"), began + 2 * TURN_MAX));
    }
}
