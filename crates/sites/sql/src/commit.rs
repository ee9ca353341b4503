//! COMMIT: what the transaction wrote is read, taken back, and handed to the site to be certified.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use pares_store::StoreError;
use pares_store::postgres::{BACK, CAPTURED, CHECK, Captured, FORM, Image, Writes, rehearsal, table_item};
use pares_wice::{Isolation, Key, TRANSACTION_BYTES_MAX, Version};

use crate::front::{Executed, Front, PATIENCE};
use crate::link::{Link, Rows, Trouble};
use crate::statement::{READ_ONLY, isolation_named};
use crate::wire::Message;

/// What a transaction came to at its server, where nothing is open any more.
#[derive(Debug)]
pub(crate) enum Ended {
    /// It wrote nothing, and is over.
    ReadOnly,
    /// To be certified.
    Ready {
        executed: Executed,
        /// How long to wait for the outcome.
        patience: Duration,
    },
}

/// Relations that the transaction holds more of than a reader: name, kind, persistence, mode, name if it participates, whether it was written to. And parts
/// of the catalogue that it has changed, of kind `c`: locks on them do not last. `$1` is what was counted before it ([`Link::counted`]).
const HELD: &str = "
    WITH counts AS MATERIALIZED (
        SELECT oid, pg_stat_get_xact_tuples_inserted(oid) + pg_stat_get_xact_tuples_updated(oid) + pg_stat_get_xact_tuples_deleted(oid)
            > coalesce(($1::text::jsonb ->> oid::text)::bigint, 0) AS is_written FROM pg_class WHERE relkind IN ('r', 'p', 'S', 'm', 'f', 'v'))
    SELECT c.oid::regclass, c.relkind, c.relpersistence, l.mode, t.name, w.is_written
    FROM pg_locks l JOIN pg_class c ON c.oid = l.relation JOIN counts w ON w.oid = c.oid LEFT JOIN PARES.pares_tables t ON to_regclass(t.name) = c.oid
    WHERE l.pid = pg_backend_pid() AND l.locktype = 'relation' AND l.mode NOT IN ('AccessShareLock', 'SIReadLock')
        AND c.relnamespace NOT IN ('pg_catalog'::regnamespace, 'pg_toast'::regnamespace)
        AND c.oid <> to_regclass('PARES.pares_open')
    UNION ALL SELECT c.oid::regclass, 'c', 'p', '', NULL, true FROM counts w JOIN pg_class c ON c.oid = w.oid
    WHERE w.is_written AND c.relnamespace = 'pg_catalog'::regnamespace AND c.relkind = 'r'";

/// Names of tables, types and the like stand in rows (`regclass`) as the writer reads them, a temporary table stands before none of the catalogue's, and what bounds the client's statements ends none of the session's.
/// Behind [`CHECK`], whose triggers have the client's settings. (Only later servers know the last one.) `$1` is the store's schema.
const OWN_SETTINGS: &str = "
    SELECT pg_catalog.set_config('search_path', $1 || ', pg_temp', true), pg_catalog.set_config('statement_timeout', '0', true),
        pg_catalog.set_config('lock_timeout', '0', true), pg_catalog.set_config('idle_in_transaction_session_timeout', '0', true),
        (SELECT pg_catalog.set_config('transaction_timeout', '0', true) WHERE pg_catalog.current_setting('transaction_timeout', true) IS NOT NULL)";

/// Tables that the transaction has read, as the server notes it where it is to keep transactions serializable itself (its manual, section 13.2.3): by rows,
/// by pages, by parts of indexes, which also stand for rows that were looked for and not found.
const READ: &str = "
    SELECT name FROM PARES.pares_tables WHERE to_regclass(name) IN (
        SELECT coalesce(i.indrelid, l.relation) FROM pg_locks l LEFT JOIN pg_index i ON i.indexrelid = l.relation
        WHERE l.mode = 'SIReadLock' AND l.pid = pg_backend_pid()
            AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database()))";

/// What certification has to know first.
const STATE: &str = "
    SELECT version, pg_catalog.pg_current_xact_id_if_assigned(), pg_catalog.current_setting('transaction_isolation'),
        pg_catalog.current_setting('session_replication_role'), pg_catalog.current_setting('pares.commit_timeout_ms', true)
        FROM PARES.pares_applied";

fn refused(code: &str, why: impl AsRef<str>) -> Trouble {
    Trouble::Refused(Message::error(code, why.as_ref()))
}

fn unfit(why: impl AsRef<str>) -> Trouble {
    refused("0A000", why)
}

fn column(row: &[Option<String>], at: usize) -> &str {
    row.get(at).and_then(Option::as_deref).unwrap_or_default()
}

/// Ends what is open: commits it if it wrote nothing, otherwise takes it back and says what it did.
pub(crate) fn end(front: &Front, link: &mut Link, locks: bool) -> Result<Ended, Trouble> {
    let ended = capture(front, link, locks).and_then(|ended| {
        if matches!(ended, Ended::ReadOnly) {
            link.commit()?;
            // Behind it, since what was set for this transaction alone counts no more.
            link.learn_level()?;
        }
        Ok(ended)
    });
    if link.open {
        let counts = link.counts;
        link.roll_back()?;
        // One that is fit has written nothing that matters to the next.
        link.counts = counts || ended.is_err();
    }
    ended
}

fn capture(front: &Front, link: &mut Link, locks: bool) -> Result<Ended, Trouble> {
    let state = link.ask(&front.own(STATE), &[])?;
    let state = state.first().ok_or_else(|| refused("57P03", "the site has no store yet"))?;
    if state[1].is_none() {
        return Ok(Ended::ReadOnly);
    }
    must_be_fit(state, link.reads_only)?;
    let version = column(state, 0).parse().map_err(|_| refused("XX000", "the store has no version"))?;
    let patience = patience_of(column(state, 4));
    link.ask(FORM, &[])?;
    link.ask(CHECK, &[])?;
    link.ask(OWN_SETTINGS, &[&front.home])?;
    let counted = link.counted.clone();
    let locked = locked(&link.ask(&front.own(HELD), &[&counted])?)?;
    // Before this asks for rows itself.
    let reads = read(front, link, isolation_named(column(state, 2)))?;
    let mut writes = written(front, link)?;
    for name in locked {
        if locks || !table(front, &name)?.refers() {
            writes.lock(&name);
        }
    }
    let writes = writes.into_writes().ok_or_else(|| refused("XX000", "not all rows were found again"))?;
    let executed = Executed { snapshot: Version(version), reads, writes };
    Ok(Ended::Ready { executed, patience })
}

/// How long the session waits for outcomes.
pub(crate) fn patience(link: &mut Link) -> io::Result<Duration> {
    match link.ask("SELECT current_setting('pares.commit_timeout_ms', true)", &[]) {
        Ok(rows) => Ok(patience_of(rows.first().map_or("", |row| column(row, 0)))),
        Err(Trouble::Refused(_)) => Ok(PATIENCE),
        Err(Trouble::Gone(error)) => Err(error),
    }
}

/// A setting that is no number is as good as none.
fn patience_of(setting: &str) -> Duration {
    setting.parse().map_or(PATIENCE, Duration::from_millis)
}

/// Whether one that has written can be certified. A reader's cannot, whatever it says of itself.
fn must_be_fit(state: &[Option<String>], reads_only: bool) -> Result<(), Trouble> {
    if reads_only {
        return Err(refused("25006", READ_ONLY));
    }
    match (column(state, 2), column(state, 3)) {
        ("repeatable read" | "serializable", "origin") => Ok(()),
        (_, "origin") => Err(unfit(
            "only a transaction at REPEATABLE READ or SERIALIZABLE can be certified, but this one changed its level after it began: set the level in BEGIN",
        )),
        (_, role) => Err(unfit(format!(
            "session_replication_role is {role}, which leaves foreign keys and triggers out: set it back to origin, and run the transaction again"
        ))),
    }
}

/// Items of the tables that were read, if that counts.
fn read(front: &Front, link: &mut Link, level: Isolation) -> Result<Vec<Key>, Trouble> {
    let tables = match level {
        Isolation::Snapshot => return Ok(Vec::new()),
        Isolation::Serialisable => link.ask(&front.own(READ), &[])?,
    };
    Ok(tables.iter().map(|row| table_item(column(row, 0))).collect())
}

/// Tables that were written to since the beginning, with the keys of their rows.
fn noted(front: &Front, link: &mut Link) -> Result<Rows, Trouble> {
    link.ask(&front.own(CAPTURED), &[&TRANSACTION_BYTES_MAX.to_string()])
}

fn written(front: &Front, link: &mut Link) -> Result<Writes, Trouble> {
    let noted = noted(front, link)?;
    let tables = noted.iter().map(|row| match &row[1] {
        Some(keys) => Ok((table(front, column(row, 0))?, keys.as_str())),
        None => Err(too_large(column(row, 0))),
    });
    images(front, link, &tables.collect::<Result<Vec<_>, _>>()?)
}

fn too_large(table: &str) -> Trouble {
    let why =
        format!("the transaction exceeds {TRANSACTION_BYTES_MAX} bytes with its rows of {table}: split it");
    refused("54000", why)
}

fn table(front: &Front, name: &str) -> Result<Arc<Captured>, Trouble> {
    let found = front.schema.table(name);
    // The site of a change of the schema may have ended before it withdrew its turn.
    if front.schema.has_expired_turn() {
        front.withdraw_turn();
    }
    found.map_err(|error| match error {
        // It was there when the transaction wrote to it.
        StoreError::Table { .. } => {
            refused("40001", format!("the schema changes ({error}): run the transaction again"))
        }
        other => refused("58030", other.to_string()),
    })
}

/// Tables that were written to, each with the keys of its rows.
type Touched<'a> = [(Arc<Captured>, &'a str)];

fn images(front: &Front, link: &mut Link, tables: &Touched<'_>) -> Result<Writes, Trouble> {
    let mut writes = Writes::default();
    for (captured, keys) in tables {
        each_image(link, captured, keys, &mut writes, Writes::after)?;
    }
    rehearse(front, link, &writes)?;
    link.ask(BACK, &[])?;
    link.ask(FORM, &[])?;
    link.ask(OWN_SETTINGS, &[&front.home])?;
    if !noted(front, link)?.is_empty() {
        return Err(unfit(
            "the transaction cannot be rolled back to its beginning, because it changed the savepoint pares, which is reserved for the site",
        ));
    }
    for (captured, keys) in tables.iter().filter(|(captured, _)| captured.needs_before()) {
        each_image(link, captured, keys, &mut writes, Writes::before)?;
    }
    Ok(writes)
}

/// Rows of a table, one after the other; what is too large is not kept.
fn each_image(
    link: &mut Link,
    captured: &Captured,
    keys: &str,
    writes: &mut Writes,
    take: fn(&mut Writes, &Captured, &Image<'_>),
) -> Result<(), Trouble> {
    link.ask_each(captured.images(), &[keys], &mut |row| {
        if !writes.is_too_large() {
            take(writes, captured, &row.iter().map(Option::as_deref).collect::<Vec<_>>());
        }
    })?;
    if writes.is_too_large() { Err(too_large(captured.name())) } else { Ok(()) }
}

/// Whether the writer can write the rows, everywhere, as they are here. While the transaction still holds them.
fn rehearse(front: &Front, link: &mut Link, writes: &Writes) -> Result<(), Trouble> {
    for (table, [keys, rows]) in writes.rows() {
        let told = link.ask(&rehearsal(table, &front.home), &[&keys, &rows])?;
        if let Some(why) = told.first().and_then(|row| row[0].as_deref()) {
            return Err(unfit(format!(
                "{table}: its rows cannot be written identically at every site, in UTC and by the store's role: {why}: write another value, or give the column a type or CHECK that accepts it"
            )));
        }
    }
    Ok(())
}

/// Tables that participate and of which the transaction has locked rows; refuses what is not captured.
fn locked(held: &Rows) -> Result<Vec<String>, Trouble> {
    let mut locked = Vec::new();
    for row in held {
        let (name, mode, takes_part) = (column(row, 0), column(row, 3), row[4].as_deref());
        let why = match (column(row, 1), mode, takes_part) {
            ("c", _, _) => {
                "was changed inside a transaction, at this site only: roles, privileges and large objects \
                 belong to each server, and a schema change must be a statement of its own"
            }
            ("S", _, _) => {
                "is a sequence, which counts only at this site: use other keys, such as gen_random_uuid()"
            }
            (_, "RowShareLock", Some(table)) => {
                locked.push(table.to_owned());
                continue;
            }
            (_, "RowShareLock", None) | (_, "RowExclusiveLock", Some(_)) => continue,
            (_, "RowExclusiveLock", None) if column(row, 5) != "t" => continue,
            (_, "RowExclusiveLock", None) => {
                "is not replicated, so it cannot be written here: create tables with CREATE TABLE through this port"
            }
            _ => {
                "was changed or locked as a whole inside a transaction: send a schema change as a statement of its own, and lock rows with SELECT ... FOR UPDATE"
            }
        };
        return Err(unfit(format!("{name} {why}")));
    }
    Ok(locked)
}
