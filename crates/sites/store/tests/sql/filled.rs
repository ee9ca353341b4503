//! A store that is begun, and one that is filled.

use pares_store::postgres::SchemaChange;

use super::*;

#[test]
fn foreign_lock_does_not_block_store_open() {
    let Some(server) = server() else { return };
    let address = server.database();
    let mut client = Client::connect(&address, NoTls).unwrap();
    client.batch_execute("CREATE ROLE stranger LOGIN").unwrap();
    let lock = "SELECT pg_advisory_lock_shared(hashtext('pares_items'), hashtext('public'))";
    let mut stranger = Client::connect(&address.replace("user=postgres", "user=stranger"), NoTls).unwrap();
    stranger.batch_execute(lock).unwrap();
    let options = Options::new(address);
    let store = PostgresStore::open(options.clone()).unwrap();
    assert!(stranger.batch_execute("SELECT 1").is_err());
    // The store's own role is another process of the site.
    assert!(matches!(PostgresStore::open(options.clone()).err(), Some(StoreError::InUse(_))));
    drop(store);
    client.batch_execute(lock).unwrap();
    assert!(matches!(PostgresStore::open(options).err(), Some(StoreError::InUse(_))));
}

/// Orders a change of the schema.
fn change(store: &PostgresStore, certifier: &mut Certifier, schema: &Schema, statement: &str) {
    let SchemaChange { snapshot, writes } = schema.propose(statement, false).unwrap();
    let applied = certifier.order(Transaction { snapshot, writes, ..Transaction::default() }, store);
    store.apply(&[applied], None).unwrap();
}

/// Orders a statement that writes rows.
fn write(site: &mut Site, certifier: &mut Certifier, statement: &str) {
    let done = site.run(&[statement]).unwrap();
    let applied = certifier.order(done, &site.store);
    site.store.apply(&[applied], None).unwrap();
}

/// A site whose schema is made by statements that are ordered.
fn ordered(server: &Server, statements: &[&str]) -> (Site, Certifier) {
    let options = Options::new(server.database());
    let (store, mut certifier) = (PostgresStore::open(options.clone()).unwrap(), Certifier::default());
    let schema = Schema::new(options.clone());
    statements.iter().for_each(|statement| change(&store, &mut certifier, &schema, statement));
    let session = Session::connect(options.clone()).unwrap();
    (Site { address: options.connection, store, session }, certifier)
}

#[test]
fn state_brings_statements_then_rows() {
    let Some(server) = server() else { return };
    let statements = [
        "CREATE TYPE mood AS ENUM ('sad')",
        "ALTER TYPE mood ADD VALUE 'glad'",
        "CREATE TABLE person (id int PRIMARY KEY, mood mood DEFAULT 'glad' CHECK (mood <> 'sad'))",
        "ALTER TYPE mood ADD VALUE 'calm'",
    ];
    let (mut giver, mut certifier) = ordered(server, &statements);
    write(&mut giver, &mut certifier, "INSERT INTO person VALUES (1, DEFAULT), (2, 'calm')");
    // It was away behind the first: what a type gets later cannot be used where it gets it.
    let (taker, _) = ordered(server, &statements[..1]);
    let taker = taker.cleared();
    taker.take(&giver, 1 << 20);
    assert_eq!(taker.rows("person"), ["(1,glad)", "(2,calm)"]);
}

#[test]
fn renamed_table_keeps_rows_and_additions() {
    let Some(server) = server() else { return };
    let first = [
        "CREATE TABLE till (id int PRIMARY KEY, owner text, sum bigint)",
        "COMMENT ON COLUMN till.sum IS 'pares: delta'",
    ];
    let (mut site, mut certifier) = ordered(server, &first);
    write(&mut site, &mut certifier, "INSERT INTO till VALUES (1, 'Ada', 100), (2, 'Bob', 100)");
    write(&mut site, &mut certifier, "UPDATE till SET sum = sum + 5 WHERE id = 1");
    let (taker, _) = ordered(server, &first);
    let schema = Schema::new(Options::new(site.address.as_str()));
    for statement in [
        "CREATE SCHEMA old",
        "ALTER TABLE till RENAME TO tills",
        "ALTER TABLE tills RENAME COLUMN owner TO holder",
        "ALTER TABLE tills SET SCHEMA old",
        "CREATE TABLE till (id int PRIMARY KEY)",
    ] {
        change(&site.store, &mut certifier, &schema, statement);
    }
    site.session = Session::connect(Options::new(site.address.as_str())).unwrap();
    for statement in [
        "INSERT INTO till VALUES (7)",
        "UPDATE old.tills SET sum = sum + 3 WHERE id = 1",
        "DELETE FROM old.tills WHERE id = 2",
    ] {
        write(&mut site, &mut certifier, statement);
    }
    let taker = taker.cleared();
    taker.take(&site, 1 << 20);
    for site in [&site, &taker] {
        assert_eq!(
            (site.rows("old.tills"), site.rows("till")),
            (vec!["(1,Ada,108)".into()], vec!["(7)".into()])
        );
    }
    // A row could say the name.
    change(&site.store, &mut certifier, &schema, "CREATE TABLE named (id int PRIMARY KEY, what regclass)");
    assert!(
        schema.propose("ALTER TABLE till RENAME TO t", false).unwrap_err().to_string().contains("regclass")
    );
}

#[test]
fn only_readers_own_rows_are_rehearsed() {
    let Some(server) = server() else { return };
    let (mut site, mut certifier) =
        ordered(server, &["CREATE TABLE person (id int PRIMARY KEY, name text UNIQUE)"]);
    write(&mut site, &mut certifier, "INSERT INTO person VALUES (1, 'Ada')");
    let mut owner = Client::connect(&site.address, NoTls).unwrap();
    let query = rehearsal("public.person", "public");
    let told = |client: &mut Client, key: &str, row: &str| -> Result<Option<String>, String> {
        let array = |text: &str| format!("{{\"{}\"}}", text.replace('"', "\\\""));
        let told = client.query_one(&query, &[&array(key), &array(row)]);
        told.map(|row| row.get(0)).map_err(|error| error.code().unwrap().code().to_owned())
    };
    let (key, row) = ("{\"id\": 1}", "{\"id\": 1, \"name\": \"Ada\"}");
    owner
        .batch_execute(
            "SET session_replication_role = replica; CREATE ROLE nosy LOGIN; CREATE ROLE trusted LOGIN; GRANT CREATE ON SCHEMA public TO nosy;
            GRANT SELECT (id, name) ON person TO trusted; RESET session_replication_role",
        )
        .unwrap();
    let as_role = |role: &str| {
        Client::connect(&site.address.replace("user=postgres", &format!("user={role}")), NoTls).unwrap()
    };
    let mut nosy = as_role("nosy");
    assert_eq!(told(&mut nosy, key, row), Err("42501".into()));
    owner.batch_execute("SET ROLE nosy").unwrap();
    assert_eq!(told(&mut owner, key, row), Err("42501".into()));
    owner.batch_execute("RESET ROLE").unwrap();
    // By a function that a mightier one executes.
    let asks = format!(
        "DO $$ BEGIN PERFORM {} ; END $$",
        query
            .trim_start_matches("SELECT ")
            .replace("$1::text::text[]", "'{}'")
            .replace("$2::text::text[]", "'{}'")
    );
    let refused = owner.batch_execute(&asks).unwrap_err();
    assert_eq!(refused.code().unwrap().code(), "42501", "{refused}");
    // A row that another wrote stays untouched, so that key is taken.
    let taken = told(&mut as_role("trusted"), key, row).unwrap().unwrap();
    assert!(taken.contains("duplicate key"), "{taken}");
    owner.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT FROM person; SAVEPOINT a; UPDATE person SET name = 'Eva'; RELEASE a").unwrap();
    assert_eq!(told(&mut owner, key, &row.replace("Ada", "Eva")), Ok(None));
    let other = told(&mut owner, key, row).unwrap().unwrap();
    assert!(other.contains("comes back as"), "{other}");
}

/// Ends all processes of the database but the one that asks.
fn end_all(address: &str) -> Client {
    let mut client = Client::connect(address, NoTls).unwrap();
    let end = "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()";
    client.query(end, &[]).unwrap();
    client
}

#[test]
fn resting_store_survives_lost_connections() {
    let Some(server) = server() else { return };
    let (mut site, mut certifier) = ordered(server, &["CREATE TABLE person (id int PRIMARY KEY)"]);
    write(&mut site, &mut certifier, "INSERT INTO person VALUES (1)");
    let rest = std::time::Duration::from_millis(1100);
    std::thread::sleep(rest);
    drop(end_all(&site.address));
    site.session = Session::connect(Options::new(site.address.as_str())).unwrap();
    write(&mut site, &mut certifier, "INSERT INTO person VALUES (2)");
    assert_eq!(site.rows("person"), ["(1)", "(2)"]);
    std::thread::sleep(rest);
    end_all(&site.address).batch_execute("UPDATE pares_applied SET version = version - 1").unwrap();
    let next = Applied { version: Version(site.store.applied().0 + 1), writes: Vec::new() };
    let lost = site.store.apply(&[next], None).unwrap_err();
    assert!(matches!(&lost, StoreError::Io(why) if why.contains("has lost")), "{lost}");
}

#[test]
fn a_store_is_removed_whatever_others_hold_of_it() {
    let Some(server) = server() else { return };
    let (Site { address, store, session }, _) =
        ordered(server, &["CREATE TABLE person (id int PRIMARY KEY)"]);
    drop((store, session));
    let mut held = ["SELECT FROM pares_items", "LOCK TABLE person IN SHARE MODE"].map(|hold| {
        let mut client = Client::connect(&address, NoTls).unwrap();
        client.batch_execute(&format!("BEGIN; {hold}")).unwrap();
        client
    });
    clear(&Options::new(address.as_str())).unwrap();
    assert!(held.iter_mut().all(|client| client.batch_execute("SELECT 1").is_err()));
}
