//! Random interleavings of proposers, held to a model, and the two implementations held to each other.

use pares_exercise::ordering::cells::Cells;
use pares_exercise::ordering::{Follower, OrderingStep, StepAnswer, p, q, run};
use pares_sequencer::{LocalWindow, ProposeError, Sequencer, Window};
use pares_types::{Epoch, Position, RequestId};
use proptest::prelude::*;

const FOLLOWERS: usize = 3;

fn steps() -> impl Strategy<Value = Vec<OrderingStep>> {
    let propose = (0..FOLLOWERS, 0..4usize, 0..7usize)
        .prop_map(|(who, batch, decided_max)| OrderingStep::Propose { who, batch, decided_max });
    let record = (0..FOLLOWERS, 0..4u64).prop_map(|(who, count)| OrderingStep::Record { who, count });
    prop::collection::vec(prop_oneof![3 => propose, 1 => record], 0..200)
}

/// Both gateways' streams, merged differently for each follower.
fn arrivals(who: usize) -> Vec<RequestId> {
    let (mut from_p, mut from_q) = ((0..60).map(p), (0..60).map(q));
    let mut merged = vec![];
    for round in 0..120 {
        let p_first = (round * (who + 2) / 3 + who).is_multiple_of(2);
        let next = if p_first { from_p.next() } else { from_q.next() };
        merged.extend(next);
    }
    merged.extend(from_p.chain(from_q));
    merged
}

fn followers(handle: impl Fn() -> Box<dyn Sequencer>, first: Position) -> Vec<Follower> {
    (0..FOLLOWERS).map(|who| Follower::new(handle(), first, &arrivals(who))).collect()
}

fn on_twin(steps: &[OrderingStep], capacity: usize, first: Position) -> Vec<StepAnswer> {
    let twin = LocalWindow::new(capacity, Epoch(1), first);
    run(steps, capacity as u64, &mut followers(|| Box::new(twin.clone()), first))
}

fn on_window(steps: &[OrderingStep], capacity: usize, first: Position) -> Vec<StepAnswer> {
    let cells = Cells::new(capacity, Epoch(1), first);
    run(steps, capacity as u64, &mut followers(|| Box::new(Window::new(cells.clone())), first))
}

proptest! {
    #[test]
    fn interleavings_agree_with_the_model_and_with_the_twin(
        steps in steps(),
        log_capacity in 0..5u32,
        first in prop_oneof![Just(0u64), 0..100u64, Just(1 << 40)],
    ) {
        let (capacity, first) = (1 << log_capacity, Position(first));
        prop_assert_eq!(on_window(&steps, capacity, first), on_twin(&steps, capacity, first));
    }
}

#[test]
fn model_meets_every_kind_of_answer() {
    let propose = |who| OrderingStep::Propose { who, batch: 3, decided_max: 3 };
    let record = OrderingStep::Record { who: 0, count: 3 };
    let steps = [propose(0), propose(0), record, propose(0), record, propose(0), propose(1)];
    let answers = on_window(&steps, 4, Position(0));
    assert!(matches!(answers[1], StepAnswer::WindowFull(Position(0))));
    assert!(matches!(answers[2], StepAnswer::Recorded(Position(3))));
    assert!(matches!(answers[6], StepAnswer::TooFarBehind));
}

#[test]
fn old_handles_are_told_that_their_epoch_is_over() {
    let mut old = LocalWindow::new(4, Epoch(1), Position(0));
    old.propose(Position(0), &[p(0)], 1, &mut vec![]).unwrap();
    let mut new = old.begin_epoch(Epoch(2), Position(0));
    let over = Err(ProposeError::EpochOver { current: Epoch(2) });
    assert_eq!(old.propose(Position(1), &[p(1)], 1, &mut vec![]), over);
    let mut decided = vec![];
    new.propose(Position(0), &[q(0)], 1, &mut decided).unwrap();
    assert_eq!(decided, [q(0)]);
}

#[test]
fn old_handle_cannot_raise_the_mark_of_a_new_epoch() {
    let mut old = LocalWindow::new(4, Epoch(1), Position(0));
    old.propose(Position(0), &[p(0)], 1, &mut vec![]).unwrap();
    let new = old.begin_epoch(Epoch(2), Position(0));
    old.raise_recorded(Position(1));
    assert_eq!(new.recorded(), Position(0));
}

#[test]
fn decided_prefix_stands_when_the_window_fills() {
    let mut window = Window::new(Cells::new(4, Epoch(1), Position(0)));
    let mut decided = vec![];
    let full = window.propose(Position(0), &[p(0), p(1), p(2), p(3), p(4)], 5, &mut decided);
    assert_eq!(full, Err(ProposeError::WindowFull { recorded: Position(0) }));
    assert_eq!(decided, [p(0), p(1), p(2), p(3)]);
}

#[test]
fn empty_proposal_only_observes_even_when_the_window_is_full() {
    let mut window = Window::new(Cells::new(4, Epoch(1), Position(0)));
    window.propose(Position(0), &[p(0), p(1), p(2), p(3)], 4, &mut vec![]).unwrap();
    let mut decided = vec![];
    window.propose(Position(1), &[], 10, &mut decided).unwrap();
    window.propose(Position(4), &[], 10, &mut decided).unwrap();
    assert_eq!(decided, [p(1), p(2), p(3)]);
}

#[test]
fn loser_does_not_propose_the_rest_of_its_batch() {
    let twin = LocalWindow::new(8, Epoch(1), Position(0));
    let (mut one, mut two) = (twin.clone(), twin.clone());
    one.propose(Position(0), &[q(0)], 1, &mut vec![]).unwrap();
    two.propose(Position(0), &[p(0), q(0)], 8, &mut vec![]).unwrap();
    assert_eq!(twin.undecided(), Position(1), "q0 must not get a second position");
}

#[test]
#[should_panic(expected = "undecided")]
fn skipping_a_position_is_a_bug() {
    let mut window = Window::new(Cells::new(4, Epoch(1), Position(0)));
    let _skips = window.propose(Position(1), &[p(0)], 1, &mut vec![]);
}

#[test]
#[should_panic(expected = "undecided")]
fn recording_what_is_undecided_is_a_bug() {
    Window::new(Cells::new(4, Epoch(1), Position(0))).raise_recorded(Position(1));
}
