//! Duty cycles: poll, step the rules, flush; and what can come between the last two.

use pares_types::{Position, ShardId};

use crate::Broken;
use crate::bug::Bug;
use crate::gateway::Now;
use crate::log::Log;
use crate::queue::Action;
use crate::record::{NodeId, RecorderEntry, StoredCheckpoint, VenueEntry};
use crate::scenario::{Durability, MS, US};
use crate::surroundings::Around;

use super::World;
use super::faults::Trap;

/// The longest that one of the slow syncs takes which happen on any disk.
pub(super) const SLOW_SYNC_NS: u64 = 4 * MS;

impl World<'_> {
    pub(super) fn on_step(&mut self, node: NodeId, life: u32) -> Result<(), Broken> {
        let process = self.process(node);
        if process.life != life {
            return Ok(());
        }
        process.step_due = false;
        if !process.up || process.stopped {
            return Ok(());
        }
        let worked = self.step(node)?;
        if !self.process(node).up {
            return Ok(()); // its engine took it along
        }
        match self.process(node).trap.take_if(|_| worked) {
            Some(Trap::Crash) => self.crash(node),
            Some(Trap::Pause { for_ns }) => {
                self.process(node).unfinished = true;
                self.stop(node, for_ns);
            }
            None => self.finish(node)?,
        }
        Ok(())
    }

    /// The first part of a duty cycle; says whether anything lies unpublished after it.
    pub(super) fn step(&mut self, node: NodeId) -> Result<bool, Broken> {
        match node {
            NodeId::Gateway(n) => self.step_gateway(n),
            NodeId::Venue(n) => self.step_venue(n),
            NodeId::Recorder(n) => self.step_recorder(n),
        }
    }

    fn step_gateway(&mut self, own: usize) -> Result<bool, Broken> {
        let reader = NodeId::Gateway(own);
        let readable: Vec<u64> =
            (0..self.recorders.len()).map(|n| self.received(reader, NodeId::Recorder(n))).collect();
        let peers: Vec<u64> =
            (0..self.gateways.len()).map(|n| self.received(reader, NodeId::Gateway(n))).collect();
        let now = Now {
            now_ns: self.gateway_clock_ns(own),
            elapsed_ns: self.now_ns,
            ticks: self.ticks(),
            room: self.has_room(reader),
        };
        let mut log = std::mem::replace(&mut self.gateways[own].log, Log::new());
        let mut node = self.gateways[own].node.take().expect("a process that is up has its memory");
        let before = log.end();
        let others: Vec<_> = self.gateways.iter().map(|host| &host.log).zip(peers).collect();
        let recorders: Vec<_> = self.recorders.iter().map(|host| &host.log).collect();
        node.step(now, own, &mut log, &others, &recorders, &readable);
        for (shard, to) in node.recorded.drain(..) {
            pares_sequencer::Sequencer::raise_recorded(&mut self.windows[usize::from(shard.0)], to);
        }
        let worked = log.end() > log.published() || !node.outbox.is_empty();
        for offset in before..log.end() {
            let request = log.get(offset);
            let words =
                [own as u64, request.id.to_bits(), request.member.0.into(), request.client_order_id.0];
            self.trace.note(self.now_ns, "gateway {} takes in {id}: member {} request {}", &words);
        }
        (self.gateways[own].log, self.gateways[own].node) = (log, Some(node));
        self.check_gateway(own)?;
        let lost = self.gateways[own].node.as_ref().is_some_and(|node| node.lost);
        if lost {
            self.summary.ills.places_lost += 1;
            // It starts over, and finds the answer at another recorder.
            self.process(reader).trap = Some(Trap::Crash);
        }
        Ok(worked || lost)
    }

    fn step_venue(&mut self, own: usize) -> Result<bool, Broken> {
        let reader = NodeId::Venue(own);
        let readable: Vec<u64> =
            (0..self.recorders.len()).map(|n| self.received(reader, NodeId::Recorder(n))).collect();
        let inputs: Vec<u64> =
            (0..self.gateways.len()).map(|n| self.received(reader, NodeId::Gateway(n))).collect();
        let gateways: Vec<_> = self.gateways.iter().map(|host| &host.log).zip(inputs).collect();
        let recorders: Vec<_> = self.recorders.iter().map(|host| &host.log).collect();
        let answered: Vec<u64> = self.gateways.iter().map(|host| host.answered).collect();
        let checkpoints: Vec<_> = self.recorders.iter().map(|host| host.checkpoints.as_slice()).collect();
        let around = Around {
            now_ns: self.now_ns,
            room: self.has_room(reader),
            gateways: &gateways,
            answered: &answered,
            recorders: &recorders,
            readable: &readable,
            checkpoints: &checkpoints,
        };
        let (spared, rivals, away) = (self.spared(own), self.rivals(own), self.away(own));
        let host = &mut self.venues[own];
        let node = host.node.as_mut().expect("a process that is up has its memory");
        (node.engine.spared, node.rivals) = (spared, rivals);
        let before = host.log.end();
        let stepped = node.step(&mut host.log, &around);
        stepped.map_err(|what| Broken { invariant: "I1 agreement", what: format!("venue {own}: {what}") })?;
        for entry in self.venues[own].log.range(before, self.venues[own].log.end()) {
            if let VenueEntry::Result(record) = entry {
                let words =
                    [own as u64, record.shard().0.into(), record.position.0, record.request.id.to_bits()];
                self.trace.note(self.now_ns, "venue {} executes shard {} position {}: {id}", &words);
                self.check_void(record)?;
                self.ledger.on_record(record)?;
            }
        }
        self.check_venue(own)?;
        self.note_away(own, &away);
        if self.dies_of_engine(own) {
            return Ok(false);
        }
        Ok(self.venues[own].log.end() > self.venues[own].log.published())
    }

    fn step_recorder(&mut self, own: usize) -> Result<bool, Broken> {
        let reader = NodeId::Recorder(own);
        if self.recorders[own].node.as_ref().is_some_and(|node| node.syncing) {
            return Ok(false); // it waits for the disk; what comes meanwhile is the next batch
        }
        let inputs: Vec<u64> =
            (0..self.venues.len()).map(|n| self.received(reader, NodeId::Venue(n))).collect();
        let peers: Vec<u64> =
            (0..self.recorders.len()).map(|n| self.received(reader, NodeId::Recorder(n))).collect();
        let room = self.has_room(reader);
        let mut log = std::mem::replace(&mut self.recorders[own].log, Log::new());
        let mut node = self.recorders[own].node.take().expect("a process that is up has its memory");
        let before = log.end();
        let venues: Vec<_> = self.venues.iter().map(|host| &host.log).zip(inputs).collect();
        let others: Vec<_> = self.recorders.iter().map(|host| &host.log).zip(peers).collect();
        node.step((own, room), &mut log, &venues, &others);
        let halted = node.halted();
        (self.recorders[own].log, self.recorders[own].node) = (log, Some(node));
        if let Some((shard, divergence)) = halted {
            self.on_divergence(own, shard, divergence, before)?;
        }
        for entry in self.recorders[own].log.range(before, self.recorders[own].log.end()) {
            if let RecorderEntry::Result(record) = entry {
                let words =
                    [own as u64, record.shard().0.into(), record.position.0, record.request.id.to_bits()];
                self.trace.note(self.now_ns, "recorder {} takes shard {} position {}: {id}", &words);
                self.check_void(record)?;
                self.ledger.on_record(record)?;
            }
        }
        Ok(self.recorders[own].log.end() > self.recorders[own].log.published())
    }

    /// The end of a duty cycle: what it did becomes visible.
    pub(super) fn finish(&mut self, node: NodeId) -> Result<(), Broken> {
        match node {
            NodeId::Gateway(n) => self.finish_gateway(n),
            NodeId::Venue(n) => self.finish_venue(n),
            NodeId::Recorder(n) => self.finish_recorder(n),
        }
        Ok(())
    }

    fn finish_gateway(&mut self, own: usize) {
        let os = self.scenario.durability == Durability::Os;
        let host = &mut self.gateways[own];
        let node = host.node.as_mut().expect("a process that is up has its memory");
        host.log.publish();
        host.answered = node.gateway.answered_offset(host.log.published());
        let replies = std::mem::take(&mut node.outbox);
        let more = !node.inbox.is_empty();
        let undurable = host.log.durable() < host.log.published();
        let sync = undurable && !node.syncing && !os;
        node.syncing |= sync;
        if undurable && os {
            host.log.promise(host.log.published());
        }
        self.publish(NodeId::Gateway(own));
        if sync {
            self.sync(NodeId::Gateway(own));
        }
        for (session, reply) in replies {
            self.reply(session, reply);
        }
        if more || (undurable && os) {
            self.schedule(NodeId::Gateway(own));
        }
        self.wind(own);
    }

    /// Has the gateway step again when its clock says so.
    fn wind(&mut self, own: usize) {
        let host = &mut self.gateways[own];
        let node = host.node.as_ref().expect("a process that is up has its memory");
        let Some(due) = node.gateway.time_due() else { return };
        if self.ticks() && !std::mem::replace(&mut self.gateways[own].wound, true) {
            let life = self.gateways[own].process.life;
            let at_ns = self.tick_at_ns(own, due);
            self.queue.push(at_ns, Action::Tick { gateway: own, life });
        }
    }

    pub(super) fn on_tick(&mut self, own: usize, life: u32) {
        if self.gateways[own].process.life == life {
            self.gateways[own].wound = false;
            self.schedule(NodeId::Gateway(own));
        }
    }

    /// Whether clocks go: with nobody left who asks, a run comes to rest.
    fn ticks(&self) -> bool {
        !self.clients.iter().all(crate::client::Client::is_done)
    }

    fn finish_venue(&mut self, own: usize) {
        self.venues[own].log.publish();
        self.publish(NodeId::Venue(own));
        let node = self.venues[own].node.as_ref().expect("a process that is up has its memory");
        if node.restless() {
            self.schedule_after(NodeId::Venue(own), 100 * US);
        }
    }

    fn finish_recorder(&mut self, own: usize) {
        let os = self.scenario.durability == Durability::Os;
        let hasty = self.scenario.bug == Some(Bug::PromiseBeforeSync);
        let host = &mut self.recorders[own];
        let node = host.node.as_mut().expect("a process that is up has its memory");
        let appended = host.log.end() > host.log.published();
        host.log.publish();
        if os || hasty {
            host.log.promise(host.log.published());
        }
        let sync = appended && !os;
        node.syncing |= sync;
        self.publish(NodeId::Recorder(own));
        if sync {
            self.sync(NodeId::Recorder(own));
        }
        self.store_checkpoints(own);
    }

    /// Gives complete checkpoints to the thread that stores them, once all of the log is safe.
    fn store_checkpoints(&mut self, own: usize) {
        let hasty = self.scenario.bug == Some(Bug::CheckpointOfTheFuture);
        let host = &mut self.recorders[own];
        let node = host.node.as_mut().expect("a process that is up has its memory");
        if node.syncing && !hasty {
            return;
        }
        let life = host.process.life;
        for checkpoint in node.take_storable(hasty) {
            let at_ns = self.now_ns + self.random.between(10 * US, 500 * US);
            self.queue.push(at_ns, Action::Stored { recorder: own, life, checkpoint });
        }
    }

    /// Starts a sync of what is published: mostly some 100 us, now and then milliseconds.
    fn sync(&mut self, node: NodeId) {
        let most =
            if self.random.chance(self.scenario.faults.slow_sync_permille) { SLOW_SYNC_NS } else { 200 * US };
        let most = if self.is_slow(node) { 10 * MS } else { most };
        let at_ns = self.now_ns + self.random.between(30 * US, most);
        let life = self.process(node).life;
        let to = match node {
            NodeId::Gateway(n) => self.gateways[n].log.published(),
            NodeId::Venue(n) => self.venues[n].log.published(),
            NodeId::Recorder(n) => self.recorders[n].log.published(),
        };
        self.queue.push(at_ns, Action::Synced { node, life, to });
    }

    /// The device has it, whether or not the process still lives; a power failure has ended the life.
    pub(super) fn on_synced(&mut self, node: NodeId, life: u32, to: u64) -> Result<(), Broken> {
        if self.process(node).life != life {
            return Ok(());
        }
        if self.takes_sync_failure(node) {
            self.on_sync_failed(node, to);
            return Ok(());
        }
        match node {
            NodeId::Gateway(n) => {
                let host = &mut self.gateways[n];
                host.log.sync(to);
                host.log.promise(to);
                host.node.as_mut().expect("the same life").syncing = false;
            }
            NodeId::Recorder(n) => {
                let host = &mut self.recorders[n];
                host.log.sync(to);
                host.log.promise(to);
                host.node.as_mut().expect("the same life").syncing = false;
                self.publish(node);
                self.store_checkpoints(n);
            }
            NodeId::Venue(_) => {}
        }
        self.schedule(node);
        Ok(())
    }

    /// Checkpoints are stored beside the log, by a thread of their own: the log's own sync may still be under way.
    pub(super) fn on_stored(&mut self, recorder: usize, life: u32, checkpoint: StoredCheckpoint) {
        let room = self.has_room(NodeId::Recorder(recorder));
        let host = &mut self.recorders[recorder];
        if host.process.life != life || !room {
            return; // the venues take another
        }
        let (shard, position) = (checkpoint.shard, checkpoint.position);
        host.checkpoints.push(checkpoint);
        let of_shard = host.checkpoints.iter().filter(|stored| stored.shard == shard).count();
        if of_shard > 2 {
            let oldest = host.checkpoints.iter().position(|stored| stored.shard == shard);
            host.checkpoints.remove(oldest.expect("there are more than two"));
        }
        self.summary.checkpoints += 1;
        let words = [recorder as u64, shard.0.into(), position.0];
        self.note("recorder {} stores a checkpoint of shard {} at {}", &words);
        self.queue.push(self.now_ns + 10 * US, Action::Heard { recorder, life, shard, position });
    }

    /// The recorder tells its readers in a cycle of its own.
    pub(super) fn on_heard(
        &mut self,
        recorder: usize,
        life: u32,
        shard: ShardId,
        position: Position,
    ) -> Result<(), Broken> {
        let host = &mut self.recorders[recorder];
        if host.process.life != life {
            return Ok(());
        }
        let node = host.node.as_mut().expect("the same life");
        if node.syncing || host.process.stopped {
            self.queue.push(self.now_ns + 100 * US, Action::Heard { recorder, life, shard, position });
            return Ok(());
        }
        if !self.has_room(NodeId::Recorder(recorder)) {
            // Its process ends on that (`pares_node::recorder`): the notice is small, and the checkpoint is stored.
            self.crash(NodeId::Recorder(recorder));
            return Ok(());
        }
        let host = &mut self.recorders[recorder];
        let node = host.node.as_mut().expect("the same life");
        node.on_stored(&mut host.log, shard, position);
        self.finish(NodeId::Recorder(recorder))
    }
}
