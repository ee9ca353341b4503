//! Columns that change by addition, through the port.

use super::*;

/// Adds 1 so often, again whenever that is lost.
fn add(client: &mut Client, times: usize) {
    for _ in 0..times {
        while let Err(error) = client.execute("UPDATE till SET balance = balance + 1 WHERE id = 1", &[]) {
            assert!(["40001", "40P01"].contains(&code(&error)), "{error:?}");
        }
    }
}

fn balance(client: &mut Client) -> Option<i64> {
    client.query_one("SELECT sum(balance)::int8 FROM till", &[]).ok()?.get(0)
}

#[test]
fn clients_at_two_sites_add_to_one_row_while_its_table_changes() {
    let tables = "CREATE TABLE till (id int PRIMARY KEY, balance bigint); INSERT INTO till VALUES (1, 100);
        COMMENT ON COLUMN till.balance IS 'pares: delta'";
    let Some((sites, mut here, mut there)) = with(tables) else { return };
    until(|| balance(&mut there) == Some(100));
    std::thread::scope(|scope| {
        for site in [A0, A0, B0, B0] {
            let mut client = sites.sql(site);
            scope.spawn(move || add(&mut client, 25));
        }
    });
    for client in [&mut here, &mut there] {
        until(|| balance(client) == Some(200));
    }
    for statement in [
        "ALTER TABLE till ADD COLUMN name text DEFAULT 'a'",
        "ALTER TABLE till RENAME COLUMN balance TO sum; UPDATE till SET sum = sum + 1; ALTER TABLE till RENAME COLUMN sum TO balance",
        "COMMENT ON COLUMN till.id IS 'the till''s number'",
    ] {
        statement.split(';').for_each(|statement| there.batch_execute(statement).unwrap());
        add(&mut there, 1);
    }
    until(|| balance(&mut here) == Some(204));
    here.batch_execute("UPDATE till SET name = 'b'").unwrap();
    add(&mut here, 1);
    for client in [&mut here, &mut there] {
        until(|| balance(client) == Some(205));
    }
    for statement in [
        "COMMENT ON COLUMN till.balance IS NULL",
        "ALTER TABLE till ADD CHECK (balance >= 0)",
        "CREATE UNIQUE INDEX ON till (balance)",
    ] {
        assert_eq!(code(&here.batch_execute(statement).unwrap_err()), "0A000", "{statement}");
    }
    here.batch_execute("ALTER TABLE till DROP COLUMN balance").unwrap();
    until(|| there.query("SELECT balance FROM till", &[]).is_err());
    let row: String = there.query_one("SELECT till::text FROM till", &[]).unwrap().get(0);
    assert_eq!(row, "(1,b)");
}

#[test]
fn additions_that_are_under_way_at_once_all_hold() {
    let tables = "CREATE TABLE till (id int PRIMARY KEY, balance bigint, name text);
        COMMENT ON COLUMN till.balance IS 'pares: delta'; INSERT INTO till VALUES (1, 100, 'a'), (2, 100, 'a')";
    let Some((mut sites, mut here, there)) = with(tables) else { return };
    drop(there);
    // The other cluster is away: what is certified here has no outcome, and is in no store.
    sites.stop(B0);
    here.batch_execute("SET pares.commit_timeout_ms = 200").unwrap();
    for statement in
        ["UPDATE till SET balance = balance + 1", "UPDATE till SET name = name || 'b' WHERE id = 2"]
    {
        for _ in 0..3 {
            assert_eq!(code(&here.batch_execute(statement).unwrap_err()), "40003", "{statement}");
        }
    }
    sites.run(B0);
    let mut there = sites.sql(B0);
    // The additions; nothing that was done to a whole row without having seen them.
    let expected = "(1,103,a) (2,103,a)";
    for client in [&mut here, &mut there] {
        until(|| {
            let seen = client.query_one("SELECT string_agg(t::text, ' ' ORDER BY id) FROM till t", &[]);
            seen.is_ok_and(|row| row.get::<_, String>(0) == expected)
        });
    }
}
