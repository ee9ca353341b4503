//! What a transaction has written is certified, whatever its session sets or makes.

use super::*;

#[test]
fn writes_that_hide_from_triggers_are_certified() {
    let tables = "CREATE TABLE account (number int PRIMARY KEY);
        CREATE FUNCTION hides(number int) RETURNS void LANGUAGE sql SET session_replication_role = replica AS 'INSERT INTO account VALUES (number)';
        CREATE FUNCTION mighty(number int) RETURNS void LANGUAGE sql SECURITY DEFINER SET session_replication_role = replica AS 'INSERT INTO account VALUES (number)'";
    let Some((_sites, mut here, mut there)) = with(tables) else { return };
    here.query("SELECT hides(1)", &[]).unwrap();
    here.batch_execute("BEGIN; SELECT hides(2); INSERT INTO account VALUES (3); SELECT mighty(4); COMMIT")
        .unwrap();
    for clears in ["pares.captured", "pares.ending"] {
        let next: i64 = here.query_one("SELECT 1 + count(*) FROM account", &[]).unwrap().get(0);
        let block = format!(
            "BEGIN; INSERT INTO account VALUES ({next}); SELECT set_config('{clears}', '', true); COMMIT"
        );
        here.batch_execute(&block).unwrap();
    }
    alike(&mut here, &mut there, "(1) (2) (3) (4) (5) (6)");
}

#[test]
fn temporary_tables_hide_nothing_from_commit() {
    let Some((sites, mut here, mut there)) = bank() else { return };
    sites.server(A0).batch_execute("CREATE SEQUENCE counter").unwrap();
    let shadows = "CREATE TEMP TABLE pg_class AS SELECT * FROM pg_catalog.pg_class LIMIT 0;
        CREATE TEMP TABLE pg_locks AS SELECT * FROM pg_catalog.pg_locks LIMIT 0";
    for hidden in ["CREATE ROLE hidden_again", "PERFORM nextval('counter')", "UPDATE account SET balance = 9"]
    {
        let block = format!("DO $$ BEGIN {shadows}; {hidden}; END $$");
        assert_eq!(code(&here.batch_execute(&block).unwrap_err()), "0A000", "{hidden}");
    }
    alike(&mut here, &mut there, "(1,m1,100) (2,m2,100) (3,m3,100) (4,m4,100) (5,m5,100)");
}
