//! Paper 3, section 4, in virtual time: TPC-C clients at six servers in two clusters, under DBSM and under WICE.
//!
//! The paper ran real protocols inside simulated servers and networks. So does this: the rules of `pares-wice` are the shipped ones; clients,
//! processors, disks, links, row locks and the baseline protocol are models, all moved by one queue of
//! events in virtual time and one seeded source of chance, so that a seed is a whole history.
//! Each run is checked for one-copy snapshot isolation as it goes.
//!
//! A site of `pares-site` cannot stand in for these servers: it executes a request at once and locks no rows, and nearly every abort of
//! the paper's figure is a transaction that waited for a locked row. Those sites are measured with `pares-wholesale`.
//!
//! | module | what |
//! |---|---|
//! | [`setting`] | what is simulated; unknowns of the paper as parameters |
//! | `workload`, `item` | TPC-C's transactions as the rows they write |
//! | [`Dice`] | chance, TPC-C's uneven kind among it |
//! | `server`, `processor`, `pipe`, `locks`, `network` | the machines |
//! | `world` | everything together; the protocols |
//! | `check` | one-copy snapshot isolation |
//! | [`tally`] | what is measured |

mod check;
mod item;
mod locks;
mod network;
mod pipe;
mod processor;
mod queue;
mod random;
mod server;
pub mod setting;
pub mod tally;
mod workload;
mod world;

pub use pares_random::mix;
pub use random::Dice;
pub use setting::{DayAndNight, MeasuredCosts, Protocol, ReadsOf, Release, Resubmit, Setting, Waiters};
pub use tally::{ResponseTime, SideResult};
pub use workload::Kind;
pub use world::RunResult;

/// Runs one setting from beginning to end.
///
/// # Errors
/// What was found wrong, if the history is not one-copy snapshot isolation; the setting, with its seed, replays it.
///
/// # Panics
/// If there are no clients, or the day turns after the end.
pub fn run(setting: &Setting) -> Result<RunResult, String> {
    assert!(setting.clients > 0, "somebody must ask");
    world::World::new(setting).run().map_err(|violation| format!("{violation} ({setting:?})"))
}
