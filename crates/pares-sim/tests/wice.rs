//! Replication between clusters under seeded faults: the promises hold, and the checkers see when they do not.

use pares_sim::wice::{Defect, Plan, Summary, run};

/// Seeds of each plan in every run of the tests; `PARES_SIM_SEEDS` asks for more.
fn seeds() -> u64 {
    std::env::var("PARES_SIM_SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(25)
}

fn all_hold(plan: Plan) {
    let mut sum = Summary::default();
    for seed in 0..seeds() {
        let summary = run(plan, seed).unwrap_or_else(|failure| panic!("{}: {failure:#?}", plan.name));
        sum.committed += summary.committed;
        sum.aborted += summary.aborted;
        sum.faults += summary.faults;
        sum.eras += summary.eras;
    }
    assert!(sum.committed > 20 * seeds(), "{sum:?}");
}

#[test]
fn nothing_fails_and_everything_commits() {
    all_hold(Plan::CALM);
}

#[test]
fn two_clusters_survive_whatever_fails() {
    all_hold(Plan::TWO);
}

#[test]
fn three_clusters_survive_whatever_fails() {
    all_hold(Plan::THREE);
}

#[test]
fn clusters_of_one_site_survive_whatever_fails() {
    all_hold(Plan::LONE);
}

#[test]
fn a_seed_does_the_same_again() {
    let twice = [run(Plan::TWO, 7), run(Plan::TWO, 7)];
    assert_eq!(twice[0], twice[1]);
}

#[test]
fn every_defect_is_found() {
    let defects = [
        Defect::NoFence,
        Defect::AcknowledgesTooEarly,
        Defect::StreamsTooEarly,
        Defect::KeepsItsOwn,
        Defect::StoresTooEarly,
        Defect::ClaimsLaterSnapshot,
    ];
    for defect in defects {
        let found = (0..300).find_map(|seed| run(Plan { defect: Some(defect), ..Plan::THREE }, seed).err());
        assert!(found.is_some(), "{defect:?} goes unseen");
    }
}
