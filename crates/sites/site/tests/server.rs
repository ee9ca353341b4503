//! The PostgreSQL server under sites' stores crashes and comes back. It takes its other clients down with it, so this test has a
//! process, and with it a server, of its own.
#![allow(clippy::unwrap_used)] // helpers are test code, too

mod common;

use common::{Engine, PATIENCE, Sites, done, until};
use pares_wice::SiteId;
use postgres::{Client, NoTls};
use rustix::process::{Pid, Signal, kill_process};

const A0: SiteId = SiteId::new(0, 0);
const B0: SiteId = SiteId::new(1, 0);

/// The server's process that serves the site's writer; if that is killed the whole server starts anew.
fn writer(database: &str) -> Option<Pid> {
    let mut client = None;
    until(|| {
        client = Client::connect(database, NoTls).ok();
        client.is_some()
    });
    let statement = "SELECT pid FROM pg_locks JOIN pg_database d ON d.oid = database
        WHERE locktype = 'advisory' AND granted AND datname = current_database()";
    let row = client.as_mut().and_then(|client| client.query_opt(statement, &[]).unwrap());
    row.and_then(|row| Pid::from_raw(row.get(0)))
}

#[test]
fn a_server_that_crashes_under_its_sites_takes_nothing_with_it() {
    let dir = tempfile::tempdir().unwrap();
    let Some(sites) = Sites::start_over(Engine::Postgres, dir.path(), 2, 1) else { return };
    let mut client = sites.client(1, &[A0, B0]);
    for round in 0..60 {
        if round % 20 == 10 {
            let database = sites.config.database(A0).unwrap().unwrap();
            let mut victim = None;
            until(|| {
                victim = writer(&database);
                victim.is_some()
            });
            kill_process(victim.unwrap(), Signal::KILL).unwrap();
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
