//! Every worked example of paper 1, sections 3 and 5, on both implementations of the window.
#![allow(clippy::unwrap_used)] // a test may panic; clippy lets tests unwrap, but not what they share

use pares_exercise::ordering::cells::Cells;
use pares_exercise::ordering::{Follower, p, q};
use pares_sequencer::{LocalWindow, ProposeError, Sequencer, Window};
use pares_types::{Epoch, Position, RequestId};

/// `count` handles on one window, of each implementation.
fn windows(capacity: usize, count: usize) -> [Vec<Box<dyn Sequencer>>; 2] {
    let twin = LocalWindow::new(capacity, Epoch(1), Position(0));
    let cells = Cells::new(capacity, Epoch(1), Position(0));
    let twins = (0..count).map(|_| Box::new(twin.clone()) as Box<dyn Sequencer>);
    let windows = (0..count).map(|_| Box::new(Window::new(cells.clone())) as Box<dyn Sequencer>);
    [twins.collect(), windows.collect()]
}

/// EV_1 and EV_2 of section 3, with the local orders given there.
fn section_3() -> [[Follower; 2]; 2] {
    windows(8, 2).map(|mut handles| {
        let (two, one) = (handles.pop().unwrap(), handles.pop().unwrap());
        [
            Follower::new(one, Position(0), &[q(0), q(1), p(0), p(1), q(2), p(2)]),
            Follower::new(two, Position(0), &[p(0), p(1), q(0), p(2), q(1), q(2)]),
        ]
    })
}

/// The first steps of the example, and what each comes to.
fn four_steps([one, two]: &mut [Follower; 2]) {
    one.step(1, 1).unwrap();
    two.step(1, 1).unwrap();
    assert_eq!((&one.processed[..], &two.processed[..]), (&[q(0)][..], &[q(0)][..]));
    assert_eq!(two.local_order(), [q(0), p(0), p(1), p(2), q(1), q(2)], "1: q0 comes before p0 and p1");
    two.step(1, 1).unwrap();
    one.step(1, 1).unwrap();
    assert_eq!(two.processed, [q(0), p(0)]);
    assert_eq!(one.local_order(), [q(0), p(0), q(1), p(1), q(2), p(2)], "2: p0 comes before q1");
    two.step(2, 2).unwrap();
    one.step(1, 1).unwrap();
    assert_eq!(two.processed, [q(0), p(0), p(1), p(2)], "3: EV2 wins p1 and p2");
    assert_eq!(one.local_order(), [q(0), p(0), p(1), q(1), q(2), p(2)], "3: EV1 conforms to p1");
    one.step(1, 1).unwrap();
    assert_eq!(one.local_order(), [q(0), p(0), p(1), p(2), q(1), q(2)]);
    assert_eq!(two.local_order(), one.local_order(), "4: both local orders are the same");
}

#[test]
fn paper1_s3_steps_1_to_4_come_to_one_order() {
    section_3().iter_mut().for_each(four_steps);
}

#[test]
fn paper1_s3_total_order_holds_whoever_wins_rest() {
    for first_to_finish in [0, 1] {
        for mut venues in section_3() {
            four_steps(&mut venues);
            venues[first_to_finish].step(2, 8).unwrap();
            venues[1 - first_to_finish].step(2, 8).unwrap();
            for venue in venues {
                assert_eq!(venue.processed, [q(0), p(0), p(1), p(2), q(1), q(2)]);
            }
        }
    }
}

/// Not in the paper: its steps 3 and 4 of EV_1 cost one trip, since an answer holds all that is known.
#[test]
fn follower_learns_all_that_is_decided_in_one_call() {
    for mut venues in section_3() {
        let [one, two] = &mut venues;
        one.step(1, 1).unwrap();
        two.step(1, 1).unwrap();
        two.step(1, 1).unwrap();
        one.step(1, 1).unwrap();
        two.step(2, 2).unwrap();
        one.step(2, 8).unwrap();
        assert_eq!(one.local_order(), [q(0), p(0), p(1), p(2), q(1), q(2)]);
    }
}

/// EV_1 decides positions 0 to `to - 1`, each recorded at once.
fn decide(handle: &mut dyn Sequencer, to: u64) {
    for n in 0..to {
        handle.propose(Position(n), &[p(n)], 1, &mut vec![]).unwrap();
        handle.raise_recorded(Position(n + 1));
    }
}

fn propose_one(
    handle: &mut dyn Sequencer,
    position: u64,
    request: RequestId,
) -> Result<Vec<RequestId>, ProposeError> {
    let mut decided = vec![];
    handle.propose(Position(position), &[request], 1, &mut decided).map(|()| decided)
}

/// The paper's window `[n, n+100]` holds 101 positions, ours a power of two.
#[test]
fn paper1_s3_window_keeps_n_and_removes_n_minus_1_at_end() {
    let n = 40;
    for mut handles in windows(128, 2) {
        decide(&mut *handles[0], n + 127);
        assert_eq!(propose_one(&mut *handles[1], n - 1, q(0)), Ok(vec![p(n - 1)]), "not removed yet");
        propose_one(&mut *handles[0], n + 127, p(n + 127)).unwrap();
        assert_eq!(propose_one(&mut *handles[1], n, q(0)), Ok(vec![p(n)]));
        let behind = propose_one(&mut *handles[1], n - 1, q(0));
        assert_eq!(behind, Err(ProposeError::TooFarBehind { oldest: Position(n) }));
    }
}

#[test]
fn paper1_s3_leader_waits_only_for_record() {
    for mut handles in windows(4, 2) {
        decide(&mut *handles[0], 4);
        propose_one(&mut *handles[0], 4, p(4)).unwrap();
        handles[0].propose(Position(5), &[p(5), p(6), p(7)], 3, &mut vec![]).unwrap();
        let full = propose_one(&mut *handles[0], 8, p(8));
        assert_eq!(full, Err(ProposeError::WindowFull { recorded: Position(4) }));
        handles[1].raise_recorded(Position(5));
        assert_eq!(propose_one(&mut *handles[0], 8, p(8)), Ok(vec![p(8)]));
    }
}

#[test]
fn paper1_s5_entry_created_once_next_creator_gets_key() {
    for mut handles in windows(8, 2) {
        assert_eq!(propose_one(&mut *handles[0], 0, q(0)), Ok(vec![q(0)]));
        assert_eq!(propose_one(&mut *handles[1], 0, p(0)), Ok(vec![q(0)]));
    }
}
