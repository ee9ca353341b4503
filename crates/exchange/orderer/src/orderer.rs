//! An orderer: what waits, proposed while it leads; what is committed, placed; and the wish to lead while nothing is.

use pares_cluster::{Beginning, ClusterLog, Incarnation, LogError, MemberId, MemberRole};
use pares_types::{GatewayId, HostId, Position, Request, ShardId};

use crate::effects::{Effects, OrderSink, OrdererCounts, State};
use crate::entry::{Body, EntryDraft};
use crate::impatience::Impatience;
use crate::message::OrdererMessage;
use crate::ordered::Ordered;

/// Ticks made up for at once: who slept for long has not waited for the others.
const TICKS_MAX: u64 = 8;
/// Cycles of the log in one of this.
const CYCLES_MAX: usize = 8;

/// What an orderer's owner chooses; all but the first three alike at all hosts.
#[derive(Clone, Debug)]
pub struct OrdererConfig {
    /// Which host it is of: its number in the replicated log.
    pub host: HostId,
    /// Which life of its disk: not 0 if what an earlier one promised may be lost. Then it counts for nothing until the others let it vote.
    pub incarnation: Incarnation,
    /// Where jitter comes from.
    pub seed: u64,
    /// How many hosts there are.
    pub hosts: u8,
    /// How many gateways there are, at all hosts.
    pub gateways: u16,
    /// How many positions of a shard may be ordered and not recorded.
    pub window: u64,
    /// Requests of a gateway that may wait here; more than it may have under way.
    pub pending_max: usize,
    /// The replicated log's unit of time.
    pub tick_ns: u64,
}

/// A host's orderer over its end of the replicated log.
pub struct Orderer<L> {
    log: L,
    pub(crate) state: State,
    draft: EntryDraft,
    /// What is in the draft.
    picked: Vec<(ShardId, GatewayId)>,
    ticked_ns: u64,
    #[cfg(test)]
    pub(crate) defect: Option<Defect>,
}

/// What is broken on purpose, to be found out.
#[cfg(test)]
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Defect {
    NoSequences,
    BeforeCommit,
    NoBackOff,
    /// A lost disk continues under the name that had promised.
    KeepsName,
}

impl<L: ClusterLog> Orderer<L> {
    /// One whose `log` was opened behind the place and term `applied`, up to which or further all is in `ordered`.
    pub fn new(
        log: L,
        config: OrdererConfig,
        (ordered, applied): (Ordered, (u64, u64)),
        now_ns: u64,
    ) -> Self {
        let state = State::new(config, ordered, applied, now_ns);
        Self {
            log,
            state,
            draft: EntryDraft::default(),
            picked: Vec::new(),
            ticked_ns: now_ns,
            #[cfg(test)]
            defect: None,
        }
    }

    /// How many requests of a gateway it takes before some are ordered.
    #[must_use]
    pub fn room(&self, gateway: GatewayId) -> usize {
        self.state.config.pending_max.saturating_sub(self.state.pending.of(gateway))
    }

    /// Takes a request with its record from its gateway's log, in the log's order. Says whether it was new.
    pub fn take(&mut self, now_ns: u64, request: &Request, record: &[u8]) -> bool {
        let State { ordered, pending, .. } = &mut self.state;
        let (id, shard) = (request.id, request.shard);
        let Some(body) = Body::new(record).filter(|_| ordered.next(shard).is_some()) else { return false };
        pending.take(id, shard, (ordered.through(shard, id.gateway()), now_ns), body)
    }

    /// All positions of that shard below are recorded, as this host knows.
    pub fn on_recorded(&mut self, shard: ShardId, below: Position) {
        if self.state.raise_recorded(shard, below) {
            self.state.untold.insert(shard);
        }
    }

    /// Up to where a shard is recorded, as any host knows.
    #[must_use]
    pub fn recorded(&self, shard: ShardId) -> Position {
        self.state.recorded_of(shard)
    }

    /// The connection to another host's orderer has ended.
    pub fn lost(&mut self, now_ns: u64, host: HostId) {
        self.log.lost(host.0);
        self.state.impatience.on_gone(now_ns, host.0);
    }

    /// A message of another host's orderer. If it is a copy of what is ordered that was asked for because this one lacks something, gives it: nothing
    /// more is ordered here, and another is to be opened behind it, over a log that begins again there.
    pub fn receive(
        &mut self,
        now_ns: u64,
        (from, bytes): (HostId, &[u8]),
        out: &mut impl OrderSink,
    ) -> Option<(Beginning, Ordered)> {
        match OrdererMessage::from_bytes(bytes) {
            Some(OrdererMessage::Log(message)) if self.log.receive(from.0, message).is_ok() => {
                self.state.impatience.on_heard(now_ns, from.0);
            }
            Some(OrdererMessage::StateAsked { at_least }) => {
                let beginning = self.beginning().filter(|beginning| beginning.index >= at_least);
                if let Some(beginning) = beginning {
                    let ordered = self.state.ordered.clone();
                    out.send(from, OrdererMessage::State { beginning, ordered }.to_bytes());
                }
            }
            Some(OrdererMessage::State { beginning, ordered }) => {
                return self.wants_copy(from, &beginning).then_some((beginning, ordered));
            }
            Some(OrdererMessage::Recorded(marks)) => {
                marks.into_iter().for_each(|(shard, below)| _ = self.state.raise_recorded(shard, below));
            }
            Some(OrdererMessage::AdmitMe { incarnation }) => {
                self.log.admit(MemberId { number: from.0, incarnation });
            }
            Some(OrdererMessage::Log(_)) | None => self.state.counts.ignored += 1,
        }
        None
    }

    /// Whether a copy may take the place of what is here. Nothing must be taken back that this member has acknowledged: so only who leads now knows what it
    /// lacks, but for a log that has no members yet and has acknowledged nothing.
    fn wants_copy(&self, from: HostId, beginning: &Beginning) -> bool {
        let State { lacks, leader, applied, .. } = &self.state;
        let is_asked = lacks.is_some_and(|at_least| beginning.index >= at_least);
        let has_begun = !self.log.members().voters.is_empty();
        let is_of_leader = *leader == Some(from.0) && beginning.index > applied.0;
        // Among nobody no log begins.
        is_asked && !beginning.members.voters.is_empty() && (is_of_leader || !has_begun)
    }

    /// Does all that is due: proposes, stands, hands out what is committed. Says whether there may be more at once.
    ///
    /// # Errors
    /// [`LogError`]: end the process, and open the log again.
    pub fn cycle(&mut self, now_ns: u64, out: &mut impl OrderSink) -> Result<bool, LogError> {
        self.tick(now_ns);
        if self.due_ns().is_some_and(|due| due <= now_ns) {
            self.state.impatience.on_standing(now_ns);
            self.log.impatient();
        }
        self.state.tell(now_ns, out);
        if !self.votes() && self.state.config.incarnation != Incarnation(0) {
            let has_copy = !self.log.members().voters.is_empty();
            self.state.ask_in(now_ns, has_copy, out);
        }
        for _ in 0..CYCLES_MAX {
            self.propose();
            #[cfg(test)]
            self.break_rules(now_ns, out);
            if !self.log.pending() {
                return Ok(false);
            }
            let Self { log, state, .. } = self;
            log.cycle(&mut Effects { state, now_ns, out })?;
        }
        Ok(true)
    }

    /// When the next cycle is due, if nothing comes before.
    #[must_use]
    pub fn deadline_ns(&self) -> u64 {
        let tick = self.ticked_ns + self.state.config.tick_ns;
        self.due_ns().map_or(tick, |due| due.min(tick))
    }

    /// The owner has kept what is ordered up to that place of the log, and a member that lacks an entry before it has been away for so long that a copy is
    /// cheaper.
    pub fn let_go(&mut self, index: u64) {
        self.log.compact(index);
    }

    /// What is ordered.
    #[must_use]
    pub fn ordered(&self) -> &Ordered {
        &self.state.ordered
    }

    /// Where a log begins that continues behind what is ordered; none if it was not handed out by this log, or this one knows no members yet.
    #[must_use]
    pub fn beginning(&self) -> Option<Beginning> {
        let beginning = self.log.beginning(self.state.applied.0);
        beginning.filter(|beginning| !beginning.members.voters.is_empty())
    }

    /// Whether its vote counts, as of what is handed out.
    #[must_use]
    pub fn votes(&self) -> bool {
        self.log.members().voters.contains(&self.state.own())
    }

    /// The replicated log.
    pub fn log_mut(&mut self) -> &mut L {
        &mut self.log
    }

    /// Its part among the orderers.
    #[must_use]
    pub fn role(&self) -> MemberRole {
        self.log.role()
    }

    /// What it has counted.
    #[must_use]
    pub fn counts(&self) -> OrdererCounts {
        self.state.counts
    }

    /// Requests that wait to be ordered.
    #[must_use]
    pub fn pending_len(&self) -> usize {
        self.state.pending.len()
    }

    /// How it waits.
    #[must_use]
    pub fn impatience(&self) -> &Impatience {
        &self.state.impatience
    }

    #[cfg(test)]
    pub(crate) fn state_of_members(&self) -> (MemberId, u64, &pares_cluster::Members, Option<u64>) {
        (self.state.own(), self.state.applied.0, self.log.members(), self.state.lacks)
    }

    #[cfg(test)]
    fn break_rules(&mut self, now_ns: u64, out: &mut impl OrderSink) {
        let Self { state, draft, picked, .. } = self;
        match self.defect {
            Some(Defect::NoSequences) => {
                let gateways = (0..state.config.gateways).map(GatewayId);
                let lanes: Vec<_> =
                    gateways.flat_map(|id| state.ordered.shards().map(move |shard| (shard, id))).collect();
                lanes.into_iter().for_each(|(shard, gateway)| state.ordered.forget(shard, gateway));
            }
            Some(Defect::BeforeCommit) if !picked.is_empty() => {
                Effects { state, now_ns, out }.on_entry(draft.bytes());
                picked.clear();
            }
            Some(Defect::NoBackOff) => state.impatience.forget(),
            _ => {}
        }
    }

    fn tick(&mut self, now_ns: u64) {
        let tick_ns = self.state.config.tick_ns;
        let ticks = now_ns.saturating_sub(self.ticked_ns) / tick_ns;
        (0..ticks.min(TICKS_MAX)).for_each(|_| self.log.tick());
        self.ticked_ns += ticks * tick_ns;
    }

    /// When it stands for the lead.
    fn due_ns(&self) -> Option<u64> {
        if self.log.role().leads {
            return None;
        }
        let State { pending, impatience, .. } = &self.state;
        let oldest = pending.oldest_ns(|shard| self.state.room_in(shard) > 0);
        let stalled = oldest.map(|oldest| impatience.due_ns(oldest));
        stalled.into_iter().chain(impatience.gone_due_ns()).min()
    }

    /// Proposes what waits and is not proposed in this term.
    fn propose(&mut self) {
        while self.log.role().leads && self.state.pending.has_unproposed() {
            self.pick();
            if self.picked.is_empty() {
                return;
            }
            if self.log.propose(self.draft.bytes()).is_err() {
                // It does not lead any more, or has too much under way.
                let picked = self.picked.drain(..);
                picked.for_each(|(shard, gateway)| self.state.pending.take_back(shard, gateway));
                return;
            }
            self.state.counts.entries += 1;
        }
    }

    /// Fills the draft with what waits and has room in its shard's window.
    fn pick(&mut self) {
        self.draft.clear();
        self.picked.clear();
        let Self { state, draft, picked, .. } = self;
        for shard in state.ordered.shards() {
            let mut room = state.room_in(shard);
            while room > 0 && draft.has_room() {
                let Some((gateway, body)) = state.pending.propose_next(shard) else { break };
                draft.push(&body);
                picked.push((shard, gateway));
                room -= 1;
            }
        }
    }
}
