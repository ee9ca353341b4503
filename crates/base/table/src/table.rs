//! From a key to a slot: a hash table that is the same on every machine and in every run.
//!
//! The standard map seeds its hash at random, moves to the heap what could lie flat, and leaves marks
//! behind deleted keys that slow a book with a million cancels a minute. This one is an array of words,
//! probed one after the other, at most a third full. A word holds a slot and 32 bits of its key's hash; the key
//! itself lies where the slot points, which a look-up is about to touch anyway, so a cache line
//! holds eight entries. A removal moves the entries behind it back into the gap (Knuth, The Art of Computer
//! Programming, volume 3, 6.4, algorithm R), so the table never ages. It grows by moving everything at
//! once: that costs the one request that meets it some 5 ns a key, and happens only when the table holds more than
//! ever before.
//!
//! ```text
//!   63          32 31           0        home of x and y     remove x
//!  +--------------+--------------+             v                 v
//!  | hash of key  | slot         |      |    | x  | y  |    |        |    | y  |    |    |
//!  +--------------+--------------+
//! ```

use crate::SlabIndex;

/// No entry: [`SlabIndex::NONE`] in the lower half.
const EMPTY: u64 = u64::MAX;

/// A map from 64-bit keys, kept elsewhere, to slots.
#[derive(Clone, Debug)]
pub struct IndexTable {
    /// A power of two of them.
    entries: Box<[u64]>,
    len: usize,
}

impl Default for IndexTable {
    fn default() -> Self {
        Self::new()
    }
}

impl IndexTable {
    /// No keys.
    #[must_use]
    pub fn new() -> Self {
        Self { entries: vec![EMPTY; 4].into(), len: 0 }
    }

    /// The slot of a key; `is_it` tells whether a slot with the key's hash has that key.
    #[inline(always)]
    pub fn get<T>(&self, key: u64, is_it: impl Fn(SlabIndex<T>) -> bool) -> Option<SlabIndex<T>> {
        let hash = hash(key);
        let mask = self.entries.len() - 1;
        let mut place = hash as usize;
        loop {
            let entry = self.entries[place & mask];
            if entry == EMPTY {
                return None;
            }
            if (entry >> 32) as u32 == hash && is_it(SlabIndex::new(entry as u32)) {
                return Some(SlabIndex::new(entry as u32));
            }
            place += 1;
        }
    }

    /// The word at which the search for a key begins, to have it in the cache: what it says means nothing.
    #[must_use]
    #[inline(always)]
    pub fn glance(&self, key: u64) -> u64 {
        self.entries[hash(key) as usize & (self.entries.len() - 1)]
    }

    /// Adds a key; `is_it` tells whether a slot with the key's hash has that key.
    ///
    /// # Panics
    /// If the key is there already.
    #[inline(always)]
    pub fn insert<T>(&mut self, key: u64, slot: SlabIndex<T>, is_it: impl Fn(SlabIndex<T>) -> bool) {
        if (self.len + 1) * 3 > self.entries.len() {
            self.grow();
        }
        self.len += 1;
        let hash = hash(key);
        let mask = self.entries.len() - 1;
        let mut place = hash as usize;
        loop {
            let entry = &mut self.entries[place & mask];
            if *entry == EMPTY {
                *entry = u64::from(hash) << 32 | u64::from(slot.number());
                return;
            }
            assert!(
                (*entry >> 32) as u32 != hash || !is_it(SlabIndex::new(*entry as u32)),
                "a key is added once"
            );
            place += 1;
        }
    }

    fn put(&mut self, entry: u64) {
        let mask = self.entries.len() - 1;
        let mut place = (entry >> 32) as usize & mask;
        while self.entries[place] != EMPTY {
            place = (place + 1) & mask;
        }
        self.entries[place] = entry;
    }

    /// All slots, in no order that means anything.
    pub fn slots<T>(&self) -> impl Iterator<Item = SlabIndex<T>> + '_ {
        self.entries.iter().filter(|&&entry| entry != EMPTY).map(|&entry| SlabIndex::new(entry as u32))
    }

    /// Removes the key of a slot.
    ///
    /// # Panics
    /// If it is not there.
    #[inline(always)]
    pub fn remove<T>(&mut self, key: u64, slot: SlabIndex<T>) {
        let wanted = u64::from(hash(key)) << 32 | u64::from(slot.number());
        let mask = self.entries.len() - 1;
        let mut gap = hash(key) as usize & mask;
        while self.entries[gap] != wanted {
            assert!(self.entries[gap] != EMPTY, "key {key:#x} is in the table");
            gap = (gap + 1) & mask;
        }
        self.len -= 1;
        let mut place = gap;
        loop {
            place = (place + 1) & mask;
            let entry = self.entries[place];
            if entry == EMPTY {
                break;
            }
            // An entry may move into the gap unless the gap lies before its home.
            let from_home = place.wrapping_sub((entry >> 32) as usize) & mask;
            if from_home >= place.wrapping_sub(gap) & mask {
                self.entries[gap] = entry;
                gap = place;
            }
        }
        self.entries[gap] = EMPTY;
    }

    #[cold]
    fn grow(&mut self) {
        let doubled = vec![EMPTY; self.entries.len() * 2].into();
        let entries = core::mem::replace(&mut self.entries, doubled);
        entries.iter().filter(|&&entry| entry != EMPTY).for_each(|&entry| self.put(entry));
    }
}

/// Keys are numbers that are counted up, nobody chooses them, so a plain multiplicative hash spreads them evenly (Knuth, 6.4). A table whose
/// keys strangers choose mixes something into them that strangers do not know.
#[inline]
fn hash(key: u64) -> u32 {
    let product = u128::from(key) * 0x9e37_79b9_7f4a_7c15;
    let mixed = (product as u64) ^ ((product >> 64) as u64);
    (mixed >> 31) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// A small random walk: one key in, one key out, against the standard map. A slot's key is its number.
    #[test]
    fn agrees_with_an_ordered_map_through_growth_and_removals() {
        let (mut table, mut model) = (IndexTable::new(), BTreeMap::new());
        let mut keys = Vec::new();
        let mut seed = 1_u64;
        for step in 0..20_000_u32 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            // Few and clustered keys: long runs, wrap-around, every shape of gap.
            let key = (seed >> 33) % 512 * if seed & 1 << 32 == 0 { 1 } else { 1 << 48 };
            keys.push(key);
            if let Some(slot) = model.remove(&key) {
                table.remove(key, SlabIndex::<()>::new(slot));
            } else {
                model.insert(key, step);
                table.insert(key, SlabIndex::<()>::new(step), |_| false);
            }
            let probe = (seed >> 20) % 512;
            let found = table.get(probe, |slot: SlabIndex<()>| keys[slot.number() as usize] == probe);
            assert_eq!(found.map(SlabIndex::number), model.get(&probe).copied());
        }
        assert_eq!(table.len, model.len());
    }

    #[test]
    #[should_panic(expected = "in the table")]
    fn a_missing_key_is_not_removed() {
        IndexTable::new().remove(7, SlabIndex::<()>::new(0));
    }
}
