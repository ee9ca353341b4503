//! What a transaction has written is noted where no session can change it.

use super::*;

/// Functions that write while triggers rest, as far as that is theirs to say.
const HIDES: &str = "
    SET session_replication_role = replica;
    CREATE FUNCTION hides(number bigint) RETURNS void LANGUAGE sql SET session_replication_role = replica
        AS 'INSERT INTO account (number) VALUES (number)';
    CREATE FUNCTION withdraws() RETURNS void LANGUAGE sql SET session_replication_role = replica AS 'DELETE FROM pares_open';
    RESET session_replication_role";

fn refusal(error: &SqlError) -> (&str, &str) {
    match error {
        SqlError::Refused { code, why, .. } => (code, why),
        other => panic!("{other:?}"),
    }
}

#[test]
fn writes_are_captured_whatever_a_session_sets() {
    let Some(mut bank) = Bank::new() else { return };
    Client::connect(&bank.sites[0].address, NoTls).unwrap().batch_execute(HIDES).unwrap();
    for (number, last) in [
        "SELECT 1",
        "SELECT set_config('pares.captured', '', true), set_config('pares.ending', 'yes', true)",
        "SET CONSTRAINTS ALL IMMEDIATE",
        "SET LOCAL session_replication_role = replica",
        "SET LOCAL search_path = pg_temp",
    ]
    .into_iter()
    .enumerate()
    {
        let insert = format!("INSERT INTO account (number) VALUES ({})", 2 * number);
        bank.commit(0, &[&insert, &format!("SELECT hides({})", 2 * number + 1), last]);
        assert_eq!(bank.rows("account").len(), 2 * number + 2, "{last}");
    }
    for withdraws in ["SELECT withdraws()", "DELETE FROM pares_open", "UPDATE pares_open SET keys = '[]'"] {
        let refused =
            bank.sites[0].run(&["INSERT INTO account (number) VALUES (99)", withdraws]).unwrap_err();
        assert!(refusal(&refused).1.contains("cannot be withdrawn"), "{withdraws}: {refused}");
    }
    let refused = bank.sites[0].run(&["SET LOCAL session_replication_role = replica", "TRUNCATE journal"]);
    assert!(refusal(&refused.unwrap_err()).1.contains("use DELETE"));
}

#[test]
fn role_cannot_forge_what_was_captured() {
    let Some(server) = server() else { return };
    let mut site = Site::new(server, BANK, &TABLES);
    let mut owner = Client::connect(&site.address, NoTls).unwrap();
    owner.batch_execute("CREATE ROLE teller LOGIN; GRANT SELECT, INSERT ON account TO teller").unwrap();
    let teller = site.address.replace("user=postgres", "user=teller");
    site.session = Session::connect(Options::new(teller)).unwrap();
    for forges in [
        "INSERT INTO pares_open (name, keys) VALUES ('public.account', '[]')",
        "SELECT pares_note('public.account', '[]')",
        "CREATE TEMP TABLE mine (id int); CREATE TRIGGER mine AFTER INSERT ON mine EXECUTE FUNCTION pares_never_commits()",
    ] {
        let mut work = site.session.begin().unwrap();
        let refused = forges.split(';').try_for_each(|statement| work.execute(statement, &[]).map(drop));
        assert_eq!(refusal(&refused.unwrap_err()).0, "42501", "{forges}");
    }
    let written = site.run(&["INSERT INTO account (number) VALUES (1)"]).unwrap().writes;
    assert!(written.iter().any(|write| write.key.as_bytes().starts_with(b"sql/row/public.account")));
}

#[test]
fn nothing_ends_the_constraint_that_stops_a_commit() {
    let Some(server) = server() else { return };
    let site = Site::new(server, BANK, &TABLES);
    let mut client = Client::connect(&site.address, NoTls).unwrap();
    client.batch_execute(HIDES).unwrap();
    for hidden in [
        "SET CONSTRAINTS ALL IMMEDIATE",
        "SET CONSTRAINTS ALL IMMEDIATE; SET CONSTRAINTS ALL DEFERRED; SET CONSTRAINTS ALL IMMEDIATE",
        "SET CONSTRAINTS pares_never IMMEDIATE",
        "SELECT set_config('pares.ending', 'yes', true)",
        "SET LOCAL session_replication_role = replica; INSERT INTO account (number) VALUES (2)",
        "SELECT hides(3)",
    ] {
        let block = format!("BEGIN; INSERT INTO account (number) VALUES (1); {hidden}; COMMIT");
        let refused = client.batch_execute(&block).unwrap_err();
        assert_eq!(refused.code().unwrap().code(), "0A000", "{hidden}: {refused}");
        client.batch_execute("ROLLBACK").unwrap();
    }
    assert!(site.rows("account").is_empty());
}

#[test]
fn triggers_that_rest_are_woken_when_the_store_opens() {
    let Some(server) = server() else { return };
    let mut site = Site::new(server, BANK, &TABLES);
    // The table of an older release, triggers as it made them, and one that is another's.
    let older = "SET session_replication_role = replica; DROP TABLE pares_open; CREATE TABLE pares_open (at timestamptz NOT NULL DEFAULT now());
        ALTER TABLE account ENABLE TRIGGER pares_insert; ALTER TABLE person DISABLE TRIGGER ALL;
        CREATE OR REPLACE TRIGGER pares_insert AFTER INSERT ON journal EXECUTE FUNCTION journal(); ALTER TABLE journal ENABLE ALWAYS TRIGGER pares_insert;
        CREATE TABLE note (id int PRIMARY KEY); INSERT INTO pares_tables VALUES ('public.note');
        CREATE FUNCTION pares_captures_public_note_48f51d06() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
        DO $$ DECLARE what text; BEGIN FOREACH what IN ARRAY '{insert,update,delete,truncate}'::text[] LOOP
            EXECUTE format('CREATE TRIGGER pares_%1$s AFTER %1$s ON note EXECUTE FUNCTION pares_captures_public_note_48f51d06()', what);
            EXECUTE format('ALTER TABLE note ENABLE ALWAYS TRIGGER pares_%s', what);
        END LOOP; END $$";
    Client::connect(&site.address, NoTls).unwrap().batch_execute(older).unwrap();
    let options = Options::new(site.address.as_str());
    drop(site);
    site = Site::open(options);
    Client::connect(&site.address, NoTls).unwrap().batch_execute(HIDES).unwrap();
    let written = [
        "SELECT hides(1)",
        "INSERT INTO person VALUES (1)",
        "INSERT INTO journal VALUES (1, 1)",
        "INSERT INTO note VALUES (1)",
    ];
    let written = site.run(&written).unwrap().writes;
    let rows = written.iter().filter(|write| write.key.as_bytes().starts_with(b"sql/row/"));
    assert_eq!(rows.count(), 4);
}

#[test]
fn tables_whose_names_have_one_checksum_are_captured_apart() {
    // The same CRC-32C behind `public.`, and the same first 30 characters.
    let tables =
        ["izf6ec1uszh7g2", "xj279m05noiyj_"].map(|end| format!("account_of_customers_at_place_{end}"));
    let [first, second] = &tables;
    let made = tables.each_ref().map(|table| format!("CREATE TABLE {table} (id int PRIMARY KEY)")).join(";");
    let Some(mut bank) = Bank::of(&made, &[first, second]) else { return };
    bank.commit(0, &[&format!("INSERT INTO {second} VALUES (1), (2)")]);
    bank.commit(1, &[&format!("INSERT INTO {first} VALUES (3)")]);
    assert_eq!((bank.rows(first), bank.rows(second)), (vec!["(3)".into()], vec!["(1)".into(), "(2)".into()]));
}

#[test]
fn only_triggers_of_the_store_may_fire_for_the_writer() {
    let Some(server) = server() else { return };
    let site = Site::new(server, BANK, &TABLES);
    let trigger = "SET session_replication_role = replica;
        CREATE TRIGGER pares_x BEFORE UPDATE ON account FOR EACH ROW EXECUTE FUNCTION journal()";
    Client::connect(&site.address, NoTls).unwrap().batch_execute(trigger).unwrap();
    let schema = Schema::new(Options::new(site.address.as_str()));
    let refused = schema.propose("ALTER TABLE account ENABLE ALWAYS TRIGGER pares_x", false).unwrap_err();
    assert!(refusal(&refused).1.contains("pares_x of public.account would also"), "{refused}");
    schema.propose("ALTER TABLE account ADD w int", false).unwrap();
}
