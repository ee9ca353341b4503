//! Rows written once as the writer will write them, before they are certified.
//!
//! What is certified is written at every site, and a site that cannot write it ends. That a session could write a row says little: it did
//! so in its own time zone, as its own role, with its own settings, and values need not come back from `jsonb` as they went in. So at
//! COMMIT the session calls a function of the table, which runs the writer's own statements, with the writer's role and settings, on the
//! rows as they are to be certified, and compares rows before and behind it. It always takes that back: nobody writes through it.
//! The session still holds its rows then, so it meets no other transaction.
//!
//! All roles may call it, and it does what it does with the writer's rights. So it asks whether the role that calls may read the whole table, and touches
//! only rows that the calling transaction has written itself, whose numbers are not below its own. Which role calls is known of a session only, and
//! not of a function: it is refused to those.

use postgres::GenericClient;

use super::failed;
use super::tables::{Table, own_function, quoted};
use crate::error::StoreError;

/// A query for why rows of a table cannot be written again as they are; null if they can. `$1` are keys and `$2` rows, both as [`super::Writes::rows`] gives them.
/// `schema` is the store's, quoted.
#[must_use]
pub fn rehearsal(table: &str, schema: &str) -> String {
    format!("SELECT {schema}.{}($1::text::text[], $2::text::text[])", own_function("rehearses", table))
}

/// SQL for the function of a table. On a connection that is the writer's, or set as that is ([`super::idle::OWN`]): its settings are taken from there.
pub(super) fn function(table: &Table, schema: &str) -> String {
    let body = quoted(&body(table));
    format!(
        "CREATE OR REPLACE FUNCTION {schema}.{function}(text[], text[]) RETURNS text LANGUAGE plpgsql SECURITY DEFINER
            SET session_replication_role FROM CURRENT SET search_path FROM CURRENT SET TimeZone FROM CURRENT SET DateStyle FROM CURRENT
            SET IntervalStyle FROM CURRENT SET extra_float_digits FROM CURRENT SET bytea_output FROM CURRENT SET lc_monetary FROM CURRENT
            SET xmlbinary FROM CURRENT SET xmloption FROM CURRENT SET array_nulls FROM CURRENT
        {body}",
        function = own_function("rehearses", &table.name),
    )
}

fn body(table: &Table) -> String {
    format!(
        "
        DECLARE pares_before text[]; pares_behind text[]; pares_stack text;
            pares_who name := coalesce(nullif(current_setting('role'), 'none'), session_user);
        BEGIN
            GET DIAGNOSTICS pares_stack = PG_CONTEXT;
            IF pares_stack ~ E'\\n(SQL|PL/)' OR EXISTS (SELECT FROM pg_catalog.pg_attribute WHERE attrelid = '{name}'::regclass AND attnum > 0
                AND NOT attisdropped AND NOT has_column_privilege(pares_who, attrelid, attnum, 'SELECT')) THEN
                RAISE EXCEPTION '%', 'permission denied for table {name}: its rows are read again at COMMIT' USING ERRCODE = 'insufficient_privilege';
            END IF;
            BEGIN
                WITH pares_gone (was) AS ({delete} AND age(pares_row.xmin) <= 0 RETURNING pares_row::text)
                SELECT array_agg(was ORDER BY was COLLATE \"C\") INTO pares_before FROM pares_gone;
                WITH pares_come (became) AS ({insert} RETURNING pares_new::text)
                SELECT array_agg(became ORDER BY became COLLATE \"C\") INTO pares_behind FROM pares_come;
                RAISE SQLSTATE 'PAR00';
            EXCEPTION
                WHEN SQLSTATE 'PAR00' THEN NULL;
                WHEN transaction_rollback OR operator_intervention OR insufficient_resources OR lock_not_available THEN RAISE;
                WHEN OTHERS THEN RETURN SQLERRM;
            END;
            RETURN CASE WHEN pares_before IS DISTINCT FROM pares_behind THEN format('%s comes back as %s',
                (SELECT left(was, 200) FROM unnest(pares_before) was WHERE was <> ALL (pares_behind) LIMIT 1),
                (SELECT left(became, 200) FROM unnest(pares_behind) became WHERE became <> ALL (pares_before) LIMIT 1)) END;
        END ",
        name = table.name.replace('\'', "''"),
        delete = table.delete(),
        insert = table.insert("$2"),
    )
}

/// Makes the functions of all tables that participate: an older release has made tables without.
pub(super) fn provide(client: &mut impl GenericClient) -> Result<(), StoreError> {
    let names =
        "SELECT name, quote_ident(current_schema()) FROM pares_tables WHERE to_regclass(name) IS NOT NULL";
    for row in client.query(names, &[]).map_err(failed)? {
        let table = Table::read(client, row.get(0))?;
        client.batch_execute(&function(&table, row.get(1))).map_err(failed)?;
    }
    Ok(())
}

/// Texts as an array's text.
pub(super) fn array<'a>(texts: impl Iterator<Item = &'a str>) -> String {
    let quoted = texts.map(|text| format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")));
    format!("{{{}}}", quoted.collect::<Vec<_>>().join(","))
}
