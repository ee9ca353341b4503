//! SQL for applications that already speak it: run, look at what was written, take it all back, and certify that.
//!
//! Certifying a transaction that has committed is too late, and one that waits prepared for the far side of the world
//! holds its locks meanwhile (spec: option b). So a session executes in a transaction at repeatable read on what
//! is stable here, reads the rows it has changed, and *rolls back*: locks are held for as long as the application takes and
//! no longer. What comes out is a [`Transaction`] like any other; it is certified, and applied everywhere, here too, in
//! the commit order, by [`super::PostgresStore`] (paper 3, section 2.1, deferred update).
//!
//! PostgreSQL says nothing of what was read, so such transactions are certified by their writes
//! ([`pares_wice::Isolation::Snapshot`]) and a session's `reads` are empty.

use std::collections::BTreeMap;

use pares_wice::{TRANSACTION_BYTES_MAX, Transaction, TransactionId, Version, Write};
use postgres::types::ToSql;
use postgres::{Client, Row, Statement};

use super::capture::{BACK, CHECK, Captured, FIRST, FORM, Image, Writes};
use super::notes::CAPTURED;
use super::snapshot::{READ_MARK, mark_of};
use super::tables::Table;
use super::{Options, SqlError, failed, sql};
use crate::error::StoreError;

const BEGIN: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ";

/// A connection on which an application runs SQL.
pub struct Session {
    options: Options,
    client: Client,
    captured: Statement,
    tables: BTreeMap<String, (Captured, Statement)>,
}

/// A transaction of a session. Dropped, it is rolled back.
pub struct SqlWork<'a> {
    session: &'a mut Session,
    version: Version,
    ended: bool,
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
        work.version = mark_of(&row)?.version;
        work.session.client.batch_execute(FIRST).map_err(failed)?;
        Ok(work)
    }

    /// What was written; goes back to the beginning.
    fn written(&mut self) -> Result<Vec<Write>, SqlError> {
        let too_large = || SqlError::refused("54000", "the transaction is too large: split it");
        let noted = self.noted()?;
        let mut tables = Vec::new();
        for row in &noted {
            let keys: &str = row.get::<_, Option<&str>>(1).ok_or_else(too_large)?;
            tables.push((self.table(row.get(0))?, keys));
        }
        let mut writes = Writes::default();
        for (table, keys) in &tables {
            self.each_image(table, keys, |captured, image| writes.after(captured, image))?;
        }
        self.go_back()?;
        for (table, keys) in tables.iter().filter(|((captured, _), _)| captured.needs_before()) {
            self.each_image(table, keys, |captured, image| writes.before(captured, image))?;
        }
        if writes.is_too_large() {
            return Err(too_large());
        }
        writes.into_writes().ok_or_else(|| SqlError::refused("XX000", "not all rows were found again"))
    }

    fn each_image(
        &mut self,
        (captured, images): &(Captured, Statement),
        keys: &str,
        mut take: impl FnMut(&Captured, &Image<'_>),
    ) -> Result<(), SqlError> {
        let rows = self.client.query(images, &[&keys]).map_err(sql)?;
        rows.iter().for_each(|row| take(captured, &cells(row)));
        Ok(())
    }

    fn go_back(&mut self) -> Result<(), SqlError> {
        self.client.batch_execute(BACK).map_err(sql)?;
        self.client.batch_execute(FORM).map_err(sql)?;
        match self.noted()?.is_empty() {
            true => Ok(()),
            false => Err(SqlError::refused("0A000", "the savepoint pares is reserved for the session")),
        }
    }

    /// What triggers noted since the beginning.
    fn noted(&mut self) -> Result<Vec<Row>, SqlError> {
        self.client.query(&self.captured, &[&TRANSACTION_BYTES_MAX.to_string()]).map_err(sql)
    }

    fn table(&mut self, name: &str) -> Result<(Captured, Statement), SqlError> {
        if let Some(known) = self.tables.get(name) {
            return Ok(known.clone());
        }
        let captured = Captured::new(Table::read(&mut self.client, name)?);
        let images = self.client.prepare(captured.images()).map_err(sql)?;
        self.tables.insert(name.to_owned(), (captured.clone(), images.clone()));
        Ok((captured, images))
    }
}

fn connect(options: &Options) -> Result<(Client, Statement), StoreError> {
    let mut client = options.connect()?;
    client.batch_execute("SET application_name = 'pares session'").map_err(failed)?;
    let home = client.query_one("SELECT quote_ident(current_schema())", &[]).map_err(failed)?;
    let captured = client.prepare(&CAPTURED.replace("PARES", home.get(0))).map_err(failed)?;
    Ok((client, captured))
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
        client.batch_execute(FORM).map_err(sql)?;
        client.batch_execute(CHECK).map_err(sql)?;
        let writes = self.session.written()?;
        self.ended = true;
        self.session.client.batch_execute("ROLLBACK").map_err(sql)?;
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

fn cells(row: &Row) -> Vec<Option<&str>> {
    (0..row.len()).map(|column| row.get(column)).collect()
}
