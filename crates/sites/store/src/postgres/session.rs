//! SQL for applications that already speak it: run, look at what was written, take it all back, and certify that.
//!
//! Certifying a transaction that has committed is too late, and one that waits prepared for the far side of the world
//! holds its locks meanwhile (spec: option b). So a session executes in a transaction at repeatable read on what
//! is stable here, reads the rows it has changed, and *rolls back*: locks are held for as long as the application takes and
//! no longer. What comes out is a [`Transaction`] like any other; it is certified, and applied everywhere, here too, in
//! the commit order, by [`super::PostgresStore`] (paper 3, section 2.1, deferred update).
//!
//! Triggers note which rows a statement has touched: only their primary keys, in a variable of the transaction. How the
//! rows *are* is read once at the end, and how they *were* after going back to the beginning, so that it does not matter
//! in which order triggers, cascades and repeated changes came about.
//!
//! PostgreSQL says nothing of what was read, so such transactions are certified by their writes
//! ([`pares_wice::Isolation::Snapshot`]) and a session's `reads` are empty.

use std::collections::BTreeMap;
use std::error::Error as _;

use pares_wice::{Change, Key, Transaction, TransactionId, Value, Version, Write};
use postgres::error::SqlState;
use postgres::types::ToSql;
use postgres::{Client, Row, Statement};

use super::store::READ_MARK;
use super::tables::{REFERENCE, ROW, Table, UNIQUE, item, object};
use super::{Options, failed, store};
use crate::error::StoreError;

/// How sessions call themselves, so that the writer finds those that stand in its way.
pub(super) const APPLICATION: &str = "pares session";

const BEGIN: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ";
/// What triggers noted: lines, each with a table and primary keys; and the tables' names.
const CAPTURED: &str = "
    SELECT captured, ARRAY(SELECT DISTINCT line::jsonb ->> 'table' FROM string_to_table(captured, E'\n') line ORDER BY 1)
    FROM nullif(current_setting('pares.captured', true), '') captured";

/// A connection on which an application runs SQL.
pub struct Session {
    options: Options,
    client: Client,
    captured: Statement,
    tables: BTreeMap<String, Captured>,
}

/// A table, and how to ask for its rows.
#[derive(Clone)]
struct Captured {
    table: Table,
    images: Statement,
}

/// A transaction of a session. Dropped, it is rolled back.
pub struct SqlWork<'a> {
    session: &'a mut Session,
    version: Version,
    ended: bool,
}

/// Why a step of an application's transaction failed. The transaction is at its end: drop it.
#[derive(Debug, thiserror::Error)]
pub enum SqlError {
    /// Somebody else changed the same, or needed it sooner.
    #[error("another transaction came first ({0}): run this one again from its beginning")]
    Again(String),
    /// The statement is wrong, or a constraint refused it.
    #[error("{0}")]
    Refused(String),
    /// The server failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Makes tables take part: from now on sessions capture what is written to them. Every site's tables must be the same;
/// they begin empty, and are filled through sessions or by a state transfer. Sites write these tables through sessions
/// and by nothing else.
///
/// # Errors
/// [`StoreError::Table`] if a table cannot take part, and why.
pub fn capture(options: &Options, tables: &[&str]) -> Result<(), StoreError> {
    let mut client = options.connect()?;
    let mut transaction = client.transaction().map_err(failed)?;
    transaction.batch_execute(store::TABLES).map_err(failed)?;
    for name in tables {
        let table = Table::read(&mut transaction, name)?;
        let known: bool = transaction
            .query_one("SELECT EXISTS (SELECT FROM pares_tables WHERE name = $1)", &[&table.name])
            .map_err(failed)?
            .get(0);
        let filled = format!("SELECT EXISTS (SELECT FROM {})", table.name);
        if !known && transaction.query_one(&filled, &[]).map_err(failed)?.get(0) {
            let why = "it has rows already: begin with an empty table and insert them through a session";
            return Err(StoreError::Table { name: table.name, why: why.into() });
        }
        transaction.batch_execute(&triggers(&table)).map_err(failed)?;
        let add = "INSERT INTO pares_tables (name) VALUES ($1) ON CONFLICT DO NOTHING";
        transaction.execute(add, &[&table.name]).map_err(failed)?;
    }
    transaction.commit().map_err(failed)
}

/// Statement triggers, so that a statement costs one call whether it touches a row or a million.
fn triggers(table: &Table) -> String {
    let name = &table.name;
    let literal = name.replace('\'', "''");
    let keys = table.key_of("r");
    // One function for each table; its name need only be its own.
    let function = format!("pares_captures_{}", name.replace(|c: char| !c.is_ascii_alphanumeric(), "_"));
    format!(
        "CREATE OR REPLACE FUNCTION {function}() RETURNS trigger LANGUAGE plpgsql AS $pares$
        DECLARE keys jsonb := '[]'; more jsonb;
        BEGIN
            IF TG_OP = 'TRUNCATE' THEN RAISE EXCEPTION 'TRUNCATE is not captured: use DELETE'; END IF;
            IF TG_OP <> 'INSERT' THEN
                SELECT jsonb_agg({keys}) INTO more FROM old_rows r; keys := coalesce(more, '[]');
            END IF;
            IF TG_OP <> 'DELETE' THEN
                SELECT jsonb_agg({keys}) INTO more FROM new_rows r; keys := keys || coalesce(more, '[]');
            END IF;
            PERFORM set_config('pares.captured', concat_ws(E'\\n', nullif(current_setting('pares.captured', true), ''),
                jsonb_build_object('table', '{literal}', 'keys', keys)::text), true);
            RETURN NULL;
        END $pares$;
        CREATE OR REPLACE TRIGGER pares_insert AFTER INSERT ON {name}
            REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION {function}();
        CREATE OR REPLACE TRIGGER pares_update AFTER UPDATE ON {name}
            REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION {function}();
        CREATE OR REPLACE TRIGGER pares_delete AFTER DELETE ON {name}
            REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION {function}();
        CREATE OR REPLACE TRIGGER pares_truncate BEFORE TRUNCATE ON {name}
            FOR EACH STATEMENT EXECUTE FUNCTION {function}()"
    )
}

impl Session {
    /// Connects to the site's server.
    ///
    /// # Errors
    /// What the server says.
    pub fn connect(options: Options) -> Result<Self, StoreError> {
        let (client, captured) = connect(&options)?;
        Ok(Self { options, client, captured, tables: BTreeMap::new() })
    }

    /// Begins a transaction on the last version applied here.
    ///
    /// # Errors
    /// What the server says.
    pub fn begin(&mut self) -> Result<SqlWork<'_>, StoreError> {
        if self.client.is_closed() {
            *self = Self::connect(self.options.clone())?;
        }
        self.client.batch_execute(BEGIN).map_err(failed)?;
        let mut work = SqlWork { session: self, version: Version(0), ended: false };
        let row = work.session.client.query_one(READ_MARK, &[]).map_err(failed)?;
        work.version = store::mark_of(&row)?.version;
        work.session.client.batch_execute("SAVEPOINT pares").map_err(failed)?;
        Ok(work)
    }

    fn table(&mut self, name: &str) -> Result<Captured, SqlError> {
        if let Some(known) = self.tables.get(name) {
            return Ok(known.clone());
        }
        let table = Table::read(&mut self.client, name)?;
        let images = self.client.prepare(&images(&table)).map_err(sql)?;
        let captured = Captured { table, images };
        self.tables.insert(name.to_owned(), captured.clone());
        Ok(captured)
    }
}

fn connect(options: &Options) -> Result<(Client, Statement), StoreError> {
    let mut client = options.connect()?;
    client.batch_execute(&format!("SET application_name = '{APPLICATION}'")).map_err(failed)?;
    let captured = client.prepare(CAPTURED).map_err(failed)?;
    Ok((client, captured))
}

/// SQL for the rows of `table` that were touched, as they are now: primary key, row, unique values, references. Aliases
/// are such as no application's column is called, which would come first.
fn images(table: &Table) -> String {
    let mut columns =
        vec![format!("{}::text", table.key_of("pares_key")), "to_jsonb(pares_row)::text".into()];
    for (_, unique) in &table.unique {
        let values = unique.iter().map(|column| format!("pares_row.{column}")).collect::<Vec<_>>().join(", ");
        columns.push(format!("CASE WHEN num_nulls({values}) = 0 THEN jsonb_build_array({values})::text END"));
    }
    for (_, pairs) in &table.references {
        let values = pairs.iter().map(|(_, ours)| format!("pares_row.{ours}")).collect::<Vec<_>>().join(", ");
        let key = object(pairs.iter().map(|(theirs, ours)| (theirs.as_str(), ours.as_str())), "pares_row");
        columns.push(format!("CASE WHEN num_nulls({values}) = 0 THEN {key}::text END"));
    }
    let keys = table.key.iter().map(|column| format!("pares_named.{column}")).collect::<Vec<_>>().join(", ");
    format!(
        "SELECT {columns} FROM (
            SELECT DISTINCT {keys} FROM string_to_table($1, E'\\n') pares_line,
                jsonb_populate_recordset(NULL::{name}, pares_line::jsonb -> 'keys') pares_named
            WHERE pares_line::jsonb ->> 'table' = $2) pares_key
        LEFT JOIN {name} pares_row USING ({key})",
        columns = columns.join(", "),
        name = table.name,
        key = table.key.join(", "),
    )
}

impl SqlWork<'_> {
    /// The version it reads.
    #[must_use]
    pub fn version(&self) -> Version {
        self.version
    }

    /// Runs a statement; gives its rows.
    ///
    /// # Errors
    /// [`SqlError::Again`] if it lost against another, [`SqlError::Refused`] if the statement is at fault.
    pub fn query(&mut self, statement: &str, values: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>, SqlError> {
        self.session.client.query(statement, values).map_err(sql)
    }

    /// Runs a statement; gives the number of rows it touched.
    ///
    /// # Errors
    /// As [`SqlWork::query`].
    pub fn execute(&mut self, statement: &str, values: &[&(dyn ToSql + Sync)]) -> Result<u64, SqlError> {
        self.session.client.execute(statement, values).map_err(sql)
    }

    /// Ends it: nothing of it stays here, and what it did is to be submitted. What constraints put off until commit is
    /// checked now.
    ///
    /// # Errors
    /// As [`SqlWork::query`].
    pub fn finish(mut self, id: TransactionId, attempt: u32) -> Result<Transaction, SqlError> {
        let client = &mut self.session.client;
        client.batch_execute("SET CONSTRAINTS ALL IMMEDIATE").map_err(sql)?;
        let row = client.query_one(&self.session.captured, &[]).map_err(sql)?;
        let (lines, names): (Option<&str>, Vec<&str>) = (row.get(0), row.get(1));
        let tables = names.iter().map(|name| self.session.table(name)).collect::<Result<Vec<_>, _>>()?;
        let mut writes = Writes::default();
        for Captured { table, images } in &tables {
            for row in self.session.client.query(images, &[&lines, &table.name]).map_err(sql)? {
                writes.after(table, &row);
            }
        }
        self.session.client.batch_execute("ROLLBACK TO SAVEPOINT pares").map_err(sql)?;
        for Captured { table, images } in tables.iter().filter(|captured| !captured.table.unique.is_empty()) {
            for row in self.session.client.query(images, &[&lines, &table.name]).map_err(sql)? {
                writes.before(table, &row);
            }
        }
        self.ended = true;
        self.session.client.batch_execute("ROLLBACK").map_err(sql)?;
        let writes = writes.0.into_iter().map(|(key, change)| Write { key, change }).collect();
        Ok(Transaction { id, attempt, snapshot: self.version, writes, ..Transaction::default() })
    }
}

impl Drop for SqlWork<'_> {
    fn drop(&mut self) {
        if !self.ended {
            // If it cannot be told, the server rolls back when the connection ends.
            drop(self.session.client.batch_execute("ROLLBACK"));
        }
    }
}

/// What a transaction does to items. What is said later of the same item holds only where nothing was said before.
#[derive(Default)]
struct Writes(BTreeMap<Key, Change>);

impl Writes {
    /// A row as the transaction leaves it.
    fn after(&mut self, table: &Table, row: &Row) {
        let (key, now): (&str, Option<&str>) = (row.get(0), row.get(1));
        let change = now.map_or(Change::Delete, |row| Change::Put(Value::from(row)));
        self.0.insert(item(ROW, &table.name, key), change);
        if now.is_none() && table.is_referred_to {
            self.0.insert(item(REFERENCE, &table.name, key), Change::Delete);
        }
        for (name, values) in unique(table, row) {
            self.0.insert(item(UNIQUE, name, values), Change::Put(Value::from(key)));
        }
        let references = table.references.iter().enumerate();
        for (place, (to, _)) in references {
            if let Some(referred) = row.get::<_, Option<&str>>(2 + table.unique.len() + place) {
                self.0.entry(item(REFERENCE, to, referred)).or_insert(Change::Add(0));
            }
        }
    }

    /// A row as it was: unique values that it had and nobody has now are free.
    fn before(&mut self, table: &Table, row: &Row) {
        for (name, values) in unique(table, row) {
            self.0.entry(item(UNIQUE, name, values)).or_insert(Change::Delete);
        }
    }
}

/// Names of unique constraints and the values that a row has there.
fn unique<'a>(table: &'a Table, row: &'a Row) -> impl Iterator<Item = (&'a str, &'a str)> {
    let constraints = table.unique.iter().enumerate();
    constraints.filter_map(|(place, (name, _))| Some((name.as_str(), row.get::<_, Option<&str>>(2 + place)?)))
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
        Some(reason) if reason.severity() == "ERROR" => SqlError::Refused(reason.to_string()),
        // The writer ended the session; if it is the server that ended, the next attempt says so.
        _ if error.is_closed() || error.source().is_some_and(|cause| cause.is::<std::io::Error>()) => {
            SqlError::Again("the connection was ended".into())
        }
        None => SqlError::Refused(error.to_string()),
        Some(_) => SqlError::Store(failed(error)),
    }
}
