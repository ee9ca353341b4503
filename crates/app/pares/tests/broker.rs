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

/// The children of that process whose command line has this word.
fn children(of: u32, word: &str) -> Vec<u32> {
    let is_child = |id: &u32| {
        let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
        let line = std::fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
        let parent = stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(1)?.parse().ok());
        parent == Some(of) && line.split(|byte| *byte == 0).nth(2) == Some(word.as_bytes())
    };
    let all = std::fs::read_dir("/proc").unwrap();
    all.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).filter(is_child).collect()
}

#[test]
fn fronts_desks_and_sites_that_are_killed_lose_nothing_and_do_nothing_twice() {
    let dir = tempfile::tempdir().unwrap();
    let written = pares(dir.path(), &["generate", "day", "--commands", "20000", "--users", "60"]);
    assert!(written.status.success());
    let mut command = Command::new(env!("CARGO_BIN_EXE_pares"));
    command.current_dir(dir.path()).args([
        "broker",
        "run",
        "day",
        "--instant",
        "--durability",
        "os",
        "--json",
    ]);
    command.args(["--sites", "3", "--fronts", "3", "--desks", "2", "--window", "300"]);
    let run = command.stdout(std::process::Stdio::piped()).spawn().unwrap();
    let mut killed = 0;
    for word in ["front", "desk", "site", "front", "site"] {
        std::thread::sleep(std::time::Duration::from_millis(700));
        let Some(victim) = children(run.id(), word).first().copied() else { continue };
        let kill = Command::new("kill").args(["-9", &victim.to_string()]).status().unwrap();
        killed += u32::from(kill.success());
    }
    let output = run.wait_with_output().unwrap();
    let told = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && killed > 0, "{killed} killed: {told}");
    let figures: serde_json::Value = serde_json::from_str(&told).unwrap();
    assert_eq!(figures["commands"], 20_000, "{told}");
    assert_eq!(figures["elements"]["userCommand"], 20_000, "{told}");
}
