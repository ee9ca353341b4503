//! `pares up`: starts a system's processes, restarts what dies, stops everything, leaves nothing behind.
//!
//! The supervisor is a convenience, not a part of the promise: nothing in the data path asks it anything, and
//! it detects deaths only to start replacements, while the others continue. If it dies itself the nodes
//! are signalled by the kernel and stop (no orphans); the next start finds logs that every node left whole.
//!
//! One node's trouble is never the others': a node that cannot be started is tried again after a pause ([`crate::watched`]), and a
//! start succeeds once the system can trade, whichever nodes are still missing.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use pares_config::{Layout, SystemConfig};
use pares_os::process::Lock;
use pares_types::{Epoch, HostId};
use rustix::process::Signal;

use crate::leftovers::{HOLDERS, await_leftovers, check_not_stopped, refuse_unfinished, take_lock};
use crate::lost::OnLoss;
use crate::watched::Watched;
use crate::{HostWorld, NodeError, NodeId, epoch, first_operator, hosts, keys, mirrors, shut_out};

/// How long a system may take until it can trade.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long a start waits for nodes without which it can trade already, unless they died while starting.
const GRACE: Duration = Duration::from_secs(10);
/// How long a node that starts stays in the background, if it does not leave by itself before: on a busy machine it would not even
/// come to do so.
const BACKGROUND_MAX: Duration = Duration::from_secs(1);
/// A start is given up once each missing node has died so often: after some 1.3 s of pauses.
const STARTS_MAX: usize = 5;

/// A running system.
pub struct Supervisor {
    program: PathBuf,
    world: HostWorld,
    layout: Layout,
    config: SystemConfig,
    host: Option<HostId>,
    epoch: Epoch,
    nodes: BTreeMap<NodeId, Process>,
    arms: Vec<(&'static str, String)>,
    restarts: u64,
    /// Met while starting, and not handed out yet.
    deaths: Vec<Death>,
    /// Freed when everything is stopped.
    _lock: Lock,
}

#[derive(Default)]
struct Process {
    watched: Watched,
    /// Not to be restarted for now.
    held: bool,
    /// When it is taken out of the background, if it was started there.
    background_until: Option<Instant>,
    /// In the environment of its next process, and of no other.
    environment: Vec<(&'static str, String)>,
}

/// A node that died or could not be started, and is being replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Death {
    /// Which node.
    pub node: NodeId,
    /// How it ended, or why it did not begin.
    pub how: String,
    /// The last line in its log, perhaps of an earlier life.
    pub complaint: Option<String>,
}

impl Supervisor {
    /// Starts the system in `layout`, which is created with `config` if it does not exist yet; otherwise
    /// the configuration there is used. `program` is run as `program node ROLE --dir DIR` for each node.
    ///
    /// It has succeeded once the system can trade: a quorum of recorders, a venue and a gateway are up. Of nodes that are not,
    /// [`Supervisor::missing`] tells, and the next [`Supervisor::tick`] why. `stop` breaks the start off.
    ///
    /// # Errors
    /// If another supervisor runs the system, its nodes die whenever they are started, it cannot trade within a minute, `stop` is
    /// set before, or recorded positions are lost that `on_loss` does not give up.
    pub fn start(
        program: &Path,
        layout: Layout,
        config: &SystemConfig,
        on_loss: OnLoss,
        stop: &AtomicBool,
    ) -> Result<Self, NodeError> {
        Self::launch((program, &[]), layout, config, on_loss, stop)
    }

    /// As [`Supervisor::start`], giving up nothing. Each node has the variables `arms` in its environment, also after restarts: for drills.
    ///
    /// # Errors
    /// As [`Supervisor::start`].
    pub fn start_armed(
        program: &Path,
        layout: Layout,
        config: &SystemConfig,
        arms: &[(&'static str, String)],
    ) -> Result<Self, NodeError> {
        Self::launch((program, arms), layout, config, OnLoss::Refuse, &AtomicBool::new(false))
    }

    fn launch(
        (program, arms): (&Path, &[(&'static str, String)]),
        layout: Layout,
        config: &SystemConfig,
        on_loss: OnLoss,
        stop: &AtomicBool,
    ) -> Result<Self, NodeError> {
        refuse_unfinished(&layout)?;
        std::fs::create_dir_all(layout.run()).map_err(NodeError::io("creating the system's directory"))?;
        let _lock = take_lock(&layout, HOLDERS)?;
        let config = first_operator::settled(config, &layout)?;
        let host = hosts::here(&layout, &config)?;
        let all = NodeId::at(&config, host);
        keys::ensure(&layout, &config, &all)?;
        await_leftovers(all.iter().copied(), &layout, stop)?;
        mirrors::take_over(&layout, &all)?;
        let world = HostWorld::new(&layout)?;
        let epoch = epoch::begin(&world, &config, host, on_loss)?;
        let (program, arms) = (program.to_owned(), arms.to_vec());
        let nodes = all.iter().map(|&node| (node, Process::default())).collect();
        let deaths = Vec::new();
        let mut supervisor =
            Self { program, world, layout, config, host, epoch, nodes, arms, restarts: 0, deaths, _lock };
        for node in all {
            // A leftover of the last run must not look like a node that is up.
            let _ = std::fs::remove_file(supervisor.layout.pid(node));
            supervisor.start_if_due(node);
        }
        supervisor.restarts = 0;
        supervisor.wait_until_it_trades(stop)?;
        Ok(supervisor)
    }

    /// The configuration in force.
    #[must_use]
    pub fn config(&self) -> &SystemConfig {
        &self.config
    }

    /// The nodes that it starts, in that order: all, or those of this host.
    #[must_use]
    pub fn nodes(&self) -> Vec<NodeId> {
        NodeId::at(&self.config, self.host)
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

    /// Looks for dead nodes and starts their replacements. Does not wait. Says who died or could not be started since the
    /// last look.
    pub fn tick(&mut self) -> Vec<Death> {
        let nodes: Vec<NodeId> = self.nodes.keys().copied().collect();
        for node in nodes {
            self.reap(node);
            self.end_background(node);
            self.start_if_due(node);
        }
        std::mem::take(&mut self.deaths)
    }

    fn process(&mut self, node: NodeId) -> &mut Process {
        self.nodes.get_mut(&node).expect("asked for a node of the system")
    }

    fn reap(&mut self, node: NodeId) {
        let watched = &mut self.nodes.get_mut(&node).expect("asked for a node of the system").watched;
        let Some(how) = watched.reap() else { return };
        let complaint = watched.last_words(&self.layout.complaints(node));
        self.deaths.push(Death { node, how, complaint });
    }

    fn end_background(&mut self, node: NodeId) {
        let process = self.process(node);
        if process.background_until.is_some_and(|until| until <= Instant::now()) {
            process.background_until = None;
            process.watched.id().map(pares_os::scheduling::end_background);
        }
    }

    fn start_if_due(&mut self, node: NodeId) {
        let process = &self.nodes[&node];
        if !process.watched.is_due() || process.held || self.is_shut_out(node) {
            return;
        }
        let (mut program, log) = (self.program_of(node), self.layout.complaints(node));
        let process = self.nodes.get_mut(&node).expect("just found");
        match process.watched.start(&mut program, &log) {
            Ok(id) => {
                // The others continue to trade meanwhile; a node leaves the background when it is open, a venue when it has caught up.
                let is_there = pares_os::scheduling::start_in_background(id);
                process.background_until = is_there.then(|| Instant::now() + BACKGROUND_MAX);
                process.environment.clear();
                self.restarts += 1;
            }
            Err(error) => self.deaths.push(Death { node, how: error.to_string(), complaint: None }),
        }
    }

    fn program_of(&self, node: NodeId) -> Command {
        let mut program = Command::new(&self.program);
        program
            .args(["node", &node.to_string(), "--dir"])
            .arg(self.layout.root())
            .envs(self.arms.iter().chain(&self.nodes[&node].environment).map(|(name, value)| (name, value)));
        program
    }

    /// Sends a signal to a node. One that is killed this way is replaced at once, however young it was.
    ///
    /// # Errors
    /// If it is not running.
    pub fn signal(&mut self, node: NodeId, signal: Signal) -> Result<(), NodeError> {
        let none = || NodeError::Refused(format!("there is no {node}"));
        let signalled = self.nodes.get_mut(&node).ok_or_else(none)?.watched.signal(signal);
        signalled.map_err(|error| NodeError::Refused(format!("{node}: {error}")))
    }

    /// Leaves the node dead when it dies, until called again with `held` false: for drills that need it away for a while.
    ///
    /// # Panics
    /// If the system has no such node.
    pub fn hold(&mut self, node: NodeId, held: bool) {
        self.process(node).held = held;
    }

    /// Puts variables into the environment of the process that replaces the node's current one, and only of that one: for
    /// programs other than the one that ships, which let things fail on purpose.
    ///
    /// # Panics
    /// If the system has no such node.
    pub fn arm(&mut self, node: NodeId, environment: Vec<(&'static str, String)>) {
        self.process(node).environment = environment;
    }

    /// Whether the node is a venue that is shut out: it stays down until it is readmitted. Where the notes cannot be listed the
    /// venue itself says so, and ends.
    #[must_use]
    pub fn is_shut_out(&self, node: NodeId) -> bool {
        matches!(node, NodeId::Venue(venue) if shut_out::is_shut_out(&self.world, venue).unwrap_or(false))
    }

    /// Whether the node's current process has finished starting.
    #[must_use]
    pub fn is_up(&self, node: NodeId) -> bool {
        let pid = self.nodes.get(&node).and_then(|process| process.watched.id());
        let announced =
            std::fs::read_to_string(self.layout.pid(node)).ok().and_then(|text| text.trim().parse().ok());
        pid.is_some() && pid == announced
    }

    /// Stops every node: gateways first, so that nothing new comes in.
    ///
    /// # Errors
    /// The first, if nodes cannot be waited for; the others are stopped all the same.
    pub fn stop(&mut self) -> Result<(), NodeError> {
        let mut stopped = Ok(());
        for node in self.nodes().into_iter().rev() {
            if let Some(process) = self.nodes.get_mut(&node) {
                stopped = stopped.and(process.watched.stop());
            }
        }
        stopped
    }

    /// The nodes that are not up, but for those that are shut out.
    #[must_use]
    pub fn missing(&self) -> Vec<NodeId> {
        let missing = |node: &NodeId| !self.is_up(*node) && !self.is_shut_out(*node);
        self.nodes().into_iter().filter(missing).collect()
    }

    /// Whether a quorum of recorders, a venue and a gateway are up; at a host of several, what it has of them.
    fn trades(&self) -> bool {
        if self.host.is_some() {
            return self.missing().iter().all(|node| node.only_tells());
        }
        let up: Vec<NodeId> = self.nodes.keys().copied().filter(|&node| self.is_up(node)).collect();
        let recorders = up.iter().filter(|node| matches!(node, NodeId::Recorder(_))).count();
        recorders >= usize::from(self.config.quorum)
            && up.iter().any(|node| matches!(node, NodeId::Venue(_)))
            && up.iter().any(|node| matches!(node, NodeId::Gateway(_)))
    }

    fn wait_until_it_trades(&mut self, stop: &AtomicBool) -> Result<(), NodeError> {
        let begun = Instant::now();
        let mut deaths = Vec::new();
        loop {
            deaths.extend(self.tick());
            let missing = self.missing();
            let died = |node| deaths.iter().filter(|death| death.node == node).count();
            let all_died = |times| missing.iter().all(|&node| died(node) >= times);
            if self.trades() && (all_died(1) || begun.elapsed() > GRACE) {
                self.deaths = deaths;
                return Ok(());
            }
            if all_died(STARTS_MAX) || begun.elapsed() > PATIENCE {
                return Err(NodeError::NotUp(why_not(&missing, &deaths)));
            }
            check_not_stopped(stop)?;
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        // Best effort: the kernel ends the nodes when this process ends.
        let _ = self.stop();
    }
}

/// Why a system did not come up: for each node that is missing, how it died last.
fn why_not(missing: &[NodeId], deaths: &[Death]) -> String {
    if missing.is_empty() {
        return "too many venues are shut out: readmit one with `pares admin readmit`".into();
    }
    let reason = |node: &NodeId| {
        let last = deaths.iter().rev().find(|death| death.node == *node);
        let why = last.map_or("still starting", |death| death.complaint.as_ref().unwrap_or(&death.how));
        format!("{node}: {}", why.trim_start_matches("pares: "))
    };
    missing.iter().map(reason).collect::<Vec<_>>().join("; ")
}
