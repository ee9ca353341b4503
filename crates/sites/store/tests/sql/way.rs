//! Who is in the writer's way, and can be asked.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use pares_store::postgres::{GivesWay, Way};
use postgres::error::SqlState;

use super::*;

/// A session that says this.
struct Says {
    open: Option<u64>,
    way: Way,
    asked: Mutex<Vec<u64>>,
    cancelled: AtomicUsize,
}

impl GivesWay for Says {
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

/// Writes an item whose row a session holds while it executes something long. What that is told, and the session.
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
    store.apply(&[applied(2, "2")], None).unwrap();
    assert_eq!(store.applied(), Version(2));
    (holds.join().unwrap().code().cloned(), says)
}

#[test]
fn a_session_in_the_way_is_cancelled_by_the_transaction_that_was_seen_or_ended() {
    let Some(server) = server() else { return };
    let (told, says) = written_past(server, Some(7), Way::Cancel);
    let asked = says.asked.lock().unwrap().clone();
    assert_eq!(told, Some(SqlState::QUERY_CANCELED));
    assert!(!asked.is_empty() && asked.iter().all(|transaction| *transaction == 7), "{asked:?}");
    assert_eq!(says.cancelled.load(Ordering::SeqCst), asked.len());
    let (told, says) = written_past(server, Some(7), Way::End);
    assert_eq!((told, says.cancelled.load(Ordering::SeqCst)), (Some(SqlState::ADMIN_SHUTDOWN), 0));
    // One that says that it has nothing open is not cancelled, and ended in the end.
    let (told, says) = written_past(server, None, Way::Cancel);
    assert_eq!((told, says.asked.lock().unwrap().len()), (Some(SqlState::ADMIN_SHUTDOWN), 0));
}
