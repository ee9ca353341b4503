//! What a transaction did to tables, as changes of items.
//!
//! Triggers [note](super::notes) which rows a statement has touched: only their primary keys. How the
//! rows *are* is read once at the end, and how they *were* after going back to the beginning, so that it does not matter
//! in which order triggers, cascades and repeated changes came about.
//!
//! A transaction that has written to such a table can never commit at its server: what only this site has, no other gets. So whatever hides a
//! COMMIT from those who watch for it, there is an error and no row that differs between sites.

use std::collections::{BTreeMap, BTreeSet};

use pares_wice::{Change, Key, TRANSACTION_BYTES_MAX, Value, Write};
use postgres::GenericClient;

use super::deltas::literal;
use super::idle::make;
use super::tables::{LOCK, REFERENCE, ROW, SCHEMA, Table, UNIQUE, item, object};
use super::{Options, SqlError, failed, notes, rehearsal, sql};
use crate::error::StoreError;

/// How values are written while they are captured. A primary key that is a time would otherwise be called by another name in a
/// session in another time zone, and two changes of that row would not be seen to conflict.
pub const FORM: &str = "
    SELECT pg_catalog.set_config('TimeZone', 'UTC', true), pg_catalog.set_config('DateStyle', 'ISO', true),
        pg_catalog.set_config('IntervalStyle', 'postgres', true), pg_catalog.set_config('extra_float_digits', '1', true),
        pg_catalog.set_config('lc_monetary', 'C', true), pg_catalog.set_config('bytea_output', 'hex', true), pg_catalog.set_config('client_encoding', 'UTF8', true)";

/// Checks what constraints put off until commit.
pub const CHECK: &str = "SET CONSTRAINTS ALL IMMEDIATE";

/// The first statement of a transaction that is to be captured. Who could say it again would have [`BACK`] stop in the middle.
pub const FIRST: &str = "SAVEPOINT pares";

/// Goes back to [`FIRST`]. [`FORM`] is to be set again.
pub const BACK: &str = "ROLLBACK TO SAVEPOINT pares";

/// Bytes of rows that are kept until it is known how they were, of which only what was added to them is written.
const OPEN_BYTES_MAX: usize = 64 << 20;

/// Makes tables participate: from now on sessions capture what is written to them. Every site's tables must be the same;
/// they begin empty, and are filled through sessions or by a state transfer. Sites write these tables through sessions
/// and by nothing else.
///
/// # Errors
/// [`StoreError::Table`] if a table cannot participate, and why.
pub fn capture(options: &Options, tables: &[&str]) -> Result<(), StoreError> {
    let mut client = options.connect()?;
    let mut transaction = client.transaction().map_err(failed)?;
    make(&mut transaction, options)?;
    for name in tables {
        let table = Table::read(&mut transaction, name)?;
        take_part(&table, &mut transaction).map_err(|error| match error {
            SqlError::Store(error) => error,
            SqlError::Again(why) | SqlError::Refused { why, .. } => StoreError::Io(why),
        })?;
    }
    transaction.commit().map_err(failed)
}

/// Makes a table participate, in the transaction of `client`.
pub(super) fn take_part(table: &Table, client: &mut impl GenericClient) -> Result<(), SqlError> {
    let known: bool = client
        .query_one("SELECT EXISTS (SELECT FROM pares_tables WHERE name = $1)", &[&table.name])
        .map_err(sql)?
        .get(0);
    let filled = format!("SELECT EXISTS (SELECT FROM {})", table.name);
    if !known && client.query_one(&filled, &[]).map_err(sql)?.get(0) {
        let why = "it already has rows: begin with an empty table and insert them through a session";
        return Err(StoreError::Table { name: table.name.clone(), why: why.into() }.into());
    }
    let schema: String = client.query_one("SELECT quote_ident(current_schema())", &[]).map_err(sql)?.get(0);
    client.batch_execute(&notes::triggers(table, &schema)).map_err(sql)?;
    client.batch_execute(&rehearsal::function(table, &schema)).map_err(sql)?;
    let add = "INSERT INTO pares_tables (name) VALUES ($1) ON CONFLICT DO NOTHING";
    client.execute(add, &[&table.name]).map(drop).map_err(sql)
}

/// A table that participates, and how to ask for its rows.
#[derive(Clone, Debug)]
pub struct Captured {
    table: Table,
    images: String,
}

impl Captured {
    pub(super) fn new(table: Table) -> Self {
        Self { images: images(&table), table }
    }

    /// Its name, quoted and with its schema, as triggers note it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.table.name
    }

    /// A query for the rows that were touched, as they are in the asking transaction: `$1` are their keys, as [`super::CAPTURED`] gives them. All columns are text.
    #[must_use]
    pub fn images(&self) -> &str {
        &self.images
    }

    /// Whether foreign keys lead to it or from it: to check them locks rows, too.
    #[must_use]
    pub fn refers(&self) -> bool {
        self.table.is_referred_to || !self.table.references.is_empty()
    }

    /// Whether rows as they were before have to be asked for, too.
    #[must_use]
    pub fn needs_before(&self) -> bool {
        !self.table.unique.is_empty() || !self.table.deltas.is_empty()
    }
}

/// SQL for the rows of `table` that were touched, as they are now: primary key, row, unique values, references; what does
/// not change by addition, and each column that does. Aliases
/// are such as no application's column is called, which would come first.
fn images(table: &Table) -> String {
    let mut columns = vec![
        format!("{}::text", table.key_of("pares_key")),
        format!("({})::text", table.row_of("pares_row")),
    ];
    for (_, unique) in &table.unique {
        let values = unique.iter().map(|column| format!("pares_row.{column}")).collect::<Vec<_>>().join(", ");
        columns.push(format!("CASE WHEN num_nulls({values}) = 0 THEN jsonb_build_array({values})::text END"));
    }
    for (_, pairs) in &table.references {
        let values = pairs.iter().map(|(_, ours)| format!("pares_row.{ours}")).collect::<Vec<_>>().join(", ");
        let key = object(pairs.iter().map(|(theirs, ours)| (theirs.as_str(), ours.as_str())), "pares_row");
        columns.push(format!("CASE WHEN num_nulls({values}) = 0 THEN {key}::text END"));
    }
    if !table.deltas.is_empty() {
        let names = table.deltas.iter().map(|delta| literal(&delta.column)).collect::<Vec<_>>().join(", ");
        columns.push(format!("(({}) - ARRAY[{names}])::text", table.row_of("pares_row")));
        columns.extend(table.deltas.iter().map(|delta| format!("pares_row.{}::text", delta.column)));
    }
    let keys = table.key.iter().map(|column| format!("pares_named.{column}")).collect::<Vec<_>>().join(", ");
    format!(
        "SELECT {columns} FROM (
            SELECT DISTINCT {keys} FROM jsonb_populate_recordset(NULL::{name}, $1::text::jsonb) pares_named) pares_key
        LEFT JOIN {name} pares_row USING ({key})",
        columns = columns.join(", "),
        name = table.name,
        key = table.key.join(", "),
    )
}

/// The item that everyone who writes to a table changes: who has read that table reads it.
#[must_use]
pub fn table_item(name: &str) -> Key {
    item(LOCK, name, "")
}

/// What a transaction does to items. What is said later of the same item holds only where nothing was said before.
#[derive(Debug, Default)]
pub struct Writes {
    changes: BTreeMap<Key, Change>,
    /// Of `changes`, as [`pares_wice::Transaction::check`] counts them.
    bytes: usize,
    tables: BTreeSet<String>,
    /// Rows of tables with columns that change by addition: what was done to them shows when it is known how they were.
    open: BTreeMap<Key, Vec<Option<String>>>,
    open_bytes: usize,
}

/// A row that [`Captured::images`] gave.
pub type Image<'a> = [Option<&'a str>];

impl Writes {
    /// A row as the transaction leaves it.
    ///
    /// # Panics
    /// If the row is none of that query.
    pub fn after(&mut self, captured: &Captured, image: &Image<'_>) {
        let table = &captured.table;
        self.tables.insert(table.name.clone());
        if table.deltas.is_empty() {
            return self.put(table, image);
        }
        let values: Vec<_> = image.iter().map(|value| value.map(str::to_owned)).collect();
        self.open_bytes += image.iter().flatten().map(|value| value.len()).sum::<usize>();
        self.open.insert(item(ROW, &table.name, key_of(image)), values);
    }

    /// Whether it can be no transaction any more, or takes more memory than one may.
    #[must_use]
    pub fn is_too_large(&self) -> bool {
        self.bytes > TRANSACTION_BYTES_MAX || self.open_bytes > OPEN_BYTES_MAX
    }

    fn change(&mut self, key: Key, change: Change) {
        self.bytes += bytes_of(&key, &change);
        if let Some(old) = self.changes.insert(key.clone(), change) {
            self.bytes -= bytes_of(&key, &old);
        }
    }

    /// The same, unless something was said of that item.
    fn change_too(&mut self, key: Key, change: Change) {
        if !self.changes.contains_key(&key) {
            self.change(key, change);
        }
    }

    /// The whole row is another.
    fn put(&mut self, table: &Table, image: &Image<'_>) {
        let key = key_of(image);
        for delta in &table.deltas {
            self.change(delta.item(&table.name, key), Change::Delete);
        }
        let change = image[1].map_or(Change::Delete, |row| Change::Put(Value::from(row)));
        self.change(item(ROW, &table.name, key), change);
        if image[1].is_none() && table.is_referred_to {
            self.change(item(REFERENCE, &table.name, key), Change::Delete);
        }
        for (name, values) in unique(table, image) {
            self.change(item(UNIQUE, name, values), Change::Put(Value::from(key)));
        }
        let references = table.references.iter().zip(&image[2 + table.unique.len()..]);
        for ((to, _), referred) in references {
            if let Some(referred) = referred {
                self.change_too(item(REFERENCE, to, referred), Change::Add(0));
            }
        }
    }

    /// A row as it was: unique values that it had and nobody has now are free.
    ///
    /// # Panics
    /// As [`Writes::after`].
    pub fn before(&mut self, captured: &Captured, image: &Image<'_>) {
        let table = &captured.table;
        let name = item(ROW, &table.name, key_of(image));
        if let Some(after) = self.open.remove(&name) {
            let after = image_of(&after);
            match additions(table, image, &after) {
                Some(additions) => {
                    return additions.into_iter().for_each(|(key, change)| self.change(key, change));
                }
                None => self.put(table, &after),
            }
        }
        for (name, values) in unique(&captured.table, image) {
            self.change_too(item(UNIQUE, name, values), Change::Delete);
        }
    }

    /// It has locked rows of a table (`SELECT ... FOR UPDATE`). Which, the server does not tell: it conflicts with everyone who
    /// writes to that table at the same time.
    pub fn lock(&mut self, table: &str) {
        self.change(table_item(table), Change::Put(Value::counter(0)));
    }

    /// Keys and rows that are known to have been touched, by table, each as the text of an array: what is to be [rehearsed](super::rehearsal()) before
    /// the transaction goes back.
    #[must_use]
    pub fn rows(&self) -> BTreeMap<&str, [String; 2]> {
        let of_open = self.open.iter().map(|(item, image)| (item, image[1].as_deref()));
        let of_changes = self.changes.iter().map(|(item, change)| match change {
            Change::Put(row) => (item, std::str::from_utf8(row.as_bytes()).ok()),
            _ => (item, None),
        });
        let mut tables: BTreeMap<&str, Vec<(&str, Option<&str>)>> = BTreeMap::new();
        for (item, row) in of_open.chain(of_changes) {
            let name =
                item.as_bytes().strip_prefix(ROW.as_bytes()).and_then(|name| std::str::from_utf8(name).ok());
            if let Some((table, key)) = name.and_then(|name| name.split_once('\0')) {
                tables.entry(table).or_default().push((key, row));
            }
        }
        let arrays = tables.into_iter().map(|(table, rows)| {
            let keys = rehearsal::array(rows.iter().map(|(key, _)| *key));
            (table, [keys, rehearsal::array(rows.iter().filter_map(|(_, row)| *row))])
        });
        arrays.collect()
    }

    /// All changes, by item. They are as the schema now is, so they conflict with whatever changes that.
    /// None if it was not said of a row how it was though that is [needed](Captured::needs_before): the same query gives the same keys before and after.
    #[must_use]
    pub fn into_writes(mut self) -> Option<Vec<Write>> {
        if !self.open.is_empty() {
            return None;
        }
        for table in std::mem::take(&mut self.tables) {
            self.changes.entry(table_item(&table)).or_insert(Change::Add(0));
        }
        if !self.changes.is_empty() {
            self.changes.insert(Key::from(SCHEMA), Change::Add(0));
        }
        Some(self.changes.into_iter().map(|(key, change)| Write { key, change }).collect())
    }
}

/// What was added to a row, if nothing else was done to it. Who writes a row as it was wants to hold it, and adds nothing.
fn additions(table: &Table, before: &Image<'_>, after: &Image<'_>) -> Option<Vec<(Key, Change)>> {
    let first = 2 + table.unique.len() + table.references.len();
    let (rest_before, rest_after) = (before[first]?, after[first]?);
    if rest_before != rest_after {
        return None;
    }
    let mut additions = Vec::new();
    for (at, delta) in (first + 1..).zip(&table.deltas) {
        match delta.between(before[at]?, after[at]?)? {
            0 => {}
            added => additions.push((delta.item(&table.name, key_of(after)), Change::Add(added))),
        }
    }
    Some(additions).filter(|additions| !additions.is_empty())
}

fn bytes_of(key: &Key, change: &Change) -> usize {
    let value = if let Change::Put(value) = change { value.as_bytes().len() } else { 0 };
    key.as_bytes().len() + value
}

fn key_of<'a>(image: &Image<'a>) -> &'a str {
    image[0].expect("a primary key is never null")
}

fn image_of(values: &[Option<String>]) -> Vec<Option<&str>> {
    values.iter().map(Option::as_deref).collect()
}

/// Names of unique constraints and the values that a row has there.
fn unique<'a>(table: &'a Table, image: &'a Image<'_>) -> impl Iterator<Item = (&'a str, &'a str)> {
    let constraints = table.unique.iter().zip(&image[2..]);
    constraints.filter_map(|((name, _), values)| Some((name.as_str(), (*values)?)))
}
