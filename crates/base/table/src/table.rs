//! From a key to a slot: a hash table that is the same on every machine and in every run.
//!
//! The standard map seeds its hash at random and moves to the heap what could lie flat. Probing an array word by word, and moving entries
//! back into the gap of one that is removed (Knuth, The Art of Computer Programming, volume 3, 6.4, algorithm R), is what the book
//! began with: each step is a branch that no processor can foresee, on a line that is not in the cache yet. Here six entries share a
//! bucket, two buckets a cache line. A byte of each entry's hash stands in the bucket's first word, so that one comparison of the whole word
//! tells which of the six it can be (the idea of SwissTable and F14, within a word, without vector instructions); the key itself lies
//! where the slot points, which a look-up is about to touch anyway. An entry whose bucket is full goes to the next with room,
//! and each bucket counts those that passed it: a search ends where none has, and a removal clears a byte and leaves nothing behind, so the table never ages.
//! It is at most half full: one bucket in thirty is passed. It grows by moving everything at once: that costs the one request that meets it
//! some 5 ns a key, and happens only when the table holds more than ever before.
//!
//! ```text
//!   bucket, 32 bytes:   63     48 47                          0   192                       0
//!                      +---------+----+----+----+----+----+----+ +----+----+----+----+----+----+
//!                      | passed  |  a |  b |  0 |  0 |  c |  0 | | slots of a, b, -, -, c, -   |
//!                      +---------+----+----+----+----+----+----+ +----+----+----+----+----+----+
//! ```

use crate::SlabIndex;

/// Entries of a bucket.
const ENTRIES: usize = 6;
/// One in each of the six tags.
const ONES: u64 = 0x0000_0101_0101_0101;
/// All bits but the highest of each of the six tags.
const LOWS: u64 = 0x7f * ONES;
/// The highest bit of each.
const HIGHS: u64 = ONES << 7;
/// One entry more that passed.
const PASSED: u64 = 1 << 48;

#[derive(Clone, Copy, Debug)]
#[repr(align(32))]
struct Bucket {
    /// Tags of the entries, 0 where there is none; above them, how many entries passed.
    word: u64,
    slots: [u32; ENTRIES],
}

impl Bucket {
    const EMPTY: Self = Self { word: 0, slots: [u32::MAX; ENTRIES] };

    /// Which of the six entries have a tag: the highest bit of each. It is exact, since an entry that is free still has its last slot.
    #[inline(always)]
    fn with_tag(&self, tag: u8) -> u64 {
        let differences = self.word ^ (u64::from(tag) * ONES);
        !((differences & LOWS).wrapping_add(LOWS) | differences) & HIGHS
    }

    #[inline(always)]
    fn slot(&self, mark: u64) -> u32 {
        self.slots[mark.trailing_zeros() as usize / 8]
    }

    /// Adds an entry at the first of these marks, which is free.
    #[inline(always)]
    fn add(&mut self, free: u64, tag: u8, slot: u32) {
        let place = free.trailing_zeros() / 8;
        self.word |= u64::from(tag) << (place * 8);
        self.slots[place as usize] = slot;
    }

    /// The slots of its entries.
    fn there(&self) -> impl Iterator<Item = u32> + '_ {
        (0..ENTRIES).filter(|place| self.word >> (place * 8) & 0xff != 0).map(|place| self.slots[place])
    }

    #[inline(always)]
    fn is_passed(&self) -> bool {
        self.word >= PASSED
    }
}

/// A map from 64-bit keys, kept elsewhere, to slots.
#[derive(Clone, Debug)]
pub struct IndexTable {
    /// A power of two of them.
    buckets: Box<[Bucket]>,
    /// How far a hash is shifted to tell the bucket.
    shift: u32,
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
        Self { buckets: vec![Bucket::EMPTY; 2].into(), shift: 63, len: 0 }
    }

    /// The slot of a key; `is_it` tells whether a slot that is in the table has that key.
    #[inline(always)]
    pub fn get<T>(&self, key: u64, is_it: impl Fn(SlabIndex<T>) -> bool) -> Option<SlabIndex<T>> {
        let (at, marks) = self.find(key, |slot| is_it(SlabIndex::new(slot)))?;
        Some(SlabIndex::new(self.bucket(at).slot(marks)))
    }

    /// Where a key is: its bucket, and its mark there.
    #[inline(always)]
    fn find(&self, key: u64, is_it: impl Fn(u32) -> bool) -> Option<(usize, u64)> {
        let hash = hash(key);
        let (mut at, tag) = (self.home(hash, key), tag(hash, key));
        loop {
            let bucket = self.bucket(at);
            let mut marks = bucket.with_tag(tag);
            while marks != 0 {
                if is_it(bucket.slot(marks)) {
                    return Some((at, marks));
                }
                marks &= marks - 1;
            }
            if !bucket.is_passed() {
                return None;
            }
            at += 1;
        }
    }

    #[inline(always)]
    fn home(&self, hash: u64, key: u64) -> usize {
        (hash >> self.shift & !1 | key & 1) as usize
    }

    #[inline(always)]
    fn bucket(&self, at: usize) -> &Bucket {
        &self.buckets[at & (self.buckets.len() - 1)]
    }

    #[inline(always)]
    fn bucket_mut(&mut self, at: usize) -> &mut Bucket {
        let mask = self.buckets.len() - 1;
        &mut self.buckets[at & mask]
    }

    /// The word at which the search for a key begins, to have it in the cache: what it says means nothing.
    #[must_use]
    #[inline(always)]
    pub fn glance(&self, key: u64) -> u64 {
        self.bucket(self.home(hash(key), key)).word
    }

    /// Adds a key; `key_of` tells the key of a slot that is in the table.
    ///
    /// # Panics
    /// If the key is there already.
    #[inline(always)]
    pub fn insert<T>(&mut self, key: u64, slot: SlabIndex<T>, key_of: impl Fn(SlabIndex<T>) -> u64) {
        if self.len >= self.buckets.len() * (ENTRIES / 2) {
            self.grow(|slot| key_of(SlabIndex::new(slot)));
        }
        assert!(self.get(key, |slot| key_of(slot) == key).is_none(), "a key is added once");
        self.len += 1;
        self.put(key, slot.number());
    }

    #[inline(always)]
    fn put(&mut self, key: u64, slot: u32) {
        let hash = hash(key);
        let mut at = self.home(hash, key);
        loop {
            let bucket = self.bucket_mut(at);
            let free = bucket.with_tag(0);
            if free != 0 {
                return bucket.add(free, tag(hash, key), slot);
            }
            bucket.word = bucket.word.checked_add(PASSED).expect("few entries pass a bucket");
            at += 1;
        }
    }

    /// All slots, in no order that means anything.
    pub fn slots<T>(&self) -> impl Iterator<Item = SlabIndex<T>> {
        self.buckets.iter().flat_map(Bucket::there).map(SlabIndex::new)
    }

    /// Removes the key of a slot.
    ///
    /// # Panics
    /// If it is not there.
    #[inline(always)]
    pub fn remove<T>(&mut self, key: u64, slot: SlabIndex<T>) {
        let Some((at, mark)) = self.find(key, |found| found == slot.number()) else {
            panic!("key {key:#x} is in the table");
        };
        self.len -= 1;
        self.bucket_mut(at).word &= !(mark_byte(mark));
        let home = self.home(hash(key), key);
        if at != home {
            (home..at).for_each(|passed| self.bucket_mut(passed).word -= PASSED);
        }
    }

    #[cold]
    fn grow(&mut self, key_of: impl Fn(u32) -> u64) {
        let doubled = vec![Bucket::EMPTY; self.buckets.len() * 2].into();
        self.shift -= 1;
        let buckets = core::mem::replace(&mut self.buckets, doubled);
        buckets.iter().flat_map(Bucket::there).for_each(|slot| self.put(key_of(slot), slot));
    }
}

/// The byte of the lowest mark.
#[inline(always)]
fn mark_byte(marks: u64) -> u64 {
    0xff << (marks.trailing_zeros() & !7)
}

/// Keys are numbers that are counted up, nobody chooses them, so that a plain multiplicative hash spreads them evenly, and the more so
/// the higher the bits that are used (Knuth, 6.4). A table whose keys strangers choose mixes something into them that strangers do not know.
/// Two neighbours have one hash and share a line: what comes together is looked for together.
#[inline(always)]
fn hash(key: u64) -> u64 {
    let product = u128::from(key >> 1) * 0x9e37_79b9_7f4a_7c15;
    (product as u64) ^ ((product >> 64) as u64)
}

/// What stands for a key in its bucket.
#[inline(always)]
fn tag(hash: u64, key: u64) -> u8 {
    ((hash << 1 | key & 1) as u8).max(1)
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
            assert!(table.buckets.iter().any(Bucket::is_passed) || stride == 1);
            assert!(living.iter().all(|&at| table.get(slab[at], |slot| slab[slot] == slab[at]) == Some(at)));
            let count = table.slots::<u64>().count();
            living.drain(..).for_each(|slot| table.remove(slab[slot], slot));
            assert_eq!((count, table.buckets.iter().map(|bucket| bucket.word).sum::<u64>()), (1_530, 0));
        }
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
