//! Items in a table.
//!
//! A batch is one statement, and so one transaction and one round trip: it deletes, inserts or replaces, and sets the
//! mark. It does not wait for the server's disk (`synchronous_commit = off`); a flush is a commit that does, and
//! with it the server writes everything committed before.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pares_wice::Version;
use postgres::error::SqlState;
use postgres::{Client, GenericClient, Row};

use super::deltas::write_sums;
use super::idle::Idle;
use super::rehearsal;
use super::schema;
use super::sessions::{Sessions, WRITER, Wanted};
use super::snapshot::{self, Pool};
use super::tables::{Failure, Table, has_rows, write_rows};
use super::{Options, failed};
use crate::engine::{Changes, EngineStore, StorageEngine};
use crate::error::StoreError;
use crate::mark::{FORM, Mark, check_form};
use crate::store::StoreSnapshot;

/// The store's own connections write and change what captures and guards keep from others: these rest for them. Only a superuser can have that, and who was granted to
/// set this parameter. And values are read and computed the same at every site, whatever its server's settings are; nor do these end what the store does.
pub(super) const OWN: &str = "
    SET statement_timeout = 0; SET idle_in_transaction_session_timeout = 0;
    SET session_replication_role = replica; SET TimeZone = 'UTC'; SET DateStyle = 'ISO'; SET IntervalStyle = 'postgres';
    SET extra_float_digits = 1; SET bytea_output = 'hex'; SET lc_monetary = 'C'; SET xmlbinary = 'base64'; SET xmloption = 'content'";

/// What the store needs in its database. After [`OWN`].
pub(super) const TABLES: &str = "
    CREATE TABLE IF NOT EXISTS pares_items (key bytea PRIMARY KEY, value bytea NOT NULL);
    CREATE TABLE IF NOT EXISTS pares_applied (
        one boolean PRIMARY KEY DEFAULT true CHECK (one),
        form bigint NOT NULL, whole boolean NOT NULL, version bigint NOT NULL, meta bytea NOT NULL);
    CREATE TABLE IF NOT EXISTS pares_owner (one boolean PRIMARY KEY DEFAULT true CHECK (one), owner text NOT NULL);
    CREATE TABLE IF NOT EXISTS pares_tables (name text PRIMARY KEY);
    CREATE TABLE IF NOT EXISTS pares_schema (number bigint PRIMARY KEY, statement text NOT NULL);
    CREATE TABLE IF NOT EXISTS pares_open (at timestamptz NOT NULL DEFAULT now());
    CREATE OR REPLACE FUNCTION pares_never_commits() RETURNS trigger LANGUAGE plpgsql AS $pares$ BEGIN
        IF coalesce(current_setting('pares.ending', true), '') <> 'yes' THEN
            RAISE EXCEPTION 'replicated tables can be written only through the site''s SQL port: nothing was written'
                USING ERRCODE = 'feature_not_supported';
        END IF;
        RETURN NULL;
    END $pares$;
    DO $pares$ BEGIN
        IF NOT EXISTS (SELECT FROM pg_trigger WHERE tgname = 'pares_never' AND tgrelid = 'pares_open'::regclass) THEN
            CREATE CONSTRAINT TRIGGER pares_never AFTER INSERT ON pares_open DEFERRABLE INITIALLY DEFERRED
                FOR EACH ROW EXECUTE FUNCTION pares_never_commits();
        END IF;
    END $pares$;
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
    GRANT INSERT ON pares_open TO PUBLIC;
    SET synchronous_commit = off";

/// Only one writer for each schema; released when its connection ends, however it ends, which a server notices within
/// moments: so a site that is restarted waits for that.
const LOCK: &str = "
    SET lock_timeout = '1s';
    SELECT pg_advisory_lock(hashtext('pares_items'), hashtext(current_schema()));
    RESET lock_timeout";
/// How often a lock is asked for that somebody held who has nothing to do with it.
const LOCK_TRIES: usize = 3;

/// Ends processes of other roles that hold that lock or wait for it: to lock a number takes no right. The store's own role is believed.
const STRANGERS: &str = "
    SELECT pg_terminate_backend(a.pid) FROM pg_locks l JOIN pg_stat_activity a USING (pid)
    WHERE WRITER AND a.usename <> current_user";

/// Whose it is: who asks first.
const CLAIM: &str = "
    WITH new AS (INSERT INTO pares_owner (owner) VALUES ($1) ON CONFLICT DO NOTHING RETURNING owner)
    SELECT owner FROM new UNION ALL SELECT owner FROM pares_owner LIMIT 1";

pub(super) const READ_MARK: &str = "SELECT form, whole, version, meta FROM pares_applied";

const CHANGE: &str = "
    WITH gone AS (DELETE FROM pares_items WHERE key = ANY($3::bytea[]))
    INSERT INTO pares_items (key, value) SELECT * FROM unnest($1::bytea[], $2::bytea[])
    ON CONFLICT (key) DO UPDATE SET value = excluded.value";

/// The same, and the mark.
const CHANGE_AND_MARK: &str = "
    WITH gone AS (DELETE FROM pares_items WHERE key = ANY($3::bytea[])),
    kept AS (
        INSERT INTO pares_items (key, value) SELECT * FROM unnest($1::bytea[], $2::bytea[])
        ON CONFLICT (key) DO UPDATE SET value = excluded.value)
    INSERT INTO pares_applied (form, whole, version, meta) VALUES ($4, $5, $6, $7)
    ON CONFLICT (one) DO UPDATE
        SET form = excluded.form, whole = excluded.whole, version = excluded.version, meta = excluded.meta";

/// One text is one transaction.
const SYNC: &str = "SET LOCAL synchronous_commit = on; UPDATE pares_applied SET version = version";

/// Nobody is waited for long.
pub(super) const IMPATIENT: &str = "SET lock_timeout = '20ms'";
/// How often the writer asks for the way before it concludes that it gets nowhere.
pub(super) const TRIES: usize = 250;
/// How often it asks politely.
const POLITE_TRIES: usize = 100;

/// Bytes of keys and values in one statement; the server takes a gigabyte.
const STATEMENT_BYTES: usize = 64 << 20;

/// A store in a PostgreSQL database.
pub type PostgresStore = EngineStore<Postgres>;

struct Writer {
    client: Client,
    /// What the catalogue says of the tables that rows were written to.
    tables: BTreeMap<String, Table>,
    sessions: Sessions,
    idle: Idle,
}

/// The connections to one database.
pub struct Postgres {
    writer: Mutex<Writer>,
    readers: Arc<Pool>,
}

impl PostgresStore {
    /// Opens the store in the database that `options` names, first making its two tables if they are missing.
    ///
    /// # Errors
    /// [`StoreError::InUse`], [`StoreError::Unfinished`], or what the server says.
    pub fn open(options: Options) -> Result<Self, StoreError> {
        let (sessions, (client, idle)) = (options.sessions.clone(), Idle::begin(options.clone())?);
        let writer = Mutex::new(Writer { client, tables: BTreeMap::new(), sessions, idle });
        Self::over(Postgres { writer, readers: Arc::new(Pool::new(options)) })
    }
}

/// Makes what the store needs in its database, on a connection of its own.
///
/// # Errors
/// [`StoreError::Owned`] if it is somebody else's, or what the server says.
pub(super) fn make(client: &mut impl GenericClient, options: &Options) -> Result<(), StoreError> {
    let must_be_own = |owner: String| match &options.owner {
        Some(expected) if *expected != owner => Err(StoreError::Owned(owner)),
        _ => Ok(()),
    };
    // Before anything is changed.
    owner_of(client)?.map_or(Ok(()), must_be_own)?;
    client.batch_execute(OWN).and_then(|()| client.batch_execute(TABLES)).map_err(failed)?;
    rehearsal::provide(client)?;
    if let Some(expected) = &options.owner {
        must_be_own(client.query_one(CLAIM, &[expected]).map_err(failed)?.get(0))?;
    }
    client.batch_execute(options.views).map_err(failed)
}

/// Whose database it is, if anybody has asked for it.
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

impl Postgres {
    fn writer(&self) -> MutexGuard<'_, Writer> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// These processes do not give way.
pub(super) fn is_held(held: &[i32]) -> StoreError {
    StoreError::Io(format!(
        "processes {held:?} of its server hold locks that the store needs and could not be ended: end them (pg_terminate_backend), or roll back prepared transactions"
    ))
}

impl Writer {
    /// Does something as often as somebody is in its way, and has him give way.
    fn insist<T>(
        &mut self,
        wanted: Wanted,
        mut step: impl FnMut(&mut Self) -> Result<T, Failure>,
    ) -> Result<T, StoreError> {
        let mut held = Vec::new();
        if let Some(client) = self.idle.instead_of(&mut self.client)? {
            (self.client, self.tables) = (client, BTreeMap::new());
        }
        for tries in 0..TRIES {
            match step(self) {
                Ok(done) => return Ok(done),
                Err(Failure::Store(error)) => return Err(error),
                Err(Failure::Locked) => {
                    held = self.sessions.clear(&mut self.client, wanted, tries < POLITE_TRIES)?;
                }
            }
        }
        Err(is_held(&held))
    }

    /// Carries out statements that come together, and before rows: each alone, since what one has made the next may use only when that is committed
    /// (values of an enum). Those that are done are not done again.
    fn carry_out_apart(&mut self, changes: &Changes<'_>) -> Result<(), StoreError> {
        for statement in schema::statements(changes)? {
            self.insist(Wanted::Schema, |writer| {
                let mut transaction = writer.client.transaction()?;
                schema::carry_out(&statement, &mut transaction)?;
                Ok(transaction.commit()?)
            })?;
            self.tables.clear();
        }
        Ok(())
    }

    fn try_commit(
        &mut self,
        pieces: &[Piece<'_>],
        changes: &Changes<'_>,
        mark: &Mark,
    ) -> Result<(), Failure> {
        let statements = schema::statements(changes)?;
        if let [only] = pieces
            && statements.is_empty()
            && !has_rows(changes)
        {
            only.execute_with(mark, &mut self.client)?;
            self.idle.leave(mark);
            return Ok(());
        }
        let mut transaction = self.client.transaction()?;
        for statement in &statements {
            schema::carry_out(statement, &mut transaction)?;
            self.tables.clear();
        }
        if has_rows(changes) {
            write_rows(changes, &mut self.tables, &mut transaction)?;
        }
        let (last, others) = pieces.split_last().expect("there is always a piece");
        for piece in others {
            piece.execute(&mut transaction)?;
        }
        last.execute_with(mark, &mut transaction)?;
        write_sums(changes, &mut self.tables, &mut transaction)?;
        transaction.commit()?;
        self.idle.leave(mark);
        Ok(())
    }
}

impl StorageEngine for Postgres {
    fn mark(&self) -> Result<Option<Mark>, StoreError> {
        let row =
            self.writer().insist(Wanted::Rows, |writer| Ok(writer.client.query_opt(READ_MARK, &[])?))?;
        row.as_ref().map(mark_of).transpose()
    }

    fn commit(&self, changes: &Changes<'_>, mark: &Mark) -> Result<(), StoreError> {
        let (pieces, statements) = (pieces(changes), schema::statements(changes)?.len());
        let mut writer = self.writer();
        // Only what a state transfer brings has several, or rows beside.
        if statements > 1 || statements == 1 && has_rows(changes) {
            writer.carry_out_apart(changes)?;
        }
        let wanted = if statements > 0 { Wanted::Schema } else { Wanted::Rows };
        writer.insist(wanted, |writer| writer.try_commit(&pieces, changes, mark))
    }

    fn snapshot(&self) -> Result<Box<dyn StoreSnapshot>, StoreError> {
        snapshot::open(&self.readers)
    }

    fn sync(&self) -> Result<(), StoreError> {
        self.writer().insist(Wanted::Rows, |writer| Ok(writer.client.batch_execute(SYNC)?))
    }
}

impl fmt::Debug for Postgres {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Postgres").finish_non_exhaustive()
    }
}

/// Changes that go into one statement.
#[derive(Default)]
struct Piece<'a> {
    keys: Vec<&'a [u8]>,
    values: Vec<&'a [u8]>,
    gone: Vec<&'a [u8]>,
    bytes: usize,
}

fn pieces<'a>(changes: &Changes<'a>) -> Vec<Piece<'a>> {
    let mut pieces = vec![Piece::default()];
    for (key, value) in changes {
        if pieces.last().is_some_and(|piece| piece.bytes >= STATEMENT_BYTES) {
            pieces.push(Piece::default());
        }
        let piece = pieces.last_mut().expect("never empty");
        piece.bytes += key.as_bytes().len();
        match value {
            Some(value) => {
                piece.bytes += value.encoded().len();
                piece.keys.push(key.as_bytes());
                piece.values.push(value.encoded());
            }
            None => piece.gone.push(key.as_bytes()),
        }
    }
    pieces
}

impl Piece<'_> {
    fn execute(&self, client: &mut impl GenericClient) -> Result<(), postgres::Error> {
        client.execute(CHANGE, &[&self.keys, &self.values, &self.gone]).map(drop)
    }

    fn execute_with(&self, mark: &Mark, client: &mut impl GenericClient) -> Result<(), postgres::Error> {
        let version = i64::try_from(mark.version.0).expect("fewer than 2^63 versions");
        let form = i64::from(FORM);
        client
            .execute(
                CHANGE_AND_MARK,
                &[&self.keys, &self.values, &self.gone, &form, &mark.whole, &version, &mark.meta],
            )
            .map(drop)
    }
}

pub(super) fn mark_of(row: &Row) -> Result<Mark, StoreError> {
    let (form, version): (i64, i64) = (row.get(0), row.get(2));
    check_form(u32::try_from(form).unwrap_or(u32::MAX))?;
    let version =
        u64::try_from(version).map_err(|_| StoreError::Damaged(format!("it is at version {version}")))?;
    Ok(Mark { whole: row.get(1), version: Version(version), meta: row.get(3) })
}
