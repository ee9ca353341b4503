//! When a venue ends, to be rid of a thread that does not come back from the matching engine.
//!
//! Such a thread costs a processor, even if only what is left of it, and perhaps memory without end: it goes only with its
//! process. The same request reached every venue, so all of them have such a thread, and they must not all leave at once: one
//! has to stay and trade. There is no vote about it; each looks at what the others' counters say, which is a hint and enough,
//! for if two should leave together all that is lost is the time of a restart.
//!
//! A venue asks this for each of its shards; the others that execute it are its peers there:
//!
//! | a peer | then |
//! |---|---|
//! | has no such thread, has caught up and all its shards | leave: it stays |
//! | all have one and are whole | the lowest id leaves |
//! | otherwise | wait, but not for ever |

use pares_config::{NodeId, Placement};
use pares_types::{VenueId, VenueSet};

use super::Counter;
use crate::world::World;

/// What is under way first comes to its end.
const LEAST_NS: u64 = 50_000_000;
/// Longer a venue does not wait for others, whatever they say.
const MOST_NS: u64 = 5_000_000_000;
/// Between two looks.
const LOOK_NS: u64 = 5_000_000;

/// What a venue says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Peer {
    /// It can be relied on.
    Stays,
    /// It has all its shards, and a thread to be rid of.
    WantsToLeave(VenueId),
    /// It is not there, or not whole.
    Missing,
}

/// A venue that wants to leave.
pub(super) struct Leaving {
    id: VenueId,
    since_ns: u64,
    look_ns: u64,
    /// Of each of its shards, those who execute the same but for the venue itself.
    peers: Vec<VenueSet>,
}

impl Leaving {
    pub(super) fn new(id: VenueId, placement: &Placement, now_ns: u64) -> Self {
        let mut leaving = Self { id, since_ns: now_ns, look_ns: now_ns, peers: Vec::new() };
        leaving.follow(placement);
        leaving
    }

    /// Which shards it has, and with whom, may change.
    pub(super) fn follow(&mut self, placement: &Placement) {
        let others = |shard| placement.venues_of(shard).without(VenueSet::one(self.id));
        self.peers = placement.shards_of(self.id).map(others).collect();
        self.peers.dedup();
    }

    /// Whether to end now. `is_whole`: the venue has all its shards.
    pub(super) fn is_time<W: World>(&mut self, world: &W, is_whole: bool) -> bool {
        let now_ns = world.mono_ns();
        assert!(now_ns >= self.since_ns, "the clock that a venue leaves by is never set back");
        let waited_ns = now_ns - self.since_ns;
        if waited_ns >= MOST_NS {
            return true;
        }
        if !is_whole || waited_ns < LEAST_NS || now_ns < self.look_ns {
            return false;
        }
        self.look_ns = now_ns + LOOK_NS;
        let may = |peers: &VenueSet| {
            let peers: Vec<Peer> = peers.iter().map(|peer| look(world, peer)).collect();
            may_leave(self.id, &peers)
        };
        self.peers.iter().all(may)
    }
}

fn look<W: World>(world: &W, id: VenueId) -> Peer {
    let name = NodeId::Venue(id).to_string();
    let of = |counter: Counter| world.counter(&name, counter.name()).unwrap_or_default();
    match (of(Counter::Resynced), of(Counter::ShardsAway), of(Counter::Encumbered)) {
        (1, 0, 0) => Peer::Stays,
        (1, 0, _) => Peer::WantsToLeave(id),
        _ => Peer::Missing,
    }
}

fn may_leave(own: VenueId, peers: &[Peer]) -> bool {
    assert!(!peers.contains(&Peer::WantsToLeave(own)), "a venue is none of its own peers");
    let waits_for_me = |peer: &Peer| matches!(peer, Peer::WantsToLeave(id) if *id > own);
    peers.contains(&Peer::Stays) || peers.iter().all(waits_for_me)
}

#[cfg(test)]
mod tests {
    use super::*;

    use pares_config::{LaneConfig, SystemConfig};

    use crate::testing::TestWorld;
    use crate::world::Counters;

    const OWN: VenueId = VenueId(1);
    const BEFORE: Peer = Peer::WantsToLeave(VenueId(0));
    const AFTER: Peer = Peer::WantsToLeave(VenueId(2));

    #[test]
    fn one_leaves_while_another_stays_or_waits_for_it() {
        for (peers, leaves) in [
            (vec![], true),
            (vec![Peer::Stays, Peer::Missing], true),
            (vec![AFTER], true),
            (vec![BEFORE, AFTER], false),
            (vec![Peer::Missing], false),
            (vec![AFTER, Peer::Missing], false),
        ] {
            assert_eq!(may_leave(OWN, &peers), leaves, "{peers:?}");
        }
    }

    #[test]
    fn it_leaves_once_another_stays_in_each_of_its_lanes() {
        let lane = |shards: std::ops::Range<u16>, venues: [u16; 2]| LaneConfig {
            shards: shards.collect(),
            venues: venues.into(),
        };
        let lanes = vec![lane(0..1, [0, 1]), lane(1..9, [1, 2]), lane(9..10, [2, 3])];
        let config = SystemConfig { venues: 4, lanes, ..SystemConfig::default() };
        let world = TestWorld::new();
        let mut leaving = Leaving::new(OWN, &config.placement().unwrap(), world.mono_ns());
        for (stays, leaves) in [("venue-3", false), ("venue-0", false), ("venue-2", true)] {
            let counters = world.create_counters(stays, super::super::COUNTERS).unwrap();
            counters.set(Counter::Resynced, 1);
            world.pass(LEAST_NS);
            assert_eq!(leaving.is_time(&world, true), leaves, "{stays}");
        }
    }
}
