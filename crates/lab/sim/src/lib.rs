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
//! Some members come by FIX, by engines of the simulator's own that keep their numbers for life: cut anywhere, from gateway to gateway, they answer ResendRequests by old
//! orders or gaps, ask again under old names, send wrong sums and floods; strangers send garbage, and Logons in other's names. Others come by OUCH, with packets and a
//! decoder written from the page alone: they log in from the number they lack, an older one or none, and send again what was not answered.
//!
//! Publishers and replayers of market data die at any call and any byte, are stopped, lose their disks or find them full, and their logs rot; datagrams of two lines, requests
//! and answers are lost, doubled and late, and connections break; subscribers come early, late and again; and anybody sends them what no publisher would. None of it excuses anything of trading.
//!
//! A member's servers and traders ([`member`]) and replication between clusters ([`wice`]) have simulations of their own. **Not simulated**: proofs of FIX Logons and of OUCH logins; an engine that does not come back (threads of one process: `pares-node`); damage where the others lack what is lost;
//! engines of two venues that fail by themselves in one shard at once (they may wait for each other's checkpoints); the memory model under the window (`loom`) and interleavings inside one proposal (`stateright`); a loss of power that takes back what publishers have sent.
//!
//! **Checked**: I1 agreement, W6 executed or void, I2 durability, I3 exactly once, I4 non-disruption (of venues as long as one is
//! left, of recorders as long as a quorum is), I5 conservation, I6 bounds, I7 a poisoned shard delays no other (design section
//! 6); R4 who is revoked is out; that a member's stream tells every message once, in order and under its number; of FIX sessions, X1 that no number comes lower than
//! expected or stands for two messages, X2 that all of the stream is told as it is in the record, and what is told twice says so (what a gateway's lost
//! disk or power takes of a session excuses both); of OUCH sessions, which nothing excuses, Y1 that a packet has the same bytes at every gateway and every telling, Y2 that all of
//! the stream is told, each message as the page says, Y3 that under one UserRefNum there is one order, as it was asked for; that an epoch is used once; that positions keep the order in which people could see things happen; and in the end, when faults have stopped, that everything is up and answered, all replicas are equal, and the record, replayed in order on one naive book, gives every
//! outcome and event again. Where builds differ: that a contradiction halts every recorder. Of market data, against one publication of each
//! shard that is driven by the committed record alone: F1 publishers log and send what it gives, byte by byte, in every life, F2 and nothing
//! before it is committed; F3 what is told again and handed out is the same, once and in order; F4 who is shown something as current has
//! all that it was told of, and the right books; F5 in the end everybody has everything, and the books are the venues'. The checkers
//! themselves are checked by putting defects under the roles ([`Bug`]), and each seed runs twice ([`run_twice`]).

mod accounts;
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
mod ledger;
pub mod member;
mod memory;
mod oracle;
mod ouch;
mod queue;
mod random;
mod record;
mod scenario;
mod trace;
mod web;
pub mod wice;
mod world;

use core::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

pub use bug::Bug;
pub use fault_mix::FaultMix;
pub use fix::FixSeen;
pub use ouch::OuchSeen;
pub use scenario::{Durability, Feed, Scenario};
pub use web::WebSeen;

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
    /// Of those, what befell disks and clocks.
    pub ills: Ills,
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
    /// Names looked for on disk.
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

/// Cases of the rule book that a run met.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Stop orders triggered.
    pub triggered: u64,
    /// Pegged orders that moved to another price.
    pub repriced: u64,
    /// Buy orders that traded in auctions.
    pub auctioned: u64,
    /// Icebergs that showed more.
    pub refilled: u64,
    /// Orders that went on in a later step.
    pub continued: u64,
    /// Opening and closing calls that were extended.
    pub extended: u64,
    /// Orders cancelled because they met one of the same member.
    pub self_trades: u64,
    /// Orders whose date passed.
    pub expired: u64,
    /// Orders cancelled by the kill switch.
    pub blocked: u64,
    /// Orders cancelled because the session that guarded them had ended.
    pub session_ended: u64,
    /// Calls because of a price band.
    pub volatility_calls: u64,
    /// Requests carried out in part.
    pub unfinished: u64,
}

/// What became of market data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FeedSeen {
    /// Packets sent on lines.
    pub packets: u64,
    /// Packets sent again by UDP.
    pub answers: u64,
    /// Connections to replayers.
    pub calls: u64,
    /// Calls that failed.
    pub failed_calls: u64,
    /// Packets that nobody should send.
    pub forged: u64,
    /// Sessions begun in the record, of all shards.
    pub sessions: u64,
    /// Messages handed out to subscribers.
    pub handed_out: u64,
    /// Books replaced by a snapshot.
    pub resets: u64,
    /// Gaps that nothing filled.
    pub unfilled: u64,
    /// Claims of packets that publishers said were not true.
    pub refuted: u64,
    /// Times a subscriber was found current.
    pub current: u64,
    /// ... at the end of its session.
    pub over: u64,
    /// ... with messages missing.
    pub gap: u64,
    /// ... asking what is true.
    pub recovering: u64,
    /// ... not having heard anything for long.
    pub stale: u64,
}

impl FeedSeen {
    fn and(self, other: &Self) -> Self {
        Self {
            packets: self.packets + other.packets,
            answers: self.answers + other.answers,
            calls: self.calls + other.calls,
            failed_calls: self.failed_calls + other.failed_calls,
            forged: self.forged + other.forged,
            sessions: self.sessions + other.sessions,
            handed_out: self.handed_out + other.handed_out,
            resets: self.resets + other.resets,
            unfilled: self.unfilled + other.unfilled,
            refuted: self.refuted + other.refuted,
            current: self.current + other.current,
            over: self.over + other.over,
            gap: self.gap + other.gap,
            recovering: self.recovering + other.recovering,
            stale: self.stale + other.stale,
        }
    }
}

/// What became of matching engines that failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Engines {
    /// Times one failed, whatever the reason.
    pub failed: u64,
    /// Of those, for no reason in the request.
    pub by_themselves: u64,
    /// Processes that ended with it.
    pub deaths: u64,
    /// Shards restored while the others went on.
    pub restored: u64,
    /// Requests void.
    pub voids: u64,
    /// Requests refused because their instrument was quarantined.
    pub quarantined: u64,
}

/// What befell disks and clocks in a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ills {
    /// Disks that were full for a while.
    pub full: u64,
    /// Requests refused because a gateway's disk was.
    pub refused_for_room: u64,
    /// Requests refused because nothing was being recorded.
    pub refused_unrecorded: u64,
    /// Requests refused because their names were forgotten.
    pub too_old: u64,
    /// Sessions ended because their key was changed or revoked.
    pub revoked: u64,
    /// Sign-ons refused because of the key.
    pub wrong_keys: u64,
    /// Operators' requests refused since others went past them, as often as a log took them.
    pub overtaken: u64,
    /// Disks that were slow for a while.
    pub slow: u64,
    /// Syncs that failed.
    pub syncs_failed: u64,
    /// Recorders that came back with an empty disk.
    pub wiped: u64,
    /// Venues that did.
    pub venues_wiped: u64,
    /// Publishers that did.
    pub publishers_wiped: u64,
    /// Gateways that lost their disk.
    pub gateways_wiped: u64,
    /// Bits that flipped in logs and checkpoints.
    pub damaged: u64,
    /// Times a host was out of descriptors or threads.
    pub exhausted: u64,
    /// Recorders that found venues to differ and halted.
    pub divergences: u64,
    /// Runs in which a venue of another build had other results that nobody contradicted.
    pub unnoticed: u64,
    /// Half-written records left behind.
    pub torn: u64,
    /// Clocks set.
    pub clock_jumps: u64,
}

/// A broken invariant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Broken {
    pub(crate) invariant: &'static str,
    pub(crate) what: String,
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
    let first = run(scenario)?;
    let second = run(scenario)?;
    if first == second {
        return Ok(first);
    }
    Err(Box::new(Failure {
        scenario: scenario.name,
        seed: scenario.seed,
        invariant: "the same seed is the same history",
        what: format!("the first time {first:#?}\nthe second time {second:#?}"),
        trace: Vec::new(),
    }))
}

fn run_watched(scenario: &Scenario, watcher: Watcher<'_>) -> Result<Summary, Box<Failure>> {
    let mut world = World::new(scenario, watcher);
    let ended = catch_unwind(AssertUnwindSafe(|| world.run()));
    let Broken { invariant, what } = match ended {
        Ok(Ok(())) => return Ok(world.summary()),
        Ok(Err(broken)) => broken,
        Err(payload) => {
            let text = payload.downcast_ref::<String>().cloned();
            let text = text.or_else(|| payload.downcast_ref::<&str>().map(|text| (*text).to_owned()));
            Broken { invariant: "an assertion of the rules", what: text.unwrap_or_default() }
        }
    };
    let trace = world.trace.last_lines();
    Err(Box::new(Failure { scenario: scenario.name, seed: scenario.seed, invariant, what, trace }))
}
