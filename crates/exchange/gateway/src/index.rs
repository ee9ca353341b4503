//! Where in a table an entry lies, by a hash of it.
//!
//! Names come by the million: a map that owns its keys would take three times the memory, and stall as it grows. This one holds 8 bytes
//! for each entry, its number and half of its hash, and asks the table only where that half is the right one: a look into the table is a
//! miss of the processor's caches. hashbrown's `HashTable` does the same, but leaves marks where entries were taken out, and once there are
//! too many of them stalls for as long as it takes to place all others again.

/// An open-addressing index of entries, linear probing, at most three quarters full.
pub(crate) struct Index {
    /// An entry's number plus one below, the lower half of its hash above; 0 is empty.
    slots: Vec<u64>,
    used: usize,
}

/// What a slot holds of an entry.
fn slot_of(index: u32, hash: u64) -> u64 {
    hash << 32 | u64::from(index + 1)
}

/// The entry in a slot; `None` if it is empty.
fn entry_in(slot: u64) -> Option<u32> {
    (slot as u32).checked_sub(1)
}

/// As much of the entry's hash as its slot holds: enough to place it in the largest index.
fn hash_in(slot: u64) -> usize {
    (slot >> 32) as usize
}

impl Index {
    /// Room for so many entries without growing.
    pub(crate) fn new(entries_max: usize) -> Self {
        Self { slots: vec![0; (entries_max / 3 * 4 + 8).next_power_of_two()], used: 0 }
    }

    /// The entry with that hash for which `is_it` holds.
    pub(crate) fn find(&self, hash: u64, is_it: impl Fn(u32) -> bool) -> Option<u32> {
        self.place(hash, is_it).and_then(|at| entry_in(self.slots[at]))
    }

    fn place(&self, hash: u64, is_it: impl Fn(u32) -> bool) -> Option<usize> {
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        loop {
            let slot = self.slots[at];
            let index = entry_in(slot)?;
            if hash_in(slot) == (hash as u32) as usize && is_it(index) {
                return Some(at);
            }
            at = (at + 1) & mask;
        }
    }

    /// Adds an entry that is not there.
    pub(crate) fn insert(&mut self, index: u32, hash: u64) {
        if (self.used + 1) * 4 > self.slots.len() * 3 {
            let doubled = vec![0; self.slots.len() * 2];
            let old = std::mem::replace(&mut self.slots, doubled);
            old.into_iter().filter(|slot| *slot != 0).for_each(|slot| self.put(slot));
        }
        self.put(slot_of(index, hash));
        self.used += 1;
    }

    fn put(&mut self, slot: u64) {
        let mask = self.slots.len() - 1;
        let mut at = hash_in(slot) & mask;
        while self.slots[at] != 0 {
            at = (at + 1) & mask;
        }
        self.slots[at] = slot;
    }

    /// Takes an entry out, if it is there. What was pushed past its slot moves back, so that no search ends too early.
    pub(crate) fn remove(&mut self, index: u32, hash: u64) {
        let Some(mut hole) = self.place(hash, |found| found == index) else { return };
        let mask = self.slots.len() - 1;
        let mut at = hole;
        loop {
            at = (at + 1) & mask;
            let next = self.slots[at];
            if next == 0 {
                break;
            }
            let home = hash_in(next) & mask;
            if at.wrapping_sub(home) & mask >= at.wrapping_sub(hole) & mask {
                self.slots[hole] = next;
                hole = at;
            }
        }
        self.slots[hole] = 0;
        self.used -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        /// Hashes that meet often, and wrap at the end.
        #[test]
        fn finds_what_a_set_holds(steps in prop::collection::vec((0_u32..60, any::<bool>()), 1..400), spread in 1_u64..9) {
            let hash = |index: u32| u64::from(index) / spread + 55;
            let (mut index, mut set) = (Index::new(4), BTreeSet::new());
            for (entry, adds) in steps {
                match (adds, set.contains(&entry)) {
                    (true, false) => index.insert(entry, hash(entry)),
                    (false, _) => index.remove(entry, hash(entry)),
                    (true, true) => continue,
                }
                if adds { set.insert(entry); } else { set.remove(&entry); }
                for one in 0..60 {
                    prop_assert_eq!(index.find(hash(one), |found| found == one).is_some(), set.contains(&one));
                }
            }
        }
    }
}
