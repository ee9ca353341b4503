//! Records that rot on the device, or lie where another should be, and the repair of the log they lie in.
//!
//! Both are found by whoever reads them: a record's checksum covers its place. A reader stops there, and has what follows from
//! the other recorders, until another log takes the damaged one's place. Its recorder makes that when it starts; a running one
//! does not read its own log, so the operator, who hears of it from the readers, has it start again.

use std::rc::Rc;

use pares_sequencer::Sequencer;
use pares_types::{Command, Position, Quantity};

use crate::Broken;
use crate::bug::Bug;
use crate::queue::Action;
use crate::record::{NodeId, Record, RecorderEntry};
use crate::repair::{Sources, repaired};
use crate::scenario::{Durability, MS};

use super::{World, checks};

impl World<'_> {
    /// A record of a recorder's log becomes unreadable, if as many others as an answer needs have all that it had.
    pub(super) fn rot(&mut self, node: NodeId) {
        let NodeId::Recorder(own) = node else { return };
        let log = &self.recorders[own].log;
        let disk = self.scenario.durability == Durability::Disk;
        let stable = if disk { log.synced() } else { log.published() };
        let (at, other) = (self.random.below(stable), self.random.below(stable));
        let misdirected = self.random.chance(500);
        let noticed_ns = self.random.between(3 * MS, 12 * MS);
        if stable == 0 || self.restarting || !log.is_whole() || !self.can_do_without(own) {
            return;
        }
        let log = &mut self.recorders[own].log;
        let lie = if misdirected && at != other { log.get(other).clone() } else { rotten(log.get(at)) };
        log.damage(at, lie, self.scenario.bug != Some(Bug::BelieveDamaged));
        let template = match misdirected {
            true => "recorder {}: another record lies at offset {}",
            false => "recorder {}: the record at offset {} rots",
        };
        self.note(template, &[own as u64, at]);
        self.summary.ills.damaged += 1;
        self.out_of_action(node, noticed_ns + 5 * MS);
        let life = self.process(node).life;
        self.queue.push(self.now_ns + noticed_ns, Action::Noticed { recorder: own, life });
    }

    /// The operator starts a recorder again whose log is damaged.
    pub(super) fn on_noticed(&mut self, recorder: usize, life: u32) {
        let node = NodeId::Recorder(recorder);
        if self.process(node).life == life && !self.recorders[recorder].log.is_whole() {
            self.crash(node);
        }
    }

    /// Opens a recorder's log, and makes it anew if it is damaged. Says whether it can be used.
    ///
    /// # Errors
    /// If the new log is not the history, or what was answered is not kept.
    pub(super) fn make_whole(&mut self, own: usize) -> Result<bool, Broken> {
        let promised = self.recorders[own].log.durable();
        self.recorders[own].log.reopen();
        if self.recorders[own].log.is_whole() {
            return Ok(true);
        }
        let others = self.recorders.iter().enumerate().filter(|(n, _)| *n != own);
        let peers: Vec<_> = others.map(|(_, host)| &host.log).collect();
        let recorded: Vec<Position> = self.windows.iter().map(Sequencer::recorded).collect();
        let sources = Sources {
            own: &self.recorders[own].log,
            promised,
            peers,
            venues: self.venues.iter().map(|host| &host.log).collect(),
            life: self.epoch,
            recorded: &recorded,
        };
        let Ok(new) = repaired(&sources, self.scenario.bug) else {
            self.note("recorder {} cannot repair its log", &[own as u64]);
            return Ok(false);
        };
        self.note("recorder {} has repaired its log", &[own as u64]);
        self.summary.ills.repaired += 1;
        let shards = self.scenario.shards;
        let host = &mut self.recorders[own];
        host.log = new;
        host.safe = checks::Safe::new(shards);
        self.place_checkpoints(own);
        for reader in self.nodes() {
            self.forget_log(reader, own);
        }
        let host = &self.recorders[own];
        for entry in host.log.range(0, host.log.end()) {
            if let RecorderEntry::Result(record) = entry {
                self.ledger.on_record(record)?;
            }
        }
        self.check_answered_is_kept()?;
        Ok(true)
    }

    /// Its checkpoints, each with where replay starts in the new log.
    fn place_checkpoints(&mut self, own: usize) {
        let host = &mut self.recorders[own];
        let mut next = vec![Position(0); self.scenario.shards];
        let mut places = std::collections::BTreeMap::new();
        for (offset, entry) in (0..).zip(host.log.range(0, host.log.end())) {
            if let RecorderEntry::Result(record) = entry {
                places.insert((record.shard(), record.position), offset);
                next[usize::from(record.shard().0)] = record.position.next();
            }
        }
        let end = host.log.end();
        host.checkpoints.retain_mut(|stored| {
            let at_end = (next[usize::from(stored.shard.0)] == stored.position).then_some(end);
            let from = places.get(&(stored.shard, stored.position)).copied().or(at_end);
            stored.replay_from = from.unwrap_or(0);
            from.is_some()
        });
    }

    /// Everything is down and the next epoch about to begin: the supervisor opens all logs.
    ///
    /// # Errors
    /// If one cannot be repaired: here others always have what it had.
    pub(super) fn make_all_whole(&mut self) -> Result<(), Broken> {
        for own in 0..self.recorders.len() {
            if !self.make_whole(own)? {
                let what = format!("recorder {own} cannot repair its log with all the others' at hand");
                return Err(Broken { invariant: "I2 durability", what });
            }
        }
        Ok(())
    }
}

/// What a reader would see that did not look at checksums.
fn rotten(entry: &RecorderEntry) -> RecorderEntry {
    match entry {
        RecorderEntry::Result(record) => {
            let mut rotten = Record::clone(record);
            match &mut rotten.request.command {
                Command::Enter(order) => order.quantity = Quantity(order.quantity.0 + 1),
                _ => rotten.outcome.executed = Quantity(rotten.outcome.executed.0 + 1),
            }
            RecorderEntry::Result(Rc::new(rotten))
        }
        RecorderEntry::CheckpointStored { shard, position } => {
            RecorderEntry::CheckpointStored { shard: *shard, position: Position(position.0 + 1) }
        }
    }
}
