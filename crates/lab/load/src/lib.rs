//! A system under load: what drills, demonstrations, benchmarks and experiments have in common.
//!
//! The load is open: a closed loop, which sends the next request when the last is answered, slows down with the system it measures
//! and hides every pause (coordinated omission). Here requests have a schedule that nothing changes: request
//! `n` is due at `start + n / rate`, latency counts from that instant, and a pause is seen by every
//! request that was due in it.
//!
//! | module | what |
//! |---|---|
//! | [`setup`] | a system and its load, as told on the command line |
//! | `plan` | what to offer |
//! | `generator` | the sending thread |
//! | `offer` | more than a system takes, on a schedule |
//! | `members` | members of a system that requires sign-on |
//! | `connection` | one member's connection, whatever it speaks |
//! | `session` | the exchange's own protocol, and how a member comes back |
//! | `front` | standard protocols, and how a member continues at another gateway |
//! | `fix`, `ouch`, `web` | how it speaks them |
//! | `numbers` | sets of requests |
//! | `observed` | what the load has seen, readable while it runs |
//! | `system` | systems started for the length of one command |
//! | `distant_sites` | clusters of sites with a wide area network between them, for the length of one command |
//! | `scratch`, `small_disk` | where their files lie |
//! | `venues` | which venue leads, which is back |
//! | `stolen` | what the host of a virtual machine keeps for itself |
//! | `records` | what the recorders have, and whether they agree |
//! | `killer` | kills venues, and sees when each is back |
//! | `figures` | what a command found, as JSON and for people |
//! | `worker` | a thread that works until it is stopped |
//! | `error` | why a command failed, and what to do |

#![allow(unreachable_pub)] // `pub` here also means "for the other modules"

mod connection;
mod distant_sites;
mod error;
mod figures;
mod fix;
mod front;
mod generator;
mod hosts;
mod killer;
mod members;
mod numbers;
mod observed;
mod offer;
mod ouch;
mod plan;
pub mod processor;
mod records;
mod scratch;
mod session;
pub mod setup;
mod small_disk;
mod stolen;
mod system;
mod venues;
mod web;
mod worker;

pub use distant_sites::{DistantSites, PATIENCE, SitesPlan};
pub use error::{LabError, LabResult, check_patience, failed};
pub use figures::{Spread, figures_text, none_of, print_figures};
pub use fix::{FixPlan, fix_logon};
pub use front::FrontTold;
pub use generator::Load;
pub use hosts::ScratchHosts;
pub use killer::{Killer, Return};
pub use numbers::Numbers;
pub use observed::{Observed, Stretch};
pub use offer::{Latencies, OpenLoopLoad, OpenLoopPlan, OpenLoopTally};
pub use ouch::{OuchPlan, ouch_login};
pub use plan::{LoadPlan, LoadProtocol, Rate};
pub use records::{LogNotes, Reach, Records};
pub use scratch::ScratchDirectory;
pub use session::keep_if_connected;
pub use small_disk::SmallDisk;
pub use stolen::Stolen;
pub use system::{ScratchSystem, addresses, own_program};
pub use venues::{VenueState, Venues};
pub use web::{
    HttpAnswer, HttpConnection, WebPlan, WebProcess, WebSharing, first_frame, text_frame, text_of,
};
pub use worker::Worker;

use pares_flow::FlowCommand;

/// Where requests come from, one after the other, without end. Their names count up from the plan's first.
pub trait RequestSource: Send {
    /// The next one.
    fn next_command(&mut self) -> FlowCommand;
}

impl<F: FnMut() -> FlowCommand + Send> RequestSource for F {
    fn next_command(&mut self) -> FlowCommand {
        self()
    }
}
