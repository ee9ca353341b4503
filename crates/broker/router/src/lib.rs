//! Sends customers' orders to the exchange and applies the exchange's stream to the accounts (docs/protocols/broker-orders.md).
//!
//! The obvious router remembers what it sent and what came back; when it dies, its successor has to guess. This one keeps nothing that matters: the orders, their names and
//! the applied end of each shard's stream are items of the accounts. A router begins by claiming a term and reading these items; its successor does the same. A request
//! that either of them repeats has the same name as before, and one of an old term is refused.
//!
//! It does no I/O: it takes events with their time, and hands out a list of [`RouterEffect`]s on request.

mod exchange;
mod recovery;
mod router;
mod stream;

pub use exchange::ListedStock;
pub use router::{ROUTER_SILENT_MS, Router, RouterEffect};
