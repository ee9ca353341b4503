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
        "the store is damaged ({0}), and nothing is read from it any more: move the whole directory of this site \
         elsewhere, and it is filled anew by the sites that have the same (docs/operations.md, Sites)"
    )]
    Damaged(String),
    /// A state transfer into the store has begun and not ended.
    #[error(
        "a state transfer into the store was not finished: finish it, or, if that process is gone, remove the \
         directory (or drop the tables) and let the site rejoin its cluster"
    )]
    Unfinished,
    /// A second writer.
    #[error("{0} is in use by another process: stop that process, or give this site a directory of its own")]
    InUse(String),
    /// The database is another site's, or of another system.
    #[error(
        "the database holds the items of {0}, and nothing in it was changed: drop it if nobody needs it any more, or name another (`store` in sites.toml)"
    )]
    Owned(String),
    /// Written in a form that this release does not know.
    #[error(
        "the store has form {found}, this release reads form {known}: start the release that wrote it, or replace \
         the store like a damaged one (docs/operations.md, Sites)"
    )]
    Form {
        /// The form found.
        found: u32,
        /// The form that is known.
        known: u32,
    },
    /// The disk or the server refused. A write that failed is not retried: the store takes no more until it is opened anew.
    #[error(
        "the store cannot be read or written ({0}): see to the disk or the server, then restart the site"
    )]
    Io(String),
    /// An earlier write failed.
    #[error(
        "an earlier write to the store failed: restart the site, which replays its log from what is kept"
    )]
    Failed,
    /// State may be transferred only into a store that never held anything.
    #[error(
        "the store holds version {0} already: a state transfer needs an empty store, so remove the directory first"
    )]
    NotEmpty(Version),
    /// A piece of a state transfer is not the one expected. Nothing of it was kept.
    #[error(
        "piece {got} of the state transfer came where piece {expected} of the same snapshot was expected: begin the transfer anew in an empty store"
    )]
    Chunk {
        /// The number expected.
        expected: u32,
        /// The number that came.
        got: u32,
    },
    /// A table of an application's cannot be replicated as it is.
    #[error("table {name} cannot take part: {why}")]
    Table {
        /// Its name.
        name: String,
        /// Why, and what to do.
        why: String,
    },
    /// A change of the schema that passed at its site of origin fails here.
    #[error(
        "the change of the schema `{statement}` was ordered and cannot be carried out here ({why}): remove from this site's database \
         what stands in its way, or let the site begin with an empty one"
    )]
    Schema {
        /// The statement.
        statement: String,
        /// What the server says.
        why: String,
    },
    /// Too many snapshots at once, for an engine that can hold only so many.
    #[error("{0} snapshots are open, which is the most this store allows: end one, or allow more")]
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
