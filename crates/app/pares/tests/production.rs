//! What ships, looked at as it is.
#![allow(clippy::unwrap_used)] // a test fails by panicking

use std::process::Command;

/// The variables that arm the laboratory's nodes, a place where one of them dies, and what panics in the world of roles'
/// tests. `pares` depends on nothing that has these names, so they are written out.
const TEST_EQUIPMENT: [&str; 7] = [
    "PARES_CRASH_AT",
    "PARES_WRONG",
    "PARES_POISON",
    "PARES_SLOW_SYNC_MS",
    "PARES_FAIL_SYNC_AT",
    "venue-half-decided",
    "the matching engine met a poisonous request",
];

#[test]
fn a_production_binary_holds_no_test_equipment() {
    // The tests are compiled unoptimized: a loop of theirs over the program would take half a minute.
    let holds = |word: &str| {
        let found = Command::new("grep").args(["-qaF", word, env!("CARGO_BIN_EXE_pares")]).status();
        found.unwrap().success()
    };
    assert!(holds("recorder-"), "words are found as they are written");
    assert_eq!(TEST_EQUIPMENT.into_iter().find(|word| holds(word)), None);
}
