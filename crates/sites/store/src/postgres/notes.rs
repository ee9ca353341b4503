//! Which rows a transaction has touched: triggers note their primary keys, where nothing else can write.
//!
//! A setting, or a table that those may write who write rows, would do until one of them clears it: then what was written is not certified, and is answered as
//! done. So the notes are rows of a table of the store's, written by functions with its owner's rights. The triggers fire whatever `session_replication_role` says
//! (`ENABLE ALWAYS`), and exempt only the writer: the process that holds its lock, of which there is one.
//!
//! None of these rows ever lasts, since no transaction that has one can commit at its server. The first comes with another row whose constraint is checked at the
//! end and never holds. COMMIT at the port checks what else was put off to the end (`SET CONSTRAINTS ALL IMMEDIATE`), which clients may do, too. So the trigger
//! does not fail there, but puts off the same again; at a real end that continues for too long:
//!
//! ```text
//!   INSERT INTO account            notes (account, 7); round 1 is put off
//!   SET CONSTRAINTS ALL IMMEDIATE  round 1: puts off round 2
//!   COMMIT                         round 2: puts off round 3; round 3: ...; round 100 fails
//! ```

use postgres::GenericClient;

use super::failed;
use super::sessions::WRITER;
use super::tables::{Table, own_function, quoted};
use crate::error::StoreError;

/// Creates the table of notes and its functions; `PARES` stands for the store's schema. Runs after [`super::idle::OWN`]. Each row has the number of the server process of its session. By the
/// index on that number a session finds its own notes quickly, though rows of transactions that were rolled back stay in the table until it is vacuumed.
const NOTES: &str = "
    DO $pares$ BEGIN
        -- An older release noted nothing here. It is always empty.
        IF NOT EXISTS (SELECT FROM pg_attribute WHERE attrelid = to_regclass('PARES.pares_open') AND attname = 'keys') THEN
            DROP TABLE IF EXISTS PARES.pares_open;
            CREATE UNLOGGED TABLE PARES.pares_open (process int NOT NULL DEFAULT pg_backend_pid(), round int, name text, keys jsonb);
            CREATE INDEX pares_open_process ON PARES.pares_open (process);
        END IF;
    END $pares$;
    CREATE OR REPLACE FUNCTION PARES.pares_never_commits() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $pares$ BEGIN
        IF NEW.round >= 100 THEN
            RAISE EXCEPTION 'replicated tables can be written only through the site''s SQL port: nothing was written'
                USING ERRCODE = 'feature_not_supported';
        END IF;
        SET CONSTRAINTS PARES.pares_never DEFERRED;
        INSERT INTO PARES.pares_open (round) VALUES (NEW.round + 1);
        RETURN NULL;
    END $pares$;
    CREATE OR REPLACE FUNCTION PARES.pares_keeps() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $pares$ BEGIN
        RAISE EXCEPTION 'what a transaction has written cannot be withdrawn here: roll the transaction back' USING ERRCODE = 'feature_not_supported';
    END $pares$;
    DO $pares$ BEGIN
        IF NOT EXISTS (SELECT FROM pg_trigger WHERE tgname = 'pares_never' AND tgrelid = 'PARES.pares_open'::regclass) THEN
            CREATE CONSTRAINT TRIGGER pares_never AFTER INSERT ON PARES.pares_open DEFERRABLE INITIALLY DEFERRED
                FOR EACH ROW WHEN (NEW.round IS NOT NULL) EXECUTE FUNCTION PARES.pares_never_commits();
            CREATE TRIGGER pares_keeps BEFORE UPDATE OR DELETE OR TRUNCATE ON PARES.pares_open
                FOR EACH STATEMENT EXECUTE FUNCTION PARES.pares_keeps();
            ALTER TABLE PARES.pares_open ENABLE ALWAYS TRIGGER pares_never, ENABLE ALWAYS TRIGGER pares_keeps;
        END IF;
    END $pares$;
    CREATE OR REPLACE FUNCTION PARES.pares_captured() RETURNS TABLE (name text, keys jsonb) LANGUAGE sql SECURITY DEFINER
        SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_bitmapscan = off
        AS 'SELECT o.name, o.keys FROM PARES.pares_open o WHERE o.process = pg_backend_pid() AND o.name IS NOT NULL';
    CREATE OR REPLACE FUNCTION PARES.pares_writes() RETURNS boolean LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $pares$
        SELECT EXISTS (SELECT FROM pg_locks l WHERE l.pid = pg_backend_pid() AND l.mode = 'ExclusiveLock' AND l.granted AND WRITER) $pares$;
    CREATE OR REPLACE FUNCTION PARES.pares_note(text, jsonb) RETURNS void LANGUAGE plpgsql
        SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_bitmapscan = off AS $pares$ BEGIN
        IF NOT EXISTS (SELECT FROM PARES.pares_open WHERE process = pg_backend_pid()) THEN
            INSERT INTO PARES.pares_open (round) VALUES (1);
        END IF;
        INSERT INTO PARES.pares_open (name, keys) VALUES ($1, $2);
    END $pares$;
    REVOKE ALL ON FUNCTION PARES.pares_note(text, jsonb), PARES.pares_never_commits(), PARES.pares_keeps() FROM PUBLIC;
    GRANT EXECUTE ON FUNCTION PARES.pares_captured() TO PUBLIC";

/// Tables that participate and are not captured; or by functions of an older release, of which two tables could have one.
pub(super) const UNCAPTURED: &str = "
    SELECT name FROM pares_tables WHERE 4 > (SELECT count(*) FROM pg_trigger WHERE tgrelid = to_regclass(name) AND tgenabled = 'A'
        AND tgfoid::regproc::text ~ 'pares_captures_.*_[0-9a-f]{32}$' AND tgname IN ('pares_insert', 'pares_update', 'pares_delete', 'pares_truncate'))";

/// What was noted in this transaction: tables' names, each with the primary keys of rows that were touched; null if these have more than `$1` bytes. Each is part of an
/// item's name, so that is no less than the transaction has. `PARES` stands for the store's schema.
pub const CAPTURED: &str = "
    SELECT name, CASE WHEN octet_length(keys) <= $1::text::int THEN keys END FROM (
        SELECT noted.name, jsonb_agg(DISTINCT key)::text FROM PARES.pares_captured() noted, jsonb_array_elements(noted.keys) element (key)
        GROUP BY noted.name) touched (name, keys) ORDER BY name";

/// Makes the table and its functions; and triggers where an older release has made others, or an operator has switched some off.
pub(super) fn provide(client: &mut impl GenericClient) -> Result<(), StoreError> {
    let names = "SELECT quote_ident(current_schema()), quote_literal(current_schema())";
    let row = client.query_one(names, &[]).map_err(failed)?;
    let (schema, literal): (&str, &str) = (row.get(0), row.get(1));
    let writer = WRITER.replace("current_schema()", literal);
    client.batch_execute(&NOTES.replace("WRITER", &writer).replace("PARES", schema)).map_err(failed)?;
    let there = format!("{UNCAPTURED} AND to_regclass(name) IS NOT NULL");
    for row in client.query(&there, &[]).map_err(failed)? {
        let table = Table::read(client, row.get(0))?;
        client.batch_execute(&triggers(&table, schema)).map_err(failed)?;
    }
    Ok(())
}

/// Statement triggers, so that a statement costs one call whether it touches a row or a million.
pub(super) fn triggers(table: &Table, schema: &str) -> String {
    let name = &table.name;
    let literal = name.replace('\'', "''");
    let keys = table.key_of("r");
    let function = format!("{schema}.{}", own_function("captures", name));
    let body = quoted(&format!(
        "
        DECLARE keys jsonb := '[]'; more jsonb;
        BEGIN
            IF current_setting('session_replication_role') = 'replica' AND {schema}.pares_writes() THEN RETURN NULL; END IF;
            IF TG_OP = 'TRUNCATE' THEN RAISE EXCEPTION '%', 'TRUNCATE of {literal} is not captured: use DELETE'
                USING ERRCODE = 'feature_not_supported'; END IF;
            IF TG_OP <> 'INSERT' THEN
                SELECT jsonb_agg({keys}) INTO more FROM old_rows r; keys := coalesce(more, '[]');
            END IF;
            IF TG_OP <> 'DELETE' THEN
                SELECT jsonb_agg({keys}) INTO more FROM new_rows r; keys := keys || coalesce(more, '[]');
            END IF;
            PERFORM {schema}.pares_note('{literal}', keys);
            RETURN NULL;
        END "
    ));
    format!(
        "CREATE OR REPLACE FUNCTION {function}() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp {body};
        REVOKE ALL ON FUNCTION {function}() FROM PUBLIC;
        CREATE OR REPLACE TRIGGER pares_insert AFTER INSERT ON {name}
            REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION {function}();
        CREATE OR REPLACE TRIGGER pares_update AFTER UPDATE ON {name}
            REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION {function}();
        CREATE OR REPLACE TRIGGER pares_delete AFTER DELETE ON {name}
            REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION {function}();
        CREATE OR REPLACE TRIGGER pares_truncate BEFORE TRUNCATE ON {name}
            FOR EACH STATEMENT EXECUTE FUNCTION {function}();
        ALTER TABLE {name} ENABLE ALWAYS TRIGGER pares_insert, ENABLE ALWAYS TRIGGER pares_update,
            ENABLE ALWAYS TRIGGER pares_delete, ENABLE ALWAYS TRIGGER pares_truncate"
    )
}
