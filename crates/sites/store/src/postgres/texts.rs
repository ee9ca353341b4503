//! Columns whose values are more than `jsonb` keeps of them.
//!
//! A row's item is `jsonb`, and most values come back from it as they were. Others do not: `json` is its text, spaces and order of names included; a `jsonb`
//! that is `null` itself would come back as NULL, -0 as 0; what an extension makes JSON of (`hstore`) would not come back at all. These are in the item as texts, in a member
//! under the empty name, which no column has:
//!
//! ```text
//!   {"id": 7, "ratio": 0, "": {"document": "{\"b\":1,  \"a\":2}", "ratio": "-0"}}
//! ```

use postgres::GenericClient;

use super::deltas::literal;
use super::failed;
use crate::error::StoreError;

/// A column with such values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Text {
    /// Quoted.
    column: String,
    /// Its type, quoted and with its schema.
    kind: String,
    /// Which texts of it: a regular expression.
    which: String,
}

/// Types of which nothing else than the text is kept: `json`, and those that the server makes JSON of by a function of theirs (`to_jsonb`).
pub(super) const KEPT_AS_TEXT: &str = "
    kept_as_text (kind) AS MATERIALIZED (
        SELECT 'json'::regtype::oid UNION SELECT castsource FROM pg_cast WHERE casttarget = 'json'::regtype AND castmethod = 'f')";

/// What domains are over in the end, which other domains may stand between; and the modifier that they say.
pub(super) const BASES: &str = "
    WITH RECURSIVE bases (kind, base, modifier) AS (
        SELECT oid, oid, -1 FROM pg_type WHERE typtype <> 'd'
        UNION ALL SELECT d.oid, b.base, greatest(d.typtypmod, b.modifier) FROM pg_type d JOIN bases b ON d.typtype = 'd' AND d.typbasetype = b.kind)";

/// Columns with such values: name, type, which texts.
const TEXTS: &str = "
    SELECT quote_ident(a.attname), format('%I.%I', n.nspname, t.typname), CASE
        WHEN t.oid IN (SELECT kind FROM kept_as_text) OR t.typelem IN (SELECT kind FROM kept_as_text) AND t.typcategory = 'A' THEN ''
        WHEN b.typcategory = 'A' AND e.typtype <> 'c' THEN '^\\[|[{,]-0[,}]|\"null\"'
        WHEN b.oid = 'jsonb'::regtype THEN '^null$'
        WHEN b.oid = 'xml'::regtype THEN '^<\\?xml'
        WHEN b.oid IN ('float4'::regtype, 'float8'::regtype) THEN '^-0$' END AS texts
    FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid JOIN pg_namespace n ON n.oid = t.typnamespace
        JOIN bases ON bases.kind = t.oid JOIN pg_type b ON b.oid = bases.base LEFT JOIN pg_type e ON e.oid = b.typelem
    WHERE a.attrelid = to_regclass($1) AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = '' ORDER BY a.attnum";

/// The columns of a table with such values.
pub(super) fn read(client: &mut impl GenericClient, table: &str) -> Result<Vec<Text>, StoreError> {
    let rows = client.query(&format!("{BASES}, {KEPT_AS_TEXT} {TEXTS}"), &[&table]).map_err(failed)?;
    let texts = rows.iter().filter_map(|row| {
        let which = row.get::<_, Option<String>>(2)?;
        Some(Text { column: row.get(0), kind: row.get(1), which })
    });
    Ok(texts.collect())
}

impl Text {
    /// Whether the text is all that is kept of the column.
    pub(super) fn is_all(&self) -> bool {
        self.which.is_empty()
    }

    pub(super) fn is_of(&self, column: &str) -> bool {
        self.column == column
    }

    /// SQL for the value in the row `alias`, made of the item's text `item`.
    pub(super) fn value(&self, alias: &str, item: &str) -> String {
        let Self { column, kind, .. } = self;
        format!("coalesce(({item}::jsonb -> '' ->> {})::{kind}, {alias}.{column})", literal(column))
    }
}

/// SQL for the member of the row `alias`, in an object that is empty if there is nothing to keep.
pub(super) fn member(texts: &[Text], alias: &str) -> String {
    let columns = texts.iter().map(|Text { column, which, .. }| {
        format!("CASE WHEN {alias}.{column}::text ~ '{which}' THEN {alias}.{column}::text END AS {column}")
    });
    let columns = columns.collect::<Vec<_>>().join(", ");
    format!(
        "(SELECT jsonb_strip_nulls(jsonb_build_object('', nullif(jsonb_strip_nulls(to_jsonb(pares_kept)), '{{}}'))) \
         FROM (SELECT {columns}) pares_kept)"
    )
}
