//! Virtual time: events by time and, at one instant, by the order in which they were scheduled, so that a seed is a whole history.

use std::collections::BTreeMap;

/// Events to come. Times are in whatever unit the simulation counts in.
#[derive(Clone, Debug)]
pub struct Schedule<E> {
    events: BTreeMap<(u64, u64), E>,
    made: u64,
    now: u64,
}

impl<E> Default for Schedule<E> {
    fn default() -> Self {
        Self { events: BTreeMap::new(), made: 0, now: 0 }
    }
}

impl<E> Schedule<E> {
    /// The time of the last event handed out.
    #[must_use]
    pub fn now(&self) -> u64 {
        self.now
    }

    /// How many events were scheduled.
    #[must_use]
    pub fn made(&self) -> u64 {
        self.made
    }

    /// Schedules an event.
    ///
    /// # Panics
    /// If its time is before that of the last event handed out.
    pub fn push(&mut self, at: u64, event: E) {
        assert!(at >= self.now, "nothing happens in the past");
        self.made += 1;
        self.events.insert((at, self.made), event);
    }

    /// The next event, and its time.
    pub fn pop(&mut self) -> Option<(u64, E)> {
        let ((at, _), event) = self.events.pop_first()?;
        self.now = at;
        Some((at, event))
    }

    /// The next event before `end`.
    pub fn pop_before(&mut self, end: u64) -> Option<E> {
        self.events.first_key_value().filter(|((at, _), _)| *at < end)?;
        self.pop().map(|(_, event)| event)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_by_time_and_then_in_the_order_they_were_made() {
        let mut schedule = Schedule::default();
        for (at, name) in [(5, 'b'), (1, 'a'), (5, 'c'), (9, 'd')] {
            schedule.push(at, name);
        }
        let seen: Vec<char> = std::iter::from_fn(|| schedule.pop_before(9)).collect();
        assert_eq!(seen, ['a', 'b', 'c']);
        assert_eq!((schedule.now(), schedule.made()), (5, 4));
    }
}
