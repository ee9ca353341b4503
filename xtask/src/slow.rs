//! Tests of the gate that may take more than five seconds, each with the reason.
//!
//! Every change waits for a slow test. So a test that takes longer is made faster, leaves the gate (`#[ignore = "all: .."]`), or has
//! a line here. Nothing fails on a slow machine: the report prints the reason, or that there is none.

/// What a test of the gate may take without a reason.
const SECONDS_MAX: f64 = 5.0;

/// A program of tests, or a package with several, and why its tests take long.
const REASONS: &[(&str, &str)] = &[
    ("bank: demo", "a demonstration runs for ten seconds"),
    ("pares-api", "a subscriber that reads slowly, by design"),
    ("pares-book: book", "random requests until rare cases come up in both books"),
    ("pares-broker: rules", "workloads of a hundred users against the oracle"),
    ("pares-brokerage", "whole workloads, command by command"),
    ("pares-experiments", "a small day through every part of an experiment"),
    ("pares-feed: feed", "random days until rare cases come up"),
    ("pares-front: fronts", "hundreds of seeds, each with faults"),
    ("pares-fuzz: short_runs", "5,000 inputs"),
    ("pares-lab: drill", "a drill needs a quiet stretch to compare with"),
    ("pares-lab: faults", "each crash point is a kill and a restart of a whole system"),
    ("pares-link", "handshakes that time out"),
    ("pares-operator", "waits for a port until its patience ends"),
    ("pares-sequencer: protocol", "every order of messages between three venues"),
    ("pares-sim", "thousands of simulated systems"),
    ("pares-site", "whole sites start, die and copy a database"),
    ("pares-store", "PostgreSQL starts, crashes and recovers"),
    ("pares-tpcc", "an hour of TPC-C in simulated time"),
    ("pares-web", "sessions that expire, in real time"),
    ("pares-wice", "the model checker visits every state"),
    ("pares-window: processes", "thousands of kills of real processes"),
    ("pares: broker", "a whole broker starts, loses processes and restores them"),
    ("pares: sites", "whole clusters start, die and come back"),
    ("pares: system", "a whole system starts, loses nodes and restores them"),
];

/// What the report says behind a test's name.
pub(crate) fn reason(seconds: f64, test: &str) -> String {
    if seconds <= SECONDS_MAX {
        return String::new();
    }
    let known = REASONS.iter().find(|(program, _)| is_of(program, test));
    known.map_or("  (no reason in xtask/src/slow.rs)".into(), |(_, why)| format!("  ({why})"))
}

/// Whether a test is one of a program's.
fn is_of(program: &str, test: &str) -> bool {
    test.strip_prefix(program).is_some_and(|rest| rest.starts_with(':'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_slow_tests_need_a_reason() {
        assert_eq!(reason(0.5, "pares: a"), "");
        assert!(reason(9.0, "pares: a").contains("no reason"));
        assert_eq!(reason(9.0, "pares-sim: seeds: a"), "  (thousands of simulated systems)");
    }
}
