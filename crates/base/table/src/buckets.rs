//! The buckets of a hash table: six entries each, whose tags are compared at once.
//!
//! A byte of each entry's hash stands in the bucket's first word, so that one comparison of the whole word tells which of the six an
//! entry can be (the idea of SwissTable and F14, within a word, without vector instructions). An entry whose bucket is full goes to the
//! next with room, and each bucket counts those that passed it: a search ends where none has, and a removal clears a byte and leaves
//! nothing behind, so buckets never age. At most half full, one bucket in thirty is passed. Two buckets share a cache line, and so do
//! keys that are neighbours in number: what comes together is looked for together.
//!
//! ```text
//!   32 bytes:   63     48 47                          0   192                       0
//!              +---------+----+----+----+----+----+----+ +----+----+----+----+----+----+
//!              | passed  |  a |  b |  0 |  0 |  c |  0 | | slots of a, b, -, -, c, -   |
//!              +---------+----+----+----+----+----+----+ +----+----+----+----+----+----+
//! ```

use zerocopy::FromZeros;

const ENTRIES: usize = 6;
/// One in each of the six tags.
const ONES: u64 = 0x0000_0101_0101_0101;
/// All bits but the highest of each of the six tags.
const LOWS: u64 = 0x7f * ONES;
/// The highest bit of each.
const HIGHS: u64 = ONES << 7;
/// One entry more that passed.
const PASSED: u64 = 1 << 48;

/// Zeros are an empty one, so that a great many are memory that the system makes as it is touched.
#[derive(Clone, Copy, Debug, FromZeros)]
#[repr(C, align(32))]
struct Bucket {
    /// Tags of the entries, 0 where there is none; above them, how many entries passed.
    word: u64,
    slots: [u32; ENTRIES],
}

/// Which of the six entries have a tag: the highest bit of each. It is exact, since an entry that is free still has its last slot.
#[inline(always)]
fn with_tag(word: u64, tag: u8) -> u64 {
    let differences = word ^ (u64::from(tag) * ONES);
    !((differences & LOWS).wrapping_add(LOWS) | differences) & HIGHS
}

#[inline(always)]
fn place(marks: u64) -> usize {
    marks.trailing_zeros() as usize / 8
}

fn there(bucket: &Bucket) -> impl Iterator<Item = u32> + '_ {
    (0..ENTRIES).filter(|place| bucket.word >> (place * 8) & 0xff != 0).map(|place| bucket.slots[place])
}

/// A power of two of buckets, or none.
#[derive(Clone, Debug)]
pub(crate) struct Buckets {
    buckets: Box<[Bucket]>,
    /// How far a hash is shifted to tell the bucket.
    shift: u32,
}

impl Buckets {
    /// So many empty ones: none, or a power of two from 2 on.
    pub(crate) fn new(count: usize) -> Self {
        let shift = 64 - count.max(2).trailing_zeros();
        let buckets = <[Bucket]>::new_box_zeroed_with_elems(count).expect("memory for the buckets");
        Self { buckets, shift }
    }

    #[inline(always)]
    pub(crate) fn len(&self) -> usize {
        self.buckets.len()
    }

    /// How many keys half fill them.
    #[inline(always)]
    pub(crate) fn keys_max(&self) -> usize {
        self.buckets.len() * (ENTRIES / 2)
    }

    /// The bucket of a key, and its tag.
    #[inline(always)]
    fn home(&self, key: u64) -> (usize, u8) {
        let hash = hash(key);
        let tag = (hash << 1 | key & 1) as u8;
        ((hash >> self.shift & !1 | key & 1) as usize, tag.max(1))
    }

    #[inline(always)]
    fn at(&self, at: usize) -> &Bucket {
        &self.buckets[at & (self.buckets.len() - 1)]
    }

    #[inline(always)]
    fn at_mut(&mut self, at: usize) -> &mut Bucket {
        let mask = self.buckets.len() - 1;
        &mut self.buckets[at & mask]
    }

    #[inline(always)]
    pub(crate) fn glance(&self, key: u64) -> u64 {
        self.at(self.home(key).0).word
    }

    /// Where the slot of a key is: its bucket and its mark there.
    #[inline(always)]
    fn find(&self, (home, tag): (usize, u8), is_it: impl Fn(u32) -> bool) -> Option<(usize, u64)> {
        let mut at = home;
        loop {
            let bucket = self.at(at);
            let mut marks = with_tag(bucket.word, tag);
            while marks != 0 {
                if is_it(bucket.slots[place(marks)]) {
                    return Some((at, marks));
                }
                marks &= marks - 1;
            }
            if bucket.word < PASSED {
                return None;
            }
            at += 1;
        }
    }

    /// The slot of a key.
    #[inline(always)]
    pub(crate) fn get(&self, key: u64, is_it: &impl Fn(u32) -> bool) -> Option<u32> {
        let (at, marks) = self.find(self.home(key), is_it)?;
        Some(self.at(at).slots[place(marks)])
    }

    /// The same, where that is seldom asked.
    #[cold]
    #[inline(never)]
    pub(crate) fn get_far(&self, key: u64, is_it: &impl Fn(u32) -> bool) -> Option<u32> {
        self.get(key, is_it)
    }

    /// Adds a key, which is not there.
    ///
    /// # Panics
    /// If 2^16 keys passed a bucket.
    #[inline(always)]
    pub(crate) fn put(&mut self, key: u64, slot: u32) {
        let (mut at, tag) = self.home(key);
        loop {
            let bucket = self.at_mut(at);
            let free = with_tag(bucket.word, 0);
            if free != 0 {
                bucket.word |= u64::from(tag) << (place(free) * 8);
                bucket.slots[place(free)] = slot;
                return;
            }
            bucket.word = bucket.word.checked_add(PASSED).expect("few entries pass a bucket");
            at += 1;
        }
    }

    /// Removes the key of a slot; says whether it was there.
    #[inline(always)]
    pub(crate) fn remove(&mut self, key: u64, slot: u32) -> bool {
        let (home, tag) = self.home(key);
        let Some((at, marks)) = self.find((home, tag), |found| found == slot) else { return false };
        self.at_mut(at).word &= !(0xff << (place(marks) * 8));
        for passed in home..at {
            self.at_mut(passed).word -= PASSED;
        }
        true
    }

    /// The same, where that is seldom asked.
    #[cold]
    #[inline(never)]
    pub(crate) fn remove_far(&mut self, key: u64, slot: u32) -> bool {
        self.remove(key, slot)
    }

    /// Takes all entries out of a bucket. It still counts the entries that passed it, so that those are found.
    pub(crate) fn drain(&mut self, at: usize, mut to: impl FnMut(u32)) {
        let bucket = self.at_mut(at);
        there(bucket).for_each(&mut to);
        bucket.word &= !(PASSED - 1);
    }

    pub(crate) fn slots(&self) -> impl Iterator<Item = u32> {
        self.buckets.iter().flat_map(there)
    }

    /// How many times an entry passed a bucket.
    #[cfg(test)]
    pub(crate) fn passed(&self) -> u64 {
        self.buckets.iter().map(|bucket| bucket.word / PASSED).sum()
    }
}

/// Keys are numbers that are counted up, nobody chooses them, so that a plain multiplicative hash spreads them evenly, and the more so
/// the higher the bits that are used (Knuth, 6.4). A table whose keys strangers choose mixes something into them that strangers do not know.
#[inline(always)]
fn hash(key: u64) -> u64 {
    let product = u128::from(key >> 1) * 0x9e37_79b9_7f4a_7c15;
    (product as u64) ^ ((product >> 64) as u64)
}
