//! The PostgreSQL server crashes while a batch is being applied. It takes its other clients down with it, so this test
//! has a process, and with it a server, of its own.

#![allow(clippy::unwrap_used)] // a test may, in its helpers too

mod common;

use std::time::{Duration, Instant};

use common::history::{replayed, version};
use pares_store::postgres::{Options, PostgresStore};
use pares_store::{Reads, Store, StoreError};
use pares_testbed::postgres::server;
use pares_wice::{Key, KeyRange, Value};
use postgres::{Client, NoTls};
use rustix::process::{Pid, Signal, kill_process};

const BATCH: u64 = 20;

#[test]
fn crashed_server_keeps_prefix_with_all_flushed() {
    let Some(server) = server() else { return };
    let connection = server.database();
    for round in 1..4u64 {
        let store = reopen(&connection);
        check(&store);
        let victim = writer(&connection);
        let flushed = std::thread::scope(|scope| {
            scope.spawn(|| {
                // Somewhere in the middle of what is written below; where does not matter.
                std::thread::sleep(Duration::from_millis(30 * round));
                kill_process(victim, Signal::KILL).unwrap();
            });
            write_until_it_fails(&store)
        });
        assert!(matches!(store.apply(&[], None), Err(StoreError::Failed)));
        drop(store);
        let store = reopen(&connection);
        assert!(store.applied().0 >= flushed, "flushed up to {flushed}, found {}", store.applied());
        check(&store);
    }
}

/// The last version flushed.
fn write_until_it_fails(store: &PostgresStore) -> u64 {
    let mut flushed = store.applied().0;
    for round in 1.. {
        let applied = store.applied().0;
        let batch: Vec<_> = (applied + 1..=applied + BATCH).map(version).collect();
        if let Err(error) = store.apply(&batch, Some(&(applied + BATCH).to_le_bytes())) {
            assert!(matches!(error, StoreError::Io(_)), "{error}");
            break;
        }
        if round % 5 == 0 {
            match store.flush() {
                Ok(version) => flushed = version.0,
                Err(_) => break,
            }
        }
    }
    flushed
}

fn check(store: &PostgresStore) {
    let items = |reads: &dyn Reads| -> Vec<(Key, Value)> {
        reads.first(&KeyRange { from: Key::from(""), to: None }, usize::MAX).unwrap()
    };
    let found = store.applied();
    assert_eq!(found.0 % BATCH, 0, "a batch is there as a whole or not at all");
    let expected = replayed(found);
    let (snapshot, expected) = (store.snapshot().unwrap(), expected.snapshot().unwrap());
    assert_eq!(items(&snapshot), items(&expected), "up to {found}");
    assert_eq!(snapshot.meta(), &found.0.to_le_bytes()[..usize::from(found.0 > 0) * 8]);
}

/// As soon as the server has recovered.
fn reopen(connection: &str) -> PostgresStore {
    let deadline = Instant::now() + Duration::from_secs(120);
    loop {
        match PostgresStore::open(Options::new(connection)) {
            Err(error) if Instant::now() > deadline => panic!("{error}"),
            Err(_) => std::thread::sleep(Duration::from_millis(20)),
            Ok(store) => return store,
        }
    }
}

/// The server's process that serves the writer: it holds the lock.
fn writer(connection: &str) -> Pid {
    let mut client = Client::connect(connection, NoTls).unwrap();
    let statement = "SELECT pid FROM pg_locks JOIN pg_database d ON d.oid = database
        WHERE locktype = 'advisory' AND granted AND datname = current_database()";
    Pid::from_raw(client.query_one(statement, &[]).unwrap().get(0)).unwrap()
}
