//! What a transaction has written is certified, whatever its session sets or makes.

use super::*;

#[test]
fn writes_that_hide_from_triggers_are_certified() {
    let tables = "CREATE TABLE account (number int PRIMARY KEY);
        CREATE FUNCTION hides(number int) RETURNS void LANGUAGE sql SET session_replication_role = replica AS 'INSERT INTO account VALUES (number)';
        CREATE FUNCTION definer_hides(number int) RETURNS void LANGUAGE sql SECURITY DEFINER SET session_replication_role = replica AS 'INSERT INTO account VALUES (number)'";
    let Some((_sites, mut here, mut there)) = with(tables) else { return };
    here.query("SELECT hides(1)", &[]).unwrap();
    here.batch_execute(
        "BEGIN; SELECT hides(2); INSERT INTO account VALUES (3); SELECT definer_hides(4); COMMIT",
    )
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

#[test]
fn search_path_hides_nothing_from_commit_either() {
    let Some((_sites, mut here, mut there)) = bank() else { return };
    here.batch_execute("CREATE SCHEMA shade").unwrap();
    let shadow =
        "CREATE FUNCTION shade.jsonb_agg(jsonb) RETURNS jsonb LANGUAGE sql AS $$ SELECT '[]'::jsonb $$";
    here.batch_execute(shadow).unwrap();
    here.batch_execute("SET search_path = shade, public, pg_catalog").unwrap();
    here.batch_execute("UPDATE account SET balance = 1 WHERE number = 1").unwrap();
    alike(&mut here, &mut there, "(1,m1,1) (2,m2,100) (3,m3,100) (4,m4,100) (5,m5,100)");
}

#[test]
fn settings_beyond_the_bound_refuse_the_commit() {
    let Some((_sites, mut here, mut there)) = bank() else { return };
    let set = format!("SET application_name = '{}'", "x".repeat(64 << 10));
    let sets = vec![set; 20].join("; ");
    let block = format!("BEGIN; {sets}; UPDATE account SET balance = 9; COMMIT");
    assert_eq!(code(&here.batch_execute(&block).unwrap_err()), "54000");
    here.batch_execute(&format!("BEGIN; {sets}; COMMIT; UPDATE account SET balance = 1 WHERE number = 1"))
        .unwrap();
    alike(&mut here, &mut there, "(1,m1,1) (2,m2,100) (3,m3,100) (4,m4,100) (5,m5,100)");
}
