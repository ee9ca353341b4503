//! Disks that are lost with all that was on them.
//!
//! A recorder's log is filled again by its peers, a venue's is begun anew: what it held is recorded, or is executed again from the
//! gateways' logs and the window. A gateway's log is another matter. What it had accepted, and no recorder has, was
//! there only; so were the numbers of the requests that venues may still hold. A gateway that went on from nothing
//! in a running system would give those numbers to other requests, and a decided request whose body is gone would stop its shard for
//! good. So a gateway that has lost its disk stays away until everything has been stopped and started: the new epoch
//! forgets what is not recorded, and members, who were not answered, ask again. The other gateways take requests meanwhile.

use pares_types::Position;

use crate::bug::Bug;
use crate::log::Log;
use crate::queue::Action;
use crate::record::{NodeId, RecorderEntry};
use crate::recorder::recorded;
use crate::scenario::{Durability, MS, US};

use super::{World, checks};

impl World<'_> {
    /// A recorder's disk is replaced by an empty one, if as many others as an answer needs have all that it had.
    pub(super) fn wipe(&mut self, node: NodeId) {
        let NodeId::Recorder(own) = node else { return };
        if self.restarting || !self.process(node).up || !self.can_do_without(own) {
            return;
        }
        self.note("recorder {} loses its disk", &[own as u64]);
        self.summary.ills.wiped += 1;
        self.kill(node);
        let shards = self.scenario.shards;
        let host = &mut self.recorders[own];
        host.log = Log::new();
        host.checkpoints.clear();
        host.safe = checks::Safe::new(shards);
        for reader in self.nodes() {
            self.forget_log(reader, own);
        }
        let down_ns = self.random.between(200 * US, 4 * MS);
        self.out_of_action(node, down_ns + 5 * MS);
        let (at_ns, life) = (self.now_ns + down_ns, self.process(node).life);
        self.queue.push(at_ns, Action::Start { node, life });
    }

    pub(super) fn can_do_without(&self, own: usize) -> bool {
        let shards = self.scenario.shards;
        let disk = self.scenario.durability == Durability::Disk;
        let safe = |log: &Log<RecorderEntry>| if disk { log.synced() } else { log.published() };
        let next = |n: usize, all: bool| -> Vec<Position> {
            let log = &self.recorders[n].log;
            // Of a damaged log the others cannot read all.
            let to = if all { log.end() } else { log.whole_until(0, safe(log)) };
            recorded(log, to, shards).0
        };
        let own_next = next(own, true);
        let others: Vec<_> =
            (0..self.recorders.len()).filter(|&n| n != own).map(|n| next(n, false)).collect();
        let has_enough = |shard: usize| {
            others.iter().filter(|next| next[shard] >= own_next[shard]).count() >= self.scenario.quorum
        };
        (0..shards).all(has_enough)
    }

    /// A live reader finds another log in the place of the one it read, and reads it from its beginning.
    pub(super) fn forget_log(&mut self, reader: NodeId, recorder: usize) {
        let source = NodeId::Recorder(recorder);
        if reader == source || !self.process(reader).up {
            return;
        }
        let known = "a process that is up has its memory";
        match reader {
            NodeId::Gateway(n) => {
                let node = self.gateways[n].node.as_mut().expect(known);
                node.committed.cursors[recorder] = 0;
                node.replaced[recorder] = true;
            }
            NodeId::Venue(n) => self.venues[n].node.as_mut().expect(known).forget_log(recorder),
            NodeId::Recorder(n) => self.recorders[n].node.as_mut().expect(known).peers[recorder] = 0,
        }
        self.open_link(reader, source, 0);
    }

    /// A venue's disk is replaced by an empty one.
    pub(super) fn wipe_venue(&mut self, node: NodeId) {
        let NodeId::Venue(own) = node else { return };
        let down_ns = self.random.between(200 * US, 4 * MS);
        if self.restarting || !self.process(node).up {
            return;
        }
        self.note("venue {} loses its disk", &[own as u64]);
        self.summary.ills.venues_wiped += 1;
        self.kill(node);
        self.venues[own].log = Log::new();
        for n in 0..self.recorders.len() {
            let Some(recorder) = &mut self.recorders[n].node else { continue };
            if self.scenario.bug != Some(Bug::ReadOnInNewLog) {
                recorder.venues[own] = 0;
            }
            let from = recorder.venues[own];
            self.open_link(NodeId::Recorder(n), node, from);
        }
        self.start_later(node, down_ns);
    }

    /// A gateway's disk is replaced by an empty one.
    pub(super) fn wipe_gateway(&mut self, node: NodeId) {
        let NodeId::Gateway(own) = node else { return };
        let down_ns = self.random.between(5 * MS, 15 * MS);
        if self.restarting || !self.process(node).up {
            return;
        }
        self.note("gateway {} loses its disk", &[own as u64]);
        self.summary.ills.gateways_wiped += 1;
        self.kill(node);
        (self.gateways[own].log, self.gateways[own].answered) = (Log::new(), 0);
        for reader in self.nodes() {
            self.forget_requests(reader, own);
        }
        if self.scenario.bug == Some(Bug::GatewayFromNothing) {
            self.start_later(node, 100 * US);
            return;
        }
        self.lose(node);
        // A request may be decided whose body is nowhere any more.
        self.disturb(down_ns + 5 * MS);
        self.queue.push(self.now_ns + down_ns, Action::Repair);
    }

    /// A live reader of a gateway's log finds another one in its place.
    fn forget_requests(&mut self, reader: NodeId, gateway: usize) {
        let source = NodeId::Gateway(gateway);
        match reader {
            NodeId::Gateway(n) => {
                let Some(node) = self.gateways[n].node.as_mut() else { return };
                node.peers[gateway] = 0;
            }
            NodeId::Venue(n) => {
                let Some(node) = self.venues[n].node.as_mut() else { return };
                node.cursors[gateway] = 0;
            }
            NodeId::Recorder(_) => return,
        }
        self.open_link(reader, source, 0);
    }

    fn start_later(&mut self, node: NodeId, down_ns: u64) {
        self.out_of_action(node, down_ns);
        let (at_ns, life) = (self.now_ns + down_ns, self.process(node).life);
        self.queue.push(at_ns, Action::Start { node, life });
    }
}
