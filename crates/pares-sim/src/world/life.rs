//! Birth and death of processes, and of epochs.

use pares_sequencer::Sequencer;
use pares_types::{Epoch, Position, VenueId};

use crate::Broken;
use crate::bug::Bug;
use crate::gateway::{GatewayNode, Recovery};
use crate::queue::Action;
use crate::record::NodeId;
use crate::recorder::{self, RecorderNode};
use crate::scenario::{MS, US};
use crate::surroundings::Join;
use crate::venue::VenueNode;

use super::{World, shard_id};

impl World<'_> {
    /// Starts a dead process: it finds its log and reads on.
    pub(super) fn start(&mut self, node: NodeId) -> Result<(), Broken> {
        // A poisoned log is refused until it is cut, a lost one is not begun anew in a running system.
        if self.process(node).up || self.restarting || self.is_out_of_use(node) {
            return Ok(());
        }
        if let NodeId::Recorder(n) = node
            && !self.make_whole(n)?
        {
            let life = self.process(node).life;
            self.queue.push(self.now_ns + MS, Action::Start { node, life });
            return Ok(());
        }
        self.process(node).up = true;
        match node {
            NodeId::Gateway(n) => self.start_gateway(n),
            NodeId::Venue(n) => self.start_venue(n),
            NodeId::Recorder(n) => self.start_recorder(n),
        }
        self.publish(node);
        self.schedule(node);
        Ok(())
    }

    fn start_gateway(&mut self, own: usize) {
        self.note("gateway {} starts", &[own as u64]);
        self.gateways[own].log.reopen();
        let recorders: Vec<_> = self.recorders.iter().map(|host| &host.log).collect();
        let pairs = self.instruments.iter().enumerate();
        let instruments =
            pairs.flat_map(|(shard, list)| list.iter().map(move |one| (one.id, shard_id(shard))));
        let node = GatewayNode::recover(&Recovery {
            config: self.gateway_config(own),
            instruments: instruments.collect(),
            shards: self.scenario.shards,
            quorum: self.quorum_of_gateways(),
            gateways: self.gateways.len(),
            own: &self.gateways[own].log,
            recorders: &recorders,
            bug: self.scenario.bug,
        });
        for (n, &cursor) in node.committed.cursors.clone().iter().enumerate() {
            self.open_link(NodeId::Gateway(own), NodeId::Recorder(n), cursor);
        }
        for n in (0..self.gateways.len()).filter(|&n| n != own) {
            self.open_link(NodeId::Gateway(own), NodeId::Gateway(n), 0);
        }
        self.gateways[own].node = Some(node);
    }

    fn quorum_of_gateways(&self) -> usize {
        if self.scenario.bug == Some(Bug::AnswerBeforeQuorum) { 1 } else { self.scenario.quorum }
    }

    fn start_venue(&mut self, own: usize) {
        self.note("venue {} starts", &[own as u64]);
        self.venues[own].log.reopen();
        let unbounded = self.scenario.bug == Some(Bug::ReadWithoutBound);
        let node = VenueNode::join(&Join {
            naive: own % 2 == 1,
            // Some hand a checkpoint out in many pieces, some in one.
            piece_bytes: if own.is_multiple_of(2) { 512 } else { 16 << 10 },
            venue: VenueId(u16::try_from(own).expect("few venues")),
            venues: u16::try_from(self.scenario.venues).expect("few venues"),
            shards: (0..self.scenario.shards).map(shard_id).collect(),
            instruments: &self.instruments,
            windows: &self.windows,
            answered: self.gateways.iter().map(|host| host.answered).collect(),
            checkpoints: self.recorders.iter().map(|host| host.checkpoints.as_slice()).collect(),
            quorum: self.scenario.quorum,
            checkpoint_every: self.scenario.checkpoint_every,
            poison: self.poison(),
            build: self.venues[own].build,
            suspect: self.suspect_of(own),
            pending_max: if unbounded { usize::MAX } else { self.pending_max() },
            window: self.scenario.window,
            bug: self
                .scenario
                .bug
                .filter(|bug| own == 0 || !matches!(bug, Bug::SwallowDecision | Bug::ExecuteWrongly)),
        });
        for (n, &cursor) in node.cursors.clone().iter().enumerate() {
            self.open_link(NodeId::Venue(own), NodeId::Gateway(n), cursor);
        }
        for (n, &cursor) in node.committed.cursors.clone().iter().enumerate() {
            self.open_link(NodeId::Venue(own), NodeId::Recorder(n), cursor);
        }
        self.venues[own].node = Some(node);
    }

    fn start_recorder(&mut self, own: usize) {
        self.note("recorder {} starts", &[own as u64]);
        let (shards, venues, recorders) = (self.scenario.shards, self.venues.len(), self.recorders.len());
        let bug = self.scenario.bug;
        let host = &mut self.recorders[own];
        host.node = Some(RecorderNode::open(&host.log, self.epoch, shards, venues, recorders, bug));
        for n in 0..venues {
            self.open_link(NodeId::Recorder(own), NodeId::Venue(n), 0);
        }
        for n in (0..recorders).filter(|&n| n != own) {
            self.open_link(NodeId::Recorder(own), NodeId::Recorder(n), 0);
        }
    }

    /// Ends a process: its memory is gone, its log stays as far as it was published.
    pub(super) fn kill(&mut self, node: NodeId) {
        let process = self.process(node);
        if !process.up {
            process.life += 1; // whatever start was planned is void
            return;
        }
        let life = process.life + 1;
        *process = super::Process { life, ..super::Process::default() };
        match node {
            NodeId::Gateway(n) => {
                self.note("gateway {} dies", &[n as u64]);
                self.gateways[n].log.process_died(&mut self.random);
                self.tear(node);
                self.gateways[n].node = None;
                self.gateways[n].wound = false;
                self.break_sessions_of(n);
            }
            NodeId::Venue(n) => {
                self.note("venue {} dies", &[n as u64]);
                self.venues[n].log.process_died(&mut self.random);
                self.tear(node);
                let node = self.venues[n].node.take().expect("a process that is up has its memory");
                self.counts.add(node.counts);
            }
            NodeId::Recorder(n) => {
                self.note("recorder {} dies", &[n as u64]);
                self.recorders[n].log.process_died(&mut self.random);
                self.tear(node);
                self.recorders[n].node = None;
            }
        }
    }

    /// SIGSTOP, and SIGCONT later.
    pub(super) fn stop(&mut self, node: NodeId, for_ns: u64) {
        let at_ns = self.now_ns + for_ns;
        let index = self.node_index(node) as u64;
        let process = self.process(node);
        process.stopped = true;
        let life = process.life;
        self.note("process {} stops for {} us", &[index, for_ns / US]);
        self.queue.push(at_ns, Action::Resume { node, life });
    }

    pub(super) fn resume(&mut self, node: NodeId, life: u32) -> Result<(), Broken> {
        let process = self.process(node);
        if process.life != life || !process.stopped {
            return Ok(());
        }
        process.stopped = false;
        let unfinished = std::mem::take(&mut process.unfinished);
        let index = self.node_index(node) as u64;
        self.note("process {} goes on", &[index]);
        if unfinished {
            self.finish(node)?;
        }
        self.schedule(node);
        Ok(())
    }

    /// Everything dies; with `power` also what was not synced.
    pub(super) fn take_down(&mut self, power: bool) -> Result<(), Broken> {
        for node in self.nodes() {
            // Some are in the middle of a cycle.
            let process = self.process(node);
            if process.up && !process.stopped && self.random.chance(500) {
                self.step(node)?;
            }
        }
        for node in self.nodes() {
            self.kill(node);
        }
        if power {
            self.note("power fails", &[]);
            self.gateways.iter_mut().for_each(|host| host.log.power_failed(&mut self.random));
            self.venues.iter_mut().for_each(|host| host.log.power_failed(&mut self.random));
            self.recorders.iter_mut().for_each(|host| host.log.power_failed(&mut self.random));
            self.nodes().into_iter().for_each(|node| self.tear(node));
        }
        self.cut_poisoned();
        self.restarting = true;
        let at_ns = self.now_ns + self.random.between(100 * US, 2 * MS);
        self.queue.push(at_ns, Action::BeginEpoch);
        self.check_answered_is_kept()
    }

    /// What `pares_node::epoch` does before any node runs: what no recorder has is void.
    pub(super) fn begin_epoch(&mut self) -> Result<(), Broken> {
        self.restarting = false;
        let shards = self.scenario.shards;
        let mut first = vec![Position(0); shards];
        let hasty = self.scenario.bug == Some(Bug::EpochFromPublished);
        if !hasty {
            self.make_all_whole()?;
        }
        for host in &self.recorders {
            // Opening a log keeps whole records that were never published; they count.
            let (next, met) = recorder::recorded(&host.log, host.log.published(), shards);
            assert!(met <= self.epoch, "nobody records for an epoch to come");
            first.iter_mut().zip(next).for_each(|(first, next)| *first = next.max(*first));
        }
        self.epoch = Epoch(self.epoch.0 + 1);
        self.summary.epochs += 1;
        for (shard, &first) in first.iter().enumerate() {
            self.windows[shard] = self.windows[shard].begin_epoch(self.epoch, first);
            assert_eq!(self.windows[shard].recorded(), first, "all before a window's first is recorded");
            self.ledger.void_from(shard, first);
            self.epoch_first[shard] = first;
            self.note("epoch {}: shard {} goes on at {}", &[self.epoch.0.into(), shard as u64, first.0]);
        }
        self.gateways.iter_mut().for_each(|host| host.answered = 0);
        for node in self.nodes() {
            let at_ns = self.now_ns + self.random.below(MS);
            let life = self.process(node).life;
            self.queue.push(at_ns, Action::Start { node, life });
        }
        Ok(())
    }
}
