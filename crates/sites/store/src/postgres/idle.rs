//! The writer's connection: what it needs in the database, and another where it ended while nothing was written.
//!
//! A write that fails ends the store: nobody knows whether it was done. But a connection that was idle when its server went away had nothing under way,
//! and a site need not end for it. So one that was idle for a while is asked first whether it is still there, and another takes its place if the
//! store is found as it was left. A server that crashes loses the last commits, which did not wait for its disk; then it is not, and the store ends.

use std::time::{Duration, Instant};

use postgres::error::SqlState;
use postgres::{Client, GenericClient};

use super::sessions::WRITER;
use super::snapshot::{READ_MARK, mark_of};
use super::{Options, failed, notes, rehearsal};
use crate::error::StoreError;
use crate::mark::Mark;

/// The store's own connections write and change what captures and guards keep from others: these rest for them. Only a superuser can have that, and who was granted to
/// set this parameter. And values are read and computed the same at every site, whatever its server's settings are; nor do these end what the store does.
pub(super) const OWN: &str = "
    SET statement_timeout = 0; SET idle_in_transaction_session_timeout = 0;
    SET session_replication_role = replica; SET TimeZone = 'UTC'; SET DateStyle = 'ISO'; SET IntervalStyle = 'postgres';
    SET extra_float_digits = 1; SET bytea_output = 'hex'; SET lc_monetary = 'C'; SET xmlbinary = 'base64'; SET xmloption = 'content';
    SET array_nulls = on";

/// What the store needs in its database. After [`OWN`].
pub(super) const TABLES: &str = "
    CREATE TABLE IF NOT EXISTS pares_items (key bytea PRIMARY KEY, value bytea NOT NULL);
    CREATE TABLE IF NOT EXISTS pares_applied (
        one boolean PRIMARY KEY DEFAULT true CHECK (one),
        form bigint NOT NULL, whole boolean NOT NULL, version bigint NOT NULL, meta bytea NOT NULL);
    CREATE TABLE IF NOT EXISTS pares_owner (one boolean PRIMARY KEY DEFAULT true CHECK (one), owner text NOT NULL);
    CREATE TABLE IF NOT EXISTS pares_tables (name text PRIMARY KEY);
    CREATE TABLE IF NOT EXISTS pares_schema (number bigint PRIMARY KEY, statement text NOT NULL);
    CREATE OR REPLACE FUNCTION pares_members() RETURNS event_trigger LANGUAGE plpgsql AS $pares$ BEGIN
        PERFORM set_config('pares.members', (
            WITH members AS (SELECT classid, objid FROM pg_depend WHERE deptype = 'e')
            SELECT string_agg(classid || ':' || objid, ',') FROM (
                SELECT * FROM members UNION SELECT d.classid, d.objid FROM pg_depend d
                    JOIN members m ON d.refclassid = m.classid AND d.refobjid = m.objid WHERE d.deptype IN ('a', 'i')) parts), true);
    END $pares$;
    CREATE OR REPLACE FUNCTION pares_guards() RETURNS event_trigger LANGUAGE plpgsql AS $pares$ DECLARE
        what text;
        is_own boolean := TG_TAG ~ '^(GRANT|REVOKE|REINDEX|REFRESH|ALTER DEFAULT|DROP SUBSCRIPTION)|EXTENSION|SEQUENCE|PUBLICATION|STATISTICS|POLICY';
    BEGIN
        IF TG_EVENT = 'sql_drop' THEN
            -- What goes with something that is a server's own (CASCADE) is not, but for the parts of an extension.
            SELECT object_identity INTO what FROM pg_event_trigger_dropped_objects() WHERE NOT is_temporary
                AND CASE WHEN is_own THEN normal AND NOT original AND classid || ':' || objid
                    <> ALL (string_to_array(coalesce(current_setting('pares.members', true), ''), ',')) ELSE original END;
        ELSIF NOT is_own THEN
            SELECT object_identity INTO what FROM pg_event_trigger_ddl_commands()
                WHERE schema_name IS DISTINCT FROM 'pg_temp' AND NOT in_extension;
        END IF;
        IF what IS NOT NULL THEN
            RAISE EXCEPTION '% of % would take effect at this site only: nothing was done', TG_TAG, what
                USING ERRCODE = 'feature_not_supported', HINT = 'Send it to a site''s SQL port as a single statement, outside any block or function. '
                    'To change this server only, first SET session_replication_role = replica, which needs the privilege.';
        END IF;
    END $pares$;
    DO $pares$ BEGIN
        IF NOT EXISTS (SELECT FROM pg_event_trigger WHERE evtname = 'pares_changes') THEN
            CREATE EVENT TRIGGER pares_changes ON ddl_command_end EXECUTE FUNCTION pares_guards();
            CREATE EVENT TRIGGER pares_drops ON sql_drop EXECUTE FUNCTION pares_guards();
        END IF;
        IF NOT EXISTS (SELECT FROM pg_event_trigger WHERE evtname = 'pares_begins') THEN
            CREATE EVENT TRIGGER pares_begins ON ddl_command_start WHEN TAG IN ('DROP EXTENSION') EXECUTE FUNCTION pares_members();
        END IF;
    END $pares$;
    GRANT SELECT ON pares_applied, pares_tables TO PUBLIC;
    SET synchronous_commit = off";

/// Only one writer for each schema; released when its connection ends, however it ends, which a server notices within
/// moments: so a site that is restarted waits for that.
const LOCK: &str = "
    SET lock_timeout = '1s';
    SELECT pg_advisory_lock(hashtext('pares_items'), hashtext(current_schema()));
    RESET lock_timeout";

/// How often a lock is asked for that a role held which has nothing to do with it.
const LOCK_TRIES: usize = 3;

/// Ends processes of other roles that hold that lock or wait for it: to lock a number takes no right. The store's own role is believed.
const STRANGERS: &str = "
    SELECT pg_terminate_backend(a.pid) FROM pg_locks l JOIN pg_stat_activity a USING (pid)
    WHERE WRITER AND a.usename <> current_user";

/// Whose it is: who asks first.
const CLAIM: &str = "
    WITH new AS (INSERT INTO pares_owner (owner) VALUES ($1) ON CONFLICT DO NOTHING RETURNING owner)
    SELECT owner FROM new UNION ALL SELECT owner FROM pares_owner LIMIT 1";

/// No session is waited for long.
pub(super) const IMPATIENT: &str = "SET lock_timeout = '20ms'";

/// Who has written so lately is not asked.
const IDLE: Duration = Duration::from_secs(1);

/// What is known of the writer's connection.
pub(super) struct Idle {
    options: Options,
    used: Instant,
    /// As the store was left.
    mark: Option<Mark>,
}

impl Idle {
    /// Connects to the server that `options` names.
    pub(super) fn begin(options: Options) -> Result<(Client, Self), StoreError> {
        let (client, mark) = connected(&options)?;
        Ok((client, Self { options, used: Instant::now(), mark }))
    }

    /// The store is left so.
    pub(super) fn leave(&mut self, mark: &Mark) {
        (self.used, self.mark) = (Instant::now(), Some(mark.clone()));
    }

    /// A connection in place of `client`, if that has ended meanwhile.
    pub(super) fn instead_of(&mut self, client: &mut Client) -> Result<Option<Client>, StoreError> {
        let is_asked = self.mark.is_some() && self.used.elapsed() > IDLE;
        self.used = Instant::now();
        if !is_asked || client.batch_execute("").is_ok() {
            return Ok(None);
        }
        let (client, found) = connected(&self.options)?;
        if found != self.mark {
            return Err(StoreError::Io("its PostgreSQL server has lost what it had written last".into()));
        }
        Ok(Some(client))
    }
}

/// A connection that is the writer's, and how it finds the store.
fn connected(options: &Options) -> Result<(Client, Option<Mark>), StoreError> {
    let mut client = options.connect()?;
    lock(&mut client)?;
    make(&mut client, options)?;
    client.batch_execute(IMPATIENT).map_err(failed)?;
    let mark = client.query_opt(READ_MARK, &[]).map_err(failed)?.as_ref().map(mark_of).transpose()?;
    Ok((client, mark))
}

/// Makes what the store needs in its database, on a connection of its own.
///
/// # Errors
/// [`StoreError::Owned`] if it is another's, or what the server says.
pub(super) fn make(client: &mut impl GenericClient, options: &Options) -> Result<(), StoreError> {
    let must_be_own = |owner: String| match &options.owner {
        Some(expected) if *expected != owner => Err(StoreError::Owned(owner)),
        _ => Ok(()),
    };
    // Before anything is changed.
    owner_of(client)?.map_or(Ok(()), must_be_own)?;
    client.batch_execute(OWN).and_then(|()| client.batch_execute(TABLES)).map_err(failed)?;
    notes::provide(client)?;
    rehearsal::provide(client)?;
    if let Some(expected) = &options.owner {
        must_be_own(client.query_one(CLAIM, &[expected]).map_err(failed)?.get(0))?;
    }
    client.batch_execute(options.views).map_err(failed)
}

/// Whose database it is, if a system has claimed it.
pub(super) fn owner_of(client: &mut impl GenericClient) -> Result<Option<String>, StoreError> {
    let there = client.query_one("SELECT to_regclass('pares_owner') IS NOT NULL", &[]).map_err(failed)?;
    if !there.get::<_, bool>(0) {
        return Ok(None);
    }
    let owner = client.query_opt("SELECT owner FROM pares_owner", &[]).map_err(failed)?;
    Ok(owner.map(|row| row.get(0)))
}

/// Makes this connection the one that writes the store.
pub(super) fn lock(client: &mut Client) -> Result<(), StoreError> {
    for _ in 0..LOCK_TRIES {
        match client.batch_execute(LOCK) {
            Err(error) if error.code() == Some(&SqlState::LOCK_NOT_AVAILABLE) => {}
            locked => return locked.map_err(failed),
        }
        // Without the right to end them there is nobody that can be ended.
        let strangers = STRANGERS.replace("WRITER", WRITER);
        if !client.query(&strangers, &[]).is_ok_and(|ended| !ended.is_empty()) {
            break;
        }
    }
    Err(StoreError::InUse("the database".into()))
}
