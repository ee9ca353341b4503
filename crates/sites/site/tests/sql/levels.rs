//! What SERIALIZABLE promises beside the rest, and how a session asks for it.

use postgres::{Config, IsolationLevel, NoTls};

use super::*;

const DUTY: &str = "
    CREATE TABLE duty (name text PRIMARY KEY, works boolean NOT NULL);
    CREATE TABLE note (key int PRIMARY KEY);
    INSERT INTO duty VALUES ('Ada', true), ('Bob', true)";

/// Two sites; two people on duty, and no notes.
fn ward() -> Option<Sites> {
    let (sites, _here, mut there) = with(DUTY)?;
    until(|| there.query("SELECT * FROM duty, note", &[]).is_ok() && on_duty(&mut there) == 2);
    Some(sites)
}

fn on_duty(client: &mut Client) -> i64 {
    client.query_one("SELECT count(*) FROM duty WHERE works", &[]).unwrap().get(0)
}

fn begin(client: &mut Client, level: IsolationLevel) -> Transaction<'_> {
    client.build_transaction().isolation_level(level).start().unwrap()
}

fn leave(mut transaction: Transaction<'_>, name: &str) -> Result<(), Error> {
    transaction.execute("UPDATE duty SET works = false WHERE name = $1", &[&name])?;
    transaction.commit()
}

/// Each of two sees two on duty, and leaves. How many are left then.
fn both_leave(one: &mut Client, other: &mut Client, level: IsolationLevel) -> i64 {
    // What the other site did last may not have come here yet; and there it is seen by a note when all of this has come.
    let begun = "WITH begun AS (UPDATE duty SET works = true) INSERT INTO note SELECT count(*) FROM note RETURNING key";
    let mut key = None;
    until(|| {
        key = one.query_one(begun, &[]).ok().map(|row| row.get::<_, i32>(0));
        key.is_some()
    });
    until(|| other.query("SELECT FROM note WHERE key = $1", &[&key]).unwrap().len() == 1);
    let (mut first, mut second) = (begin(one, level), begin(other, level));
    for transaction in [&mut first, &mut second] {
        assert_eq!(transaction.query("SELECT * FROM duty WHERE works", &[]).unwrap().len(), 2);
    }
    leave(first, "Ada").unwrap();
    if let Err(lost) = leave(second, "Bob") {
        assert_eq!(code(&lost), "40001");
    }
    until(|| on_duty(other) < 2);
    on_duty(other)
}

#[test]
fn write_skew_at_repeatable_read_not_serializable() {
    let Some(sites) = ward() else { return };
    for others in [A0, B0] {
        let (mut here, mut there) = (sites.sql(A0), sites.sql(others));
        let left = [IsolationLevel::RepeatableRead, IsolationLevel::Serializable]
            .map(|level| both_leave(&mut here, &mut there, level));
        assert_eq!(left, [0, 1], "beside a client at {others}");
    }
}

#[test]
fn what_was_looked_for_and_not_found_is_read_too() {
    let Some(sites) = ward() else { return };
    let (mut here, mut there) = (sites.sql(A0), sites.sql(B0));
    let mut key = 0;
    for question in [
        "SELECT * FROM duty WHERE name LIKE 'C%'",
        "SELECT * FROM duty WHERE name = 'Cleo'",
        "SELECT count(*) FROM duty",
        "DO $$ BEGIN PERFORM FROM duty WHERE name = 'Cleo'; END $$",
    ] {
        for (level, told) in
            [(IsolationLevel::RepeatableRead, "done"), (IsolationLevel::Serializable, "40001")]
        {
            key += 1;
            let mut reading = begin(&mut here, level);
            reading.batch_execute(question).unwrap();
            reading.execute("INSERT INTO note VALUES ($1)", &[&key]).unwrap();
            there.batch_execute("INSERT INTO duty VALUES ('Cleo', true)").unwrap();
            let outcome = reading.commit().map_or_else(|error| code(&error).to_owned(), |()| "done".into());
            assert_eq!(outcome, told, "{question} at {level:?}");
            until(|| here.execute("DELETE FROM duty WHERE name = 'Cleo'", &[]).is_ok_and(|rows| rows == 1));
            until(|| on_duty(&mut there) == 2);
        }
    }
    // What it has not read may change.
    let mut reading = begin(&mut here, IsolationLevel::Serializable);
    reading.query("SELECT * FROM duty", &[]).unwrap();
    reading.batch_execute("UPDATE duty SET works = false WHERE name = 'Ada'").unwrap();
    there.batch_execute("INSERT INTO note VALUES (1000)").unwrap();
    reading.commit().unwrap();
}

/// Leaves as often as another stays, with a retry loop, and comes back.
fn leaves_and_returns(client: &mut Client, name: &str) {
    for round in 0..20 {
        loop {
            let mut transaction = begin(client, IsolationLevel::Serializable);
            let done =
                leave_or_return(&mut transaction, name, round % 2 == 0).and_then(|()| transaction.commit());
            match done {
                Ok(()) => break,
                Err(error) => assert!(["40001", "40P01"].contains(&code(&error)), "{error:?}"),
            }
        }
    }
}

fn leave_or_return(transaction: &mut Transaction<'_>, name: &str, leaves: bool) -> Result<(), Error> {
    let others = "SELECT count(*) FROM duty WHERE works AND name <> $1";
    let others: i64 = transaction.query_one(others, &[&name])?.get(0);
    assert!(others <= 3);
    let works = !leaves || others == 0;
    transaction.execute("UPDATE duty SET works = $2 WHERE name = $1", &[&name, &works]).map(drop)
}

#[test]
fn retry_loop_succeeds_at_serializable_under_load() {
    let Some(sites) = ward() else { return };
    sites.sql(A0).batch_execute("INSERT INTO duty VALUES ('Cleo', true), ('Dan', true)").unwrap();
    let mut watcher = sites.sql(B0);
    until(|| on_duty(&mut watcher) == 4);
    std::thread::scope(|scope| {
        let people = [("Ada", A0), ("Bob", A0), ("Cleo", B0), ("Dan", B0)];
        let people = people.map(|(name, site)| {
            let mut client = sites.sql(site);
            scope.spawn(move || leaves_and_returns(&mut client, name))
        });
        while people.iter().any(|person| !person.is_finished()) {
            assert!(on_duty(&mut watcher) > 0);
        }
    });
}

#[test]
fn a_session_asks_for_serializable_as_drivers_do() {
    let Some(sites) = ward() else { return };
    let level = |client: &mut Client| -> String {
        client.query_one("SHOW transaction_isolation", &[]).unwrap().get(0)
    };
    let config: Config = sites.sql_url(A0).parse().unwrap();
    let mut client =
        config.clone().options("-c default_transaction_isolation=serializable").connect(NoTls).unwrap();
    client.batch_execute("BEGIN").unwrap();
    assert_eq!(level(&mut client), "serializable");
    client.batch_execute("COMMIT").unwrap();
    let mut client = config.connect(NoTls).unwrap();
    for (begin, expected) in [
        ("BEGIN", "repeatable read"),
        ("BEGIN ISOLATION LEVEL READ COMMITTED", "repeatable read"),
        ("BEGIN ISOLATION LEVEL SERIALIZABLE", "serializable"),
        ("BEGIN; SET TRANSACTION ISOLATION LEVEL SERIALIZABLE", "serializable"),
        (
            "BEGIN ISOLATION LEVEL SERIALIZABLE; SET TRANSACTION ISOLATION LEVEL READ COMMITTED",
            "repeatable read",
        ),
        ("SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL SERIALIZABLE; BEGIN", "serializable"),
        ("BEGIN ISOLATION LEVEL REPEATABLE READ", "repeatable read"),
        ("SET default_transaction_isolation = 'read committed'; BEGIN", "repeatable read"),
        ("SELECT set_config('default_transaction_isolation', 'serializable', false); BEGIN", "serializable"),
        (
            "BEGIN; SET LOCAL default_transaction_isolation = 'read committed'; SELECT 1; COMMIT; BEGIN",
            "serializable",
        ),
        ("DISCARD ALL; BEGIN", "repeatable read"),
    ] {
        let statements = begin.split(';').map(str::trim);
        statements.for_each(|statement| client.batch_execute(statement).unwrap());
        assert_eq!(level(&mut client), expected, "{begin}");
        client.batch_execute("COMMIT AND CHAIN").unwrap();
        assert_eq!(level(&mut client), expected, "{begin}, and what follows");
        client.batch_execute("COMMIT").unwrap();
    }
    client.batch_execute("BEGIN").unwrap();
    client.query("SELECT 1", &[]).unwrap();
    let late = client.batch_execute("SET TRANSACTION ISOLATION LEVEL SERIALIZABLE").unwrap_err();
    assert_eq!(code(&late), "25001");
}

#[test]
fn one_who_is_no_superuser_has_the_same_certified() {
    let Some(sites) = ward() else { return };
    for site in [A0, B0] {
        let mut server = sites.server(site);
        let role = "DO $$ BEGIN CREATE ROLE clerk LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$";
        server.batch_execute(role).unwrap();
        server.batch_execute("GRANT SELECT, INSERT, UPDATE ON duty, note TO clerk").unwrap();
    }
    let clerk = |site: SiteId| {
        let mut config: Config = sites.sql_url(site).parse().unwrap();
        config.user("clerk").connect(NoTls).unwrap()
    };
    let (mut here, mut there) = (clerk(A0), clerk(B0));
    assert_eq!(both_leave(&mut here, &mut there, IsolationLevel::Serializable), 1);
    let mut copy = here.copy_in("COPY note FROM STDIN").unwrap();
    copy.write_all(b"1\n2\n").unwrap();
    assert_eq!(copy.finish().unwrap(), 2);
    let hidden = "DO $$ BEGIN CREATE TEMP TABLE hidden (a int PRIMARY KEY); END $$";
    assert_eq!(code(&here.batch_execute(hidden).unwrap_err()), "0A000");
    assert_eq!(code(&here.batch_execute("SET session_replication_role = replica").unwrap_err()), "0A000");
    assert_eq!(
        code(&here.batch_execute("COMMENT ON COLUMN note.key IS 'pares: delta'").unwrap_err()),
        "42501"
    );
}
