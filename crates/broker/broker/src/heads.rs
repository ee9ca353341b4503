//! Heads of written logs: what each file that a log was written to hashes to, kept beside the entries that it was written from.
//!
//! A file that was changed everywhere alike adds up, so no replay of it finds the change. What it hashed to when it was written does, and is kept where who can change
//! the file cannot: in the accounts. A head is an item of its own, so that no command waits for one, and none is ever changed. Nothing is hashed here.

use pares_wice::fields;

/// Of a log's last element, behind that of the one before.
pub use crate::coded::Digest as LogDigest;
use crate::command::UserName;
use crate::ledger::{BrokerError, Executed, Found, Ledger, Shelf};
use crate::reply::BrokerReply;
use crate::rows;

/// The head of a log that was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogHead {
    /// Whose log; none: of everything.
    pub user: Option<UserName>,
    /// What it hashes to.
    pub digest: LogDigest,
    /// Elements of the file.
    pub elements: u64,
    /// When it was written, ms since 1970, by the clock of its writer: by its digest the first time, as the latest the last time.
    pub time_ms: u64,
}

fields! { LogHead { user, digest, elements, time_ms } }

/// Keeps a head, for ever; it is the latest of its user's. A log that is written again unchanged keeps the time at which it was written first.
pub(crate) fn keep<L: Ledger>(head: &LogHead, ledger: &mut L) -> Executed<BrokerReply, L> {
    let key = rows::head(&head.digest, head.user.as_ref());
    if rows::take::<LogHead, L>(ledger, &key)?.is_none() {
        rows::put(ledger, &key, head);
    }
    rows::put(ledger, &rows::latest_head(head.user.as_ref()), head);
    Ok(BrokerReply::Done)
}

/// The head with this digest: that of everything before those of users, whose logs may be all that there was.
pub(crate) fn of_digest<S: Shelf>(shelf: &S, digest: &LogDigest) -> Found<Option<LogHead>, S> {
    let items = shelf.first(&rows::heads_of(digest), 1).map_err(BrokerError::Items)?;
    items.first().map(|(_, value)| rows::row(value)).transpose()
}

/// The head of a user's log, or of that of everything, that was kept last.
pub(crate) fn latest<S: Shelf>(shelf: &S, user: Option<&UserName>) -> Found<Option<LogHead>, S> {
    rows::one(shelf, &rows::latest_head(user))
}
