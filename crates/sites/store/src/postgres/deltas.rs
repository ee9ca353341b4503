//! Columns that change by addition: additions commute, so two sites add to one row at the same time.
//!
//! A row is one item, and two that put it conflict, though one only adds 3 and the other 5 to a balance. So a column whose comment is `pares: delta` has a
//! counter beside the row's item, and what is shown is their sum:
//!
//! ```text
//!   sql/row/public.account \0 {"id": 7}          -> {"id": 7, "owner": 3, "balance": 100.00}     as it was when the whole row was last written
//!   sql/delta/public.account \0 {"id": 7} \0 3   -> a counter of 250                             added since, in hundredths; 3 is the column's number
//!   account                                      :  7, 3, 102.50
//! ```
//! A transaction that changes nothing else of a row adds; any other puts the row and deletes its counters, so these two conflict.
//!
//! Nobody sees the sum before it is applied, and it must fit there. So an addition is one only while the column is at most half full and while the addition is so
//! small that as many as can be concurrent do not fill the other half. What is larger is written as a row is, and conflicts.

use std::collections::{BTreeMap, BTreeSet};

use pares_wice::{INDEX_VERSIONS_MAX, Key, Value};
use postgres::GenericClient;

use super::failed;
use super::tables::{Failure, ROW, Table, item, table_and_key};
use crate::engine::Changes;
use crate::error::StoreError;

pub(super) const DELTA: &str = "sql/delta/";

/// Additions that can come between what a transaction reads and its own version: certification remembers so many versions at most, and refuses who has read an
/// older one.
const CONCURRENT: i128 = INDEX_VERSIONS_MAX as i128;
/// Longest number that is counted, digits.
const DIGITS_MAX: u32 = 36;

/// A column that changes by addition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Delta {
    /// Quoted.
    pub(super) column: String,
    /// The column's, which no other ever has.
    number: i16,
    /// Digits behind the point.
    scale: usize,
    /// The largest number that fits, in units of the last digit.
    most: i128,
}

/// Columns that are to be such: name, number, type, its modifier, and whether a constraint, an index or an expression watches their values.
const DELTAS: &str = "
    SELECT quote_ident(a.attname), a.attnum, a.atttypid::regtype::text, a.atttypmod,
        a.attgenerated <> '' OR a.attidentity <> ''
        OR EXISTS (SELECT FROM pg_constraint WHERE conrelid = a.attrelid AND contype <> 'n' AND a.attnum = ANY (conkey))
        OR EXISTS (SELECT FROM pg_index WHERE indrelid = a.attrelid AND indisunique AND a.attnum = ANY (indkey))
    FROM pg_attribute a WHERE a.attrelid = to_regclass($1) AND a.attnum > 0 AND NOT a.attisdropped
        AND col_description(a.attrelid, a.attnum) = 'pares: delta' ORDER BY a.attnum";

/// The columns of a table that change by addition.
pub(super) fn read(client: &mut impl GenericClient, table: &str) -> Result<Vec<Delta>, StoreError> {
    let rows = client.query(DELTAS, &[&table]).map_err(failed)?;
    let deltas = rows.iter().map(|row| {
        let (column, number): (String, i16) = (row.get(0), row.get(1));
        let unfit = |why| StoreError::Table { name: table.into(), why: format!("column {column} {why}") };
        if row.get(4) {
            let why = "cannot be updated by addition: a key, CHECK or other constraint restricts its values, and two concurrent additions could break it together";
            return Err(unfit(why));
        }
        let (scale, most) = room(row.get(2), row.get(3)).ok_or_else(|| {
            unfit("cannot be updated by addition: make it an integer, a bigint, or a numeric(p, s) of at most 36 digits")
        })?;
        Ok(Delta { column, number, scale, most })
    });
    deltas.collect()
}

/// Digits behind the point of a type, and its largest number in units of the last of them.
fn room(kind: &str, modifier: i32) -> Option<(usize, i128)> {
    let modifier = u32::try_from(modifier - 4).ok();
    match (kind, modifier) {
        ("integer", _) => Some((0, i32::MAX.into())),
        ("bigint", _) => Some((0, i64::MAX.into())),
        ("numeric", Some(modifier)) => {
            let (digits, scale) = (modifier >> 16, modifier & 0x7ff);
            let fits = digits <= DIGITS_MAX && scale <= digits;
            fits.then(|| (scale as usize, 10_i128.pow(digits) - 1))
        }
        _ => None,
    }
}

impl Delta {
    /// The counter's name in the row of that key.
    pub(super) fn item(&self, table: &str, key: &str) -> Key {
        item(DELTA, table, &format!("{key}\0{}", self.number))
    }

    /// Whether it is the same column as `other`, whatever that is called now.
    pub(super) fn is(&self, other: &Self) -> bool {
        self.number == other.number
    }

    /// What was added between two values; none if it is more than may be added unseen, or if they are no numbers.
    pub(super) fn between(&self, before: &str, after: &str) -> Option<i64> {
        let (before, after) = (scaled(before, self.scale)?, scaled(after, self.scale)?);
        let added = after - before;
        let fits = before.abs() <= self.most / 2 && added.abs() <= self.most / 2 / CONCURRENT;
        i64::try_from(added).ok().filter(|_| fits)
    }
}

/// A number as the server writes it, in units of its last digit.
fn scaled(text: &str, scale: usize) -> Option<i128> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    if part.len() > scale {
        return None;
    }
    format!("{whole}{part:0<scale$}").parse().ok()
}

/// The same, written for the server.
fn written(units: i128, scale: usize) -> String {
    let digits = format!("{:0>width$}", units.unsigned_abs(), width = scale + 1);
    let (whole, part) = digits.split_at(digits.len() - scale);
    let sign = if units < 0 { "-" } else { "" };
    if scale == 0 { format!("{sign}{whole}") } else { format!("{sign}{whole}.{part}") }
}

/// Whether a change concerns what was added to rows.
pub(super) fn is_delta(key: &Key) -> bool {
    key.as_bytes().starts_with(DELTA.as_bytes())
}

/// Rows whose columns may be another sum than they were, by table: what was added to, and what was put beside what may have been there before.
fn concerned<'a>(changes: &Changes<'a>) -> Result<BTreeMap<&'a str, BTreeSet<&'a str>>, StoreError> {
    let mut rows: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (key, _) in changes.iter().filter(|(_, value)| value.is_some()) {
        let kind = if is_delta(key) { DELTA } else { ROW };
        if let Some(name) = key.as_bytes().strip_prefix(kind.as_bytes()) {
            let (table, row) = table_and_key(key, name)?;
            let row = if kind == DELTA { row.rsplit_once('\0').map_or(row, |(row, _)| row) } else { row };
            rows.entry(table).or_default().insert(row);
        }
    }
    Ok(rows)
}

/// Makes columns the sums that they are, once all items are as `changes` leave them.
pub(super) fn write_sums(
    changes: &Changes<'_>,
    known: &mut BTreeMap<String, Table>,
    client: &mut impl GenericClient,
) -> Result<(), Failure> {
    for (name, rows) in concerned(changes)? {
        let table = Table::known(known, name, client)?;
        for delta in &table.deltas {
            let (mut keys, mut sums) = (Vec::new(), Vec::new());
            for (row, sum) in sums_of(delta, name, &rows, client)? {
                keys.push(row);
                sums.push(written(sum, delta.scale));
            }
            if !keys.is_empty() {
                client.execute(&shown(table, delta), &[&keys, &sums])?;
            }
        }
    }
    Ok(())
}

/// What was added to a column in these rows, where anything was.
fn sums_of<'a>(
    delta: &Delta,
    table: &str,
    rows: &BTreeSet<&'a str>,
    client: &mut impl GenericClient,
) -> Result<Vec<(&'a str, i128)>, Failure> {
    let items: BTreeMap<Key, &str> = rows.iter().map(|row| (delta.item(table, row), *row)).collect();
    let names: Vec<&[u8]> = items.keys().map(Key::as_bytes).collect();
    let found = client.query("SELECT key, value FROM pares_items WHERE key = ANY ($1)", &[&names])?;
    let sums = found.iter().map(|row| {
        let key = Key::new(row.get::<_, &[u8]>(0));
        let sum = Value::from_encoded(row.get(1)).and_then(|value| value.as_counter());
        let sum = sum.ok_or_else(|| StoreError::Damaged(format!("item {key:?} is no counter")))?;
        Ok((items[&key], sum))
    });
    sums.collect::<Result<_, StoreError>>().map_err(Failure::from)
}

/// SQL that shows a column's sums: `$1` are rows' keys, `$2` what was added.
fn shown(table: &Table, delta: &Delta) -> String {
    let same = table.key.iter().map(|column| format!("pares_row.{column} = pares_key.{column}"));
    format!(
        "UPDATE {name} pares_row SET {column} = (({value}) ->> {literal})::numeric + pares_sum::numeric
         FROM unnest($1::text[], $2::text[]) pares_added (pares_text, pares_sum)
         JOIN pares_items pares_item ON pares_item.key = {item},
         LATERAL jsonb_populate_record(NULL::{name}, pares_text::jsonb) pares_key WHERE {same}",
        name = table.name,
        column = delta.column,
        value = row_of("pares_item"),
        literal = literal(&delta.column),
        item = row_item(&table.name, "pares_text"),
        same = same.collect::<Vec<_>>().join(" AND ")
    )
}

/// SQL for a row as its item has it.
fn row_of(alias: &str) -> String {
    format!("convert_from(substr({alias}.value, 2), 'UTF8')::jsonb")
}

/// SQL for the name of the item of a row; `key` is SQL for its key, as text.
pub(super) fn row_item(table: &str, key: &str) -> String {
    let prefix = format!("{ROW}{table}").replace('\'', "''");
    format!("convert_to('{prefix}', 'UTF8') || '\\x00'::bytea || convert_to({key}, 'UTF8')")
}

/// A column's name in a string.
pub(super) fn literal(column: &str) -> String {
    format!("'{}'", super::tables::unquoted(column).replace('\'', "''"))
}

/// SQL for row `alias` as its item is to be, where `item` is the one that it has: without what was added since. `old` are the columns as they were.
pub(super) fn whole_row(table: &Table, old: &Table, alias: &str, item: &str) -> String {
    let mut row = table.row_of(alias);
    for delta in &table.deltas {
        if let Some(known) = old.deltas.iter().find(|known| known.is(delta)) {
            let (now, then, kept) = (literal(&delta.column), literal(&known.column), row_of(item));
            row = format!(
                "({row}) || jsonb_build_object({now}, coalesce({kept} -> {then}, to_jsonb({alias}.{})))",
                delta.column
            );
        }
    }
    row
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_counted_in_units_of_their_last_digit() {
        for (text, scale, units) in [
            ("0", 0, 0),
            ("-17", 0, -17),
            ("100.25", 2, 10_025),
            ("-0.05", 2, -5),
            ("7", 2, 700),
            ("0.00", 2, 0),
        ] {
            assert_eq!(scaled(text, scale), Some(units), "{text}");
            assert_eq!(scaled(&written(units, scale), scale), Some(units), "{text}");
        }
        assert_eq!(written(-5, 2), "-0.05");
        for (text, scale) in [("NaN", 2), ("1.234", 2), ("", 0), ("Infinity", 2)] {
            assert_eq!(scaled(text, scale), None, "{text}");
        }
    }

    #[test]
    fn as_many_as_can_be_concurrent_fit() {
        let most = i32::MAX.into();
        let delta = Delta { column: "a".into(), number: 1, scale: 0, most };
        let added = |before: i32, after: i32| delta.between(&before.to_string(), &after.to_string());
        assert_eq!((added(0, 1_023), added(0, 1_024)), (Some(1_023), None));
        assert_eq!(
            (added(i32::MAX / 2, i32::MAX / 2 + 1), added(i32::MAX / 2 + 1, i32::MAX / 2)),
            (Some(1), None)
        );
        assert!(most / 2 + 1_023 * CONCURRENT <= most);
        assert_eq!(room("numeric", (12 << 16 | 2) + 4), Some((2, 999_999_999_999)));
        assert_eq!([room("numeric", -1), room("smallint", -1), room("text", -1)], [None; 3]);
    }
}
