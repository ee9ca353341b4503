//! Ordinary SQL clients at two sites, in two clusters.
#![allow(clippy::unwrap_used)] // helpers are test code, too

mod common;
#[path = "sql/control.rs"]
mod control;
#[path = "sql/copy.rs"]
mod copy;
#[path = "sql/deltas.rs"]
mod deltas;
#[path = "sql/drivers.rs"]
mod drivers;
#[path = "sql/levels.rs"]
mod levels;
#[path = "sql/messages.rs"]
mod messages;
#[path = "sql/notes.rs"]
mod notes;
#[path = "sql/outcomes.rs"]
mod outcomes;
#[path = "sql/own.rs"]
mod own;
#[path = "sql/raw.rs"]
mod raw;
#[path = "sql/same.rs"]
mod same;
#[path = "sql/server.rs"]
mod server;
#[path = "sql/stalls.rs"]
mod stalls;
#[path = "sql/tls.rs"]
mod tls;
#[path = "sql/tools.rs"]
mod tools;
#[path = "sql/types.rs"]
mod types;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::time::Duration;

use common::{Engine, Sites, until};
use pares_site::backup::Restoration;
use pares_site::protocol::Code;
use pares_site::{Application, ApplicationError, Process, View};
use pares_store::{Reads, Work};
use pares_wice::{Key, SiteId, TransactionId, Value};
use postgres::error::SqlState;
use postgres::{Client, Error, Transaction};

const A0: SiteId = SiteId::new(0, 0);
const B0: SiteId = SiteId::new(1, 0);
const BANK: &str = "CREATE TABLE account (number int PRIMARY KEY, email text UNIQUE, balance numeric NOT NULL CHECK (balance >= 0))";

/// Two sites, with what these statements make at the first.
fn with(statements: &str) -> Option<(Sites, Client, Client)> {
    let sites = Sites::start_over(Engine::Postgres, 2, 1)?;
    let (mut here, there) = (sites.sql(A0), sites.sql(B0));
    statements.split(';').for_each(|statement| here.batch_execute(statement).unwrap());
    Some((sites, here, there))
}

/// Two sites with the accounts 1 to 5 at 100 each.
fn bank() -> Option<(Sites, Client, Client)> {
    let (sites, mut here, mut there) = with(BANK)?;
    here.execute("INSERT INTO account SELECT i, 'm' || i, 100 FROM generate_series(1, 5) i", &[]).unwrap();
    until(|| count(&mut there) == Some(5));
    Some((sites, here, there))
}

fn count(client: &mut Client) -> Option<i64> {
    client.query_one("SELECT count(*) FROM account", &[]).ok().map(|row| row.get(0))
}

fn rows(client: &mut Client) -> String {
    client.query_one("SELECT string_agg(a::text, ' ' ORDER BY a) FROM account a", &[]).unwrap().get(0)
}

/// Until both sites have the same rows, which are these.
fn alike(here: &mut Client, there: &mut Client, expected: &str) {
    until(|| rows(here) == expected && rows(there) == expected);
}

/// A message of the protocol.
fn framed(tag: &[u8], body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len() + 4).unwrap().to_be_bytes();
    [tag, &length, body].concat()
}

/// Says this at A0, and then nothing more; until the site has closed, which it may before it has heard all.
fn told(sites: &Sites, bytes: &[u8]) {
    let mut client = TcpStream::connect(sites.sql_address(A0)).unwrap();
    client.set_read_timeout(Some(common::PATIENCE)).unwrap();
    let _ = client.write_all(bytes).and_then(|()| client.shutdown(std::net::Shutdown::Write));
    let _ = client.read_to_end(&mut Vec::new());
}

fn code(error: &Error) -> &str {
    error.code().map_or("none", SqlState::code)
}

fn transfer(transaction: &mut Transaction<'_>, from: i32, to: i32) -> Result<(), Error> {
    for (number, sum) in [(from, -1i64), (to, 1)] {
        let row = transaction.query_one("SELECT balance::int8 FROM account WHERE number = $1", &[&number])?;
        let balance: i64 = row.get(0);
        let new = balance + sum;
        transaction.execute("UPDATE account SET balance = $2::int8 WHERE number = $1", &[&number, &new])?;
    }
    Ok(())
}

/// Transfers with a retry loop as every application has it; how often it had to run one again.
fn transfers(client: &mut Client, first: i32, count: i32) -> u32 {
    let mut again = 0;
    for round in 0..count {
        let (from, to) = ((first + round) % 5 + 1, (first + round * 3 + 1) % 5 + 1);
        if from == to {
            continue;
        }
        loop {
            // What makes way may learn it as late as when it begins again.
            let done = client.transaction().and_then(|mut transaction| {
                transfer(&mut transaction, from, to).and_then(|()| transaction.commit())
            });
            match done {
                Ok(()) => break,
                // Two at one site may also wait for each other, as ever.
                Err(error) if ["40001", "40P01"].contains(&code(&error)) => again += 1,
                Err(error) => panic!("{} {error}", code(&error)),
            }
        }
    }
    again
}

#[test]
fn transfers_at_two_sites_with_ordinary_retries_lose_nothing() {
    let Some((sites, mut here, mut there)) = bank() else { return };
    let again: u32 = std::thread::scope(|scope| {
        let clients = [(A0, 0), (A0, 1), (B0, 2), (B0, 3)];
        let run = clients.map(|(site, first)| {
            let mut client = sites.sql(site);
            scope.spawn(move || transfers(&mut client, first, 25))
        });
        run.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert!(again > 0, "nothing ever met");
    until(|| rows(&mut here) == rows(&mut there));
    // Each account gave as often as it got, or the sum would say so.
    let sum: String = there.query_one("SELECT sum(balance)::text FROM account", &[]).unwrap().get(0);
    assert_eq!(sum, "500");
}

#[test]
fn later_of_two_row_updates_gets_40001_and_retries() {
    let Some((_sites, mut here, mut there)) = bank() else { return };
    for statement in ["COMMIT", "SELECT 1"] {
        here.batch_execute("BEGIN; UPDATE account SET balance = balance + 1 WHERE number = 1").unwrap();
        there.batch_execute("UPDATE account SET balance = balance + 10 WHERE number = 1").unwrap();
        let lost = here.batch_execute(statement);
        if let Err(error) = &lost {
            assert_eq!(code(error), "40001");
        } else {
            assert_eq!(code(&here.batch_execute("COMMIT").unwrap_err()), "40001");
        }
        here.batch_execute("ROLLBACK").unwrap();
        // The other's update may arrive while this one is executed: then it is repeated, as applications do.
        until(|| match here.batch_execute("UPDATE account SET balance = balance + 1 WHERE number = 1") {
            Ok(()) => true,
            Err(error) => {
                assert_eq!(code(&error), "40001");
                false
            }
        });
        until(|| rows(&mut here) == rows(&mut there));
    }
    alike(&mut here, &mut there, "(1,m1,122) (2,m2,100) (3,m3,100) (4,m4,100) (5,m5,100)");
}

#[test]
fn what_was_committed_is_seen_by_the_next_statement() {
    let Some((_sites, mut here, mut there)) = bank() else { return };
    for round in 1..=20i64 {
        here.execute("UPDATE account SET balance = $1::int8 WHERE number = 2", &[&round]).unwrap();
        let seen = here.query_one("SELECT balance::int8 FROM account WHERE number = 2", &[]).unwrap();
        assert_eq!(seen.get::<_, i64>(0), round);
    }
    alike(&mut here, &mut there, "(1,m1,100) (2,m2,20) (3,m3,100) (4,m4,100) (5,m5,100)");
}

#[test]
fn a_row_that_was_locked_to_be_read_is_certified() {
    let Some((_sites, mut here, mut there)) = bank() else { return };
    let mut reading = here.transaction().unwrap();
    reading.query("SELECT * FROM account WHERE number = 1 FOR UPDATE", &[]).unwrap();
    reading.execute("UPDATE account SET balance = 7 WHERE number = 2", &[]).unwrap();
    there.execute("UPDATE account SET balance = 0 WHERE number = 1", &[]).unwrap();
    assert_eq!(code(&reading.commit().unwrap_err()), "40001");
    // Without the lock it is what snapshot isolation is: write skew.
    let mut reading = here.transaction().unwrap();
    reading.query("SELECT * FROM account WHERE number = 3", &[]).unwrap();
    reading.execute("UPDATE account SET balance = 7 WHERE number = 2", &[]).unwrap();
    there.execute("UPDATE account SET balance = 0 WHERE number = 3", &[]).unwrap();
    reading.commit().unwrap();
    alike(&mut here, &mut there, "(1,m1,0) (2,m2,7) (3,m3,0) (4,m4,100) (5,m5,100)");
}

#[test]
fn errors_and_savepoints_are_as_ever() {
    let Some((_sites, mut here, mut there)) = bank() else { return };
    let refused = here.execute("UPDATE account SET balance = -1 WHERE number = 1", &[]).unwrap_err();
    assert_eq!(code(&refused), "23514");
    let refused = here.execute("INSERT INTO account VALUES (6, 'm1', 1)", &[]).unwrap_err();
    assert_eq!(code(&refused), "23505");
    let mut transaction = here.transaction().unwrap();
    transaction.execute("UPDATE account SET balance = 1 WHERE number = 1", &[]).unwrap();
    let mut inner = transaction.transaction().unwrap();
    inner.execute("UPDATE account SET balance = 2 WHERE number = 2", &[]).unwrap();
    inner.execute("UPDATE account SET balance = -2 WHERE number = 2", &[]).unwrap_err();
    inner.rollback().unwrap();
    transaction.execute("UPDATE account SET balance = 3 WHERE number = 3", &[]).unwrap();
    transaction.commit().unwrap();
    let mut transaction = here.transaction().unwrap();
    transaction.execute("DELETE FROM account", &[]).unwrap();
    transaction.query("SELECT 1 / 0", &[]).unwrap_err();
    assert_eq!(code(&transaction.execute("DELETE FROM account", &[]).unwrap_err()), "25P02");
    transaction.commit().unwrap(); // which says ROLLBACK
    alike(&mut here, &mut there, "(1,m1,1) (2,m2,100) (3,m3,3) (4,m4,100) (5,m5,100)");
    here.batch_execute("SET statement_timeout = 12345; BEGIN; SET statement_timeout = 23456; UPDATE account SET balance = 4 WHERE number = 4; COMMIT")
        .unwrap();
    let seen: String = here.query_one("SHOW statement_timeout", &[]).unwrap().get(0);
    assert_eq!(seen, "23456ms");
}

#[test]
fn the_schema_changes_at_every_site_at_one_version() {
    let Some((mut sites, mut here, mut there)) = bank() else { return };
    there.batch_execute("ALTER TABLE account ADD COLUMN owner text NOT NULL DEFAULT 'nobody'").unwrap();
    there.execute("UPDATE account SET owner = 'Ada' WHERE number = 1", &[]).unwrap();
    there.batch_execute("CREATE INDEX ON account (owner)").unwrap();
    there.batch_execute("CREATE TABLE note (at timestamptz PRIMARY KEY DEFAULT now(), number int REFERENCES account, what text)").unwrap();
    there.execute("INSERT INTO note (number, what) VALUES (1, 'hello')", &[]).unwrap();
    let expected = "(1,m1,100,Ada) (2,m2,100,nobody) (3,m3,100,nobody) (4,m4,100,nobody) (5,m5,100,nobody)";
    alike(&mut here, &mut there, expected);
    until(|| here.query("SELECT * FROM note", &[]).is_ok_and(|rows| rows.len() == 1));
    // What began before is not certified after.
    here.batch_execute("BEGIN; INSERT INTO account VALUES (7, 'm7', 7)").unwrap();
    there.batch_execute("CREATE TABLE other (a int PRIMARY KEY)").unwrap();
    let late = here.batch_execute("COMMIT").unwrap_err();
    assert_eq!(code(&late), "40001");
    there.batch_execute("DROP TABLE note").unwrap();
    sites.restart(A0);
    let mut here = sites.sql(A0);
    alike(&mut here, &mut there, expected);
    until(|| here.query("SELECT * FROM note", &[]).is_err());
}

#[test]
fn unreplicable_statements_are_refused_entirely() {
    let Some((_sites, mut here, mut there)) = bank() else { return };
    for statement in [
        "TRUNCATE account",
        "LOCK TABLE account",
        "LISTEN a",
        "CREATE TEMP TABLE a (b int)",
        "CREATE TABLE heap (a int)",
        "CREATE TABLE counted (a serial PRIMARY KEY)",
        "CREATE TABLE copied AS SELECT 1 AS a",
        "CREATE ROLE somebody",
        "ALTER TABLE account ADD COLUMN at timestamptz DEFAULT now()",
        "ALTER TABLE account ADD COLUMN at timestamptz DEFAULT 'now'",
        "ALTER TABLE account ADD COLUMN id uuid DEFAULT gen_random_uuid()",
        "ALTER TABLE account ALTER COLUMN number TYPE bigint",
        "ALTER TABLE account DISABLE TRIGGER ALL",
        "SELECT 1 AS a INTO made",
        "UPDATE pares_items SET value = ''",
        "DO $$ BEGIN UPDATE account SET balance = 9; COMMIT; END $$",
        "DO $$ BEGIN CREATE TABLE hidden (a int PRIMARY KEY); END $$",
        "DO $$ BEGIN CREATE TEMP TABLE hidden (a int PRIMARY KEY); END $$",
        "DO $$ BEGIN CREATE FUNCTION hidden() RETURNS int LANGUAGE sql AS 'SELECT 1'; END $$",
        "DO $$ BEGIN ALTER TABLE account ADD COLUMN hidden int; END $$",
        "DO $$ BEGIN DROP TABLE account; END $$",
        "DO $$ BEGIN ALTER TABLE account DROP COLUMN email; COMMIT; END $$",
        "DO $$ BEGIN COMMENT ON TABLE account IS 'hidden'; END $$",
        "DO $$ BEGIN GRANT SELECT ON account TO PUBLIC; END $$",
        "DO $$ BEGIN CREATE ROLE hidden; END $$",
        "SELECT lo_create(0)",
        "BEGIN; UPDATE account SET balance = 9; CREATE TABLE x (a int PRIMARY KEY); COMMIT",
    ] {
        let refused = here.batch_execute(statement).unwrap_err();
        assert!(
            ["0A000", "2D000", "42601"].contains(&code(&refused))
                || statement.contains("heap")
                || statement.contains("AS SELECT"),
            "{statement}: {refused:?}"
        );
        here.batch_execute("ROLLBACK").unwrap();
    }
    let hidden = "SELECT FROM pg_class WHERE relname = 'hidden' UNION ALL SELECT FROM pg_proc WHERE proname = 'hidden'
        UNION ALL SELECT FROM pg_roles WHERE rolname = 'hidden' UNION ALL SELECT FROM pg_largeobject_metadata";
    assert!(here.query(hidden, &[]).unwrap().is_empty());
    let duplicate = here.batch_execute(BANK).unwrap_err();
    assert_eq!(code(&duplicate), "42P07");
    alike(&mut here, &mut there, "(1,m1,100) (2,m2,100) (3,m3,100) (4,m4,100) (5,m5,100)");
}

#[test]
fn server_local_schema_change_needs_privilege() {
    let Some((sites, mut here, mut there)) = bank() else { return };
    let mut server = sites.server(A0);
    for statement in ["CREATE TABLE x (a int PRIMARY KEY)", "DROP TABLE account", "CREATE TYPE x AS (a int)"]
    {
        let refused = server.batch_execute(statement).unwrap_err();
        assert_eq!(code(&refused), "0A000", "{statement}");
    }
    // What is each server's own, and what ends with the session.
    server
        .batch_execute("GRANT SELECT ON account TO PUBLIC; CREATE TEMP TABLE x (a serial PRIMARY KEY)")
        .unwrap();
    server
        .batch_execute("ALTER TABLE x ADD COLUMN b int DEFAULT 1; ALTER TABLE x DROP COLUMN b; DROP TABLE x")
        .unwrap();
    server
        .batch_execute("SET session_replication_role = replica; CREATE TABLE x (a int PRIMARY KEY)")
        .unwrap();
    assert!(here.query("SELECT * FROM x", &[]).unwrap().is_empty());
    there.query("SELECT * FROM x", &[]).unwrap_err();
}

#[test]
fn database_of_other_system_is_reported_unchanged() {
    let Some((mut sites, mut here, there)) = bank() else { return };
    let elsewhere = tempfile::tempdir().unwrap();
    let before = catalogue(&sites);
    let mut other = sites.config.clone();
    other.identity = pares_site::SitesConfig::draw_identity();
    other.make_directories(elsewhere.path()).unwrap();
    drop(there);
    sites.stop(B0);
    let refused = Process::open(&other, B0, elsewhere.path(), Rude).err().unwrap();
    assert!(refused.is_damage() && refused.to_string().contains(&sites.config.identity), "{refused}");
    assert_eq!(catalogue(&sites), before);
    // What a restore that comes to nothing has to leave to its operator, and what not.
    assert_eq!(Restoration::claimed(&sites.config).unwrap().len(), 2);
    assert_eq!(Restoration::claimed(&other).unwrap(), [] as [String; 0]);
    sites.run(B0);
    let mut there = sites.sql(B0);
    alike(&mut here, &mut there, "(1,m1,100) (2,m2,100) (3,m3,100) (4,m4,100) (5,m5,100)");
}

/// Which versions the rows of the catalogue are that concern the store, in the database of B0.
fn catalogue(sites: &Sites) -> String {
    let mut server = sites.server(B0);
    let query = "SELECT string_agg(part, ' ' ORDER BY part) FROM (
            SELECT oid || ':' || xmin AS part FROM pg_class WHERE relname LIKE 'pares%'
            UNION ALL SELECT oid || ':' || xmin FROM pg_proc WHERE proname LIKE 'pares%'
            UNION ALL SELECT oid || ':' || xmin FROM pg_trigger WHERE tgname LIKE 'pares%'
            UNION ALL SELECT oid || ':' || xmin FROM pg_event_trigger) parts";
    server.query_one(query, &[]).unwrap().get(0)
}

#[test]
fn psql_is_a_client() {
    let Some((sites, mut here, mut there)) = bank() else { return };
    let psql = |script: &str| {
        let output = Command::new("psql")
            .args([&sites.sql_url(A0), "-X", "-A", "-t", "-v", "VERBOSITY=verbose"])
            .args(["-c", script])
            .output();
        let output = output.unwrap();
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
    };
    assert_eq!(
        psql(
            "BEGIN; UPDATE account SET balance = 5 WHERE number = 5; COMMIT; SELECT balance FROM account WHERE number = 5"
        ),
        "BEGIN\nUPDATE 1\nCOMMIT\n5\n"
    );
    assert_eq!(psql("DELETE FROM account WHERE number = 4"), "DELETE 1\n");
    assert!(psql("TRUNCATE account").contains("0A000"));
    assert!(psql("SELECT 1 / 0").contains("22012"));
    let described = psql("\\di");
    assert!(described.contains("account_pkey"), "{described}");
    alike(&mut here, &mut there, "(1,m1,100) (2,m2,100) (3,m3,100) (5,m5,5)");
}

#[test]
fn a_statement_under_way_that_is_in_the_way_is_ended_with_40001() {
    let Some((_sites, mut here, mut there)) = bank() else { return };
    here.batch_execute("BEGIN; UPDATE account SET balance = 1 WHERE number = 1").unwrap();
    std::thread::scope(|scope| {
        let sleeping = scope.spawn(|| here.batch_execute("SELECT pg_sleep(600)").unwrap_err());
        there.batch_execute("UPDATE account SET balance = 2 WHERE number = 1").unwrap();
        assert_eq!(code(&sleeping.join().unwrap()), "40001");
    });
    here.batch_execute("ROLLBACK").unwrap();
    alike(&mut here, &mut there, "(1,m1,2) (2,m2,100) (3,m3,100) (4,m4,100) (5,m5,100)");
}

#[test]
fn an_outcome_that_is_not_known_is_told_as_that() {
    let Some((mut sites, mut here, there)) = bank() else { return };
    drop(there);
    sites.stop(B0);
    here.batch_execute("SET pares.commit_timeout_ms = 300").unwrap();
    let unknown = here.batch_execute("UPDATE account SET balance = 1 WHERE number = 1").unwrap_err();
    assert_eq!(code(&unknown), "40003");
    // Nobody writes: what was written before is in one cluster only.
    here.batch_execute("SET pares.commit_timeout_ms = 12000").unwrap();
    let late = here.batch_execute("ALTER TABLE account ADD COLUMN late int").unwrap_err();
    assert_eq!(code(&late), "57P03", "{late:?}");
    sites.run(B0);
    let mut there = sites.sql(B0);
    alike(&mut here, &mut there, "(1,m1,1) (2,m2,100) (3,m3,100) (4,m4,100) (5,m5,100)");
}

#[test]
fn a_site_that_knows_no_certifier_lets_nobody_in() {
    let Some((mut sites, here, there)) = bank() else { return };
    drop((here, there));
    sites.stop(A0);
    sites.restart(B0);
    let refused = Client::connect(&sites.sql_url(B0), postgres::NoTls).err().unwrap();
    assert_eq!(code(&refused), "57P03");
    sites.run(A0);
    let (mut here, mut there) = (sites.sql(A0), sites.sql(B0));
    alike(&mut here, &mut there, "(1,m1,100) (2,m2,100) (3,m3,100) (4,m4,100) (5,m5,100)");
}

#[test]
fn other_encoding_refused_rows_captured_verbatim() {
    let Some((sites, mut here, mut there)) = bank() else { return };
    let psql = |script: &str| {
        let mut command = Command::new("psql");
        command.env("PGCLIENTENCODING", "LATIN1").args([&sites.sql_url(A0), "-X", "-A", "-t", "-c", script]);
        let output = command.output().unwrap();
        String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
    };
    assert_eq!(psql("UPDATE account SET email = U&'\\00fc' WHERE number = 1"), "UPDATE 1\n");
    alike(&mut here, &mut there, "(1,ü,100) (2,m2,100) (3,m3,100) (4,m4,100) (5,m5,100)");
}

#[test]
fn a_site_that_was_away_gets_tables_and_rows_with_a_state() {
    let Some(mut sites) = Sites::start_over(Engine::Postgres, 1, 3) else { return };
    let away = SiteId::new(0, 2);
    let mut here = sites.sql(A0);
    here.batch_execute("CREATE TABLE early (a int PRIMARY KEY)").unwrap();
    here.batch_execute("INSERT INTO early VALUES (1)").unwrap();
    let mut there = sites.sql(away);
    until(|| there.query("SELECT * FROM early", &[]).is_ok_and(|rows| rows.len() == 1));
    drop(there);
    sites.stop(away);
    here.batch_execute(BANK).unwrap();
    here.batch_execute("INSERT INTO account VALUES (1, 'm1', 1); DELETE FROM early").unwrap();
    here.batch_execute("ALTER TABLE account ADD COLUMN owner text DEFAULT 'nobody'").unwrap();
    here.batch_execute("INSERT INTO account VALUES (2, 'm2', 2)").unwrap();
    let mut client = sites.client(1, &[A0, SiteId::new(0, 1)]);
    sites.outgrow_logs(&mut client, &[A0, SiteId::new(0, 1)]);
    sites.run(away);
    let mut there = sites.sql(away);
    alike(&mut here, &mut there, "(1,m1,1,nobody) (2,m2,2,nobody)");
    until(|| there.query("SELECT * FROM early", &[]).is_ok_and(|rows| rows.is_empty()));
    there.batch_execute("UPDATE account SET owner = 'Ada' WHERE number = 1").unwrap();
    alike(&mut here, &mut there, "(1,m1,1,Ada) (2,m2,2,nobody)");
}

/// Puts an item under the name that it is asked for.
#[derive(Clone)]
struct Rude;

impl Application for Rude {
    fn execute(&self, request: &[u8], work: &mut Work<View<'_>>) -> Result<Vec<u8>, ApplicationError> {
        work.put(&Key::new(request), Value::from("x"));
        Ok(Vec::new())
    }

    fn read(&self, request: &[u8], items: &dyn Reads) -> Result<Vec<u8>, ApplicationError> {
        Ok(items.get(&Key::new(request))?.map_or(Vec::new(), |value| value.as_bytes().to_vec()))
    }
}

#[test]
fn an_application_cannot_write_what_stands_behind_tables() {
    let mut sites = Sites::start(1, 1);
    sites.stop(A0);
    let mut process = Process::open(&sites.config, A0, &sites.dir, Rude).unwrap();
    for (sequence, name, expected) in
        [(1, "sql/row/public.account\0{}", Code::Refused), (2, "sql", Code::Done)]
    {
        process.submit(TransactionId { client: 1, sequence }, name.into());
        until(|| {
            process.turn(Duration::from_millis(5)).unwrap();
            process.answered().next().is_some_and(|answered| {
                assert_eq!(answered.answer.code, expected, "{name}");
                true
            })
        });
    }
}

#[test]
fn what_is_no_protocol_ends_its_own_connection_and_no_other() {
    let Some((sites, mut here, mut there)) = bank() else { return };
    let startup = b"\0\x03\0\0user\0postgres\0\0";
    for after in [
        framed(b"Q", b"SELECT 'no end"),
        framed(b"Q", b"\xff\xfe\0"),
        framed(b"Q", b""),
        [framed(b"P", b"\0"), framed(b"E", b""), framed(b"B", b"\0\0"), framed(b"S", b"")].concat(),
        [framed(b"D", b""), framed(b"C", b""), framed(b"D", b"Snobody\0"), framed(b"S", b"")].concat(),
        [framed(b"B", b"\0\0\0\0\0\0\0\0"), framed(b"d", b"x"), framed(b"c", b""), framed(b"S", b"")]
            .concat(),
        framed(b"F", b"\0\0\0\0"),
        vec![b'Q', 0xff, 0xff, 0xff, 0xff, 0],
        vec![0; 1000],
    ] {
        told(&sites, &[framed(b"", startup), after, framed(b"X", b"")].concat());
    }
    for first in [
        &[0; 4][..],
        &[0, 0, 0, 5, 1],
        &framed(b"", &[9; 20]),
        &framed(b"", b"\0\x03\0\0user"),
        b"GET / HTTP/1.1\r\n\r\n",
    ] {
        told(&sites, first);
    }
    here.batch_execute("UPDATE account SET balance = 1 WHERE number = 1").unwrap();
    alike(&mut here, &mut there, "(1,m1,1) (2,m2,100) (3,m3,100) (4,m4,100) (5,m5,100)");
}
