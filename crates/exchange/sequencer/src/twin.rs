//! The obviously right window: a list under a lock.
//!
//! The rules of [`Sequencer`], written down as directly as possible and sharing no code with
//! [`crate::Window`], so that comparing the two means something. It serves as the oracle of the property
//! tests, as the sequencer of the simulator, and in unit tests. It is not for production between
//! processes: one that stops while holding the lock stops the rest.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};

use pares_types::{Epoch, Position, RequestId};

use crate::{Overruled, ProposeError, Sequencer, VOIDS_MAX, Voiding};

/// A handle on a window inside this process; clones share the window, each being the handle of another
/// venue.
#[derive(Clone, Debug)]
pub struct LocalWindow {
    shared: Arc<Mutex<State>>,
    epoch: Epoch,
    won: u64,
    /// Voids that this handle's user received when it asked.
    told: Vec<Position>,
}

#[derive(Debug)]
struct State {
    epoch: Epoch,
    capacity: usize,
    recorded: Position,
    /// The position of `decided[0]`.
    oldest: Position,
    /// The last decided requests, at most `capacity`.
    decided: VecDeque<RequestId>,
    /// A venue has executed all below.
    vouched: Position,
    voids: Vec<Position>,
}

impl LocalWindow {
    /// A window of `capacity` positions whose first is `first`, all before it being recorded.
    ///
    /// # Panics
    /// If `capacity` is not a power of two (the twin could do others; the real window cannot), or `epoch`
    /// is 0.
    #[must_use]
    pub fn new(capacity: usize, epoch: Epoch, first: Position) -> Self {
        assert!(capacity.is_power_of_two(), "capacity {capacity} is not a power of two");
        assert!(epoch > Epoch(0), "epochs start at 1");
        let decided = VecDeque::with_capacity(capacity);
        let (vouched, voids) = (first, Vec::new());
        let state = State { epoch, capacity, recorded: first, oldest: first, decided, vouched, voids };
        Self { shared: Arc::new(Mutex::new(state)), epoch, won: 0, told: Vec::new() }
    }

    /// Starts the epoch `epoch` at `first` with nothing decided, and returns a handle on it. All handles
    /// so far answer [`ProposeError::EpochOver`]. For use when no venue is alive: what was decided and
    /// not recorded is forgotten.
    ///
    /// # Panics
    /// If `epoch` is not newer than the present one.
    #[must_use]
    pub fn begin_epoch(&self, epoch: Epoch, first: Position) -> Self {
        let mut state = self.lock();
        assert!(epoch > state.epoch, "epoch {epoch} is not newer than {}", state.epoch);
        state.epoch = epoch;
        state.recorded = first;
        state.oldest = first;
        state.vouched = first;
        state.decided.clear();
        state.voids.clear();
        drop(state);
        Self { shared: Arc::clone(&self.shared), epoch, won: 0, told: Vec::new() }
    }

    /// Positions it holds.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.lock().capacity
    }

    /// The next undecided position.
    #[must_use]
    pub fn undecided(&self) -> Position {
        self.lock().undecided()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.shared.lock().expect("another handle panicked; its message says why")
    }
}

impl State {
    fn undecided(&self) -> Position {
        Position(self.oldest.0 + self.decided.len() as u64)
    }

    fn winner(&self, position: Position) -> Option<RequestId> {
        let index = usize::try_from(position.0 - self.oldest.0).ok()?;
        self.decided.get(index).copied()
    }

    fn claim(&mut self, request: RequestId) -> Result<RequestId, ProposeError> {
        if self.undecided().0 >= self.recorded.0 + self.capacity as u64 {
            return Err(ProposeError::WindowFull { recorded: self.recorded });
        }
        if self.decided.len() == self.capacity {
            self.decided.pop_front();
            self.oldest = self.oldest.next();
        }
        self.decided.push_back(request);
        Ok(request)
    }

    fn settle_all(
        &mut self,
        first: Position,
        requests: &[RequestId],
        decided_max: usize,
        decided: &mut Vec<RequestId>,
    ) -> Result<(), ProposeError> {
        let mut lost = false;
        for n in 0..decided_max {
            let proposal = requests.get(n).copied().filter(|_| !lost);
            let Some(winner) = self.settle(Position(first.0 + n as u64), proposal)? else {
                break;
            };
            lost |= proposal != Some(winner);
            decided.push(winner);
        }
        Ok(())
    }

    /// The winner of `position`, which is `proposal` if nobody was first; `None` if there is no winner.
    fn settle(
        &mut self,
        position: Position,
        proposal: Option<RequestId>,
    ) -> Result<Option<RequestId>, ProposeError> {
        if position < self.oldest {
            return Err(ProposeError::TooFarBehind { oldest: self.oldest });
        }
        match (self.winner(position), proposal) {
            (Some(winner), _) => Ok(Some(winner)),
            (None, Some(request)) => self.claim(request).map(Some),
            (None, None) => Ok(None),
        }
    }
}

impl Sequencer for LocalWindow {
    fn propose(
        &mut self,
        first: Position,
        requests: &[RequestId],
        decided_max: usize,
        decided: &mut Vec<RequestId>,
    ) -> Result<(), ProposeError> {
        let mut state = self.shared.lock().expect("another handle panicked; its message says why");
        if state.epoch != self.epoch {
            return Err(ProposeError::EpochOver { current: state.epoch });
        }
        let undecided = state.undecided();
        assert!(requests.is_empty() || first <= state.undecided(), "position before {first} is undecided");
        let result = state.settle_all(first, requests, decided_max, decided);
        self.won += state.undecided().0 - undecided.0;
        result
    }

    fn recorded(&self) -> Position {
        self.lock().recorded
    }

    fn raise_recorded(&mut self, to: Position) {
        let mut state = self.lock();
        if state.epoch != self.epoch || to <= state.recorded {
            return;
        }
        assert!(to <= state.undecided(), "position before {to} is undecided");
        state.recorded = to;
    }

    fn follow_record(&mut self, to: Position) {
        let mut state = self.lock();
        if state.epoch != self.epoch || to <= state.recorded {
            return;
        }
        if to > state.undecided() {
            state.decided.clear();
            state.oldest = to;
        }
        state.recorded = to;
    }

    fn is_void(&mut self, position: Position) -> bool {
        let is_void = self.lock().voids.contains(&position);
        if is_void {
            self.told.push(position);
        }
        is_void
    }

    fn vouch(&mut self, from: Position, to: Position) -> Result<(), Overruled> {
        let mut state = self.lock();
        let mut voids = state.voids.iter().filter(|&&void| from <= void && void < to);
        if let Some(&position) = voids.find(|void| !self.told.contains(void)) {
            return Err(Overruled { position });
        }
        state.vouched = state.vouched.max(to);
        Ok(())
    }

    fn void(&mut self, position: Position) -> Voiding {
        let mut state = self.lock();
        assert!(state.vouched >= position, "{position} is to be void before all below it are vouched for");
        if state.voids.contains(&position) {
            return Voiding::Void;
        }
        if state.vouched > position {
            return Voiding::Stands;
        }
        if state.voids.len() == VOIDS_MAX {
            return Voiding::Refused;
        }
        state.voids.push(position);
        Voiding::Void
    }

    fn epoch(&self) -> Epoch {
        self.epoch
    }

    fn won(&self) -> u64 {
        self.won
    }
}
