//! What happens next: events by virtual time, and by the order they were made in where times are equal.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

/// Virtual time since the beginning, ns.
pub(crate) type Nanos = u64;

pub(crate) const MICROSECOND: Nanos = 1_000;
pub(crate) const MILLISECOND: Nanos = 1_000_000;
pub(crate) const SECOND: Nanos = 1_000_000_000;

struct Entry<E> {
    at: Nanos,
    sequence: u64,
    event: E,
}

impl<E> Entry<E> {
    fn place(&self) -> (Nanos, u64) {
        (self.at, self.sequence)
    }
}

impl<E> PartialEq for Entry<E> {
    fn eq(&self, other: &Self) -> bool {
        self.place() == other.place()
    }
}

impl<E> Eq for Entry<E> {}

impl<E> PartialOrd for Entry<E> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> Ord for Entry<E> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.place().cmp(&other.place())
    }
}

/// Events to come.
pub(crate) struct Queue<E> {
    heap: BinaryHeap<Reverse<Entry<E>>>,
    made: u64,
    now: Nanos,
}

impl<E> Queue<E> {
    pub(crate) fn new() -> Self {
        Self { heap: BinaryHeap::new(), made: 0, now: 0 }
    }

    pub(crate) fn now(&self) -> Nanos {
        self.now
    }

    /// How many events were made.
    pub(crate) fn made(&self) -> u64 {
        self.made
    }

    pub(crate) fn push(&mut self, at: Nanos, event: E) {
        assert!(at >= self.now, "nothing happens in the past");
        self.made += 1;
        self.heap.push(Reverse(Entry { at, sequence: self.made, event }));
    }

    /// The next event before `end`; its time is now.
    pub(crate) fn pop_before(&mut self, end: Nanos) -> Option<E> {
        if self.heap.peek()?.0.at >= end {
            return None;
        }
        let Reverse(entry) = self.heap.pop()?;
        self.now = entry.at;
        Some(entry.event)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_by_time_and_then_in_the_order_they_were_made() {
        let mut queue = Queue::new();
        for (at, name) in [(5, 'b'), (1, 'a'), (5, 'c'), (9, 'd')] {
            queue.push(at, name);
        }
        let seen: Vec<char> = std::iter::from_fn(|| queue.pop_before(9)).collect();
        assert_eq!(seen, ['a', 'b', 'c']);
        assert_eq!(queue.now(), 5);
    }
}
