//! The protocol as the site's own server speaks it: what a driver sends, and when it is answered.

use super::raw::{Raw, executed, flush, parsed, query, sync};
use super::*;

/// A site with an empty table.
fn alone() -> Option<Sites> {
    let sites = Sites::start_over(Engine::Postgres, 1, 1)?;
    sites.sql(A0).batch_execute("CREATE TABLE note (key int PRIMARY KEY, what text)").unwrap();
    Some(sites)
}

/// Rows for a COPY.
fn copied(rows: &str) -> Vec<u8> {
    framed(b"d", rows.as_bytes())
}

/// Ends a COPY.
fn copy_done() -> Vec<u8> {
    framed(b"c", b"")
}

#[test]
fn what_pools_reset_spoils_no_prepared_statement() {
    let Some(sites) = alone() else { return };
    let mut key = 0;
    for reset in [
        "RESET ALL",
        "DISCARD ALL",
        "SELECT pg_advisory_unlock_all(); CLOSE ALL; UNLISTEN *; RESET ALL",
        "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED",
        "SET default_transaction_isolation = 'read committed'",
        "RESET default_transaction_isolation",
    ] {
        let mut raw = Raw::begun(&sites);
        raw.ask(reset);
        for _ in 0..2 {
            key += 1;
            raw.say(&[executed(&format!("INSERT INTO note VALUES ({key})")), sync()]);
            assert_eq!(raw.tags('Z'), "12CZ", "{reset}");
            // Prepared, and executed when the server has long been asked something else.
            raw.say(&[parsed("SELECT count(*)::text FROM note"), flush()]);
            assert_eq!(raw.next(), "1");
            raw.say(&[framed(b"B", &[0; 8]), framed(b"E", &[0; 5]), sync()]);
            assert_eq!(raw.until('Z')[1], format!("D {key}"), "{reset}");
        }
        // What is asked in one go with the reset.
        raw.say(&[executed("RESET ALL"), executed("SELECT 1::text"), sync()]);
        assert_eq!(raw.tags('Z'), "12C12DCZ", "{reset}");
    }
}

#[test]
fn errors_and_notices_arrive_before_sync() {
    let Some(sites) = alone() else { return };
    let mut raw = Raw::begun(&sites);
    for (messages, code) in [(parsed("SELEC 1"), "E 42601"), (executed("SELECT 1 / 0"), "E 22012")] {
        for (begin, state) in [("ROLLBACK", "Z I"), ("BEGIN", "Z E")] {
            raw.ask(begin);
            raw.say(std::slice::from_ref(&messages));
            assert_eq!(raw.until('E').last().unwrap(), code);
            // All that comes before Sync is ignored, whatever it is.
            let behind = [query("INSERT INTO note VALUES (1)"), framed(b"F", &[0; 10]), flush(), copied("2")];
            raw.say(&behind);
            raw.say(&[executed("INSERT INTO note VALUES (3)"), sync()]);
            assert_eq!(raw.until('Z'), [state]);
        }
    }
    raw.ask("ROLLBACK");
    assert_eq!(raw.value("SELECT count(*) FROM note"), "0");
    let mut holder = sites.server(A0);
    holder.batch_execute("SELECT pg_advisory_lock(7)").unwrap();
    raw.say(&[query("DO $$ BEGIN RAISE NOTICE 'it waits'; PERFORM pg_advisory_xact_lock(7); END $$")]);
    assert_eq!(raw.next(), "N 00000");
    holder.batch_execute("SELECT pg_advisory_unlock(7)").unwrap();
    assert_eq!(raw.until('Z'), ["C DO", "Z I"]);
}

#[test]
fn bad_row_is_refused_in_the_middle_of_copy() {
    let Some(sites) = alone() else { return };
    let notice = "CREATE FUNCTION notes() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE NOTICE 'noted'; RETURN new; END $$";
    let mut raw = Raw::begun(&sites);
    raw.ask(notice);
    raw.ask("CREATE TRIGGER notes BEFORE INSERT ON note FOR EACH ROW EXECUTE FUNCTION notes()");
    for (begin, state) in [("ROLLBACK", "Z I"), ("BEGIN", "Z E")] {
        for extended in [false, true] {
            raw.ask(begin);
            let copy = "COPY note FROM STDIN";
            raw.say(&if extended { [executed(copy), flush()] } else { [query(copy), Vec::new()] });
            assert_eq!(raw.until('G').last().unwrap(), "G");
            raw.say(&[copied("1\tx\n")]);
            assert_eq!(raw.next(), "N 00000");
            raw.say(&[copied("no number\tx\n")]);
            assert_eq!(raw.next(), "E 22P02");
            raw.say(&[copied("2\tx\n"), copy_done()]);
            if extended {
                raw.say(&[sync()]);
            }
            assert_eq!(raw.next(), state);
            raw.ask("ROLLBACK");
            assert_eq!(raw.value("SELECT count(*) FROM note"), "0");
        }
    }
}

#[test]
fn end_of_a_session_reaches_its_silent_client() {
    let Some(sites) = alone() else { return };
    let mut server = sites.server(A0);
    for (beginning, last) in [
        (query("SELECT 1"), 'Z'),
        (query("BEGIN; INSERT INTO note VALUES (1)"), 'Z'),
        ([executed("INSERT INTO note VALUES (2)"), flush()].concat(), 'C'),
        (query("COPY note FROM STDIN"), 'G'),
        // A message that does not end.
        ([query("SELECT 1"), b"Q\0\0".to_vec()].concat(), 'Z'),
    ] {
        let mut raw = Raw::begun(&sites);
        let pid = raw.value("SELECT pg_backend_pid()");
        raw.say(&[beginning]);
        raw.until(last);
        server.batch_execute(&format!("SELECT pg_terminate_backend({pid})")).unwrap();
        // Behind it the connection ends, and its place is free.
        assert_eq!([raw.next(), raw.next()], ["E 57P01", "end"]);
    }
    for (begin, setting, code) in
        [("ROLLBACK", "idle_session", "E 57P05"), ("BEGIN", "idle_in_transaction_session", "E 25P03")]
    {
        let mut raw = Raw::begun(&sites);
        raw.ask(begin);
        raw.say(&[query(&format!("SET {setting}_timeout = '20ms'"))]);
        assert_eq!(raw.until('E').last().unwrap(), code);
        assert_eq!(raw.next(), "end");
    }
}

#[test]
fn settings_behind_a_write_last_if_it_commits() {
    let Some(sites) = alone() else { return };
    let mut raw = Raw::begun(&sites);
    let piped = |statements: &[&str]| {
        statements.iter().map(|text| executed(text)).chain([sync()]).collect::<Vec<_>>().concat()
    };
    for (messages, expected) in [
        (query("INSERT INTO note VALUES (0); SET application_name = 'a'"), "a"),
        (piped(&["INSERT INTO note VALUES (1)", "SET application_name = 'b'"]), "b"),
        (piped(&["BEGIN", "SET application_name = 'c'", "INSERT INTO note VALUES (2)", "COMMIT"]), "c"),
        // Not one that its transaction has undone, or that was never executed, or refused.
        (query("INSERT INTO note VALUES (3); SET application_name = 'd'; SELECT 1 / 0"), "c"),
        (query("BEGIN; SET application_name = 'e'; INSERT INTO note VALUES (3); ROLLBACK"), "c"),
        (
            query(
                "BEGIN; SET application_name = 'f'; SAVEPOINT s; SET application_name = 'g'; ROLLBACK TO s; INSERT INTO note VALUES (3); COMMIT",
            ),
            "f",
        ),
        (
            [
                executed("INSERT INTO note VALUES (4)"),
                parsed("SET application_name = 'h'"),
                framed(b"B", &[0; 8]),
                sync(),
            ]
            .concat(),
            "f",
        ),
    ] {
        raw.say(&[messages]);
        raw.until('Z');
        assert_eq!(raw.value("SHOW application_name"), expected);
    }
    let said = raw.ask("INSERT INTO note VALUES (5); SET application_name = 'i'");
    let told: Vec<_> = said.iter().filter(|word| word.starts_with('S')).collect();
    assert_eq!(told, ["S application_name i"]);
}

#[test]
fn commit_reports_no_parameter_that_it_leaves() {
    let Some(sites) = alone() else { return };
    let mut raw = Raw::begun(&sites);
    assert_eq!(raw.ask("SET TimeZone = 'Europe/Paris'"), ["C SET", "S TimeZone Europe/Paris", "Z I"]);
    raw.ask("SET DateStyle = 'German'; SET IntervalStyle = 'iso_8601'");
    assert_eq!(raw.ask("INSERT INTO note VALUES (1)"), ["C INSERT 0 1", "Z I"]);
    raw.ask("BEGIN; DELETE FROM note");
    assert_eq!(raw.ask("COMMIT"), ["C COMMIT", "Z I"]);
    raw.say(&[executed("INSERT INTO note VALUES (1)"), sync()]);
    assert_eq!(raw.until('Z'), ["1", "2", "C INSERT 0 1", "Z I"]);
    assert_eq!(raw.value("SHOW TimeZone"), "Europe/Paris");
}

#[test]
fn timeouts_of_statements_end_no_commit() {
    let Some(sites) = alone() else { return };
    let mut holder = sites.server(A0);
    let mut raw = Raw::begun(&sites);
    raw.ask("BEGIN; INSERT INTO note VALUES (1); SET LOCAL lock_timeout = '1ms'; SET LOCAL statement_timeout = '1s'");
    holder.batch_execute("BEGIN; LOCK TABLE pares_tables IN ACCESS EXCLUSIVE MODE").unwrap();
    raw.say(&[query("COMMIT")]);
    // It looks there which tables participate, and waits for longer than any of its statements may.
    let waits = "SELECT count(*) FROM pg_locks WHERE relation = 'pares_tables'::regclass AND NOT granted
        AND waitstart < clock_timestamp() - interval '1500ms'";
    until(|| holder.query_one(waits, &[]).unwrap().get::<_, i64>(0) > 0);
    holder.batch_execute("ROLLBACK").unwrap();
    assert_eq!(raw.until('Z'), ["C COMMIT", "Z I"]);
    assert_eq!(raw.value("SHOW statement_timeout"), "0");
}

#[test]
fn unknown_version_of_protocol_gets_an_error() {
    let Some(sites) = alone() else { return };
    for first in [&b"\0\x02\0\0user\0postgres\0\0"[..], b"\0\x04\0\x01user\0postgres\0\0", &[9; 20]] {
        let mut raw = Raw::saying(&sites, first);
        assert_eq!([raw.next(), raw.next()], ["E 0A000", "end"]);
    }
}
