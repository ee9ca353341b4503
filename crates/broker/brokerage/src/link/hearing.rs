//! Whether the other end of a connection says anything.
//!
//! Time since its last word is no silence: it may have been asked nothing, or this process may have been away itself, and not have read. So what counts is how long the oldest question waits
//! that nothing came after.

use std::time::{Duration, Instant};

/// See the [module](self).
#[derive(Debug)]
pub struct Hearing {
    asked: Instant,
    /// Since when a question waits.
    waits: Option<Instant>,
}

impl Hearing {
    /// Of a connection that begins now: its other end is to say something.
    pub fn begin() -> Self {
        let now = Instant::now();
        Self { asked: now, waits: Some(now) }
    }

    /// A question is on its way.
    pub fn asked(&mut self) {
        self.asked = Instant::now();
        self.waits.get_or_insert(self.asked);
    }

    /// Something has come.
    pub fn heard(&mut self) {
        self.waits = None;
    }

    /// When it was asked last.
    pub fn since_asked(&self) -> Duration {
        self.asked.elapsed()
    }

    /// For how long a question waits; nothing if none does.
    pub fn silence(&self) -> Duration {
        self.waits.map_or(Duration::ZERO, |since| since.elapsed())
    }
}
