//! A recorder follows the placement: whose statements count in which shard.

use pares_config::{NodeId, Placement};
use pares_log::Offset;
use pares_types::{ShardId, VenueId, VenueSet, Voters};

use super::{Counter, RecorderNode};
use crate::inlet::LogCursor;
use crate::world::{Counters, World};

impl<W: World> RecorderNode<W> {
    /// Follows the file, and says so.
    pub(super) fn follow_lanes(&mut self) {
        if let Some(placement) = self.lanes.look(&self.world) {
            self.reseat(placement);
        }
        // A dispute in which those have spoken who are about to lose their vote would never be settled without it.
        if !self.placement.moving().any(|shard| self.is_in_dispute(shard)) {
            self.counters.set(Counter::Lanes, self.placement.number());
        }
    }

    fn reseat(&mut self, placement: Placement) {
        let mut coming = VenueSet::NONE;
        for (&shard, record) in &mut self.shards {
            let (old, new) = (record.acceptance.voters(), placement.seats(shard).voters());
            if old == new {
                continue;
            }
            coming = coming.or(new.all().without(old.all()));
            old.all().without(new.all()).iter().for_each(|venue| self.intake.forget((venue, shard)));
            record.acceptance.reseat(new);
        }
        coming.iter().for_each(|venue| self.hear_again(venue));
        self.placement = placement;
        self.judge_again();
    }

    /// What a venue said before it had a vote was skipped, and may be all that the others leave behind. Checkpoints among it are not put
    /// together a second time: they may be large.
    fn hear_again(&mut self, venue: VenueId) {
        let (log, heard) = (&mut self.venues[usize::from(venue.0)], &mut self.heard[usize::from(venue.0)]);
        *heard = (*heard).max(log.tail.offset());
        *log = LogCursor::new(&self.world, NodeId::Venue(venue), Offset::START);
    }

    /// Open disputes by who has a vote now. Each finding may settle or end others.
    fn judge_again(&mut self) {
        loop {
            for (shard, record) in &mut self.shards {
                let was_halted = record.acceptance.divergence().is_some();
                record.acceptance.judge_again();
                if let Some(divergence) = record.acceptance.divergence().filter(|_| !was_halted) {
                    self.gate.complain(&format_args!("shard {shard} is halted: {divergence:?}"));
                }
            }
            if !self.shards.values().any(|record| record.acceptance.has_finding()) {
                return;
            }
            self.act_on_findings();
        }
    }

    /// Whether venues differ in the shard and it is not settled which is wrong.
    #[must_use]
    pub fn is_in_dispute(&self, shard: ShardId) -> bool {
        self.shards.get(&shard).is_some_and(|record| record.acceptance.is_in_dispute())
    }

    /// Who has a vote in each shard.
    pub fn voters(&self) -> impl Iterator<Item = (ShardId, Voters)> {
        self.shards.iter().map(|(&shard, record)| (shard, record.acceptance.voters()))
    }
}
