//! Our own rules, every reachable state of small systems: the shipped [`Site`](pares_wice::Site) is driven, and only what is around it is
//! a model.
//!
//! A cluster is a log that nothing but its loss can harm, and the sites that read it. What a delegate proposes is committed one entry after
//! the other; a new delegate finds any number of the entries that the old one had proposed, the rest are gone; the old one may
//! continue for a while and not know. Messages wait for any time and overtake each other (of statuses between two sites only
//! the newest waits). Sites crash and come back, with their stores or with their log alone. Operators decide what
//! they like when they like, also that a cluster is lost that is not.
//!
//! What must hold is in `model.rs`, M1 to M10; progress (L1) in `quiet.rs`. The last tests break a rule each, and demand that the checker finds
//! out.

#![allow(unreachable_pub)] // one crate, seven files

mod model;
mod quiet;
mod shared;
mod steps;
mod trouble;
mod world;

use model::{ABORTED_IS_ABORTED, ALL_COMMIT, DISCARDED, MOVED, PROGRESS, SAME_PREFIX, SURVIVES};
use pares_wice::{ClusterId, ClusterSet, Command, Message, SiteId};
use shared::Shared;
use stateright::{Checker, Expectation, HasDiscoveries, Model};
use steps::{ASSERTED, Action, STABLE_TWICE};
use world::{Broken, Faults, NONE, Script, State, World};

const A: ClusterId = ClusterId(0);
const B: ClusterId = ClusterId(1);
const C: ClusterId = ClusterId(2);
const A0: SiteId = SiteId::new(0, 0);
const A1: SiteId = SiteId::new(0, 1);
const B0: SiteId = SiteId::new(1, 0);
const C0: SiteId = SiteId::new(2, 0);

fn election() -> Faults {
    Faults { elections: 1, ..NONE }
}

/// A site in each cluster; one transaction at each, on one item.
fn two(faults: Faults) -> World {
    let scripts = vec![Script::new(A0, 0), Script::new(B0, 0)];
    World { sites: vec![1, 1], certifier: A, scripts, faults, broken: Broken::Nothing, sampled: 64 }
}

/// With one transaction only.
fn alone(site: SiteId, world: World) -> World {
    World { scripts: vec![Script::new(site, 0)], ..world }
}

fn lost(cluster: ClusterId) -> Command {
    Command::DeclareLost(ClusterSet::default().with(cluster))
}

fn commands(commands: &[(ClusterId, Command)]) -> Faults {
    Faults { commands: commands.to_vec(), ..NONE }
}

/// Explores all of the model; demands that nothing is ever wrong, and that what is to happen `sometimes` does.
fn prove(world: &World, sometimes: &[&'static str]) {
    let checker = world.clone().checker().threads(2).spawn_bfs().join();
    for property in world.properties() {
        if property.expectation == Expectation::Always
            && let Some(path) = checker.discovery(property.name)
        {
            let shortest = shortest(world, property.name, path.into_actions());
            panic!("{}: {shortest:#?}", property.name);
        }
    }
    for name in sometimes {
        assert!(checker.discovery(name).is_some(), "never: {name}");
    }
}

/// Explores, with a rule broken, until one of `properties` is refuted, and demands that it is.
fn refute(broken: Broken, world: World, properties: &[&'static str]) {
    let stop = HasDiscoveries::AnyOf(properties.iter().copied().collect());
    let checker = World { broken, ..world }.checker().threads(2).finish_when(stop).spawn_bfs().join();
    assert!(properties.iter().any(|property| checker.discovery(property).is_some()), "not found");
}

/// The shortest way to refute `property`. (The checker keeps the counterexample it found last.)
fn shortest(world: &World, property: &'static str, mut found: Vec<steps::Action>) -> Vec<steps::Action> {
    loop {
        let stop = HasDiscoveries::AnyOf([property].into());
        let bounded = world.clone().checker().target_max_depth(found.len() + 1);
        match bounded.finish_when(stop).spawn_bfs().join().discovery(property) {
            Some(path) => found = path.into_actions(),
            None => return found,
        }
    }
}

// Inside a cluster.

#[test]
fn certifier_changes_with_any_part_of_its_proposals() {
    prove(&World { sites: vec![2, 1], ..two(election()) }, &[ALL_COMMIT]);
}

#[test]
fn the_certifier_crashes_and_returns() {
    let scripts = vec![Script::new(A1, 0), Script::new(B0, 0)];
    prove(&World { sites: vec![2, 1], scripts, ..two(Faults { crashes: 1, ..NONE }) }, &[ALL_COMMIT]);
}

#[test]
fn a_delegate_changes() {
    prove(&World { sites: vec![1, 2], ..two(election()) }, &[ALL_COMMIT]);
}

#[test]
fn client_repeats_at_other_site_after_crash() {
    let scripts = vec![
        Script { retries: 1, elsewhere: B0, ..Script::new(A0, 0) },
        Script { retries: 1, ..Script::new(B0, 0) },
    ];
    prove(&World { scripts, ..two(Faults { crashes: 1, ..NONE }) }, &[ALL_COMMIT]);
}

#[test]
fn what_a_transaction_has_read_is_given_up_while_it_is_executed() {
    let slow = Script { slow: true, ..Script::new(A0, 1) };
    let scripts = vec![Script::new(A0, 0), slow, Script::new(B0, 1)];
    prove(&World { scripts, ..two(election()) }, &[ALL_COMMIT]);
}

#[test]
fn messages_are_repeated() {
    prove(&two(Faults { repeats: 1, ticks: 1, elections: 1, ..NONE }), &[ALL_COMMIT]);
}

#[test]
fn a_log_refuses_what_its_delegate_proposes() {
    prove(&two(Faults { refusals: 1, ..NONE }), &[ALL_COMMIT]);
}

/// One path of a model that is too large for all of them: a certifier that begins again within one reign must not judge otherwise
/// than it did.
#[test]
fn a_refusal_stays_one_though_the_log_refused_a_proposal() {
    let scripts = vec![Script::new(A0, 0), Script::new(B0, 1), Script::new(B0, 1)];
    let world = World { scripts, ..two(Faults { refusals: 1, repeats: 1, ..NONE }) };
    let mut state = world.initial();
    let step = |state: &mut State, action| world.step(state, action).expect("possible");
    step(&mut state, Action::Execute(0));
    step(&mut state, Action::Refuse { cluster: 0, last: false });
    for script in [1, 2] {
        step(&mut state, Action::Execute(script));
        let place = request_under_way(&state);
        step(&mut state, Action::Receive { from: B0, to: A0, place, again: script == 2 });
    }
    let repeated = request_under_way(&state);
    while let Some(&(from, to, place)) = state.post.keys().find(|(from, ..)| *from == A0) {
        step(&mut state, Action::Receive { from, to, place, again: false });
    }
    if state.clusters[0].log.len() > state.clusters[0].committed {
        step(&mut state, Action::Commit(0));
    }
    if state.post.contains_key(&(B0, A0, repeated)) {
        step(&mut state, Action::Receive { from: B0, to: A0, place: repeated, again: false });
    }
    assert!(world.settles(state.clone()));
    world.go_on(&mut state);
    assert!(model::aborted_is_aborted(&state), "{:?}, stable {:?}", state.clients, state.stable);
}

fn request_under_way(state: &State) -> u64 {
    let certify = |message: &Shared<Message>| matches!(**message, Message::Certify { .. });
    let found = state.post.iter().find(|(_, message)| certify(message));
    found.expect("a request is under way").0.2
}

// Between clusters.

#[test]
fn the_certifiers_cluster_is_lost_or_only_said_to_be() {
    prove(&two(Faults { loss: Some(A), ..commands(&[(B, lost(A))]) }), &[ALL_COMMIT, MOVED, DISCARDED]);
}

#[test]
fn the_other_cluster_is_lost_or_only_said_to_be() {
    prove(&two(Faults { loss: Some(B), ..commands(&[(A, lost(B))]) }), &[ALL_COMMIT]);
}

#[test]
fn a_cluster_wrongly_declared_lost_is_admitted_again() {
    let world = two(commands(&[(B, lost(A)), (B, Command::Admit(A))]));
    prove(&alone(A0, world), &[ALL_COMMIT, MOVED, DISCARDED]);
    prove(&two(commands(&[(A, lost(B)), (A, Command::Admit(B))])), &[ALL_COMMIT]);
}

#[test]
#[ignore = "by hand: minutes; cargo test --release -p pares-wice --test model -- --ignored"]
fn wrongly_lost_cluster_readmitted_with_conflicts() {
    prove(&two(commands(&[(B, lost(A)), (B, Command::Admit(A))])), &[ALL_COMMIT, MOVED, DISCARDED]);
}

#[test]
#[ignore = "all: two moves; the gate proves one, beside elections and beside a loss"]
fn the_certifier_moves_there_and_back() {
    prove(&two(commands(&[(A, Command::Migrate(B)), (B, Command::Migrate(A))])), &[ALL_COMMIT, MOVED]);
}

#[test]
fn the_certifier_moves_while_delegates_change() {
    prove(&two(Faults { elections: 1, ..commands(&[(A, Command::Migrate(B))]) }), &[ALL_COMMIT, MOVED]);
}

#[test]
fn the_certifier_moves_while_its_cluster_is_declared_lost() {
    let world = two(commands(&[(A, Command::Migrate(B)), (B, lost(A))]));
    prove(&alone(A0, world), &[ALL_COMMIT, MOVED, DISCARDED]);
}

/// Of two eras begun at once, the one that is doomed is the higher.
#[test]
fn a_doomed_era_outbids_the_one_that_goes_on() {
    let world = two(commands(&[(B, Command::Migrate(A)), (A, lost(B))]));
    prove(&World { certifier: B, ..alone(B0, world) }, &[ALL_COMMIT, MOVED, DISCARDED]);
}

#[test]
#[ignore = "by hand: minutes; cargo test --release -p pares-wice --test model -- --ignored"]
fn certifier_moves_while_its_cluster_is_declared_lost() {
    prove(&two(commands(&[(A, Command::Migrate(B)), (B, lost(A))])), &[ALL_COMMIT, MOVED, DISCARDED]);
}

#[test]
fn a_cluster_returns_from_nothing_and_is_admitted() {
    let faults = commands(&[(B, lost(A)), (B, Command::Admit(A))]);
    prove(&alone(B0, two(Faults { loss: Some(A), returns: true, ..faults })), &[ALL_COMMIT, MOVED]);
}

/// Of three, the certifier's; with a tick, since who has written down its promise is asked again.
fn three(scripts: Vec<Script>) -> World {
    let faults =
        Faults { loss: Some(A), honest: true, ticks: 1, ticking: Some(B0), ..commands(&[(B, lost(A))]) };
    World { sites: vec![1, 1, 1], scripts, ..two(faults) }
}

#[test]
fn the_certifiers_cluster_of_three_is_lost() {
    prove(&three(vec![Script::new(C0, 0)]), &[ALL_COMMIT, MOVED]);
}

#[test]
#[ignore = "by hand: minutes; cargo test --release -p pares-wice --test model -- --ignored"]
fn the_certifiers_cluster_of_three_is_lost_with_conflicts() {
    prove(&three(vec![Script::new(B0, 0), Script::new(C0, 0)]), &[ALL_COMMIT, MOVED]);
}

#[test]
fn two_clusters_take_over_at_once() {
    let both = commands(&[(B, lost(A)), (C, lost(A))]);
    let faults = Faults { loss: Some(A), honest: true, ticks: 1, ticking: Some(C0), ..both };
    prove(&alone(C0, World { sites: vec![1, 1, 1], ..two(faults) }), &[ALL_COMMIT, MOVED]);
}

#[test]
fn the_certifiers_cluster_of_three_is_said_to_be_lost() {
    let world = two(commands(&[(B, lost(A))]));
    prove(&alone(C0, World { sites: vec![1, 1, 1], ..world }), &[ALL_COMMIT]);
}

#[test]
fn delegates_change_while_certifier_cluster_is_lost() {
    let world = two(Faults { elections: 1, ..commands(&[(B, lost(A))]) });
    prove(&alone(A0, world), &[ALL_COMMIT, MOVED, DISCARDED]);
}

#[test]
fn sites_crash_while_the_certifiers_cluster_is_declared_lost() {
    let world = two(Faults { crashes: 1, ..commands(&[(B, lost(A))]) });
    prove(&alone(A0, world), &[ALL_COMMIT, MOVED, DISCARDED]);
}

// Both operators declare the other's cluster lost, and there is a witness.

fn with_witness(certifier: ClusterId, faults: Faults) -> World {
    World { certifier, ..alone(A0, two(Faults { witness: true, ..faults })) }
}

#[test]
fn witness_allows_mutual_lost_declarations() {
    for certifier in [A, B] {
        prove(&with_witness(certifier, commands(&[(A, lost(B)), (B, lost(A))])), &[ALL_COMMIT]);
    }
}

#[test]
fn witness_allows_certifier_move_during_declarations() {
    let told = commands(&[(A, Command::Migrate(B)), (A, lost(B)), (B, lost(A))]);
    prove(&with_witness(A, told), &[ALL_COMMIT]);
}

#[test]
fn with_a_witness_delegates_change_while_each_is_declared_lost() {
    let faults = Faults { elections: 1, ..commands(&[(A, lost(B)), (B, lost(A))]) };
    prove(&with_witness(A, faults), &[ALL_COMMIT]);
}

/// In any order: the disk is lost, either operator declares the other's cluster lost, and the certifier's renews.
#[test]
fn witness_with_lost_disk_is_renewed_after_declarations() {
    for certifier in [A, B] {
        let told = commands(&[(certifier, Command::Renew), (A, lost(B)), (B, lost(A))]);
        prove(&with_witness(certifier, Faults { forgets: true, ..told }), &[ALL_COMMIT]);
    }
}

#[test]
#[ignore = "by hand: minutes; cargo test --release -p pares-wice --test model -- --ignored"]
fn with_a_witness_that_loses_its_disk_both_renew() {
    let told = commands(&[(A, Command::Renew), (B, lost(A)), (B, Command::Renew), (A, lost(B))]);
    prove(&with_witness(A, Faults { forgets: true, ..told }), &[ALL_COMMIT]);
}

// A rule broken, to see that silence means something.

#[test]
fn checker_finds_why_only_what_is_committed_leaves_the_cluster() {
    refute(Broken::StreamsAtOnce, two(election()), &[SAME_PREFIX, STABLE_TWICE]);
}

#[test]
fn checker_finds_why_only_what_is_committed_is_acknowledged() {
    refute(Broken::AcknowledgesEarly, two(election()), &[SURVIVES]);
}

#[test]
fn checker_finds_what_the_fence_prevents() {
    let scripts = vec![Script::new(A0, 0)];
    let world = World { sites: vec![1, 1, 1], scripts, ..two(commands(&[(B, lost(A))])) };
    refute(Broken::BelievesOldEras, world, &[PROGRESS]);
}

#[test]
fn checker_finds_why_watermarks_need_their_eras() {
    refute(Broken::NumbersAlone, two(commands(&[(B, lost(A))])), &[STABLE_TWICE, SURVIVES, ASSERTED]);
}

#[test]
fn checker_finds_why_a_request_is_meant_for_one_reign() {
    let scripts = vec![Script::new(B0, 0), Script::new(B0, 0)];
    let world = World { scripts, ..two(Faults { elections: 1, repeats: 1, ..NONE }) };
    refute(Broken::AnswersForOthers, world, &[ABORTED_IS_ABORTED]);
}

#[test]
fn checker_finds_why_a_returning_cluster_discards() {
    refute(Broken::NeverDiscards, two(commands(&[(B, lost(A))])), &[PROGRESS]);
}

#[test]
fn checker_finds_mutual_lost_declarations_unsafe() {
    refute(Broken::Nothing, two(commands(&[(A, lost(B)), (B, lost(A))])), &[SURVIVES, STABLE_TWICE]);
}

#[test]
fn checker_finds_why_a_witness_must_not_forget() {
    let world = two(Faults { witness: true, ..commands(&[(A, lost(B)), (B, lost(A))]) });
    refute(Broken::WitnessForgets, world, &[SURVIVES, STABLE_TWICE]);
}
