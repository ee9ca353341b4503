//! What a site keeps its items in, and the one way an application reads and changes them.
//!
//! A database that applies a replicated transaction as soon as it hears of it must be able to take it back: until the
//! transaction is stable (known in every live cluster, paper 3 section 3.2), a disaster may undo it, and a cluster that
//! comes back must cut its tail off. No storage engine offers that cheaply. So the store never sees an unstable
//! version: those stay in memory above it, and *only stable versions are applied, in commit order, by one writer*. A
//! store therefore holds a prefix of the commit order at every moment, a read-only transaction reads it without
//! waiting for others, and nothing in it is ever undone.
//!
//! ```text
//!   application     Work: reads, own writes, exact read set and write set
//!                     |  Reads                             |  finish() -> pares_wice::Transaction
//!   a site's view   unstable versions over a Snapshot      certified, ordered, stable
//!                     |  Reads                             |  Applied
//!   this crate      Store: redb (default), PostgreSQL, memory (the obviously right one)
//! ```
//!
//! Durability is the ordered log's: a batch is applied without waiting for the disk, together with the number of its
//! last version, and after a crash the log is replayed from [`Store::applied`]. How the engines compare is measured
//! in `docs/decisions/0011-store.md`.
//!
//! ```
//! use pares_store::{Applied, Memory, Reads, Store, Work};
//! use pares_wice::{Key, TransactionId, Value, Version};
//!
//! let store = Memory::default();
//! let rent = (Key::from("flat/1"), Some(Value::counter(100)));
//! store.apply(&[Applied { version: Version(1), writes: vec![rent] }], None).unwrap();
//!
//! let snapshot = store.snapshot().unwrap();
//! let mut work = Work::new(&*snapshot);
//! work.add(&Key::from("flat/1"), 5).unwrap();
//! let transaction = work.finish(TransactionId { client: 1, sequence: 1 }, 0, snapshot.version());
//! assert!(transaction.reads.is_empty(), "adding reads nothing");
//! ```

mod checked;
mod engine;
mod error;
mod mark;
mod memory;
#[cfg(feature = "postgres")]
pub mod postgres;
mod redb;
mod reserved;
mod row;
mod store;
mod transfer;
mod work;

pub use engine::{Changes, EngineStore, StorageEngine};
pub use error::{StoreError, WorkError};
pub use mark::Mark;
pub use memory::Memory;
pub use redb::{Redb, RedbStore};
pub use reserved::{changes_schema, is_reserved};
pub use store::{Applied, Reads, Store, StoreSnapshot, Visit};
pub use transfer::{CHUNK_BYTES, Chunk, Export, Import, item_bytes};
pub use work::Work;
