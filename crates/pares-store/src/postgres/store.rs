//! Items in a table.
//!
//! A batch is one statement, and so one transaction and one round trip: it deletes, inserts or replaces, and sets the
//! mark. It does not wait for the server's disk (`synchronous_commit = off`); a flush is a commit that does, and
//! with it the server writes everything committed before.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pares_wice::Version;
use postgres::error::SqlState;
use postgres::{Client, GenericClient, Row};

use super::snapshot::{self, Pool};
use super::{Options, failed};
use crate::engine::{Changes, Engine, EngineStore};
use crate::error::StoreError;
use crate::mark::{FORM, Mark, check_form};
use crate::store::Snapshot;

const TABLES: &str = "
    CREATE TABLE IF NOT EXISTS pares_items (key bytea PRIMARY KEY, value bytea NOT NULL);
    CREATE TABLE IF NOT EXISTS pares_applied (
        one boolean PRIMARY KEY DEFAULT true CHECK (one),
        form bigint NOT NULL, whole boolean NOT NULL, version bigint NOT NULL, meta bytea NOT NULL);
    SET synchronous_commit = off";

/// Only one writer for each schema; released when its connection ends, however it ends, which a server notices within
/// moments: so a site that is restarted waits for that.
const LOCK: &str = "
    SET lock_timeout = '1s';
    SELECT pg_advisory_lock(hashtext('pares_items'), hashtext(current_schema()));
    RESET lock_timeout";

pub(super) const READ_MARK: &str = "SELECT form, whole, version, meta FROM pares_applied";

const CHANGE: &str = "
    WITH gone AS (DELETE FROM pares_items WHERE key = ANY($3::bytea[]))
    INSERT INTO pares_items (key, value) SELECT * FROM unnest($1::bytea[], $2::bytea[])
    ON CONFLICT (key) DO UPDATE SET value = excluded.value";

/// The same, and the mark.
const CHANGE_AND_MARK: &str = "
    WITH gone AS (DELETE FROM pares_items WHERE key = ANY($3::bytea[])),
    kept AS (
        INSERT INTO pares_items (key, value) SELECT * FROM unnest($1::bytea[], $2::bytea[])
        ON CONFLICT (key) DO UPDATE SET value = excluded.value)
    INSERT INTO pares_applied (form, whole, version, meta) VALUES ($4, $5, $6, $7)
    ON CONFLICT (one) DO UPDATE
        SET form = excluded.form, whole = excluded.whole, version = excluded.version, meta = excluded.meta";

const SYNC: &str = "
    BEGIN; SET LOCAL synchronous_commit = on; UPDATE pares_applied SET version = version; COMMIT";

/// Bytes of keys and values in one statement; the server takes a gigabyte.
const STATEMENT_BYTES: usize = 64 << 20;

/// A store in a PostgreSQL database.
pub type PostgresStore = EngineStore<Postgres>;

/// The connections to one database.
pub struct Postgres {
    writer: Mutex<Client>,
    readers: Arc<Pool>,
}

impl PostgresStore {
    /// Opens the store in the database that `options` names, first making its two tables if they are missing.
    ///
    /// # Errors
    /// [`StoreError::InUse`], [`StoreError::Unfinished`], or what the server says.
    pub fn open(options: Options) -> Result<Self, StoreError> {
        let mut client = options.connect()?;
        client.batch_execute(LOCK).map_err(|error| match error.code() {
            Some(&SqlState::LOCK_NOT_AVAILABLE) => StoreError::InUse("the database".into()),
            _ => failed(error),
        })?;
        client.batch_execute(TABLES).map_err(failed)?;
        Self::over(Postgres { writer: Mutex::new(client), readers: Arc::new(Pool::new(options)) })
    }
}

impl Postgres {
    fn writer(&self) -> MutexGuard<'_, Client> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Engine for Postgres {
    fn mark(&self) -> Result<Option<Mark>, StoreError> {
        let row = self.writer().query_opt(READ_MARK, &[]).map_err(failed)?;
        row.as_ref().map(mark_of).transpose()
    }

    fn commit(&self, changes: &Changes<'_>, mark: &Mark) -> Result<(), StoreError> {
        let mut pieces = pieces(changes);
        let last = pieces.pop().expect("there is always a last piece");
        let mut client = self.writer();
        if pieces.is_empty() {
            return last.execute_with(mark, &mut *client).map_err(failed);
        }
        let mut transaction = client.transaction().map_err(failed)?;
        for piece in pieces {
            piece.execute(&mut transaction).map_err(failed)?;
        }
        last.execute_with(mark, &mut transaction).map_err(failed)?;
        transaction.commit().map_err(failed)
    }

    fn snapshot(&self) -> Result<Box<dyn Snapshot>, StoreError> {
        snapshot::open(&self.readers)
    }

    fn sync(&self) -> Result<(), StoreError> {
        self.writer().batch_execute(SYNC).map_err(failed)
    }
}

impl fmt::Debug for Postgres {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Postgres").finish_non_exhaustive()
    }
}

/// Changes that go into one statement.
#[derive(Default)]
struct Piece<'a> {
    keys: Vec<&'a [u8]>,
    values: Vec<&'a [u8]>,
    gone: Vec<&'a [u8]>,
    bytes: usize,
}

fn pieces<'a>(changes: &Changes<'a>) -> Vec<Piece<'a>> {
    let mut pieces = vec![Piece::default()];
    for (key, value) in changes {
        if pieces.last().is_some_and(|piece| piece.bytes >= STATEMENT_BYTES) {
            pieces.push(Piece::default());
        }
        let piece = pieces.last_mut().expect("never empty");
        piece.bytes += key.as_bytes().len();
        match value {
            Some(value) => {
                piece.bytes += value.as_bytes().len();
                piece.keys.push(key.as_bytes());
                piece.values.push(value.as_bytes());
            }
            None => piece.gone.push(key.as_bytes()),
        }
    }
    pieces
}

impl Piece<'_> {
    fn execute(&self, client: &mut impl GenericClient) -> Result<(), postgres::Error> {
        client.execute(CHANGE, &[&self.keys, &self.values, &self.gone]).map(drop)
    }

    fn execute_with(&self, mark: &Mark, client: &mut impl GenericClient) -> Result<(), postgres::Error> {
        let version = i64::try_from(mark.version.0).expect("fewer than 2^63 versions");
        let form = i64::from(FORM);
        client
            .execute(
                CHANGE_AND_MARK,
                &[&self.keys, &self.values, &self.gone, &form, &mark.whole, &version, &mark.meta],
            )
            .map(drop)
    }
}

pub(super) fn mark_of(row: &Row) -> Result<Mark, StoreError> {
    let (form, version): (i64, i64) = (row.get(0), row.get(2));
    check_form(u32::try_from(form).unwrap_or(u32::MAX))?;
    let version =
        u64::try_from(version).map_err(|_| StoreError::Damaged(format!("it is at version {version}")))?;
    Ok(Mark { whole: row.get(1), version: Version(version), meta: row.get(3) })
}
