//! The exchange in its smallest form: everything around the window that can go wrong with it.

use pares_sequencer::{Slot, SlotPlan, plan};
use pares_types::{Epoch, GatewayId, Position, RequestId};
use stateright::{Model, Property};

use crate::properties;

/// A rule to break.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Broken {
    Nothing,
    /// Slots are reused without regard to the record.
    WindowRule,
    /// A late waker stores without comparing.
    Compare,
    /// A new epoch begins while venues are alive.
    EpochWhileAlive,
    /// Nobody tells the window what is recorded.
    Mark,
    /// A request that arrives after it was ordered is proposed all the same.
    DropRepeats,
}

pub struct Exchange {
    pub venues: usize,
    /// Number of requests of each gateway.
    pub requests: [u8; 2],
    pub capacity: u64,
    pub crashes: u8,
    pub epochs: u8,
    pub broken: Broken,
}

/// Memory of one epoch.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Memory {
    pub slots: Vec<Slot>,
    mark: Position,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    Dead,
    Idle,
    Marked { mark: Position },
    Loaded { expected: Slot, request: RequestId },
    Learnt(RequestId),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Venue {
    pub step: Step,
    pub epoch: Epoch,
    /// How far each gateway's log is read.
    read: [u8; 2],
    pending: Vec<RequestId>,
    /// From position 0.
    pub executed: Vec<RequestId>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    /// By epoch, from 1.
    pub memories: Vec<Memory>,
    pub venues: Vec<Venue>,
    pub record: Vec<RequestId>,
    crashes: u8,
    /// Ghost: all winners of each position, in the present epoch or recorded.
    pub winners: Vec<Vec<RequestId>>,
    /// Ghost: the window sent a venue to the record for what is not there.
    pub misled: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    Receive { venue: usize, gateway: usize },
    Mark(usize),
    Load(usize),
    Swap(usize),
    Execute(usize),
    Record(usize),
    RaiseMark(usize),
    Crash(usize),
    Restart(usize),
    BeginEpoch,
}

impl Venue {
    fn joining(epoch: Epoch, record: &[RequestId]) -> Self {
        Self { step: Step::Idle, epoch, read: [0; 2], pending: vec![], executed: record.to_vec() }
    }

    fn is_alive(&self) -> bool {
        self.step != Step::Dead
    }

    pub fn next(&self) -> Position {
        Position(self.executed.len() as u64)
    }

    fn resynchronise(&mut self, record: &[RequestId]) {
        self.executed = record.to_vec();
        self.pending.retain(|pending| !record.contains(pending));
    }
}

impl State {
    fn epoch(&self) -> Epoch {
        Epoch(self.memories.len() as u32)
    }

    fn memory(&mut self, epoch: Epoch) -> &mut Memory {
        &mut self.memories[epoch.0 as usize - 1]
    }

    pub fn alive(&self) -> usize {
        self.venues.iter().filter(|venue| venue.is_alive()).count()
    }

    pub fn decided(&self) -> usize {
        self.winners.len()
    }
}

impl Exchange {
    fn empty(&self, mark: usize) -> Memory {
        Memory { slots: vec![Slot::EMPTY; self.capacity as usize], mark: Position(mark as u64) }
    }

    pub fn slot(&self, position: Position) -> usize {
        (position.0 % self.capacity) as usize
    }

    pub fn finished(&self, state: &State) -> bool {
        let total: u8 = self.requests.iter().sum();
        state.record.len() == usize::from(total)
    }

    fn load(&self, state: &mut State, venue: usize) {
        let Step::Marked { mark } = state.venues[venue].step else { unreachable!("enabled when marked") };
        let (epoch, position) = (state.venues[venue].epoch, state.venues[venue].next());
        let slot = state.memory(epoch).slots[self.slot(position)];
        let mut answer = plan(slot, mark, epoch, self.capacity, position);
        if self.broken == Broken::WindowRule && answer == SlotPlan::Full {
            answer = SlotPlan::Claim { expected: slot };
        }
        let (record, actor) = (&state.record, &mut state.venues[venue]);
        actor.step = match (answer, actor.pending.first()) {
            (SlotPlan::Decided(winner), _) => Step::Learnt(winner),
            (SlotPlan::Claim { expected }, Some(&request)) => Step::Loaded { expected, request },
            (SlotPlan::Claim { .. } | SlotPlan::Full, _) => Step::Idle,
            (SlotPlan::EpochOver(_), _) => Step::Dead,
            (SlotPlan::Behind { .. }, _) => {
                state.misled |= record.len() <= actor.executed.len();
                actor.resynchronise(record);
                Step::Idle
            }
        };
    }

    fn swap(&self, state: &mut State, venue: usize) {
        let Step::Loaded { expected, request } = state.venues[venue].step else {
            unreachable!("enabled when loaded")
        };
        let (epoch, position) = (state.venues[venue].epoch, state.venues[venue].next());
        let index = self.slot(position);
        let slot = &mut state.memory(epoch).slots[index];
        if *slot != expected && self.broken != Broken::Compare {
            state.venues[venue].step = Step::Idle;
            return;
        }
        *slot = Slot::new(epoch, position, request);
        state.venues[venue].step = Step::Learnt(request);
        let position = position.0 as usize;
        if position >= state.decided() {
            state.winners.resize(position + 1, vec![]);
        }
        state.winners[position].push(request);
    }

    fn receive(&self, state: &mut State, venue: usize, gateway: usize) {
        let venue = &mut state.venues[venue];
        venue.read[gateway] += 1;
        let request = RequestId::new(GatewayId(gateway as u16), u64::from(venue.read[gateway]));
        if !venue.executed.contains(&request) || self.broken == Broken::DropRepeats {
            venue.pending.push(request);
        }
    }

    fn execute(state: &mut State, venue: usize) {
        let venue = &mut state.venues[venue];
        let Step::Learnt(winner) = venue.step else { unreachable!("enabled when learnt") };
        venue.pending.retain(|&pending| pending != winner);
        venue.executed.push(winner);
        venue.step = Step::Idle;
    }

    /// A new memory from the end of the record; the old one is fenced. Decisions nobody recorded are
    /// forgotten.
    fn begin_epoch(&self, state: &mut State) {
        let (old, new) = (state.epoch(), Epoch(state.epoch().0 + 1));
        state.memory(old).slots.fill(Slot::fence(new));
        let memory = self.empty(state.record.len());
        state.memories.push(memory);
        state.winners.truncate(state.record.len());
        for venue in state.venues.iter_mut().filter(|venue| !venue.is_alive()) {
            venue.executed.clear();
        }
    }

    fn may_begin_epoch(&self, state: &State) -> bool {
        let allowed = state.alive() == 0 || self.broken == Broken::EpochWhileAlive;
        state.epoch().0 < u32::from(self.epochs) && allowed
    }

    fn steps(&self, state: &State, index: usize, actions: &mut Vec<Action>) {
        let venue = &state.venues[index];
        actions.push(match venue.step {
            Step::Dead => Action::Restart(index),
            Step::Idle if self.has_work(state, venue) => Action::Mark(index),
            Step::Idle => return self.others(state, index, actions),
            Step::Marked { .. } => Action::Load(index),
            Step::Loaded { .. } => Action::Swap(index),
            Step::Learnt(_) => Action::Execute(index),
        });
        self.others(state, index, actions);
    }

    /// Whether looking at its next position can get an idle venue anywhere. (Without this a venue could look
    /// for ever without success, and the model would not notice a standstill.)
    fn has_work(&self, state: &State, venue: &Venue) -> bool {
        let memory = &state.memories[venue.epoch.0 as usize - 1];
        let (slot, mark) = (memory.slots[self.slot(venue.next())], memory.mark);
        match plan(slot, mark, venue.epoch, self.capacity, venue.next()) {
            SlotPlan::Decided(_) | SlotPlan::Behind { .. } | SlotPlan::EpochOver(_) => true,
            SlotPlan::Claim { .. } => !venue.pending.is_empty(),
            SlotPlan::Full => self.broken == Broken::WindowRule && !venue.pending.is_empty(),
        }
    }

    /// What a venue may do at any time, and what may happen to it.
    fn others(&self, state: &State, index: usize, actions: &mut Vec<Action>) {
        let venue = &state.venues[index];
        if !venue.is_alive() {
            return;
        }
        let unread = (0..2).filter(|&gateway| venue.read[gateway] < self.requests[gateway]);
        actions.extend(unread.map(|gateway| Action::Receive { venue: index, gateway }));
        if venue.executed.len() > state.record.len() {
            actions.push(Action::Record(index));
        }
        if state.memories[venue.epoch.0 as usize - 1].mark.0 < state.record.len() as u64
            && self.broken != Broken::Mark
        {
            actions.push(Action::RaiseMark(index));
        }
        if state.crashes < self.crashes {
            actions.push(Action::Crash(index));
        }
    }
}

impl Model for Exchange {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State {
            memories: vec![self.empty(0)],
            venues: vec![Venue::joining(Epoch(1), &[]); self.venues],
            record: vec![],
            crashes: 0,
            winners: vec![],
            misled: false,
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        for index in 0..self.venues {
            self.steps(state, index, actions);
        }
        if self.may_begin_epoch(state) {
            actions.push(Action::BeginEpoch);
        }
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        match action {
            Action::Receive { venue, gateway } => self.receive(&mut state, venue, gateway),
            Action::Mark(venue) => {
                let epoch = state.venues[venue].epoch;
                state.venues[venue].step = Step::Marked { mark: state.memory(epoch).mark };
            }
            Action::Load(venue) => self.load(&mut state, venue),
            Action::Swap(venue) => self.swap(&mut state, venue),
            Action::Execute(venue) => Self::execute(&mut state, venue),
            Action::Record(venue) => {
                let result = state.venues[venue].executed[state.record.len()];
                state.record.push(result);
            }
            Action::RaiseMark(venue) => {
                let (epoch, to) = (state.venues[venue].epoch, Position(state.record.len() as u64));
                state.memory(epoch).mark = to;
            }
            Action::Crash(venue) => {
                state.crashes += 1;
                state.venues[venue].step = Step::Dead;
            }
            Action::Restart(venue) => {
                state.venues[venue] = Venue::joining(state.epoch(), &last.record);
            }
            Action::BeginEpoch => self.begin_epoch(&mut state),
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        properties::all()
    }
}
