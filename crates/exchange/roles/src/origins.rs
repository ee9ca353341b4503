//! Connections that share a number of places, by the network that each comes from.
//!
//! Where the oldest connection makes room, a client that connects fast enough has all places; where no one does, a client that stays has them.
//! So the network that has most makes room for one that has at least two fewer, at once. Otherwise the oldest connection of its own network does once it had its time, or the oldest of all for one that has none.

use pares_table::{Origin, SharedPlaces};
use std::collections::BTreeSet;

/// The connections, each by its origin, since when it is there, and its slot.
#[derive(Debug, Default)]
pub struct ConnectionsByOrigin {
    by_time: BTreeSet<(u64, usize)>,
    by_origin: BTreeSet<(Origin, u64, usize)>,
    shares: SharedPlaces<Origin>,
}

impl ConnectionsByOrigin {
    /// How many there are.
    #[must_use]
    pub fn count_all(&self) -> usize {
        self.by_time.len()
    }

    /// How many there are of that origin.
    #[must_use]
    pub fn count(&self, origin: Origin) -> usize {
        self.shares.count(origin)
    }

    /// A connection came at `since_ns`.
    ///
    /// # Panics
    /// If it is there already.
    pub fn insert(&mut self, origin: Origin, since_ns: u64, slot: usize) {
        let is_new = self.by_time.insert((since_ns, slot)) && self.by_origin.insert((origin, since_ns, slot));
        assert!(is_new, "a connection comes once");
        self.shares.add(origin);
    }

    /// The connection goes. Says whether it was there.
    pub fn remove(&mut self, origin: Origin, since_ns: u64, slot: usize) -> bool {
        let was_there = self.by_origin.remove(&(origin, since_ns, slot));
        if was_there {
            self.by_time.remove(&(since_ns, slot));
            self.shares.remove(origin);
        }
        was_there
    }

    /// The slot of the connection that makes room for one more of that origin: the oldest of the origin with most, if that has at least two more; else the
    /// oldest of the same origin, or of all if that has none, if it came before `before_ns`.
    #[must_use]
    pub fn giver(&self, origin: Origin, before_ns: u64) -> Option<usize> {
        let giver = self.shares.giver(origin);
        let oldest = match giver {
            Some(of) => {
                let others = self.by_origin.range((of, 0, 0)..).next();
                others.filter(|one| one.0 == of).map(|&(_, since_ns, slot)| (since_ns, slot))
            }
            None => self.by_time.first().copied(),
        };
        let has_more = giver.is_some_and(|of| of != origin);
        oldest.filter(|(since_ns, _)| has_more || *since_ns < before_ns).map(|(_, slot)| slot)
    }
}

#[cfg(test)]
mod tests {
    use pares_table::origin;

    use super::*;

    fn of(text: &str) -> Origin {
        origin(text.parse().unwrap(), [10, 0, 0, 5].into())
    }

    #[test]
    fn network_with_most_connections_makes_room_at_once() {
        let (many, few) = (of("192.0.2.1"), of("192.0.2.2"));
        let mut connections = ConnectionsByOrigin::default();
        (0..8).for_each(|slot| connections.insert(many, 100 + slot as u64, slot));
        connections.insert(few, 1, 8);
        assert_eq!(connections.giver(few, 0), Some(0), "the oldest of those that have most");
        assert_eq!(connections.giver(None, 0), Some(0));
        assert_eq!(
            (connections.giver(many, 100), connections.giver(many, 101)),
            (None, Some(0)),
            "its own, in time"
        );
        assert!(connections.remove(many, 100, 0) && !connections.remove(many, 100, 0));
        assert_eq!((connections.giver(few, 0), connections.count_all()), (Some(1), 8));
        assert_eq!([many, few, None].map(|of| connections.count(of)), [7, 1, 0]);
    }

    #[test]
    fn of_one_each_the_oldest_goes_in_time() {
        let mut connections = ConnectionsByOrigin::default();
        ["192.0.2.1", "192.0.2.2"]
            .into_iter()
            .zip(0..)
            .for_each(|(from, slot)| connections.insert(of(from), 5, slot));
        assert_eq!((connections.giver(None, 5), connections.giver(None, 6)), (None, Some(0)));
    }
}
