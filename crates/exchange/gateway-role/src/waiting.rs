//! What sessions have waiting, so that no session's keeps that of the others from it.
//!
//! One queue for all would be filled by the first program that counts from 1 again. So sessions may fill half of it as they come, and
//! each has a share of the rest: so large that the sessions of one member, all of them, leave half of that to others.

use std::collections::{BTreeMap, VecDeque};

use pares_gateway::SessionId;

/// Shares of the second half of a queue: twice as many as a member may have sessions, if it is not said otherwise.
const SHARES: usize = 128;

/// A queue with places for so many.
pub(crate) struct Waiting<T> {
    most: usize,
    queue: VecDeque<(SessionId, T)>,
    of: BTreeMap<SessionId, usize>,
}

impl<T> Waiting<T> {
    /// # Panics
    /// If there are fewer places than shares.
    pub(crate) fn new(most: usize) -> Self {
        assert!(most >= 2 * SHARES, "each session has a share");
        Self { most, queue: VecDeque::new(), of: BTreeMap::new() }
    }

    pub(crate) fn len(&self) -> usize {
        self.queue.len()
    }

    /// Whether there was room.
    pub(crate) fn push(&mut self, session: SessionId, what: T) -> bool {
        let half = self.most / 2;
        let of_session = self.of.get(&session).copied().unwrap_or(0);
        let has_room =
            self.len() < half || (self.len() < self.most && of_session < (self.most - half) / SHARES);
        if has_room {
            self.put_back(session, what);
        }
        has_room
    }

    /// Lets it wait on, whatever the session's share is.
    pub(crate) fn put_back(&mut self, session: SessionId, what: T) {
        assert!(self.len() < self.most, "what waits on has kept a place");
        *self.of.entry(session).or_default() += 1;
        self.queue.push_back((session, what));
    }

    pub(crate) fn pop(&mut self) -> Option<(SessionId, T)> {
        let (session, what) = self.queue.pop_front()?;
        let count = self.of.get_mut(&session).expect("what waits is counted for its session");
        *count -= 1;
        if *count == 0 {
            self.of.remove(&session);
        }
        assert!(!self.queue.is_empty() || self.of.is_empty(), "a session is counted for what waits");
        Some((session, what))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_of_one_member_leave_room_for_others() {
        let mut waiting = Waiting::new(2 * SHARES);
        for session in (0..64).cycle().take(1_000) {
            waiting.push(SessionId(session), ());
        }
        assert!(waiting.len() <= SHARES + 64);
        assert!(waiting.push(SessionId(99), ()) && !waiting.push(SessionId(99), ()), "its share");
        let (first, ()) = waiting.pop().unwrap();
        waiting.put_back(first, ());
        while waiting.pop().is_some() {}
        assert!(waiting.of.is_empty());
    }
}
