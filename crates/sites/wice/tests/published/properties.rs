//! What must hold in every state, and what must be met in some.

use stateright::Property;

use crate::system::{State, Tid, Told, Update, Version, Wice};

pub const ONE_TRANSACTION: &str = "a version is one transaction (M1)";
pub const ONE_VERSION: &str = "a transaction has one version (M4)";
pub const IN_ORDER: &str = "every site delivers the versions in order and once (M1)";
pub const NO_LOST_UPDATE: &str = "of two that write one item, the later has seen the earlier (M2)";
pub const SURVIVES: &str = "what a client was told is committed, every live cluster has (M3)";
pub const ABORTED_IS_ABORTED: &str = "what a client was told is aborted never commits (M5)";
pub const PREFIX: &str = "what a site shows is a prefix of the order (M6)";
pub const ANSWERED: &str = "when nothing is left to do, every client of a live site has its answer (L1)";

pub const BOTH_COMMIT: &str = "two transactions on one item commit, one after the other";
pub const ALL_TOLD: &str = "all are told";

/// All of them.
pub fn all() -> Vec<Property<Wice>> {
    vec![
        Property::always(ONE_TRANSACTION, |model, state| {
            pairs(model, state).all(|(one, other)| one.version != other.version || one.tid == other.tid)
        }),
        Property::always(ONE_VERSION, |model, state| {
            pairs(model, state).all(|(one, other)| one.tid != other.tid || one.version == other.version)
        }),
        Property::always(IN_ORDER, |_, state: &State| {
            let in_order =
                |updated: &[Update]| (1..).zip(updated).all(|(place, update)| update.version == place);
            state.sites.iter().all(|site| in_order(&site.updated))
        }),
        Property::always(NO_LOST_UPDATE, no_lost_update),
        Property::always(SURVIVES, survives),
        Property::always(ABORTED_IS_ABORTED, |model, state| {
            delivered(model, state)
                .all(|update| state.attempts[usize::from(update.tid)].told != Told::Aborted)
        }),
        Property::always(PREFIX, prefix),
        Property::always(ANSWERED, answered),
        Property::sometimes(BOTH_COMMIT, both_commit),
        Property::sometimes(ALL_TOLD, |_, state: &State| {
            state.attempts.iter().all(|attempt| attempt.told != Told::Nothing)
        }),
    ]
}

/// Everything delivered anywhere, also at sites that have crashed since, but for those that were lost with all of their
/// cluster: what only they had never was.
fn delivered<'a>(model: &'a Wice, state: &'a State) -> impl Iterator<Item = &'a Update> {
    let clusters = (0..2).filter(|&cluster| !is_lost(model, state, cluster));
    clusters.flat_map(|cluster| model.members(cluster)).flat_map(|site| &state.sites[site].updated)
}

fn pairs<'a>(model: &'a Wice, state: &'a State) -> impl Iterator<Item = (&'a Update, &'a Update)> {
    delivered(model, state).flat_map(|one| delivered(model, state).map(move |other| (one, other)))
}

fn no_lost_update(model: &Wice, state: &State) -> bool {
    pairs(model, state).all(|(one, other)| {
        let snapshot = state.attempts[usize::from(other.tid)].snapshot.expect("it is delivered");
        let conflict = one.tid != other.tid && model.item(one.tid) == model.item(other.tid);
        !conflict || one.version >= other.version || one.version <= snapshot
    })
}

fn survives(model: &Wice, state: &State) -> bool {
    let committed = (0..).zip(&state.attempts).filter(|(_, attempt)| attempt.told == Told::Committed);
    let mut committed = committed.map(|(tid, _)| tid);
    committed
        .all(|tid| (0..2).all(|cluster| is_lost(model, state, cluster) || has(model, state, cluster, tid)))
}

fn is_lost(model: &Wice, state: &State, cluster: usize) -> bool {
    model.members(cluster).all(|site| !state.sites[site].alive)
}

fn has(model: &Wice, state: &State, cluster: usize, tid: Tid) -> bool {
    let mut live = model.members(cluster).map(|site| &state.sites[site]).filter(|site| site.alive);
    live.any(|site| site.updated.iter().any(|update| update.tid == tid))
}

fn prefix(_: &Wice, state: &State) -> bool {
    state.sites.iter().all(|site| {
        let shown = |version: Version| {
            site.updated
                .iter()
                .any(|update| update.version == version && site.installed.contains(&update.tid))
        };
        !site.updated.iter().any(|update| shown(update.version) && !(1..update.version).all(shown))
    })
}

fn answered(model: &Wice, state: &State) -> bool {
    let mut clients = model.transactions.iter().zip(&state.attempts);
    clients.all(|(script, attempt)| attempt.told != Told::Nothing || !state.sites[script.site].alive)
        || !model.is_at_rest(state)
}

fn both_commit(model: &Wice, state: &State) -> bool {
    let committed = (0..).zip(&state.attempts).filter(|(_, attempt)| attempt.told == Told::Committed);
    let items: Vec<_> = committed.map(|(tid, _)| model.item(tid)).collect();
    (1..items.len()).any(|at| items[..at].contains(&items[at]))
}
