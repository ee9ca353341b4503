//! The roles as processes: what a host gives them (files, sockets, threads, clocks), and who starts them.
//!
//! ```text
//!  clients --TCP--> gateway log --> venue logs --> recorder logs --> gateways --TCP--> clients
//!                        \___________ bells wake what sleeps _____________/
//! ```
//! What a role does lies in `pares-roles` and `pares-gateway-role`; here it becomes a process of its own: poll inputs, step the rules, flush outputs,
//! ring, and when there is nothing to do yield for a while and then sleep until a bell rings ([`duty`]). No role ever waits for
//! another: what it reads lies in files the others append to.
//!
//! | module | what |
//! |---|---|
//! | [`process`] | each role as a process |
//! | [`world`] | the world of a process as it ships: mapped files, threads, clocks |
//! | [`duty`] | the duty cycle as a loop, and how it idles |
//! | `venue` | the threads of a venue |
//! | [`sockets`] | a gateway's sockets |
//! | [`operators`] | the socket of a gateway that only operators on its machine can connect to |
//! | `handshakes` | TLS handshakes of those who connect, on a thread of their own |
//! | [`lanes`] | a shard moved to other venues |
//! | [`keys`] | the certificates of a system |
//! | [`config`] | the system's configuration file, and where everything lies |
//! | `days` | a recorder's closed days, beside its duty cycle |
//! | [`mirrors`] | the logs at another host: who sends them, and who receives them |
//! | [`supervisor`] | `pares up`: starts the processes, restarts what dies, leaves no orphan |
//! | [`watched`] | a process that is started again when it dies |
//! | [`leftovers`] | no two starts of one system at once, no orphans |

pub mod config;
mod days;
pub mod duty;
mod first_operator;
mod handshakes;
pub mod hosts;
pub mod keys;
pub mod lanes;
pub mod leftovers;
pub mod mirrors;
pub mod operators;
mod orderer;
pub mod process;
pub mod readmit;
pub mod sockets;
pub mod supervisor;
mod venue;
pub mod watched;
pub mod world;

pub use pares_config::{Layout, NodeId, SystemConfig};
pub use pares_roles::{NodeError, checkpoints, committed, epoch, lost, shut_out, tail};
pub use supervisor::Supervisor;
pub use world::HostWorld;
