//! So many at a time, in all and of each: sessions, sockets by user.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Places, and who has taken how many.
pub struct Places<K> {
    in_all: usize,
    of_each: usize,
    taken: Mutex<BTreeMap<K, usize>>,
}

impl<K: Ord + Clone> Places<K> {
    /// So many in all, and so many of each.
    #[must_use]
    pub fn new(in_all: usize, of_each: usize) -> Arc<Self> {
        Arc::new(Self { in_all, of_each, taken: Mutex::default() })
    }

    /// A place until it is dropped, if there is one.
    pub fn place(self: &Arc<Self>, who: impl Into<K>) -> Option<TakenPlace<K>> {
        let who = who.into();
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let all: usize = taken.values().sum();
        let of_who = taken.get(&who).copied().unwrap_or_default();
        if all >= self.in_all || of_who >= self.of_each {
            return None;
        }
        taken.insert(who.clone(), of_who + 1);
        Some(TakenPlace { of: self.clone(), who })
    }
}

/// A place that is taken.
pub struct TakenPlace<K: Ord> {
    of: Arc<Places<K>>,
    who: K,
}

impl<K: Ord> Drop for TakenPlace<K> {
    fn drop(&mut self) {
        let mut taken = self.of.taken.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = taken.get_mut(&self.who) {
            *count -= 1;
            if *count == 0 {
                taken.remove(&self.who);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_so_many_places_and_all_together_so_many() {
        let places = Places::<u32>::new(3, 2);
        let first = places.place(1_u32).unwrap();
        let _second = places.place(1_u32).unwrap();
        assert!(places.place(1_u32).is_none());
        let _other = places.place(2_u32).unwrap();
        assert!(places.place(3_u32).is_none());
        drop(first);
        assert!(places.place(3_u32).is_some());
        assert_eq!(places.taken.lock().unwrap().len(), 2, "who has none is forgotten");
    }
}
