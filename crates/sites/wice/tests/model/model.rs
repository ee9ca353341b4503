//! The steps that are possible, and what must hold.

use pares_wice::{ClusterId, Configuration, LogEntry, Site, SiteId};
use stateright::{Model, Property};

use crate::shared::Shared;
use crate::steps::{
    ASSERTED, Action, CRASHES, DISCARD_INEXACT, ELECTIONS, FORGOT, LOST, REFUSALS, REPEATS, REPLY_UNSTABLE,
    SITES_DIFFER, STABLE_TWICE, TICKS, shared,
};
use crate::world::{Phase, State, World, attempt_of, last_writer, number, script_of};

pub const SAME_PREFIX: &str = "clusters in one era have the same prefix (M1)";
pub const FIRST_COMMITTER_WINS: &str = "nobody overwrites what he has not seen (M2)";
pub const SURVIVES: &str = "what was answered is in the log of every living cluster (M3)";
pub const ONCE: &str = "a transaction commits once (M4)";
pub const ABORTED_IS_ABORTED: &str = "an attempt that was reported aborted never commits (M5)";
pub const PREFIX: &str = "a snapshot is a prefix of the order (M6)";
pub const PROGRESS: &str = "with quiet and an operator, every transaction has its outcome (L1)";

pub const ALL_COMMIT: &str = "all commit";
pub const DISCARDED: &str = "something is discarded";
pub const MOVED: &str = "another cluster certifies, and something is stable after that";

impl World {
    fn clients(&self, state: &State, actions: &mut Vec<Action>) {
        for (script, client) in state.clients.iter().enumerate() {
            match client.phase {
                Phase::Idle if state.site(self.place_of(state, script)).is_some() => {
                    actions.push(Action::Execute(script));
                }
                Phase::Executing(_) => actions.push(Action::Submit(script)),
                Phase::Idle | Phase::Waiting | Phase::Done => {}
            }
        }
    }

    fn logs(&self, state: &State, actions: &mut Vec<Action>) {
        for (at, cluster) in state.clusters.iter().enumerate() {
            if cluster.leader.is_some() && cluster.committed < cluster.log.len() {
                actions.push(Action::Commit(at));
            }
            for (number, member) in (0..).zip(&cluster.members) {
                let id = SiteId::new(at as u8, number);
                if member.leads && cluster.leader != Some(number) {
                    actions.push(Action::Depose(id));
                } else if member.site.is_some() && member.applied < cluster.committed {
                    actions.push(Action::Apply(id));
                }
            }
        }
    }

    fn leaders(&self, state: &State, only_where_there_is_none: bool, actions: &mut Vec<Action>) {
        let may = !only_where_there_is_none && state.used[ELECTIONS] < self.faults.elections;
        for (at, cluster) in state.clusters.iter().enumerate() {
            let alone = cluster.members.len() == 1;
            for (number, member) in (0..).zip(&cluster.members) {
                let other = cluster.leader != Some(number) || alone;
                if member.site.is_none() || !(cluster.leader.is_none() || may && other) {
                    continue;
                }
                let site = SiteId::new(at as u8, number);
                let open = cluster.log.len() - cluster.committed;
                actions.extend((0..=open).map(|kept| Action::Elect { site, kept }));
            }
        }
    }

    fn restarts(&self, state: &State, actions: &mut Vec<Action>) {
        for (at, cluster) in state.clusters.iter().enumerate().filter(|(_, cluster)| !cluster.lost) {
            for (number, member) in (0..).zip(&cluster.members).filter(|(_, member)| member.site.is_none()) {
                let site = SiteId::new(at as u8, number);
                actions.push(Action::Restart { site, with_store: false });
                if member.stored.position > 0 {
                    actions.push(Action::Restart { site, with_store: true });
                }
            }
        }
    }

    /// A lost cluster comes back once the era without it has begun at all of the others.
    fn returns(&self, state: &State, actions: &mut Vec<Action>) {
        let lost = state.clusters.iter().position(|cluster| cluster.lost).filter(|_| self.faults.returns);
        let Some(lost) = lost else { return };
        let lives = |site: &Site| site.configuration().live.contains(ClusterId(lost as u8));
        if !state.sites().any(lives) {
            actions.push(Action::Return(lost));
        }
    }

    /// What fate may do, and nobody may count on.
    fn fate(&self, state: &State, actions: &mut Vec<Action>) {
        self.leaders(state, false, actions);
        let up: Vec<SiteId> = self.ids().into_iter().filter(|id| state.site(*id).is_some()).collect();
        if state.used[REFUSALS] < self.faults.refusals {
            let led = (0..state.clusters.len()).filter(|&at| state.clusters[at].leader.is_some());
            for cluster in led {
                actions.push(Action::Refuse { cluster, last: false });
                if state.clusters[cluster].committed < state.clusters[cluster].log.len() {
                    actions.push(Action::Refuse { cluster, last: true });
                }
            }
        }
        if state.used[CRASHES] < self.faults.crashes {
            actions.extend(up.iter().copied().map(Action::Crash));
        }
        if state.used[TICKS] < self.faults.ticks && state.post.is_empty() {
            let ticking = up.iter().copied().filter(|id| self.faults.ticking.is_none_or(|at| at == *id));
            actions.extend(ticking.map(Action::Tick));
        }
        if state.used[REPEATS] < self.faults.repeats {
            let repeated = state.post.keys().filter(|(_, _, place)| *place > 0);
            actions.extend(repeated.map(|&(from, to, place)| Action::Receive {
                from,
                to,
                place,
                again: true,
            }));
        }
        if let Some(cluster) = self.faults.loss.filter(|_| state.commanded & LOST == 0) {
            actions.push(Action::Lose(number(cluster)));
        }
        if self.faults.forgets && state.commanded & FORGOT == 0 {
            actions.push(Action::Forget);
        }
        if self.renewed(state).is_some() {
            actions.push(Action::Begin);
        }
        if self.faults.honest && state.commanded & LOST == 0 {
            return;
        }
        let left = (0..self.faults.commands.len()).filter(|index| state.commanded & 1 << index == 0);
        actions.extend(left.map(Action::Command));
    }

    /// What happens by itself.
    fn course(&self, state: &State, actions: &mut Vec<Action>) {
        self.clients(state, actions);
        self.logs(state, actions);
        self.leaders(state, true, actions);
        self.restarts(state, actions);
        self.returns(state, actions);
        actions.extend(state.post.keys().map(|&(from, to, place)| Action::Receive {
            from,
            to,
            place,
            again: false,
        }));
    }

    fn is_at_rest(&self, state: &State) -> bool {
        let mut actions = vec![];
        self.course(state, &mut actions);
        actions.is_empty()
    }

    fn is_sampled(&self, state: &State) -> bool {
        stateright_fingerprint(state).is_multiple_of(self.sampled)
    }
}

fn stateright_fingerprint(state: &State) -> u64 {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    state.hash(&mut hasher);
    hasher.finish()
}

impl Model for World {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![self.initial()]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        if !state.wrong.is_empty() {
            return;
        }
        self.course(state, actions);
        let before = actions.len();
        self.fate(state, actions);
        for at in (before..actions.len()).rev() {
            if actions[..before].contains(&actions[at]) {
                actions.remove(at);
            }
        }
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        self.step(&mut state, action)?;
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(ASSERTED, |_, state: &State| !state.wrong.contains(ASSERTED)),
            Property::always(STABLE_TWICE, |_, state: &State| !state.wrong.contains(STABLE_TWICE)),
            Property::always(REPLY_UNSTABLE, |_, state: &State| !state.wrong.contains(REPLY_UNSTABLE)),
            Property::always(DISCARD_INEXACT, |_, state: &State| !state.wrong.contains(DISCARD_INEXACT)),
            Property::always(SITES_DIFFER, |_, state: &State| !state.wrong.contains(SITES_DIFFER)),
            Property::always(SAME_PREFIX, |_, state| same_prefix(state)),
            Property::always(FIRST_COMMITTER_WINS, |_, state| first_committer_wins(state)),
            Property::always(SURVIVES, |_, state| survives(state)),
            Property::always(ONCE, |_, state| once(state)),
            Property::always(ABORTED_IS_ABORTED, |_, state| aborted_is_aborted(state)),
            Property::always(PREFIX, |_, state| prefix(state)),
            Property::always(PROGRESS, progress),
            Property::sometimes(ALL_COMMIT, |_, state: &State| {
                state.clients.iter().all(|client| client.committed.is_some())
            }),
            Property::sometimes(DISCARDED, |_, state: &State| {
                state.clusters.iter().any(|cluster| {
                    let discards = |entry: &Shared<LogEntry>| matches!(**entry, LogEntry::Discard { .. });
                    cluster.log[..cluster.committed].iter().any(discards)
                })
            }),
            Property::sometimes(MOVED, |model: &World, state: &State| {
                let begun = state.stable.iter().position(|&code| script_of(code).is_none());
                let certifies = |site: &Site| site.certifies() && site.id().cluster != model.certifier;
                begun.is_some_and(|at| state.stable.len() > at + 1) && state.sites().any(certifies)
            }),
        ]
    }
}

/// The configuration that a cluster's log has come to, if one of its sites knows.
fn configuration(state: &State, cluster: usize) -> Option<Configuration> {
    let cluster = &state.clusters[cluster];
    let mut current = cluster.members.iter().filter(|member| member.applied == cluster.committed);
    current.find_map(|member| member.site.as_ref()).map(|site| site.configuration())
}

fn same_prefix(state: &State) -> bool {
    let known: Vec<_> = (0..state.clusters.len())
        .filter_map(|cluster| Some((configuration(state, cluster)?.era, &state.clusters[cluster].history)))
        .collect();
    known.iter().all(|(era, one)| {
        known
            .iter()
            .all(|(other_era, other)| era != other_era || shared(one, other) == one.len().min(other.len()))
    })
}

fn first_committer_wins(state: &State) -> bool {
    all_stable(state, |before, code, client, attempt| {
        let item = usize::from(code / 8 % 2);
        last_writer(before, item) == client.executions[attempt].seen[item]
    })
}

fn prefix(state: &State) -> bool {
    all_stable(state, |before, _, client, attempt| {
        let execution = &client.executions[attempt];
        let seen = before.get(..execution.snapshot.0 as usize);
        seen.is_some_and(|seen| (0..2).all(|item| last_writer(seen, item) == execution.seen[item]))
    })
}

pub fn aborted_is_aborted(state: &State) -> bool {
    all_stable(state, |_, _, client, attempt| !client.aborted.contains(&(attempt as u32)))
}

fn once(state: &State) -> bool {
    let histories = state.clusters.iter().map(|cluster| &cluster.history).chain([&state.stable]);
    histories.into_iter().all(|history| {
        (0..state.clients.len())
            .all(|script| history.iter().filter(|&&code| script_of(code) == Some(script)).count() <= 1)
    })
}

/// Whether `holds` of each stable version: given those before it, its content, whose it is, and which attempt.
fn all_stable(state: &State, holds: impl Fn(&[u8], u8, &crate::world::Client, usize) -> bool) -> bool {
    state.stable.iter().enumerate().all(|(at, &code)| {
        let Some(script) = script_of(code) else { return true };
        holds(&state.stable[..at], code, &state.clients[script], attempt_of(code))
    })
}

fn survives(state: &State) -> bool {
    let answered: Vec<usize> =
        (0..state.clients.len()).filter(|&at| state.clients[at].committed.is_some()).collect();
    let living = state.living.iter().map(|cluster| &state.clusters[number(cluster)]);
    living.filter(|cluster| !cluster.lost).all(|cluster| {
        answered.iter().all(|&script| cluster.history.iter().any(|&code| script_of(code) == Some(script)))
    })
}

/// From where nothing happens by itself, and from a sample of all states: whatever is under way may be lost, then all
/// is quiet.
fn progress(model: &World, state: &State) -> bool {
    let rest = model.is_at_rest(state);
    if !rest && !model.is_sampled(state) {
        return true;
    }
    let mut quiet = state.clone();
    quiet.post.clear();
    model.settles(quiet)
}
