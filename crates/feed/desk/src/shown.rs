//! Books for those who want the latest state only.
//!
//! Who shows a book to a person needs what it is, not each step on the way. A queue of changes for a slow terminal holds states that are wrong by the
//! time they are read. Here every state has a *generation*, one count over all instruments, and only each instrument's latest is kept. Who
//! follows remembers one number, and what comes next for it is the instrument of the lowest generation above that: a fast one sees each
//! state, a slow one sees fewer, and neither has a queue.

use std::collections::BTreeMap;

/// An instrument of a shard: shard, locate.
pub type BookKey = (u16, u16);

/// An instrument's latest state in the forms it is sent in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShownBook<T> {
    /// When it became so.
    generation: u64,
    /// The generation of the state before; 0 if there was none.
    before: u64,
    /// Which state of the instrument it is, from 1.
    pub sequence: u64,
    /// Its forms.
    pub forms: T,
}

/// How much a trader has seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShownCursor {
    /// The generation last handed out.
    seen: u64,
    /// The last generation at which it had seen the latest state of every instrument.
    complete: u64,
}

/// The latest state of each instrument.
#[derive(Clone, Debug)]
pub struct ShownBooks<T> {
    books: BTreeMap<BookKey, ShownBook<T>>,
    by_generation: BTreeMap<u64, BookKey>,
    generation: u64,
}

impl<T> Default for ShownBooks<T> {
    fn default() -> Self {
        Self { books: BTreeMap::new(), by_generation: BTreeMap::new(), generation: 0 }
    }
}

impl<T> ShownBooks<T> {
    /// An instrument's latest state.
    #[must_use]
    pub fn get(&self, key: BookKey) -> Option<&ShownBook<T>> {
        self.books.get(&key)
    }

    /// The instrument has changed.
    pub fn show(&mut self, key: BookKey, forms: T) {
        self.generation += 1;
        let (before, sequence) = self.books.get(&key).map_or((0, 0), |book| (book.generation, book.sequence));
        self.by_generation.remove(&before);
        self.by_generation.insert(self.generation, key);
        let sequence = sequence + 1;
        self.books.insert(key, ShownBook { generation: self.generation, before, sequence, forms });
    }

    /// What comes next for a trader, and whether the change from the state before is enough: it has seen that one, if it had seen everything once
    /// since that became so.
    pub fn next(&self, cursor: &mut ShownCursor) -> Option<(BookKey, &ShownBook<T>, bool)> {
        let Some((&generation, key)) = self.by_generation.range(cursor.seen + 1..).next() else {
            cursor.complete = self.generation;
            return None;
        };
        cursor.seen = generation;
        let book = &self.books[key];
        Some((*key, book, (1..=cursor.complete).contains(&book.before)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: BookKey = (0, 1);
    const B: BookKey = (0, 2);

    fn follow(shown: &ShownBooks<u32>, seen: &mut ShownCursor) -> Vec<(BookKey, u32, bool)> {
        let next = || shown.next(seen).map(|(key, book, continues)| (key, book.forms, continues));
        std::iter::from_fn(next).collect()
    }

    #[test]
    fn a_fast_one_sees_each_state_and_changes_are_enough() {
        let (mut shown, mut seen) = (ShownBooks::default(), ShownCursor::default());
        shown.show(A, 1);
        assert_eq!(follow(&shown, &mut seen), [(A, 1, false)]);
        shown.show(A, 2);
        assert_eq!(follow(&shown, &mut seen), [(A, 2, true)]);
        shown.show(B, 3);
        shown.show(A, 4);
        assert_eq!(follow(&shown, &mut seen), [(B, 3, false), (A, 4, true)]);
        assert!(follow(&shown, &mut seen).is_empty());
    }

    #[test]
    fn a_slow_one_sees_the_latest_state_of_each_and_gets_it_whole() {
        let (mut shown, mut seen) = (ShownBooks::default(), ShownCursor::default());
        shown.show(A, 1);
        follow(&shown, &mut seen);
        (2..=9).for_each(|state| shown.show(A, state));
        shown.show(B, 10);
        assert_eq!(follow(&shown, &mut seen), [(A, 9, false), (B, 10, false)]);
        assert_eq!(shown.get(A).unwrap().sequence, 9);
    }

    #[test]
    fn a_late_one_sees_each_instrument_once() {
        let mut shown = ShownBooks::default();
        (0..100).for_each(|state| shown.show(if state % 2 == 0 { A } else { B }, state));
        assert_eq!(follow(&shown, &mut ShownCursor::default()), [(A, 98, false), (B, 99, false)]);
    }
}
