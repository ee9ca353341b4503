//! What a client or a user of the server holds or has done stands in nobody's way for good.

use std::sync::atomic::{AtomicBool, Ordering};

use super::*;

#[test]
fn holder_of_store_locks_gives_way_to_writer() {
    let Some((sites, mut here, mut there)) = bank() else { return };
    let mut sum = 100;
    for hold in [
        "SELECT FROM pares_items FOR UPDATE",
        "SELECT FROM pares_applied FOR SHARE",
        "LOCK TABLE pares_items IN EXCLUSIVE MODE",
        "LOCK TABLE account IN SHARE MODE",
        "LOCK TABLE account",
    ] {
        let in_block = format!("DO $$ BEGIN {}; END $$", hold.replace("SELECT", "PERFORM"));
        for (mut holder, hold) in [(sites.sql(A0), in_block.as_str()), (sites.server(A0), hold)] {
            holder.batch_execute(&format!("BEGIN; {hold}")).unwrap();
            sum += 1;
            there.batch_execute("UPDATE account SET balance = balance + 1 WHERE number = 1").unwrap();
            let expected = format!("(1,m1,{sum}) (2,m2,100) (3,m3,100) (4,m4,100) (5,m5,100)");
            alike(&mut here, &mut there, &expected);
        }
    }
}

#[test]
fn schema_change_passes_readers_of_its_tables() {
    let Some((sites, mut here, mut there)) = bank() else { return };
    here.batch_execute("CREATE VIEW one AS SELECT 1 AS a").unwrap();
    for (read, change) in [("account", "ALTER TABLE account ADD COLUMN w int"), ("one", "DROP VIEW one")] {
        until(|| there.query(&format!("SELECT FROM {read}"), &[]).is_ok());
        let mut idle = [sites.sql(A0), sites.sql(B0)];
        for client in &mut idle {
            client.batch_execute(&format!("BEGIN; SELECT * FROM {read}")).unwrap();
        }
        here.batch_execute(change).unwrap();
        assert_eq!(code(&idle[0].batch_execute("SELECT 1").unwrap_err()), "40001");
        here.batch_execute("UPDATE account SET balance = balance + 1 WHERE number = 1").unwrap();
    }
    alike(&mut here, &mut there, "(1,m1,102,) (2,m2,100,) (3,m3,100,) (4,m4,100,) (5,m5,100,)");
}

#[test]
fn refused_catalogue_change_spares_next_transaction() {
    let Some((_sites, mut here, mut there)) = bank() else { return };
    let refused = "DO $$ BEGIN CREATE ROLE hidden_too; END $$";
    for sum in 1..=5 {
        assert_eq!(code(&here.batch_execute(refused).unwrap_err()), "0A000");
        here.batch_execute(&format!("BEGIN; {refused}; ROLLBACK")).unwrap();
        here.batch_execute(&format!("UPDATE account SET balance = {sum} WHERE number = 1")).unwrap();
        // It still is against its own.
        here.batch_execute(&format!("BEGIN; {refused}; UPDATE account SET balance = 9")).unwrap();
        assert_eq!(code(&here.batch_execute("COMMIT").unwrap_err()), "0A000");
    }
    alike(&mut here, &mut there, "(1,m1,5) (2,m2,100) (3,m3,100) (4,m4,100) (5,m5,100)");
}

#[test]
fn session_that_cannot_begin_is_told_the_servers_reason() {
    let Some((sites, _here, _there)) = bank() else { return };
    let bars = "CREATE ROLE teller LOGIN; REVOKE SELECT ON pares_applied FROM PUBLIC";
    sites.server(A0).batch_execute(bars).unwrap();
    let url = sites.sql_url(A0).replace("postgres@", "teller@");
    let refused = Client::connect(&url, postgres::NoTls).err().unwrap();
    assert_eq!(code(&refused), "42501", "{refused:?}");
}

/// Two sites, whose clients write without a pause until `change` is done.
fn beside_writers<T>(sites: &Sites, change: impl FnOnce() -> T) -> T {
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for (site, number) in [(A0, 1), (B0, 2)] {
            let (mut client, done) = (sites.sql(site), &done);
            let add = format!("UPDATE account SET balance = balance + 1 WHERE number = {number}");
            scope.spawn(move || {
                while !done.load(Ordering::Relaxed) {
                    // What gives way is run again.
                    client.batch_execute(&add).unwrap_or_else(|error| assert_eq!(code(&error), "40001"));
                }
            });
        }
        let changed = change();
        done.store(true, Ordering::Relaxed);
        changed
    })
}

#[test]
fn schema_change_passes_clients_that_never_pause() {
    let Some((sites, mut here, mut there)) = bank() else { return };
    let changes = ["CREATE TABLE beside (a int PRIMARY KEY)", "ALTER TABLE account ADD COLUMN w int"];
    let changed = beside_writers(&sites, || changes.map(|change| here.batch_execute(change)));
    changed.into_iter().for_each(|changed| changed.unwrap());
    // The last writes of the other site are here; and the turn is over.
    until(|| rows(&mut here) == rows(&mut there));
    here.batch_execute("UPDATE account SET balance = 0").unwrap();
    alike(&mut here, &mut there, "(1,m1,0,) (2,m2,0,) (3,m3,0,) (4,m4,0,) (5,m5,0,)");
}

#[test]
fn slow_schema_change_passes_clients_that_never_pause() {
    let Some((sites, mut here, mut there)) = bank() else { return };
    // As at a server with many tables: too slow for ten tries.
    let slow = "SET session_replication_role = replica;
        CREATE FUNCTION slow() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(1); END $$;
        CREATE EVENT TRIGGER slow ON ddl_command_start WHEN TAG IN ('CREATE TABLE') EXECUTE FUNCTION slow();
        ALTER EVENT TRIGGER slow ENABLE ALWAYS";
    sites.server(A0).batch_execute(slow).unwrap();
    here.batch_execute("SET pares.commit_timeout_ms = 9000").unwrap();
    // Repeated, as a client does: on a busy machine the time of one change can be too short for a single try.
    let change = "CREATE TABLE beside (a int PRIMARY KEY)";
    beside_writers(&sites, || until(|| here.batch_execute(change).is_ok()));
    until(|| there.query("SELECT FROM beside", &[]).is_ok());
}

#[test]
fn two_schema_changes_pass_beside_clients_that_never_pause() {
    let Some((sites, mut here, mut there)) = bank() else { return };
    let changed = beside_writers(&sites, || {
        std::thread::scope(|scope| {
            let others = scope.spawn(|| there.batch_execute("CREATE TABLE beside (a int PRIMARY KEY)"));
            [here.batch_execute("ALTER TABLE account ADD COLUMN w int"), others.join().unwrap()]
        })
    });
    changed.into_iter().for_each(|changed| changed.unwrap());
    until(|| here.batch_execute("UPDATE account SET balance = 0").is_ok());
    alike(&mut here, &mut there, "(1,m1,0,) (2,m2,0,) (3,m3,0,) (4,m4,0,) (5,m5,0,)");
}

#[test]
fn schema_changes_at_once_pass_clients_that_never_pause() {
    let Some((sites, mut here, mut there)) = bank() else { return };
    let change = |at: u8| match at % 3 {
        0 => format!("ALTER TABLE account ADD COLUMN w{at} int"),
        1 => format!("CREATE TABLE beside_{at} (a int PRIMARY KEY REFERENCES account)"),
        _ => format!("CREATE INDEX by_{at} ON account (balance)"),
    };
    let changed = beside_writers(&sites, || {
        std::thread::scope(|scope| {
            let changing = (0..6).map(|at| {
                let mut client = sites.sql(if at == 5 { B0 } else { A0 });
                scope.spawn(move || client.batch_execute(&change(at)))
            });
            let changing: Vec<_> = changing.collect();
            changing.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
        })
    });
    changed.into_iter().for_each(|changed| changed.unwrap());
    until(|| here.batch_execute("UPDATE account SET balance = 0").is_ok());
    alike(&mut here, &mut there, "(1,m1,0,,) (2,m2,0,,) (3,m3,0,,) (4,m4,0,,) (5,m5,0,,)");
    let indexes =
        "SELECT count(*) FROM pg_indexes WHERE indexname LIKE 'by\\__' OR tablename LIKE 'beside\\__'";
    for client in [&mut here, &mut there] {
        assert_eq!(client.query_one(indexes, &[]).unwrap().get::<_, i64>(0), 4);
    }
}

/// Whether a site has an item that announces a change of the schema.
fn has_turn(sites: &Sites, site: SiteId) -> bool {
    let items = "SELECT FROM pares_items WHERE key = convert_to('sql/turn', 'UTF8')";
    !sites.server(site).query(items, &[]).unwrap().is_empty()
}

#[test]
fn turn_that_was_left_over_is_withdrawn_when_it_ends() {
    let Some((mut sites, here, there)) = bank() else { return };
    drop((here, there));
    let left = "INSERT INTO pares_items (key, value) VALUES (convert_to('sql/turn', 'UTF8'), '1')";
    for site in [A0, B0] {
        sites.server(site).batch_execute(left).unwrap();
    }
    // A site that starts knows nothing of what was seen before.
    sites.restart(A0);
    let mut here = sites.sql(A0);
    let refused = here.batch_execute("UPDATE account SET balance = 0").unwrap_err();
    assert_eq!(code(&refused), "40001", "{refused:?}");
    until(|| here.batch_execute("UPDATE account SET balance = 0").is_ok());
    until(|| ![A0, B0].iter().any(|site| has_turn(&sites, *site)));
    sites.restart(A0);
    sites.sql(A0).batch_execute("UPDATE account SET balance = 1").unwrap();
}
