//! Laboratory commands, as users ask for them here: `pares` hands them to the program beside it.
#![allow(clippy::unwrap_used)] // a test fails by panicking

use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output};
use std::sync::{Mutex, PoisonError};

/// Runs a copy of `pares` that has this laboratory beside it, or none.
fn pares(arguments: &[&str], laboratory: Option<&str>) -> Output {
    // A process that another test starts while a program is being written here has it open for writing, and nobody can run it.
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let dir = tempfile::tempdir().unwrap();
    let program = dir.path().join("pares");
    std::fs::copy(env!("CARGO_BIN_EXE_pares"), &program).unwrap();
    if let Some(script) = laboratory {
        let beside = dir.path().join("pares-lab");
        std::fs::write(&beside, script).unwrap();
        std::fs::set_permissions(&beside, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    Command::new(program).args(arguments).output().unwrap()
}

#[test]
fn the_laboratory_gets_the_same_arguments_and_gives_its_status() {
    let output = pares(&["drill", "flood", "--json"], Some("#!/bin/sh\necho $0 $*\nexit 77\n"));
    assert_eq!(output.status.code(), Some(77));
    assert!(String::from_utf8(output.stdout).unwrap().ends_with("/pares-lab drill flood --json\n"));
}

#[test]
fn without_the_laboratory_one_sentence_says_how_to_build_it() {
    let output = pares(&["sim", "--minutes", "1"], None);
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        said.ends_with("build both programs with `cargo build --release -p pares -p pares-lab`\n"),
        "{said}"
    );
    assert_eq!(said.lines().count(), 1);
}

#[test]
fn the_help_lists_the_laboratorys_commands_as_such() {
    let help = String::from_utf8(pares(&["--help"], None).stdout).unwrap();
    let (operators, laboratory) = help.split_once("Laboratory commands").unwrap();
    assert!(operators.contains("  up ") && !operators.contains("  drill "));
    assert!(laboratory.contains("  drill "));
}
