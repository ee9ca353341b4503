//! A cluster's replicated log, as far as time goes: the leader and its disk, the others and theirs, a majority, in order.
//!
//! Nobody fails here, so the first server of a cluster leads for ever. The shipped log and its failures have simulations
//! of their own.

use std::collections::BTreeMap;

use pares_wice::{Body, LogEntry};

use super::{Event, World};
use crate::network::{Site, side};
use crate::setting::SITES_PER_SIDE;

/// What an entry has besides what was written, bytes.
const ENTRY_BYTES: u64 = 40;
const MAJORITY: usize = SITES_PER_SIDE / 2 + 1;

#[derive(Clone, Copy, Debug)]
pub(crate) enum Message {
    /// Leader to others: the next entry.
    Append(u64),
    /// Back: it is on disk.
    Appended(u64),
    /// Leader to others: a majority has it.
    Committed(u64),
}

/// An entry that not all members have been given yet.
struct Slot {
    entry: LogEntry,
    /// Disks it is on.
    written: usize,
    /// Members it was given to.
    given: usize,
}

/// One cluster's log.
#[derive(Default)]
pub(super) struct ClusterLog {
    slots: BTreeMap<u64, Slot>,
    appended: u64,
    committed: u64,
}

/// Who leads the log of `site`'s cluster.
pub(super) fn leader(site: Site) -> Site {
    side(site) * SITES_PER_SIDE
}

impl World {
    pub(super) fn entry_bytes(&self, body: Option<&Body>) -> u64 {
        match body {
            Some(Body::Update { .. }) => ENTRY_BYTES + u64::from(self.setting.write_set_bytes),
            Some(Body::Configure(_)) | None => ENTRY_BYTES,
        }
    }

    fn log(&mut self, site: Site) -> &mut ClusterLog {
        &mut self.wice().logs[side(site)]
    }

    fn bytes_of(&mut self, site: Site, index: u64) -> u64 {
        let body = match &self.log(site).slots[&index].entry {
            LogEntry::Stream { entry, .. } => Some(entry.body.clone()),
            LogEntry::Fence(_)
            | LogEntry::WitnessedFence(_)
            | LogEntry::Discard { .. }
            | LogEntry::Adopt { .. } => None,
        };
        self.entry_bytes(body.as_ref())
    }

    pub(super) fn propose(&mut self, site: Site, entry: LogEntry) {
        assert_eq!(site, leader(site), "only a delegate proposes");
        let log = self.log(site);
        log.appended += 1;
        let index = log.appended;
        log.slots.insert(index, Slot { entry, written: 0, given: 0 });
        let bytes = self.bytes_of(site, index);
        for to in (site + 1)..(site + SITES_PER_SIDE) {
            self.send(site, to, bytes, super::Message::Log(Message::Append(index)));
        }
        self.write_entry(site, index);
    }

    fn write_entry(&mut self, site: Site, index: u64) {
        let (now, bytes) = (self.now(), self.bytes_of(site, index));
        let at = self.servers[site].disk.take(now, bytes);
        self.queue.push(at, Event::EntryLogged { site, index });
    }

    pub(super) fn on_entry_logged(&mut self, site: Site, index: u64) {
        match leader(site) {
            leader if leader == site => self.on_appended(site, index),
            leader => self.send(site, leader, ENTRY_BYTES, super::Message::Log(Message::Appended(index))),
        }
    }

    pub(super) fn on_log_message(&mut self, from: Site, to: Site, message: Message) {
        match message {
            Message::Append(index) => self.write_entry(to, index),
            Message::Appended(index) => {
                debug_assert_eq!(leader(from), to, "members answer their leader");
                self.on_appended(to, index);
            }
            Message::Committed(index) => self.give_entry(to, index),
        }
    }

    fn on_appended(&mut self, leader: Site, index: u64) {
        let log = self.log(leader);
        if let Some(slot) = log.slots.get_mut(&index) {
            slot.written += 1;
        }
        while self.log(leader).next_is_safe() {
            let log = self.log(leader);
            log.committed += 1;
            let index = log.committed;
            for to in (leader + 1)..(leader + SITES_PER_SIDE) {
                self.send(leader, to, ENTRY_BYTES, super::Message::Log(Message::Committed(index)));
            }
            self.give_entry(leader, index);
        }
    }

    fn give_entry(&mut self, site: Site, index: u64) {
        let log = self.log(site);
        let slot = log.slots.get_mut(&index).expect("kept until all have it");
        slot.given += 1;
        let entry = slot.entry.clone();
        // A slot that is not yet on every disk is still asked for its size.
        if slot.given == SITES_PER_SIDE && slot.written == SITES_PER_SIDE {
            log.slots.remove(&index);
        }
        self.on_log_committed(site, entry);
    }
}

impl ClusterLog {
    fn next_is_safe(&self) -> bool {
        self.slots.get(&(self.committed + 1)).is_some_and(|slot| slot.written >= MAJORITY)
    }
}
