//! Replication between clusters by certification (paper 3, *WICE*): rules only.

mod bytes;
pub mod codec;
pub mod entry;
pub mod ids;
pub mod index;
pub mod item;
pub mod message;
pub mod overlay;
pub mod site;
pub mod transaction;
pub mod witness;

pub use entry::{Body, Configuration, Entry, LogEntry, Past};
pub use ids::{CertifierTerm, ClusterId, ClusterSet, Era, SiteId, Term, TransactionId, Version};
pub use index::INDEX_VERSIONS_MAX;
pub use item::{Change, KEY_BYTES_MAX, Key, KeyRange, VALUE_BYTES_MAX, Value, Write};
pub use message::{AbortReason, Message, Status};
pub use site::{
    Base, Command, Effects, HeldBytes, LogRole, Notice, Outcome, Refused, Settings, Site, Snapshot, Stored,
    Unsubmitted, Wanted,
};
pub use transaction::{Isolation, Malformed, TRANSACTION_BYTES_MAX, Transaction, UnknownIsolation};
pub use witness::{Declaration, NotGranted, Register};
