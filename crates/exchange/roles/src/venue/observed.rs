//! A window whose positions the hosts decide together: this host's orderer writes down what was decided, and venues only learn.
//!
//! The record may be ahead of the window, for other hosts may have executed what this one has not heard of yet. And no venue declares
//! a position void by itself: venues of another host may have executed it, and they share no memory with this one.

use pares_sequencer::{Overruled, ProposeError, Sequencer, Voiding};
use pares_types::{Epoch, Position, RequestId};

/// A handle that never proposes.
pub(super) struct Observed<S> {
    window: S,
    /// The records'; the window's is of this host alone.
    epoch: Epoch,
}

impl<S> Observed<S> {
    pub(super) fn new(window: S, epoch: Epoch) -> Self {
        Self { window, epoch }
    }
}

impl<S: Sequencer> Sequencer for Observed<S> {
    #[inline]
    fn propose(
        &mut self,
        first: Position,
        _requests: &[RequestId],
        decided_max: usize,
        decided: &mut Vec<RequestId>,
    ) -> Result<(), ProposeError> {
        self.window.propose(first, &[], decided_max, decided)
    }

    fn recorded(&self) -> Position {
        self.window.recorded()
    }

    fn raise_recorded(&mut self, to: Position) {
        self.window.follow_record(to);
    }

    #[inline]
    fn is_void(&mut self, position: Position) -> bool {
        self.window.is_void(position)
    }

    #[inline]
    fn vouch(&mut self, from: Position, to: Position) -> Result<(), Overruled> {
        self.window.vouch(from, to)
    }

    fn void(&mut self, _position: Position) -> Voiding {
        Voiding::Refused
    }

    fn epoch(&self) -> Epoch {
        self.epoch
    }

    fn won(&self) -> u64 {
        0
    }
}
