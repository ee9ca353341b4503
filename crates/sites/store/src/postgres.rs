//! PostgreSQL as a site's store, and a way for applications that speak SQL to participate.
//!
//! | module | what |
//! |---|---|
//! | `store` | items in one table, applied by one writer: a [`crate::Store`] like the others |
//! | `snapshot` | snapshots: repeatable read transactions, each on a connection of its own |
//! | `session` | SQL statements run, captured and taken back: a transaction to be certified |
//! | `capture` | what a transaction did to tables, as changes of items |
//! | `notes` | which rows a transaction has touched |
//! | `rehearsal` | rows written once before they are certified, as the writer will |
//! | `sessions` | who is in the writer's way |
//! | `schema` | changes of tables, carried out at every site at one version |
//! | `tables` | rows of tables as items, items as rows |
//! | `faults` | what no change of the schema may bring |
//! | `lexer` | where statements begin and end, and their words |
//! | `texts` | values that an item keeps as texts |
//! | `times` | times that would be others at each site |
//! | `turns` | who goes first: a change of the schema that has lost often |
//! | `deltas` | columns that change by addition |
//! | `databases` | databases made and emptied |
//! | `idle` | the writer's connection: what it needs, and another where it ended while nothing was written |
//! | `watch` | whether the server answers |
//!
//! An application's tables are a picture that the store keeps of some of its items: what [`capture`] made of a row is
//! an item like any other, is read and transferred as one, and is written to its table by the batch that applies it.
//!
//! ```no_run
//! use pares_store::postgres::{Options, PostgresStore, Session, capture};
//! use pares_wice::TransactionId;
//!
//! let options = Options::new("host=/run/postgresql user=bank dbname=bank");
//! capture(&options, &["account"])?; // once
//! let store = PostgresStore::open(options.clone())?; // where certified versions are applied
//!
//! let mut session = Session::connect(options)?;
//! let mut work = session.begin()?;
//! work.execute("UPDATE account SET balance = balance - 5 WHERE number = $1", &[&7i64])?;
//! let transaction = work.finish(TransactionId { client: 1, sequence: 1 }, 0)?; // to be submitted
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Connections are not encrypted: the server belongs to the site and is reached by a socket in its file system, or
//! by a network that is trusted.

mod capture;
mod databases;
mod deltas;
mod faults;
mod idle;
mod lexer;
mod notes;
mod rehearsal;
mod schema;
mod session;
mod sessions;
mod snapshot;
mod store;
mod tables;
mod texts;
mod times;
mod turns;
mod watch;

use std::error::Error as _;
use std::time::Duration;

use postgres::error::SqlState;
use postgres::{Client, Config, NoTls};

use crate::error::StoreError;

pub use capture::{BACK, CHECK, Captured, FIRST, FORM, Image, Writes, capture, table_item};
pub use databases::{claimed, clear, provide};
pub use lexer::{SqlStatement, SqlToken, split};
pub use notes::CAPTURED;
pub use rehearsal::rehearsal;
pub use schema::{Schema, SchemaChange};
pub use session::{Session, SqlWork};
pub use sessions::{Preemptible, Sessions, Way};
pub use store::{Postgres, PostgresStore};
pub use watch::Watch;

/// Snapshots that may be open at once, unless told otherwise.
const SNAPSHOTS_MAX: usize = 16;

/// A server that does not answer for so long is away, unless its URL sets another time (`connect_timeout`).
const CONNECT_PATIENCE: Duration = Duration::from_secs(10);

/// Where the server is, and how much of it may be used.
#[derive(Clone, Debug)]
pub struct Options {
    /// As libpq writes it: `host=/run/postgresql user=pares dbname=pares`.
    pub connection: String,
    /// Snapshots that may be open at once; each holds a connection.
    pub snapshots_max: usize,
    /// Who gives way to the writer.
    pub sessions: Sessions,
    /// Whose database it is: one that is another's is not touched. Without it nobody is asked.
    pub owner: Option<String>,
    /// SQL that is run whenever the store has looked after its own tables: views of its items, say. It must do no harm when it is run again.
    pub views: &'static str,
}

impl Options {
    /// The server that `connection` names, with defaults.
    #[must_use]
    pub fn new(connection: impl Into<String>) -> Self {
        let (snapshots_max, sessions) = (SNAPSHOTS_MAX, Sessions::default());
        Self { connection: connection.into(), snapshots_max, sessions, owner: None, views: "" }
    }

    /// The same server; the database is that of `owner`.
    #[must_use]
    pub fn owned_by(self, owner: impl ToString) -> Self {
        Self { owner: Some(owner.to_string()), ..self }
    }

    /// The same server; who reads the database finds these views there too.
    #[must_use]
    pub fn with_views(self, views: &'static str) -> Self {
        Self { views, ..self }
    }

    /// The schema that the store's own tables are in, quoted.
    ///
    /// # Errors
    /// What the server says.
    pub fn home(&self) -> Result<String, StoreError> {
        let row = self.connect()?.query_one("SELECT quote_ident(current_schema())", &[]).map_err(failed)?;
        Ok(row.get(0))
    }

    fn connect(&self) -> Result<Client, StoreError> {
        self.config()?.connect(NoTls).map_err(failed)
    }

    /// As the client library reads it.
    ///
    /// # Errors
    /// If it is no address of a server.
    pub fn config(&self) -> Result<Config, StoreError> {
        let wrong = |error: postgres::Error| StoreError::Address(with_cause(&error));
        let mut config: Config = self.connection.parse().map_err(wrong)?;
        if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
            return Err(StoreError::Address("it has no host".into()));
        }
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT_PATIENCE);
        }
        Ok(config)
    }
}

fn failed(error: postgres::Error) -> StoreError {
    let damaged = [SqlState::DATA_CORRUPTED, SqlState::INDEX_CORRUPTED];
    match error.as_db_error() {
        Some(reason) if damaged.contains(reason.code()) => StoreError::Damaged(reason.to_string()),
        Some(reason) => StoreError::Io(format!("PostgreSQL: {reason}")),
        None => StoreError::Io(format!("PostgreSQL: {}", with_cause(&error))),
    }
}

/// What the client library says, and what the operating system said to it.
fn with_cause(error: &postgres::Error) -> String {
    match error.source() {
        Some(cause) if !error.to_string().contains(&cause.to_string()) => format!("{error}: {cause}"),
        _ => error.to_string(),
    }
}

/// Why a step of an application's transaction failed. The transaction is at its end: drop it.
#[derive(Debug, thiserror::Error)]
pub enum SqlError {
    /// Another changed the same, or needed it sooner.
    #[error("a concurrent transaction came first ({0}): run this one again from its beginning")]
    Again(String),
    /// The statement is wrong, or a constraint refused it.
    #[error("{why}")]
    Refused {
        /// SQLSTATE.
        code: String,
        /// What the server says.
        why: String,
        /// More of it; may be empty.
        detail: String,
        /// What to do; may be empty.
        hint: String,
    },
    /// The server failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl SqlError {
    fn refused(code: &str, why: impl ToString) -> Self {
        let (detail, hint) = (String::new(), String::new());
        Self::Refused { code: code.to_owned(), why: why.to_string(), detail, hint }
    }
}

/// What a failed statement means to the application.
fn sql(error: postgres::Error) -> SqlError {
    let again = [
        SqlState::T_R_SERIALIZATION_FAILURE,
        SqlState::T_R_DEADLOCK_DETECTED,
        SqlState::LOCK_NOT_AVAILABLE,
        SqlState::ADMIN_SHUTDOWN,
    ];
    match error.as_db_error() {
        Some(reason) if again.contains(reason.code()) => SqlError::Again(reason.message().into()),
        Some(reason) if reason.severity() == "ERROR" => SqlError::Refused {
            code: reason.code().code().to_owned(),
            why: reason.message().to_owned(),
            detail: reason.detail().unwrap_or_default().to_owned(),
            hint: reason.hint().unwrap_or_default().to_owned(),
        },
        // The writer ended the session; if it is the server that ended, the next attempt says so.
        _ if error.is_closed() || error.source().is_some_and(|cause| cause.is::<std::io::Error>()) => {
            SqlError::Again("the connection was ended".into())
        }
        None => SqlError::refused(SqlState::INTERNAL_ERROR.code(), error),
        Some(_) => SqlError::Store(failed(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_that_leads_to_no_server_is_called_wrong() {
        for address in ["postgres:///bank", "dbname=bank", "hots=db", "postgres://db:x/bank"] {
            let why = Options::new(address).config().unwrap_err();
            assert!(matches!(why, StoreError::Address(_)), "{address}: {why}");
        }
        for address in ["postgres://db/bank", "postgres:///bank?host=/run/postgresql", "hostaddr=127.0.0.1"] {
            assert!(Options::new(address).config().is_ok(), "{address}");
        }
    }
}
