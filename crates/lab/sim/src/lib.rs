//! The whole system in one thread: virtual time, one seed, every fault at will.
//!
//! Tests of parts find what their author thought of; drills with real processes find what happens often. What
//! ruins an exchange is neither: a venue that stops between learning a decision and publishing its result while a recorder is behind and the gateway restarts.
//! So here the roles that ship (`pares-roles`) run in a world whose every delay, loss and death is drawn from one seed. A failing seed is a program: it replays exactly.
//!
//! ```text
//!  clients ==frames, may break== gateways --log--> venues --log--> recorders --log--> gateways, venues
//!                                |  every log, file, counter and window in memory, with its real bytes and checksums
//!                              peers           window (twin), epochs, supervisor, operator
//! ```
//!
//! **Simulated**: the duty cycles, start-up, repair and tasks of gateways, venues and recorders as they ship, and the beginning of
//! an epoch; clients' connections with real frames, cut anywhere, that break, say nothing, sign on twice, speak in another's name or send
//! rubbish. A process dies at any call into its world, and at any byte of its log; it is stopped, also after it has decided and before
//! it publishes; it sees another's log late. Crashes of all venues, restarts of everything and losses of power (each a new epoch), with
//! `os` and with `disk`: of what was not synced any sector, name or file may be lost, counters and windows of the earlier life may be there
//! or not. Disks that are full or slow for a while, or wiped; syncs that fail, also while a log is opened; bits that flip in any
//! node's log and in checkpoints, and the repair that follows. Descriptors or threads that run out. Gateways' clocks that jump by an
//! hour, both ways. Requests that bring down every matching engine, and engines that fail by themselves, by a panic or with their
//! process, the shard being restored beside the others. A venue of a build with other rules. Members use the whole rule book; the exchange, a client too, sets phases and rules, blocks members, lists instruments, passes from one business day to the next, and gives, changes and revokes keys; gateways tell the time.
//!
//! Some members come by FIX (`fix`), OUCH (`ouch`) or HTTP (`web`), by programs of the simulator's own that keep all they were ever told; strangers call in their names. Publishers
//! and replayers tell market data over lines and connections that lose, double and delay (`world/feed`): none of that excuses anything of trading.
//!
//! Several hosts ([`hosts`]), a member's servers and traders ([`member`]) and replication between clusters ([`wice`]) have simulations of their own. **Not simulated**: proofs of FIX Logons and of OUCH logins; an engine that does not come back (threads of one process: `pares-node`); damage where the others lack what is lost;
//! engines of two venues that fail by themselves in one shard at once (they may wait for each other's checkpoints); the memory model under the window (`loom`) and interleavings inside one proposal (`stateright`); a loss of power that takes back what publishers have sent.
//!
//! **Checked**: I1 agreement, W6 executed or void, I2 durability, I3 exactly once, I4 non-disruption (of venues as long as one is
//! left, of recorders as long as a quorum is), I5 conservation, I6 bounds, I7 a poisoned shard delays no other (design section
//! 6); R4 who is revoked is out; that a member's stream tells every message once, in order and under its number; what sessions by FIX (X), OUCH (Y) and HTTP (Z) and subscribers
//! (F) are promised, as their modules say; that an epoch is used once; that positions keep the order in which people could see things happen; and in the end, when faults have stopped,
//! that everything is up and answered, all replicas are equal, and the record, replayed in order on one naive book, gives every outcome and event again. Where builds differ: that
//! a contradiction halts every recorder. The checkers themselves are checked by putting defects under the roles ([`Bug`]), and each seed runs twice ([`run_twice`]).

mod bug;
mod build;
mod client;
#[cfg(test)]
mod conformance;
mod defects;
mod engine;
mod fault_mix;
mod fix;
mod guest;
pub mod hosts;
mod ledger;
pub mod member;
mod memory;
#[cfg(test)]
mod mirrors;
mod oracle;
mod ouch;
mod queue;
mod record;
mod scenario;
mod seen;
mod trace;
mod web;
pub mod wice;
mod world;

use core::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

pub use bug::Bug;
pub use fault_mix::{Fault, FaultMix};
pub use scenario::{Durability, Feed, Scenario};
pub use seen::{Engines, FaultCounts, FeedSeen, FixSeen, OuchSeen, Seen, WebSeen};

use trace::Watcher;
use world::World;

/// What a run that held all invariants did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Requests of clients, repeats not counted.
    pub requests: u64,
    /// Of those, never taken in by any gateway (unknown instrument, say).
    pub abandoned: u64,
    /// Positions decided, executed and recorded.
    pub positions: u64,
    /// Trades.
    pub trades: u64,
    /// What else became of orders.
    pub seen: Seen,
    /// Requests refused in the total order because their name was used before.
    pub duplicates_refused: u64,
    /// Requests refused in the total order because their name may have been used and was forgotten.
    pub too_old_refused: u64,
    /// Requests sent again by clients.
    pub repeats: u64,
    /// Requests rejected by gateways for want of room.
    pub rejected: u64,
    /// Faults of all kinds, lost messages not counted.
    pub faults: u64,
    /// Of those, what hit disks and clocks.
    pub ills: FaultCounts,
    /// What became of matching engines that failed.
    pub engines: Engines,
    /// Lives of the window.
    pub epochs: u64,
    /// Times a venue found the window full.
    pub window_full: u64,
    /// Times a venue found itself too far behind.
    pub too_far_behind: u64,
    /// Checkpoints stored.
    pub checkpoints: u64,
    /// Orders that gateways told of because their members asked.
    pub orders_told: u64,
    /// Name lookups on disk.
    pub looked_up: u64,
    /// Connections whose taps were held against what passed.
    pub taped: u64,
    /// Entries that taps say they lost.
    pub tap_lost: u64,
    /// What became of market data.
    pub feed: FeedSeen,
    /// What members that come by FIX met.
    pub fix: FixSeen,
    /// What members that come by OUCH met.
    pub ouch: OuchSeen,
    /// What members that come by HTTP met.
    pub web: WebSeen,
    /// The longest time from asking to the answer that no fault but a venue's excuses, ns.
    pub completion_max_ns: u64,
    /// Virtual time it all took, ns.
    pub took_ns: u64,
    /// Events simulated.
    pub events: u64,
    /// Processes that ended by themselves, with a reason.
    pub exits: u64,
    /// Things clients did that no client should.
    pub hostile: u64,
    /// Equal for equal histories.
    pub trace_hash: u64,
    /// Equal for equal ends: what every venue's books and every recorder's log held.
    pub state_hash: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Broken {
    pub(crate) invariant: &'static str,
    pub(crate) what: String,
}

/// What is found, if anything.
pub(crate) type Verdict = Result<(), Broken>;

/// An invariant does not hold.
pub(crate) fn broken<T>(invariant: &'static str, what: String) -> Result<T, Broken> {
    Err(Broken { invariant, what })
}

/// What an invariant says, with what was found where it does not hold.
pub(crate) fn must(holds: bool, invariant: &'static str, what: impl FnOnce() -> String) -> Verdict {
    if holds { Ok(()) } else { broken(invariant, what()) }
}

/// A run that broke an invariant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The scenario's name.
    pub scenario: &'static str,
    /// The seed.
    pub seed: u64,
    /// Which invariant, as design section 6 numbers them, or that an assertion of the rules stopped a process.
    pub invariant: &'static str,
    /// What was found.
    pub what: String,
    /// The last lines of the trace.
    pub trace: Vec<String>,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for line in &self.trace {
            writeln!(f, "{line}")?;
        }
        writeln!(f, "\nbroken: {}\n{}", self.invariant, self.what)?;
        write!(f, "replay: {}", self.replay())
    }
}

impl Failure {
    fn of(
        (scenario, seed): (&'static str, u64),
        Broken { invariant, what }: Broken,
        trace: Vec<String>,
    ) -> Box<Self> {
        Box::new(Self { scenario, seed, invariant, what, trace })
    }

    /// The command that runs it again, event by event.
    #[must_use]
    pub fn replay(&self) -> String {
        let Self { seed, scenario, .. } = self;
        format!("pares sim --seed {seed} --scenario {scenario} --trace")
    }
}

impl std::error::Error for Failure {}

/// Runs a scenario to its end.
///
/// # Errors
/// The first invariant found broken.
///
/// # Panics
/// If the scenario's sizes are outside their ranges.
pub fn run(scenario: &Scenario) -> Result<Summary, Box<Failure>> {
    run_watched(scenario, None)
}

/// Runs a scenario to its end, giving each line of the trace to `watch`.
///
/// # Errors
/// As [`run`].
///
/// # Panics
/// As [`run`].
pub fn run_traced(scenario: &Scenario, watch: &mut dyn FnMut(&str)) -> Result<Summary, Box<Failure>> {
    run_watched(scenario, Some(watch))
}

/// Runs a scenario twice: whatever is drawn from anything but the seed (an address, a clock, the order of a hash map) shows
/// as a difference, and a seed that does not replay is worth nothing.
///
/// # Errors
/// As [`run`], or that the two runs differ.
///
/// # Panics
/// As [`run`].
pub fn run_twice(scenario: &Scenario) -> Result<Summary, Box<Failure>> {
    let both = (run(scenario)?, run(scenario)?);
    same(both).map_err(|broken| Failure::of((scenario.name, scenario.seed), broken, Vec::new()))
}

fn run_watched(scenario: &Scenario, watcher: Watcher<'_>) -> Result<Summary, Box<Failure>> {
    let mut world = World::new(scenario, watcher);
    match caught(|| world.run()) {
        Ok(()) => Ok(world.summary()),
        Err(broken) => Err(Failure::of((scenario.name, scenario.seed), broken, world.trace.last_lines())),
    }
}

/// Two runs of one seed were the same history.
fn same<T: PartialEq + fmt::Debug>((first, second): (T, T)) -> Result<T, Broken> {
    match first == second {
        true => Ok(first),
        false => broken(
            "the same seed is the same history",
            format!("the first time {first:#?}\nthe second time {second:#?}"),
        ),
    }
}

/// What a run finds; that it panics is found too.
fn caught(run: impl FnOnce() -> Verdict) -> Verdict {
    let ended = catch_unwind(AssertUnwindSafe(run));
    ended.unwrap_or_else(|panic| broken("an assertion of the rules", words_of(panic.as_ref())))
}

/// What a panic said.
fn words_of(panic: &(dyn core::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap_or_default()
}
