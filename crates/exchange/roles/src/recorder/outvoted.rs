//! What a recorder does about a venue that is found wrong: shut it out, here and for every shard.

use pares_config::NodeId;
use pares_log::Offset;
use pares_recorder::{Disputed, Finding};
use pares_types::{Position, ShardId, VenueId};

use super::gate::Seen;
use super::{Counter, RecorderNode};
use crate::inlet::LogCursor;
use crate::shut_out;
use crate::world::{Counters, World};

impl<W: World> RecorderNode<W> {
    /// Shuts out whom the last record has shown to be wrong.
    pub(super) fn act_on_findings(&mut self) {
        let findings = self
            .shards
            .iter_mut()
            .filter_map(|(&shard, record)| record.acceptance.take_finding().map(|finding| (shard, finding)));
        for (shard, finding) in findings.collect::<Vec<_>>() {
            for venue in finding.outvoted.iter() {
                self.shut_out(venue, Some((shard, &finding)));
            }
        }
    }

    /// What other recorders have found, and whom the operator has readmitted.
    pub(super) fn look_for_notes(&mut self) {
        for seen in self.gate.look() {
            match seen {
                Seen::ShutOut(venue) => self.shut_out(venue, None),
                Seen::Readmitted(venue) => self.readmit(venue),
            }
        }
    }

    /// Takes nothing more of a venue. Whatever it may have spoilt goes: checkpoints of every shard that are newer than
    /// the last position at which it was right there. It need not have made them itself, a venue that started from one of its
    /// is as wrong; and a wrong venue is found in one shard and may be wrong in all that it executes.
    fn shut_out(&mut self, venue: VenueId, finding: Option<(ShardId, &Finding)>) {
        if !self.gate.is_in(venue) {
            return;
        }
        let shards = self.shards.iter_mut();
        let disputed: Vec<(ShardId, Disputed)> =
            shards.map(|(&shard, record)| (shard, record.acceptance.shut_out(venue))).collect();
        if self.gate.is_noted(venue) {
            self.gate.shut_out(venue, None);
        } else {
            let its = self.may_be_spoilt_by(venue);
            self.gate.shut_out(venue, Some(self.gate.note((venue, &its), finding, &disputed)));
            let trusted = |disputed: &Disputed| disputed.agreed.map_or(Position(0), Position::next);
            let above = disputed.iter().filter(|(shard, _)| its.contains(shard));
            let above = above.map(|(shard, disputed)| (*shard, trusted(disputed)));
            self.intake.distrust(venue, above.collect());
            // Some may be gone soon: the next look finds what is left.
            let its = self.shards.iter_mut().filter(|(shard, _)| its.contains(shard));
            its.for_each(|(_, record)| record.is_held = false);
            self.counters.add(Counter::Disputed, disputed.iter().map(|(_, disputed)| disputed.count).sum());
        }
        assert!(!self.gate.is_in(venue), "nothing more is taken of a venue that is shut out");
        self.counters.set(Counter::ShutOutVenues, self.gate.shut_out_len());
    }

    /// The shards that a wrong venue executes or executed, and those that it executed when another recorder found it.
    fn may_be_spoilt_by(&self, venue: VenueId) -> Vec<ShardId> {
        let noted = shut_out::shards_of(&self.world, venue);
        let all = self.shards.iter();
        let its = all.filter(|(shard, record)| record.acceptance.had_vote(venue) || noted.contains(&shard.0));
        let its: Vec<ShardId> = its.map(|(&shard, _)| shard).collect();
        assert!(!its.is_empty(), "a venue executes a shard");
        its
    }

    /// Takes from a venue again, from the beginning of the log it has now.
    fn readmit(&mut self, venue: VenueId) {
        assert!(self.gate.is_in(venue), "the gate has let a readmitted venue in");
        self.shards.values_mut().for_each(|record| record.acceptance.readmit(venue));
        self.heard[usize::from(venue.0)] = Offset::START;
        self.venues[usize::from(venue.0)] = LogCursor::new(&self.world, NodeId::Venue(venue), Offset::START);
        self.counters.set(Counter::ShutOutVenues, self.gate.shut_out_len());
    }
}
