//! A sender's log in memory: append-only, with the marks that tell what survives what.
//!
//! ```text
//!  0          synced        durable       published       end
//!  |------------|--------------|--------------|-------------|
//!  | survives a power failure  |              |             |
//!  |            | promised to  | survives the | may survive |
//!  |            | readers      | process      | the process |
//! ```
//! Of what lies unpublished a death keeps a prefix, whose last entry may be half written (torn): whoever opens the log
//! again cuts that. `durable <= synced` under the `disk` setting; under `os` a log promises what is published.

use std::collections::BTreeSet;

use crate::random::Random;

/// Entries and marks; an entry's offset is its index.
#[derive(Debug)]
pub(crate) struct Log<T> {
    entries: Vec<T>,
    published: u64,
    durable: u64,
    synced: u64,
    torn: bool,
    /// Offsets of which the device gives back something else.
    damaged: BTreeSet<u64>,
}

impl<T> Log<T> {
    pub(crate) fn new() -> Self {
        Self {
            entries: Vec::new(),
            published: 0,
            durable: 0,
            synced: 0,
            torn: false,
            damaged: BTreeSet::new(),
        }
    }

    /// Appends an entry, not readable yet; returns its offset.
    pub(crate) fn append(&mut self, entry: T) -> u64 {
        self.entries.push(entry);
        self.end() - 1
    }

    /// The offset of the next entry.
    pub(crate) fn end(&self) -> u64 {
        self.entries.len() as u64
    }

    /// What opening it would keep lies below this offset.
    pub(crate) fn kept(&self) -> u64 {
        self.end() - u64::from(self.torn)
    }

    /// Readable below this offset.
    pub(crate) fn published(&self) -> u64 {
        self.published
    }

    /// Promised to readers below this offset.
    pub(crate) fn durable(&self) -> u64 {
        self.durable
    }

    /// Safe from a power failure below this offset.
    pub(crate) fn synced(&self) -> u64 {
        self.synced
    }

    /// Makes all that was appended readable.
    pub(crate) fn publish(&mut self) {
        self.published = self.end();
    }

    /// Promises what is below `to`.
    pub(crate) fn promise(&mut self, to: u64) {
        self.durable = self.durable.max(to);
    }

    /// A sync of what was below `to` has come back.
    pub(crate) fn sync(&mut self, to: u64) {
        self.synced = self.synced.max(to);
    }

    pub(crate) fn get(&self, offset: u64) -> &T {
        &self.entries[offset as usize]
    }

    /// The entries from `from` up to `to`, exclusive.
    pub(crate) fn range(&self, from: u64, to: u64) -> &[T] {
        &self.entries[from as usize..to as usize]
    }

    /// From now on `lie` is read at `offset`; `detected` says whether readers notice.
    pub(crate) fn damage(&mut self, offset: u64, lie: T, detected: bool) {
        self.entries[offset as usize] = lie;
        if detected {
            self.damaged.insert(offset);
        }
    }

    pub(crate) fn is_damaged(&self, offset: u64) -> bool {
        self.damaged.contains(&offset)
    }

    pub(crate) fn is_whole(&self) -> bool {
        self.damaged.is_empty()
    }

    /// How far a reader comes that reads from `from` up to `to`, exclusive.
    pub(crate) fn whole_until(&self, from: u64, to: u64) -> u64 {
        self.damaged.range(from..).next().map_or(to, |&damaged| damaged.min(to))
    }

    /// Its process died: what was published stays, of the rest a prefix, as chance has it.
    pub(crate) fn process_died(&mut self, random: &mut Random) {
        let keep = random.between(self.published, self.end());
        self.entries.truncate(keep as usize);
    }

    /// The machine lost power: what was synced stays, of the rest a prefix, as chance has it.
    pub(crate) fn power_failed(&mut self, random: &mut Random) {
        let keep = random.between(self.synced, self.end());
        self.entries.truncate(keep as usize);
        (self.published, self.durable, self.torn) = (self.synced, self.synced, false);
    }

    /// The last entry is half written, if it was not published; says whether it is.
    pub(crate) fn tear(&mut self) -> bool {
        self.torn = self.end() > self.published;
        self.torn
    }

    /// All that is not known to be on the device is given up.
    pub(crate) fn cut_to_synced(&mut self) {
        self.entries.truncate(self.synced as usize);
        (self.published, self.durable, self.torn) = (self.synced, self.synced, false);
    }

    /// Its process opens it again: all that is there is synced, then readable.
    pub(crate) fn reopen(&mut self) {
        if std::mem::take(&mut self.torn) {
            assert!(self.end() > self.published, "what was published is whole");
            self.entries.pop();
        }
        let end = self.end();
        (self.published, self.durable, self.synced) = (end, end, end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_power_failure_takes_nothing_that_was_synced() {
        let mut log = Log::new();
        for n in 0..10 {
            log.append(n);
        }
        log.publish();
        log.sync(6);
        log.power_failed(&mut Random::new(3));
        assert!((6..=10).contains(&log.end()));
        assert_eq!(log.published(), 6);
    }

    #[test]
    fn a_torn_tail_is_cut_and_nothing_else() {
        let mut log = Log::new();
        log.append(1);
        log.publish();
        log.tear();
        log.reopen();
        assert_eq!(log.end(), 1);
        log.append(2);
        log.tear();
        log.reopen();
        assert_eq!(log.end(), 1);
    }

    #[test]
    fn a_crash_takes_nothing_that_was_published() {
        let mut log = Log::new();
        log.append(1);
        log.publish();
        log.append(2);
        log.process_died(&mut Random::new(3));
        log.reopen();
        assert_eq!(log.get(0), &1);
        assert_eq!(log.published(), log.end());
    }
}
