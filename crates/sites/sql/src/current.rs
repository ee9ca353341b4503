//! The transaction that a session has open, and cancellations of it.
//!
//! The writer finds a session in its way and has the server cancel what that executes. A cancellation names a process, not a transaction. Sent late, it would
//! hit the next BEGIN, a setting, or a question of the session's own, and clients would hear of a cancelled statement (`57014`) that nobody cancelled. So
//! the writer says which transaction it saw, and cancels no other. And a session that ends a transaction waits until no cancellation is under way: one that
//! finds the server reading its next command is dropped there (`ProcessInterrupts`).
//!
//! ```text
//!   writer                          session
//!   open() = 7                      7 executes
//!   sees its process in the way     7 executes
//!   cancel(7): one is under way     close(): waits
//!   pg_cancel_backend               waits
//!   cancelled(): none is            ROLLBACK, then BEGIN of 8
//!   cancel(7): no                   8 executes
//! ```

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

#[derive(Default)]
struct State {
    /// The latest transaction.
    number: u64,
    /// It may be cancelled.
    is_open: bool,
    /// It was in another's way.
    is_in_the_way: bool,
    /// Cancellations that the server may not have received yet.
    under_way: usize,
}

/// See the [module](self).
#[derive(Default)]
pub(crate) struct Current {
    state: Mutex<State>,
    told: Condvar,
}

impl Current {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A transaction begins.
    pub(crate) fn begin(&self) {
        let mut state = self.state();
        state.number += 1;
        (state.is_open, state.is_in_the_way) = (true, false);
    }

    /// It is to end. From here on the writer does not cancel it.
    pub(crate) fn close(&self) {
        let mut state = self.state();
        state.is_open = false;
        let is_under_way = |state: &mut State| state.under_way > 0;
        drop(self.told.wait_while(state, is_under_way));
    }

    /// The number of the one that may be cancelled.
    pub(crate) fn open(&self) -> Option<u64> {
        let state = self.state();
        state.is_open.then_some(state.number)
    }

    /// A cancellation of that one begins; false if it is over. Behind it comes [`Current::cancelled`].
    pub(crate) fn cancel(&self, number: u64) -> bool {
        let mut state = self.state();
        let is_meant = state.is_open && state.number == number;
        if is_meant {
            state.is_in_the_way = true;
            state.under_way += 1;
        }
        is_meant
    }

    /// The server has been told, or never will be.
    pub(crate) fn cancelled(&self) {
        self.state().under_way -= 1;
        self.told.notify_all();
    }

    /// The outcome of the latest transaction was sent: what is cancelled from here on, its client has cancelled.
    pub(crate) fn forget(&self) {
        self.state().is_in_the_way = false;
    }

    /// Whether the latest transaction was in another's way.
    pub(crate) fn is_in_the_way(&self) -> bool {
        self.state().is_in_the_way
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn only_seen_statement_is_cancelled_before_its_end() {
        let current = Current::default();
        assert!(current.open().is_none() && !current.cancel(0));
        current.begin();
        let seen = current.open().unwrap();
        current.close();
        assert!(!current.cancel(seen) && !current.is_in_the_way());
        current.begin();
        assert!(!current.cancel(seen) && current.cancel(seen + 1) && current.is_in_the_way());
        current.cancelled();
        current.close();
        assert!(current.is_in_the_way(), "what became of it is still to be told");
        current.forget();
        assert!(!current.is_in_the_way());
    }

    #[test]
    fn it_ends_when_all_cancellations_were_told() {
        let current = Arc::new(Current::default());
        current.begin();
        let seen = current.open().unwrap();
        assert!(current.cancel(seen) && current.cancel(seen));
        let closing = Arc::clone(&current);
        let closes = std::thread::spawn(move || closing.close());
        while current.open().is_some() {
            std::thread::yield_now();
        }
        current.cancelled();
        assert!(!current.cancel(seen) && !closes.is_finished());
        current.cancelled();
        closes.join().unwrap();
    }
}
