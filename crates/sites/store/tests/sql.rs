//! Applications that speak SQL: two sites with a PostgreSQL database each, and between them a certifier of ten lines.

#![allow(clippy::unwrap_used)] // a test may, in its helpers too

mod common;
#[path = "sql/deltas.rs"]
mod deltas;
#[path = "sql/filled.rs"]
mod filled;
#[path = "sql/notes.rs"]
mod notes;
#[path = "sql/way.rs"]
mod way;

use std::collections::BTreeMap;

use pares_store::postgres::{
    Options, PostgresStore, Schema, Session, SqlError, SqlWork, Watch, capture, clear, provide, rehearsal,
};
use pares_store::{Applied, Export, Import, Reads, Store, StoreError};
use pares_testbed::postgres::{Server, server};
use pares_wice::{Change, Key, Transaction, TransactionId, Value, Version};
use postgres::{Client, NoTls};

const BANK: &str = "
    CREATE TABLE person (id int PRIMARY KEY, name text);
    CREATE TABLE account (
        number bigint PRIMARY KEY, owner int REFERENCES person ON DELETE CASCADE,
        email text UNIQUE, balance numeric NOT NULL DEFAULT 0);
    CREATE TABLE journal (number bigint, entry int, PRIMARY KEY (number, entry));
    CREATE FUNCTION journal() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        INSERT INTO journal SELECT NEW.number, count(*) FROM journal WHERE number = NEW.number; RETURN NEW;
    END $$;
    CREATE TRIGGER journal AFTER UPDATE ON account FOR EACH ROW EXECUTE FUNCTION journal()";
const TABLES: [&str; 3] = ["person", "account", "journal"];

struct Site {
    address: String,
    store: PostgresStore,
    session: Session,
}

impl Site {
    fn new(server: &Server, schema: &str, tables: &[&str]) -> Self {
        let options = Options::new(server.database());
        Client::connect(&options.connection, NoTls).unwrap().batch_execute(schema).unwrap();
        capture(&options, tables).unwrap();
        Self::open(options)
    }

    /// The store in that database, and a session there.
    fn open(options: Options) -> Self {
        let (address, store) = (options.connection.clone(), PostgresStore::open(options.clone()).unwrap());
        Self { address, store, session: Session::connect(options).unwrap() }
    }

    /// The same database with a new store: the old one is removed.
    fn cleared(self) -> Self {
        let options = Options::new(self.address.as_str());
        drop(self);
        clear(&options).unwrap();
        Self::open(options)
    }

    /// It is sent the state of another one, in pieces of so many bytes.
    fn take(&self, giver: &Site, bytes: usize) {
        let mut import = Import::new(&self.store).unwrap();
        for chunk in Export::new(giver.store.snapshot().unwrap(), bytes) {
            import.take(&chunk.unwrap()).unwrap();
        }
    }

    /// What the statements did; nothing of it is left.
    fn run(&mut self, statements: &[&str]) -> Result<Transaction, SqlError> {
        let mut work = self.session.begin().unwrap();
        for statement in statements {
            work.execute(statement, &[])?;
        }
        let transaction = work.finish(TransactionId::default(), 0)?;
        transaction.check().unwrap();
        Ok(transaction)
    }

    /// A table's rows, as text.
    fn rows(&self, table: &str) -> Vec<String> {
        let mut client = Client::connect(&self.address, NoTls).unwrap();
        let rows = client.query(&format!("SELECT whole::text FROM {table} whole ORDER BY 1"), &[]).unwrap();
        rows.iter().map(|row| row.get(0)).collect()
    }
}

/// Orders transactions: the first committer wins.
#[derive(Clone, Default)]
struct Certifier {
    version: Version,
    /// Of each item the last version that put or deleted it, and the last that added to it.
    last: BTreeMap<Key, [Version; 2]>,
}

impl Certifier {
    fn passes(&mut self, transaction: &Transaction) -> bool {
        let late = |key: &Key, adds: bool| {
            let [put, added] = self.last.get(key).copied().unwrap_or_default();
            put > transaction.snapshot || !adds && added > transaction.snapshot
        };
        let adds = |change: &Change| matches!(change, Change::Add(_));
        if transaction.writes.iter().any(|write| late(&write.key, adds(&write.change))) {
            return false;
        }
        self.version = self.version.next();
        for write in &transaction.writes {
            self.last.entry(write.key.clone()).or_default()[usize::from(adds(&write.change))] = self.version;
        }
        true
    }

    /// Orders a transaction that must pass, and gives what it leaves behind.
    fn order(&mut self, transaction: Transaction, now: &dyn Store) -> Applied {
        assert!(self.passes(&transaction), "{transaction:?}");
        let now = now.snapshot().unwrap();
        let value = |key: &Key, change: Change| match change {
            Change::Put(value) => Some(value),
            Change::Delete => None,
            Change::Add(delta) => {
                let total = now.get(key).unwrap().map_or(0, |value| value.as_counter().unwrap());
                Some(Value::counter(total + i128::from(delta)))
            }
        };
        let writes = transaction.writes.into_iter();
        let writes = writes.map(|write| (write.key.clone(), value(&write.key, write.change))).collect();
        Applied { version: self.version, writes }
    }
}

/// Two sites of the bank.
struct Bank {
    sites: [Site; 2],
    certifier: Certifier,
}

impl Bank {
    fn new() -> Option<Self> {
        Self::of(BANK, &TABLES)
    }

    fn of(schema: &str, tables: &[&str]) -> Option<Self> {
        let server = server()?;
        let sites = [(); 2].map(|()| Site::new(server, schema, tables));
        Some(Self { sites, certifier: Certifier::default() })
    }

    /// Runs statements at a site, orders what they did, and applies it at both.
    fn commit(&mut self, site: usize, statements: &[&str]) {
        let transaction = self.sites[site].run(statements).unwrap();
        self.apply(vec![transaction]);
    }

    /// Orders transactions, and applies them at both sites as one batch.
    fn apply(&mut self, transactions: Vec<Transaction>) {
        let now = &self.sites[0].store;
        let batch: Vec<Applied> =
            transactions.into_iter().map(|transaction| self.certifier.order(transaction, now)).collect();
        for site in &self.sites {
            site.store.apply(&batch, None).unwrap();
        }
    }

    /// The table's rows, which must be the same at both.
    fn rows(&self, table: &str) -> Vec<String> {
        let [here, there] = [0, 1].map(|site| self.sites[site].rows(table));
        assert_eq!(here, there);
        here
    }
}

#[test]
fn session_effects_apply_nowhere_before_everywhere() {
    let Some(mut bank) = Bank::new() else { return };
    let transaction = bank.sites[0]
        .run(&["INSERT INTO person VALUES (1, 'Ada')", "INSERT INTO account VALUES (10, 1, 'ada@x', 12.50)"])
        .unwrap();
    assert_eq!((transaction.snapshot, transaction.reads.len()), (Version(0), 0));
    assert!(bank.rows("person").is_empty() && bank.rows("account").is_empty());
    bank.apply(vec![transaction]);
    assert_eq!(bank.rows("person"), ["(1,Ada)"]);
    assert_eq!(bank.rows("account"), ["(10,1,ada@x,12.50)"]);
    bank.commit(1, &["UPDATE account SET balance = balance + 1 WHERE number = 10"]);
    assert_eq!(bank.rows("account"), ["(10,1,ada@x,13.50)"]);
    assert_eq!(bank.sites[1].session.begin().unwrap().version(), Version(2));
}

#[test]
fn what_triggers_and_cascades_write_is_captured_and_done_once() {
    let Some(mut bank) = Bank::new() else { return };
    bank.commit(0, &["INSERT INTO person VALUES (1, 'Ada')", "INSERT INTO account VALUES (10, 1), (11, 1)"]);
    bank.commit(1, &["UPDATE account SET balance = 5", "UPDATE account SET balance = 6 WHERE number = 10"]);
    assert_eq!(bank.rows("journal"), ["(10,0)", "(10,1)", "(11,0)"]);
    bank.commit(0, &["DELETE FROM person WHERE id = 1"]);
    assert!(bank.rows("account").is_empty());
}

#[test]
fn changes_of_one_row_become_one_write() {
    let Some(mut bank) = Bank::new() else { return };
    bank.commit(0, &["INSERT INTO person VALUES (1, 'Ada'), (2, 'Bob')"]);
    let rows = |transaction: &Transaction| -> Vec<String> {
        let rows = transaction.writes.iter().filter(|write| write.key.as_bytes().starts_with(b"sql/row/"));
        rows.map(|write| format!("{:?} {:?}", write.key, write.change)).collect()
    };
    let transaction = bank.sites[0]
        .run(&[
            "UPDATE person SET name = 'Eve' WHERE id = 1",
            "UPDATE person SET name = 'Ann' WHERE id = 1",
            "INSERT INTO person VALUES (3, 'Cid')",
            "DELETE FROM person WHERE id = 3",
            "UPDATE person SET id = 4 WHERE id = 2",
            "UPDATE person SET name = 'nobody' WHERE id = 99",
        ])
        .unwrap();
    let expected = [
        r#"sql/row/public.person\x00{\"id\": 1} Put({\"id\": 1, \"name\": \"Ann\"})"#,
        r#"sql/row/public.person\x00{\"id\": 2} Delete"#,
        r#"sql/row/public.person\x00{\"id\": 3} Delete"#,
        r#"sql/row/public.person\x00{\"id\": 4} Put({\"id\": 4, \"name\": \"Bob\"})"#,
    ];
    assert_eq!(rows(&transaction), expected);
    bank.apply(vec![transaction]);
    assert_eq!(bank.rows("person"), ["(1,Ann)", "(4,Bob)"]);
}

#[test]
fn a_transaction_that_only_read_or_was_dropped_writes_nothing() {
    let Some(mut bank) = Bank::new() else { return };
    let mut work: SqlWork<'_> = bank.sites[0].session.begin().unwrap();
    assert_eq!(work.query("SELECT 1 + 1", &[]).unwrap()[0].get::<_, i32>(0), 2);
    work.execute("INSERT INTO person VALUES (1, 'Ada')", &[]).unwrap();
    drop(work);
    assert!(bank.sites[0].run(&["SELECT * FROM person"]).unwrap().writes.is_empty());
}

#[test]
fn values_of_many_types_arrive_as_they_were() {
    let schema = r#"
        CREATE SCHEMA "My Shop";
        CREATE TABLE "My Shop"."Orders" (
            "Order ""No""" bigint GENERATED ALWAYS AS IDENTITY, at timestamptz, PRIMARY KEY ("Order ""No""", at),
            amount numeric(30, 10), ratio float8, note text, raw bytea, tags text[], grid int[][], doc jsonb,
            day date, span interval, id uuid, ok boolean, padded char(5), nothing text,
            t text, k text, r text, v text, line text,
            doubled numeric GENERATED ALWAYS AS (amount * 2) STORED)"#;
    let Some(mut bank) = Bank::of(schema, &[r#""My Shop"."Orders""#]) else { return };
    bank.commit(0, &[r#"INSERT INTO "My Shop"."Orders"
        (at, amount, ratio, note, raw, tags, grid, doc, day, span, id, ok, padded, t, k, r, v, line) VALUES
        ('2026-02-03 04:05:06.789123+09', 12345678901234567890.0123456789, 0.1::float8 + 0.2, E'it''s\n"x" \\ ü',
            '\x00ff', '{a,"b c",NULL}', '{{1,2},{3,4}}', '{"b": [1, null], "a": 1e400}', '0044-03-15 BC',
            '1 mon -2 days 03:04:05.6', '00000000-0000-0000-0000-00000000000a', true, 'ab', 't', 'k', 'r', 'v', 'line'),
        ('infinity', 'NaN', '-infinity', '', '', '{}', NULL, '{}', 'infinity', '0', NULL, false, '', '', '', '', '', '')"#]);
    let rows = bank.rows(r#""My Shop"."Orders""#);
    assert_eq!(rows.len(), 2);
    for part in [
        "24691357802469135780.0246913578",
        "0.30000000000000004",
        "{{1,2},{3,4}}",
        "0044-03-15 BC",
        "it's",
        "t,k,r,v,line",
    ] {
        assert!(rows[0].contains(part), "{part} in {}", rows[0]);
    }
    bank.commit(1, &[r#"UPDATE "My Shop"."Orders" SET amount = 1 WHERE at = 'infinity'"#]);
    assert!(bank.rows(r#""My Shop"."Orders""#)[1].ends_with(",2.0000000000)"));
}

#[test]
fn of_two_sites_that_take_the_same_unique_value_one_loses() {
    let Some(mut bank) = Bank::new() else { return };
    let first = bank.sites[0].run(&["INSERT INTO account (number, email) VALUES (1, 'a@x')"]).unwrap();
    let second = bank.sites[1].run(&["INSERT INTO account (number, email) VALUES (2, 'a@x')"]).unwrap();
    let other =
        bank.sites[1].run(&["INSERT INTO account (number, email) VALUES (3, NULL), (4, NULL)"]).unwrap();
    bank.apply(vec![first]);
    assert!(!bank.certifier.passes(&second));
    bank.apply(vec![other]);
    assert!(matches!(
        bank.sites[1].run(&["INSERT INTO account (number, email) VALUES (2, 'a@x')"]),
        Err(SqlError::Refused { .. })
    ));
    bank.commit(1, &["UPDATE account SET email = 'b@x' WHERE number = 1"]);
    // What nobody has any more can be taken again.
    bank.commit(1, &["INSERT INTO account (number, email) VALUES (2, 'a@x')"]);
    assert_eq!(bank.rows("account"), ["(1,,b@x,0)", "(2,,a@x,0)", "(3,,,0)", "(4,,,0)"]);
}

#[test]
fn a_unique_value_can_pass_from_row_to_row_within_a_batch() {
    let Some(mut bank) = Bank::new() else { return };
    bank.commit(0, &["INSERT INTO account (number, email) VALUES (1, 'a@x'), (2, 'b@x')"]);
    // At the origin in two steps; applied as one batch, whose rows stand in the order of their keys.
    let site = &mut bank.sites[0];
    let mut work = site.session.begin().unwrap();
    for statement in [
        "UPDATE account SET email = NULL WHERE number = 2",
        "UPDATE account SET email = 'b@x' WHERE number = 1",
        "UPDATE account SET email = 'a@x' WHERE number = 2",
    ] {
        work.execute(statement, &[]).unwrap();
    }
    let swap = work.finish(TransactionId::default(), 0).unwrap();
    bank.apply(vec![swap]);
    assert_eq!(bank.rows("account"), ["(1,,b@x,0)", "(2,,a@x,0)"]);
}

#[test]
fn reference_conflicts_only_with_delete_of_its_row() {
    let Some(mut bank) = Bank::new() else { return };
    bank.commit(0, &["INSERT INTO person VALUES (1, 'Ada')"]);
    let refers = |bank: &mut Bank, site: usize, number: u32| {
        bank.sites[site].run(&[&format!("INSERT INTO account (number, owner) VALUES ({number}, 1)")]).unwrap()
    };
    let (first, second) = (refers(&mut bank, 0, 1), refers(&mut bank, 1, 2));
    let deletes = bank.sites[1].run(&["DELETE FROM person WHERE id = 1"]).unwrap();
    bank.apply(vec![first, second]);
    assert!(!bank.certifier.passes(&deletes));
    let late = refers(&mut bank, 0, 3);
    bank.commit(1, &["DELETE FROM person WHERE id = 1"]);
    assert!(!bank.certifier.passes(&late));
    assert!(bank.rows("account").is_empty());
}

#[test]
fn a_session_that_stands_in_the_writers_way_is_ended() {
    let Some(mut bank) = Bank::new() else { return };
    bank.commit(0, &["INSERT INTO account (number) VALUES (1), (2)"]);
    let change = bank.sites[1].run(&["UPDATE account SET balance = 7 WHERE number = 1"]).unwrap();
    let mut session = Session::connect(Options::new(bank.sites[0].address.as_str())).unwrap();
    let mut work = session.begin().unwrap();
    work.execute("UPDATE account SET balance = 8 WHERE number = 1", &[]).unwrap();
    bank.apply(vec![change]);
    let ended = work.finish(TransactionId::default(), 0);
    assert!(matches!(ended, Err(SqlError::Again(_))), "{ended:?}");
    // It continues with the next.
    let mut work = session.begin().unwrap();
    work.execute("UPDATE account SET balance = balance + 1 WHERE number = 1", &[]).unwrap();
    let next = work.finish(TransactionId::default(), 1).unwrap();
    bank.apply(vec![next]);
    assert_eq!(bank.rows("account"), ["(1,,,8)", "(2,,,0)"]);
}

#[test]
fn a_session_that_is_late_already_here_is_told_to_begin_again() {
    let Some(mut bank) = Bank::new() else { return };
    bank.commit(0, &["INSERT INTO account (number) VALUES (1)"]);
    let mut session = Session::connect(Options::new(bank.sites[0].address.as_str())).unwrap();
    let mut work = session.begin().unwrap();
    bank.commit(1, &["UPDATE account SET balance = 7"]);
    let late = work.execute("UPDATE account SET balance = 8", &[]);
    assert!(matches!(late, Err(SqlError::Again(_))), "{late:?}");
}

#[test]
fn a_site_that_joins_gets_its_tables_with_its_items() {
    let Some(mut bank) = Bank::new() else { return };
    bank.commit(0, &["INSERT INTO person SELECT i, 'name ' || i FROM generate_series(1, 500) i"]);
    let joining = Site::new(server().unwrap(), BANK, &TABLES);
    joining.take(&bank.sites[0], 4000);
    assert_eq!(joining.rows("person"), bank.rows("person"));
    assert_eq!(joining.store.applied(), Version(1));
}

#[test]
fn transfers_at_two_sites_keep_the_sum() {
    let Some(mut bank) = Bank::new() else { return };
    bank.commit(0, &["INSERT INTO account (number, balance) SELECT i, 100 FROM generate_series(0, 4) i"]);
    let mut aborted = 0;
    for round in 0..30i64 {
        // Each on what it saw: the second of two that meet must lose.
        let transfers: Vec<Transaction> = (0..2)
            .map(|site| {
                let (from, to) = ((round * 3 + site) % 5, (round + 2 * site + 1) % 5);
                let amount = 1 + round % 7;
                let take = format!("UPDATE account SET balance = balance - {amount} WHERE number = {from}");
                let give = format!("UPDATE account SET balance = balance + {amount} WHERE number = {to}");
                bank.sites[site as usize].run(&[&take, &give]).unwrap()
            })
            .collect();
        for transfer in transfers {
            match bank.certifier.clone().passes(&transfer) {
                true => bank.apply(vec![transfer]),
                false => aborted += 1,
            }
        }
    }
    bank.rows("journal");
    let mut client = Client::connect(&bank.sites[1].address, NoTls).unwrap();
    let sum: String = client.query_one("SELECT sum(balance)::text FROM account", &[]).unwrap().get(0);
    assert_eq!((sum.as_str(), bank.rows("account").len()), ("500", 5));
    assert!(aborted > 0 && bank.certifier.version > Version(20), "{aborted} aborted");
}

#[test]
fn tables_that_cannot_take_part_are_refused_with_the_reason() {
    let Some(server) = server() else { return };
    let options = Options::new(server.database());
    let mut client = Client::connect(&options.connection, NoTls).unwrap();
    client
        .batch_execute(
            "CREATE TABLE heap (a int); CREATE TABLE lower (a text PRIMARY KEY);
             CREATE UNIQUE INDEX ON lower (lower(a)); CREATE TABLE filled (a int PRIMARY KEY);
             INSERT INTO filled VALUES (1); CREATE TABLE other (a int PRIMARY KEY, b int UNIQUE);
             CREATE TABLE refers (a int PRIMARY KEY, b int REFERENCES other (b)); CREATE VIEW seen AS SELECT 1 AS a;
             CREATE UNLOGGED TABLE forgets (a int PRIMARY KEY); CREATE TABLE old (a int PRIMARY KEY);
             CREATE TABLE heir (PRIMARY KEY (a)) INHERITS (old)",
        )
        .unwrap();
    for (table, why) in [
        ("heap", "no primary key"),
        ("lower", "partial or over an expression"),
        ("filled", "already has rows"),
        ("refers", "by a key other"),
        ("absent", "no such ordinary table"),
        ("seen", "no such ordinary table"),
        ("forgets", "no such ordinary table"),
        ("heir", "no such ordinary table"),
    ] {
        match capture(&options, &[table]) {
            Err(StoreError::Table { name, why: found }) => {
                assert!(name.ends_with(table) && found.contains(why), "{name}: {found}");
            }
            other => panic!("{table}: {other:?}"),
        }
    }
}

#[test]
fn what_cannot_be_captured_is_refused() {
    let Some(mut bank) = Bank::new() else { return };
    let refused = bank.sites[0].run(&["TRUNCATE journal"]).unwrap_err();
    assert!(matches!(&refused, SqlError::Refused { why, .. } if why.contains("use DELETE")), "{refused}");
    // Doing it again changes nothing, now that the table participates.
    capture(&Options::new(bank.sites[0].address.as_str()), &TABLES).unwrap();
    bank.commit(0, &["INSERT INTO journal VALUES (1, 1)"]);
    capture(&Options::new(bank.sites[0].address.as_str()), &TABLES).unwrap();
    assert_eq!(bank.rows("journal"), ["(1,1)"]);
}

#[test]
fn removed_store_takes_only_its_own_rows() {
    let Some(server) = server() else { return };
    let mut site = Site::new(server, BANK, &TABLES);
    let insert =
        site.run(&["INSERT INTO person VALUES (1, 'Ada')", "INSERT INTO account VALUES (10, 1)"]).unwrap();
    let applied = Certifier::default().order(insert, &site.store);
    site.store.apply(&[applied], None).unwrap();
    let mut client = Client::connect(&site.address, NoTls).unwrap();
    client
        .batch_execute(
            "SET session_replication_role = replica; CREATE TABLE mine (a int); INSERT INTO mine VALUES (7)",
        )
        .unwrap();
    let open = clear(&Options::new(site.address.as_str()));
    assert!(matches!(open, Err(StoreError::InUse(_))), "it is open");
    let site = site.cleared();
    assert_eq!(site.store.applied(), Version(0));
    assert_eq!(
        (site.rows("person"), site.rows("account"), site.rows("mine")),
        (vec![], vec![], vec!["(7)".to_owned()])
    );
}

#[test]
fn missing_database_is_made_existing_is_left_alone() {
    let Some(server) = server() else { return };
    let options = Options::new(
        server.connection("made \"here\"").replace("dbname=made \"here\"", "dbname='made \"here\"'"),
    );
    for version in [1, 1] {
        provide(&options).unwrap();
        let store = PostgresStore::open(options.clone()).unwrap();
        if store.applied() == Version(0) {
            store.apply(&[Applied { version: Version(1), writes: vec![] }], None).unwrap();
        }
        assert_eq!(store.applied(), Version(version));
    }
}

#[test]
fn what_was_captured_cannot_commit_at_its_server() {
    let Some(server) = server() else { return };
    let site = Site::new(server, BANK, &TABLES);
    let mut client = Client::connect(&site.address, NoTls).unwrap();
    for hidden in [
        "INSERT INTO person VALUES (1, 'Ada')",
        "DO $$ BEGIN INSERT INTO person VALUES (2, 'Bob'); COMMIT; END $$",
    ] {
        let refused = client.batch_execute(hidden).unwrap_err();
        assert!(
            refused.to_string().contains("db error") && refused.code().unwrap().code() == "0A000",
            "{refused}"
        );
    }
    assert!(site.rows("person").is_empty());
}

#[test]
fn a_row_is_called_alike_in_every_time_zone() {
    let schema = "CREATE TABLE visit (at timestamptz PRIMARY KEY, what text)";
    let Some(mut bank) = Bank::of(schema, &["visit"]) else { return };
    bank.commit(0, &["INSERT INTO visit VALUES ('2026-01-02 03:04:05+00', 'first')"]);
    let keys = ["Asia/Tokyo", "America/New_York"].map(|zone| {
        let change = format!("UPDATE visit SET what = '{zone}'");
        let transaction = bank.sites[0].run(&[&format!("SET LOCAL TimeZone = '{zone}'"), &change]).unwrap();
        transaction.writes.into_iter().map(|write| write.key).collect::<Vec<_>>()
    });
    assert_eq!(keys[0], keys[1]);
}

#[test]
fn a_server_that_does_not_answer_is_said_to_be_silent() {
    let Some(server) = server() else { return };
    let silent = Watch::begin(Options::new("host=/nonexistent user=nobody")).unwrap();
    let answers = Watch::begin(Options::new(server.database())).unwrap();
    let said = loop {
        match silent.trouble() {
            Some(said) => break said,
            None => std::thread::sleep(std::time::Duration::from_millis(20)),
        }
    };
    assert!(said.contains("PostgreSQL: "), "no reason: {said}");
    assert_eq!(answers.trouble(), None);
}

#[test]
fn what_is_too_large_is_refused_before_all_of_it_is_kept() {
    let Some(mut bank) = Bank::new() else { return };
    for (statement, expected) in [
        ("INSERT INTO person SELECT i FROM generate_series(1, 100000) i", "54000"),
        ("INSERT INTO person SELECT i, repeat('x', 1000) FROM generate_series(1, 1000) i", "54000"),
        ("SAVEPOINT pares", "0A000"),
    ] {
        let refused = bank.sites[0].run(&["INSERT INTO person VALUES (0, 'Ada')", statement]).unwrap_err();
        assert!(matches!(&refused, SqlError::Refused { code, .. } if code == expected), "{refused:?}");
    }
    bank.commit(0, &["INSERT INTO person SELECT i, repeat('x', 1000) FROM generate_series(1, 600) i"]);
    assert_eq!(bank.rows("person").len(), 600);
}
