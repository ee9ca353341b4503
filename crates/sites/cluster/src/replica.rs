//! The real cluster log: raft-rs over a journal.
//!
//! raft-rs decides and does nothing else: it says what to persist, what to send and what is committed, and which of these
//! must wait for which. One [`cycle`](ClusterLog::cycle) carries out one such batch:
//!
//! ```text
//!   proposals of this cycle       few messages, whatever their number
//!   messages of a delegate        go out before its own sync, so that all disks work at once (Raft thesis, 10.2.1)
//!   records                       appended; synced once, if the batch has more than a commit index
//!   messages of the others        votes and acknowledgements: only now
//!   committed entries             those the sync has just completed included
//! ```
//! Randomness is ours, not raft-rs's (it asks the operating system, and no run could be repeated): raft-rs is
//! configured with an election timeout that never comes, and ours tells it to stand for election.

mod writing;

use raft::eraftpb::{Entry, HardState, Message, MessageType};
use raft::{RawNode, StateRole, Storage as _};

use crate::config::ReplicaConfig;
use crate::error::{LogError, MessageError, ProposeError, ReplicaError, SnapshotError};
use crate::journal::Journal;
use crate::log::{ClusterLog, Role, SNAPSHOT_BYTES_MAX, Sink};
use crate::record::{HEAD_BYTES, Owner};
use crate::recover::{Recovered, recover};
use crate::store::{Store, member, raft_id};
use crate::wire;

/// The election timeout that raft-rs draws, always.
const NEVER: usize = 1 << 40;

/// One member of a cluster.
pub struct Replica<J> {
    node: RawNode<Store>,
    journal: J,
    owner: Owner,
    config: ReplicaConfig,
    random: u64,
    /// Ticks without a word from a delegate after which this member stands for election, and the term it was drawn in.
    patience_ticks: (u64, u64),
    role: Role,
    /// Place and term of the last entry handed out.
    handed: (u64, u64),
    /// To be proposed in the next cycle.
    proposals: Vec<Entry>,
    /// Bytes proposed while leading and not handed out yet.
    backlog_bytes: usize,
    /// A state found at opening, to be handed out.
    restored: Option<Vec<u8>>,
    /// Compact up to here in the next cycle.
    compact_to: u64,
    /// Ticks that a member has been waited for since the state was sent to it; by member.
    sent_ago_ticks: Vec<u32>,
    failure: Option<LogError>,
}

impl<J: Journal> Replica<J> {
    /// Opens the log in `journal`, or begins one.
    ///
    /// # Errors
    /// [`ReplicaError`]; nothing was written.
    pub fn open(mut journal: J, config: &ReplicaConfig) -> Result<Replica<J>, ReplicaError> {
        config.check()?;
        let Recovered { store, restored } = recover(&mut journal, config)?;
        let owner = Owner { member: config.member, members: config.members };
        let place = if restored.is_some() { store.base_index } else { config.applied };
        let handed = (place, store.term(place).expect("recovery checked the place"));
        let logger = slog::Logger::root(slog::Discard, slog::o!());
        let node = RawNode::new(&raft_config(config, place), store, &logger);
        let mut replica = Replica {
            node: node.map_err(|_| ReplicaError::Config { what: "raft-rs refuses it" })?,
            journal,
            owner,
            config: config.clone(),
            random: config.seed,
            patience_ticks: (0, 0),
            role: Role::default(),
            handed,
            proposals: Vec::new(),
            backlog_bytes: 0,
            restored,
            compact_to: 0,
            sent_ago_ticks: vec![0; config.members.into()],
            failure: None,
        };
        replica.draw_patience();
        if config.members == 1 {
            replica.node.campaign().expect("a member may always stand for election");
        }
        Ok(replica)
    }

    /// Places of the entries held: those after the first number, up to the second.
    #[must_use]
    pub fn held(&self) -> (u64, u64) {
        (self.node.store().base_index, self.node.raft.raft_log.last_index())
    }

    /// Place and term of the last entry handed out, or skipped because it is the log's own.
    #[must_use]
    pub fn handed_out(&self) -> (u64, u64) {
        self.handed
    }
}

fn raft_config(config: &ReplicaConfig, applied: u64) -> raft::Config {
    raft::Config {
        id: raft_id(config.member),
        election_tick: config.election_ticks.start as usize,
        min_election_tick: NEVER,
        max_election_tick: NEVER + 1,
        heartbeat_tick: config.heartbeat_ticks as usize,
        applied,
        max_size_per_msg: config.message_bytes_max.into(),
        max_inflight_msgs: config.inflight_max.into(),
        check_quorum: true,
        pre_vote: true,
        ..raft::Config::default()
    }
}

/// The next of a sequence of numbers that look random (splitmix64).
fn next_random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl<J: Journal> ClusterLog for Replica<J> {
    fn tick(&mut self) {
        self.node.tick();
        self.stand_for_election();
        self.resend_states();
    }

    fn receive(&mut self, from: u8, message: &[u8]) -> Result<(), MessageError> {
        let message = wire::decode(from, self.owner.member, &self.node.store().voters, message)?;
        let last = self.node.raft.raft_log.last_index();
        let heartbeat = message.msg_type == MessageType::MsgHeartbeat && message.term >= self.node.raft.term;
        if heartbeat && message.commit > last {
            self.failure.get_or_insert(LogError::Forgotten { commit: message.commit, last });
        }
        if self.failure.is_none() {
            // What raft-rs refuses is stale or of no use to it; the sender repeats what matters.
            let _ = self.node.step(message);
        }
        Ok(())
    }

    fn propose(&mut self, payload: &[u8]) -> Result<(), ProposeError> {
        if !self.may_propose() {
            let delegate = member(self.node.raft.leader_id);
            return Err(ProposeError::NotDelegate { delegate });
        }
        let max = self.journal.record_bytes_max() - HEAD_BYTES;
        match payload.len() {
            _ if self.node.raft.lead_transferee.is_some() => Err(ProposeError::Resigning),
            0 => Err(ProposeError::Empty),
            len if len > max => Err(ProposeError::TooLarge { len, max }),
            len if self.backlog_bytes > 0 && self.backlog_bytes + len > self.config.backlog_bytes_max => {
                Err(ProposeError::Backlog { bytes: self.backlog_bytes })
            }
            len => {
                self.backlog_bytes += len;
                self.proposals.push(Entry { data: payload.to_vec().into(), ..Entry::default() });
                Ok(())
            }
        }
    }

    fn cycle(&mut self, out: &mut (impl Sink + ?Sized)) -> Result<(), LogError> {
        if self.failure.is_none() {
            self.failure = self.try_cycle(out).err();
        }
        self.failure.clone().map_or(Ok(()), Err)
    }

    fn pending(&self) -> bool {
        let raft = self.node.has_ready() || !self.proposals.is_empty() || self.restored.is_some();
        raft || self.compact_to > self.node.store().base_index
            || self.current_role() != self.role
            || self.failure.is_some()
    }

    fn role(&self) -> Role {
        self.role
    }

    fn compact(&mut self, up_to: u64) {
        self.compact_to = self.compact_to.max(up_to.min(self.handed.0));
    }

    fn provide_snapshot(&mut self, index: u64, state: &[u8]) -> Result<(), SnapshotError> {
        let (first, last) = (self.node.store().base_index.max(1), self.handed.0);
        if !(first..=last).contains(&index) {
            return Err(SnapshotError::OutOfRange { index, first, last });
        }
        if state.len() > SNAPSHOT_BYTES_MAX {
            return Err(SnapshotError::TooLarge { len: state.len() });
        }
        let store = self.node.mut_store();
        let term = store.term(index).expect("between the base and what is handed out");
        store.snapshot = Some(wire::snapshot(index, term, &store.voters, state));
        Ok(())
    }

    fn resign(&mut self) -> Option<u8> {
        if self.node.raft.state != StateRole::Leader {
            return None;
        }
        self.flush_proposals();
        let own = raft_id(self.owner.member);
        let others = self.node.raft.prs().iter().filter(|(id, _)| **id != own);
        // Who was heard of lately, then who has most, then the first: raft-rs keeps them in no order. All count as not
        // heard of for a moment, whenever it has just looked whether a majority is there.
        let (&best, _) = others
            .max_by_key(|(id, progress)| (progress.recent_active, progress.matched, u64::MAX - **id))?;
        self.node.transfer_leader(best);
        member(best)
    }
}

impl<J: Journal> Replica<J> {
    fn may_propose(&self) -> bool {
        self.failure.is_none() && self.role.leads && self.current_role() == self.role
    }

    /// The role as Raft has it now.
    fn current_role(&self) -> Role {
        let raft = &self.node.raft;
        let leads = raft.state == StateRole::Leader && self.handed.1 == raft.term;
        Role { term: raft.term, delegate: member(raft.leader_id), leads }
    }

    fn hand_role(&mut self, role: Role, out: &mut (impl Sink + ?Sized)) {
        if role != self.role {
            if !role.leads {
                self.backlog_bytes = 0;
            }
            self.role = role;
            out.role(role);
        }
    }

    fn try_cycle(&mut self, out: &mut (impl Sink + ?Sized)) -> Result<(), LogError> {
        if let Some(state) = self.restored.take() {
            out.restore(self.handed.0, &state);
        }
        self.flush_proposals();
        // Stepping down comes before what others committed; stepping up comes after what it must know.
        let role = self.current_role();
        self.hand_role(Role { leads: role.leads && self.role.leads, ..role }, out);
        let base = self.write_compaction()?;
        if self.node.has_ready() {
            self.carry_out(base.is_some(), out)?;
        } else if base.is_some() {
            self.journal.sync()?;
        }
        if let Some(base) = base {
            let first = self.node.store().first_place(base);
            self.journal.release_before(first);
        }
        if self.node.store().take_wanted() {
            out.snapshot_wanted(self.node.store().base_index.max(1));
        }
        self.hand_role(self.current_role(), out);
        Ok(())
    }

    /// Gives Raft the proposals in messages of the configured size.
    fn flush_proposals(&mut self) {
        let mut rest = std::mem::take(&mut self.proposals);
        if self.node.raft.state != StateRole::Leader {
            return;
        }
        while !rest.is_empty() {
            let mut room = self.config.message_bytes_max as usize;
            let fits = |entry: &&Entry| match room.checked_sub(entry.data.len()) {
                Some(left) => {
                    room = left;
                    true
                }
                None => false,
            };
            let behind = rest.split_off(rest.iter().take_while(fits).count().max(1));
            let mut message = Message { from: self.node.raft.id, ..Message::default() };
            message.set_msg_type(MessageType::MsgPropose);
            message.set_entries(std::mem::replace(&mut rest, behind).into());
            self.node.raft.step(message).expect("a leader that is not handing over takes proposals");
        }
    }

    /// Carries out what Raft wants done.
    fn carry_out(&mut self, must_sync: bool, out: &mut (impl Sink + ?Sized)) -> Result<(), LogError> {
        let mut ready = self.node.ready();
        self.send(ready.take_messages(), out);
        self.hand_out(ready.take_committed_entries(), out);
        if let Some(hard) = ready.hs() {
            let commit = self.commit_to_keep(&ready, hard.commit);
            self.write_hard(HardState { commit, ..hard.clone() })?;
        }
        if !ready.snapshot().is_empty() {
            self.write_state(ready.snapshot())?;
        }
        self.write_entries(ready.take_entries())?;
        if must_sync || ready.must_sync() {
            self.journal.sync()?;
        } else {
            self.journal.publish();
        }
        if !ready.snapshot().is_empty() {
            let metadata = ready.snapshot().get_metadata();
            self.handed = (metadata.index, metadata.term);
            out.restore(metadata.index, &ready.snapshot().data);
        }
        self.send(ready.take_persisted_messages(), out);
        let mut light = self.node.advance(ready);
        self.send(light.take_messages(), out);
        self.hand_out(light.take_committed_entries(), out);
        self.node.advance_apply();
        Ok(())
    }

    fn send(&mut self, messages: Vec<Message>, out: &mut (impl Sink + ?Sized)) {
        for message in messages {
            let (to, bytes) = wire::encode(&message);
            if message.msg_type == MessageType::MsgSnapshot {
                self.sent_ago_ticks[usize::from(to)] = 0;
            }
            out.send(to, bytes);
        }
    }

    fn hand_out(&mut self, entries: Vec<Entry>, out: &mut (impl Sink + ?Sized)) {
        for entry in entries {
            assert_eq!(entry.index, self.handed.0 + 1, "a gap in what is committed");
            self.handed = (entry.index, entry.term);
            if !entry.data.is_empty() {
                if self.role.leads {
                    self.backlog_bytes = self.backlog_bytes.saturating_sub(entry.data.len());
                }
                out.committed(entry.index, entry.term, &entry.data);
            }
        }
    }

    /// What raft-rs does when its own timeout passes.
    fn stand_for_election(&mut self) {
        if self.patience_ticks.1 != self.node.raft.term {
            self.draw_patience();
        }
        let raft = &mut self.node.raft;
        if raft.state != StateRole::Leader && raft.election_elapsed as u64 >= self.patience_ticks.0 {
            raft.election_elapsed = 0;
            self.node.campaign().expect("a member may always stand for election");
            self.draw_patience();
        }
    }

    fn draw_patience(&mut self) {
        let range = &self.config.election_ticks;
        let extra = next_random(&mut self.random) % u64::from(range.end - range.start);
        self.patience_ticks = (u64::from(range.start) + extra, self.node.raft.term);
    }

    /// Raft waits for the answer to a state for ever; the state, or the answer, may be lost.
    fn resend_states(&mut self) {
        for other in 0..self.owner.members {
            let progress = self.node.raft.prs().get(raft_id(other));
            if progress.is_none_or(|progress| progress.state != raft::ProgressState::Snapshot) {
                continue;
            }
            self.sent_ago_ticks[usize::from(other)] += 1;
            if self.sent_ago_ticks[usize::from(other)] > self.config.state_ticks {
                self.sent_ago_ticks[usize::from(other)] = 0;
                self.node.report_snapshot(raft_id(other), raft::SnapshotStatus::Failure);
            }
        }
    }
}
