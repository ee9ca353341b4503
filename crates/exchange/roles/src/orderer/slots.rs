//! From what is ordered to a window's slots.
//!
//! The hosts may be ahead of this host's record: what finds no room in the window waits, up to twice the window. What is beyond that is dropped: venues
//! take it from the record. Nothing is put into the window behind such a gap until the record has passed it.

use std::collections::VecDeque;

use pares_sequencer::{ProposeError, Sequencer};
use pares_types::{Position, RequestId};

use crate::NodeError;

/// Put into a window at once.
const BATCH_MAX: usize = 256;

/// What is to go into one shard's window.
pub(super) struct Slots<S> {
    window: S,
    waiting_max: usize,
    /// The position of the first that waits.
    next: Position,
    waiting: VecDeque<RequestId>,
    /// The window has everything below, or the record.
    reached: Position,
    left: u64,
    decided: Vec<RequestId>,
}

impl<S: Sequencer> Slots<S> {
    pub(super) fn new(window: S, capacity: u32) -> Self {
        assert!(capacity > 0, "a window has room for a position");
        let reached = window.recorded();
        let (waiting, decided) = (VecDeque::new(), Vec::with_capacity(BATCH_MAX));
        Self { window, waiting_max: 2 * capacity as usize, next: reached, waiting, reached, left: 0, decided }
    }

    pub(super) fn recorded(&self) -> Position {
        self.window.recorded()
    }

    pub(super) fn left(&self) -> u64 {
        self.left
    }

    /// As [`Self::push`], of what an earlier process has ordered.
    pub(super) fn push_unless_recorded(&mut self, position: Position, id: RequestId) {
        if position >= self.window.recorded() {
            self.push(position, id);
        }
    }

    pub(super) fn push(&mut self, position: Position, id: RequestId) {
        if self.waiting.is_empty() {
            self.next = position;
        }
        let end = Position(self.next.0 + self.waiting.len() as u64);
        assert_eq!(end, position, "the positions of a shard are written down one after the other");
        self.waiting.push_back(id);
        if self.waiting.len() > self.waiting_max {
            self.left += self.waiting.len() as u64;
            self.waiting.clear();
        }
    }

    /// Puts what waits into the window, as far as there is room. Says how much that was.
    pub(super) fn flush(&mut self) -> Result<usize, NodeError> {
        let recorded = self.window.recorded();
        while self.next < recorded && self.waiting.pop_front().is_some() {
            self.next = self.next.next();
        }
        self.reached = self.reached.max(recorded);
        assert!(
            self.waiting.is_empty() || self.next >= recorded,
            "what is recorded does not wait for the window"
        );
        let mut put = 0;
        while !self.waiting.is_empty() && self.next <= self.reached {
            let batch = &self.waiting.make_contiguous()[..];
            let batch = &batch[..batch.len().min(BATCH_MAX)];
            self.decided.clear();
            let proposed = self.window.propose(self.next, batch, batch.len(), &mut self.decided);
            assert!(
                batch.starts_with(&self.decided),
                "a window holds at {} what was not ordered there",
                self.next
            );
            let (count, is_all) = (self.decided.len(), self.decided.len() == batch.len());
            self.waiting.drain(..count);
            self.next = Position(self.next.0 + count as u64);
            self.reached = self.reached.max(self.next);
            put += count;
            match proposed {
                Err(ProposeError::EpochOver { .. }) => return Err(NodeError::EpochOver),
                Ok(()) if is_all => {}
                _ => break,
            }
        }
        assert!(self.waiting.len() <= self.waiting_max, "what waits for the window is bounded");
        Ok(put)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pares_sequencer::LocalWindow;
    use pares_types::{Epoch, GatewayId};

    fn id(sequence: u64) -> RequestId {
        RequestId::new(GatewayId(0), sequence)
    }

    /// A window of four positions from 10 on, and what is put into it.
    fn some() -> (LocalWindow, Slots<LocalWindow>) {
        let window = LocalWindow::new(4, Epoch(1), Position(10));
        (window.clone(), Slots::new(window, 4))
    }

    #[test]
    fn what_has_no_room_waits_for_the_record() {
        let (mut window, mut slots) = some();
        (10..16).for_each(|position| slots.push(Position(position), id(position)));
        assert_eq!((slots.flush().unwrap(), slots.flush().unwrap()), (4, 0));
        window.follow_record(Position(13));
        assert_eq!((slots.flush().unwrap(), window.undecided()), (2, Position(16)));
    }

    #[test]
    fn what_an_earlier_process_put_there_is_found_there() {
        let (window, mut slots) = some();
        (10..12).for_each(|position| slots.push(Position(position), id(position)));
        slots.flush().unwrap();
        let mut slots = Slots::new(window, 4);
        (8..13).for_each(|position| slots.push_unless_recorded(Position(position), id(position)));
        assert_eq!(slots.flush().unwrap(), 3);
    }

    #[test]
    fn what_is_too_much_is_left_to_the_record() {
        let (mut window, mut slots) = some();
        (10..19).for_each(|position| slots.push(Position(position), id(position)));
        slots.push(Position(19), id(19));
        assert_eq!((slots.flush().unwrap(), slots.left()), (0, 9));
        window.follow_record(Position(18));
        assert_eq!(slots.flush().unwrap(), 0, "the record is not there yet");
        window.follow_record(Position(19));
        assert_eq!((slots.flush().unwrap(), window.undecided()), (1, Position(20)));
    }
}
