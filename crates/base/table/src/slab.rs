//! Fixed places for things that come and go: a vector, and a stack of its free places.
//!
//! A place is named by a 32-bit [`SlabIndex`] where a pointer would take 64, and the slot is typed, so a
//! price level cannot be looked up among the orders. The place freed last is used first, because it
//! is the one most likely still in the cache. Nothing is allocated until more things live at one time
//! than ever before.

use core::marker::PhantomData;
use core::ops::{Index, IndexMut};

/// The place of a `T` in its [`Slab`].
pub struct SlabIndex<T>(u32, PhantomData<fn() -> T>);

impl<T> SlabIndex<T> {
    /// No place: the end of a list.
    pub const NONE: Self = Self::new(u32::MAX);

    /// The place with this number.
    #[must_use]
    #[inline]
    pub const fn new(number: u32) -> Self {
        Self(number, PhantomData)
    }

    /// Its number.
    #[must_use]
    #[inline]
    pub const fn number(self) -> u32 {
        self.0
    }

    /// The place, unless it is [`SlabIndex::NONE`].
    #[must_use]
    #[inline]
    pub fn some(self) -> Option<Self> {
        (self != Self::NONE).then_some(self)
    }
}

// Derives would ask for the same of `T`, which a slot only names.
impl<T> Clone for SlabIndex<T> {
    #[inline]
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for SlabIndex<T> {}

impl<T> PartialEq for SlabIndex<T> {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl<T> Eq for SlabIndex<T> {}

impl<T> core::fmt::Debug for SlabIndex<T> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "#{}", self.0)
    }
}

/// Places for values of one type.
#[derive(Clone, Debug)]
pub struct Slab<T> {
    entries: Vec<T>,
    free: Vec<SlabIndex<T>>,
}

impl<T> Slab<T> {
    /// No values, with room for `capacity` of them.
    #[must_use]
    pub fn with_capacity(capacity: usize) -> Self {
        let entries = Vec::with_capacity(capacity);
        Self { free: Vec::with_capacity(entries.capacity()), entries }
    }

    /// The value of a place, or of none for [`SlabIndex::NONE`].
    #[must_use]
    #[inline]
    pub fn get(&self, slot: SlabIndex<T>) -> Option<&T> {
        self.entries.get(slot.0 as usize)
    }

    /// How many values live.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len() - self.free.len()
    }

    /// Whether none lives.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Puts a value in a free place.
    ///
    /// # Panics
    /// If 2^32 - 1 values live: the place after them would be [`SlabIndex::NONE`].
    #[inline(always)]
    pub fn insert(&mut self, value: T) -> SlabIndex<T> {
        if let Some(slot) = self.free.pop() {
            self[slot] = value;
            return slot;
        }
        let number = u32::try_from(self.entries.len()).unwrap_or(u32::MAX);
        assert!(number != u32::MAX, "fewer than 2^32 - 1 values live");
        self.make_room();
        self.entries.push(value);
        SlabIndex::new(number)
    }

    /// Sees to it that the next value can be put somewhere without moving the others: who has no time then has them moved before.
    #[inline]
    pub fn make_room(&mut self) {
        if self.free.is_empty() && self.entries.len() == self.entries.capacity() {
            self.grow();
        }
    }

    #[cold]
    fn grow(&mut self) {
        self.entries.reserve(1);
        // Room for every place to be free at once, so that freeing one never allocates.
        self.free.reserve(self.entries.capacity());
    }

    /// A free place with what it held before, or with `fresh` if it never held anything: for values that are
    /// large, and mean nothing once they are removed.
    pub fn reuse(&mut self, fresh: &T) -> SlabIndex<T>
    where
        T: Clone,
    {
        match self.free.pop() {
            Some(slot) => slot,
            None => self.insert(fresh.clone()),
        }
    }

    /// Frees a place. What was there stays readable until the next insert, but means nothing.
    #[inline]
    pub fn remove(&mut self, slot: SlabIndex<T>) {
        self.free.push(slot);
    }
}

impl<T> Index<SlabIndex<T>> for Slab<T> {
    type Output = T;

    #[inline]
    fn index(&self, slot: SlabIndex<T>) -> &T {
        &self.entries[slot.0 as usize]
    }
}

impl<T> IndexMut<SlabIndex<T>> for Slab<T> {
    #[inline]
    fn index_mut(&mut self, slot: SlabIndex<T>) -> &mut T {
        &mut self.entries[slot.0 as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_freed_last_is_used_first() {
        let mut slab = Slab::with_capacity(0);
        let (a, b) = (slab.insert('a'), slab.insert('b'));
        slab.remove(a);
        slab.remove(b);
        assert_eq!(slab.insert('c'), b);
        assert_eq!((slab[b], slab.len()), ('c', 1));
    }
}
