//! Changes of the schema: carried out at every site, at one version, in one transaction with it.
//!
//! A statement that each operator runs at each site comes too early at one and too late at another, and rows captured between do not fit.
//! So the statement itself is an item of a version. Its site of origin carries it out and takes it back before it asks for it
//! to be ordered; it is ordered only if nothing was written to any table meanwhile, and so it finds at every site what it
//! found there. What would give another result at each site is refused: a statement that writes rows, or new values by a clock.
//!
//! Statements are numbered. A site remembers those it has carried out, beside its store: a store that is removed and sent again finds
//! its tables as they were, and continues behind the last one it knows.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use pares_wice::{Key, KeyRange, Value, Version, Write};
use postgres::{Client, GenericClient};

use super::capture::{Captured, FORM, take_part};
use super::deltas::{DELTA, Delta, row_item, whole_row};
use super::faults::{Faults, dropped_schemas, holds_tables};
use super::idle::OWN;
use super::notes::UNCAPTURED;
use super::sessions::Wanted;
use super::snapshot::{READ_MARK, mark_of};
use super::tables::{Failure, ROW, SCHEMA, STATEMENT, Table};
use super::times::brings_time;
use super::turns::{Look, NUMBER_AND_TURN, TURN, Turn};
use super::{Options, SqlError, failed, sql};
use crate::engine::Changes;
use crate::error::StoreError;

/// What can hold rows or numbers, but for the store's own.
const TABLES: &str = "
    SELECT format('%I.%I', n.nspname, c.relname), c.relkind = 'S' FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relkind IN ('r', 'p', 'S', 'f', 'm') AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast')
        AND n.nspname NOT LIKE 'pg_temp%'
        AND c.relname NOT IN ('pares_items', 'pares_applied', 'pares_owner', 'pares_tables', 'pares_schema', 'pares_open') ORDER BY 1";

/// Tables that participate, and the files they are in: another one if a statement has written the rows again.
const FILES: &str = "SELECT name, pg_relation_filenode(to_regclass(name)), to_regclass(name)::oid FROM pares_tables ORDER BY name";

/// What a table is called now, and whether rows can say what it was called.
const NAME: &str = "
    SELECT format('%I.%I', n.nspname, c.relname), EXISTS (SELECT FROM pares_tables t JOIN pg_attribute a ON a.attrelid = to_regclass(t.name)
        WHERE a.atttypid = ANY (ARRAY['regclass', 'regtype', '_regclass', '_regtype']::regtype[]) AND NOT a.attisdropped)
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = $1";

/// Columns that rows older than they have a value for; and whether that was computed. By a clock it would be another at each site.
const ADDED: &str = r#"
    SELECT format('%s.%I (column %s)', a.attrelid::regclass, a.attname, a.attnum), coalesce(pg_get_expr(d.adbin, d.adrelid), '')
        !~ $re$^('([^']|'')*'|-?[0-9.]+|true|false)(::[a-z0-9_ "(),.\[\]]+)?$$re$
    FROM pg_attribute a LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum WHERE a.atthasmissing"#;

/// Begins the transaction in which a statement is tried.
const TRIAL: &str =
    "BEGIN ISOLATION LEVEL REPEATABLE READ; SET LOCAL lock_timeout = '100ms'; SET LOCAL jit = off";

/// What the schema is: tables that participate, as they are at the moment.
pub struct Schema {
    pub(super) options: Options,
    known: Mutex<Known>,
}

pub(super) struct Known {
    client: Option<Client>,
    tables: BTreeMap<String, Arc<Captured>>,
    /// Statements carried out when `tables` were read.
    number: i64,
    pub(super) turn: Turn,
    /// A turn was found that is over.
    pub(super) has_expired: bool,
}

impl Known {
    fn table(&mut self, name: &str, options: &Options) -> Result<Arc<Captured>, StoreError> {
        let client = match &mut self.client {
            Some(client) => client,
            none => none.insert(options.connect()?),
        };
        let row = client.query_one(NUMBER_AND_TURN, &[&TURN]).map_err(failed)?;
        if self.number != row.get::<_, i64>(0) {
            self.tables.clear();
            self.number = row.get(0);
        }
        match self.turn.look(row.get(1), Instant::now()) {
            Look::None => {}
            Look::Taken => {
                let why = "a change of the schema is waiting; other writers give way for at most 10 s".into();
                return Err(StoreError::Table { name: name.into(), why });
            }
            Look::Expired => self.has_expired = true,
        }
        if let Some(table) = self.tables.get(name) {
            return Ok(Arc::clone(table));
        }
        let table = Arc::new(Captured::new(Table::read(client, name)?));
        self.tables.insert(name.to_owned(), Arc::clone(&table));
        Ok(table)
    }
}

/// A statement, or the turn of one, that can be ordered.
#[derive(Clone, Debug)]
pub struct SchemaChange {
    /// The version it was tried at.
    pub snapshot: Version,
    /// What makes it happen.
    pub writes: Vec<Write>,
}

impl Schema {
    /// Of the database that `options` names.
    #[must_use]
    pub fn new(options: Options) -> Self {
        let known = Known {
            client: None,
            tables: BTreeMap::new(),
            number: -1,
            turn: Turn::default(),
            has_expired: false,
        };
        Self { options, known: Mutex::new(known) }
    }

    pub(super) fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A table that participates, by its quoted name with its schema, for a transaction that has written to it.
    ///
    /// # Errors
    /// [`StoreError::Table`] if there is none, or a change of the schema is waiting; or what the server says.
    pub fn table(&self, name: &str) -> Result<Arc<Captured>, StoreError> {
        let mut known = self.known();
        match known.table(name, &self.options) {
            // A connection that ended since it was used last is found to have done so by using it.
            Err(StoreError::Io(_)) => {
                known.client = None;
                known.table(name, &self.options)
            }
            found => found,
        }
    }

    /// Tries a statement, and takes it back. All wait behind one that waits for readers, so it does not wait long; if it is to have its way, those who are in it give way, as they
    /// would when it is carried out.
    ///
    /// # Errors
    /// [`SqlError::Refused`] with what the server says, or what would differ between sites; [`SqlError::Again`] if a session is in the way, or another change came first.
    pub fn propose(&self, statement: &str, has_way: bool) -> Result<SchemaChange, SqlError> {
        let mut client = self.options.connect()?;
        client.batch_execute(OWN).map_err(sql)?;
        if has_way {
            self.options.sessions.clear(&mut client, Wanted::Schema, true)?;
        }
        client.batch_execute(TRIAL).map_err(sql)?;
        let snapshot = mark_of(&client.query_one(READ_MARK, &[]).map_err(sql)?)?.version;
        let number = last_number(&mut client)? + 1;
        let done = try_out(statement, &mut client);
        client.batch_execute("ROLLBACK").map_err(sql)?;
        // The server changes the catalogue as it is now, and answers questions from the snapshot: behind another change that came meanwhile the trial has seen two
        // versions of one table, or none.
        if done.is_err() && last_number(&mut client)? + 1 != number {
            return Err(SqlError::Again("the schema has changed meanwhile".into()));
        }
        done?;
        let key = Key::new(format!("{STATEMENT}{number:020}").into_bytes());
        let mut writes = vec![Write::put(key, statement), Write::put(SCHEMA, Value::counter(0))];
        writes.extend(has_way.then(|| Write::delete(TURN)));
        Ok(SchemaChange { snapshot, writes })
    }
}

/// Carries out a statement, if it may be.
fn try_out(statement: &str, client: &mut impl GenericClient) -> Result<(), SqlError> {
    for schema in dropped_schemas(statement) {
        if holds_tables(&schema, client)? {
            return Err(unlike(format!(
                "schema {schema} contains replicated tables: drop these first, one by one"
            )));
        }
    }
    let old = Faults::read(client)?;
    carry_out_one(statement, client)?;
    if brings_time(statement, client)? {
        return Err(unlike(
            "a time in it could differ between sites ('now', 'today'): write the exact time, in one string without escapes, and other strings in separate statements".into(),
        ));
    }
    let brought = old.brought(&Faults::read(client)?);
    brought.map_or(Ok(()), |why| Err(unlike(why)))
}

/// Sites would differ.
fn unlike(why: String) -> SqlError {
    SqlError::refused("0A000", why)
}

fn last_number(client: &mut impl GenericClient) -> Result<i64, SqlError> {
    let row = client.query_one("SELECT coalesce(max(number), 0) FROM pares_schema", &[]).map_err(sql)?;
    Ok(row.get(0))
}

/// A statement that was ordered.
pub(super) struct Ordered<'a> {
    number: i64,
    text: &'a str,
}

/// The statements among `changes`.
pub(super) fn statements<'a>(changes: &Changes<'a>) -> Result<Vec<Ordered<'a>>, StoreError> {
    let first = changes.partition_point(|(key, _)| key.as_bytes() < STATEMENT.as_bytes());
    let are = |key: &Key| key.as_bytes().starts_with(STATEMENT.as_bytes());
    let found = changes[first..].iter().take_while(|(key, _)| are(key)).map(|(key, value)| {
        let odd = || StoreError::Damaged(format!("item {key:?} is no change of a schema"));
        let digits = std::str::from_utf8(&key.as_bytes()[STATEMENT.len()..]).ok();
        let number = digits.and_then(|digits| digits.parse().ok()).ok_or_else(odd)?;
        let text = value.and_then(|value| std::str::from_utf8(value.as_bytes()).ok()).ok_or_else(odd)?;
        Ok(Ordered { number, text })
    });
    found.collect()
}

/// Carries out a statement, unless that has been done.
pub(super) fn carry_out(
    Ordered { number, text }: &Ordered<'_>,
    client: &mut impl GenericClient,
) -> Result<(), Failure> {
    let done = "SELECT statement FROM pares_schema WHERE number = $1";
    match client.query_opt(done, &[number])? {
        Some(row) if row.get::<_, &str>(0) == *text => return Ok(()),
        Some(_) => return Err(in_the_way(text, "another statement has its number here").into()),
        None => {}
    }
    carry_out_one(text, client).map_err(|error| match error {
        SqlError::Again(_) => Failure::Locked,
        SqlError::Store(error) => error.into(),
        SqlError::Refused { why, .. } => in_the_way(text, &why).into(),
    })?;
    let note = "INSERT INTO pares_schema (number, statement) VALUES ($1, $2)";
    Ok(client.execute(note, &[number, text]).map(drop)?)
}

fn in_the_way(statement: &str, why: &str) -> StoreError {
    StoreError::Schema { statement: statement.to_owned(), why: why.to_owned() }
}

/// Tables that participate: their keys and forms before a statement, and their numbers at this server.
type Before = BTreeMap<String, (Table, Option<u32>, u32)>;

fn before(client: &mut impl GenericClient) -> Result<Before, SqlError> {
    let mut tables = Before::new();
    for row in client.query(FILES, &[]).map_err(sql)? {
        let (name, node): (String, Option<u32>) = (row.get(0), row.get(1));
        if node.is_some() {
            tables.insert(name.clone(), (Table::read(client, &name)?, node, row.get(2)));
        }
    }
    Ok(tables)
}

fn carry_out_one(statement: &str, client: &mut impl GenericClient) -> Result<(), SqlError> {
    let (tables, mut others, columns) = (before(client)?, marked(TABLES, client)?, marked(ADDED, client)?);
    client.batch_execute(statement).map_err(sql)?;
    client.batch_execute(FORM).map_err(sql)?;
    let tables = called_now(tables, client)?;
    others.extend(tables.keys().map(|name| (name.clone(), false)));
    for row in client.query(FILES, &[]).map_err(sql)? {
        let (name, node): (String, Option<u32>) = (row.get(0), row.get(1));
        match tables.get(&name) {
            Some((old, old_node, _)) if node.is_some() => follow(old, *old_node == node, client)?,
            _ => forget(&name, client)?,
        }
    }
    let new = marked(TABLES, client)?.into_iter().filter(|(name, _)| !others.contains_key(name));
    for (name, is_sequence) in new {
        if is_sequence {
            return Err(unlike(format!(
                "{name} would be a separate sequence at each site: use other keys, such as uuid DEFAULT gen_random_uuid()"
            )));
        }
        take_part(&Table::read(client, &name)?, client)?;
    }
    check(&columns, client)
}

/// The same tables by the names that they have behind the statement. What is kept under another one is from now on kept under this.
fn called_now(tables: Before, client: &mut impl GenericClient) -> Result<Before, SqlError> {
    let mut called = Before::new();
    for (was, (mut table, node, number)) in tables {
        let now = client.query_opt(NAME, &[&number]).map_err(sql)?;
        if let Some(row) = now.filter(|row| row.get::<_, &str>(0) != was) {
            if row.get(1) {
                return Err(unlike(format!(
                    "rows with a regclass or regtype may contain {was}, and could not follow a new name: create another table and move the rows"
                )));
            }
            table.name = row.get(0);
            rename(&was, &table.name, client)?;
        }
        called.insert(table.name.clone(), (table, node, number));
    }
    Ok(called)
}

/// A table has another name: so have its rows' items.
fn rename(was: &str, now: &str, client: &mut impl GenericClient) -> Result<(), SqlError> {
    for kind in [ROW, DELTA] {
        let [old, new] = [was, now].map(|name| format!("{kind}{name}\0").into_bytes());
        let to = KeyRange::prefix(&old).to.expect("a prefix that ends with 0 has a successor");
        let renamed = "UPDATE pares_items SET key = $3 || substring(key FROM length($1) + 1) WHERE key >= $1 AND key < $2";
        client.execute(renamed, &[&old, &to.as_bytes(), &new]).map_err(sql)?;
    }
    client.execute("UPDATE pares_tables SET name = $2 WHERE name = $1", &[&was, &now]).map_err(sql)?;
    take_part(&Table::read(client, now)?, client)
}

/// Whether all is captured as before, and rows are at every site what they are here. `columns` are those that were added before.
fn check(columns: &BTreeMap<String, bool>, client: &mut impl GenericClient) -> Result<(), SqlError> {
    if let Some(row) = client.query(UNCAPTURED, &[]).map_err(sql)?.first() {
        return Err(unlike(format!(
            "{} would no longer be captured: keep its triggers",
            row.get::<_, String>(0)
        )));
    }
    let mut added = marked(ADDED, client)?.into_iter();
    match added.find(|(name, is_computed)| *is_computed && !columns.contains_key(name)) {
        Some((column, _)) => Err(unlike(format!(
            "existing rows would get a computed value in {column}: add the column without a default, then set one"
        ))),
        None => Ok(()),
    }
}

/// Names, each with what the query says of it.
fn marked(query: &str, client: &mut impl GenericClient) -> Result<BTreeMap<String, bool>, SqlError> {
    let rows = client.query(query, &[]).map_err(sql)?;
    Ok(rows.iter().map(|row| (row.get(0), row.get(1))).collect())
}

/// A table that was there before: what is captured of it, and its items, are as it is now.
fn follow(old: &Table, is_same_file: bool, client: &mut impl GenericClient) -> Result<(), SqlError> {
    let table = Table::read(client, &old.name)?;
    if *old == table && is_same_file {
        return Ok(());
    }
    let filled = format!("SELECT EXISTS (SELECT FROM {})", table.name);
    let is_filled: bool = client.query_one(&filled, &[]).map_err(sql)?.get(0);
    let is_called_otherwise = old.key != table.key || old.key_forms != table.key_forms;
    if is_filled && (!is_same_file || is_called_otherwise) {
        return Err(unlike(format!(
            "it would rewrite or rename the rows of {}: create another table and move them with INSERT and DELETE",
            table.name
        )));
    }
    let ends = |delta: &&Delta| !table.deltas.iter().any(|new| new.is(delta)) && table.has(&delta.column);
    if let Some(delta) = old.deltas.iter().find(ends) {
        return Err(unlike(format!(
            "column {} is updated by addition, and its sums are stored outside its rows: create another column and move the values there",
            delta.column
        )));
    }
    take_part(&table, client)?;
    client.batch_execute(&refresh(&table, old)).map_err(sql)
}

/// SQL that makes rows' items as the rows are.
fn refresh(table: &Table, old: &Table) -> String {
    let key = format!("{}::text", table.key_of("r"));
    format!(
        "INSERT INTO pares_items (key, value) SELECT {item}, '\\x00'::bytea || convert_to(({row})::text, 'UTF8')
         FROM {name} r LEFT JOIN pares_items i ON i.key = {item}
         ON CONFLICT (key) DO UPDATE SET value = excluded.value WHERE pares_items.value <> excluded.value",
        item = row_item(&table.name, &key),
        row = whole_row(table, old, "r", "i"),
        name = table.name
    )
}

/// A table that is gone: its rows' items go, too.
fn forget(name: &str, client: &mut impl GenericClient) -> Result<(), SqlError> {
    for kind in [ROW, DELTA] {
        let KeyRange { from, to } = KeyRange::prefix(format!("{kind}{name}\0").as_bytes());
        let to = to.expect("a prefix that ends with 0 has a successor");
        let gone = "DELETE FROM pares_items WHERE key >= $1 AND key < $2";
        client.execute(gone, &[&from.as_bytes(), &to.as_bytes()]).map_err(sql)?;
    }
    client.execute("DELETE FROM pares_tables WHERE name = $1", &[&name]).map(drop).map_err(sql)
}
