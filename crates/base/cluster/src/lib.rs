//! The replicated log inside one cluster of sites (WICE, paper 3, sections 2.2 and 3.1).
//!
//! The sites of a cluster must apply the same transactions in the same order, and what one of them has acknowledged must
//! outlive it. The obvious way, the delegate multicasts and each receiver applies, fails when the delegate dies in the
//! middle: some have its last message, some have not, and it has already answered. The paper asks for view synchrony
//! with *uniform* delivery: no member delivers what a survivor might lack. Only one site at a time multicasts, the cluster's
//! delegate, so the primitive is a log with one leader:
//!
//! ```text
//!   the paper                            here
//!   delegate                             Raft's leader
//!   uniform delivery                     committed: durable at a majority, handed out in order by every member
//!   view                                 term; a new delegate leads once it has handed out all of earlier terms
//!   a message of an expelled delegate    never commits: its term is over
//! ```
//! Raft waits for a majority of the cluster, view synchrony for all of the view: the difference is discussed in
//! `docs/decisions/0012-cluster-log.md`.
//!
//! [`ClusterLog`] is what a site needs. [`Replica`] is the real one: raft-rs over a [`Journal`], which is a `pares-log`
//! directory ([`Files`]) or memory that forgets like a disk ([`memory::Disk`]). [`shared::Shared`] is its twin for tests, several
//! members on one vector: obviously right, and held to the same suite.
//!
//! Nothing here reads a clock, opens a socket or starts a thread (the journal's own apart): time comes as
//! ticks, messages go to a [`Sink`] and come back through [`ClusterLog::receive`], and randomness from a seed.
//!
//! ```
//! use pares_cluster::{ClusterLog, Durability, Files, Replica, ReplicaConfig, MemberRole, Sink};
//! #[derive(Default)]
//! struct Site(Vec<Vec<u8>>);
//! impl Sink for Site {
//!     fn send(&mut self, _to: u8, _message: Vec<u8>) {}
//!     fn committed(&mut self, _index: u64, _term: u64, payload: &[u8]) { self.0.push(payload.to_vec()) }
//!     fn role(&mut self, _role: MemberRole) {}
//!     fn lacks(&mut self, _at_least: u64) {}
//! }
//! # let dir = tempfile::tempdir().unwrap();
//! let files = Files::open(dir.path(), Durability::Os, 1 << 20).unwrap();
//! let mut log = Replica::open(files, &ReplicaConfig::new(0, 1)).unwrap();
//! let mut site = Site::default();
//! log.cycle(&mut site).unwrap(); // a cluster of one elects itself at once
//! log.propose(b"first").unwrap();
//! log.cycle(&mut site).unwrap();
//! assert_eq!(site.0, [b"first"]);
//! ```

mod config;
mod error;
pub mod journal;
mod log;
mod members;
pub mod memory;
mod record;
mod recover;
mod replica;
pub mod shared;
mod store;
mod wire;

pub use config::{Beginning, ReplicaConfig};
pub use error::{EntryError, JournalError, LogError, MessageError, ReplicaError};
pub use journal::{Files, Journal};
pub use log::{ClusterLog, MemberRole, Sink};
pub use members::{Incarnation, MemberId, Members};
pub use pares_log::Durability;
pub use replica::Replica;
