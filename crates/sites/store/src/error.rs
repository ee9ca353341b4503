//! What can go wrong, and what to do about it.

use pares_wice::{Key, Version};
use thiserror::Error;

/// Why a store did not do what it was asked.
#[derive(Debug, Error)]
pub enum StoreError {
    /// Versions were skipped or repeated: an error of the caller. Nothing of the batch was applied.
    #[error(
        "version {got} cannot follow version {applied}; nothing was applied: replay the log from the version after {applied}"
    )]
    Order {
        /// The last version in the store.
        applied: Version,
        /// The first that did not follow its predecessor.
        got: Version,
    },
    /// What is on the disk cannot be what was written there.
    #[error(
        "the store is damaged ({0}) and no longer used: move the whole directory of this site away; other \
         sites will refill it (docs/operations/sites.md)"
    )]
    Damaged(String),
    /// A state transfer into the store has begun and not ended.
    #[error(
        "the store holds an unfinished state transfer: finish it, or, if its process has ended, remove the \
         directory (or drop the tables) and let the site rejoin its cluster"
    )]
    Unfinished,
    /// A second writer.
    #[error("{0} is in use by another process: stop it, or give this site its own directory")]
    InUse(String),
    /// The database is another site's, or of another system.
    #[error(
        "the database contains the items of {0} and was not changed: drop it if it is obsolete, or name another one (`store` in sites.toml)"
    )]
    Owned(String),
    /// Written in a form that this release does not know.
    #[error(
        "the store has format {found}, but this release reads format {known}: start the release that wrote \
         it, or replace the store like a damaged one (docs/operations/sites.md)"
    )]
    Form {
        /// The form found.
        found: u32,
        /// The form that is known.
        known: u32,
    },
    /// The disk or the server refused. A write that failed is not retried: the store takes no more until it is opened again.
    #[error(
        "the store cannot be read or written ({0}): repair the disk or the server, then restart the site"
    )]
    Io(String),
    /// It leads to no server.
    #[error(
        "the address of the store's server is wrong ({0}): name the server in `store` of sites.toml, as in postgres://HOST/NAME or postgres:///NAME?host=/run/postgresql"
    )]
    Address(String),
    /// An earlier write failed.
    #[error(
        "an earlier write to the store failed: restart the site, which replays its log from the last stored version"
    )]
    Failed,
    /// State may be transferred only into a store that never held anything.
    #[error(
        "the store already holds version {0}: remove its directory first, because a state transfer needs an empty store"
    )]
    NotEmpty(Version),
    /// A piece of a state transfer is not the one expected. Nothing of it was kept.
    #[error(
        "piece {got} of the state transfer arrived instead of piece {expected}: restart the transfer with an empty store"
    )]
    Chunk {
        /// The number expected.
        expected: u32,
        /// The number that came.
        got: u32,
    },
    /// A table of an application's cannot be replicated as it is.
    #[error("table {name} cannot be replicated: {why}")]
    Table {
        /// Its name.
        name: String,
        /// Why, and what to do.
        why: String,
    },
    /// A change of the schema that passed at its site of origin fails here.
    #[error(
        "the ordered schema change `{statement}` fails here ({why}): drop the conflicting object, which \
         exists only in this site's database, or start the site with an empty database"
    )]
    Schema {
        /// The statement.
        statement: String,
        /// What the server says.
        why: String,
    },
    /// Too many snapshots at once, for an engine that can hold only so many.
    #[error("{0} snapshots are open, the store's limit: close one, or raise the limit")]
    Busy(usize),
}

/// Why a transaction's step cannot be done. The transaction is as it was before.
#[derive(Debug, Error)]
pub enum WorkError {
    /// Reading failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Something was to be added to an item whose value is not a number.
    #[error("item {0:?} is not a counter: put it as one (Value::counter) before adding to it")]
    NotACounter(Key),
    /// A sum has no representation.
    #[error(
        "the sum in item {0:?} exceeds what a counter or one transaction's addition holds: add less at a time"
    )]
    Overflow(Key),
}
