//! A heartbeat: when to say that this end is there, and whether the other is.

use std::time::{Duration, Instant};

/// Heartbeats in which something has to come.
const MISSED: u32 = 3;

/// Of one connection.
pub(crate) struct Heartbeat {
    every: Duration,
    said: Instant,
    heard: Instant,
}

impl Heartbeat {
    /// From `now` on; `None` if it never beats.
    pub(crate) fn new(every: Duration, now: Instant) -> Option<Self> {
        (!every.is_zero()).then_some(Self { every, said: now, heard: now })
    }

    /// Something came.
    pub(crate) fn hear(&mut self, now: Instant) {
        self.heard = now;
    }

    /// Whether it is time to say something; then it was said.
    pub(crate) fn is_due(&mut self, now: Instant) -> bool {
        let is_due = self.left(now).is_zero();
        if is_due {
            self.said = now;
        }
        is_due
    }

    /// Until it is time to say something.
    pub(crate) fn left(&self, now: Instant) -> Duration {
        self.every.saturating_sub(now.duration_since(self.said))
    }

    /// Whether nothing came for too long.
    pub(crate) fn is_missed(&self, now: Instant) -> bool {
        now.duration_since(self.heard) > self.every * MISSED
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_beats_once_a_time_and_is_missed_after_three() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut heartbeat = Heartbeat::new(Duration::from_millis(100), start).unwrap();
        let due = [99, 100, 101, 199, 200].map(|ms| heartbeat.is_due(at(ms)));
        assert_eq!(due, [false, true, false, false, true]);
        assert_eq!([300, 301].map(|ms| heartbeat.is_missed(at(ms))), [false, true]);
        heartbeat.hear(at(301));
        assert!(!heartbeat.is_missed(at(601)) && heartbeat.is_missed(at(602)));
        assert!(Heartbeat::new(Duration::ZERO, start).is_none());
    }
}
