//! From a key to a slot: a hash table that is the same on every machine and in every run.
//!
//! The standard map seeds its hash at random and moves to the heap what could lie flat. Probing an array word by word, and moving entries
//! back into the gap of one that is removed (Knuth, The Art of Computer Programming, volume 3, 6.4, algorithm R), is what the book
//! began with: each step is a branch that no processor can foresee, on a line that is not in the cache yet. Here six entries share a
//! bucket ([`crate::buckets`] draws it), and one comparison tells which of them it can be; the key itself lies where the slot points,
//! which a look-up is about to touch anyway.
//!
//! **Growing** moves every entry, and each has to be asked for its key, some 100 ns where all is cold. Done at once, that is a pause of 70 ms at a
//! million keys. So the table that is full stays beside the new one, and each key that is added brings the entries of [`MOVED`] buckets
//! over; until they are through, a key that the new one lacks is looked for in the old. The new one's memory is zeros that the system makes as they are touched.
//!
//! ```text
//!   settled --full--> moving: new keys to `now`, look-ups in `now`, then in `before` --all buckets moved--> settled
//! ```

use crate::SlabIndex;
use crate::buckets::Buckets;

/// Buckets whose entries come over with each key that is added. The new buckets are full after three times as many keys as there were old buckets; the
/// move is over after half as many.
const MOVED: usize = 2;

/// A map from 64-bit keys, kept elsewhere, to slots.
#[derive(Clone, Debug)]
pub struct IndexTable {
    now: Buckets,
    /// What is not moved yet; none at all mostly.
    before: Buckets,
    /// Buckets of those that are empty by now.
    moved: usize,
    len: usize,
    /// With so many keys the next one must make room: none while entries move.
    keys_max: usize,
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
        let now = Buckets::new(2);
        Self { keys_max: now.keys_max(), now, before: Buckets::new(0), moved: 0, len: 0 }
    }

    /// The slot of a key; `is_it` tells whether a slot that is in the table has that key.
    #[inline(always)]
    pub fn get<T>(&self, key: u64, is_it: impl Fn(SlabIndex<T>) -> bool) -> Option<SlabIndex<T>> {
        let is_it = |slot| is_it(SlabIndex::new(slot));
        let found = self.now.get(key, &is_it);
        let found =
            if found.is_none() && self.is_moving() { self.before.get_far(key, &is_it) } else { found };
        found.map(SlabIndex::new)
    }

    #[inline(always)]
    fn is_moving(&self) -> bool {
        self.before.len() != 0
    }

    /// The word at which the search for a key begins, to have it in the cache: what it says means nothing.
    #[must_use]
    #[inline(always)]
    pub fn glance(&self, key: u64) -> u64 {
        self.now.glance(key)
    }

    /// Adds a key; `key_of` tells the key of a slot that is in the table.
    ///
    /// # Panics
    /// If the key is there already.
    #[inline(always)]
    pub fn insert<T>(&mut self, key: u64, slot: SlabIndex<T>, key_of: impl Fn(SlabIndex<T>) -> u64) {
        if self.len >= self.keys_max {
            self.make_room(key, &|slot| key_of(SlabIndex::new(slot)));
        }
        assert!(
            self.now.get(key, &|slot| key_of(SlabIndex::new(slot)) == key).is_none(),
            "a key is added once"
        );
        self.len += 1;
        self.now.put(key, slot.number());
    }

    /// Moves some entries, or begins to, before a key is added.
    #[cold]
    #[inline(never)]
    fn make_room(&mut self, key: u64, key_of: &dyn Fn(u32) -> u64) {
        if !self.is_moving() {
            let twice = Buckets::new(self.now.len() * 2);
            self.before = core::mem::replace(&mut self.now, twice);
            (self.moved, self.keys_max) = (0, 0);
        }
        for _ in 0..MOVED {
            let now = &mut self.now;
            self.before.drain(self.moved, |slot| now.put(key_of(slot), slot));
            self.moved += 1;
        }
        assert!(self.before.get(key, &|slot| key_of(slot) == key).is_none(), "a key is added once");
        if self.moved >= self.before.len() {
            (self.before, self.keys_max) = (Buckets::new(0), self.now.keys_max());
        }
        assert!(self.len < self.now.keys_max(), "entries move faster than keys come");
    }

    /// All slots, in no order that means anything.
    pub fn slots<T>(&self) -> impl Iterator<Item = SlabIndex<T>> {
        self.now.slots().chain(self.before.slots()).map(SlabIndex::new)
    }

    /// Removes the key of a slot.
    ///
    /// # Panics
    /// If it is not there.
    #[inline(always)]
    pub fn remove<T>(&mut self, key: u64, slot: SlabIndex<T>) {
        let gone = self.now.remove(key, slot.number())
            || self.is_moving() && self.before.remove_far(key, slot.number());
        assert!(gone, "key {key:#x} is in the table");
        self.len -= 1;
    }
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
                table.insert(key, SlabIndex::<()>::new(step), |slot| keys[slot.number() as usize]);
            }
            let probe = (seed >> 20) % 512;
            let found = table.get(probe, |slot: SlabIndex<()>| keys[slot.number() as usize] == probe);
            assert_eq!(found.map(SlabIndex::number), model.get(&probe).copied());
        }
        assert_eq!(table.len, model.len());
    }

    /// Orders come with numbers counted up and go at random, and a place is used again at once: what an entry that is free says about
    /// its last key must not count. The table stays as full as it gets, so that buckets are passed.
    #[test]
    fn a_place_that_is_used_again_has_one_key() {
        for stride in [1, 3, 10, 64, 1 << 40] {
            let (mut table, mut slab, mut living) =
                (IndexTable::new(), crate::Slab::with_capacity(0), Vec::new());
            let mut seed = 7_u64;
            for step in 0..60_000_u64 {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                if living.len() == 1_530 {
                    let slot = living.swap_remove((seed >> 33) as usize % living.len());
                    let key = slab[slot];
                    table.remove(key, slot);
                    assert!(table.get(key, |slot| slab[slot] == key && living.contains(&slot)).is_none());
                    slab.remove(slot);
                }
                let key = step * stride;
                let slot = slab.insert(key);
                table.insert(key, slot, |slot| slab[slot]);
                living.push(slot);
            }
            assert!(table.now.passed() > 0 || stride == 1);
            assert!(living.iter().all(|&at| table.get(slab[at], |slot| slab[slot] == slab[at]) == Some(at)));
            let count = table.slots::<u64>().count();
            living.drain(..).for_each(|slot| table.remove(slab[slot], slot));
            assert_eq!((count, table.len, table.now.passed(), table.now.slots().count()), (1_530, 0, 0, 0));
        }
    }

    /// However many keys there are, one more brings few of them over, and all are found meanwhile.
    #[test]
    fn growth_is_spread_over_the_keys_that_come() {
        let (mut table, mut moving) = (IndexTable::new(), 0);
        let asked = core::cell::Cell::new(0_u64);
        for key in 0..100_000_u64 {
            asked.set(0);
            table.insert(key, SlabIndex::<()>::new(key as u32), |slot| {
                asked.set(asked.get() + 1);
                slot.number().into()
            });
            assert!(asked.get() < 40, "{} keys asked for", asked.get());
            if table.is_moving() {
                moving += 1;
                let any = key.wrapping_mul(0x9e37_79b9) % (key + 1);
                let found = table.get(any, |slot: SlabIndex<()>| u64::from(slot.number()) == any);
                assert_eq!(found.map(SlabIndex::number), Some(any as u32));
                if key % 3 == 0 {
                    table.remove(any, SlabIndex::<()>::new(any as u32));
                    assert!(table.get(any, |slot: SlabIndex<()>| u64::from(slot.number()) == any).is_none());
                    table.insert(any, SlabIndex::<()>::new(any as u32), |slot| slot.number().into());
                }
                assert!(key % 1_000 != 0 || table.slots::<()>().count() == table.len);
            }
        }
        assert!(moving > 10_000, "{moving}");
        assert_eq!(table.slots::<()>().count(), 100_000);
    }

    #[test]
    #[should_panic(expected = "a key is added once")]
    fn a_key_is_not_added_twice() {
        let mut table = IndexTable::new();
        (0..2).for_each(|number| table.insert(7, SlabIndex::<()>::new(number), |_| 7));
    }

    #[test]
    #[should_panic(expected = "in the table")]
    fn a_missing_key_is_not_removed() {
        IndexTable::new().remove(7, SlabIndex::<()>::new(0));
    }
}
