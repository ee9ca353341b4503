//! Messages between the tiers, and asking for those that did not come.

use crate::queue::Action;
use crate::record::NodeId;
use crate::scenario::{MS, US};

use super::World;

/// From asking in vain to asking again.
const ASK_AGAIN_NS: u64 = 300 * US;

impl World<'_> {
    /// Who reads `source`'s log.
    fn reads(reader: NodeId, source: NodeId) -> bool {
        use NodeId::{Gateway, Recorder, Venue};
        match (reader, source) {
            (Gateway(a), Gateway(b)) | (Recorder(a), Recorder(b)) => a != b,
            (Venue(_), Gateway(_) | Recorder(_)) | (Gateway(_), Recorder(_)) | (Recorder(_), Venue(_)) => {
                true
            }
            (Gateway(_), Venue(_)) | (Venue(_), Venue(_)) | (Recorder(_), Gateway(_)) => false,
        }
    }

    /// What `reader` may see of `source`'s log: of the committed stream what is promised, else what is there.
    fn offered(&self, reader: NodeId, source: NodeId) -> u64 {
        match (source, reader) {
            (NodeId::Gateway(n), _) => self.gateways[n].log.published(),
            (NodeId::Venue(n), _) => self.venues[n].log.published(),
            (NodeId::Recorder(n), NodeId::Recorder(_)) => self.recorders[n].log.published(),
            (NodeId::Recorder(n), _) => self.recorders[n].log.durable(),
        }
    }

    fn link_index(&self, reader: NodeId, source: NodeId) -> usize {
        let nodes = self.gateways.len() + self.venues.len() + self.recorders.len();
        self.node_index(reader) * nodes + self.node_index(source)
    }

    /// What `reader` has of `source`'s log.
    pub(super) fn received(&self, reader: NodeId, source: NodeId) -> u64 {
        self.links[self.link_index(reader, source)].received()
    }

    /// Entries kept aside by all links of `reader`.
    pub(super) fn ahead_len(&self, reader: NodeId) -> usize {
        let sources = self.nodes().into_iter().filter(|&source| Self::reads(reader, source));
        sources.map(|source| self.links[self.link_index(reader, source)].ahead_len()).sum()
    }

    /// A process that starts reads `source` from `from`.
    pub(super) fn open_link(&mut self, reader: NodeId, source: NodeId, from: u64) {
        let index = self.link_index(reader, source);
        let offered = self.offered(reader, source);
        self.links[index].open(from, offered.max(from));
        self.ask(source, reader, 10 * US);
    }

    /// Sends what is new in `source`'s log to all its readers.
    pub(super) fn publish(&mut self, source: NodeId) {
        for reader in self.nodes() {
            if !Self::reads(reader, source) || !self.process(reader).up {
                continue;
            }
            let (index, offered) = (self.link_index(reader, source), self.offered(reader, source));
            let sent = self.links[index].sent;
            if sent < offered {
                self.links[index].sent = offered;
                self.send(source, reader, sent, offered);
                self.ask(source, reader, ASK_AGAIN_NS);
            }
        }
    }

    fn send(&mut self, source: NodeId, reader: NodeId, from: u64, to: u64) {
        let faults = &self.scenario.faults;
        let (lost, twice, slow) = (faults.lost_permille, faults.duplicated_permille, faults.slow_permille);
        let life = self.process(reader).life;
        let copies = if self.random.chance(twice) { 2 } else { 1 };
        for _ in 0..copies {
            if self.random.chance(lost) {
                continue;
            }
            let most = if self.random.chance(slow) { 2 * MS } else { 60 * US };
            let at_ns = self.now_ns + self.random.between(5 * US, most);
            self.queue.push(at_ns, Action::Message { source, reader, life, from, to });
        }
    }

    /// Starts the timer that asks for what is missing.
    fn ask(&mut self, source: NodeId, reader: NodeId, after_ns: u64) {
        let index = self.link_index(reader, source);
        if !self.links[index].asking {
            self.links[index].asking = true;
            let life = self.process(reader).life;
            self.queue.push(self.now_ns + after_ns, Action::Ask { source, reader, life });
        }
    }

    pub(super) fn on_ask(&mut self, source: NodeId, reader: NodeId, life: u32) {
        if self.process(reader).life != life || !self.process(reader).up {
            return;
        }
        let (index, offered) = (self.link_index(reader, source), self.offered(reader, source));
        self.links[index].asking = false;
        let Some((from, to)) = self.links[index].missing(offered) else { return };
        if !self.process(reader).stopped && self.links[index].cut_until <= self.now_ns {
            self.send(source, reader, from, to);
        }
        self.ask(source, reader, ASK_AGAIN_NS);
    }

    pub(super) fn on_message(&mut self, source: NodeId, reader: NodeId, life: u32, from: u64, to: u64) {
        let index = self.link_index(reader, source);
        // What was sent of a log that was wiped meanwhile is void.
        let to = to.min(self.offered(reader, source));
        // A stopped process reads nothing; what the network cannot keep for it is lost.
        let passes = from < to && self.runs(reader, life) && self.links[index].cut_until <= self.now_ns;
        if passes && self.links[index].on_message(from, to) {
            self.schedule(reader);
        }
    }

    /// A duty cycle, soon.
    pub(super) fn schedule(&mut self, node: NodeId) {
        let pause_ns = self.random.between(US, 15 * US);
        self.schedule_after(node, pause_ns);
    }

    pub(super) fn schedule_after(&mut self, node: NodeId, pause_ns: u64) {
        let at_ns = self.now_ns + pause_ns;
        let process = self.process(node);
        if process.up && !process.step_due {
            process.step_due = true;
            let life = process.life;
            self.queue.push(at_ns, Action::Step { node, life });
        }
    }
}
