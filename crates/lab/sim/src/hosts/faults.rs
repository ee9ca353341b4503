//! What goes wrong.

use pares_config::NodeId;
use pares_types::HostId;

use super::run::Hosts;
use crate::scenario::MS;

impl Hosts<'_> {
    /// Something goes wrong, or is over.
    pub(super) fn strike(&mut self) {
        self.summary.faults += 1;
        let at = self.random.index(self.hosts.len());
        match self.random.below(100) {
            0..22 => self.kill(at),
            22..29 => self.take_down(at),
            29..36 => {
                let node = self.any_node(at);
                let to_ns = self.now_ns + self.random.between(MS, 30 * MS);
                self.trace.say(self.now_ns, &format!("{node} is stopped"));
                let node = self.hosts[at].node(node);
                node.not_before_ns = node.not_before_ns.max(to_ns);
            }
            36..41 if self.hosts[at].is_started => {
                self.note("host {} is stopped", &[at as u64]);
                self.hosts[at].not_before_ns = self.now_ns + self.random.between(MS, 30 * MS);
            }
            41..48 => {
                self.note("host {} is slow", &[at as u64]);
                self.hosts[at].slow_to_ns = self.now_ns + self.random.between(5 * MS, 40 * MS);
            }
            48..62 => self.cut(at),
            62..80 => self.heal(),
            80..88 => {
                let way = self.any_way(at);
                self.wires.borrow_mut().hang_up(way);
            }
            88..92 => {
                let way = self.any_way(at);
                self.wires.borrow_mut().skip_frame(way);
            }
            92..96 => {
                let host = &mut self.hosts[at];
                host.journal.fail_in(self.random.below(6));
                let orderer = host.orderer();
                host.node(orderer).may_end = true;
                self.note("the journal of host {} fails", &[at as u64]);
            }
            _ => {}
        }
    }

    fn any_node(&mut self, at: usize) -> NodeId {
        let nodes: Vec<NodeId> = self.hosts[at].nodes.keys().copied().collect();
        self.random.pick(&nodes)
    }

    fn any_way(&mut self, at: usize) -> (HostId, HostId) {
        let others: Vec<HostId> = self.others(at);
        (self.hosts[at].id, self.random.pick(&others))
    }

    fn others(&self, at: usize) -> Vec<HostId> {
        self.hosts.iter().map(|host| host.id).filter(|&id| id != self.hosts[at].id).collect()
    }

    /// A process is killed: between two turns, or at one of its next calls into its world.
    fn kill(&mut self, at: usize) {
        let node = self.any_node(at);
        self.summary.killed += 1;
        self.trace.say(self.now_ns, &format!("{node} is killed"));
        if self.random.one_in(3) {
            self.hosts[at].bury(node);
        } else {
            let calls = self.random.below(60) as u32;
            self.hosts[at].machine.lock().fate(node).killed_in = Some(calls);
        }
        if let NodeId::Orderer(id) = node {
            let others = self.others(at);
            self.wires.borrow_mut().end(id, others.into_iter());
        }
    }

    fn take_down(&mut self, at: usize) {
        let without_run = self.random.one_in(2);
        self.note("host {} dies, without run: {}", &[at as u64, without_run.into()]);
        self.hosts[at].take_down(without_run);
    }

    /// A host is not heard, or hears nothing, or both; or one other host is; or the hosts fall into two parts.
    fn cut(&mut self, at: usize) {
        let (id, others) = (self.hosts[at].id, self.others(at));
        let (others, kind) = match self.random.below(4) {
            0 => (vec![self.random.pick(&others)], 1 + self.random.below(3)),
            1 => (others, 1 + self.random.below(3)),
            _ => return self.part(),
        };
        self.note("cut: host {}, ways {}, {} others", &[id.0.into(), kind, others.len() as u64]);
        let mut wires = self.wires.borrow_mut();
        for other in others {
            [(id, other), (other, id)].into_iter().zip([1, 2]).filter(|(_, bit)| kind & bit > 0).for_each(
                |(way, _)| {
                    wires.cuts.insert(way);
                },
            );
        }
    }

    fn part(&mut self) {
        let side: Vec<bool> = self.hosts.iter().map(|_| self.random.one_in(2)).collect();
        self.note("the hosts fall into two parts", &[]);
        for (one, here) in self.hosts.iter().zip(&side) {
            for (other, _) in self.hosts.iter().zip(&side).filter(|(_, there)| *there != here) {
                self.wires.borrow_mut().cuts.insert((one.id, other.id));
            }
        }
    }

    fn heal(&mut self) {
        self.note("all hear each other", &[]);
        self.wires.borrow_mut().cuts.clear();
    }

    /// Faults stop.
    pub(super) fn calm_down(&mut self) {
        self.heal();
        self.wires.borrow_mut().loss_percent = 0;
        for host in &mut self.hosts {
            (host.not_before_ns, host.slow_to_ns) = (host.not_before_ns.min(self.now_ns + 5 * MS), 0);
            host.journal.repair();
            for (&node, one) in &mut host.nodes {
                one.not_before_ns = one.not_before_ns.min(self.now_ns + 5 * MS);
                host.machine.lock().fate(node).killed_in = None;
            }
        }
    }
}
