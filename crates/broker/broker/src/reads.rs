//! What can be read, as bytes.

use pares_wice::codec::Coded;
use pares_wice::{Key, fields, kinds};

use crate::audit::AuditRecord;
use crate::command::UserName;
use crate::heads::{self, LogDigest};
use crate::ledger::{Found, Shelf};
use crate::names::CommandName;
use crate::orders::{self, OrderRead};
use crate::pages::{armed_page, audit_page, lapsing_page, newest_page};
use crate::people::{self, PersonRead};
use crate::reply::BrokerReply;
use crate::request::{Asked, Named};
use crate::rows;
use crate::summary::summary;

/// What can be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BrokerRead {
    /// What a user has: an [`AccountSummary`](crate::AccountSummary), if there is an account.
    Summary {
        /// Whose.
        user: UserName,
    },
    /// A page of the log: an [`AuditPage`](crate::AuditPage).
    Log {
        /// Whose; without one, all of it, user by user.
        user: Option<UserName>,
        /// Where the page begins: what the page before said, or at the beginning.
        from: Option<Key>,
    },
    /// Armed triggers of all users: an [`ArmedPage`](crate::ArmedPage).
    Armed {
        /// As of a page of the log.
        from: Option<Key>,
    },
    /// Stacks of all users in which something is pending: a [`LapsingPage`](crate::LapsingPage).
    Lapsing {
        /// As of a page of the log.
        from: Option<Key>,
    },
    /// The newest entries of a user's log, the newest first: an [`AuditPage`](crate::AuditPage) that names no next.
    Newest {
        /// Whose.
        user: UserName,
        /// Before which place; without one, the newest of all.
        before: Option<u64>,
    },
    /// What was executed under a name: a [`NamedCommand`], if something was.
    Named {
        /// Whose.
        user: UserName,
        /// Its sender's name for it.
        name: CommandName,
    },
    /// The head of a written log that hashes to this: a [`LogHead`](crate::LogHead), if there is one.
    Head {
        /// What the log hashes to.
        digest: LogDigest,
    },
    /// The head of the log that was written last: the same.
    LatestHead {
        /// Whose; without one, of everything.
        user: Option<UserName>,
    },
    /// Of orders on the exchange.
    Order {
        /// What.
        read: OrderRead,
    },
    /// Something about people.
    Person {
        /// What.
        read: PersonRead,
    },
}

kinds!(BrokerRead, "read" {
    1 => Summary { user },
    2 => Log { user, from },
    3 => Armed { from },
    4 => Lapsing { from },
    5 => Newest { user, before },
    6 => Named { user, name },
    7 => Head { digest },
    8 => LatestHead { user },
    20 => Order { read },
    10 => Person { read },
});

/// Answers a read, in bytes.
///
/// # Errors
/// If the items cannot be read, or are damaged.
pub fn answer<S: Shelf>(read: &BrokerRead, shelf: &S) -> Found<Vec<u8>, S> {
    match read {
        BrokerRead::Summary { user } => summary(shelf, user).map(|found| found.to_bytes()),
        BrokerRead::Log { user, from } => {
            audit_page(shelf, user.as_ref(), from.as_ref()).map(|page| page.to_bytes())
        }
        BrokerRead::Armed { from } => armed_page(shelf, from.as_ref()).map(|page| page.to_bytes()),
        BrokerRead::Lapsing { from } => lapsing_page(shelf, from.as_ref()).map(|page| page.to_bytes()),
        BrokerRead::Order { read } => orders::answer(read, shelf),
        BrokerRead::Newest { user, before } => newest_page(shelf, user, *before).map(|page| page.to_bytes()),
        BrokerRead::Named { user, name } => named(shelf, user, name).map(|found| found.to_bytes()),
        BrokerRead::Head { digest } => heads::of_digest(shelf, digest).map(|head| head.to_bytes()),
        BrokerRead::LatestHead { user } => heads::latest(shelf, user.as_ref()).map(|head| head.to_bytes()),
        BrokerRead::Person { read } => people::answer(read, shelf),
    }
}

/// What was executed under a name. The same again is answered with this, and anything else is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedCommand {
    /// What was asked.
    pub asked: Asked,
    /// What it came to.
    pub reply: BrokerReply,
}

fields! {
    NamedCommand { asked, reply }
}

fn named<S: Shelf>(shelf: &S, user: &UserName, name: &CommandName) -> Found<Option<NamedCommand>, S> {
    let Some(Named { place, asked }) = rows::one(shelf, &rows::named(user.as_str(), name))? else {
        return Ok(None);
    };
    let first: Option<AuditRecord> = rows::one(shelf, &rows::audit(user.as_str(), place))?;
    Ok(Some(NamedCommand { asked, reply: first.map_or(BrokerReply::Repeated, |first| first.reply) }))
}
