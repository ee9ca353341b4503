//! What a session begins and ends a client's transaction with is the session's, whatever the client says.

use super::*;

const TILL: &str = "CREATE TABLE till (id int PRIMARY KEY, balance bigint)";

fn balances(client: &mut Client) -> Option<i64> {
    client.query_one("SELECT balance FROM till WHERE id = 1", &[]).ok().map(|row| row.get(0))
}

#[test]
fn nobody_moves_what_commit_goes_back_to() {
    let Some((_sites, mut here, mut there)) = bank() else { return };
    here.batch_execute(TILL).unwrap();
    here.batch_execute("COMMENT ON COLUMN till.balance IS 'pares: delta'").unwrap();
    here.batch_execute("INSERT INTO till VALUES (1, 100)").unwrap();
    for statement in [
        "SAVEPOINT pares",
        "savepoint \"pares\"",
        "/* a */ SAVEPOINT U&\"p\\0061res\"",
        "RELEASE Pares",
        "ROLLBACK WORK TO SAVEPOINT pares",
        "SELECT 1; SAVEPOINT pares",
        "SELECT t.begin atomic FROM (SELECT 1 AS begin) t; SAVEPOINT pares",
        "-- a\rSAVEPOINT pares",
        "EXECUTE \"pares session\"",
    ] {
        for extended in [false, true] {
            here.batch_execute("BEGIN; UPDATE till SET balance = balance + 5").unwrap();
            let said = match extended {
                true => here.execute(statement, &[]).map(drop),
                false => here.batch_execute(statement),
            };
            let refused = said.unwrap_err();
            assert!(["0A000", "42601", "26000"].contains(&code(&refused)), "{statement}: {refused}");
            here.batch_execute("ROLLBACK").unwrap();
        }
    }
    here.batch_execute("BEGIN; UPDATE till SET balance = balance + 5; SAVEPOINT a; UPDATE till SET balance = balance + 3; RELEASE a; COMMIT")
        .unwrap();
    for client in [&mut here, &mut there] {
        until(|| balances(client) == Some(108));
    }
}

#[test]
fn what_prepare_has_made_is_certified_however_it_is_executed() {
    let Some((sites, mut here, mut there)) = bank() else { return };
    // The second is known to the session as one that changes nothing; then its name means another.
    let prepared =
        "SELECT set_config('pares.ending', 'yes', false); PREPARE p AS DELETE FROM account WHERE number = 1";
    let again = "DO $$ BEGIN EXECUTE 'DEALLOCATE q'; EXECUTE 'PREPARE q AS DELETE FROM account WHERE number = 2'; END $$";
    let execute = |name: &str| {
        let bind = [b"\0", name.as_bytes(), &[0; 7]].concat();
        [framed(b"B", &bind), framed(b"E", &[0; 5]), framed(b"S", b"")].concat()
    };
    let messages = [
        framed(b"", b"\0\x03\0\0user\0postgres\0\0"),
        framed(b"Q", &[prepared.as_bytes(), &[0]].concat()),
        execute("p"),
        [framed(b"P", b"q\0SHOW search_path\0\0\0"), framed(b"S", b"")].concat(),
        framed(b"Q", &[again.as_bytes(), &[0]].concat()),
        execute("q"),
        framed(b"X", b""),
    ];
    told(&sites, &messages.concat());
    alike(&mut here, &mut there, "(3,m3,100) (4,m4,100) (5,m5,100)");
}

#[test]
fn what_hangs_on_a_servers_own_things_does_not_go_with_them() {
    let Some((sites, mut here, mut there)) = bank() else { return };
    let mut servers = [A0, B0].map(|site| sites.server(site));
    for server in &mut servers {
        server.batch_execute("CREATE EXTENSION citext; CREATE SEQUENCE counter").unwrap();
    }
    here.batch_execute(
        "CREATE TABLE tagged (a int PRIMARY KEY, b citext, c bigint DEFAULT nextval('counter'))",
    )
    .unwrap();
    until(|| there.query("SELECT FROM tagged", &[]).is_ok());
    for statement in [
        "DROP EXTENSION citext CASCADE",
        "DROP SEQUENCE counter CASCADE",
        "CREATE SUBSCRIPTION s CONNECTION 'dbname=nowhere' PUBLICATION p WITH (connect = false)",
    ] {
        let refused = servers[0].batch_execute(statement).unwrap_err();
        assert_eq!(code(&refused), "0A000", "{statement}: {refused}");
    }
    here.batch_execute("DROP TABLE tagged").unwrap();
    until(|| there.query("SELECT FROM tagged", &[]).is_err());
    servers[0]
        .batch_execute("DROP EXTENSION citext CASCADE; DROP SEQUENCE counter CASCADE; REINDEX TABLE account")
        .unwrap();
}
