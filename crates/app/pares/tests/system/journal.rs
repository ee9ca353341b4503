//! `pares journal` on logs written here: what it prints, and how it ends.

use std::path::{Path, PathBuf};

use pares_log::{Config, Reader, Writer};
use serde_json::Value;
use tempfile::TempDir;

use crate::common::process::{Ran, run};

fn journal(command: &str, log: &Path, options: &str) -> Ran {
    run(&format!("journal {command} {} {options}", log.display()))
}

/// A log of five records, and where they lie.
fn log() -> (TempDir, PathBuf, Vec<u64>) {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("recorder-0");
    let (mut writer, _) = Writer::open(&log, Config::default().segment_bytes(1 << 16)).unwrap();
    let offsets = (0..5_u8).map(|n| writer.append(&[200, n]).unwrap().0).collect();
    writer.publish();
    (dir, log, offsets)
}

/// The same with a bit changed in the third record.
fn damaged() -> (TempDir, PathBuf, Vec<u64>) {
    let (dir, log, offsets) = log();
    let segment = log.join("00000000000000000000.seg");
    let mut bytes = std::fs::read(&segment).unwrap();
    bytes[offsets[2] as usize + 8] ^= 1;
    std::fs::write(&segment, bytes).unwrap();
    (dir, log, offsets)
}

fn complaint(ran: &Ran) -> &str {
    assert!(!ran.is_ok());
    &ran.complaint
}

#[test]
fn an_intact_log_verifies() {
    let (_dir, log, _) = log();
    let output = journal("verify", &log, "--json");
    assert!(output.is_ok());
    assert_eq!((&output.json()["intact"], &output.json()["records"]), (&true.into(), &5.into()));
}

#[test]
fn damage_fails_with_its_place_and_what_to_do() {
    let (_dir, log, offsets) = damaged();
    let output = journal("verify", &log, "--json");
    assert_eq!(output.json()["damage"][0]["offset"], offsets[2]);
    let says = complaint(&output);
    assert!(says.contains(&format!("damaged at offset {}", offsets[2])), "{says}");
    assert!(says.contains("Restart its recorder") && says.contains("pares journal cut"), "{says}");
}

#[test]
fn inspect_lists_from_an_offset_up_to_a_limit() {
    let (_dir, log, offsets) = log();
    let output = journal("inspect", &log, &format!("--json --from {} --limit 2", offsets[1]));
    let listed: Vec<Value> =
        output.json()["records"].as_array().unwrap().iter().map(|r| r["offset"].clone()).collect();
    assert_eq!(
        (listed, &output.json()["next"]),
        (vec![offsets[1].into(), offsets[2].into()], &offsets[3].into())
    );
}

#[test]
fn inspect_shows_what_lies_before_damage_and_fails() {
    let (_dir, log, offsets) = damaged();
    let output = journal("inspect", &log, "--json");
    assert_eq!(output.json()["records"].as_array().unwrap().len(), 2);
    assert!(complaint(&output).contains(&offsets[2].to_string()));
}

#[test]
fn cut_discards_after_damage_only_with_yes() {
    let (_dir, log, offsets) = damaged();
    let at = offsets[2].to_string();
    assert!(complaint(&journal("cut", &log, &format!("--at {at}"))).contains("--yes"));
    assert!(!journal("verify", &log, "").is_ok());
    assert!(journal("cut", &log, &format!("--at {at} --yes")).is_ok());
    assert!(journal("verify", &log, "").is_ok());
    assert_eq!(Reader::at_end(&log).unwrap().offset().0, offsets[2]);
}

#[test]
fn a_directory_that_is_no_log_is_called_so() {
    let dir = tempfile::tempdir().unwrap();
    for command in ["verify", "inspect"] {
        assert!(complaint(&journal(command, dir.path(), "")).contains("is not a log"));
    }
}
