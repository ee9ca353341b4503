//! The roles of an exchange, generic over the [`world`] they run in: the duty cycles of venue and recorder, and what that of a gateway
//! (`pares-gateway-role`) has in common with them.
//!
//! A role joins rules (`pares-gateway`, `pares-venue`, `pares-recorder`) to logs, windows, sockets and clocks that it knows by
//! traits only. What ships and what the simulator runs is the same code; only the world differs.
//!
//! ```text
//!   pares-node: mapped files, sockets, threads --+
//!                                                +--> world traits <-- roles --> rules
//!   pares-sim: memory, virtual time, faults -----+
//! ```
//! | module | what |
//! |---|---|
//! | [`world`] | all that a role touches |
//! | [`duty`] | one turn of a role |
//! | [`origins`] | connections that make room for each other |
//! | [`tail`] | a log read from before it exists |
//! | [`inlet`] | another node's log, for what can be read of it |
//! | [`repair_asked`] | asking a node to repair its log |
//! | [`committed`] | the recorders' logs merged into the one committed stream |
//! | [`checkpoints`] | checkpoint files |
//! | [`index`] | where in a recorder's log the records of a name lie |
//! | [`resume`] | from which checkpoint to start |
//! | [`venue`] | the role of a venue |
//! | [`orderer`] | the role of a host's orderer |
//! | [`epoch`] | starting the windows' next life |
//! | [`mirror`] | a host's logs at another host: both ends |
//! | [`lost`] | positions that are known to be lost |
//! | [`recorder`] | the recorder |
//! | [`lanes`] | which venue executes which shards, and the steps of a move |
//! | [`left_out`] | recorders that a start left out: notes |
//! | [`shut_out`] | venues that were found wrong: notes, and how they come back |

pub mod checkpoints;
pub mod committed;
mod counters;
pub mod duty;
pub mod epoch;
mod error;
pub mod index;
pub mod inlet;
pub mod lanes;
pub mod left_out;
pub mod lost;
pub mod mirror;
pub mod orderer;
pub mod origins;
pub mod recorder;
pub mod repair_asked;
pub mod resume;
pub mod shut_out;
pub mod tail;
#[cfg(any(test, feature = "testing"))]
#[doc(hidden)]
pub mod testing;
pub mod venue;
mod whole_file;
pub mod world;

pub use error::NodeError;
pub use world::World;

/// How the log of a recorder is kept, and that of a gateway: as durable as the settings say.
#[must_use]
pub fn durable_log(config: &pares_config::SystemConfig) -> pares_log::Config {
    pares_log::Config::default().segment_bytes(config.segment_mib << 20).durability(config.durability.into())
}
