//! A member's system in one thread: the servers and the traders' rules that ship, virtual time, one seed, every fault at will.
//!
//! ```text
//!  traders ==frames, may break== member servers ==frames, may break== member servers
//!                                   |  window, logs, notes in memory, with their real bytes and checksums
//!  what the exchange told the member: the same to each server
//! ```
//! **Simulated**: the duty cycle of servers (`pares-member`), the start of the window's next life, and what a trader says and makes of the
//! answers (`pares_desk::trader`), on connections that deliver in pieces, late, and break. A server dies at any call into its world and at any
//! byte of its logs, is stopped, finds its disk full, or loses it and is filled by a peer, which dies meanwhile. Everything restarts, with the
//! window or without it; power fails. Traders that read nothing for seconds. Reports of the exchange, copied by all servers.
//!
//! **Not simulated**: market data (books), web traders, packets; logs that rot.
//!
//! **Checked**: M1 each position has one item, at every server and for ever, and none is left out; M2 what a trader submitted stands once, as it was
//! submitted, and in the order of its numbers, and so do reports; M3 a trader receives what stands there, each position once, and only what a quorum has
//! had; M4 what a trader received stays: that another stream begins is right only if no disk is left that had what a trader received; M5 a server ends by
//! itself only for a fault that hit it; M6 when faults have stopped, everything that was submitted is placed, and all servers and traders have all of it.
//! The checkers are checked by defects ([`crate::Bug`]).

mod check;
mod faults;
mod run;
mod servers;
mod traders;
mod wires;

use crate::Bug;
use crate::scenario::MS;

pub use run::{run, run_traced, run_twice};

/// A run's size and faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemberPlan {
    /// All chance comes from here.
    pub seed: u64,
    /// Servers.
    pub servers: u16,
    /// Servers that must have an item before traders receive it.
    pub quorum: u16,
    /// Traders; the last one only follows.
    pub traders: u32,
    /// What each of the others submits.
    pub submissions: u64,
    /// Reports of the exchange.
    pub reports: u64,
    /// Virtual time with faults, ns.
    pub faulty_ns: u64,
    /// Mean time between faults, ns; 0 for none.
    pub fault_every_ns: u64,
    /// Whether being told survives the loss of power.
    pub disk: bool,
    /// What is broken on purpose.
    pub bug: Option<Bug>,
}

impl MemberPlan {
    /// How the scenario is called.
    pub const NAME: &'static str = "member";

    /// Two servers or three, of which one or two must have what traders receive.
    #[must_use]
    pub fn of(seed: u64) -> Self {
        Self {
            seed,
            servers: 2 + (seed % 2) as u16,
            quorum: 1 + (seed / 2 % 2) as u16,
            traders: 4,
            submissions: 60,
            reports: 40,
            faulty_ns: 2_000 * MS,
            fault_every_ns: [60 * MS, 200 * MS][(seed / 8 % 2) as usize],
            disk: seed / 4 % 2 == 1,
            bug: None,
        }
    }
}

/// What a run that held all invariants did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// What traders submitted.
    pub submitted: u64,
    /// Of that, what servers refused.
    pub refused: u64,
    /// Positions of the stream, and of those that were lost with their disks.
    pub positions: u64,
    /// Of those, repeats.
    pub repeats: u64,
    /// Items that traders received.
    pub told: u64,
    /// Answers that something stands already.
    pub placed: u64,
    /// Sign-ons.
    pub signed_on: u64,
    /// Faults.
    pub faults: u64,
    /// Disks lost.
    pub wiped: u64,
    /// Servers killed while they were behind a peer.
    pub killed_behind: u64,
    /// Sessions of traders ended because they read nothing, since their servers' last start.
    pub too_slow: u64,
    /// Lives of the window.
    pub epochs: u64,
    /// Streams begun.
    pub streams: u64,
    /// Times everything was restarted since what was decided was nowhere any more.
    pub anew: u64,
    /// Virtual time, ns.
    pub took_ns: u64,
    /// Equal for equal histories.
    pub trace_hash: u64,
}
