//! What a venue is executing, where others can see it.
//!
//! An engine that loops for ever cannot be asked where it is, and a process that died of a request (no memory, no stack) left no
//! message. So before each request a venue says which one it begins, in counters that outlive the process. Whoever looks on finds
//! there the request that does not come to its end; a venue that starts and finds that two of its predecessors ended at the same
//! request suspects that request.

use pares_types::{Epoch, Position, ShardId, VenueId};

use crate::world::{Counters, World};
use crate::{NodeError, NodeId};

/// Processes that end at the same request before it is suspected: one may have been killed there by chance.
const DEATHS: u64 = 2;

const NAMES: [&str; 7] =
    ["requests", "shard", "position_plus_1", "died_shard", "died_position_plus_1", "deaths", "epoch"];
const REQUESTS: usize = 0;
const SHARD: usize = 1;
const POSITION: usize = 2;
const DIED_SHARD: usize = 3;
const DIED_POSITION: usize = 4;
const DIED: usize = 5;
const EPOCH: usize = 6;

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
        let is_of_this_life = world.counter(&name, NAMES[EPOCH]) == Some(epoch.0.into());
        let old = |index: usize| match is_of_this_life {
            true => world.counter(&name, NAMES[index]).unwrap_or(0),
            false => 0,
        };
        let (died, known) = ((old(SHARD), old(POSITION)), (old(DIED_SHARD), old(DIED_POSITION)));
        let (place, deaths) = match died {
            (_, 0) => (known, old(DIED)),
            again if again == known => (again, old(DIED) + 1),
            new => (new, 1),
        };
        let marks = world.create_counters(&name, &NAMES).map_err(NodeError::io("making a venue's marks"))?;
        let watch = Self { marks };
        watch.marks.set(EPOCH, epoch.0.into());
        watch.note(place, deaths);
        let suspect = (deaths >= DEATHS).then(|| (shard(place.0), Position(place.1.saturating_sub(1))));
        Ok((watch, suspect))
    }

    fn note(&self, (shard, position_plus_1): (u64, u64), deaths: u64) {
        self.marks.set(DIED_SHARD, shard);
        self.marks.set(DIED_POSITION, position_plus_1);
        self.marks.set(DIED, deaths);
    }

    /// The engine does not come back from there: should this process end before that is void, the next one suspects it.
    pub fn accuse(&self, (shard, position): Place) {
        self.note((shard.0.into(), position.0 + 1), DEATHS);
    }

    /// A request is about to be executed.
    #[inline]
    pub fn begin(&self, shard: ShardId, position: Position) {
        self.marks.set(SHARD, shard.0.into());
        self.marks.set(POSITION, position.0 + 1);
        self.marks.add(REQUESTS, 1);
    }

    /// Nothing is being executed.
    #[inline]
    pub fn end(&self) {
        self.marks.set(POSITION, 0);
    }

    /// What is being executed, and its number among all that were.
    #[must_use]
    pub fn at(&self) -> Option<(u64, Place)> {
        let position = self.marks.get(POSITION).checked_sub(1)?;
        Some((self.marks.get(REQUESTS), (shard(self.marks.get(SHARD)), Position(position))))
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
    fn processes_that_ended_at_different_requests_or_at_none_suspect_nothing() {
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
    fn what_a_process_accused_before_it_ended_is_suspected_by_the_next() {
        let world = TestWorld::new();
        watch(&world, 3).0.accuse(PLACE);
        assert_eq!(watch(&world, 3).1, Some(PLACE));
        assert_eq!(watch(&world, 3).1, Some(PLACE));
    }

    #[test]
    fn what_was_suspected_in_an_earlier_life_of_the_windows_is_not_any_more() {
        let world = TestWorld::new();
        watch(&world, 3).0.accuse(PLACE);
        assert_eq!(watch(&world, 4).1, None);
        assert_eq!(watch(&world, 3).1, None);
    }
}
