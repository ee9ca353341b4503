//! Several hosts under seeded faults: the promises hold, and the checkers see when they do not.

use pares_sim::hosts::{HostsPlan, HostsSummary, run, run_twice};
use pares_sim::{Bug, Failure};

const ONE: &str = "H1 a position has one request";
const QUORUM: &str = "H3 what a quorum has stays, and nothing else counts";
const MIRRORED: &str = "H4 a mirror is the beginning of its source";
const EVERYWHERE: &str = "H6 every request is ordered, executed and recorded everywhere";
const ASSERTION: &str = "an assertion of the rules";

/// A case, where a run counts it, and how often all runs must have met it.
type Rare = (&'static str, fn(&HostsSummary) -> u64, u64);

/// Seeds in the gate; `PARES_SEEDS=all` and `PARES_SIM_SEEDS` ask for more.
fn seeds() -> u64 {
    let asked = std::env::var("PARES_SIM_SEEDS").ok().and_then(|seeds| seeds.parse().ok());
    let runs_all = std::env::var("PARES_SEEDS").is_ok_and(|which| which == "all");
    asked.unwrap_or(if runs_all { 300 } else { 60 })
}

#[test]
fn every_request_is_executed_once_and_alike_at_all_hosts() {
    let run = |seed| run(&HostsPlan::of(seed)).unwrap_or_else(|failure| panic!("\n{failure}"));
    let sum = (0..seeds()).map(run).fold(HostsSummary::default(), |sum, run| sum.and(&run));
    let rare: [Rare; 6] = [
        ("requests", |sum| sum.requests, 50_000),
        ("killed", |sum| sum.killed, 500),
        ("restarts", |sum| sum.restarts, 150),
        ("terms", |sum| sum.terms, 500),
        ("copies", |sum| sum.copies, 3),
        ("checkpoints", |sum| sum.checkpoints, 150),
    ];
    for (what, count, least) in rare {
        assert!(count(&sum) >= least, "{what}: {}", count(&sum));
    }
}

#[test]
fn the_same_seed_is_the_same_history() {
    for seed in 3..6 {
        run_twice(&HostsPlan::of(seed)).unwrap_or_else(|failure| panic!("\n{failure}"));
    }
}

/// The first failure among some seeds with that defect.
fn first_failure(bug: Bug) -> Box<Failure> {
    let failure = (0..60).find_map(|seed| run(&HostsPlan { bug: Some(bug), ..HostsPlan::of(seed) }).err());
    failure.unwrap_or_else(|| panic!("{bug:?} went unnoticed"))
}

#[test]
fn defects_of_hosts_are_found() {
    let cases: [(Bug, &[&str]); 5] = [
        // Or the log meets an entry in the place of one that it takes for committed; or who has copied such a state never orders what was lost.
        (Bug::PlaceProposed, &[ONE, ASSERTION, EVERYWHERE]),
        (Bug::ForgetSequences, &[ONE]),
        (Bug::MirrorsAreDurable, &[MIRRORED]),
        (Bug::MirrorsHaveGaps, &[MIRRORED]),
        (Bug::CountOwnTwice, &[QUORUM]),
    ];
    for (bug, invariants) in cases {
        let failure = first_failure(bug);
        assert!(invariants.contains(&failure.invariant), "{bug:?}: {failure}");
    }
}
