//! Members that come, catch up, and lack what is gone.

use raft::eraftpb::Message;
use raft::{INVALID_ID, ProgressState, SnapshotStatus, StateRole};

use super::Replica;
use crate::journal::Journal;
use crate::members::{Change, MemberId};

/// A learner that lacks no more entries than this votes: what is left comes within moments, also while more is proposed.
const CAUGHT_UP: u64 = 1_024;

impl<J: Journal> Replica<J> {
    pub(super) fn go_towards(&mut self, id: MemberId) {
        if id.number == self.config.id.number {
            return; // this member lives
        }
        if let Some(change) = self.members.towards(id) {
            self.change(change);
        }
    }

    pub(super) fn go_without(&mut self, number: u8) {
        let life = self.members.all().find(|id| id.number == number && number != self.config.id.number);
        if let Some(life) = life {
            self.change(Change::Remove(life));
        }
    }

    /// Lets learners vote that have nearly everything.
    pub(super) fn promote(&mut self) {
        let raft = &self.node.raft;
        let last = raft.raft_log.last_index();
        let has_caught_up = |id: &&MemberId| {
            let progress = raft.prs().get(id.raft_id());
            progress.is_some_and(|progress| progress.recent_active && progress.matched + CAUGHT_UP >= last)
        };
        // One that is new has matched nothing, and a short log is no reason to let it vote.
        let known =
            |id: &&MemberId| raft.prs().get(id.raft_id()).is_some_and(|progress| progress.matched > 0);
        if let Some(&id) = self.members.learners.iter().filter(known).find(has_caught_up) {
            self.change(Change::Vote(id));
        }
    }

    /// Proposes it, if this member leads and no other change is under way.
    fn change(&mut self, change: Change) {
        let raft = &self.node.raft;
        if self.role.leads && !raft.has_pending_conf() && raft.lead_transferee.is_none() {
            // What is refused all the same is proposed again.
            let _ = self.node.propose_conf_change(change.to_bytes().to_vec(), change.to_raft());
        }
    }

    /// A change is committed.
    pub(super) fn carry_out_change(&mut self, change: Change) {
        self.members.apply(change);
        self.has_changed = true;
        let applied = self.node.apply_conf_change(&change.to_raft());
        applied.expect("a change of one member, which was proposed");
        // A delegate before this one may have proposed to remove it.
        let is_removed = change == Change::Remove(self.config.id);
        if is_removed && self.node.raft.state == StateRole::Leader {
            let term = self.node.raft.term;
            self.node.raft.become_follower(term, INVALID_ID);
        }
    }

    /// Whether the delegate says that it has let go of what this member lacks. What the member has already, Raft notices by itself.
    pub(super) fn is_lacking(&mut self, message: &Message) -> bool {
        let (place, raft) = (message.get_snapshot().get_metadata(), &self.node.raft);
        let is_here =
            place.index <= raft.raft_log.committed || raft.raft_log.match_term(place.index, place.term);
        let lacks = message.term >= raft.term && !is_here;
        if lacks {
            self.lacks = Some(place.index);
        }
        lacks || message.term < raft.term
    }

    /// A member that was sent word of what it lacks may have taken a copy since, or missed that word: Raft waits for its answer for ever.
    pub(super) fn look_after_those_who_lack(&mut self) {
        self.looked_ago_ticks += 1;
        if self.node.raft.state != StateRole::Leader || self.looked_ago_ticks < self.config.copy_ticks {
            return;
        }
        self.looked_ago_ticks = 0;
        let waits = |id: &MemberId| {
            let progress = self.node.raft.prs().get(id.raft_id());
            progress.is_some_and(|progress| progress.state == ProgressState::Snapshot)
        };
        for id in self.members.all().filter(waits).collect::<Vec<_>>() {
            self.node.report_snapshot(id.raft_id(), SnapshotStatus::Finish);
        }
    }
}
