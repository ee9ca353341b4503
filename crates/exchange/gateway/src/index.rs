//! Where in a table an entry lies, by a hash of it.
//!
//! Names come by the million: a map that owns its keys would take three times the memory, and stall as it grows. This one holds 4 bytes
//! for each entry and asks the table for the rest.

/// An open-addressing index of entries, linear probing, at most three quarters full.
pub(crate) struct Index {
    /// Entry number plus one; 0 is empty.
    slots: Vec<u32>,
    used: usize,
}

impl Index {
    /// Room for so many entries without growing.
    pub(crate) fn new(entries_max: usize) -> Self {
        Self { slots: vec![0; (entries_max / 3 * 4 + 8).next_power_of_two()], used: 0 }
    }

    /// The entry with that hash for which `is_it` holds.
    pub(crate) fn find(&self, hash: u64, is_it: impl Fn(u32) -> bool) -> Option<u32> {
        self.place(hash, is_it).map(|at| self.slots[at] - 1)
    }

    fn place(&self, hash: u64, is_it: impl Fn(u32) -> bool) -> Option<usize> {
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        loop {
            let index = self.slots[at].checked_sub(1)?;
            if is_it(index) {
                return Some(at);
            }
            at = (at + 1) & mask;
        }
    }

    /// Adds an entry that is not there; `hash_of` gives the hash of any.
    pub(crate) fn insert(&mut self, index: u32, hash_of: impl Fn(u32) -> u64) {
        if (self.used + 1) * 4 > self.slots.len() * 3 {
            self.grow(&hash_of);
        }
        self.put(index, hash_of(index));
    }

    fn put(&mut self, index: u32, hash: u64) {
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        while self.slots[at] != 0 {
            at = (at + 1) & mask;
        }
        self.slots[at] = index + 1;
        self.used += 1;
    }

    fn grow(&mut self, hash_of: &impl Fn(u32) -> u64) {
        let doubled = vec![0; self.slots.len() * 2];
        let old = std::mem::replace(&mut self.slots, doubled);
        self.used = 0;
        for index in old.into_iter().filter_map(|slot| slot.checked_sub(1)) {
            self.put(index, hash_of(index));
        }
    }

    /// Takes an entry out, if it is there. What was pushed past its slot moves back, so that no search ends too early.
    pub(crate) fn remove(&mut self, index: u32, hash_of: impl Fn(u32) -> u64) {
        let Some(mut hole) = self.place(hash_of(index), |found| found == index) else { return };
        let mask = self.slots.len() - 1;
        let mut at = hole;
        loop {
            at = (at + 1) & mask;
            let Some(next) = self.slots[at].checked_sub(1) else { break };
            let home = hash_of(next) as usize & mask;
            if at.wrapping_sub(home) & mask >= at.wrapping_sub(hole) & mask {
                self.slots[hole] = self.slots[at];
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
                    (true, false) => index.insert(entry, hash),
                    (false, _) => index.remove(entry, hash),
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
