//! A venue's way into the total order: the twin of the window, with room for a defect.

use pares_sequencer::{LocalWindow, Overruled, ProposeError, Sequencer, Verdict};
use pares_types::{Epoch, Position, RequestId};

use crate::bug::Bug;

/// A handle on the window, perhaps a defective one.
pub(crate) struct Handle {
    window: LocalWindow,
    /// Positions of the window.
    capacity: u64,
    /// What this venue itself has seen recorded.
    seen: Position,
    /// Where another venue's engine has failed: it gets that void while this venue is stopped between executing and vouching.
    pub(crate) rival: Option<Position>,
    /// Positions this venue declared void by itself.
    alone: Vec<Position>,
    bug: Option<Bug>,
}

impl Handle {
    pub(crate) fn new(window: &LocalWindow, capacity: usize, bug: Option<Bug>) -> Self {
        let seen = window.recorded();
        Self { window: window.clone(), capacity: capacity as u64, seen, rival: None, alone: Vec::new(), bug }
    }

    /// Without a position in it, a slot is found by the rest of the position alone, whichever lap it was filled in.
    fn believe_bare_slots(
        &mut self,
        first: Position,
        oldest: Position,
        decided_max: usize,
        decided: &mut Vec<RequestId>,
    ) -> Result<(), ProposeError> {
        let laps = (oldest.0 - first.0).div_ceil(self.capacity);
        let there = Position(first.0 + laps * self.capacity);
        self.window.propose(there, &[], decided_max, decided)
    }
}

impl Sequencer for Handle {
    fn propose(
        &mut self,
        first: Position,
        requests: &[RequestId],
        decided_max: usize,
        decided: &mut Vec<RequestId>,
    ) -> Result<(), ProposeError> {
        let result = self.window.propose(first, requests, decided_max, decided);
        if self.bug == Some(Bug::SlotsBeforeRecorded) {
            self.window.raise_recorded(self.window.undecided());
        }
        match (self.bug, result) {
            (Some(Bug::SwallowDecision), _) if decided.len() > 2 => {
                decided.remove(0);
            }
            (Some(Bug::BareSlots), Err(ProposeError::TooFarBehind { oldest })) => {
                return self.believe_bare_slots(first, oldest, decided_max, decided);
            }
            _ => {}
        }
        result
    }

    fn recorded(&self) -> Position {
        // The mark in the window is then no more than what is decided.
        if self.bug == Some(Bug::SlotsBeforeRecorded) { self.seen } else { self.window.recorded() }
    }

    fn raise_recorded(&mut self, to: Position) {
        self.seen = self.seen.max(to);
        self.window.raise_recorded(to);
    }

    fn is_void(&mut self, position: Position) -> bool {
        let is_void = self.window.is_void(position) || self.alone.contains(&position);
        is_void && self.bug != Some(Bug::ExecuteVoid)
    }

    fn vouch(&mut self, from: Position, to: Position) -> Result<(), Overruled> {
        if let Some(at) = self.rival.take_if(|at| from <= *at && *at < to) {
            let mut other = self.window.clone();
            if other.vouch(from, at).is_ok() {
                other.void(at);
            }
        }
        self.window.vouch(from, to)
    }

    fn void(&mut self, position: Position) -> Verdict {
        if self.bug == Some(Bug::VoidAlone) {
            self.alone.push(position);
            return Verdict::Void;
        }
        self.window.void(position)
    }

    fn epoch(&self) -> Epoch {
        self.window.epoch()
    }

    fn won(&self) -> u64 {
        self.window.won()
    }
}
