//! Keys that applications do not write: behind them stand tables, which a site's PostgreSQL server has to accept.

use pares_wice::{Key, Write};

/// How they begin.
const RESERVED: &[u8] = b"sql/";
/// How the keys of statements begin that change the schema.
pub(crate) const STATEMENT: &str = "sql/ddl/";

/// Whether a key is one of them.
#[must_use]
pub fn is_reserved(key: &Key) -> bool {
    key.as_bytes().starts_with(RESERVED)
}

/// Whether a version changes the schema: then it is applied by itself, since what comes before and after has other forms.
#[must_use]
pub fn changes_schema(writes: &[Write]) -> bool {
    writes.iter().any(|write| write.key.as_bytes().starts_with(STATEMENT.as_bytes()))
}
