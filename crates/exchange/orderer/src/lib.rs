//! The total order across hosts: who says which request is next, when a whole host may die.
//!
//! On one host a position is decided by one compare-and-swap in shared memory. Hosts share none, and the obvious way, one majority vote a
//! position, costs a round trip for each. So the race is run per *lead*: each host has an orderer, the orderers are the members of one replicated
//! log (`pares-cluster`), and who leads it proposes whatever is pending, in entries of many requests, bodies included. What is committed is
//! at a majority, so what is ordered can be executed wherever it is known to be ordered.
//!
//! ```text
//!   gateways' logs --take--> pending --entries, by who leads--> replicated log --committed--> Ordered --ordered--> orders log, window
//!                               ^                                                                |
//!                               +------------------- what is ordered waits no more --------------+
//! ```
//! Every member applies the committed entries alike: a request above the highest sequence ordered of its gateway and shard gets the next
//! position of its shard, every other is skipped. So a request may be proposed by any number of leaders and is ordered once.
//!
//! No host watches another. Who sees its own pending requests undecided for longer than its [patience](impatience) stands for the lead.
//!
//! | module | what |
//! |---|---|
//! | [`entry`] | an entry's bytes |
//! | [`ordered`] | what is ordered: the state that all members share |
//! | [`pending`] | what waits to be ordered |
//! | [`impatience`] | when to stand for the lead |
//! | [`message`] | what orderers say to each other |
//! | `effects` | what becomes of what is committed |
//! | [`orderer`] | all of it, over a replicated log |
//!
//! Nothing here reads a clock: times are the caller's, in nanoseconds since some moment of its own. In bytes: `docs/protocols/orders.md`.

mod effects;
pub mod entry;
pub mod impatience;
pub mod message;
pub mod ordered;
pub mod orderer;
pub mod pending;
#[cfg(test)]
mod storm;

pub use effects::{OrderSink, OrdererCounts};
/// Which requests get a position, and which: another number wherever a build would place an entry otherwise than the one before.
pub const RULES: u16 = 1;

pub use message::OrdererMessage;
pub use ordered::{Ordered, Placed};
pub use orderer::{Orderer, OrdererConfig};
