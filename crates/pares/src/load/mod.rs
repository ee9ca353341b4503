//! An open-loop load generator.
//!
//! A closed loop, which sends the next request when the last is answered, slows down with the system it measures
//! and hides every pause (coordinated omission). Here requests have a schedule that nothing changes: request
//! `n` is due at `start + n / rate`, latency counts from that instant, and a pause is seen by every
//! request that was due in it.
//!
//! | module | what |
//! |---|---|
//! | [`plan`] | what to offer |
//! | [`generator`] | the sending thread |
//! | [`session`] | one member's connection, and how it comes back |
//! | [`numbers`] | sets of requests |
//! | [`observed`] | what it has seen, readable while it runs |

mod generator;
mod numbers;
mod observed;
mod plan;
mod session;

pub use generator::Load;
pub use numbers::Numbers;
pub use observed::{Observed, Phase};
pub use plan::{LoadPlan, Rate};

use pares_flow::{FlowCommand, SyntheticFlow};

/// Where requests come from, one after the other, without end. Their names count up from the plan's first.
pub trait Source: Send {
    /// The next one.
    fn next_command(&mut self) -> FlowCommand;
}

impl Source for SyntheticFlow {
    fn next_command(&mut self) -> FlowCommand {
        SyntheticFlow::next_command(self)
    }
}
