//! A site of a replicated database, as a process.
//!
//! The rules of replication (`pares-wice`) say what to do, and do nothing. Here they are given a cluster log (`pares-cluster`), connections
//! (`pares-link`), a store (`pares-store`) and an application, in one duty cycle without locks: poll, hand in, execute, hand out.
//!
//! ```text
//!  clients ==frames==> requests --execute on a snapshot--> Site (rules) --propose--> Replica (Raft, on disk)
//!                         ^  \--read--> readers (threads)    |  ^                        |
//!                         |                                   |  +------ committed -------+
//!                      replies <-------- outcomes ------------+--> other sites (messages, mutual TLS)
//!                                                             \--> applier thread --> store
//! ```
//! An [`Application`] is a function: bytes of a request in, reads and writes through [`Work`](pares_store::Work), bytes of a reply out. So it can be
//! executed again when it lost against a concurrent transaction, and elsewhere: after the first time it is sent to the certifier's
//! site, which executes it on what it has just certified, and does not lose. Clients see neither.
//!
//! | module | what |
//! |---|---|
//! | [`config`] | `sites.toml`: who there is, and where |
//! | [`application`] | what a site executes |
//! | [`items`] | the application of `pares site`: items by name, transfers, counters |
//! | [`protocol`] | frames between clients and sites, and between sites |
//! | [`rights`] | what a client may ask, by what its certificate calls it |
//! | [`client`] | a client: any site, exactly once |
//! | [`interactive`] | transactions of programs: read, decide, write |
//! | `steps` | requests to items that carry any value |
//! | [`access`] | where sites accept clients, and what those show there |
//! | [`world`] | what the duty cycle touches, so that the simulator runs it too |
//! | [`setup`] | what it receives when it begins |
//! | [`backup`] | copies of a running database, its versions since, and another database made of them |
//! | [`place`] | what a site's directory says of itself, and how one without a past gets one |
//! | [`witness`] | a third place, without which no cluster is declared lost |
//! | `node` | a site, whether it participates or not |
//! | `cycle` | the duty cycle of one that does |
//! | `directory` | notes as files |
//! | `counters` | figures as a mapped file |
//! | `process` | the duty cycle on a directory, sockets and a thread |
//! | `requests` | requests from arrival to reply |
//! | `view` | versions in memory over the store |
//! | `applier` | the task that writes the store |
//! | `reads` | reading beside the duty cycle |
//! | `checkpoint` | where the log begins |
//! | `digest` | the running digest of what was applied |
//! | `comparison` | whether other sites have applied the same |
//! | `moments` | when versions were stored |
//! | `judging` | what follows from what all sites say of themselves |
//!
//! Invariants that it asserts:
//!
//! - The store is given versions without a gap, holds nothing that was not given to it, and only moves on.
//! - The log is handed out behind the last base; bases follow each other along it, and are read as they were written.
//! - Requests and reads, and their bytes, are counted once among all and once for who asked.
//! - A version, and a number, is that of one transaction; what is remembered of a request was done or refused.
//! - A read is done on the version that it must see, or a later one.
//! - Pieces of a copy are numbered as they are sent, and nothing follows its last items; one copy is taken at a time.
//! - A site without a place takes no part.
//! - Backups keep versions without a gap, in the order of their names, and what was taken of them is written.
//! - What a client has seen, what a witness has granted and what is durable only grows; a grant is written before it is answered.
//! - A cluster that returns promises the era of its return; a log begins with this life of the disk among its members.
//! - Pieces, versions and items fit into the frames and records that carry them.

pub mod access;
pub mod application;
pub mod backup;
pub mod client;
pub mod config;
pub mod items;
pub mod protocol;
pub mod rights;
pub mod setup;
pub mod witness;
pub mod world;

mod applier;
mod checkpoint;
mod comparison;
mod counters;
mod cycle;
mod digest;
mod directory;
mod error;
mod inbox;
pub mod interactive;
mod judging;
mod moments;
mod node;
pub mod place;
mod process;
mod reads;
mod report;
mod requests;
mod steps;
#[cfg(test)]
mod testing;
mod turned_away;
mod view;

pub use access::Access;
pub use application::{Application, ApplicationError};
pub use applier::StoreWriter;
pub use client::{CallError, Client};
pub use config::{ConfigError, SitesConfig};
pub use counters::site_figures;
pub use directory::NotesDirectory;
pub use error::ProcessError;
pub use interactive::{ClientTransaction, TransactionError};
pub use judging::{NoSurvivor, has_begun_everywhere, renewed, who_goes_on};
pub use node::SiteNode;
pub use place::loading::{Emptying, StoreLoader};
pub use process::{Host, Process, Thread};
pub use reads::StoreReader;
pub use report::{HeldMemory, LinkFigures, SiteReport, ToldNo, Worked};
pub use requests::{Answer, Answered};
pub use rights::Rights;
pub use view::View;
pub use witness::{Witness, WitnessProcess, WitnessReport};
