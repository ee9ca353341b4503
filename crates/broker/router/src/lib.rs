//! What is sent to the exchange of the customers' orders, and what of its stream is applied (docs/protocols/broker-orders.md).
//!
//! The obvious router remembers what it has sent and what came back, and the one that takes over from it guesses. This one remembers nothing that matters: orders, their names and
//! how far each shard's stream is applied are items of the accounts. So a router begins by claiming and reading, and another one does the same when it is gone. All that either has sent
//! or asked before has the same name, or an old term.
//!
//! It does no I/O: it receives what happened with the time, what is to be done is a list of [`RouterEffect`]s, which it is asked for.

mod exchange;
mod recovery;
mod router;
mod stream;

pub use exchange::ListedStock;
pub use router::{ROUTER_SILENT_MS, Router, RouterEffect};
