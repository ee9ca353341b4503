//! Where transactions begin and end, by the server's grammar: the same messages are sent to a site and to a server.

use super::raw::{executed, query, sync};
use super::server::{Both, around};
use super::*;

const INSERT: &str = "INSERT INTO note VALUES (9)";

fn piped(statement: &str) -> Vec<u8> {
    [executed(statement), sync()].concat()
}

fn named(name: &str, statement: &str) -> Vec<u8> {
    [framed(b"P", &[name.as_bytes(), b"\0", statement.as_bytes(), b"\0\0\0"].concat()), sync()].concat()
}

#[test]
fn what_is_no_beginning_or_end_is_refused_by_the_server() {
    let Some(mut both) = Both::begun() else { return };
    for text in [
        "BEGIN ISOLATION LEVEL SERIALIZEABLE",
        "BEGIN READONLY",
        "BEGIN FOO",
        "START",
        "COMMIT TO_BE_DECIDED",
        "COMMIT AND NOT CHAIN",
        "COMMIT\u{a0}",
        "COMMIT\u{b}",
        "END IF",
        "ROLLBACK SAVEPOINT s",
        "ROLLBACK TOO s",
        "ROLLBACK s",
        "ABORT TO s",
    ] {
        for messages in around(&query(text)).iter().chain(&around(&piped(text))) {
            both.same(messages);
        }
    }
}

#[test]
fn beginnings_and_ends_are_read_as_by_the_server() {
    let Some(mut both) = Both::begun() else { return };
    for text in [
        "START TRANSACTION",
        "START TRANSACTION READ WRITE",
        "BEGIN WORK READ WRITE",
        "SET TRANSACTION READ WRITE",
        "END WORK AND NO CHAIN",
        "ROLLBACK WORK TO SAVEPOINT s",
        "SAVEPOINT t",
    ] {
        for mut messages in around(&query(text)) {
            messages.push(query("ROLLBACK"));
            both.same(&messages);
        }
        both.same(&[
            query(&format!("INSERT INTO note VALUES (8); {text}")),
            query(INSERT),
            query("ROLLBACK"),
        ]);
    }
    let cursor = "DECLARE c CURSOR FOR SELECT 1";
    both.same(&[query(cursor), query(&format!("INSERT INTO note VALUES (8); {cursor}")), query(INSERT)]);
    both.same(&[query("SET LOCAL work_mem = '5MB'"), query("SET CONSTRAINTS ALL IMMEDIATE")]);
    both.same(&[
        query("SELECT E'a'\n'it\\'s;b'"),
        query("BEGIN; SELECT E'a'\n'it\\'s;b'; COMMIT; BEGIN"),
        query("COMMIT"),
    ]);
}

#[test]
fn read_write_overrules_the_session() {
    let Some(mut both) = Both::begun() else { return };
    for raw in [&mut both.here, &mut both.server] {
        raw.ask("SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL REPEATABLE READ");
    }
    let read_only = |is| query(&format!("SET default_transaction_read_only = {is}"));
    for begin in [
        "BEGIN READ WRITE",
        "START TRANSACTION READ WRITE",
        "BEGIN",
        "BEGIN READ ONLY",
        "BEGIN ISOLATION LEVEL SERIALIZABLE",
    ] {
        for inside in
            ["SELECT 1", "SET TRANSACTION READ WRITE", "SET TRANSACTION READ ONLY", "BEGIN READ WRITE"]
        {
            both.same(&[
                read_only("on"),
                query(begin),
                query("SET work_mem = '5MB'"),
                query(inside),
                query("SHOW transaction_isolation"),
                query(INSERT),
                query("COMMIT AND CHAIN"),
                query("SHOW transaction_read_only"),
                query("COMMIT"),
                query("SHOW work_mem"),
                query("RESET work_mem"),
                read_only("off"),
            ]);
        }
    }
}

#[test]
fn a_setting_ends_with_its_transaction() {
    let Some(mut both) = Both::begun() else { return };
    let shows =
        || [query("SELECT current_user"), query("SHOW work_mem"), query("SHOW transaction_isolation")];
    let reset = || query("RESET ALL; RESET ROLE; SET default_transaction_isolation = 'repeatable read'");
    for set in [
        "SET ROLE pg_monitor",
        "SET work_mem = '5MB'",
        "SET default_transaction_isolation = 'serializable'",
        "DISCARD ALL",
    ] {
        for behind in
            ["SELECT 1/0", "SELECT 1", "BEGIN ISOLATION LEVEL SERIALIZABLE; SELECT 1; COMMIT; SELECT 1/0"]
        {
            let pipeline = [executed(set), behind.split("; ").flat_map(executed).collect(), sync()].concat();
            let is_text_only = set == "DISCARD ALL";
            for first in
                [query(&format!("{set}; {behind}")), pipeline].into_iter().take(2 - usize::from(is_text_only))
            {
                both.same(&[&[reset(), first][..], &shows(), &[reset(), query(INSERT)]].concat());
            }
        }
        both.same(
            &[&[reset(), query(set)][..], &shows(), &[reset(), piped(set)], &shows(), &[reset()]].concat(),
        );
    }
}

#[test]
fn a_text_that_cannot_be_read_does_nothing() {
    let Some(mut both) = Both::begun() else { return };
    for text in [
        format!("BEGIN; {INSERT}; COMMIT; SELEC"),
        format!("{INSERT}; COMMIT; SELECT 'open"),
        format!("COMMIT; {INSERT}; COMMIT; SELECT 1 1 1"),
        format!("{INSERT}; COMMIT; INSERT INTO note VALUES (1, 2, 3)"),
        format!("BEGIN; {INSERT}; SELEC"),
        format!("ROLLBACK; BEGIN; {INSERT}; COMMIT"),
        format!("SAVEPOINT b; {INSERT}; ROLLBACK TO b"),
    ] {
        for messages in around(&query(&text)) {
            both.same(&messages);
        }
    }
}

#[test]
fn statements_that_must_be_seen_are_not_executed_by_name() {
    let Some(mut both) = Both::begun() else { return };
    for (statement, is_seen) in [
        ("ROLLBACK AND CHAIN", true),
        ("COMMIT", true),
        ("BEGIN", true),
        ("SET application_name = 'hid'", true),
        ("SAVEPOINT a", true),
        ("SHOW application_name", false),
        ("INSERT INTO note VALUES (3)", false),
    ] {
        let execute = || query("EXECUTE \"n\"");
        both.here.say(&[named("n", statement), query("BEGIN"), execute(), query("ROLLBACK")]);
        let said: Vec<_> = (0..4).flat_map(|_| both.here.until('Z')).collect();
        assert_eq!(said.contains(&"E 0A000".to_owned()), is_seen, "{statement}: {said:?}");
        // Another one has the name now.
        both.here.ask("DEALLOCATE n");
        both.same(&[
            named("n", statement),
            query("DEALLOCATE n"),
            query("PREPARE n AS SELECT 7"),
            execute(),
            piped("EXECUTE n"),
            query("DEALLOCATE n"),
        ]);
    }
}
