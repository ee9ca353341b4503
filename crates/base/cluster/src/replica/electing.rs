//! When a member stands for election.
//!
//! A delegate that says nothing may be slow, so silence is waited out, for a time that is drawn each time. A delegate whose connection has ended is most likely dead, and its
//! place is taken at once. It is safe for the reason for which every election is: a vote is durable, one a term. It is calm because it is asked for first: who still
//! hears the delegate says no, so a connection that ends though both ends live changes nothing.
//!
//! Who has committed entries left to hand out does not stand before it has done so: its owner could not certify yet, and another's may.
//!
//! Members draw no time there. All who lost the delegate did so at one moment, so they stand one after the other, by their numbers, far enough apart for an election between two.

use raft::StateRole;

use super::{Replica, number};
use crate::journal::Journal;

/// Ticks between two members that stand for election because their delegate is gone: an election, two syncs among it, takes less on most disks. If not, no member is elected that time.
const APART_TICKS: u64 = 3;
/// So often a member stands so before it draws its times again.
const HURRIES_MAX: u32 = 3;

impl<J: Journal> Replica<J> {
    /// What raft-rs does when its own timeout passes.
    pub(super) fn stand_for_election(&mut self) {
        if self.patience_ticks.1 != self.node.raft.term {
            self.hurries = 0;
            self.draw_patience();
        }
        let raft = &mut self.node.raft;
        let has_all_out = raft.raft_log.committed == self.handed.0;
        let stands = has_all_out && raft.promotable() && raft.state != StateRole::Leader;
        if stands && raft.election_elapsed as u64 >= self.patience_ticks.0 {
            raft.election_elapsed = 0;
            self.node.campaign().expect("a member may always stand for election");
            self.be_patient();
        }
    }

    /// The connection to a member has ended.
    pub(super) fn lose(&mut self, member: u8) {
        let raft = &mut self.node.raft;
        if raft.state != StateRole::Follower || number(raft.leader_id) != Some(member) {
            return;
        }
        // Others may have this member's vote as if it had waited for long.
        let elapsed = raft.election_elapsed.max(raft.election_timeout());
        raft.election_elapsed = elapsed;
        let (voters, own) = (self.votes_besides(member), self.config.id.number);
        let before = voters.iter().filter(|other| **other < own).count() as u64;
        self.hurries = HURRIES_MAX;
        // Not before the next tick: others may be about to hear that the delegate is gone.
        self.patience_ticks = (elapsed as u64 + 1 + before * APART_TICKS, self.node.raft.term);
    }

    /// The owner's work stalls. Whom others refused stands once more when it is called again: they may be impatient by now.
    pub(super) fn hurry(&mut self) {
        let raft = &mut self.node.raft;
        let elapsed = raft.election_elapsed.max(raft.election_timeout());
        if raft.state != StateRole::Leader {
            raft.election_elapsed = elapsed;
            self.patience_ticks = (elapsed as u64, raft.term);
            self.stand_for_election();
        }
    }

    fn votes_besides(&self, member: u8) -> Vec<u8> {
        let voters = self.members.voters.iter().map(|id| id.number);
        voters.filter(|other| *other != member).collect()
    }

    /// After it has stood: when it does so next.
    fn be_patient(&mut self) {
        // It may lead by now: a member alone does.
        let is_led = self.node.raft.leader_id != 0;
        if is_led || self.hurries == 0 {
            self.hurries = 0;
            return self.draw_patience();
        }
        self.hurries -= 1;
        let round = APART_TICKS * self.members.voters.len() as u64;
        self.patience_ticks = (round, self.node.raft.term);
    }

    pub(super) fn draw_patience(&mut self) {
        let range = &self.config.election_ticks;
        let extra = self.random.next_u64() % u64::from(range.end - range.start);
        self.patience_ticks = (u64::from(range.start) + extra, self.node.raft.term);
    }
}
