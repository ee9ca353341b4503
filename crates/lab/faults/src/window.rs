//! A shard's window, in which a venue may die before, in and after a decision.

use std::sync::Arc;

use pares_sequencer::{Overruled, ProposeError, Sequencer, Voiding};
use pares_types::{Epoch, Position, RequestId};

use crate::Faults;
use crate::crash::Point;

/// A window of a world that fails where the environment says.
#[derive(Debug)]
pub struct FaultyWindow<S> {
    inner: S,
    faults: Arc<Faults>,
    /// What was decided below is learnt from the window.
    learnt: Position,
    /// Whether nothing of what was learnt last is executed.
    fresh: bool,
}

impl<S> FaultyWindow<S> {
    pub(crate) fn new(inner: S, faults: Arc<Faults>) -> Self {
        Self { inner, faults, learnt: Position(0), fresh: false }
    }
}

impl<S: Sequencer> Sequencer for FaultyWindow<S> {
    #[inline]
    fn propose(
        &mut self,
        first: Position,
        requests: &[RequestId],
        decided_max: usize,
        decided: &mut Vec<RequestId>,
    ) -> Result<(), ProposeError> {
        let crash = &self.faults.crash;
        if !requests.is_empty() {
            crash.at(Point::VenueReceived);
        }
        if requests.len() > 1 {
            crash.after(Point::VenueHalfDecided, || {
                // It dies now, whatever was decided.
                let _ = self.inner.propose(first, &requests[..requests.len() / 2], decided_max, decided);
            });
        }
        let before = decided.len();
        let result = self.inner.propose(first, requests, decided_max, decided);
        let learnt = decided.len() - before;
        if learnt > 0 {
            (self.learnt, self.fresh) = (Position(first.0 + learnt as u64), true);
            crash.at(Point::VenueDecided);
        }
        result
    }

    #[inline]
    fn raise_recorded(&mut self, to: Position) {
        self.inner.raise_recorded(to);
        if to > self.learnt {
            self.faults.crash.at(Point::VenueObserving);
        }
    }

    fn follow_record(&mut self, to: Position) {
        self.inner.follow_record(to);
    }

    #[inline]
    fn is_void(&mut self, position: Position) -> bool {
        if std::mem::take(&mut self.fresh) {
            self.faults.crash.at(Point::VenueExecuting);
        }
        self.inner.is_void(position)
    }

    #[inline]
    fn vouch(&mut self, from: Position, to: Position) -> Result<(), Overruled> {
        if from < to {
            self.faults.crash.at(Point::VenueExecuted);
        }
        self.inner.vouch(from, to)
    }

    passed_on! {
        fn recorded(&self) -> Position;
        fn void(&mut self, position: Position) -> Voiding;
        fn epoch(&self) -> Epoch;
        fn won(&self) -> u64;
    }
}
