//! What must hold in every state, and what must be met in some.

use std::collections::BTreeSet;

use pares_types::{Position, RequestId};
use stateright::{Model, Property};

use crate::exchange::{Action, Exchange, State, Step};

pub const AGREEMENT: &str = "all venues execute what was decided, and one request is decided per position";
pub const RECORD: &str = "the record is what was decided";
pub const ONCE: &str = "no request has two positions";
pub const NOTHING_LOST: &str = "what is decided is in the window or in the record";
pub const NOT_MISLED: &str = "a venue that is behind finds the position in the record";

/// Without help from joiners: as long as one venue is alive, the rest gets done.
pub const NOT_STUCK: &str = "an exchange with a venue alive has something to do until it has finished";

/// All of them.
pub fn all() -> Vec<Property<Exchange>> {
    vec![
        Property::always(AGREEMENT, |_, state: &State| agreement(state)),
        Property::always(RECORD, |_, state: &State| follows(&state.record, &state.winners)),
        Property::always(ONCE, |_, state: &State| once(state)),
        Property::always(NOTHING_LOST, nothing_lost),
        Property::always(NOT_MISLED, |_, state: &State| !state.misled),
        Property::always(NOT_STUCK, not_stuck),
        Property::sometimes("all is recorded", Exchange::finished),
        Property::sometimes("a slot is reused", |model: &Exchange, state: &State| {
            state.decided() as u64 > model.capacity
        }),
        Property::sometimes("the others finish without the dead", |model: &Exchange, state: &State| {
            state.alive() < model.venues && model.finished(state)
        }),
        Property::sometimes("a late waker finds its slot changed", late_waker),
    ]
}

fn agreement(state: &State) -> bool {
    state.winners.iter().all(|winners| winners.len() == 1)
        && state.venues.iter().all(|venue| follows(&venue.executed, &state.winners))
}

fn once(state: &State) -> bool {
    let unique: BTreeSet<_> = state.winners.iter().flatten().collect();
    unique.len() == state.winners.iter().flatten().count()
}

fn nothing_lost(model: &Exchange, state: &State) -> bool {
    let slots = &state.memories.last().expect("there is always an epoch").slots;
    (state.record.len()..state.decided()).all(|position| {
        let slot = slots[position % model.capacity as usize];
        slot.position() == Position(position as u64)
            && slot.request() == state.winners[position].first().copied()
    })
}

fn not_stuck(model: &Exchange, state: &State) -> bool {
    let mut actions = vec![];
    model.actions(state, &mut actions);
    let fate = |action: &Action| matches!(action, Action::Crash(_) | Action::Restart(_) | Action::BeginEpoch);
    state.alive() == 0 || model.finished(state) || !actions.iter().all(fate)
}

fn late_waker(model: &Exchange, state: &State) -> bool {
    state.venues.iter().any(|venue| {
        let slot = state.memories[venue.epoch.0 as usize - 1].slots[model.slot(venue.next())];
        matches!(venue.step, Step::Loaded { expected, .. } if slot != expected)
    })
}

/// Whether `order` is how the positions were won, from the first.
fn follows(order: &[RequestId], winners: &[Vec<RequestId>]) -> bool {
    order.len() <= winners.len()
        && order.iter().zip(winners).all(|(request, won)| won.first() == Some(request))
}
