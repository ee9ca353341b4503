//! The whole bank, with real processes, broken by its script.
#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::process::{Command, Output, Stdio};

fn bank(temporary: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_bank"))
        .args(args)
        .env("TMPDIR", temporary)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

#[test]
fn script_breaks_everything_and_loses_no_transfer() {
    broken_by_its_script(&[]);
}

#[test]
#[ignore = "all: a demonstration; tests of stores prove what PostgreSQL adds"]
fn the_same_over_postgresql() {
    let Some(server) = pares_testbed::postgres::server() else { return };
    let place = server.connection("");
    let host = place.split(' ').next().unwrap().trim_start_matches("host=");
    broken_by_its_script(&[
        "--store",
        &format!("postgres:///bank_{{cluster}}_{{number}}?host={host}&user=postgres"),
    ]);
}

fn broken_by_its_script(more: &[&str]) {
    let temporary = tempfile::tempdir().unwrap();
    let args = ["--seconds", "10", "--rtt-ms", "10", "--tellers", "2"];
    let output = bank(temporary.path(), &[&args[..], more].concat());
    let told = String::from_utf8_lossy(&output.stdout);
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}{words}");
    for happened in ["declared lost", "admitted", "moved", "link healed", "KEPT", "6 sites, all alike"] {
        assert!(told.contains(happened), "{happened}: {told}");
    }
    assert_eq!(std::fs::read_dir(temporary.path()).unwrap().count(), 0, "files are left behind");
}

#[test]
fn help_says_what_it_is_and_what_can_be_typed() {
    let temporary = tempfile::tempdir().unwrap();
    let output = bank(temporary.path(), &["--help"]);
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(told.contains("--rtt-ms") && told.contains("kill -9 site 1 of cluster 0"), "{told}");
}
