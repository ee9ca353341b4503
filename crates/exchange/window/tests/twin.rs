//! The shared window and the safe twin give the same answers, each held to the model.
#![allow(clippy::unwrap_used)] // a test may panic; clippy lets tests unwrap, but not what they share

use pares_exercise::ordering::{Follower, OrderingStep, StepAnswer, p, q, run};
use pares_sequencer::{LocalWindow, Sequencer};
use pares_types::{Epoch, Position, RequestId, ShardId};
use pares_window::SharedWindow;
use proptest::prelude::*;

const FOLLOWERS: usize = 3;

fn steps() -> impl Strategy<Value = Vec<OrderingStep>> {
    let propose = (0..FOLLOWERS, 0..4usize, 0..7usize)
        .prop_map(|(who, batch, decided_max)| OrderingStep::Propose { who, batch, decided_max });
    let record = (0..FOLLOWERS, 0..4u64).prop_map(|(who, count)| OrderingStep::Record { who, count });
    prop::collection::vec(prop_oneof![3 => propose, 1 => record], 0..200)
}

/// Gateways p and q, each follower hearing them in runs of another length.
fn arrivals(who: usize) -> Vec<RequestId> {
    let run = who as u64 + 1;
    (0..60).step_by(run as usize).flat_map(|n| (n..n + run).map(p).chain((n..n + run).map(q))).collect()
}

fn answers(
    steps: &[OrderingStep],
    capacity: u64,
    first: Position,
    handles: Vec<Box<dyn Sequencer>>,
) -> Vec<StepAnswer> {
    let mut followers: Vec<_> = handles
        .into_iter()
        .enumerate()
        .map(|(who, handle)| Follower::new(handle, first, &arrivals(who)))
        .collect();
    run(steps, capacity, &mut followers)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]
    #[test]
    fn shared_window_answers_as_its_twin(
        steps in steps(),
        log_capacity in 0..5u32,
        first in prop_oneof![Just(0u64), 0..100u64, Just(1 << 40)],
    ) {
        let (capacity, first) = (1usize << log_capacity, Position(first));
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("window");
        SharedWindow::create(&path, ShardId(1), capacity, Epoch(1), first).unwrap();
        let twin = LocalWindow::new(capacity, Epoch(1), first);
        let shared = (0..FOLLOWERS).map(|_| Box::new(SharedWindow::open(&path).unwrap()) as Box<dyn Sequencer>);
        let twins = (0..FOLLOWERS).map(|_| Box::new(twin.clone()) as Box<dyn Sequencer>);
        prop_assert_eq!(
            answers(&steps, capacity as u64, first, shared.collect()),
            answers(&steps, capacity as u64, first, twins.collect())
        );
    }
}
