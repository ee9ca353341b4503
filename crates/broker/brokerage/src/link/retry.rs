//! When to dial again.

use std::time::{Duration, Instant};

const PAUSE_MIN: Duration = Duration::from_millis(20);
const PAUSE_MAX: Duration = Duration::from_millis(250);

/// Pauses that grow while nobody answers.
#[derive(Debug)]
pub struct Retry {
    due: Instant,
    pause: Duration,
}

impl Default for Retry {
    /// Due at once.
    fn default() -> Self {
        Self { due: Instant::now(), pause: PAUSE_MIN }
    }
}

impl Retry {
    /// Whether it is time.
    pub fn is_due(&self) -> bool {
        Instant::now() >= self.due
    }

    /// A connection has failed, or ended.
    pub fn failed(&mut self) {
        self.due = Instant::now() + self.pause;
        self.pause = (self.pause * 2).min(PAUSE_MAX);
    }

    /// How long it will be when it fails again.
    #[cfg(test)]
    pub fn pause(&self) -> Duration {
        self.pause
    }

    /// The other end has said something that makes sense.
    pub fn answered(&mut self) {
        self.pause = PAUSE_MIN;
    }
}
