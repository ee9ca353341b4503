//! `pares up`: starts a system's processes, restarts what dies, stops everything, leaves nothing behind.
//!
//! The supervisor is a convenience, not a part of the promise: nothing in the data path asks it anything, and
//! it detects deaths only to start replacements, while the others go on. If it dies itself the nodes
//! are told by the kernel and stop (no orphans); the next start finds logs that every node left whole.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use pares_types::Epoch;
use rustix::process::{Pid, Signal, kill_process};

use crate::config::{Layout, SystemConfig};
use crate::role::Role;
use crate::wrong::{self, Wrong};
use crate::{NodeError, crash, device, epoch, shut_out};

/// How long nodes may take to start, and to stop when asked.
const PATIENCE: Duration = Duration::from_secs(60);
/// A node that dies younger than this is restarted with growing pauses.
const INFANT: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(2);
/// How long nodes of an earlier start, whose supervisor was killed, may take to be gone.
const LEFTOVERS_MAX: Duration = Duration::from_secs(10);
/// Tells a node which process started it.
const PARENT: &str = "PARES_PARENT";

/// A running system.
pub struct Supervisor {
    program: PathBuf,
    layout: Layout,
    config: SystemConfig,
    epoch: Epoch,
    nodes: BTreeMap<Role, Node>,
    arms: Vec<(&'static str, String)>,
    restarts: u64,
    lock: File,
}

struct Node {
    child: Option<Child>,
    started: Instant,
    pause: Duration,
    /// Asked to die by whoever runs the drill: no reason to suspect it and wait.
    killed: bool,
    /// Not to be restarted for now.
    held: bool,
    /// Where its next process is to die.
    doom: Option<crash::Doom>,
    /// What is wrong with the device of its next process.
    ailment: Option<device::Ailment>,
    /// What its next process does wrong.
    wrong: Option<Wrong>,
}

impl Node {
    fn new(child: Option<Child>) -> Self {
        let (started, pause, killed, held) = (Instant::now(), Duration::ZERO, false, false);
        Self { child, started, pause, killed, held, doom: None, ailment: None, wrong: None }
    }
}

/// A node that died and is being replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Death {
    /// Which node.
    pub role: Role,
    /// How it ended.
    pub how: String,
    /// The last line it wrote to its log, if it was a complaint.
    pub complaint: Option<String>,
}

impl Supervisor {
    /// Starts the system in `layout`, which is created with `config` if it does not exist yet; otherwise
    /// the configuration there is used. `program` is run as `program node ROLE --dir DIR` for each node.
    ///
    /// # Errors
    /// If another supervisor runs the system, or a node does not come up.
    pub fn start(program: &Path, layout: Layout, config: &SystemConfig) -> Result<Self, NodeError> {
        Self::start_armed(program, layout, config, &[])
    }

    /// As [`Supervisor::start`], with these variables in every node's environment, also after restarts: for drills.
    ///
    /// # Errors
    /// As [`Supervisor::start`].
    pub fn start_armed(
        program: &Path,
        layout: Layout,
        config: &SystemConfig,
        arms: &[(&'static str, String)],
    ) -> Result<Self, NodeError> {
        std::fs::create_dir_all(layout.run()).map_err(NodeError::io("creating the system's directory"))?;
        let lock = take_lock(&layout)?;
        if !layout.config().exists() {
            config.check()?;
            config.save(&layout.config())?;
        }
        let config = SystemConfig::load(&layout.config())?;
        await_leftovers(&config, &layout)?;
        let epoch = epoch::begin(&config, &layout)?;
        let program = program.to_owned();
        let nodes = BTreeMap::new();
        let arms = arms.to_vec();
        let mut supervisor = Self { program, layout, config, epoch, nodes, arms, restarts: 0, lock };
        for role in Role::all(&supervisor.config) {
            // A leftover of the last run must not look like a node that is up.
            let _ = std::fs::remove_file(supervisor.layout.pid(role));
            let down = supervisor.is_shut_out(role);
            let child = if down { None } else { Some(supervisor.spawn(role)?) };
            supervisor.nodes.insert(role, Node::new(child));
        }
        supervisor.wait_until_up()?;
        Ok(supervisor)
    }

    /// The configuration in force.
    #[must_use]
    pub fn config(&self) -> &SystemConfig {
        &self.config
    }

    /// Where the system lies.
    #[must_use]
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The life of the window that this start began.
    #[must_use]
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// How often a node was restarted.
    #[must_use]
    pub fn restarts(&self) -> u64 {
        self.restarts
    }

    /// Looks for dead nodes and starts their replacements. Does not wait.
    ///
    /// # Errors
    /// If a process cannot be started.
    pub fn tick(&mut self) -> Result<Vec<Death>, NodeError> {
        let mut deaths = Vec::new();
        let roles: Vec<Role> = self.nodes.keys().copied().collect();
        for role in roles {
            if let Some(how) = self.reap(role)? {
                deaths.push(Death { role, how, complaint: self.complaint(role) });
            }
            self.restart_if_due(role)?;
        }
        Ok(deaths)
    }

    fn reap(&mut self, role: Role) -> Result<Option<String>, NodeError> {
        let node = self.nodes.get_mut(&role).expect("asked for a node of the system");
        let Some(child) = &mut node.child else { return Ok(None) };
        let Some(status) = child.try_wait().map_err(NodeError::io("looking after a node"))? else {
            return Ok(None);
        };
        node.child = None;
        let crashed = !std::mem::take(&mut node.killed);
        node.pause = match crashed && node.started.elapsed() < INFANT {
            true => PAUSE_MAX.min(node.pause * 2 + Duration::from_millis(50)),
            false => Duration::ZERO,
        };
        Ok(Some(status.to_string()))
    }

    fn restart_if_due(&mut self, role: Role) -> Result<(), NodeError> {
        let node = &self.nodes[&role];
        let due = node.child.is_none() && !node.held && node.started.elapsed() >= node.pause;
        if due && !self.is_shut_out(role) {
            let child = self.spawn(role)?;
            let node = self.nodes.get_mut(&role).expect("just found");
            node.child = Some(child);
            node.started = Instant::now();
            self.restarts += 1;
        }
        Ok(())
    }

    /// Sends a signal to a node. One that is killed this way is replaced at once, however young it was.
    ///
    /// # Errors
    /// If it is not running.
    pub fn signal(&mut self, role: Role, signal: Signal) -> Result<(), NodeError> {
        let dead = || NodeError::Config(format!("{role} is not running"));
        let node = self.nodes.get_mut(&role).ok_or_else(dead)?;
        let child = node.child.as_ref().ok_or_else(dead)?;
        kill_process(Pid::from_child(child), signal)
            .map_err(|error| NodeError::io("signalling a node")(error.into()))?;
        node.killed |= signal == Signal::KILL;
        Ok(())
    }

    /// Leaves the node dead when it dies, until called again with `held` false: for drills that need it away for a while.
    ///
    /// # Panics
    /// If the system has no such node.
    pub fn hold(&mut self, role: Role, held: bool) {
        self.nodes.get_mut(&role).expect("a node of the system").held = held;
    }

    /// Has the process that replaces the node's current one die at a [crash point](crash), and only that one.
    ///
    /// # Panics
    /// If the system has no such node, or the point is not one of its role.
    pub fn arm(&mut self, role: Role, doom: crash::Doom) {
        assert!(doom.point.is_of(role), "{doom} is no crash point of {role}");
        self.nodes.get_mut(&role).expect("a node of the system").doom = Some(doom);
    }

    /// Has the process that replaces the recorder's current one suffer from a [sick device](device), and only that one.
    ///
    /// # Panics
    /// If the system has no such node, or it is no recorder.
    pub fn ail(&mut self, role: Role, ailment: device::Ailment) {
        assert!(matches!(role, Role::Recorder(_)), "{role} is no recorder");
        self.nodes.get_mut(&role).expect("a node of the system").ailment = Some(ailment);
    }

    /// Has the process that replaces a venue's current one be [wrong], and only that one.
    ///
    /// # Panics
    /// If it is no venue of the system.
    pub fn arm_wrong(&mut self, role: Role, wrong: Wrong) {
        assert!(matches!(role, Role::Venue(_)), "{role} is no venue");
        self.nodes.get_mut(&role).expect("a node of the system").wrong = Some(wrong);
    }

    /// Whether the node is a venue that is shut out: it stays down until it is readmitted.
    #[must_use]
    pub fn is_shut_out(&self, role: Role) -> bool {
        matches!(role, Role::Venue(venue) if shut_out::is_shut_out(&self.layout, venue))
    }

    /// Whether the node's current process has finished starting.
    #[must_use]
    pub fn is_up(&self, role: Role) -> bool {
        let pid = self.nodes.get(&role).and_then(|node| node.child.as_ref()).map(Child::id);
        let announced =
            std::fs::read_to_string(self.layout.pid(role)).ok().and_then(|text| text.parse().ok());
        pid.is_some() && pid == announced
    }

    /// Stops every node: gateways first, so that nothing new comes in.
    ///
    /// # Errors
    /// If a node cannot be waited for.
    pub fn stop(&mut self) -> Result<(), NodeError> {
        for role in Role::all(&self.config).into_iter().rev() {
            let Some(mut child) = self.nodes.get_mut(&role).and_then(|node| node.child.take()) else {
                continue;
            };
            // A stopped (SIGSTOP) node must go on to be able to end; one that is gone needs no signal.
            let _ = kill_process(Pid::from_child(&child), Signal::CONT);
            let _ = kill_process(Pid::from_child(&child), Signal::TERM);
            let asked = Instant::now();
            while child.try_wait().map_err(NodeError::io("waiting for a node"))?.is_none() {
                if asked.elapsed() > Duration::from_secs(5) {
                    child.kill().map_err(NodeError::io("killing a node"))?;
                }
                std::thread::sleep(Duration::from_millis(2));
            }
        }
        Ok(())
    }

    fn spawn(&mut self, role: Role) -> Result<Child, NodeError> {
        let node = self.nodes.get_mut(&role);
        let armed = node.map(|node| (node.doom.take(), node.ailment.take(), node.wrong.take()));
        let (doom, ailment, wrong) = armed.unwrap_or_default();
        let log = File::options()
            .create(true)
            .append(true)
            .open(self.layout.complaints(role))
            .map_err(NodeError::io("opening a node's log"))?;
        let child = Command::new(&self.program)
            .args(["node", &role.to_string(), "--dir"])
            .arg(self.layout.root())
            .env(PARENT, std::process::id().to_string())
            // What arms one node must not arm all of them, nor their replacements.
            .env_remove(crash::VARIABLE)
            .env_remove(device::SLOW)
            .env_remove(device::FAIL)
            .envs(self.arms.iter().map(|(name, value)| (name, value)))
            .envs(doom.map(|doom| (crash::VARIABLE, doom.to_string())))
            .envs(ailment.map(device::Ailment::variable))
            .env_remove(wrong::VARIABLE)
            .envs(wrong.map(|wrong| (wrong::VARIABLE, wrong.to_string())))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            // Ctrl-C in a terminal goes to a whole process group: the nodes end when the supervisor says so.
            .process_group(0)
            .spawn()
            .map_err(NodeError::io("starting a node"))?;
        // The others go on trading meanwhile; a node leaves the background when it is open, a venue when it has caught up.
        pares_shm::scheduling::start_in_background(child.id());
        Ok(child)
    }

    fn wait_until_up(&mut self) -> Result<(), NodeError> {
        let begun = Instant::now();
        let roles = Role::all(&self.config);
        while !roles.iter().all(|&role| self.is_up(role) || self.is_shut_out(role)) {
            for &role in &roles {
                if let Some(how) = self.reap(role)? {
                    let why = self.complaint(role).unwrap_or(how);
                    return Err(NodeError::Config(format!("{role} does not start: {why}")));
                }
            }
            if begun.elapsed() > PATIENCE {
                return Err(NodeError::Config("the system did not come up within a minute".into()));
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        Ok(())
    }

    /// The last line a node wrote to its log.
    fn complaint(&self, role: Role) -> Option<String> {
        let text = std::fs::read_to_string(self.layout.complaints(role)).ok()?;
        text.lines().rev().find(|line| !line.trim().is_empty()).map(str::to_owned)
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        // Best effort: the kernel ends the nodes when this process ends, and frees the lock. A copy of the lock's
        // file may be in a process that is just being started, so closing it here might not free it.
        let _ = self.stop();
        let _ = rustix::fs::flock(&self.lock, rustix::fs::FlockOperation::Unlock);
    }
}

fn take_lock(layout: &Layout) -> Result<File, NodeError> {
    let lock = File::create(layout.lock()).map_err(NodeError::io("creating the system's lock"))?;
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::NonBlockingLockExclusive).map_err(|_| {
        NodeError::Config(format!(
            "another `pares up` runs the system in {}; stop it, or use another --dir",
            layout.root().display()
        ))
    })?;
    Ok(lock)
}

/// Waits until no node of an earlier start is left. Killed with their supervisor they take a moment to be gone, and
/// until then could add to a log that [`epoch::begin`] has read.
fn await_leftovers(config: &SystemConfig, layout: &Layout) -> Result<(), NodeError> {
    let begun = Instant::now();
    for role in Role::all(config) {
        while let Some(process) = pares_log::writing_process(&role.log(layout))? {
            if begun.elapsed() > LEFTOVERS_MAX {
                return Err(NodeError::Config(format!(
                    "{role} of an earlier start still runs as process {process}; end it first"
                )));
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    Ok(())
}

/// Makes the kernel kill this process when its parent ends. Called by nodes as they start. A polite signal would
/// do for a running node, but one that is stopped (SIGSTOP) would stay behind; no node needs to tidy up.
///
/// # Errors
/// If the parent is gone already.
pub fn end_with_parent() -> Result<(), NodeError> {
    let starter = std::env::var(PARENT).ok().and_then(|id| id.parse().ok()).and_then(Pid::from_raw);
    let parent = starter.or_else(rustix::process::getppid);
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(|error| NodeError::io("binding the node to its parent")(error.into()))?;
    match rustix::process::getppid() == parent {
        true => Ok(()),
        false => Err(NodeError::Config("the parent process is gone".into())),
    }
}
