//! Cancellations that come late.
//!
//! The writer finds a session in its way, and has the server cancel what it executes. Until the server does that, the session may have ended that transaction
//! and begun the next thing: BEGIN, a SET, a question of its own. A client that was told of a cancelled statement (`57014`) would look for somebody who
//! cancelled it. So the session counts what the writer asked for, and of as many cancelled statements it says that another transaction came first (`40001`).

use std::time::{Duration, Instant};

/// So much later a cancellation is not the writer's: its client's own, or the end of a time limit.
const LATE: Duration = Duration::from_secs(10);

/// Cancellations for the writer's sake that have hit nothing yet, as far as is known. One that hits nothing is forgotten with time.
#[derive(Default)]
pub(crate) struct Late {
    count: u32,
    last: Option<Instant>,
}

impl Late {
    /// The writer has asked for so many more.
    pub(crate) fn add(&mut self, asked: u32) {
        if asked > 0 {
            self.count = self.pending() + asked;
            self.last = Some(Instant::now());
        }
    }

    /// A statement was cancelled; whether by one of them.
    pub(crate) fn hit(&mut self) -> bool {
        let pending = self.pending();
        self.count = pending.saturating_sub(1);
        pending > 0
    }

    fn pending(&self) -> u32 {
        if self.last.is_some_and(|at| at.elapsed() < LATE) { self.count } else { 0 }
    }
}
