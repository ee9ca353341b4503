//! Tests: which of them the gate runs, and whether it proves each promise.
//!
//! The gate leaves out what searches or repeats. A promise whose only proof is there would not be tested before a merge. So
//! each row of `docs/reliability.md` names a test that the gate runs, and each class of faults one that starts
//! programs; or it says *not yet*.

use std::collections::BTreeMap;

use super::File;

const RELIABILITY: &str = "docs/reliability.md";
/// The heading of the column that names tests.
const PROOF: &str = "proof";
/// The heading of the column that names tests with real processes.
const REAL: &str = "test with real processes";
/// The words in that column where there is no proof; a reason may follow.
const NOT_YET: &str = "not yet";
/// The beginnings of the reason of an ignored test: `cargo xtask test --all` runs it, or a person does, by the command that follows.
const ALL: &str = "all: ";
const BY_HAND: &str = "by hand: ";
/// Folders with tests that start programs, or use real files and sockets (`crates/sites`).
const REAL_PROCESSES: &[&str] = &[
    "crates/app/pares/tests/",
    "crates/lab/lab/tests/",
    "crates/sites/",
    "crates/broker/",
    "crates/feed/",
    "crates/base/log/tests/",
];

/// A test function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Test<'a> {
    name: &'a str,
    path: &'a str,
    /// Why the gate does not run it.
    ignored: Option<&'a str>,
}

/// Checks all rules about tests.
pub(super) fn check(files: &[File], violations: &mut Vec<String>) {
    let tests = tests(files);
    for test in &tests {
        let reason = test.ignored.unwrap_or(ALL);
        if ![ALL, BY_HAND].iter().any(|beginning| reason.starts_with(beginning)) {
            violations.push(format!(
                "{}: `{}`: its reason to be ignored must begin with `{ALL}` or `{BY_HAND}`",
                test.path, test.name
            ));
        }
    }
    if let Some(page) = files.iter().find(|file| file.path == RELIABILITY) {
        check_proofs(page, &tests, violations);
    }
}

/// Names of the tests that are run by hand only.
pub(super) fn by_hand(files: &[File]) -> Vec<String> {
    let tests = tests(files);
    let by_hand = tests.iter().filter(|test| test.ignored.is_some_and(|reason| reason.starts_with(BY_HAND)));
    by_hand.map(|test| test.name.to_owned()).collect()
}

/// Every test function of the workspace.
fn tests(files: &[File]) -> Vec<Test<'_>> {
    let rust = files.iter().filter(|file| file.path.ends_with(".rs"));
    rust.flat_map(tests_of).collect()
}

fn tests_of(file: &File) -> Vec<Test<'_>> {
    let (mut found, mut is_test, mut ignored) = (Vec::new(), false, None);
    for line in file.text.lines().map(str::trim_start) {
        if line.starts_with("#[test]") {
            is_test = true;
        } else if let Some(reason) = line.strip_prefix("#[ignore") {
            ignored = Some(reason.trim_start_matches(" = \"").trim_end_matches("\"]"));
        } else if let Some(rest) = line.strip_prefix("fn ").filter(|_| is_test) {
            let name = rest.split(['(', '<']).next().unwrap_or(rest);
            found.push(Test { name, path: &file.path, ignored: ignored.take() });
            is_test = false;
        }
    }
    found
}

/// Each row of a table with a column of proofs names a test that the gate runs.
fn check_proofs(page: &File, tests: &[Test<'_>], violations: &mut Vec<String>) {
    let in_gate: BTreeMap<&str, &str> =
        tests.iter().filter(|test| test.ignored.is_none()).map(|test| (test.name, test.path)).collect();
    let mut column = None;
    let mut lines = page.text.lines().enumerate().peekable();
    while let Some((index, line)) = lines.next() {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        if !line.starts_with('|') {
            column = None;
        } else if lines.peek().is_some_and(|(_, next)| next.starts_with("|--")) {
            column = [PROOF, REAL]
                .iter()
                .find_map(|name| Some((cells.iter().position(|cell| cell == name)?, *name)));
        } else if let Some((at, name)) = column.filter(|_| !line.starts_with("|--")) {
            let cell = cells.get(at).copied().unwrap_or_default();
            let proofs = cell.split('`').skip(1).step_by(2).filter_map(|name| in_gate.get(name));
            let is_real = |path: &&&str| REAL_PROCESSES.iter().any(|folder| path.starts_with(folder));
            let proved = if name == REAL { proofs.filter(is_real).count() } else { proofs.count() };
            if proved == 0 && !cell.contains(NOT_YET) {
                violations.push(format!(
                    "{RELIABILITY}:{}: names no {name} that the gate runs: {}",
                    index + 1,
                    cells[1]
                ));
            }
        }
    }
}

#[cfg(test)]
mod tests_of_tests {
    use super::*;
    use crate::tidy::testing::{self, file};

    fn found(page: &str) -> usize {
        let code = "#[test]\nfn it_rains() {}\n#[test]\n#[ignore = \"all: repeats\"]\nfn it_pours() {}\nfn no_test() {}";
        let files = [file("crates/base/log/tests/sky.rs", code), file(RELIABILITY, page)];
        testing::found(|violations| check(&files, violations)).len()
    }

    #[test]
    fn a_row_without_a_proof_in_the_gate_is_found() {
        let table = |proof: &str| {
            format!("| fault | proof |\n|---|---|\n| rain | {proof} |\n\n| else |\n|---|\n| no |")
        };
        assert_eq!(found(&table("drill; `it_rains`")), 0);
        assert_eq!(found(&table("`it_pours`, `no_test`")), 1);
        assert_eq!(found(&table("-")), 1);
        assert_eq!(found(&table("not yet: there is one host")), 0);
    }

    #[test]
    fn a_class_of_faults_wants_real_processes() {
        let page = "| class | test with real processes |\n|---|---|\n| rain | `it_rains` |";
        assert_eq!(found(page), 0);
        let elsewhere =
            [file("crates/exchange/book/src/sky.rs", "#[test]\nfn it_rains() {}"), file(RELIABILITY, page)];
        assert_eq!(testing::found(|violations| check(&elsewhere, violations)).len(), 1);
    }

    #[test]
    fn a_test_is_ignored_for_a_reason_that_says_who_runs_it() {
        let files = [file(
            "a.rs",
            "#[test]\n#[ignore = \"slow\"]\nfn a() {}\n#[test]\n#[ignore = \"by hand: x\"]\nfn b() {}",
        )];
        let violations = testing::found(|violations| check(&files, violations));
        assert_eq!((violations.len(), by_hand(&files)), (1, vec!["b".to_owned()]));
    }
}
