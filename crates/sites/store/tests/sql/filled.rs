//! A store that is begun, and one that is filled.

use pares_store::postgres::Schema;

use super::*;

#[test]
fn a_lock_that_a_stranger_holds_keeps_no_store_from_being_opened() {
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

/// A site whose schema is made by statements that are ordered.
fn ordered(server: &Server, statements: &[&str]) -> (Site, Certifier) {
    let options = Options::new(server.database());
    let (store, mut certifier) = (PostgresStore::open(options.clone()).unwrap(), Certifier::default());
    let schema = Schema::new(options.clone());
    for statement in statements {
        let change = schema.propose(statement, false).unwrap();
        let (snapshot, writes) = (change.snapshot, change.writes);
        let transaction = Transaction { snapshot, writes, ..Transaction::default() };
        let applied = certifier.order(transaction, &store);
        store.apply(&[applied], None).unwrap();
    }
    let session = Session::connect(options.clone()).unwrap();
    (Site { address: options.connection, store, session }, certifier)
}

#[test]
fn a_state_brings_statements_one_after_the_other_and_rows_behind_them() {
    let Some(server) = server() else { return };
    let statements = [
        "CREATE TYPE mood AS ENUM ('sad')",
        "ALTER TYPE mood ADD VALUE 'glad'",
        "CREATE TABLE person (id int PRIMARY KEY, mood mood DEFAULT 'glad' CHECK (mood <> 'sad'))",
        "ALTER TYPE mood ADD VALUE 'calm'",
    ];
    let (mut giver, mut certifier) = ordered(server, &statements);
    let insert =
        giver.run(&["INSERT INTO person (id) VALUES (1)", "INSERT INTO person VALUES (2, 'calm')"]).unwrap();
    let applied = certifier.order(insert, &giver.store);
    giver.store.apply(&[applied], None).unwrap();
    // It was away behind the first: what a type gets later cannot be used where it gets it.
    let (Site { address, store, session }, _) = ordered(server, &statements[..1]);
    drop((store, session));
    let options = Options::new(address.as_str());
    clear(&options).unwrap();
    let store = PostgresStore::open(options.clone()).unwrap();
    let mut import = Import::new(&store).unwrap();
    for chunk in Export::new(giver.store.snapshot().unwrap(), 1 << 20) {
        import.take(&chunk.unwrap()).unwrap();
    }
    let taker = Site { address, store, session: Session::connect(options).unwrap() };
    assert_eq!(taker.rows("person"), ["(1,glad)", "(2,calm)"]);
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
