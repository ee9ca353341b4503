//! `pares` and `pares up` as processes; processes by id.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};

use pares_node::{Layout, NodeId, SystemConfig};
use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, kill_process, prlimit};

use super::eventually;
use super::exchange::PROGRAM;

/// What became of a command of `pares`.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) status: Option<i32>,
    pub(crate) out: String,
    pub(crate) complaint: String,
}

impl Ran {
    pub(crate) fn of(command: &mut Command) -> Self {
        let output = command.output().unwrap();
        let [out, complaint] = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
        Self { status: output.status.code(), out, complaint }
    }

    pub(crate) fn is_ok(&self) -> bool {
        self.status == Some(0)
    }

    /// All that it said.
    pub(crate) fn said(&self) -> String {
        format!("{}{}", self.out, self.complaint)
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// What it printed, if it succeeded.
    pub(crate) fn done(self) -> String {
        assert!(self.is_ok(), "{self:?}");
        self.out
    }
}

/// Runs `pares` with these words, which have no spaces.
pub(crate) fn run(arguments: &str) -> Ran {
    Ran::of(Command::new(PROGRAM).args(arguments.split_whitespace()))
}

/// The same with that directory.
pub(crate) fn pares(dir: &Path, arguments: &str) -> Ran {
    run(&format!("{arguments} --dir {}", dir.display()))
}

/// A process that ends with the test.
pub(crate) struct Running(pub(crate) Child);

impl Running {
    pub(crate) fn start(command: &mut Command) -> Self {
        Self(command.stdout(Stdio::piped()).spawn().unwrap())
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.0), signal).unwrap();
    }

    /// Waits until it has ended: how it did.
    pub(crate) fn ended(&mut self) -> ExitStatus {
        eventually("it ends", || self.0.try_wait().unwrap().is_some());
        self.0.wait().unwrap()
    }

    /// What it prints, line by line.
    pub(crate) fn lines(&mut self) -> impl Iterator<Item = String> + use<> {
        BufReader::new(self.0.stdout.take().unwrap()).lines().map(Result::unwrap)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // A failed test must not leave a process behind; one that has ended needs no more.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// `pares up` in a process of its own, as a user runs it.
pub(crate) struct Up {
    process: Running,
    /// The directory, if it is its own.
    own: Option<tempfile::TempDir>,
    pub(crate) layout: Layout,
    pub(crate) config: SystemConfig,
    /// What it said while starting.
    pub(crate) said: String,
}

impl Up {
    /// Starts it on `dir`, which is given `config` if it has none, and waits until the system is up.
    pub(crate) fn start(dir: &Path, config: &SystemConfig) -> Self {
        let layout = Layout::new(dir);
        if !layout.config().exists() {
            pares_node::config::save(config, &layout.config()).unwrap();
        }
        let mut command = Command::new(PROGRAM);
        let mut process = Running::start(command.args(["up", "--dir"]).arg(dir).stderr(Stdio::piped()));
        let mut lines = process.lines();
        let mut said = String::new();
        while !said.contains("Ctrl-C") {
            let Some(line) = lines.next() else { break };
            said += &(line + "\n");
        }
        let mut up = Self { process, own: None, layout, config: config.clone(), said };
        assert!(up.said.contains("Ctrl-C"), "`pares up` did not start: {}", up.stderr());
        up
    }

    /// The same in a directory of its own.
    pub(crate) fn fresh(config: &SystemConfig) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut up = Self::start(dir.path(), config);
        up.own = Some(dir);
        up
    }

    fn stderr(&mut self) -> String {
        let mut text = String::new();
        if let Some(mut stderr) = self.process.0.stderr.take() {
            std::io::Read::read_to_string(&mut stderr, &mut text).unwrap();
        }
        text
    }

    /// The nodes' process ids.
    pub(crate) fn nodes(&self) -> Vec<(NodeId, Pid)> {
        NodeId::all(&self.config).into_iter().map(|role| (role, pid_of(&self.layout, role))).collect()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        self.process.signal(signal);
    }

    /// Waits until it has ended. Whether it ended well.
    pub(crate) fn wait(&mut self) -> bool {
        self.process.ended().success()
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

/// The process may have descriptors below `most` only. Those that it has stay.
pub(crate) fn allow(process: Pid, most: Option<u64>) {
    let maximum = getrlimit(Resource::Nofile).maximum;
    prlimit(Some(process), Resource::Nofile, Rlimit { current: most.or(maximum), maximum }).unwrap();
}

/// Changes a bit in each page of a site's store that holds something, behind the one that redb begins its files with.
#[allow(dead_code)] // a system has no such store
pub(crate) fn damage_store(site: &Path) {
    let store = site.join("store/items.redb");
    let mut bytes = std::fs::read(&store).unwrap();
    for page in bytes.chunks_mut(4096).skip(1) {
        if let Some(byte) = page.iter_mut().find(|byte| **byte != 0) {
            *byte ^= 16;
        }
    }
    std::fs::write(&store, bytes).unwrap();
}
