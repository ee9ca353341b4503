//! Disks and clocks: full, slow, failing, wiped, jumping. What the rest of the world asks of them.
//!
//! A disk belongs to a host, not to a process: it stays full or poisoned when its process dies.

use pares_types::Timestamp;

use crate::Broken;
use crate::bug::Bug;
use crate::queue::Action;
use crate::record::NodeId;
use crate::scenario::{Durability, MS, US};

use super::World;

/// An hour, ns: as far as a clock that is set by hand, or for another season, may be off.
const HOUR_NS: i64 = 3_600_000_000_000;

/// What is wrong with a disk.
#[derive(Debug, Default)]
pub(super) struct Disk {
    full_until_ns: u64,
    slow_until_ns: u64,
    /// The next sync fails.
    fails: bool,
    /// A sync has failed: nothing is to be believed of what was not synced before.
    poisoned: bool,
    /// It is gone with all that was on it, and its node waits for the operator.
    lost: bool,
}

impl World<'_> {
    fn disk(&mut self, node: NodeId) -> &mut Disk {
        let index = self.node_index(node);
        &mut self.disks[index]
    }

    /// Whether a node's log takes more.
    pub(super) fn has_room(&self, node: NodeId) -> bool {
        self.disks[self.node_index(node)].full_until_ns <= self.now_ns
    }

    pub(super) fn is_slow(&self, node: NodeId) -> bool {
        self.disks[self.node_index(node)].slow_until_ns > self.now_ns
    }

    /// Whether its node may not start before the operator has stopped everything.
    pub(super) fn is_out_of_use(&self, node: NodeId) -> bool {
        let disk = &self.disks[self.node_index(node)];
        disk.poisoned || disk.lost
    }

    pub(super) fn lose(&mut self, node: NodeId) {
        self.disk(node).lost = true;
    }

    pub(super) fn takes_sync_failure(&mut self, node: NodeId) -> bool {
        std::mem::take(&mut self.disk(node).fails)
    }

    /// Disks and clocks are well again; a poisoned log waits for the operator all the same.
    pub(super) fn heal(&mut self) {
        for disk in &mut self.disks {
            (disk.full_until_ns, disk.slow_until_ns, disk.fails) = (0, 0, false);
        }
        self.gateways.iter_mut().for_each(|host| host.clock_off_ns = 0);
        // Whoever waited for room finds it when its time comes ([`Action::Room`]).
    }

    pub(super) fn fill(&mut self, node: NodeId) {
        let for_ns = self.random.between(500 * US, 8 * MS);
        let (index, until_ns) = (self.node_index(node) as u64, self.now_ns + for_ns);
        self.note("the disk of process {} is full for {} us", &[index, for_ns / US]);
        self.disk(node).full_until_ns = until_ns;
        self.summary.ills.full += 1;
        self.queue.push(until_ns, Action::Room { node });
        self.out_of_action(node, for_ns);
    }

    pub(super) fn slow_down(&mut self, gateway: NodeId, recorder: NodeId) {
        let node = if self.random.chance(700) { recorder } else { gateway };
        let for_ns = self.random.between(2 * MS, 20 * MS);
        let (index, until_ns) = (self.node_index(node) as u64, self.now_ns + for_ns);
        self.note("the disk of process {} is slow for {} us", &[index, for_ns / US]);
        self.disk(node).slow_until_ns = until_ns;
        self.summary.ills.slow += 1;
        self.out_of_action(node, for_ns + 10 * MS);
    }

    pub(super) fn plan_sync_failure(&mut self, gateway: NodeId, recorder: NodeId) {
        let node = if self.random.chance(700) { recorder } else { gateway };
        if self.scenario.durability == Durability::Disk {
            self.disk(node).fails = true;
        }
    }

    /// A failed sync says nothing about what is on the device, and a second one would say nothing about the first: the log is
    /// poisoned, its process ends and does not come back until the operator has stopped everything and cut the log.
    pub(super) fn on_sync_failed(&mut self, node: NodeId, to: u64) {
        let index = self.node_index(node) as u64;
        self.note("a sync of process {} fails", &[index]);
        self.summary.ills.syncs_failed += 1;
        if let (NodeId::Recorder(n), Some(Bug::BelieveFailedSync)) = (node, self.scenario.bug) {
            let host = &mut self.recorders[n];
            host.log.promise(to);
            host.node.as_mut().expect("a process that syncs is up").syncing = false;
            self.publish(node);
            self.schedule(node);
            return;
        }
        let for_ns = self.random.between(5 * MS, 20 * MS);
        self.kill(node);
        self.disk(node).poisoned = true;
        self.out_of_action(node, for_ns);
        self.queue.push(self.now_ns + for_ns, Action::Repair);
    }

    /// Everything is stopped, poisoned logs are cut, everything is started.
    pub(super) fn repair(&mut self) -> Result<(), Broken> {
        match self.disks.iter().any(|disk| disk.poisoned || disk.lost) {
            true => self.restart(false),
            false => Ok(()), // another restart came first
        }
    }

    /// With everything down: `pares journal cut` at what is known to be on the device.
    pub(super) fn cut_poisoned(&mut self) {
        for node in self.nodes() {
            self.disk(node).lost = false;
            if !std::mem::take(&mut self.disk(node).poisoned) {
                continue;
            }
            match node {
                NodeId::Gateway(n) => self.gateways[n].log.cut_to_synced(),
                NodeId::Venue(n) => self.venues[n].log.cut_to_synced(),
                NodeId::Recorder(n) => self.recorders[n].log.cut_to_synced(),
            }
        }
    }

    /// A death may leave the last record half written.
    pub(super) fn tear(&mut self, node: NodeId) {
        let permille = self.scenario.faults.torn_permille;
        if permille == 0 || !self.random.chance(permille) {
            return;
        }
        let torn = match node {
            NodeId::Gateway(n) => self.gateways[n].log.tear(),
            NodeId::Venue(n) => self.venues[n].log.tear(),
            NodeId::Recorder(n) => self.recorders[n].log.tear(),
        };
        self.summary.ills.torn += u64::from(torn);
    }

    /// An hour ahead, an hour back, or right again.
    pub(super) fn jump_clock(&mut self, gateway: NodeId) {
        let NodeId::Gateway(own) = gateway else { return };
        let off_ns = [HOUR_NS, -HOUR_NS, 0][self.random.index(3)];
        self.gateways[own].clock_off_ns = off_ns;
        self.summary.ills.clock_jumps += 1;
        self.note("the clock of gateway {} is off by {} ns", &[own as u64, off_ns.cast_unsigned()]);
        self.schedule(gateway);
    }

    /// What a gateway's clock shows; it does not show what was before the beginning of time.
    pub(super) fn gateway_clock_ns(&self, own: usize) -> u64 {
        self.now_ns.saturating_add_signed(self.gateways[own].clock_off_ns)
    }

    /// When a gateway looks at its clock again for something due then.
    pub(super) fn tick_at_ns(&self, own: usize, due: Timestamp) -> u64 {
        let at_ns = due.0.saturating_add_signed(-self.gateways[own].clock_off_ns).max(self.now_ns + 50 * US);
        // A clock that jumps may show that sooner than it said.
        if self.scenario.faults.clock_jump_ns > 0 { at_ns.min(self.now_ns + MS) } else { at_ns }
    }
}
