//! `pares broker` as a person uses it: a workload is written, run, and its log verified.

use std::path::Path;
use std::process::{Command, Output};

fn pares(dir: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pares"));
    command.current_dir(dir).arg("broker").args(arguments).output().expect("the program runs")
}

#[test]
fn a_workload_is_written_run_and_its_log_verified_and_a_changed_log_is_found() {
    let dir = tempfile::tempdir().unwrap();
    let done = |arguments: &[&str]| {
        let output = pares(dir.path(), arguments);
        let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{arguments:?}: {complaint}");
        String::from_utf8(output.stdout).unwrap()
    };
    done(&["generate", "day", "--commands", "500", "--users", "4", "--stocks", "5"]);
    let told = done(&["run", "day", "--instant", "--durability", "os", "--logs", "logs", "--json"]);
    let figures: serde_json::Value = serde_json::from_str(&told).unwrap();
    assert_eq!(figures["commands"], 500);
    for figure in ["audit_verified", "conserved"] {
        assert_eq!(figures[figure], true, "{told}");
    }
    for figure in
        ["commands_per_s", "best_second", "slowest_quote_ms", "seconds", "hits", "dollars", "conflicts"]
    {
        assert!(!figures[figure].is_null(), "no {figure}: {told}");
    }
    assert!(done(&["audit", "verify", "logs/testLOG"]).ends_with("it adds up\n"));
    let log = std::fs::read_to_string(dir.path().join("logs/testLOG")).unwrap();
    std::fs::write(dir.path().join("changed"), log.replacen("<funds>", "<funds>9", 1)).unwrap();
    assert_eq!(pares(dir.path(), &["audit", "verify", "changed"]).status.code(), Some(1));
    assert_eq!(pares(dir.path(), &["run", "nothing"]).status.code(), Some(1));
}
