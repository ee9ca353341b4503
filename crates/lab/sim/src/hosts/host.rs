//! One host: its machine, its processes, and its supervisor.

use std::collections::BTreeMap;

use pares_cluster::memory::Disk;
use pares_config::{NodeId, SystemConfig};
use pares_flow::Random;
use pares_roles::duty::Duty;
use pares_roles::lost::OnLoss;
use pares_roles::orderer::{OrdererNode, first_life};
use pares_roles::recorder::RecorderNode;
use pares_roles::venue::{VenueNode, Watch};
use pares_roles::world::{File, Next, Task, World};
use pares_roles::{NodeError, epoch};
use pares_types::HostId;

use super::HostsPlan;
use super::nodes::{Mirrors, Scribe};
use super::wires::{End, SharedWires};
use crate::engine::Poison;
use crate::memory::host::Host;
use crate::memory::machine::{Effect, Machine};
use crate::memory::seam::Seam;
use crate::scenario::{MS, US};
use crate::world::steps::{Ended, call};

/// A process takes a turn in so many of 1,000 steps, and at a host that is slow.
const PACE: u64 = 600;
const SLOW_PACE: u64 = 40;

/// A process, or the place where one should be.
#[derive(Default)]
pub(super) struct Node {
    pub(super) memory: Option<Box<dyn Duty>>,
    /// It does nothing before: it is not started again, is stopped, or waits for its disk.
    pub(super) not_before_ns: u64,
    /// A sync under way, and when it is done.
    sync: Option<(u64, u64)>,
    /// Its journal was made to fail.
    pub(super) may_end: bool,
}

/// Something done beside a duty cycle.
struct Job {
    node: NodeId,
    task: Task,
    /// When it continues; none while it sleeps.
    due_ns: Option<u64>,
}

pub(super) struct OneHost {
    pub(super) id: HostId,
    pub(super) machine: Machine,
    pub(super) nodes: BTreeMap<NodeId, Node>,
    /// The journal of its orderer.
    pub(super) journal: Disk,
    pub(super) is_started: bool,
    /// When its supervisor starts it, or it continues.
    pub(super) not_before_ns: u64,
    pub(super) slow_to_ns: u64,
    /// How often it was started.
    pub(super) starts: u64,
    jobs: BTreeMap<u64, Job>,
    /// What its processes said.
    pub(super) told: Vec<String>,
    pub(super) copies: u64,
    wires: SharedWires,
    random: Random,
}

impl OneHost {
    pub(super) fn new(
        id: HostId,
        plan: &HostsPlan,
        config: &SystemConfig,
        (wires, random): (SharedWires, Random),
    ) -> Self {
        let nodes = NodeId::at(config, Some(id)).into_iter().map(|node| (node, Node::default()));
        Self {
            id,
            machine: Machine::new(Seam::new(plan.bug, Poison::default(), plan.seed), plan.disk),
            nodes: nodes.collect(),
            journal: Disk::new(),
            is_started: false,
            not_before_ns: 0,
            slow_to_ns: 0,
            starts: 0,
            jobs: BTreeMap::new(),
            told: Vec::new(),
            copies: 0,
            wires,
            random,
        }
    }

    pub(super) fn orderer(&self) -> NodeId {
        NodeId::Orderer(self.id)
    }

    pub(super) fn is_whole(&self) -> bool {
        self.is_started && self.nodes.values().all(|node| node.memory.is_some())
    }

    /// A step of its supervisor and all its processes. Says who ended without a reason.
    pub(super) fn step(&mut self, plan: &HostsPlan, config: &SystemConfig) -> Result<(), String> {
        let now_ns = self.wires.borrow().now_ns;
        self.machine.lock().now_ns = now_ns;
        if now_ns < self.not_before_ns {
            return Ok(());
        }
        if !self.is_started {
            return self.begin(config);
        }
        self.end_syncs(now_ns);
        let pace = if now_ns < self.slow_to_ns { SLOW_PACE } else { PACE };
        let nodes: Vec<NodeId> = self.nodes.keys().copied().collect();
        for node in nodes {
            if now_ns < self.node(node).not_before_ns || !self.random.chance(pace) {
                continue;
            }
            match self.node(node).memory.is_some() {
                true => self.turn(node)?,
                false => self.start(node, plan, config)?,
            }
        }
        self.run_jobs(now_ns, pace);
        Ok(())
    }

    pub(super) fn node(&mut self, node: NodeId) -> &mut Node {
        self.nodes.get_mut(&node).expect("a node of this host")
    }

    /// What the supervisor does before any process runs.
    fn begin(&mut self, config: &SystemConfig) -> Result<(), String> {
        let host = Host::supervisor(&self.machine);
        if self.starts == 0 {
            let (path, text) = first_life(self.id);
            let noted = host.create_file(&path).and_then(|mut note| note.append(text.as_bytes()));
            noted.map_err(|error| format!("host {} is not made: {error}", self.id))?;
        }
        let begun = epoch::begin(&host, config, Some(self.id), OnLoss::Refuse);
        let life = begun.map_err(|error| format!("host {} does not start: {error}", self.id))?;
        self.told.push(format!("host {} starts, life {life}", self.id));
        (self.is_started, self.starts) = (true, self.starts + 1);
        self.take_effects();
        Ok(())
    }

    fn start(&mut self, node: NodeId, plan: &HostsPlan, config: &SystemConfig) -> Result<(), String> {
        let host = Host::new(&self.machine, node);
        let (wires, random) = (self.wires.clone(), self.random.fork());
        let mut disk = self.journal.clone();
        let opened = call(|| -> Result<Box<dyn Duty>, NodeError> {
            Ok(match node {
                NodeId::Orderer(id) => {
                    wires.borrow_mut().begin(id);
                    let journal = |is_new| {
                        if is_new {
                            disk = Disk::new();
                        }
                        Ok(disk.clone())
                    };
                    Box::new(OrdererNode::open(id, config, host, End(id, wires), journal)?)
                }
                NodeId::Venue(id) => {
                    let (watch, suspect) = Watch::open(&host, id, epoch::current(&host, config)?)?;
                    Box::new(VenueNode::open(id, config, host, &std::sync::Arc::new(watch), suspect)?)
                }
                NodeId::Recorder(id) => {
                    let epoch = epoch::of_records(&host, config)?;
                    Box::new(RecorderNode::open(id, config, host, epoch)?)
                }
                NodeId::Gateway(id) => Box::new(Scribe::open(id, config, &host, (random, plan.faulty_ns))?),
                NodeId::Mirror(id) => Box::new(Mirrors::new(id, config, host, wires)),
                NodeId::Publisher(_) | NodeId::Replayer(_) => unreachable!("nobody tells market data here"),
            })
        });
        self.journal = disk;
        match opened {
            Ended::Back(Ok(memory)) => {
                self.node(node).memory = Some(memory);
                self.told.push(format!("{node} starts"));
                self.take_effects();
                Ok(())
            }
            Ended::Back(Err(error)) => self.on_exit(node, &error),
            Ended::Killed => {
                self.bury(node);
                Ok(())
            }
        }
    }

    fn turn(&mut self, node: NodeId) -> Result<(), String> {
        let Some(mut memory) = self.node(node).memory.take() else { return Ok(()) };
        let worked = call(|| memory.work());
        match worked {
            Ended::Back(Ok(work)) => {
                if work == 0 && self.random.one_in(4) {
                    memory.look_everywhere();
                }
                self.node(node).memory = Some(memory);
                self.take_effects();
            }
            Ended::Back(Err(error)) => {
                self.end_life(node);
                drop(memory);
                return self.on_exit(node, &error);
            }
            Ended::Killed => {
                self.end_life(node);
                drop(memory);
                self.bury(node);
            }
        }
        Ok(())
    }

    /// A process has ended by itself.
    fn on_exit(&mut self, node: NodeId, error: &NodeError) -> Result<(), String> {
        self.told.push(format!("{node} ends: {error}"));
        let is_copy = error.to_string().contains("has a copy of what");
        self.copies += u64::from(is_copy);
        let is_excused = is_copy || self.node(node).may_end;
        self.bury(node);
        if is_excused { Ok(()) } else { Err(format!("{node} ends: {error}")) }
    }

    fn end_life(&mut self, node: NodeId) {
        let mut state = self.machine.lock();
        let fate = state.fate(node);
        (fate.life, fate.killed_in) = (fate.life + 1, None);
    }

    /// Kills a process; its memory and tasks are gone, and what it held is free.
    pub(super) fn bury(&mut self, node: NodeId) {
        self.end_life(node);
        let now_ns = self.wires.borrow().now_ns;
        let down_ns = self.random.between(200 * US, 5 * MS);
        *self.node(node) = Node { not_before_ns: now_ns + down_ns, ..Node::default() };
        self.jobs.retain(|_, job| job.node != node);
        let (logs, is_mirror): (Vec<_>, _) =
            (self.machine.lock().logs.clone().into_iter().collect(), matches!(node, NodeId::Mirror(_)));
        for (of, log) in logs {
            let mut log = log.lock();
            if if is_mirror { log.is_mirror } else { of == node } {
                log.process_died(&mut self.random, true);
            }
        }
        match node {
            NodeId::Orderer(_) => self.journal.crash(self.random.below(8)),
            NodeId::Mirror(id) => {
                let mut wires = self.wires.borrow_mut();
                let ways: Vec<_> = wires.pipes.keys().copied().collect();
                ways.into_iter().filter(|way| way.0 == id || way.1 == id).for_each(|way| wires.hang_up(way));
            }
            _ => {}
        }
        self.take_effects();
    }

    /// Everything dies at once, and perhaps with it what lies in `run/`.
    pub(super) fn take_down(&mut self, without_run: bool) {
        let nodes: Vec<NodeId> = self.nodes.keys().copied().collect();
        nodes.into_iter().for_each(|node| self.bury(node));
        let now_ns = self.wires.borrow().now_ns;
        (self.is_started, self.not_before_ns) = (false, now_ns + self.random.between(MS, 40 * MS));
        if without_run {
            let mut state = self.machine.lock();
            state.windows.clear();
            state.counters.clear();
        }
    }

    fn take_effects(&mut self) {
        let effects = std::mem::take(&mut self.machine.lock().effects);
        let now_ns = self.wires.borrow().now_ns;
        for effect in effects {
            match effect {
                Effect::Sync(node, to) => {
                    let done_ns = now_ns + self.random.between(50 * US, 800 * US);
                    let node = self.node(node);
                    (node.sync, node.not_before_ns) = (Some((to, done_ns)), done_ns);
                }
                Effect::Spawn(node, number, _, task) => {
                    let due_ns = Some(now_ns + self.random.between(20 * US, 800 * US));
                    self.jobs.insert(number, Job { node, task, due_ns });
                }
                Effect::Wake(number) => {
                    self.jobs.get_mut(&number).into_iter().for_each(|job| job.due_ns = Some(now_ns));
                }
                Effect::Told(node, what) => self.told.push(format!("{node}: {what}")),
                _ => {}
            }
        }
    }

    /// The device has it, whether or not the process still lives.
    fn end_syncs(&mut self, now_ns: u64) {
        for (&of, node) in &mut self.nodes {
            if let Some((to, _)) = node.sync.take_if(|(_, done_ns)| *done_ns <= now_ns)
                && let Some(log) = self.machine.log(of)
            {
                log.lock().end_sync(to);
            }
        }
    }

    fn run_jobs(&mut self, now_ns: u64, pace: u64) {
        let due = self.jobs.iter().filter(|(_, job)| job.due_ns.is_some_and(|due_ns| due_ns <= now_ns));
        let due: Vec<u64> = due.map(|(number, _)| *number).collect();
        for number in due {
            if !self.random.chance(pace) {
                continue;
            }
            let Some(mut job) = self.jobs.remove(&number) else { continue };
            let node = job.node;
            let next = call(&mut job.task);
            job.due_ns = match next {
                Ended::Killed => {
                    self.bury(node);
                    continue;
                }
                Ended::Back(Next::Done) => continue,
                Ended::Back(Next::Again) => Some(now_ns),
                Ended::Back(Next::After(pause)) => Some(now_ns + pause.as_nanos() as u64),
                Ended::Back(Next::Sleep) => None,
            };
            self.jobs.insert(number, job);
            self.take_effects();
        }
    }
}
