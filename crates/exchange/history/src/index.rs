//! The index of a recorder's log: a SQLite file that remembers how far it has read.
//!
//! An index that is updated beside the log can disagree with it after a crash. This one notes the place it has
//! reached in the same transaction as the rows, so it is always exactly the log up to there, and reading on from
//! there is all it takes to repair it. It also keeps the last record itself: if another log lies there now (a
//! peer's, copied over a damaged one), the record does not match and the index starts afresh.
//!
//! ```text
//!   log     |record|record|record|record|record|...
//!                          ^last  ^next
//!   index    rows of all these    | place (next, last, bytes of last)
//! ```

use std::path::{Path, PathBuf};
use std::time::Duration;

use pares_log::{Offset, ReadError, Reader};
use pares_wire::WireError;
use pares_wire::record::{self, ResultRecord};
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};

use super::apply::apply;

/// The version of the tables below. An index of another version is rebuilt.
const VERSION: i64 = 3;
/// Records per transaction.
const BATCH_RECORDS: u64 = 50_000;
/// How long to wait while another `pares history` updates the same index.
const PATIENCE: Duration = Duration::from_secs(60);

/// Words are stored as words and integers as the log has them: prices in price units, times in nanoseconds, order
/// ids as one word (gateway in the upper 16 bits), so that the file can be asked directly.
const SCHEMA: &str = "
DROP TABLE IF EXISTS place;
DROP TABLE IF EXISTS orders;
DROP TABLE IF EXISTS requests;
DROP TABLE IF EXISTS changes;
DROP TABLE IF EXISTS trades;
DROP TABLE IF EXISTS instruments;
CREATE TABLE place (id INTEGER PRIMARY KEY CHECK (id = 0), next INTEGER NOT NULL, last INTEGER NOT NULL,
    payload BLOB NOT NULL);
-- Every order ever entered, refused ones included, as it stands now.
CREATE TABLE orders (id INTEGER PRIMARY KEY, member INTEGER NOT NULL, client_order_id INTEGER NOT NULL,
    instrument INTEGER NOT NULL, side TEXT NOT NULL, kind TEXT NOT NULL, time_in_force TEXT NOT NULL,
    post_only INTEGER NOT NULL, price INTEGER, quantity INTEGER NOT NULL, executed INTEGER NOT NULL,
    remaining INTEGER NOT NULL, status TEXT NOT NULL, reason TEXT NOT NULL, shard INTEGER NOT NULL,
    position INTEGER NOT NULL, stamp INTEGER NOT NULL, changed_position INTEGER NOT NULL,
    changed_stamp INTEGER NOT NULL, display INTEGER, minimum INTEGER, trigger INTEGER, until INTEGER);
CREATE INDEX orders_by_name ON orders (member, client_order_id);
CREATE INDEX orders_by_instrument ON orders (instrument, stamp);
CREATE INDEX orders_by_stamp ON orders (stamp);
-- Every request, in each shard's order, with what became of it. `order_id` is 0 if it names no order.
CREATE TABLE requests (shard INTEGER, position INTEGER, id INTEGER NOT NULL, order_id INTEGER NOT NULL,
    stamp INTEGER NOT NULL, member INTEGER NOT NULL, client_order_id INTEGER NOT NULL, command TEXT NOT NULL,
    price INTEGER, quantity INTEGER, status TEXT NOT NULL, reason TEXT NOT NULL, executed INTEGER NOT NULL,
    remaining INTEGER NOT NULL, PRIMARY KEY (shard, position)) WITHOUT ROWID;
CREATE INDEX requests_by_order ON requests (order_id);
-- What happened to orders in requests that did not name them, trades aside: mass cancels, triggers, expiries.
CREATE TABLE changes (order_id INTEGER, shard INTEGER NOT NULL, position INTEGER, number INTEGER,
    change TEXT NOT NULL, status TEXT NOT NULL, reason TEXT NOT NULL, executed INTEGER NOT NULL,
    remaining INTEGER NOT NULL, PRIMARY KEY (order_id, position, number)) WITHOUT ROWID;
-- Every trade; `number` says which event of its position it was. `aggressor` is none in an auction.
CREATE TABLE trades (shard INTEGER, position INTEGER, number INTEGER, instrument INTEGER NOT NULL,
    price INTEGER NOT NULL, quantity INTEGER NOT NULL, buy_order INTEGER NOT NULL, buy_member INTEGER NOT NULL,
    sell_order INTEGER NOT NULL, sell_member INTEGER NOT NULL, aggressor TEXT NOT NULL, stamp INTEGER NOT NULL,
    busted INTEGER NOT NULL, PRIMARY KEY (shard, position, number)) WITHOUT ROWID;
-- Instruments added while the system ran, in the order of the record; those removed since are kept, for their orders.
CREATE TABLE instruments (id INTEGER NOT NULL, symbol TEXT NOT NULL);
CREATE INDEX trades_by_buy ON trades (buy_order);
CREATE INDEX trades_by_sell ON trades (sell_order);
CREATE INDEX trades_by_instrument ON trades (instrument, stamp);
CREATE INDEX trades_by_stamp ON trades (stamp);
";

/// Why history cannot be looked up.
#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    /// The index cannot be read or written.
    #[error(
        "{path}: {source}. The index is derived from the log: if it is damaged, delete it, and the next \
         call rebuilds it",
        path = path.display()
    )]
    Index {
        /// The index.
        path: PathBuf,
        /// What SQLite said.
        source: rusqlite::Error,
    },
    /// The log cannot be read on. What lies before is indexed.
    #[error(
        "{log}: {source}. Only the records before that are indexed. `pares journal verify {log}` says what \
         to do; another recorder's log (--recorder) may be intact",
        log = log.display()
    )]
    Log {
        /// The recorder's log.
        log: PathBuf,
        /// What is wrong.
        source: ReadError,
    },
    /// The log holds a record this build does not understand. What lies before is indexed.
    #[error("{log}, offset {offset}: {source}", log = log.display())]
    Record {
        /// The recorder's log.
        log: PathBuf,
        /// Which record.
        offset: Offset,
        /// What is wrong.
        source: WireError,
    },
}

/// Why one record is not in the index.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// SQLite refused.
    #[error(transparent)]
    Sql(#[from] rusqlite::Error),
    /// The record is not understood.
    #[error(transparent)]
    Wire(#[from] WireError),
}

/// What an update did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Updated {
    /// Records read.
    pub records: u64,
    /// Bytes of log that were released before they were indexed.
    pub skipped_bytes: u64,
}

/// The index of one recorder's log.
pub struct Index {
    pub(super) db: Connection,
    path: PathBuf,
}

/// How far the index has read.
#[derive(Default)]
struct Place {
    /// Where the next record is expected.
    next: Offset,
    /// The last record indexed and where it lies.
    last: Option<(Offset, Vec<u8>)>,
}

/// What ended a batch.
enum End {
    /// It is full.
    Full,
    /// All that is recorded is indexed.
    UpToDate,
    /// A record cannot be read or understood; what came before it counts.
    Trouble(HistoryError),
}

impl Index {
    /// Opens or creates the index at `path`.
    ///
    /// # Errors
    /// [`HistoryError::Index`].
    pub fn open(path: &Path) -> Result<Self, HistoryError> {
        let fail = |source| HistoryError::Index { path: path.to_owned(), source };
        let mut db = Connection::open(path).map_err(fail)?;
        prepare(&mut db).map_err(fail)?;
        Ok(Self { db, path: path.to_owned() })
    }

    /// Reads on in the log in `log`. `progress` receives bytes done and bytes in all.
    ///
    /// # Errors
    /// [`HistoryError`]; what could be read before it is indexed.
    pub fn update(
        &mut self,
        log: &Path,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Updated, HistoryError> {
        let fail = |source| HistoryError::Log { log: log.to_owned(), source };
        let mut reader = Reader::at_start(log).map_err(fail)?;
        let mut updated = Updated::default();
        loop {
            let batch = self.db.transaction_with_behavior(TransactionBehavior::Immediate);
            let batch = batch.map_err(self::fail(&self.path))?;
            let mut place = resume(&batch, &self.path, log, &mut reader, &mut updated)?;
            progress(place.next.0, reader.written().0);
            let end = read_on(&batch, &self.path, log, &mut reader, &mut place, &mut updated)?;
            place.store(&batch).and_then(|()| batch.commit()).map_err(self::fail(&self.path))?;
            match end {
                End::Full => {}
                End::UpToDate => return Ok(updated),
                End::Trouble(error) => return Err(error),
            }
        }
    }

    /// Up to where the log is indexed; its beginning if nothing is.
    ///
    /// # Errors
    /// [`HistoryError::Index`].
    pub fn reach(&self) -> Result<Offset, HistoryError> {
        Place::load(&self.db).map(|place| place.next).map_err(fail(&self.path))
    }

    /// Wraps a query's error.
    pub(super) fn fail(&self) -> impl FnOnce(rusqlite::Error) -> HistoryError {
        fail(&self.path)
    }
}

fn fail(path: &Path) -> impl FnOnce(rusqlite::Error) -> HistoryError {
    move |source| HistoryError::Index { path: path.to_owned(), source }
}

/// Settings, and tables if there are none of this version.
fn prepare(db: &mut Connection) -> rusqlite::Result<()> {
    db.busy_timeout(PATIENCE)?;
    db.set_prepared_statement_cache_capacity(32);
    // A loss of power may cost the index, not the log; but a damaged index must not go unnoticed.
    db.pragma_update(None, "synchronous", "NORMAL")?;
    db.pragma_update(None, "cache_size", -65_536)?;
    let batch = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let found: i64 = batch.pragma_query_value(None, "user_version", |row| row.get(0))?;
    if found != VERSION {
        batch.execute_batch(SCHEMA)?;
        batch.pragma_update(None, "user_version", VERSION)?;
    }
    batch.commit()
}

/// Puts the reader where the index ends; empties the index if it is of another log.
fn resume(
    batch: &Transaction<'_>,
    path: &Path,
    log: &Path,
    reader: &mut Reader,
    updated: &mut Updated,
) -> Result<Place, HistoryError> {
    let fail_log = |source| HistoryError::Log { log: log.to_owned(), source };
    let mut place = Place::load(batch).map_err(fail(path))?;
    if !place.is_of(reader).map_err(fail_log)? {
        batch.execute_batch(SCHEMA).map_err(fail(path))?;
        place = Place::default();
    }
    let first = reader.released();
    if place.next < first {
        if place.last.is_some() {
            updated.skipped_bytes += first.since(place.next);
        }
        place.next = first;
    }
    reader.seek(place.next).map_err(fail_log)?;
    Ok(place)
}

/// Indexes one batch of records.
fn read_on(
    batch: &Transaction<'_>,
    path: &Path,
    log: &Path,
    reader: &mut Reader,
    place: &mut Place,
    updated: &mut Updated,
) -> Result<End, HistoryError> {
    let durable = reader.durable();
    let mut last = None;
    let mut end = End::Full;
    for _ in 0..BATCH_RECORDS {
        let entry = match reader.next() {
            Ok(Some(entry)) if entry.offset < durable => entry,
            Ok(_) => {
                end = End::UpToDate;
                break;
            }
            Err(source) => {
                end = End::Trouble(HistoryError::Log { log: log.to_owned(), source });
                break;
            }
        };
        let offset = entry.offset;
        match index_record(batch, entry.payload) {
            Ok(()) => {}
            Err(ApplyError::Sql(source)) => return Err(fail(path)(source)),
            Err(ApplyError::Wire(source)) => {
                end = End::Trouble(HistoryError::Record { log: log.to_owned(), offset, source });
                break;
            }
        }
        updated.records += 1;
        last = Some(offset);
        place.next = reader.offset();
    }
    if let Some(offset) = last {
        let entry = reader.read_at(offset);
        let entry = entry.map_err(|source| HistoryError::Log { log: log.to_owned(), source })?;
        place.last = Some((offset, entry.payload.to_vec()));
    }
    Ok(end)
}

/// Results make rows; notes about checkpoints do not.
fn index_record(db: &Connection, payload: &[u8]) -> Result<(), ApplyError> {
    match record::schema(payload) {
        Some(record::RESULT) => apply(db, &ResultRecord::read(payload)?),
        Some(record::CHECKPOINT_STORED) => Ok(()),
        schema => {
            let version = payload.get(1).copied().unwrap_or(0);
            Err(WireError::UnknownSchema { schema: schema.unwrap_or(0), version }.into())
        }
    }
}

impl Place {
    fn load(db: &Connection) -> rusqlite::Result<Self> {
        let read = |row: &rusqlite::Row<'_>| {
            let offset = |index| row.get(index).map(|word: i64| Offset(word.cast_unsigned()));
            Ok(Self { next: offset(0)?, last: Some((offset(1)?, row.get(2)?)) })
        };
        let found = db.query_row("SELECT next, last, payload FROM place", [], read).optional()?;
        Ok(found.unwrap_or_default())
    }

    fn store(&self, db: &Connection) -> rusqlite::Result<()> {
        let Some((last, payload)) = &self.last else { return Ok(()) };
        let values = params![self.next.0.cast_signed(), last.0.cast_signed(), payload];
        db.execute("INSERT OR REPLACE INTO place VALUES (0, ?1, ?2, ?3)", values).map(|_| ())
    }

    /// Whether the log is the one this place was noted in, as far as can be told.
    fn is_of(&self, reader: &mut Reader) -> Result<bool, ReadError> {
        let Some((offset, payload)) = &self.last else { return Ok(true) };
        match reader.read_at(*offset) {
            Ok(record) => Ok(record.payload == payload),
            Err(ReadError::Released { .. }) => Ok(true),
            Err(ReadError::BeyondEnd { .. } | ReadError::Damaged { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }
}
