//! From a key to a slot: a hash table that is the same on every machine and in every run.
//!
//! The standard map seeds its hash at random, moves to the heap what could lie flat, and leaves marks
//! behind deleted keys that slow a book with a million cancels a minute. This one is an array of key
//! and slot side by side, probed one after the other, at most half full. A removal moves the entries
//! behind it back into the gap (Knuth, The Art of Computer Programming, volume 3, 6.4, algorithm R),
//! so the table never ages. It grows by moving everything at once: that costs the one request that
//! meets it some 10 ns a key, and happens only when the table holds more than ever before.
//!
//! ```text
//!  home of x and y     remove x
//!        v                 v
//!  |    | x  | y  |    |        |    | y  |    |    |
//! ```

use super::slab::Slot;

#[derive(Debug)]
struct Entry<T> {
    key: u64,
    /// [`Slot::NONE`] in an empty entry.
    slot: Slot<T>,
}

impl<T> Clone for Entry<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Entry<T> {}

impl<T> Entry<T> {
    const EMPTY: Self = Self { key: 0, slot: Slot::NONE };
}

/// A map from 64-bit keys to slots.
#[derive(Clone, Debug)]
pub(super) struct Table<T> {
    /// A power of two of them.
    entries: Vec<Entry<T>>,
    len: usize,
}

impl<T> Table<T> {
    /// No keys, with room for `capacity` of them.
    pub(super) fn with_capacity(capacity: usize) -> Self {
        let entries = (capacity.max(4) * 2).next_power_of_two();
        Self { entries: vec![Entry::EMPTY; entries], len: 0 }
    }

    /// The slot of a key.
    pub(super) fn get(&self, key: u64) -> Option<Slot<T>> {
        self.entries[self.find(key)].slot.some()
    }

    /// Adds a key.
    ///
    /// # Panics
    /// If the key is there already.
    pub(super) fn insert(&mut self, key: u64, slot: Slot<T>) {
        if (self.len + 1) * 2 > self.entries.len() {
            self.grow();
        }
        let place = self.find(key);
        assert!(self.entries[place].slot == Slot::NONE, "key {key:#x} is added once");
        self.entries[place] = Entry { key, slot };
        self.len += 1;
    }

    /// Removes a key.
    ///
    /// # Panics
    /// If the key is not there.
    pub(super) fn remove(&mut self, key: u64) {
        let mut gap = self.find(key);
        assert!(self.entries[gap].slot != Slot::NONE, "key {key:#x} is in the table");
        self.len -= 1;
        let mut place = gap;
        loop {
            place = self.after(place);
            let entry = self.entries[place];
            if entry.slot == Slot::NONE {
                break;
            }
            // An entry may move into the gap unless the gap lies before its home.
            let mask = self.entries.len() - 1;
            let from_home = place.wrapping_sub(self.home(entry.key)) & mask;
            if from_home >= place.wrapping_sub(gap) & mask {
                self.entries[gap] = entry;
                gap = place;
            }
        }
        self.entries[gap] = Entry::EMPTY;
    }

    /// Where the key is, or the empty entry where it would go.
    fn find(&self, key: u64) -> usize {
        let mut place = self.home(key);
        while self.entries[place].slot != Slot::NONE && self.entries[place].key != key {
            place = self.after(place);
        }
        place
    }

    fn after(&self, place: usize) -> usize {
        (place + 1) & (self.entries.len() - 1)
    }

    /// Where the search for a key begins. Keys are numbers that exchange and gateways count up, no
    /// member chooses them, so a plain multiplicative hash spreads them evenly (Knuth, 6.4).
    fn home(&self, key: u64) -> usize {
        let product = u128::from(key) * 0x9e37_79b9_7f4a_7c15;
        let mixed = (product as u64) ^ ((product >> 64) as u64);
        // The product's low half is best at its top; the table has at most 2^33 entries.
        (mixed >> 31) as usize & (self.entries.len() - 1)
    }

    fn grow(&mut self) {
        let doubled = vec![Entry::EMPTY; self.entries.len() * 2];
        let entries = core::mem::replace(&mut self.entries, doubled);
        for entry in entries.into_iter().filter(|entry| entry.slot != Slot::NONE) {
            let place = self.find(entry.key);
            self.entries[place] = entry;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// A small random walk: one key in, one key out, against the standard map.
    #[test]
    fn agrees_with_an_ordered_map_through_growth_and_removals() {
        let (mut table, mut model) = (Table::<()>::with_capacity(0), BTreeMap::new());
        let mut seed = 1_u64;
        for step in 0..20_000_u32 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            // Few and clustered keys: long runs, wrap-around, every shape of gap.
            let key = (seed >> 33) % 512 * if seed & 1 << 32 == 0 { 1 } else { 1 << 48 };
            if model.remove(&key).is_some() {
                table.remove(key);
            } else {
                model.insert(key, step);
                table.insert(key, Slot::new(step));
            }
            let probe = (seed >> 20) % 512;
            assert_eq!(table.get(probe).map(Slot::number), model.get(&probe).copied());
        }
        assert!(model.iter().all(|(&key, &slot)| table.get(key) == Some(Slot::new(slot))));
        assert_eq!(table.len, model.len());
    }

    #[test]
    #[should_panic(expected = "added once")]
    fn a_key_is_added_once() {
        let mut table = Table::<()>::with_capacity(4);
        table.insert(7, Slot::new(0));
        table.insert(7, Slot::new(1));
    }

    #[test]
    #[should_panic(expected = "in the table")]
    fn a_missing_key_is_not_removed() {
        Table::<()>::with_capacity(4).remove(7);
    }
}
