//! Several hosts in one thread: the shipped orderers, venues, recorders and mirrors, each host on a machine of its own.
//!
//! A host shares no memory with another, so what goes wrong between hosts does not exist in the simulation of one: who was cut off continues by himself, what is
//! decided is known here and not there, and a copy says less than its source.
//!
//! ```text
//!  host 0: gateway --log--> orderer --orders log, windows--> venue --log--> recorder        memory, files and clock of each: a `Machine`
//!             ^  |             ^ |                                             |
//!             |  mirrors <---- | | ----- messages that are lost, late, repeated and overtake each other ----- orderers of hosts 1, 2, ...
//!             +-- answers      +-+       connections of mirrors that break with what is on its way ---------- mirrors
//! ```
//! **Simulated**: the duty cycles, start-up and tasks of orderers, venues, recorders and mirrors, on three hosts, on two and a witness, and on five; the start of a host as
//! its supervisor does it; gateways reduced to a log that is written and answers that are counted. Any process dies at any call into its world, and any host with all it has in
//! `run/`, or without losing that; both are stopped or slow; hosts are cut off one from another, one way or both, and fall into parts. Journals that fail.
//!
//! **Not simulated**: clients and doors, market data; loss of power and of disks (nothing promises yet to survive them with several hosts); requests that bring an engine down.
//!
//! **Checked** after each step: H1 a position has one request at all hosts, and a request one position; H2 each recorder has each position once and in order, and the
//! same result; H3 what a quorum has stays, and nobody calls recorded, or answers, what no quorum has; H4 a mirror is the beginning of its source, and no more
//! durable; H5 a process ends by itself only for what happened to it. In the end, when faults have stopped: H6 every request in a gateway's log is ordered, executed and
//! recorded everywhere, and no shard is halted. The checkers are checked by defects ([`Bug`]).

mod check;
mod faults;
mod host;
mod nodes;
mod run;
mod wires;

use crate::Bug;
use crate::scenario::MS;

pub use run::{run, run_traced, run_twice};

const ONE: &str = "H1 a position has one request";
const RECORDED: &str = "H2 recorders have each position once and alike";
const QUORUM: &str = "H3 what a quorum has stays, and nothing else counts";
const MIRRORED: &str = "H4 a mirror is the beginning of its source";
const ENDED: &str = "H5 a process ends only for what happened to it";
const EVERYWHERE: &str = "H6 every request is ordered, executed and recorded everywhere";

/// A run's size and faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostsPlan {
    /// All chance comes from here.
    pub seed: u64,
    /// Hosts, three or five.
    pub hosts: u8,
    /// Whether the last one has no gateway and no venue.
    pub has_witness: bool,
    /// Shards.
    pub shards: u16,
    /// Positions of a window.
    pub window: u32,
    /// Positions between checkpoints; states of an orders log are four times as far apart.
    pub checkpoint_every: u64,
    /// Whether what is recorded survives the loss of power: it is synced, which takes time.
    pub disk: bool,
    /// Of 100 messages between orderers, how many are lost.
    pub loss_percent: u64,
    /// Virtual time with faults, ns.
    pub faulty_ns: u64,
    /// Mean time between faults, ns.
    pub fault_every_ns: u64,
    /// What is broken on purpose.
    pub bug: Option<Bug>,
}

impl HostsPlan {
    /// How the scenario is called.
    pub const NAME: &'static str = "hosts";

    /// Two of three runs are of three hosts, one of whose is a witness in every second.
    #[must_use]
    pub fn of(seed: u64) -> Self {
        let is_large = seed % 3 == 2;
        Self {
            seed,
            hosts: if is_large { 5 } else { 3 },
            has_witness: seed % 3 == 1,
            shards: 1 + (seed / 3 % 2) as u16,
            window: [64, 1_024][(seed / 2 % 2) as usize],
            checkpoint_every: [1, 32][(seed / 4 % 2) as usize],
            disk: seed / 5 % 2 == 1,
            loss_percent: [0, 2, 15][(seed / 7 % 3) as usize],
            // Now and then so long that logs are released.
            faulty_ns: [2_000 * MS, 200 * MS][usize::from(seed % 20 < 19)],
            fault_every_ns: [3 * MS, 8 * MS][(seed / 9 % 2) as usize],
            bug: None,
        }
    }
}

crate::seen::counters! {
    /// What a run that held all invariants did.
    HostsSummary {
        /// Requests in the gateways' logs.
        requests,
        /// Faults.
        faults,
        /// Processes killed, those of hosts that were not among them.
        killed,
        /// Hosts started again.
        restarts,
        /// Leads, by the last one's number.
        terms,
        /// Copies of what is ordered that orderers took because they had missed it.
        copies,
        /// Checkpoints stored.
        checkpoints,
        /// Virtual time, ns.
        took_ns,
        /// Equal for equal histories.
        trace_hash,
    }
}
