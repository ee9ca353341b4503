//! Rows of an application's tables as items, and items as rows.
//!
//! ```text
//!   sql/row/public.account \0 {"id": 7}              -> {"id": 7, "email": "a@b", "owner": 3}    the row
//!   sql/delta/public.account \0 {"id": 7} \0 3    -> a counter                                  added to a column since ([`super::deltas`])
//!   sql/unique/public.account_email_key \0 ["a@b"]   -> {"id": 7}                                who has it
//!   sql/reference/public.person \0 {"id": 3}         -> a counter of 0                           a row refers to it
//!   sql/table/public.account \0                      -> a counter of 0                           a transaction writes to it, or locks rows of it
//!   sql/schema                                       -> a counter of 0                           a transaction writes to tables, or changes them
//!   sql/turn                                         -> a version                                a change of the schema goes first ([`super::turns`])
//!   sql/ddl/00000000000000000007                     -> CREATE TABLE ...                         a change of the schema
//! ```
//! Certification compares items, so rows alone are not enough: two sites could each insert a row with the same e-mail
//! address under different primary keys, both pass, and no site could apply the second; or one could delete what the
//! other begins to refer to. So what a constraint watches is an item too: a unique value is written by a transaction that takes or
//! frees it, and a row that is referred to is *added to* by one that refers to it, which does not conflict with others
//! that do so but with one that deletes it.
//!
//! Keys are written by the server (`jsonb`, which has one form for each value), so every site of one PostgreSQL version names
//! an item alike.

use std::collections::BTreeMap;

use pares_wice::{Key, KeyRange};
use postgres::GenericClient;
use postgres::error::SqlState;
use sha2::{Digest, Sha256};

use super::deltas::{self, Delta};
use super::failed;
use super::texts::{self, BASES, Text};
use crate::engine::Changes;
use crate::error::StoreError;

pub(super) const ROW: &str = "sql/row/";
pub(super) use super::deltas::DELTA;
pub(super) const UNIQUE: &str = "sql/unique/";
pub(super) const REFERENCE: &str = "sql/reference/";
pub(super) const LOCK: &str = "sql/table/";
pub(super) const SCHEMA: &str = "sql/schema";
pub(super) use crate::reserved::STATEMENT;

/// What the catalogue says of a table. Names are quoted where SQL needs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Table {
    /// With its schema.
    pub(super) name: String,
    /// Columns that can be written.
    columns: Vec<String>,
    /// Those of the primary key.
    pub(super) key: Vec<String>,
    /// Their types, as far as the form of their texts goes: numbers of the server's.
    pub(super) key_forms: Vec<u32>,
    /// Other unique constraints: name and columns.
    pub(super) unique: Vec<(String, Vec<String>)>,
    /// Foreign keys: the table referred to, and column by column its primary key's name and the column here.
    pub(super) references: Vec<(String, Vec<(String, String)>)>,
    /// Whether others refer to it.
    pub(super) is_referred_to: bool,
    /// Columns that change by addition.
    pub(super) deltas: Vec<Delta>,
    /// Columns with values that are kept as texts.
    texts: Vec<Text>,
}

const TABLE: &str = "
    SELECT format('%I.%I', n.nspname, c.relname),
        ARRAY(SELECT quote_ident(attname) FROM pg_attribute
              WHERE attrelid = c.oid AND attnum > 0 AND NOT attisdropped AND attgenerated = '' ORDER BY attnum),
        EXISTS (SELECT FROM pg_constraint WHERE confrelid = c.oid AND contype = 'f')
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.oid = to_regclass($1) AND c.relkind = 'r' AND c.relpersistence = 'p' AND NOT c.relrowsecurity
        AND NOT EXISTS (SELECT FROM pg_inherits WHERE c.oid IN (inhrelid, inhparent))";

/// `plain` is whether the index says all about which values are unique.
const INDEXES: &str = "
    SELECT i.indisprimary, format('%I.%I', n.nspname, c.relname),
        i.indexprs IS NULL AND i.indpred IS NULL AS plain,
        ARRAY(SELECT quote_ident(a.attname) FROM unnest(i.indkey[0:i.indnkeyatts - 1]) WITH ORDINALITY k(number, place)
              JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.number ORDER BY k.place),
        ARRAY(SELECT CASE WHEN b.base = 'varchar'::regtype THEN 'text'::regtype ELSE b.base END::oid
              FROM unnest(i.indkey[0:i.indnkeyatts - 1]) WITH ORDINALITY k(number, place)
              JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.number
              JOIN bases b ON b.kind = a.atttypid ORDER BY k.place)
    FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE i.indrelid = to_regclass($1) AND i.indisunique ORDER BY c.relname";

/// `to_key` is whether what is referred to is a primary key.
const REFERENCES: &str = "
    SELECT format('%I.%I', n.nspname, c.relname),
        EXISTS (SELECT FROM pg_index i WHERE i.indexrelid = f.conindid AND i.indisprimary) AS to_key,
        ARRAY(SELECT quote_ident(a.attname) FROM unnest(f.confkey) WITH ORDINALITY k(number, place)
              JOIN pg_attribute a ON a.attrelid = f.confrelid AND a.attnum = k.number ORDER BY k.place),
        ARRAY(SELECT quote_ident(a.attname) FROM unnest(f.conkey) WITH ORDINALITY k(number, place)
              JOIN pg_attribute a ON a.attrelid = f.conrelid AND a.attnum = k.number ORDER BY k.place)
    FROM pg_constraint f JOIN pg_class c ON c.oid = f.confrelid JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE f.conrelid = to_regclass($1) AND f.contype = 'f' ORDER BY f.conname";

fn unfit(name: &str, why: &str) -> StoreError {
    StoreError::Table { name: name.into(), why: why.into() }
}

impl Table {
    /// Reads what the catalogue says of table `name`.
    pub(super) fn read(client: &mut impl GenericClient, name: &str) -> Result<Self, StoreError> {
        let row = client.query_opt(TABLE, &[&name]).map_err(failed)?;
        let row = row.ok_or_else(|| {
            unfit(name, "there is no such ordinary table: create it, identically at every site")
        })?;
        let mut table = Self {
            name: row.get(0),
            columns: row.get(1),
            key: Vec::new(),
            key_forms: Vec::new(),
            unique: Vec::new(),
            references: Vec::new(),
            is_referred_to: row.get(2),
            deltas: Vec::new(),
            texts: Vec::new(),
        };
        table.deltas = deltas::read(client, &table.name)?;
        table.texts = texts::read(client, &table.name)?;
        table.read_indexes(client, name)?;
        table.read_references(client, name)?;
        Ok(table)
    }

    /// Its key, and what else is unique; `name` is what it was called.
    fn read_indexes(&mut self, client: &mut impl GenericClient, name: &str) -> Result<(), StoreError> {
        for row in client.query(&format!("{BASES} {INDEXES}"), &[&self.name]).map_err(failed)? {
            let (is_primary, index, plain): (bool, String, bool) = (row.get(0), row.get(1), row.get(2));
            match (is_primary, plain) {
                (true, _) => (self.key, self.key_forms) = (row.get(3), row.get(4)),
                (false, true) => self.unique.push((index, row.get(3))),
                (false, false) => {
                    let why = format!("unique index {index} is partial or over an expression: drop it");
                    return Err(unfit(name, &why));
                }
            }
        }
        match self.key.is_empty() {
            true => Err(unfit(name, "it has no primary key: add one")),
            false => Ok(()),
        }
    }

    /// What it refers to.
    fn read_references(&mut self, client: &mut impl GenericClient, name: &str) -> Result<(), StoreError> {
        for row in client.query(REFERENCES, &[&self.name]).map_err(failed)? {
            let (to, to_key): (String, bool) = (row.get(0), row.get(1));
            if !to_key {
                let why = format!("it refers to {to} by a key other than the primary key: change that");
                return Err(unfit(name, &why));
            }
            let (theirs, ours): (Vec<String>, Vec<String>) = (row.get(2), row.get(3));
            self.references.push((to, theirs.into_iter().zip(ours).collect()));
        }
        Ok(())
    }

    /// The table of that name, read if it is not known yet.
    pub(super) fn known<'a>(
        known: &'a mut BTreeMap<String, Self>,
        name: &str,
        client: &mut impl GenericClient,
    ) -> Result<&'a Self, StoreError> {
        if !known.contains_key(name) {
            known.insert(name.to_owned(), Self::read(client, name)?);
        }
        Ok(&known[name])
    }

    /// Whether `column` is one that can be written.
    pub(super) fn has(&self, column: &str) -> bool {
        self.columns.iter().any(|own| own == column)
    }

    /// SQL for the primary key of row `alias`, as it stands in an item's name.
    pub(super) fn key_of(&self, alias: &str) -> String {
        object(self.key.iter().map(|column| (column.as_str(), column.as_str())), alias)
    }

    /// SQL for row `alias` as it stands in its item; null if there is no such row.
    pub(super) fn row_of(&self, alias: &str) -> String {
        if self.texts.is_empty() {
            return format!("to_jsonb({alias})");
        }
        let member = texts::member(&self.texts, alias);
        if !self.texts.iter().any(Text::is_all) {
            return format!("(to_jsonb({alias}) || {member})");
        }
        let is_plain = |column: &&String| !self.texts.iter().any(|text| text.is_all() && text.is_of(column));
        let plain = self.columns.iter().filter(is_plain).map(|column| format!("{alias}.{column}"));
        format!(
            "CASE WHEN {alias}.{key} IS NOT NULL THEN (SELECT to_jsonb(pares_plain) FROM (SELECT {plain}) pares_plain) || {member} END",
            key = self.key[0],
            plain = plain.collect::<Vec<_>>().join(", ")
        )
    }
}

/// SQL for an object made of columns of `alias`: (name, column).
pub(super) fn object<'a>(columns: impl Iterator<Item = (&'a str, &'a str)>, alias: &str) -> String {
    let parts: Vec<String> = columns
        .map(|(name, column)| format!("'{}', {alias}.{column}", unquoted(name).replace('\'', "''")))
        .collect();
    format!("jsonb_build_object({})", parts.join(", "))
}

/// The name of a function of one table, of 63 bytes at most, where the server cuts. Of two tables with one name each would lose what is written to it.
pub(super) fn own_function(what: &str, table: &str) -> String {
    let word = table.replace(|c: char| !c.is_ascii_alphanumeric(), "_");
    let digest = Sha256::digest(table);
    let digest = u128::from_be_bytes(*digest.first_chunk().expect("SHA-256 has 32 bytes"));
    format!("pares_{what}_{word:.14}_{digest:032x}")
}

/// SQL for the body of a function, between what no name in it contains.
pub(super) fn quoted(body: &str) -> String {
    let tag =
        (0..).map(|number| format!("$pares_{number}$")).find(|tag| !body.contains(tag)).expect("a free one");
    format!("AS {tag}{body}{tag}")
}

/// An identifier as it is written inside a string.
pub(super) fn unquoted(name: &str) -> String {
    match name.strip_prefix('"').and_then(|name| name.strip_suffix('"')) {
        Some(inner) => inner.replace("\"\"", "\""),
        None => name.to_owned(),
    }
}

/// An item's name: `kind`, a table or constraint, and what the server wrote for the values.
pub(super) fn item(kind: &str, name: &str, values: &str) -> Key {
    Key::new([kind.as_bytes(), name.as_bytes(), &[0], values.as_bytes()].concat())
}

/// Why rows were not written.
#[derive(Debug)]
pub(super) enum Failure {
    /// A session holds one of them, or has stopped the statement: it can be tried again.
    Locked,
    Store(StoreError),
}

impl From<postgres::Error> for Failure {
    fn from(error: postgres::Error) -> Self {
        match error.code() {
            Some(
                &SqlState::LOCK_NOT_AVAILABLE | &SqlState::QUERY_CANCELED | &SqlState::T_R_DEADLOCK_DETECTED,
            ) => Self::Locked,
            _ => Self::Store(failed(error)),
        }
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

/// Whether rows are among `changes`, or what was added to some.
pub(super) fn has_rows(changes: &Changes<'_>) -> bool {
    has(changes, ROW) || has(changes, DELTA)
}

fn has(changes: &Changes<'_>, kind: &str) -> bool {
    let first = changes.partition_point(|(key, _)| key.as_bytes() < kind.as_bytes());
    changes.get(first).is_some_and(|(key, _)| key.as_bytes().starts_with(kind.as_bytes()))
}

/// Rows to be written to one table.
#[derive(Default)]
struct Rows<'a> {
    /// Primary keys of rows that change or go.
    keys: Vec<&'a str>,
    /// Rows as they are from now on.
    rows: Vec<&'a str>,
}

/// Writes the rows among `changes` to their tables. Constraints and triggers do not participate: they did where the rows
/// were made.
pub(super) fn write_rows(
    changes: &Changes<'_>,
    known: &mut BTreeMap<String, Table>,
    client: &mut impl GenericClient,
) -> Result<(), Failure> {
    let rows = rows(changes)?;
    // Every old row goes before any new one comes: a value that is unique may have gone from one row to another.
    for (name, Rows { keys, .. }) in &rows {
        let delete = Table::known(known, name, client)?.delete();
        client.execute(&delete, &[keys])?;
    }
    for (name, Rows { rows, .. }) in &rows {
        client.execute(&known[*name].insert("$1"), &[rows])?;
    }
    Ok(())
}

fn rows<'a>(changes: &Changes<'a>) -> Result<BTreeMap<&'a str, Rows<'a>>, StoreError> {
    let range = KeyRange::prefix(ROW.as_bytes());
    let mut tables: BTreeMap<&str, Rows<'_>> = BTreeMap::new();
    for (key, value) in changes.iter().filter(|(key, _)| range.contains(key)) {
        let (table, row) = table_and_key(key, &key.as_bytes()[ROW.len()..])?;
        let rows = tables.entry(table).or_default();
        rows.keys.push(row);
        if let Some(value) = value {
            rows.rows.push(std::str::from_utf8(value.as_bytes()).map_err(|_| odd(key))?);
        }
    }
    Ok(tables)
}

fn odd(item: &Key) -> StoreError {
    StoreError::Damaged(format!("item {item:?} is no row of a table"))
}

/// What an item's name says behind its kind.
pub(super) fn table_and_key<'a>(item: &Key, name: &'a [u8]) -> Result<(&'a str, &'a str), StoreError> {
    let name = std::str::from_utf8(name).map_err(|_| odd(item))?;
    name.split_once('\0').ok_or_else(|| odd(item))
}

impl Table {
    /// SQL that deletes rows: `$1` are their keys.
    pub(super) fn delete(&self) -> String {
        let same = self.key.iter().map(|column| format!("pares_row.{column} = pares_key.{column}"));
        format!(
            "DELETE FROM {0} pares_row USING unnest($1::text[]) pares_text, \
             jsonb_populate_record(NULL::{0}, pares_text::jsonb) pares_key WHERE {1}",
            self.name,
            same.collect::<Vec<_>>().join(" AND ")
        )
    }

    /// SQL that inserts rows, called `pares_new`: `rows` are they.
    pub(super) fn insert(&self, rows: &str) -> String {
        let columns = self.columns.join(", ");
        let value = |column: &String| match self.texts.iter().find(|text| text.is_of(column)) {
            Some(text) => text.value("pares_row", "pares_text"),
            None => format!("pares_row.{column}"),
        };
        let values = self.columns.iter().map(value).collect::<Vec<_>>();
        format!(
            "INSERT INTO {0} AS pares_new ({columns}) OVERRIDING SYSTEM VALUE SELECT {1} FROM unnest({rows}::text[]) pares_text, \
             jsonb_populate_record(NULL::{0}, pares_text::jsonb) pares_row",
            self.name,
            values.join(", ")
        )
    }
}
