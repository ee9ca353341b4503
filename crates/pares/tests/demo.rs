//! The demonstration as a user runs it: the built program, real processes, real kills.

#![allow(clippy::unwrap_used)] // helpers of tests are tests too

use std::path::Path;
use std::process::Command;

/// Runs a short demonstration in `dir` and gives its verdict.
fn demo(dir: &Path) -> serde_json::Value {
    let output = Command::new(env!("CARGO_BIN_EXE_pares"))
        .args(["demo", "--seconds", "4", "--json", "--rate", "500", "--kill-every", "1", "--dir"])
        .arg(dir)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("one JSON object and nothing else")
}

/// Command lines of processes that were started with `dir` as an argument.
fn processes_of(dir: &Path) -> Vec<String> {
    let dir = dir.to_str().unwrap();
    let processes = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let lines = processes.filter_map(|process| std::fs::read(process.path().join("cmdline")).ok());
    lines
        .map(|line| String::from_utf8_lossy(&line).replace('\0', " "))
        .filter(|line| line.contains(dir))
        .collect()
}

#[test]
fn venues_are_killed_and_nothing_is_lost_or_answered_twice() {
    let scratch = tempfile::tempdir().unwrap();
    let dir = scratch.path().join("system");
    let verdict = demo(&dir);
    let count = |name: &str| verdict[name].as_u64().unwrap_or_else(|| panic!("no {name} in {verdict}"));
    assert!(count("kills") >= 1, "{verdict}");
    assert_eq!((count("lost"), count("duplicated"), count("differing")), (0, 0, 0), "{verdict}");
    assert_eq!(count("recorded"), count("completed"), "{verdict}");
    assert_eq!(processes_of(&dir), Vec::<String>::new());
}

#[test]
fn a_system_that_lasts_is_demonstrated_again() {
    let scratch = tempfile::tempdir().unwrap();
    let dir = scratch.path().join("system");
    let (first, second) = (demo(&dir), demo(&dir));
    let count = |verdict: &serde_json::Value, name: &str| verdict[name].as_u64().unwrap();
    assert_eq!(count(&second, "recorded"), count(&first, "recorded") + count(&second, "completed"));
    assert_eq!((count(&second, "lost"), count(&second, "differing")), (0, 0), "{second}");
}
