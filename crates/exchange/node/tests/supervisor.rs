//! A supervisor over processes that only say that they are up: what it does when some cannot be started.
#![allow(clippy::unwrap_used)] // a test may panic; clippy lets tests unwrap, but not what they share

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use pares_node::lost::OnLoss;
use pares_node::supervisor::{Death, Supervisor};
use pares_node::{Layout, NodeId, SystemConfig};
use rustix::process::Signal;

/// A stand-in for `pares node NODE --dir DIR`. It exits at once if a file asks for it; otherwise it records that it is up.
const PROGRAM: &str = "#!/bin/sh
echo >> \"$4/starts-$2\"
if [ -e \"$4/refuse-$2\" ]; then echo 'the disk is gone' >&2; exit 1; fi
printf %s $$ > \"$4/run/$2.pid\"
exec sleep 1000
";

struct Rig {
    dir: tempfile::TempDir,
    supervisor: Option<Supervisor>,
    deaths: Vec<Death>,
}

impl Rig {
    fn new() -> Self {
        let rig = Self { dir: tempfile::tempdir().unwrap(), supervisor: None, deaths: Vec::new() };
        fs::write(rig.program(), PROGRAM).unwrap();
        fs::set_permissions(rig.program(), fs::Permissions::from_mode(0o755)).unwrap();
        fs::create_dir(rig.system()).unwrap();
        rig
    }

    fn program(&self) -> PathBuf {
        self.dir.path().join("program")
    }

    fn system(&self) -> PathBuf {
        self.dir.path().join("system")
    }

    fn refuse(&self, node: &str) -> PathBuf {
        self.system().join(format!("refuse-{node}"))
    }

    fn start(&mut self) {
        let gateways = vec!["127.0.0.1:0".parse().unwrap(); 2];
        let config = SystemConfig { segment_mib: 2, gateways, ..SystemConfig::default() };
        let started = Supervisor::start_armed(&self.program(), Layout::new(self.system()), &config, &[]);
        self.supervisor = Some(started.unwrap());
    }

    /// Why it does not start.
    fn refusal(&self, stop: bool) -> String {
        let gateways = vec!["127.0.0.1:0".parse().unwrap()];
        let config = SystemConfig { segment_mib: 2, gateways, ..SystemConfig::default() };
        let layout = Layout::new(self.system());
        Supervisor::start(&self.program(), layout, &config, OnLoss::Refuse, &AtomicBool::new(stop))
            .err()
            .unwrap()
            .to_string()
    }

    fn supervisor(&mut self) -> &mut Supervisor {
        self.supervisor.as_mut().unwrap()
    }

    /// Looks after the nodes until that is so.
    fn until(&mut self, what: &str, holds: impl Fn(&Self) -> bool) {
        let begun = Instant::now();
        while !holds(self) {
            assert!(begun.elapsed() < Duration::from_secs(60), "never: {what}; {:?}", self.deaths);
            let deaths = self.supervisor().tick();
            self.deaths.extend(deaths);
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    fn missing(&self) -> Vec<String> {
        self.supervisor.as_ref().unwrap().missing().iter().map(NodeId::to_string).collect()
    }
}

#[test]
fn missing_program_is_awaited_and_restarted() {
    let mut rig = Rig::new();
    rig.start();
    let aside = rig.dir.path().join("aside");
    fs::rename(rig.program(), &aside).unwrap();
    rig.supervisor().signal("venue-0".parse().unwrap(), Signal::KILL).unwrap();
    let cannot = |rig: &Rig| rig.deaths.iter().filter(|death| death.how.contains("starting")).count() >= 3;
    rig.until("it is tried again", cannot);
    assert_eq!(rig.missing(), ["venue-0"]);
    fs::rename(aside, rig.program()).unwrap();
    rig.until("all are up", |rig| rig.missing().is_empty());
}

#[test]
fn system_starts_without_unopenable_node_and_names_it() {
    let mut rig = Rig::new();
    for node in ["recorder-1", "gateway-0", "venue-1"] {
        fs::write(rig.refuse(node), "").unwrap();
    }
    rig.start();
    assert_eq!(rig.missing(), ["recorder-1", "venue-1", "gateway-0"]);
    let why =
        |rig: &Rig| rig.deaths.iter().any(|death| death.complaint.as_deref() == Some("the disk is gone"));
    rig.until("it says why", why);
    for node in ["recorder-1", "gateway-0", "venue-1"] {
        fs::remove_file(rig.refuse(node)).unwrap();
    }
    rig.until("all are up", |rig| rig.missing().is_empty());
}

#[test]
fn start_gives_up_when_only_dying_nodes_are_missing() {
    let rig = Rig::new();
    fs::write(rig.refuse("gateway-0"), "").unwrap();
    assert_eq!(rig.refusal(false), "the system did not come up: gateway-0: the disk is gone");
    let starts = fs::read_to_string(rig.system().join("starts-gateway-0")).unwrap();
    assert_eq!(starts.lines().count(), 5);
}

#[test]
fn a_start_is_broken_off_when_it_is_told_to_stop() {
    let rig = Rig::new();
    fs::write(rig.refuse("gateway-0"), "").unwrap();
    assert_eq!(rig.refusal(true), "the start was stopped");
}
