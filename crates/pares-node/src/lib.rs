//! The roles as processes: rules joined to edges by single-threaded duty cycles (design section 7).
//!
//! ```text
//!  clients --TCP--> gateway log --> venue logs --> recorder logs --> gateways --TCP--> clients
//!                        \___________ bells wake whoever sleeps ___________/
//! ```
//! Each role is a process of its own: poll inputs, step the rules, flush outputs, ring, and when there is
//! nothing to do yield for a while and then sleep until a bell rings ([`duty`]). No role ever waits for
//! another: what it reads lies in files the others append to.
//!
//! | module | what |
//! |---|---|
//! | [`config`] | the system's configuration file, and where everything lies |
//! | [`duty`] | the duty cycle and how it idles |
//! | [`committed`] | the recorders' logs merged into the one committed stream |
//! | [`recorder`], [`venue`], [`gateway`] | the roles |
//! | [`checkpoints`] | checkpoint files |
//! | [`crash`] | named points at which a test has a node die |
//! | [`device`] | a recorder's device made slow or failing, for tests |
//! | [`epoch`] | starting the window's next life |
//! | [`tail`] | a log read from before it exists |
//! | [`shut_out`] | venues that were found wrong: notes, and how they come back |
//! | [`wrong`] | a venue that is wrong on purpose, for tests |
//! | [`role`] | the roles by name, each as a process |
//! | [`supervisor`] | `pares up`: starts the processes, restarts what dies, leaves no orphan |

pub mod checkpoints;
pub mod committed;
pub mod config;
pub mod crash;
pub mod device;
pub mod duty;
pub mod epoch;
mod error;
pub mod gateway;
pub mod recorder;
pub mod role;
pub mod shut_out;
pub mod supervisor;
pub mod tail;
pub mod venue;
pub mod wrong;

pub use config::{Layout, SystemConfig};
pub use error::NodeError;
pub use role::Role;
pub use supervisor::Supervisor;
pub use venue::POISON;
