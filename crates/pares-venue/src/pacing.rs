//! When to take a checkpoint, and of which shard.
//!
//! A joining venue replays what lies behind the newest checkpoint of *every* shard, so one quiet shard whose
//! checkpoint is old makes everybody replay the busy ones from there. A fixed interval per shard has just
//! that flaw. So the interval counts positions over all shards, and each time it is over the
//! shard whose checkpoint is oldest gets a new one.
//!
//! A checkpoint is taken by a venue that is behind, so that the one ahead is never disturbed (design section
//! 4). When nobody is behind and one is overdue, it is taken by whoever's turn it is.

use pares_types::VenueId;

/// The pace of checkpoints at one venue. Counts are positions over all shards: equal on every venue that
/// has executed the same.
#[derive(Clone, Debug)]
pub struct Pacing {
    every: u64,
    venue: u64,
    venues: u64,
    /// Per shard, in the caller's order: how far into the committed stream its newest checkpoint reaches.
    covered: Vec<u64>,
    /// The count when any checkpoint was last taken or stored.
    newest: u64,
    /// The interval last considered.
    considered: u64,
}

impl Pacing {
    /// Checkpoints every `every` positions, for so many shards.
    ///
    /// # Panics
    /// If there are no shards, no venues or no interval.
    #[must_use]
    pub fn new(every: u64, venue: VenueId, venues: u16, shards: usize) -> Self {
        assert!(every > 0 && venues > 0 && shards > 0, "checkpoints need an interval, venues and shards");
        Self {
            every,
            venue: venue.0.into(),
            venues: venues.into(),
            covered: vec![0; shards],
            newest: 0,
            considered: 0,
        }
    }

    /// There is a checkpoint of the shard at that index, which makes the committed stream before `reach` (bytes,
    /// say) superfluous for it; it was taken, stored or found when the count was `count`.
    pub fn on_checkpoint(&mut self, shard: usize, reach: u64, count: u64) {
        self.covered[shard] = self.covered[shard].max(reach);
        self.newest = self.newest.max(count);
    }

    /// The shard to take a checkpoint of now, if any. `count` is the positions executed over all shards, and
    /// `behind` says whether others have recorded positions this venue has not executed.
    pub fn due(&mut self, count: u64, behind: bool) -> Option<usize> {
        let interval = count / self.every;
        if interval == self.considered {
            return None;
        }
        self.considered = interval;
        let turn = interval % self.venues == self.venue;
        let overdue = count.saturating_sub(self.newest) >= 2 * self.every;
        if !(behind || turn && overdue) {
            return None;
        }
        (0..self.covered.len()).min_by_key(|&shard| self.covered[shard])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pacing(venue: u16) -> Pacing {
        Pacing::new(100, VenueId(venue), 2, 3)
    }

    #[test]
    fn a_venue_that_is_behind_takes_the_oldest_shard_once_per_interval() {
        let mut pacing = pacing(0);
        pacing.on_checkpoint(0, 50, 50);
        assert_eq!(pacing.due(99, true), None);
        assert_eq!(pacing.due(100, true), Some(1));
        assert_eq!(pacing.due(101, true), None);
    }

    #[test]
    fn a_venue_that_leads_leaves_it_to_the_others() {
        assert_eq!(pacing(1).due(100, false), None);
    }

    #[test]
    fn when_nobody_is_behind_they_take_turns() {
        let (mut a, mut b) = (pacing(0), pacing(1));
        assert_eq!((a.due(200, false), b.due(200, false)), (Some(0), None));
        a.on_checkpoint(0, 9_000, 200);
        b.on_checkpoint(0, 9_000, 200);
        assert_eq!((a.due(300, false), b.due(300, false)), (None, None));
        assert_eq!((a.due(400, false), b.due(400, false)), (Some(1), None));
        a.on_checkpoint(1, 9_400, 400);
        b.on_checkpoint(1, 9_400, 400);
        assert_eq!((a.due(700, false), b.due(700, false)), (None, Some(2)));
    }
}
