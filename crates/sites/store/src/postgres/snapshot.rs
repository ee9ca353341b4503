//! Snapshots of a PostgreSQL database.
//!
//! A snapshot is a read-only transaction at repeatable read, which has a connection to itself until it ends. Its first
//! statement reads the mark, and with that the server fixes what all later ones see: mark and items are of one moment.
//! Connections are used again, and there are only so many.

use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pares_wice::{Key, KeyRange, Value, Version};
use postgres::{Client, Row, Statement};

use super::{Options, failed};
use crate::error::StoreError;
use crate::mark::{Mark, check_form};
use crate::store::{Reads, StoreSnapshot, Visit, is_empty, successor};

pub(super) const READ_MARK: &str = "SELECT form, whole, version, meta FROM pares_applied";
const BEGIN: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
const GET: &str = "SELECT value FROM pares_items WHERE key = $1";
const PAGE: &str = "SELECT key, value FROM pares_items WHERE key >= $1 ORDER BY key LIMIT $2";
const PAGE_TO: &str = "SELECT key, value FROM pares_items WHERE key >= $1 AND key < $3 ORDER BY key LIMIT $2";

/// Items asked for at once: few at first, since many who walk a range want only its beginning.
const PAGE_ITEMS: i64 = 8;
const PAGE_ITEMS_MAX: i64 = 512;

/// Connections for snapshots.
pub(super) struct Pool {
    options: Options,
    lent: Mutex<Lent>,
}

#[derive(Default)]
struct Lent {
    /// How many are with snapshots.
    out: usize,
    idle: Vec<Reader>,
}

/// A connection with its statements prepared.
struct Reader {
    client: Client,
    mark: Statement,
    get: Statement,
    page: Statement,
    page_to: Statement,
}

impl Pool {
    pub(super) fn new(options: Options) -> Self {
        Self { options, lent: Mutex::default() }
    }

    fn lent(&self) -> MutexGuard<'_, Lent> {
        self.lent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self) -> Result<Reader, StoreError> {
        let mut lent = self.lent();
        if lent.out >= self.options.snapshots_max {
            return Err(StoreError::Busy(self.options.snapshots_max));
        }
        lent.out += 1;
        if let Some(reader) = lent.idle.pop() {
            return Ok(reader);
        }
        drop(lent);
        Reader::connect(&self.options).inspect_err(|_| self.give_back(None))
    }

    fn give_back(&self, reader: Option<Reader>) {
        let mut lent = self.lent();
        lent.out -= 1;
        lent.idle.extend(reader);
    }
}

impl Reader {
    fn connect(options: &Options) -> Result<Self, StoreError> {
        let mut client = options.connect()?;
        let mut prepare = |statement| client.prepare(statement).map_err(failed);
        let (mark, get) = (prepare(READ_MARK)?, prepare(GET)?);
        let (page, page_to) = (prepare(PAGE)?, prepare(PAGE_TO)?);
        Ok(Self { client, mark, get, page, page_to })
    }

    fn begin(&mut self) -> Result<Mark, StoreError> {
        self.client.batch_execute(BEGIN).map_err(failed)?;
        mark_of(&self.client.query_one(&self.mark, &[]).map_err(failed)?)
    }

    fn page(&mut self, from: &Key, to: Option<&Key>, limit: i64) -> Result<Vec<Row>, StoreError> {
        let rows = match to {
            None => self.client.query(&self.page, &[&from.as_bytes(), &limit]),
            Some(to) => self.client.query(&self.page_to, &[&from.as_bytes(), &limit, &to.as_bytes()]),
        };
        rows.map_err(failed)
    }
}

/// Begins a snapshot on a connection of `pool`.
pub(super) fn open(pool: &Arc<Pool>) -> Result<Box<dyn StoreSnapshot>, StoreError> {
    let mut reader = pool.take()?;
    let mut begun = reader.begin();
    // It may have ended while nobody used it.
    if begun.is_err() {
        reader = Reader::connect(&pool.options).inspect_err(|_| pool.give_back(None))?;
        begun = reader.begin();
    }
    match begun.and_then(Mark::readable) {
        Ok(mark) => {
            Ok(Box::new(PostgresSnapshot { mark, reader: Mutex::new(Some(reader)), pool: Arc::clone(pool) }))
        }
        Err(error) => {
            pool.give_back(None);
            Err(error)
        }
    }
}

pub(super) fn mark_of(row: &Row) -> Result<Mark, StoreError> {
    let (form, version): (i64, i64) = (row.get(0), row.get(2));
    check_form(u32::try_from(form).unwrap_or(u32::MAX))?;
    let version =
        u64::try_from(version).map_err(|_| StoreError::Damaged(format!("it is at version {version}")))?;
    Ok(Mark { whole: row.get(1), version: Version(version), meta: row.get(3) })
}

struct PostgresSnapshot {
    mark: Mark,
    /// Present until the snapshot ends.
    reader: Mutex<Option<Reader>>,
    pool: Arc<Pool>,
}

impl PostgresSnapshot {
    /// Reads; on another connection if this has ended, as long as the store is still what it was.
    fn with<T>(&self, read: impl Fn(&mut Reader) -> Result<T, StoreError>) -> Result<T, StoreError> {
        let mut reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner);
        let reader = reader.as_mut().expect("there until it ends");
        let found = read(reader);
        if found.is_ok() || reader.client.batch_execute("").is_ok() {
            return found;
        }
        let mut other = Reader::connect(&self.pool.options)?;
        if other.begin()? != self.mark {
            return found;
        }
        *reader = other;
        read(reader)
    }
}

/// A value that nobody wrote has changed on the server's disk.
fn value_of(key: &[u8], form: &[u8]) -> Result<Value, StoreError> {
    let damaged = || StoreError::Damaged(format!("item {:?} is of no kind that is known", Key::new(key)));
    Value::from_encoded(form).ok_or_else(damaged)
}

impl Reads for PostgresSnapshot {
    fn get(&self, key: &Key) -> Result<Option<Value>, StoreError> {
        let row =
            self.with(|reader| reader.client.query_opt(&reader.get, &[&key.as_bytes()]).map_err(failed))?;
        row.map(|row| value_of(key.as_bytes(), row.get(0))).transpose()
    }

    fn range(&self, range: &KeyRange, visit: &mut Visit<'_>) -> Result<(), StoreError> {
        if is_empty(range) {
            return Ok(());
        }
        let (mut from, mut limit) = (range.from.clone(), PAGE_ITEMS);
        loop {
            let rows = self.with(|reader| reader.page(&from, range.to.as_ref(), limit))?;
            for row in &rows {
                let (key, value): (&[u8], &[u8]) = (row.get(0), row.get(1));
                if let ControlFlow::Break(()) = visit(Key::new(key), value_of(key, value)?) {
                    return Ok(());
                }
            }
            match rows.last() {
                Some(last) if rows.len() as i64 == limit => from = successor(last.get(0)),
                _ => return Ok(()),
            }
            limit = (limit * 4).min(PAGE_ITEMS_MAX);
        }
    }
}

impl StoreSnapshot for PostgresSnapshot {
    fn mark(&self) -> &Mark {
        &self.mark
    }
}

impl Drop for PostgresSnapshot {
    fn drop(&mut self) {
        let reader = self.reader.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        // A connection that cannot end its transaction is not used again.
        let reader =
            reader.and_then(|mut reader| reader.client.batch_execute("COMMIT").ok().map(|()| reader));
        self.pool.give_back(reader);
    }
}
