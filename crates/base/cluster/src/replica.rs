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
//! A member that comes back has much to catch up with, twice: entries to append, and entries to hand out, which cost its owner more. One batch hands out a few,
//! so that the next can take what the delegate sends: the others may need this member's acknowledgement long before they need its owner.
//!
//! Randomness is ours, not raft-rs's (it asks the operating system, and no run could be repeated): raft-rs is
//! configured with an election timeout that never comes, and ours tells it to stand for election.

mod electing;
mod membership;
mod writing;

use pares_random::Random;
use raft::eraftpb::{Entry, HardState, Message, MessageType};
use raft::{RawNode, StateRole, Storage as _};

use crate::config::{Beginning, ReplicaConfig};
use crate::error::{EntryError, LogError, MessageError, ReplicaError};
use crate::journal::Journal;
use crate::log::{ClusterLog, MemberRole, Sink};
use crate::members::{MemberId, Members};
use crate::record::{HEAD_BYTES, Owner};
use crate::recover::{Recovered, recover};
use crate::store::{Store, change_in};
use crate::wire;

/// The election timeout that raft-rs draws, always.
const NEVER: usize = 1 << 40;
/// Committed payload that one batch hands out, bytes, about; twice, since what the batch itself commits is handed out too.
const HANDED_BYTES_MAX: u64 = 1 << 17;

/// One member of a cluster.
pub struct Replica<J> {
    node: RawNode<Store>,
    journal: J,
    owner: Owner,
    config: ReplicaConfig,
    /// As of what is handed out.
    members: Members,
    random: Random,
    /// Ticks without a word from a delegate after which this member stands for election, and the term it was drawn in.
    patience_ticks: (u64, u64),
    /// So often it still stands without drawing that time, since its delegate is gone.
    hurries: u32,
    role: MemberRole,
    /// Place and term of the last entry handed out.
    handed: (u64, u64),
    /// To be proposed in the next cycle.
    proposals: Vec<Entry>,
    /// Bytes proposed while leading and not handed out yet.
    backlog_bytes: usize,
    /// The delegate has said that this member lacks what is compacted up to here.
    lacks: Option<u64>,
    /// Compact up to here in the next cycle.
    compact_to: u64,
    /// Ticks since members that lack what is compacted were looked after.
    looked_ago_ticks: u32,
    /// A change of the members was handed out, and is not durable as such.
    has_changed: bool,
    failure: Option<LogError>,
}

impl<J: Journal> Replica<J> {
    /// Opens the log in `journal`, or begins one.
    ///
    /// # Errors
    /// [`ReplicaError`]; nothing was changed, but where the log begins may have been written.
    pub fn open(mut journal: J, config: &ReplicaConfig) -> Result<Replica<J>, ReplicaError> {
        config.check()?;
        let owner = Owner::of(&config.database, config.id);
        let Recovered { store, begins } = recover(&mut journal, owner, config)?;
        if begins {
            writing::write_beginning(&mut journal, owner, &store)?;
        }
        let handed = (config.applied, store.term(config.applied).expect("recovery checked the place"));
        let members = store.members_at(config.applied);
        let is_alone = members.voters.len() == 1 && members.voters.contains(&config.id);
        let logger = slog::Logger::root(slog::Discard, slog::o!());
        let node = RawNode::new(&raft_config(config), store, &logger);
        let mut replica = Replica {
            node: node.map_err(|_| ReplicaError::Config { what: "raft-rs refuses it" })?,
            journal,
            owner,
            config: config.clone(),
            members,
            random: Random::new(config.seed),
            patience_ticks: (0, 0),
            hurries: 0,
            role: MemberRole::default(),
            handed,
            proposals: Vec::new(),
            backlog_bytes: 0,
            lacks: None,
            compact_to: 0,
            looked_ago_ticks: 0,
            has_changed: false,
            failure: None,
        };
        replica.draw_patience();
        if is_alone {
            replica.node.campaign().expect("a member may always stand for election");
        }
        Ok(replica)
    }

    /// Places of the entries held: those after the first number, up to the second.
    #[must_use]
    pub fn held(&self) -> (u64, u64) {
        (self.node.store().base.index, self.node.raft.raft_log.last_index())
    }

    /// Makes what it has promised durable on the device, also where its journal's setting promises less: before its machine may lose power.
    ///
    /// # Errors
    /// As [`ClusterLog::cycle`].
    pub fn settle(&mut self) -> Result<(), LogError> {
        self.failure.clone().map_or(Ok(()), Err)?;
        Ok(self.journal.settle()?)
    }

    /// Place and term of the last entry handed out, or skipped because it is the log's own.
    #[must_use]
    pub fn handed_out(&self) -> (u64, u64) {
        self.handed
    }
}

fn raft_config(config: &ReplicaConfig) -> raft::Config {
    raft::Config {
        id: config.id.raft_id(),
        election_tick: config.election_ticks.start as usize,
        min_election_tick: NEVER,
        max_election_tick: NEVER + 1,
        heartbeat_tick: config.heartbeat_ticks as usize,
        applied: config.applied,
        max_size_per_msg: config.message_bytes_max.into(),
        max_inflight_msgs: config.inflight_max.into(),
        max_committed_size_per_ready: HANDED_BYTES_MAX,
        check_quorum: true,
        pre_vote: true,
        ..raft::Config::default()
    }
}

impl<J: Journal> ClusterLog for Replica<J> {
    fn tick(&mut self) {
        self.node.tick();
        self.stand_for_election();
        self.look_after_those_who_lack();
    }

    fn lost(&mut self, member: u8) {
        self.lose(member);
    }

    fn impatient(&mut self) {
        self.hurry();
    }

    fn receive(&mut self, from: u8, message: &[u8]) -> Result<(), MessageError> {
        let message = wire::decode(from, self.config.id, message)?;
        let last = self.node.raft.raft_log.last_index();
        let heartbeat = message.msg_type == MessageType::MsgHeartbeat && message.term >= self.node.raft.term;
        if heartbeat && message.commit > last {
            self.failure.get_or_insert(LogError::Forgotten { commit: message.commit, last });
        }
        if message.msg_type == MessageType::MsgSnapshot && self.is_lacking(&message) {
            return Ok(());
        }
        if message.msg_type == MessageType::MsgTransferLeader {
            // While the office is handed over nothing is proposed.
            self.flush_proposals();
        }
        if self.failure.is_none() {
            // What raft-rs refuses is stale or of no use to it; the sender repeats what matters.
            let _ = self.node.step(message);
        }
        Ok(())
    }

    fn propose(&mut self, payload: &[u8]) -> Result<(), EntryError> {
        if !self.may_propose() {
            let delegate = number(self.node.raft.leader_id);
            return Err(EntryError::NotDelegate { delegate });
        }
        let max = self.journal.record_bytes_max() - HEAD_BYTES;
        match payload.len() {
            _ if self.node.raft.lead_transferee.is_some() => Err(EntryError::Resigning),
            0 => Err(EntryError::Empty),
            len if len > max => Err(EntryError::TooLarge { len, max }),
            len if self.backlog_bytes > 0 && self.backlog_bytes + len > self.config.backlog_bytes_max => {
                Err(EntryError::Backlog { bytes: self.backlog_bytes })
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
        let raft = self.node.has_ready() || !self.proposals.is_empty() || self.lacks.is_some();
        raft || self.compact_to > self.node.store().base.index
            || self.current_role() != self.role
            || self.failure.is_some()
    }

    fn role(&self) -> MemberRole {
        self.role
    }

    fn compact(&mut self, up_to: u64) {
        self.compact_to = self.compact_to.max(up_to.min(self.handed.0));
    }

    fn members(&self) -> &Members {
        &self.members
    }

    fn beginning(&self, index: u64) -> Option<Beginning> {
        let store = self.node.store();
        let is_here = (store.base.index..=self.handed.0).contains(&index);
        let term = store.term(index).ok().filter(|_| is_here)?;
        Some(Beginning { index, term, members: store.members_at(index) })
    }

    fn admit(&mut self, id: MemberId) {
        self.go_towards(id);
    }

    fn dismiss(&mut self, number: u8) {
        self.go_without(number);
    }

    fn resign(&mut self) -> Option<u8> {
        if self.node.raft.state != StateRole::Leader {
            return None;
        }
        self.flush_proposals();
        let (raft, own) = (&self.node.raft, self.config.id.raft_id());
        let others =
            raft.prs().iter().filter(|(id, _)| **id != own && raft.prs().conf().voters().contains(**id));
        // Who was heard of lately, then who has most, then the first: raft-rs keeps them in no order. All count as not
        // heard of for a moment, whenever it has just looked whether a majority is there.
        let (&best, _) = others
            .max_by_key(|(id, progress)| (progress.recent_active, progress.matched, u64::MAX - **id))?;
        self.node.transfer_leader(best);
        number(best)
    }

    fn claim(&mut self) {
        if self.node.raft.state == StateRole::Follower {
            // A follower sends it on to the leader that it knows.
            self.node.transfer_leader(self.config.id.raft_id());
        }
    }
}

impl<J: Journal> Replica<J> {
    fn may_propose(&self) -> bool {
        self.failure.is_none() && self.role.leads && self.current_role() == self.role
    }

    /// The role as Raft has it now.
    fn current_role(&self) -> MemberRole {
        let raft = &self.node.raft;
        let leads = raft.state == StateRole::Leader && self.handed.1 == raft.term;
        MemberRole { term: raft.term, delegate: number(raft.leader_id), leads }
    }

    fn hand_role(&mut self, role: MemberRole, out: &mut (impl Sink + ?Sized)) {
        if role != self.role {
            if !role.leads {
                self.backlog_bytes = 0;
            }
            self.role = role;
            out.role(role);
        }
    }

    fn try_cycle(&mut self, out: &mut (impl Sink + ?Sized)) -> Result<(), LogError> {
        self.flush_proposals();
        self.promote();
        // Stepping down comes before what others committed; stepping up comes after what it must know.
        let role = self.current_role();
        self.hand_role(MemberRole { leads: role.leads && self.role.leads, ..role }, out);
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
        if let Some(at_least) = self.lacks.take().filter(|at_least| *at_least > self.handed.0) {
            out.lacks(at_least);
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
            let commit = Self::commit_to_keep(&ready, hard.commit);
            self.write_hard(HardState { commit, ..hard.clone() })?;
        }
        assert!(ready.snapshot().is_empty(), "states do not travel in messages");
        self.write_entries(ready.take_entries())?;
        if must_sync || ready.must_sync() {
            self.journal.sync()?;
        } else {
            self.journal.publish();
        }
        self.send(ready.take_persisted_messages(), out);
        let mut light = self.node.advance(ready);
        self.send(light.take_messages(), out);
        self.hand_out(light.take_committed_entries(), out);
        self.node.advance_apply();
        if std::mem::take(&mut self.has_changed) { self.keep_change() } else { Ok(()) }
    }

    fn send(&mut self, messages: Vec<Message>, out: &mut (impl Sink + ?Sized)) {
        for message in messages {
            let (to, bytes) = wire::encode(&message);
            out.send(to, bytes);
        }
    }

    fn hand_out(&mut self, entries: Vec<Entry>, out: &mut (impl Sink + ?Sized)) {
        for entry in entries {
            assert_eq!(entry.index, self.handed.0 + 1, "a gap in what is committed");
            self.handed = (entry.index, entry.term);
            if let Some(change) = change_in(&entry) {
                self.carry_out_change(change);
            } else if !entry.data.is_empty() {
                if self.role.leads {
                    self.backlog_bytes = self.backlog_bytes.saturating_sub(entry.data.len());
                }
                out.committed(entry.index, entry.term, &entry.data);
            }
        }
    }
}

/// The number of the member that Raft calls so; none for its "nobody".
fn number(raft_id: u64) -> Option<u8> {
    MemberId::of_raft(raft_id).map(|id| id.number)
}
