//! `pares check-config`, and the file that a new system is given.
#![allow(clippy::unwrap_used)] // a test

use std::path::Path;
use std::process::{Command, Output};

use pares_node::SystemConfig;
use serde_json::Value;

fn check(file: &Path, more: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_pares")).arg("check-config").arg(file).args(more).output().unwrap()
}

#[test]
fn a_legal_file_is_gone_through_and_an_illegal_one_is_refused_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("pares.toml");
    std::fs::write(&file, SystemConfig::fresh().text()).unwrap();
    let told: Value = serde_json::from_slice(&check(&file, &["--json"]).stdout).unwrap();
    let of = |setting: &str| {
        let points = told["points"].as_array().unwrap();
        points.iter().find(|point| point["setting"] == setting).unwrap().clone()
    };
    assert_eq!((&of("durability")["in_force"], &of("durability")["safe"]), (&"disk".into(), &true.into()));
    assert_eq!(of("session_rate_max")["safe"], true);
    // One disk for both, and one recorder's disk is enough to lose.
    assert_eq!((&of("recorders' disks")["safe"], &of("quorum")["safe"]), (&false.into(), &false.into()));
    assert!(String::from_utf8(check(&file, &[]).stdout).unwrap().contains("LOOK  quorum = 1 of 2 recorders"));

    assert!(check(dir.path(), &[]).status.success(), "the directory of it will do");
    std::fs::write(&file, "quorum = 3").unwrap();
    let refused = check(&file, &[]);
    assert!(!refused.status.success());
    assert!(String::from_utf8(refused.stderr).unwrap().contains("`quorum`"));
}
