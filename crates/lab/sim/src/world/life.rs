//! Birth and death of processes, and of epochs: what the supervisor and the operator do.

use std::sync::Arc;

use pares_config::NodeId;
use pares_doors::Doors;
use pares_gateway_role::GatewayNode;
use pares_publisher::publisher::PublisherNode;
use pares_publisher::replayer::{CLIENTS_MAX, ReplayerNode};
use pares_roles::lost::OnLoss;
use pares_roles::recorder::RecorderNode;
use pares_roles::venue::{VenueNode, Watch};
use pares_roles::{NodeError, epoch};
use pares_types::Position;

use crate::bug::Bug;
use crate::memory::datagrams::{MemoryDatagrams, MemoryLines};
use crate::memory::host::Host;
use crate::memory::sockets::MemorySockets;
use crate::queue::Action;
use crate::scenario::{MS, US};
use crate::{Broken, Verdict, broken, must};

use super::steps::{Ended, call};
use super::{Memory, World, index, number};

/// The longest pause before a process that does not start is tried again.
const PAUSE_MAX_NS: u64 = 20 * MS;

impl World<'_> {
    /// Starts a dead process: it finds its log and continues.
    pub(super) fn start(&mut self, node: NodeId) -> Verdict {
        if self.is_up(node) || self.restarting || self.process(node).is_out {
            return Ok(());
        }
        self.trace.say(self.now_ns, &format!("{node} starts"));
        // A node that starts sees all there is.
        self.machine.lock().cut.retain(|(reader, _), _| *reader != node);
        let host = Host::new(&self.machine, node);
        let (config, epoch) = (self.config.clone(), self.epoch);
        let quorum = if self.scenario.bug == Some(Bug::AnswerBeforeQuorum) { 1 } else { config.quorum };
        let early = self.scenario.bug == Some(Bug::PublishBeforeQuorum);
        let told_quorum = if early { 1 } else { config.quorum };
        let opened = call(|| -> Result<Memory, NodeError> {
            Ok(match node {
                NodeId::Gateway(id) => {
                    let config = pares_config::SystemConfig { quorum, ..config };
                    let sockets = MemorySockets::new(&host);
                    let doors = Arc::new(Doors);
                    Memory::Gateway(Box::new(GatewayNode::open(id, &config, host, sockets, doors)?))
                }
                NodeId::Venue(id) => {
                    let (watch, suspect) = Watch::open(&host, id, epoch)?;
                    Memory::Venue(Box::new(VenueNode::open(id, &config, host, &Arc::new(watch), suspect)?))
                }
                NodeId::Publisher(id) => {
                    let lines = MemoryLines::new(&host);
                    let config = pares_config::SystemConfig { quorum: told_quorum, ..config };
                    Memory::Publisher(Box::new(PublisherNode::open(id, &config, host, lines)?))
                }
                NodeId::Replayer(id) => {
                    let edge = (MemorySockets::new(&host), MemoryDatagrams::new(&host));
                    Memory::Replayer(Box::new(ReplayerNode::open(id, &config, host, edge, CLIENTS_MAX)?))
                }
                NodeId::Orderer(_) | NodeId::Mirror(_) => unreachable!("this world is one host"),
                NodeId::Recorder(id) => {
                    Memory::Recorder(Box::new(RecorderNode::open(id, &config, host, epoch)?))
                }
            })
        });
        match opened {
            Ended::Back(Ok(memory)) => {
                let process = self.process(node);
                (process.memory, process.failures) = (Some(memory), 0);
                self.rotten.remove(&node);
                self.take_effects()?;
                self.schedule(node);
                Ok(())
            }
            Ended::Back(Err(error)) => {
                self.end_life(node);
                self.take_effects()?;
                if let Some(told) = self.exit_is_broken(node, &error) {
                    return Err(told);
                }
                self.trace.say(self.now_ns, &format!("{node} does not start: {error}"));
                self.on_killed(node);
                Ok(())
            }
            Ended::Killed => {
                self.end_life(node);
                self.take_effects()?;
                self.on_killed(node);
                Ok(())
            }
        }
    }

    /// Whether that a process ends with this error is a broken promise.
    pub(super) fn exit_is_broken(&mut self, node: NodeId, error: &NodeError) -> Option<Broken> {
        match error {
            NodeError::EpochOver | NodeError::Gap { .. } => {
                let what = format!("{node} ends: {error}");
                Some(Broken { invariant: "I1 agreement", what })
            }
            // What waits for the operator.
            NodeError::LogLost { .. } => {
                self.process(node).is_out = true;
                let at_ns = self.now_ns + self.random.between(5 * MS, 15 * MS);
                self.queue.push(at_ns, Action::Repair);
                None
            }
            NodeError::ShutOut { .. } => {
                self.process(node).is_out = true;
                None
            }
            _ => None,
        }
    }

    /// The process is over: what it holds is free, its memory and tasks are gone.
    pub(super) fn end_life(&mut self, node: NodeId) {
        {
            let mut state = self.machine.lock();
            let fate = state.fate(node);
            (fate.life, fate.killed_in) = (fate.life + 1, None);
        }
        let torn = self.random.chance(self.scenario.faults.torn_permille);
        if let Some(log) = self.machine.log(node) {
            log.lock().process_died(&mut self.random, torn);
        }
        self.tap_dies(node, torn);
        self.summary.ills.torn += u64::from(torn);
        self.keep_another_past(node);
        match node {
            NodeId::Gateway(_) => self.break_connections_of(index(node)),
            NodeId::Replayer(_) => self.drop_calls_of(node),
            _ => {}
        }
        let process = self.process(node);
        (process.memory, process.is_stopped, process.is_syncing) = (None, false, false);
        (process.is_hidden, process.stops_for_ns, process.planned_ns) = (false, None, 0);
        process.is_checked = false;
        self.jobs.retain(|_, job| job.node != node);
    }

    /// The supervisor starts a dead process again, at once or after a pause that grows.
    pub(super) fn on_killed(&mut self, node: NodeId) {
        let process = self.process(node);
        process.failures += 1;
        let most_ns = (MS << process.failures.min(8)).min(PAUSE_MAX_NS);
        let down_ns = self.random.between(200 * US, most_ns);
        self.out_of_action(node, down_ns);
        self.start_later(node, down_ns);
    }

    pub(super) fn start_later(&mut self, node: NodeId, down_ns: u64) {
        let life = self.life(node);
        self.queue.push(self.now_ns + down_ns, Action::Start { node, life });
    }

    /// Ends a process from outside.
    pub(super) fn kill(&mut self, node: NodeId) {
        if self.is_up(node) {
            self.trace.say(self.now_ns, &format!("{node} is killed"));
        }
        self.end_life(node);
    }

    /// SIGSTOP, and SIGCONT later.
    pub(super) fn stop(&mut self, node: NodeId, for_ns: u64) {
        let (at_ns, life) = (self.now_ns + for_ns, self.life(node));
        self.process(node).is_stopped = true;
        self.note("process {} stops for {} us", &[number(node), for_ns / US]);
        self.queue.push(at_ns, Action::Resume { node, life });
    }

    /// It will be stopped before what it publishes next is seen.
    pub(super) fn hide(&mut self, node: NodeId) {
        if let Some(log) = self.machine.log(node) {
            log.lock().is_hidden = true;
            self.process(node).is_hidden = true;
        }
    }

    pub(super) fn resume(&mut self, node: NodeId, life: u32) {
        if self.life(node) != life || !self.process(node).is_stopped {
            return;
        }
        let process = self.process(node);
        (process.is_stopped, process.planned_ns) = (false, 0);
        let was_hidden = std::mem::take(&mut process.is_hidden);
        self.note("process {} goes on", &[number(node)]);
        if let Some(log) = self.machine.log(node).filter(|_| was_hidden) {
            let mut state = log.lock();
            state.is_hidden = false;
            state.publish();
        }
        self.wake_readers(node);
        self.schedule(node);
    }

    /// Everything dies; with `power` also what was not synced.
    pub(super) fn take_down(&mut self, power: bool) -> Verdict {
        for node in self.nodes() {
            // Some die in the middle of a cycle.
            if self.is_up(node) && !self.process(node).is_stopped && self.random.chance(500) {
                let calls = self.random.below(40) as u32;
                self.machine.lock().fate(node).killed_in = Some(calls);
                self.step(node)?;
            }
        }
        self.restarting = true;
        for node in self.nodes() {
            self.kill(node);
        }
        if power {
            self.note("power fails", &[]);
            self.excuse_guests();
            for node in self.nodes() {
                if let Some(log) = self.machine.log(node) {
                    log.lock().power_failed(&mut self.random);
                }
            }
            let mut state = self.machine.lock();
            state.files.power_failed(&mut self.random);
            // What lives in `run` may be there or not.
            if self.random.chance(300) {
                state.windows.clear();
            }
            if self.random.chance(300) {
                state.counters.clear();
            }
        }
        self.cut_poisoned();
        let at_ns = self.now_ns + self.random.between(100 * US, 2 * MS);
        self.queue.push(at_ns, Action::BeginEpoch);
        self.check_answered_is_kept()
    }

    /// The supervisor begins the next epoch before any node runs: what no recorder has is void.
    pub(super) fn begin_epoch(&mut self) -> Verdict {
        let host = Host::supervisor(&self.machine);
        let config = self.config.clone();
        let Ended::Back(begun) = call(|| epoch::begin(&host, &config, None, OnLoss::Refuse)) else {
            unreachable!("nobody kills the supervisor here")
        };
        self.take_effects()?;
        let epoch = match begun {
            Ok(epoch) => epoch,
            Err(error) => {
                self.trace.say(self.now_ns, &format!("no epoch begins: {error}"));
                let what = format!("everything is down and does not start: {error}");
                return broken("everything is answered", what);
            }
        };
        must(epoch > self.epoch, "an epoch is used once", || format!("{epoch} begins after {}", self.epoch))?;
        self.note_placement();
        (self.epoch, self.restarting) = (epoch, false);
        self.summary.epochs += 1;
        for shard in 0..self.scenario.shards {
            let window = self.machine.window(super::shard_id(shard)).expect("an epoch has windows");
            let first: Position = pares_sequencer::Sequencer::recorded(&window);
            self.check_feed_is_kept(shard, first)?;
            self.ledger.void_from(shard, first);
            self.epoch_first[shard] = first;
            self.note("epoch {}: shard {} goes on at {}", &[epoch.0.into(), shard as u64, first.0]);
        }
        for node in self.nodes() {
            self.process(node).is_out = false;
            self.process(node).failures = 0;
            let down_ns = self.random.below(MS);
            self.start_later(node, down_ns);
        }
        Ok(())
    }
}
