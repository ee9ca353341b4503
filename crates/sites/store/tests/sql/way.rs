//! Who is in the writer's way, and can be asked.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use pares_store::postgres::{Preemptible, Way};
use postgres::error::SqlState;

use super::*;

/// A session that says this.
struct Says {
    open: Option<u64>,
    way: Way,
    asked: Mutex<Vec<u64>>,
    cancelled: AtomicUsize,
}

impl Preemptible for Says {
    fn open(&self) -> Option<u64> {
        self.open
    }

    fn give_way(&self, transaction: u64) -> Way {
        self.asked.lock().unwrap().push(transaction);
        self.way
    }

    fn cancelled(&self) {
        self.cancelled.fetch_add(1, Ordering::SeqCst);
    }
}

/// Writes an item whose row a session holds while it executes something long. What that receives, and the session.
fn written_past(server: &Server, open: Option<u64>, way: Way) -> (Option<SqlState>, Arc<Says>) {
    let options = Options::new(server.database());
    let store = PostgresStore::open(options.clone()).unwrap();
    let applied = |version, value: &str| Applied {
        version: Version(version),
        writes: vec![(Key::from("k"), Some(Value::from(value)))],
    };
    store.apply(&[applied(1, "1")], None).unwrap();
    let says = Arc::new(Says { open, way, asked: Mutex::default(), cancelled: AtomicUsize::new(0) });
    let mut holder = Client::connect(&options.connection, NoTls).unwrap();
    let pid: i32 = holder.query_one("SELECT pg_backend_pid()", &[]).unwrap().get(0);
    options.sessions.enter(pid, Arc::clone(&says) as _);
    holder.batch_execute("BEGIN; SELECT FROM pares_items FOR UPDATE").unwrap();
    let holds = std::thread::spawn(move || holder.batch_execute("SELECT pg_sleep(600)").unwrap_err());
    // A session that is ended before it executes anything loses its connection without a code.
    let mut looker = Client::connect(&options.connection, NoTls).unwrap();
    let sleeps = "SELECT FROM pg_stat_activity WHERE pid = $1 AND wait_event = 'PgSleep'";
    while looker.query(sleeps, &[&pid]).unwrap().is_empty() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    store.apply(&[applied(2, "2")], None).unwrap();
    assert_eq!(store.applied(), Version(2));
    (holds.join().unwrap().code().cloned(), says)
}

/// Whether a session was ended. The reason may be lost with its connection.
fn is_end(code: Option<&SqlState>) -> bool {
    code.is_none_or(|code| *code == SqlState::ADMIN_SHUTDOWN)
}

#[test]
fn blocking_session_cancelled_by_seen_transaction() {
    let Some(server) = server() else { return };
    let (told, says) = written_past(server, Some(7), Way::Cancel);
    let asked = says.asked.lock().unwrap().clone();
    assert_eq!(told, Some(SqlState::QUERY_CANCELED));
    assert!(!asked.is_empty() && asked.iter().all(|transaction| *transaction == 7), "{asked:?}");
    assert_eq!(says.cancelled.load(Ordering::SeqCst), asked.len());
    let (told, says) = written_past(server, Some(7), Way::End);
    assert!(is_end(told.as_ref()) && says.cancelled.load(Ordering::SeqCst) == 0, "{told:?}");
    // One that says that it has nothing open is not cancelled, and ended in the end.
    let (told, says) = written_past(server, None, Way::Cancel);
    assert!(is_end(told.as_ref()) && says.asked.lock().unwrap().is_empty(), "{told:?}");
}
