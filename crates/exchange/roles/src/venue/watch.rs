//! What a venue is executing, where others can see it.
//!
//! An engine that loops for ever cannot be asked where it is, and a process that died of a request (no memory, no stack) left no
//! message. So before each request a venue says which one it begins, in counters that outlive the process. The thread that looks on finds
//! there the request that does not come to its end; a venue that starts and finds that two of its predecessors ended at the same
//! request suspects that request.

use pares_config::NodeId;
use pares_types::{Epoch, Position, ShardId, VenueId};

use crate::NodeError;
use crate::counters::counters;
use crate::world::{Counters, World};

/// Processes that end at the same request before it is suspected: one may have been killed there by chance.
const DEATHS: u64 = 2;

counters! {
    Requests "requests" "Requests begun."
    Shard "shard" "The shard of the request being executed."
    Position "position_plus_1" "Its position, and 1; 0 if none is being executed."
    DiedShard "died_shard" "The shard of the request that the last processes ended at."
    DiedPosition "died_position_plus_1" "Its position, and 1; 0 if there is none."
    Deaths "deaths" "How many of them ended there."
    Epoch "epoch" "The life of the windows that this is of."
}

/// What a venue's turns are at. Written by the thread that takes the turns, in counters that outlive the process.
pub struct Watch<W: World> {
    marks: W::Counters,
}

/// A place in a shard's total order.
pub type Place = (ShardId, Position);

impl<W: World> Watch<W> {
    /// Opens a venue's marks in this life of the windows: what stood at a position in an earlier one may be another
    /// request now. Gives the request that its last processes died of, if they did.
    ///
    /// # Errors
    /// If the marks cannot be made.
    pub fn open(world: &W, venue: VenueId, epoch: Epoch) -> Result<(Self, Option<Place>), NodeError> {
        let name = format!("{}.marks", NodeId::Venue(venue));
        let is_of_this_life = world.counter(&name, Counter::Epoch.name()) == Some(epoch.0.into());
        let old = |counter: Counter| match is_of_this_life {
            true => world.counter(&name, counter.name()).unwrap_or(0),
            false => 0,
        };
        let (died, known) = (
            (old(Counter::Shard), old(Counter::Position)),
            (old(Counter::DiedShard), old(Counter::DiedPosition)),
        );
        let (place, deaths) = match died {
            (_, 0) => (known, old(Counter::Deaths)),
            again if again == known => (again, old(Counter::Deaths) + 1),
            new => (new, 1),
        };
        let marks =
            world.create_counters(&name, COUNTERS).map_err(NodeError::io("making a venue's marks"))?;
        let watch = Self { marks };
        watch.marks.set(Counter::Epoch, epoch.0.into());
        watch.note(place, deaths);
        let suspect = (deaths >= DEATHS).then(|| (shard(place.0), Position(place.1.saturating_sub(1))));
        Ok((watch, suspect))
    }

    fn note(&self, (shard, position_plus_1): (u64, u64), deaths: u64) {
        self.marks.set(Counter::DiedShard, shard);
        self.marks.set(Counter::DiedPosition, position_plus_1);
        self.marks.set(Counter::Deaths, deaths);
    }

    /// The engine does not come back from there: should this process end before that is void, the next one suspects it.
    pub fn accuse(&self, (shard, position): Place) {
        self.note((shard.0.into(), position.0 + 1), DEATHS);
    }

    /// A request is about to be executed.
    #[inline]
    pub fn begin(&self, shard: ShardId, position: Position) {
        self.marks.set(Counter::Shard, shard.0.into());
        self.marks.set(Counter::Position, position.0 + 1);
        self.marks.add(Counter::Requests, 1);
    }

    /// Nothing is being executed.
    #[inline]
    pub fn end(&self) {
        self.marks.set(Counter::Position, 0);
    }

    /// How many requests were begun.
    #[must_use]
    pub fn begun(&self) -> u64 {
        self.marks.get(Counter::Requests)
    }

    /// What is being executed, and its number among all that were.
    #[must_use]
    pub fn at(&self) -> Option<(u64, Place)> {
        let position = self.marks.get(Counter::Position).checked_sub(1)?;
        Some((self.begun(), (shard(self.marks.get(Counter::Shard)), Position(position))))
    }

    /// What is being executed.
    #[must_use]
    pub fn place(&self) -> Option<Place> {
        self.at().map(|(_, place)| place)
    }
}

fn shard(mark: u64) -> ShardId {
    ShardId(u16::try_from(mark).unwrap_or(u16::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TestWorld;

    const PLACE: Place = (ShardId(3), Position(7));

    fn watch(world: &TestWorld, epoch: u32) -> (Watch<TestWorld>, Option<Place>) {
        Watch::open(world, VenueId(0), Epoch(epoch)).unwrap()
    }

    #[test]
    fn a_request_is_suspected_once_two_processes_ended_at_it() {
        let world = TestWorld::new();
        for expected in [None, None, Some(PLACE), Some(PLACE)] {
            let (watch, suspect) = watch(&world, 3);
            assert_eq!(suspect, expected);
            watch.begin(PLACE.0, PLACE.1);
        }
    }

    #[test]
    fn ends_at_different_requests_suspect_nothing() {
        let world = TestWorld::new();
        for position in [Some(1), Some(2), Some(1), None, None, Some(5), None, Some(1), None] {
            let (watch, suspect) = watch(&world, 3);
            assert_eq!(suspect, None);
            if let Some(position) = position {
                watch.begin(ShardId(0), Position(position));
            }
        }
    }

    #[test]
    fn accusation_before_end_is_suspected_next() {
        let world = TestWorld::new();
        watch(&world, 3).0.accuse(PLACE);
        assert_eq!(watch(&world, 3).1, Some(PLACE));
        assert_eq!(watch(&world, 3).1, Some(PLACE));
    }

    #[test]
    fn suspicion_of_earlier_window_life_is_dropped() {
        let world = TestWorld::new();
        watch(&world, 3).0.accuse(PLACE);
        assert_eq!(watch(&world, 4).1, None);
        assert_eq!(watch(&world, 3).1, None);
    }
}
