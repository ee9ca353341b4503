//! `pares journal` on logs written here: what it prints, and how it ends.
#![allow(clippy::unwrap_used)] // a test

use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use pares_log::{Config, Reader, Writer};
use serde_json::Value;

fn journal(command: &str, log: &Path, options: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_pares"))
        .args(["journal", command])
        .arg(log)
        .args(options)
        .output()
        .unwrap()
}

/// A log of five records, and where they lie.
fn log(dir: &Path) -> (PathBuf, Vec<u64>) {
    let log = dir.join("recorder-0");
    let (mut writer, _) = Writer::open(&log, Config::default().segment_bytes(1 << 16)).unwrap();
    let offsets = (0..5_u8).map(|n| writer.append(&[200, n]).unwrap().0).collect();
    writer.publish();
    (log, offsets)
}

fn flip_bit(log: &Path, at: u64) {
    let segment = log.join("00000000000000000000.seg");
    let file = std::fs::File::options().read(true).write(true).open(segment).unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).unwrap();
    file.write_all_at(&[byte[0] ^ 1], at).unwrap();
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap()
}

fn complaint(output: &Output) -> String {
    assert!(!output.status.success());
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[test]
fn an_intact_log_verifies() {
    let dir = tempfile::tempdir().unwrap();
    let (log, _) = log(dir.path());
    let output = journal("verify", &log, &["--json"]);
    assert!(output.status.success());
    assert_eq!((&json(&output)["intact"], &json(&output)["records"]), (&true.into(), &5.into()));
}

#[test]
fn damage_fails_with_its_place_and_what_to_do() {
    let dir = tempfile::tempdir().unwrap();
    let (log, offsets) = log(dir.path());
    flip_bit(&log, offsets[2] + 8);
    let output = journal("verify", &log, &["--json"]);
    assert_eq!(json(&output)["damage"][0]["offset"], offsets[2]);
    let says = complaint(&output);
    assert!(says.contains(&format!("damaged at offset {}", offsets[2])), "{says}");
    assert!(says.contains("Restart its recorder") && says.contains("pares journal cut"), "{says}");
}

#[test]
fn inspect_lists_from_an_offset_up_to_a_limit() {
    let dir = tempfile::tempdir().unwrap();
    let (log, offsets) = log(dir.path());
    let output = journal("inspect", &log, &["--json", "--from", &offsets[1].to_string(), "--limit", "2"]);
    let listed: Vec<Value> =
        json(&output)["records"].as_array().unwrap().iter().map(|r| r["offset"].clone()).collect();
    assert_eq!(
        (listed, &json(&output)["next"]),
        (vec![offsets[1].into(), offsets[2].into()], &offsets[3].into())
    );
}

#[test]
fn inspect_shows_what_lies_before_damage_and_fails() {
    let dir = tempfile::tempdir().unwrap();
    let (log, offsets) = log(dir.path());
    flip_bit(&log, offsets[2] + 8);
    let output = journal("inspect", &log, &["--json"]);
    assert_eq!(json(&output)["records"].as_array().unwrap().len(), 2);
    assert!(complaint(&output).contains(&offsets[2].to_string()));
}

#[test]
fn cut_discards_after_damage_only_with_yes() {
    let dir = tempfile::tempdir().unwrap();
    let (log, offsets) = log(dir.path());
    flip_bit(&log, offsets[2] + 8);
    let at = offsets[2].to_string();
    assert!(complaint(&journal("cut", &log, &["--at", &at])).contains("--yes"));
    assert!(!journal("verify", &log, &[]).status.success());
    assert!(journal("cut", &log, &["--at", &at, "--yes"]).status.success());
    assert!(journal("verify", &log, &[]).status.success());
    assert_eq!(Reader::at_end(&log).unwrap().offset().0, offsets[2]);
}

#[test]
fn a_directory_that_is_no_log_is_called_so() {
    let dir = tempfile::tempdir().unwrap();
    for command in ["verify", "inspect"] {
        assert!(complaint(&journal(command, dir.path(), &[])).contains("is not a log"));
    }
}
