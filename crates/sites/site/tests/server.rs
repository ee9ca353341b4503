//! The PostgreSQL server under sites' stores crashes and comes back. It takes its other clients down with it, so these tests have a
//! process, and with it a server, of their own.
#![allow(clippy::unwrap_used)] // helpers are test code, too

mod common;

use std::sync::atomic::Ordering;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use common::{Engine, PATIENCE, Sites, done, until};
use pares_wice::SiteId;
use postgres::error::SqlState;
use postgres::{Client, NoTls, Row};
use rustix::process::{Pid, Signal, kill_process};

const A0: SiteId = SiteId::new(0, 0);
const B0: SiteId = SiteId::new(1, 0);

/// One test at a time: each takes the server away from all.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The server's process that serves the site's writer; if that is killed the whole server starts again.
fn writer(database: &str) -> Option<Pid> {
    let mut client = None;
    until(|| {
        client = Client::connect(database, NoTls).ok();
        client.is_some()
    });
    let statement = "SELECT pid FROM pg_locks JOIN pg_database d ON d.oid = database
        WHERE locktype = 'advisory' AND granted AND datname = current_database()";
    let row = client.as_mut().and_then(|client| client.query_opt(statement, &[]).ok().flatten());
    row.and_then(|row| Pid::from_raw(row.get(0)))
}

/// Kills the server under all sites.
fn crash(sites: &Sites) {
    let database = sites.config.database(A0).unwrap().unwrap();
    // A writer that is found may have ended since, with a site that begins again.
    until(|| writer(&database).is_some_and(|victim| kill_process(victim, Signal::KILL).is_ok()));
}

/// Has a row inserted, however often that takes: a row of that key says that it was done.
fn insert(sites: &Sites, client: &mut Client, site: SiteId, key: i32) {
    loop {
        match client.execute("INSERT INTO note VALUES ($1)", &[&key]) {
            Ok(_) => return,
            Err(error) if error.code() == Some(&SqlState::UNIQUE_VIOLATION) => return,
            // Whatever it was: lost, not known, or a connection that is gone.
            Err(_) if client.is_closed() => *client = sites.sql(site),
            Err(_) => {}
        }
    }
}

/// What a site answers, as soon as it does.
fn ask(sites: &Sites, client: &mut Client, site: SiteId, query: &str, key: i32) -> Vec<Row> {
    loop {
        match client.query(query, &[&key]) {
            Ok(rows) => return rows,
            Err(_) if client.is_closed() => *client = sites.sql(site),
            Err(_) => {}
        }
    }
}

#[test]
fn answered_sql_survives_every_crash_and_is_visible() {
    let _alone = alone();
    let Some(sites) = Sites::start_over(Engine::Postgres, 2, 1) else { return };
    sites.sql(A0).batch_execute("CREATE TABLE note (key int PRIMARY KEY)").unwrap();
    let run = |site: SiteId| {
        let mut client = sites.sql(site);
        ask(&sites, &mut client, site, "SELECT key FROM note WHERE key = $1", 0);
        for key in 0..300 {
            let key = key * 2 + i32::from(site.cluster.0);
            insert(&sites, &mut client, site, key);
            let seen = "SELECT count(*) FROM note WHERE key % 2 = $1 % 2 AND key <= $1";
            let own: i64 = ask(&sites, &mut client, site, seen, key)[0].get(0);
            assert_eq!(own, i64::from(key / 2 + 1), "{site} does not see what it was answered");
        }
    };
    std::thread::scope(|scope| {
        let clients = [A0, B0].map(|site| scope.spawn(move || run(site)));
        while clients.iter().any(|client| !client.is_finished()) {
            crash(&sites);
            // Somewhere in the middle of what is done next, once it is done at all.
            drop([A0, B0].map(|site| sites.sql(site)));
            std::thread::sleep(Duration::from_millis(300));
        }
    });
    for site in [A0, B0] {
        let mut client = sites.sql(site);
        until(|| ask(&sites, &mut client, site, "SELECT key FROM note WHERE key >= $1", 0).len() == 600);
    }
}

#[test]
fn a_server_that_crashes_under_its_sites_takes_nothing_with_it() {
    let _alone = alone();
    let Some(sites) = Sites::start_over(Engine::Postgres, 2, 1) else { return };
    let mut client = sites.client(1, &[A0, B0]);
    for round in 0..60 {
        if round % 20 == 10 {
            crash(&sites);
        }
        // Additions, since a site that has not read its log yet may refuse by what it had before.
        let reply = client.execute(b"add alice 1", PATIENCE);
        done(reply.or_else(|_| client.execute_again(b"add alice 1", PATIENCE)));
    }
    for site in [A0, B0] {
        let mut there = sites.client(2, &[site]);
        until(|| there.read(b"get alice", PATIENCE).is_ok_and(|value| value == b"60"));
    }
}

#[test]
fn idle_server_crash_ends_no_site() {
    let _alone = alone();
    let Some(sites) = Sites::start_over(Engine::Postgres, 2, 1) else { return };
    let mut client = sites.client(1, &[A0, B0]);
    sites.sql(A0).batch_execute("CREATE TABLE note (key int PRIMARY KEY)").unwrap();
    done(client.execute(b"add alice 1", PATIENCE));
    for site in [A0, B0] {
        let mut there = sites.client(2, &[site]);
        until(|| there.read(b"get alice", PATIENCE).is_ok_and(|value| value == b"1"));
    }
    let begun = sites.ended.load(Ordering::Relaxed);
    // Longer than a connection may be idle, and than a server takes to write behind commits that did not wait.
    std::thread::sleep(Duration::from_secs(3));
    let database = sites.config.database(A0).unwrap().unwrap();
    let mut old = Client::connect(&database, NoTls).unwrap();
    crash(&sites);
    until(|| old.batch_execute("SELECT 1").is_err());
    until(|| {
        Client::connect(&database, NoTls).is_ok_and(|mut client| client.batch_execute("SELECT 1").is_ok())
    });
    done(client.execute(b"add alice 1", PATIENCE));
    insert(&sites, &mut sites.sql(B0), B0, 1);
    for site in [A0, B0] {
        let mut there = sites.client(2, &[site]);
        until(|| there.read(b"get alice", PATIENCE).is_ok_and(|value| value == b"2"));
    }
    assert_eq!(sites.ended.load(Ordering::Relaxed), begun, "a site has begun anew");
}
