//! One database server: a processor, the disk of its log, row locks, and how far its copy of the database is.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use crate::check::Number;
use crate::item::{Item, Written};
use crate::locks::{Holder, Locks};
use crate::network::Site;
use crate::pipe::Pipe;
use crate::processor::Processor;
use crate::queue::Nanos;

/// Log throughput (paper section 4.1).
const DISK_BYTES_PER_SECOND: u64 = 40_000_000;

/// What a processor works on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Job {
    /// Executes a transaction.
    Execute(Holder),
    /// Applies an update from another site.
    Apply(u64),
}

/// A transaction that has been executed and asks to commit, or has passed.
#[derive(Debug)]
pub(crate) struct Executed {
    pub(crate) holder: Holder,
    pub(crate) site: Site,
    pub(crate) number: Number,
    pub(crate) attempt: u32,
    pub(crate) snapshot: u64,
    pub(crate) writes: Rc<[Written]>,
    /// Processor time that it takes each other site, ns.
    pub(crate) apply_work: Nanos,
}

/// Items locked for these writes: additions lock nothing.
pub(crate) fn locked(writes: &[Written]) -> impl Iterator<Item = Item> + Clone + '_ {
    writes.iter().filter(|written| !written.adds).map(|written| written.item)
}

/// A server.
pub(crate) struct Server {
    pub(crate) processor: Processor<Job>,
    /// Of the last question for the processor's next end; older answers are void.
    pub(crate) asked: u64,
    pub(crate) disk: Pipe,
    pub(crate) locks: Locks,
    /// What new transactions see: everything up to this version, and nothing above.
    pub(crate) visible: u64,
    /// All versions up to this one are known here to be stable.
    pub(crate) stable: u64,
    installed: BTreeSet<u64>,
    pub(crate) installing: BTreeMap<u64, Rc<Executed>>,
    /// Readers to be answered when this version is stable.
    pub(crate) readers: BTreeSet<(u64, Holder)>,
    /// Processor time used before the measurement began.
    pub(crate) busy_before: Nanos,
}

impl Server {
    pub(crate) fn new() -> Self {
        Self {
            processor: Processor::new(),
            asked: 0,
            disk: Pipe::new(DISK_BYTES_PER_SECOND),
            locks: Locks::default(),
            visible: 0,
            stable: 0,
            installed: BTreeSet::new(),
            installing: BTreeMap::new(),
            readers: BTreeSet::new(),
            busy_before: 0,
        }
    }

    /// A version is in the database; it is seen when all before it are too (the paper's figure 2, line 57, lets a later one be seen
    /// first). Gives the versions that are seen now, as a range.
    pub(crate) fn install(&mut self, version: u64) -> std::ops::RangeInclusive<u64> {
        let first = self.visible + 1;
        self.installed.insert(version);
        while self.installed.remove(&(self.visible + 1)) {
            self.visible += 1;
        }
        first..=self.visible
    }

    /// Readers that can be answered now.
    pub(crate) fn served_readers(&mut self) -> Vec<Holder> {
        let later = self.readers.split_off(&(self.stable + 1, 0));
        std::mem::replace(&mut self.readers, later).into_iter().map(|(_, holder)| holder).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_seen_when_all_before_it_are_installed() {
        let mut server = Server::new();
        assert!(server.install(2).is_empty());
        assert_eq!(server.visible, 0);
        assert_eq!(server.install(1), 1..=2);
        assert_eq!(server.visible, 2);
    }

    #[test]
    fn readers_wait_for_their_version() {
        let mut server = Server::new();
        server.readers.extend([(1, 10), (2, 11), (3, 12)]);
        server.stable = 2;
        assert_eq!(server.served_readers(), [10, 11]);
        assert_eq!(server.served_readers(), []);
    }
}
