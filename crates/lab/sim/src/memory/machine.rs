//! Everything there is, under one lock, and what became of it since the simulator last looked.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pares_config::NodeId;
use pares_log::{Durability, Offset};
use pares_roles::world::Task;
use pares_sequencer::LocalWindow;
use pares_types::{Epoch, GatewayId, Position, ShardId};

use super::files::Files;
use super::log::Log;
use super::net::Net;
use super::seam::Seam;

/// Bytes of a segment: small, so that logs roll; a quarter must hold what a venue reserves for a step.
const SEGMENT_BYTES: u64 = 512 << 10;

/// Everything there is.
#[derive(Clone, Debug)]
pub(crate) struct Machine(Arc<Mutex<State>>);

/// What a process did that takes time, or concerns others.
pub(crate) enum Effect {
    /// A node is to look at its inputs.
    Ring(NodeId),
    /// A sync of a node's log has begun, up to there.
    Sync(NodeId, u64),
    /// Something is to be done beside a node's duty cycle.
    Spawn(NodeId, u64, &'static str, Task),
    /// A task that sleeps is to continue.
    Wake(u64),
    /// A record was appended to a node's log.
    Appended(NodeId, Offset, Vec<u8>),
    /// A publisher sent a packet on its line.
    Packet(Vec<u8>),
    /// A replayer sent a packet to one who asked.
    Answer(SocketAddr, Vec<u8>),
    Told(NodeId, String),
}

/// A process, and what is to befall it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Fate {
    /// Counts its lives; a handle of an earlier one does nothing.
    pub(crate) life: u32,
    /// Calls into the world until it is killed.
    pub(crate) killed_in: Option<u32>,
    /// Its clock minus the true time, ns.
    pub(crate) clock_off_ns: i64,
    /// Its disk takes nothing more.
    pub(crate) is_full: bool,
    /// No thread can be started.
    pub(crate) cannot_spawn: bool,
    /// It takes connections of other nodes.
    pub(crate) listens: bool,
}

#[derive(Default)]
pub(crate) struct State {
    pub(crate) now_ns: u64,
    pub(crate) fates: BTreeMap<NodeId, Fate>,
    pub(crate) logs: BTreeMap<NodeId, Log>,
    /// Of gateways.
    pub(crate) taps: BTreeMap<GatewayId, Log>,
    logs_made: u64,
    pub(crate) files: Files,
    pub(crate) windows: BTreeMap<ShardId, LocalWindow>,
    pub(crate) counters: BTreeMap<String, Arc<Block>>,
    /// Members' connections to gateways.
    pub(crate) net: Net,
    /// Subscribers' connections to replayers.
    pub(crate) feed_net: Net,
    /// Requests that have come to replayers, and by whom.
    pub(crate) requests: BTreeMap<NodeId, VecDeque<(SocketAddr, Vec<u8>)>>,
    pub(crate) effects: Vec<Effect>,
    pub(crate) tasks_made: u64,
    pub(crate) randoms: u64,
    /// What a reader does not see yet of a log: only what was there when it was cut off.
    pub(crate) cut: BTreeMap<(NodeId, NodeId), u64>,
    pub(crate) seam: Seam,
    /// Syncs take time, told as effects; without, they are done at once.
    pub(crate) syncs_take_time: bool,
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("State").field("now_ns", &self.now_ns).finish_non_exhaustive()
    }
}

/// Counters of one process: names and values.
#[derive(Debug)]
pub(crate) struct Block {
    pub(crate) names: Vec<String>,
    pub(crate) values: Vec<AtomicU64>,
}

impl Block {
    pub(crate) fn get(&self, name: &str) -> Option<u64> {
        let at = self.names.iter().position(|one| one == name)?;
        Some(self.values[at].load(Ordering::Relaxed))
    }
}

impl Machine {
    /// Nothing on it yet.
    pub(crate) fn new(seam: Seam, syncs_take_time: bool) -> Self {
        Self(Arc::new(Mutex::new(State { seam, syncs_take_time, ..State::default() })))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn log(&self, node: NodeId) -> Option<Log> {
        self.lock().logs.get(&node).cloned()
    }

    /// The log of a gateway's tap, if there is one.
    pub(crate) fn tap(&self, gateway: GatewayId) -> Option<Log> {
        self.lock().taps.get(&gateway).cloned()
    }

    pub(crate) fn counter(&self, name: &str, counter: &str) -> Option<u64> {
        self.lock().counters.get(name)?.get(counter)
    }

    pub(crate) fn window(&self, shard: ShardId) -> Option<LocalWindow> {
        self.lock().windows.get(&shard).cloned()
    }
}

impl State {
    pub(crate) fn fate(&mut self, node: NodeId) -> &mut Fate {
        self.fates.entry(node).or_default()
    }

    /// The network in which a node is connected to.
    pub(crate) fn net_of(&mut self, node: NodeId) -> &mut Net {
        if node.only_tells() { &mut self.feed_net } else { &mut self.net }
    }

    /// The log of the recorder of this machine, if it has one.
    pub(super) fn own_recorder(&self) -> Option<Log> {
        let recorders = self.logs.iter().filter(|(node, _)| matches!(node, NodeId::Recorder(_)));
        recorders.map(|(_, log)| log).find(|log| !log.lock().is_mirror).cloned()
    }

    /// A log that nobody has written to, not in any place yet.
    pub(super) fn new_log(&mut self, node: NodeId, durability: Durability) -> Log {
        self.logs_made += 1;
        let log = Log::new(self.logs_made, SEGMENT_BYTES, durability);
        log.lock().lies = self.seam.lies(node);
        log
    }

    pub(super) fn begin_window(&mut self, shard: ShardId, capacity: usize, epoch: Epoch, first: Position) {
        let window = match self.windows.get(&shard) {
            Some(old) => old.begin_epoch(epoch, first),
            None => LocalWindow::new(capacity, epoch, first),
        };
        self.windows.insert(shard, window);
    }
}
