//! Executed or void, never both: any order of venues that execute, fail, sleep and restore themselves, on the window and on
//! its twin.

use pares_exercise::ordering::cells::Cells;
use pares_sequencer::{LocalWindow, Overruled, Sequencer, VOIDS_MAX, Voiding, Window};
use pares_types::{Epoch, Position};
use proptest::prelude::*;

const VENUES: usize = 3;

/// What a venue does next.
#[derive(Clone, Copy, Debug)]
enum Act {
    /// Asks whether its next position is void, and executes it accordingly.
    Execute,
    /// Hands out all it has executed.
    Vouch,
    /// Fails at its next position: vouches for what it has and asks for it to be void.
    Fail,
    /// Starts over from what has been handed out.
    Restore,
}

/// What a venue holds of each position it has executed: whether as void.
struct Venue {
    sequencer: Box<dyn Sequencer>,
    vouched: u64,
    executed: Vec<bool>,
}

fn acts() -> impl Strategy<Value = Vec<(usize, Act)>> {
    let act = prop_oneof![
        4 => Just(Act::Execute), 3 => Just(Act::Vouch), 2 => Just(Act::Fail), 1 => Just(Act::Restore)
    ];
    prop::collection::vec((0..VENUES, act), 0..400)
}

/// Runs the acts and says what was answered; checks that the history handed out is one.
fn run(acts: &[(usize, Act)], handle: impl Fn() -> Box<dyn Sequencer>) -> Vec<String> {
    let venue = || Venue { sequencer: handle(), vouched: 0, executed: vec![] };
    let mut venues: Vec<Venue> = (0..VENUES).map(|_| venue()).collect();
    let mut history: Vec<bool> = vec![];
    acts.iter().map(|&(who, act)| venues[who].act(act, &mut history)).collect()
}

impl Venue {
    fn next(&self) -> Position {
        Position(self.executed.len() as u64)
    }

    fn act(&mut self, act: Act, history: &mut Vec<bool>) -> String {
        match act {
            Act::Execute => {
                let is_void = self.sequencer.is_void(self.next());
                self.executed.push(is_void);
                format!("{is_void}")
            }
            Act::Vouch => format!("{:?}", self.vouch(history)),
            Act::Restore => {
                self.restore(history);
                "restored".into()
            }
            Act::Fail => match self.vouch(history) {
                Ok(()) => self.fail(history),
                overruled => format!("{overruled:?}"),
            },
        }
    }

    fn fail(&mut self, history: &mut [bool]) -> String {
        let at = self.next();
        let verdict = self.sequencer.void(at);
        let handed_out = history.get(at.0 as usize).copied();
        match verdict {
            Voiding::Void => assert_ne!(handed_out, Some(false), "{at} is void and handed out as executed"),
            Voiding::Stands => assert_eq!(handed_out, Some(false), "{at} stands and nobody has it"),
            Voiding::Refused => {
                assert!(history.iter().filter(|&&void| void).count() >= VOIDS_MAX, "refused too soon")
            }
        }
        format!("{verdict:?}")
    }

    fn vouch(&mut self, history: &mut Vec<bool>) -> Result<(), Overruled> {
        let vouched = self.sequencer.vouch(Position(self.vouched), self.next());
        if vouched.is_err() {
            self.restore(history);
            return vouched;
        }
        for (position, &is_void) in self.executed.iter().enumerate().skip(self.vouched as usize) {
            match history.get(position) {
                Some(&handed_out) => assert_eq!(handed_out, is_void, "two histories at {position}"),
                None => history.push(is_void),
            }
        }
        self.vouched = self.next().0;
        vouched
    }

    fn restore(&mut self, history: &[bool]) {
        self.executed = history.to_vec();
        self.vouched = self.next().0;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]
    #[test]
    fn window_and_twin_hand_out_one_history(acts in acts()) {
        let cells = Cells::new(8, Epoch(1), Position(0));
        let twin = LocalWindow::new(8, Epoch(1), Position(0));
        let on_window = run(&acts, || Box::new(Window::new(cells.clone())));
        prop_assert_eq!(on_window, run(&acts, || Box::new(twin.clone())));
    }
}

#[test]
fn who_executed_what_became_void_is_overruled_and_only_once() {
    let cells = Cells::new(8, Epoch(1), Position(0));
    let (mut failing, mut slow) = (Window::new(cells.clone()), Window::new(cells));
    assert!(!slow.is_void(Position(0)));
    assert_eq!(failing.void(Position(0)), Voiding::Void);
    assert!(failing.is_void(Position(0)));
    failing.vouch(Position(0), Position(1)).unwrap();
    assert_eq!(slow.vouch(Position(0), Position(1)), Err(Overruled { position: Position(0) }));
    assert!(slow.is_void(Position(0)));
    slow.vouch(Position(0), Position(1)).unwrap();
}

#[test]
fn what_somebody_has_handed_out_stands() {
    let cells = Cells::new(8, Epoch(1), Position(0));
    let (mut failing, mut other) = (Window::new(cells.clone()), Window::new(cells));
    other.vouch(Position(0), Position(3)).unwrap();
    assert_eq!(failing.void(Position(1)), Voiding::Stands);
    assert!(!other.is_void(Position(1)));
}

#[test]
fn an_engine_that_fails_at_everything_is_refused_after_so_many() {
    let mut venue = Window::new(Cells::new(8, Epoch(1), Position(0)));
    for position in 0..VOIDS_MAX as u64 {
        assert_eq!(venue.void(Position(position)), Voiding::Void);
        assert!(venue.is_void(Position(position)));
        venue.vouch(Position(position), Position(position + 1)).unwrap();
    }
    assert_eq!(venue.void(Position(VOIDS_MAX as u64)), Voiding::Refused);
}

#[test]
#[should_panic(expected = "before all below it are vouched for")]
fn a_position_is_void_only_after_all_below_it() {
    let _ = Window::new(Cells::new(8, Epoch(1), Position(0))).void(Position(1));
}
