//! `pares site` and `pares drill wice` as an operator runs them: real processes, killed with SIGKILL.
//!
//! How long anything took is what the drill prints, and is not judged here.
#![allow(clippy::unwrap_used)] // a test fails by panicking

use std::path::Path;
use std::process::{Child, Command, Output};
use std::time::{Duration, Instant};

use serde_json::Value;

/// Long enough for anything, on a machine that is busy.
const PATIENCE: Duration = Duration::from_secs(120);

fn pares(arguments: &str, dir: Option<&Path>) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pares"));
    command.args(arguments.split_whitespace());
    dir.map(|dir| command.arg("--dir").arg(dir));
    command.output().unwrap()
}

/// What `pares site` prints; its complaint if it fails.
fn site(arguments: &str, dir: &Path) -> Result<String, String> {
    let (command, request) = arguments.split_once(' ').unwrap_or((arguments, ""));
    let output = pares(&format!("site --dir {} {command} {request}", dir.display()), None);
    match output.status.success() {
        true => Ok(String::from_utf8(output.stdout).unwrap().trim().to_owned()),
        false => Err(String::from_utf8(output.stderr).unwrap()),
    }
}

/// One site, killed at the end.
struct Running(Child);

impl Running {
    fn start(site: &str, dir: &Path) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pares"));
        command.args(["site", "run", "--site", site, "--dir"]).arg(dir);
        Self(command.stdout(std::process::Stdio::null()).spawn().unwrap())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

/// The figures of all sites that answer.
fn status(dir: &Path) -> Vec<Value> {
    serde_json::from_str(&site("status --json", dir).unwrap()).unwrap()
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < PATIENCE, "{what}: not within {PATIENCE:?}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_cluster_is_killed_declared_lost_and_comes_back() {
    let scratch = tempfile::tempdir().unwrap();
    let dir = scratch.path().join("sites");
    assert!(site("status", &dir).unwrap_err().contains("pares site init"));
    site("init --sites 1 --durability os", &dir).unwrap();
    assert!(site("init", &dir).unwrap_err().contains("already"));
    let here = Running::start("0.0", &dir);
    let _there = Running::start("1.0", &dir);
    site("execute add alice 100", &dir).unwrap();
    assert_eq!(site("execute --site 1.0 transfer alice bob 30", &dir).unwrap(), "70");
    drop(here);
    assert!(site("lost 0", &dir).unwrap_err().contains("--yes"));
    site("lost 0 --yes", &dir).unwrap();
    assert_eq!(site("execute transfer alice bob 30", &dir).unwrap(), "40");
    let _here = Running::start("0.0", &dir);
    site("admit 0", &dir).unwrap();
    site("migrate 0", &dir).unwrap();
    assert_eq!(site("execute --site 0.0 transfer alice bob 30", &dir).unwrap(), "10");
    until("both show the same", || {
        let all = status(&dir);
        all.len() == 2 && all[0]["stable"] == all[1]["stable"] && all[0]["certifies"] == true
    });
    let digest = site("read --site 0.0 digest", &dir).unwrap();
    assert_eq!(site("read --site 1.0 digest", &dir).unwrap(), digest);
    assert_eq!(site("read list bob - 9", &dir).unwrap(), "bob 90");
}

#[test]
fn a_site_with_a_log_does_not_begin_from_nothing() {
    let scratch = tempfile::tempdir().unwrap();
    let dir = scratch.path();
    site("init --clusters 1 --sites 1 --durability os --no-tls", dir).unwrap();
    let running = Running::start("0.0", dir);
    site("execute put a 1", dir).unwrap();
    drop(running);
    assert!(site("run --site 0.0 --rejoin", dir).unwrap_err().contains("needs no --rejoin"));
}

#[test]
fn clusters_sites_and_the_link_die_under_load_and_nothing_answered_is_lost() {
    let output = pares("drill wice --rtt-ms 20 --seconds-per-part 0.3 --rate 20 --json", None);
    let said = String::from_utf8_lossy(&output.stderr);
    let figures: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{said}"));
    for count in
        ["lost", "acknowledged_lost", "executed_twice", "denied_and_done", "money_off", "sites_differing"]
    {
        assert_eq!(figures[count], 0, "{count}: {figures}");
    }
    assert!(figures["completed"].as_u64() > Some(100), "{figures}");
    assert!(figures["hot_row_commits_per_s"].as_f64() > Some(0.0), "{figures}");
    assert_eq!(figures["faults"].as_array().unwrap().len(), 7, "{figures}");
}
