//! Disks, clocks and the host's means: full, slow, failing, wiped, rotting, jumping, running out.
//!
//! A disk belongs to a host, not to a process: it stays full or poisoned when its process dies.

use std::path::Path;

use pares_config::NodeId;
use pares_types::Position;

use crate::Verdict;
use crate::queue::Action;
use crate::scenario::{MS, US};

use super::checks::Safe;
use super::{World, index, number};

/// An hour, ns: as far as a clock that is set by hand, or for another season, may be off.
const HOUR_NS: i64 = 3_600_000_000_000;

impl World<'_> {
    pub(super) fn is_slow(&self, node: NodeId) -> bool {
        self.slow_until_ns.get(&node).is_some_and(|&until_ns| until_ns > self.now_ns)
    }

    /// Disks and clocks are well again, and nothing is short; a poisoned log waits for the operator all the same.
    pub(super) fn heal(&mut self) {
        let nodes = self.nodes();
        let mut state = self.machine.lock();
        for &node in &nodes {
            let fate = state.fate(node);
            (fate.is_full, fate.clock_off_ns, fate.killed_in, fate.cannot_spawn) = (false, 0, None, false);
            if let Some(log) = state.logs.get(&node) {
                log.lock().sync_fails = false;
            }
        }
        state.net.descriptors_max = None;
        state.feed_net.descriptors_max = None;
        state.cut.clear();
        drop(state);
        self.slow_until_ns.clear();
        nodes.into_iter().for_each(|node| self.schedule(node));
    }

    pub(super) fn relieve(&mut self, node: NodeId) {
        let mut state = self.machine.lock();
        let fate = state.fate(node);
        (fate.is_full, fate.cannot_spawn) = (false, false);
        state.net_of(node).descriptors_max = None;
        drop(state);
        self.schedule(node);
    }

    pub(super) fn fill(&mut self, node: NodeId) {
        let for_ns = self.random.between(500 * US, 8 * MS);
        self.note("the disk of process {} is full for {} us", &[number(node), for_ns / US]);
        self.machine.lock().fate(node).is_full = true;
        self.summary.ills.full += 1;
        self.queue.push(self.now_ns + for_ns, Action::Relief { node });
        self.out_of_action(node, for_ns);
    }

    /// No more descriptors, or no more threads, for a while.
    pub(super) fn exhaust(&mut self, node: NodeId) {
        let for_ns = self.random.between(MS, 8 * MS);
        let descriptors = self.random.chance(500);
        self.note("the host of process {} is out of means for {} us", &[number(node), for_ns / US]);
        self.summary.ills.exhausted += 1;
        let mut state = self.machine.lock();
        if descriptors {
            state.net_of(node).descriptors_max = Some(2);
        } else {
            state.fate(node).cannot_spawn = true;
        }
        drop(state);
        self.queue.push(self.now_ns + for_ns, Action::Relief { node });
        if !node.only_tells() {
            self.disturb(for_ns);
        }
        self.out_of_action(node, for_ns);
    }

    pub(super) fn slow_down(&mut self, gateway: NodeId, recorder: NodeId) {
        let node = if self.random.chance(700) { recorder } else { gateway };
        let for_ns = self.random.between(2 * MS, 20 * MS);
        self.note("the disk of process {} is slow for {} us", &[number(node), for_ns / US]);
        self.slow_until_ns.insert(node, self.now_ns + for_ns);
        self.summary.ills.slow += 1;
        self.out_of_action(node, for_ns + 10 * MS);
    }

    /// The next sync of a log fails, also one while it is opened. Enough others must have what it has: nothing is to be believed
    /// of what a failed sync was about.
    pub(super) fn fail_sync(&mut self, gateway: NodeId, recorder: NodeId) {
        let node = if self.random.chance(700) { recorder } else { gateway };
        let spare = !matches!(node, NodeId::Recorder(_)) || self.can_do_without(index(node));
        if !self.is_disk() || !spare || self.restarting {
            return;
        }
        if let Some(log) = self.machine.log(node) {
            log.lock().sync_fails = true;
            self.note("the next sync of process {} fails", &[number(node)]);
            self.summary.ills.syncs_failed += 1;
            self.out_of_action(node, 20 * MS);
        }
    }

    /// With everything down: `pares journal cut` at what is known to be on the device, for gateways and venues that did not mend
    /// their logs themselves.
    pub(super) fn cut_poisoned(&mut self) {
        for node in self.nodes() {
            let Some(log) = self.machine.log(node) else { continue };
            let mut state = log.lock();
            if state.poisoned != 0 && !matches!(node, NodeId::Recorder(_)) && self.random.chance(500) {
                state.cut_to_synced();
            }
        }
    }

    pub(super) fn repair(&mut self) -> Verdict {
        match self.processes.values().any(|process| process.is_out) {
            true => self.restart(false),
            false => Ok(()), // another restart came first
        }
    }

    /// Some hours ahead, an hour back, or right again.
    pub(super) fn jump_clock(&mut self, gateway: NodeId) {
        let off_ns = [0, -1, 1, 2, 3, 4][self.random.index(6)] * HOUR_NS;
        self.machine.lock().fate(gateway).clock_off_ns = off_ns;
        self.summary.ills.clock_jumps += 1;
        self.note(
            "the clock of gateway {} is off by {} ns",
            &[index(gateway) as u64, off_ns.cast_unsigned()],
        );
        self.schedule(gateway);
    }

    /// A disk is replaced by an empty one. Of recorders, enough others must have all that it had.
    pub(super) fn wipe(&mut self, node: NodeId) {
        let spare = !matches!(node, NodeId::Recorder(_)) || self.can_do_without(index(node));
        if self.restarting || !self.is_up(node) || !spare {
            return;
        }
        self.note("process {} loses its disk", &[number(node)]);
        self.kill(node);
        let mut state = self.machine.lock();
        state.logs.remove(&node);
        state.files.remove_all(Path::new(&node.to_string()));
        drop(state);
        match node {
            NodeId::Recorder(id) => {
                self.summary.ills.wiped += 1;
                self.safe[usize::from(id.0)] = Safe::new(self.scenario.shards);
            }
            NodeId::Orderer(_) | NodeId::Mirror(_) => unreachable!("this world is one host"),
            NodeId::Publisher(_) | NodeId::Replayer(_) => self.summary.ills.publishers_wiped += 1,
            NodeId::Venue(_) => self.summary.ills.venues_wiped += 1,
            NodeId::Gateway(id) => {
                self.summary.ills.gateways_wiped += 1;
                self.excuse_guests();
                self.journalled[usize::from(id.0)].clear();
                // A request may be decided whose body is nowhere any more: the operator restarts everything.
                let for_ns = self.random.between(5 * MS, 15 * MS);
                self.process(node).is_out = true;
                self.disturb(for_ns + 5 * MS);
                self.queue.push(self.now_ns + for_ns, Action::Repair);
                return;
            }
        }
        let down_ns = self.random.between(200 * US, 4 * MS);
        self.out_of_action(node, down_ns + 5 * MS);
        self.start_later(node, down_ns);
    }

    /// Whether as many other recorders as an answer needs have all that this one has, and can be read.
    pub(super) fn can_do_without(&mut self, own: usize) -> bool {
        let next = self.safe_of(own).next.clone();
        let others: Vec<usize> = (0..self.scenario.recorders).filter(|&n| n != own).collect();
        let is_whole = |world: &Self, n: usize| !world.rotten.contains(&super::recorder_id(n));
        let whole: Vec<usize> = others.into_iter().filter(|&n| is_whole(self, n)).collect();
        (0..self.scenario.shards).all(|shard| {
            let has = |world: &mut Self, n: usize| -> Position { world.safe_of(n).next[shard] };
            whole.iter().filter(|&&n| has(self, n) >= next[shard]).count() >= self.scenario.quorum
        })
    }

    /// A bit of a log, or of a checkpoint beside it, flips. A recorder's, if enough others have what it has.
    pub(super) fn rot(&mut self, node: NodeId) {
        let spare = !matches!(node, NodeId::Recorder(_)) || self.can_do_without(index(node));
        if self.restarting || self.rotten.contains(&node) || !spare {
            return;
        }
        let checkpoint = matches!(node, NodeId::Recorder(_)) && self.random.chance(250);
        let flipped = if checkpoint {
            let dir = Path::new(&node.to_string()).join("checkpoints");
            let mut state = self.machine.lock();
            state.files.flip(&dir, &mut self.random)
        } else {
            self.machine.log(node).is_some_and(|log| log.lock().flip(&mut self.random))
        };
        if flipped {
            self.note("a bit of the disk of process {} flips", &[number(node)]);
            self.summary.ills.damaged += 1;
            if matches!(node, NodeId::Gateway(_)) {
                self.excuse_guests();
            }
            if !node.only_tells() {
                self.disturb(10 * MS);
            }
            self.out_of_action(node, 20 * MS);
            if !checkpoint {
                self.rotten.insert(node);
            }
        }
    }
}
