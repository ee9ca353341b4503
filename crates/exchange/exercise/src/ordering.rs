//! What the tests of every implementation share: a follower of the order, and the model they are held to.
#![allow(missing_docs)] // fields and functions are named as the paper names them

pub mod cells;

use std::collections::VecDeque;

use pares_sequencer::{ProposeError, Sequencer};
use pares_types::{GatewayId, Position, RequestId};

/// A request of gateway p (1) or q (2), counted from 0 as the paper does.
pub fn p(n: u64) -> RequestId {
    RequestId::new(GatewayId(1), n + 1)
}

/// See [`p`].
pub fn q(n: u64) -> RequestId {
    RequestId::new(GatewayId(2), n + 1)
}

/// The ordering half of a venue: what it has processed, and what waits in order of arrival.
pub struct Follower {
    pub sequencer: Box<dyn Sequencer>,
    pub processed: Vec<RequestId>,
    pub pending: VecDeque<RequestId>,
    pub first: Position,
}

impl Follower {
    pub fn new(sequencer: Box<dyn Sequencer>, first: Position, pending: &[RequestId]) -> Self {
        Self { sequencer, processed: vec![], pending: pending.iter().copied().collect(), first }
    }

    /// The position it would propose for next.
    pub fn next(&self) -> Position {
        Position(self.first.0 + self.processed.len() as u64)
    }

    /// Proposes the first `batch` pending requests and conforms to what was decided, at most `decided_max`.
    pub fn step(&mut self, batch: usize, decided_max: usize) -> Result<(), ProposeError> {
        let requests: Vec<_> = self.pending.iter().copied().take(batch).collect();
        let mut decided = vec![];
        let result = self.sequencer.propose(self.next(), &requests, decided_max, &mut decided);
        assert!(decided.len() <= decided_max);
        for winner in decided {
            self.pending.retain(|&pending| pending != winner);
            self.processed.push(winner);
        }
        result
    }

    /// The paper's "local ordering": processed, then not yet processed.
    pub fn local_order(&self) -> Vec<RequestId> {
        self.processed.iter().chain(&self.pending).copied().collect()
    }

    /// Takes over the record, as a venue does that fell out of the window.
    pub fn resynchronise(&mut self, record: &[RequestId]) {
        self.processed = record.to_vec();
        self.pending.retain(|pending| !record.contains(pending));
    }
}

/// One step of a random interleaving; numbers are taken modulo what exists.
#[derive(Clone, Copy, Debug)]
pub enum OrderingStep {
    /// Follower `who` proposes up to `batch` requests and takes up to `decided_max` answers.
    Propose { who: usize, batch: usize, decided_max: usize },
    /// Follower `who` reports `count` more positions as recorded, of those it knows.
    Record { who: usize, count: u64 },
}

/// What a step was answered, comparable between implementations (`oldest` is a bound that may differ).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StepAnswer {
    Order(Vec<RequestId>),
    TooFarBehind,
    WindowFull(Position),
    Recorded(Position),
}

/// Runs `steps` and holds every answer to the model, which is the list of all that was decided: nothing
/// in it ever changes, it grows by proposals of those who ask, and only while the record is less than a
/// window behind.
pub fn run(steps: &[OrderingStep], capacity: u64, followers: &mut [Follower]) -> Vec<StepAnswer> {
    let mut model: Vec<RequestId> = vec![];
    steps.iter().map(|&step| take(step, capacity, followers, &mut model)).collect()
}

fn take(
    step: OrderingStep,
    capacity: u64,
    followers: &mut [Follower],
    model: &mut Vec<RequestId>,
) -> StepAnswer {
    let count = followers.len();
    match step {
        OrderingStep::Propose { who, batch, decided_max } => {
            propose(&mut followers[who % count], batch, decided_max, capacity, model)
        }
        OrderingStep::Record { who, count: more } => {
            let follower = &mut followers[who % count];
            let known = follower.next();
            let to = Position((follower.sequencer.recorded().0 + more).min(known.0));
            let before = follower.sequencer.recorded();
            follower.sequencer.raise_recorded(to);
            let after = follower.sequencer.recorded();
            assert_eq!(after, before.max(to), "the mark is raised and never lowered");
            StepAnswer::Recorded(after)
        }
    }
}

fn propose(
    follower: &mut Follower,
    batch: usize,
    decided_max: usize,
    capacity: u64,
    model: &mut Vec<RequestId>,
) -> StepAnswer {
    let first = follower.first.0;
    let (next, recorded) = (follower.next().0 - first, follower.sequencer.recorded());
    let proposals: Vec<_> = follower.pending.iter().copied().take(batch).collect();
    let result = follower.step(batch, decided_max);
    grow(model, &follower.processed, &proposals, recorded.0 - first + capacity);
    let decided = model.len() as u64;
    match result {
        Ok(()) => StepAnswer::Order(follower.processed.clone()),
        Err(ProposeError::TooFarBehind { oldest }) => {
            assert!(next + capacity < decided, "{next} is in the window that ends at {decided}");
            assert!(oldest.0 - first > next && oldest.0 - first <= decided - capacity, "a true bound");
            follower.resynchronise(&model[..(recorded.0 - first) as usize]);
            StepAnswer::TooFarBehind
        }
        Err(ProposeError::WindowFull { recorded: full }) => {
            assert_eq!(full, recorded);
            assert_eq!(decided, recorded.0 - first + capacity, "full is full");
            StepAnswer::WindowFull(full)
        }
        Err(over @ ProposeError::EpochOver { .. }) => panic!("nobody began an epoch: {over}"),
    }
}

/// Agreement, first wins, nothing skipped, nothing beyond the window's end.
fn grow(model: &mut Vec<RequestId>, processed: &[RequestId], proposals: &[RequestId], end: u64) {
    let common = model.len().min(processed.len());
    assert_eq!(model[..common], processed[..common], "agreement");
    for new in &processed[common..] {
        assert!(proposals.contains(new), "{new} was decided but not proposed");
        assert!(!model.contains(new), "{new} is ordered twice");
        assert!((model.len() as u64) < end, "claimed beyond the window");
        model.push(*new);
    }
}
