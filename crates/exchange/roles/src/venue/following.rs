//! A venue follows the placement: shards come to it and leave it while the others trade.
//!
//! One that comes is restored beside the turns, as after a failure of the engine (`rebuild`), from the newest checkpoint and the record, and takes
//! its seat once it has joined. One
//! that leaves goes with all that stands at its seat; what was handed out of it stays in the log.

use std::collections::BTreeMap;

use pares_config::{Placement, SystemConfig};
use pares_recorder::Quorum;
use pares_types::{Position, ShardId, VenueId};

use super::requests::ELSEWHERE;
use super::restore::away;
use super::{COUNTERS, Counter, VenueNode, seat_of};
use crate::NodeError;
use crate::world::{Counters, World};

impl<W: World> VenueNode<W> {
    /// What it follows.
    #[must_use]
    pub fn placement(&self) -> &Placement {
        &self.placement
    }

    /// Follows the file, if it says something else now. Between two steps of shards.
    pub(super) fn follow_lanes(&mut self) -> Result<(), NodeError> {
        let Some(placement) = self.lanes.look(&self.world) else { return Ok(()) };
        assert!(placement.number() > self.placement.number(), "a venue follows placements in their order");
        let before: Vec<ShardId> = self.seats.iter().map(|seat| seat.id).collect();
        if !placement.shards_of(self.id).eq(before.iter().copied()) {
            self.reseat(&placement)?;
        }
        if let Some(leaving) = &mut self.leaving {
            leaving.follow(&placement);
        }
        let reach = self.committed.reach();
        self.checkpointing.follow(self.id, &placement, (&before, &self.seats), (reach, &self.out));
        self.placement = placement;
        Ok(())
    }

    fn reseat(&mut self, placement: &Placement) -> Result<(), NodeError> {
        let mut old: BTreeMap<ShardId, _> = self.seats.drain(..).map(|seat| (seat.id, seat)).collect();
        for (rank, (shard, instruments)) in self.config.shards()?.into_iter().enumerate() {
            if placement.executes(self.id, shard) {
                // What is recorded by then counts once it is here.
                let unknown = (Position(u64::MAX), false);
                let coming = || away(&self.world, &self.config, (rank, shard, instruments), unknown);
                self.seats.push(old.remove(&shard).unwrap_or_else(coming));
            }
        }
        assert!(self.seats.is_sorted_by_key(|seat| seat.id), "seats are in the order of their shards");
        old.values().for_each(|seat| self.out.counters.set(COUNTERS.len() + seat.rank, 0));
        self.known = known_elsewhere(placement, self.id);
        self.requests.follow(&self.known);
        // Marks of the log have a position for each seat.
        self.release.clear();
        self.show_away();
        Ok(())
    }

    /// Shows the number of the placement that it follows, once it has restored every shard that the placement gives it.
    pub(super) fn say_placement(&mut self) {
        let number = self.placement.number();
        if self.said == Some(number) {
            return;
        }
        assert!(self.said.is_none_or(|said| said < number), "a venue says placements in their order");
        let has_come = |shard| {
            let index = seat_of(&self.seats, shard)?;
            let seat = &self.seats[index];
            Some(match &seat.rebuild {
                Some(rebuild) => {
                    let is_reached = |quorum: &Quorum| self.committed.is_reached_by(shard, quorum);
                    self.placement.seats(shard).is_restored_by(self.id) && rebuild.is_at(is_reached)
                }
                None => seat.reached >= seat.resynced_at,
            })
        };
        if self.placement.moving().all(|shard| has_come(shard).unwrap_or(true)) {
            self.said = Some(number);
            self.out.counters.set(Counter::Lanes, number);
        }
    }

    /// What was said of a shard that moves is true no more: it is restored.
    pub(super) fn unsay_placement(&mut self, shard: ShardId) {
        if self.placement.moving().any(|moving| moving == shard) {
            self.said = None;
            self.out.counters.set(Counter::Lanes, 0);
        }
    }
}

/// By shard id: of what others execute this venue has all that it needs.
pub(super) fn known_elsewhere(placement: &Placement, id: VenueId) -> Vec<Position> {
    let mut known = Vec::new();
    for shard in placement.shards_without(id) {
        known.resize(usize::from(shard.0) + 1, Position(0));
        known[usize::from(shard.0)] = ELSEWHERE;
    }
    known
}

/// The names of a venue's counters: a position for each shard of the system, whichever venue executes it.
pub(super) fn counter_names(config: &SystemConfig) -> Result<Vec<String>, NodeError> {
    let positions = config.shards()?.into_keys().map(|shard| format!("position-{shard}"));
    Ok(COUNTERS.iter().map(|&name| name.to_owned()).chain(positions).collect())
}
