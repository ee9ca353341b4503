//! Items in a table.
//!
//! A batch is one statement, and so one transaction and one round trip: it deletes, inserts or replaces, and sets the
//! mark. It does not wait for the server's disk (`synchronous_commit = off`); a flush is a commit that does, and
//! with it the server writes everything committed before.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use postgres::{Client, GenericClient};

use super::Options;
use super::deltas::write_sums;
use super::idle::Idle;
use super::schema;
use super::sessions::{Sessions, TRIES, Wanted, is_held};
use super::snapshot::{self, Pool, READ_MARK, mark_of};
use super::tables::{Failure, Table, has_rows, write_rows};
use crate::engine::{Changes, EngineStore, StorageEngine};
use crate::error::StoreError;
use crate::mark::{FORM, Mark};
use crate::store::StoreSnapshot;

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

/// One text is one transaction.
const SYNC: &str = "SET LOCAL synchronous_commit = on; UPDATE pares_applied SET version = version";

/// How often it asks politely.
const POLITE_TRIES: usize = 100;

/// Bytes of keys and values in one statement; the server takes a gigabyte.
const STATEMENT_BYTES: usize = 64 << 20;

/// A store in a PostgreSQL database.
pub type PostgresStore = EngineStore<Postgres>;

struct Writer {
    client: Client,
    /// What the catalogue says of the tables that rows were written to.
    tables: BTreeMap<String, Table>,
    sessions: Sessions,
    idle: Idle,
}

/// The connections to one database.
pub struct Postgres {
    writer: Mutex<Writer>,
    readers: Arc<Pool>,
}

impl PostgresStore {
    /// Opens the store in the database that `options` names, first making its two tables if they are missing.
    ///
    /// # Errors
    /// [`StoreError::InUse`], [`StoreError::Unfinished`], or what the server says.
    pub fn open(options: Options) -> Result<Self, StoreError> {
        let (sessions, (client, idle)) = (options.sessions.clone(), Idle::begin(options.clone())?);
        let writer = Mutex::new(Writer { client, tables: BTreeMap::new(), sessions, idle });
        Self::over(Postgres { writer, readers: Arc::new(Pool::new(options)) })
    }
}

impl Postgres {
    fn writer(&self) -> MutexGuard<'_, Writer> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Writer {
    /// Repeats a step while sessions are in its way, and has them give way.
    fn insist<T>(
        &mut self,
        wanted: Wanted,
        mut step: impl FnMut(&mut Self) -> Result<T, Failure>,
    ) -> Result<T, StoreError> {
        let mut held = Vec::new();
        if let Some(client) = self.idle.instead_of(&mut self.client)? {
            (self.client, self.tables) = (client, BTreeMap::new());
        }
        for tries in 0..TRIES {
            match step(self) {
                Ok(done) => return Ok(done),
                Err(Failure::Store(error)) => return Err(error),
                Err(Failure::Locked) => {
                    held = self.sessions.clear(&mut self.client, wanted, tries < POLITE_TRIES)?;
                }
            }
        }
        Err(is_held(&held))
    }

    /// Carries out statements that come together, and before rows: each alone, since what one has made the next may use only when that is committed
    /// (values of an enum). Those that are done are not done again.
    fn carry_out_apart(&mut self, changes: &Changes<'_>) -> Result<(), StoreError> {
        for statement in schema::statements(changes)? {
            self.insist(Wanted::Schema, |writer| {
                let mut transaction = writer.client.transaction()?;
                schema::carry_out(&statement, &mut transaction)?;
                Ok(transaction.commit()?)
            })?;
            self.tables.clear();
        }
        Ok(())
    }

    fn try_commit(
        &mut self,
        pieces: &[Piece<'_>],
        changes: &Changes<'_>,
        mark: &Mark,
    ) -> Result<(), Failure> {
        let statements = schema::statements(changes)?;
        if let [only] = pieces
            && statements.is_empty()
            && !has_rows(changes)
        {
            only.execute_with(mark, &mut self.client)?;
            self.idle.leave(mark);
            return Ok(());
        }
        let mut transaction = self.client.transaction()?;
        for statement in &statements {
            schema::carry_out(statement, &mut transaction)?;
            self.tables.clear();
        }
        if has_rows(changes) {
            write_rows(changes, &mut self.tables, &mut transaction)?;
        }
        let (last, others) = pieces.split_last().expect("there is always a piece");
        for piece in others {
            piece.execute(&mut transaction)?;
        }
        last.execute_with(mark, &mut transaction)?;
        write_sums(changes, &mut self.tables, &mut transaction)?;
        transaction.commit()?;
        self.idle.leave(mark);
        Ok(())
    }
}

impl StorageEngine for Postgres {
    fn mark(&self) -> Result<Option<Mark>, StoreError> {
        let row =
            self.writer().insist(Wanted::Rows, |writer| Ok(writer.client.query_opt(READ_MARK, &[])?))?;
        row.as_ref().map(mark_of).transpose()
    }

    fn commit(&self, changes: &Changes<'_>, mark: &Mark) -> Result<(), StoreError> {
        let (pieces, statements) = (pieces(changes), schema::statements(changes)?.len());
        let mut writer = self.writer();
        // Only what a state transfer brings has several, or rows beside.
        if statements > 1 || statements == 1 && has_rows(changes) {
            writer.carry_out_apart(changes)?;
        }
        let wanted = if statements > 0 { Wanted::Schema } else { Wanted::Rows };
        writer.insist(wanted, |writer| writer.try_commit(&pieces, changes, mark))
    }

    fn snapshot(&self) -> Result<Box<dyn StoreSnapshot>, StoreError> {
        snapshot::open(&self.readers)
    }

    fn sync(&self) -> Result<(), StoreError> {
        self.writer().insist(Wanted::Rows, |writer| Ok(writer.client.batch_execute(SYNC)?))
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
                piece.bytes += value.encoded().len();
                piece.keys.push(key.as_bytes());
                piece.values.push(value.encoded());
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
