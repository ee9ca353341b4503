//! Who is in the writer's way, and gives way when asked.
//!
//! Versions are applied in the commit order, whatever transactions are open here: one that holds rows which the next version
//! changes has lost against it already. To end its connection would be enough; but an application that only loses its connection has
//! nothing to run again. So a port that runs sessions says how each of them gives way, by the number of its process at the server.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use postgres::Client;
use postgres::error::SqlState;

use super::failed;
use crate::error::StoreError;

/// Whether a lock `l` is that of the store's writer ([`super::idle::lock`]), as `pg_locks` shows it.
pub(super) const WRITER: &str = "l.locktype = 'advisory' AND l.objsubid = 2
    AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
    AND l.classid::bigint = hashtext('pares_items')::bigint & 4294967295
    AND l.objid::bigint = hashtext(current_schema())::bigint & 4294967295";

/// How often the writer asks for the way before it concludes that it gets nowhere.
pub(super) const TRIES: usize = 250;

/// What is wanted of those who are in the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// Rows.
    Rows,
    /// Tables, views and the like that are changed, apart from the store's own.
    Schema,
    /// Everything, since the store is removed.
    All,
}

/// Processes that hold rows of tables that participate or are the store's own, or such a table, and have not ended within the time that the writer waited. What they hold is what
/// the commit order needs, and what they could still do is to lose against it. Who changes tables (`$1`) needs also that nobody reads what he changes, which may be a view; of the store's
/// own tables nothing but rows is ever changed, until it is removed (`$2`).
const OBSTACLES: &str = "
    SELECT DISTINCT a.pid FROM pg_locks l JOIN pg_stat_activity a USING (pid) JOIN pg_class c ON c.oid = l.relation,
        LATERAL (SELECT c.relname LIKE 'pares\\_%' AND c.relnamespace = current_schema()::regnamespace AS own) store
    WHERE l.locktype = 'relation' AND l.granted AND l.pid <> pg_backend_pid() AND a.datname = current_database()
        AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
        AND c.relnamespace NOT IN ('pg_catalog'::regnamespace, 'pg_toast'::regnamespace)
        AND ($1 OR store.own OR c.oid IN (SELECT to_regclass(name) FROM pares_tables))
        AND CASE WHEN l.mode = 'SIReadLock' THEN false
            WHEN l.mode IN ('AccessShareLock', 'ShareUpdateExclusiveLock') THEN $1 AND (NOT store.own OR $2)
            WHEN l.mode IN ('RowShareLock', 'RowExclusiveLock') THEN $1 AND (NOT store.own OR $2) OR a.backend_xid IS NOT NULL
            ELSE true END
        AND a.xact_start < clock_timestamp() - interval '20 milliseconds'
        AND a.pid NOT IN (SELECT l.pid FROM pg_locks l WHERE l.granted AND WRITER)";

/// A session that can be asked to take back its transaction.
pub trait Preemptible: Send + Sync {
    /// The number of the transaction that it has open.
    fn open(&self) -> Option<u64>;
    /// Takes that transaction back, without waiting for its client, if it is not over. Whether the statement that it executes has to be cancelled for that.
    fn give_way(&self, transaction: u64) -> Way;
    /// The server has been told to cancel, or could not be.
    fn cancelled(&self);
}

/// What has to be done yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Nothing.
    Free,
    /// To cancel its statement.
    Cancel,
    /// To end its connection: it cannot take back what it has open.
    End,
}

/// A cancellation that is under way.
struct Cancelling<'a>(&'a dyn Preemptible);

impl Drop for Cancelling<'_> {
    fn drop(&mut self) {
        self.0.cancelled();
    }
}

/// Sessions of one store, by the numbers of their processes. Clones are the same.
#[derive(Clone, Default)]
pub struct Sessions(Arc<Mutex<BTreeMap<i32, Arc<dyn Preemptible>>>>);

impl Sessions {
    fn all(&self) -> MutexGuard<'_, BTreeMap<i32, Arc<dyn Preemptible>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A session that process `pid` of the server serves.
    pub fn enter(&self, pid: i32, session: Arc<dyn Preemptible>) {
        self.all().insert(pid, session);
    }

    /// It has ended.
    pub fn leave(&self, pid: i32) {
        self.all().remove(&pid);
    }

    /// Sessions with what they have open, by processes.
    fn open(&self) -> BTreeMap<i32, (Arc<dyn Preemptible>, u64)> {
        let open = |(pid, session): (&i32, &Arc<dyn Preemptible>)| {
            Some((*pid, (Arc::clone(session), session.open()?)))
        };
        self.all().iter().filter_map(open).collect()
    }

    /// Has those who are in the way give way, and says who was: processes that nobody can ask, or that do not answer if it is not done `politely`,
    /// lose their connection. On a connection without a transaction.
    pub(super) fn clear(
        &self,
        client: &mut Client,
        wanted: Wanted,
        politely: bool,
    ) -> Result<Vec<i32>, StoreError> {
        // Before it is seen who is in the way: later another may be open, which is not.
        let open = self.open();
        let rows = client
            .query(
                &OBSTACLES.replace("WRITER", WRITER),
                &[&(wanted != Wanted::Rows), &(wanted == Wanted::All)],
            )
            .map_err(failed)?;
        let pids: Vec<i32> = rows.iter().map(|row| row.get(0)).collect();
        for pid in &pids {
            let ended = match open.get(pid) {
                Some((session, transaction)) if politely => match session.give_way(*transaction) {
                    Way::Free => continue,
                    Way::Cancel => {
                        let _under_way = Cancelling(&**session);
                        client.execute("SELECT pg_cancel_backend($1)", &[pid])
                    }
                    Way::End => client.execute("SELECT pg_terminate_backend($1)", &[pid]),
                },
                // It has begun meanwhile, or is about to end.
                None if politely && self.all().contains_key(pid) => continue,
                _ => client.execute("SELECT pg_terminate_backend($1)", &[pid]),
            };
            match ended {
                // A mightier role: it may end by itself.
                Err(error) if error.code() == Some(&SqlState::INSUFFICIENT_PRIVILEGE) => {}
                ended => ended.map(drop).map_err(failed)?,
            }
        }
        Ok(pids)
    }
}

/// These processes do not give way.
pub(super) fn is_held(held: &[i32]) -> StoreError {
    StoreError::Io(format!(
        "processes {held:?} of its server hold locks that the store needs and could not be ended: end them (pg_terminate_backend), or roll back prepared transactions"
    ))
}

impl fmt::Debug for Sessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Sessions").field(&self.all().len()).finish()
    }
}
