//! `pares up` as a process; processes by id.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use pares_node::{Layout, NodeId, SystemConfig};
use rustix::process::{Pid, Signal, kill_process};

use super::eventually;
use super::exchange::PROGRAM;

/// `pares up` in a process of its own, as a user runs it.
pub(crate) struct Up {
    child: Child,
    pub(crate) layout: Layout,
    pub(crate) config: SystemConfig,
    /// What it said while starting.
    pub(crate) said: String,
}

impl Up {
    /// Starts it on `dir`, which is given `config` if it has none, and waits until the system is up.
    pub(crate) fn start(dir: &Path, config: &SystemConfig) -> Self {
        Self::start_with(dir, config, &[])
    }

    /// The same, with that much more in its environment.
    pub(crate) fn start_with(dir: &Path, config: &SystemConfig, environment: &[(&str, &str)]) -> Self {
        let layout = Layout::new(dir);
        if !layout.config().exists() {
            pares_node::config::save(config, &layout.config()).unwrap();
        }
        let mut child = Command::new(PROGRAM)
            .args(["up", "--dir"])
            .arg(dir)
            .envs(environment.iter().copied())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut said = String::new();
        while !said.contains("Ctrl-C") {
            let Some(line) = lines.next() else { break };
            said += &(line.unwrap() + "\n");
        }
        let mut up = Self { child, layout, config: config.clone(), said };
        assert!(up.said.contains("Ctrl-C"), "`pares up` did not start: {}", up.stderr());
        up
    }

    fn stderr(&mut self) -> String {
        let mut text = String::new();
        if let Some(mut stderr) = self.child.stderr.take() {
            std::io::Read::read_to_string(&mut stderr, &mut text).unwrap();
        }
        text
    }

    /// The nodes' process ids.
    pub(crate) fn nodes(&self) -> Vec<(NodeId, Pid)> {
        NodeId::all(&self.config).into_iter().map(|role| (role, pid_of(&self.layout, role))).collect()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Waits until it has ended. Whether it ended well.
    pub(crate) fn wait(&mut self) -> bool {
        let mut ended = None;
        eventually("`pares up` ends", || {
            ended = self.child.try_wait().unwrap();
            ended.is_some()
        });
        ended.unwrap().success()
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        // A failed test must not leave a system behind; one that has ended needs no more.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The process id a node announced.
pub(crate) fn pid_of(layout: &Layout, role: NodeId) -> Pid {
    let text = std::fs::read_to_string(layout.pid(role)).unwrap();
    Pid::from_raw(text.trim().parse().unwrap()).unwrap()
}

/// Whether such a process exists and has not ended.
pub(crate) fn is_alive(pid: Pid) -> bool {
    stat(pid).is_some_and(|fields| fields[0] != "Z")
}

/// CPU time a process has used, in clock ticks.
pub(crate) fn cpu_ticks(pid: Pid) -> u64 {
    let fields = stat(pid).expect("it runs");
    // utime and stime are fields 14 and 15 of proc(5); the first two are cut off here.
    [11, 12].iter().map(|&field| fields[field].parse::<u64>().unwrap()).sum()
}

/// What /proc says about a process, from its state on.
fn stat(pid: Pid) -> Option<Vec<String>> {
    let text = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
    let (_, rest) = text.rsplit_once(')')?;
    Some(rest.split_whitespace().map(str::to_owned).collect())
}
