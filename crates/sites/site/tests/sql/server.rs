//! What the session answers itself has the consequences that it has at the server: the same messages are sent to both.

use super::raw::{Raw, executed, query, sync};
use super::*;

const NOTE: &str = "CREATE TABLE note (key int PRIMARY KEY)";

/// What is answered to all messages, and which rows there are then.
pub(super) fn heard(raw: &mut Raw, messages: &[Vec<u8>]) -> Vec<String> {
    raw.ask("ROLLBACK; DELETE FROM note");
    raw.say(
        &[
            messages,
            &[query("SELECT 'rows ' || count(*) || coalesce(string_agg(key::text, ' ' ORDER BY key), '') FROM note")],
        ]
        .concat(),
    );
    let mut said = raw.until('D');
    while said.last().is_some_and(|word| word.starts_with("D ") && !word.starts_with("D rows ")) {
        said.extend(raw.until('D'));
    }
    if said.last().is_some_and(|word| word != "end") {
        raw.until('Z');
    }
    // Answers that wait for the outcome make way for an error.
    said.retain(|word| {
        word.starts_with(['C', 'D', 'E', 'N', 'Z', 'e'])
            && !["C INSERT", "C SET"].iter().any(|tag| word.starts_with(tag))
    });
    said
}

/// Sessions at a site and at a server.
pub(super) struct Both {
    sites: Sites,
    database: String,
    pub(super) here: Raw,
    pub(super) server: Raw,
}

impl Both {
    pub(super) fn begun() -> Option<Self> {
        let sites = Sites::start_over(Engine::Postgres, 1, 1)?;
        sites.sql(A0).batch_execute(NOTE).unwrap();
        let database = pares_testbed::postgres::server()?.database();
        let (here, mut server) = (Raw::begun(&sites), Raw::at_server(&database));
        server.ask(NOTE);
        Some(Self { sites, database, here, server })
    }

    /// Behind what has ended sessions.
    fn begin_again(&mut self) {
        (self.here, self.server) = (Raw::begun(&self.sites), Raw::at_server(&self.database));
    }

    /// These messages are answered at both as they are at the server.
    pub(super) fn same(&mut self, messages: &[Vec<u8>]) {
        self.alike(messages, messages, ["", ""]);
    }

    /// The same, where a code stands at the site for another one at the server.
    fn alike(&mut self, ours: &[Vec<u8>], theirs: &[Vec<u8>], [code, other]: [&str; 2]) {
        let said: Vec<_> = heard(&mut self.here, ours).iter().map(|word| word.replace(code, other)).collect();
        let texts: Vec<_> = ours.iter().map(|message| String::from_utf8_lossy(message)).collect();
        assert_eq!(said, heard(&mut self.server, theirs), "{texts:?}");
    }
}

/// Ways in which a transaction can be open when `message` comes.
pub(super) fn around(message: &[u8]) -> Vec<Vec<Vec<u8>>> {
    let message = || message.to_vec();
    let insert = |key: u8| format!("INSERT INTO note VALUES ({key})");
    let piped = |text: &str| [executed(text), sync()].concat();
    vec![
        vec![message(), query(&insert(1))],
        vec![query("BEGIN"), message(), query(&insert(1)), query("COMMIT"), query(&insert(2))],
        vec![query("BEGIN"), query(&insert(1)), message(), query(&insert(2)), query("COMMIT")],
        vec![query(&format!("BEGIN; {}", insert(1))), message(), piped("COMMIT"), query(&insert(2))],
        vec![executed("BEGIN"), executed(&insert(1)), message(), sync(), piped("COMMIT")],
        vec![executed(&insert(1)), message(), sync(), piped(&insert(2))],
        vec![query("BEGIN"), query("SELEC"), message(), query("COMMIT"), query(&insert(1))],
        vec![
            query(&insert(1)),
            query("BEGIN; SAVEPOINT s"),
            query(&insert(2)),
            message(),
            query("SELECT 1"),
            query("ROLLBACK TO s"),
            query(&insert(3)),
            query("COMMIT"),
        ],
        vec![
            query("BEGIN"),
            query("SAVEPOINT s"),
            query("SELEC"),
            message(),
            query("ROLLBACK TO s"),
            query(&insert(1)),
            query("COMMIT"),
        ],
        vec![
            query(&format!("BEGIN; {}; COMMIT; BEGIN", insert(1))),
            message(),
            query("BEGIN"),
            query("ROLLBACK AND CHAIN"),
            query(&insert(2)),
            query("COMMIT"),
        ],
        vec![
            query("BEGIN"),
            message(),
            query("SET TRANSACTION ISOLATION LEVEL SERIALIZABLE"),
            query(&insert(1)),
            query("COMMIT"),
        ],
    ]
}

fn synced(tag: u8, body: &[u8]) -> Vec<u8> {
    [framed(&[tag], body), sync()].concat()
}

#[test]
fn unreadable_message_fails_its_transaction() {
    let Some(mut both) = Both::begun() else { return };
    let unreadable = [
        query("SELECT 1").into_iter().map(|byte| if byte == b'1' { 0xff } else { byte }).collect(),
        synced(b'P', b"\0SELECT '\xff'\0\0\0"),
        synced(b'P', b"\xff\0SELECT\0\0\0"),
        synced(b'B', b"\xff\0\0\0\0\0\0\0\0"),
        synced(b'B', b"\0\xff\0\0\0\0\0\0\0"),
        synced(b'E', b"\xff\0\0\0\0\0"),
        synced(b'D', b"S\xff\0"),
        synced(b'C', b"S\xff\0"),
        framed(b"Q", b"SELECT 1"),
        framed(b"Q", b"SELECT 1\0\0"),
        synced(b'P', b"\0SELECT"),
        synced(b'E', b"\0\0"),
        synced(b'H', b"\0"),
        framed(b"S", b"\0"),
    ];
    for message in unreadable {
        for messages in around(&message) {
            both.same(&messages);
        }
    }
}

#[test]
fn refusal_fails_its_transaction_as_an_error_does() {
    let Some(mut both) = Both::begun() else { return };
    let fails = "SELECT 1 / (0 * pg_backend_pid())";
    let by_number = framed(b"F", &[0; 10]);
    let mut pairs = vec![(by_number.clone(), by_number, "42883")];
    for refused in ["LISTEN a", "SAVEPOINT pares", "CREATE SEQUENCE a", "SET pares.ending = 'yes'"] {
        pairs.push((query(refused), query(fails), "22012"));
        pairs.push(([executed(refused), sync()].concat(), [executed(fails), sync()].concat(), "22012"));
        let behind =
            |text: &str| query(&format!("INSERT INTO note VALUES (9); {text}; INSERT INTO note VALUES (8)"));
        pairs.push((behind(refused), behind(fails), "22012"));
    }
    for (ours, theirs, code) in pairs {
        for (ours, theirs) in around(&ours).iter().zip(around(&theirs)) {
            both.alike(ours, &theirs, ["E 0A000", &format!("E {code}")]);
        }
    }
    // One in a transaction only.
    let (change, fails) = (query("CREATE TABLE no (key int PRIMARY KEY)"), query(fails));
    for (ours, theirs) in around(&change).iter().zip(around(&fails)).filter(|(ours, _)| ours[0] != change) {
        both.alike(ours, &theirs, ["E 0A000", "E 22012"]);
    }
}

#[test]
fn ends_that_nothing_was_begun_for_are_told() {
    let Some(mut both) = Both::begun() else { return };
    let insert = "INSERT INTO note VALUES (1)";
    for end in
        ["COMMIT", "ROLLBACK", "COMMIT AND CHAIN", "ROLLBACK AND CHAIN", "BEGIN ISOLATION LEVEL SERIALIZABLE"]
    {
        for messages in [
            vec![query(end)],
            vec![query(&format!("{insert}; {end}; INSERT INTO note VALUES (2)"))],
            vec![executed(insert), executed(end), executed("INSERT INTO note VALUES (2)"), sync()],
            vec![query("BEGIN"), query("BEGIN"), query(insert), query(end), query("COMMIT")],
        ] {
            both.same(&messages);
        }
    }
}

#[test]
fn warnings_of_triggers_that_wait_for_commit_are_told() {
    let Some(mut both) = Both::begun() else { return };
    for change in [
        "CREATE FUNCTION warns() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE WARNING 'late'; RETURN NULL; END $$",
        "CREATE CONSTRAINT TRIGGER warns AFTER INSERT ON note DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION warns()",
    ] {
        both.sites.sql(A0).batch_execute(change).unwrap();
        both.server.ask(change);
    }
    let insert = "INSERT INTO note VALUES (1)";
    for messages in [
        vec![query(insert)],
        vec![executed(insert), sync()],
        vec![query(&format!("BEGIN; {insert}")), query("COMMIT")],
        vec![executed("BEGIN"), executed(insert), executed("COMMIT"), sync()],
    ] {
        both.same(&messages);
        assert!(heard(&mut both.server, &messages).contains(&"N 01000".to_owned()));
    }
}

/// A COPY, these rows, and what is no row.
fn copied(copy: &[u8], rows: &str, behind: &[u8]) -> Vec<Vec<u8>> {
    vec![query("BEGIN; INSERT INTO note VALUES (7)"), [copy, &framed(b"d", rows.as_bytes()), behind].concat()]
}

#[test]
fn message_among_copied_rows_ends_the_session() {
    let Some(mut both) = Both::begun() else { return };
    let copy = "COPY note FROM STDIN";
    let strays = [
        query("SELECT 1"),
        executed("SELECT 1"),
        framed(b"X", b""),
        framed(b"!", b""),
        framed(b"F", &[0; 10]),
    ];
    for (copy, stray) in
        [query(copy), executed(copy)].iter().flat_map(|copy| strays.iter().map(move |stray| (copy, stray)))
    {
        both.same(&copied(copy, "1\n", stray));
        both.begin_again();
        // Behind a row that is none it is a message as ever.
        let end = [sync(), query("COMMIT")].concat();
        both.same(&copied(copy, "none\n", &[stray.clone(), end].concat()));
        both.begin_again();
    }
    for messages in [vec![framed(b"!", b"")], vec![query("BEGIN"), executed("SELEC"), framed(b"p", b"\0")]] {
        both.same(&messages);
        both.begin_again();
    }
}

#[test]
fn named_statement_is_executed_outside_of_a_transaction() {
    let Some(mut both) = Both::begun() else { return };
    let named = |name: &str, statement: &str| {
        framed(b"P", &[name.as_bytes(), b"\0", statement.as_bytes(), b"\0\0\0"].concat())
    };
    let again = |name: &str| {
        [framed(b"B", &[b"\0", name.as_bytes(), &[0; 7]].concat()), framed(b"E", &[0; 5]), sync()].concat()
    };
    let insert = || query("INSERT INTO note VALUES (1)");
    for statement in [
        "DISCARD ALL",
        "SET application_name = 'a'",
        "DISCARD PLANS",
        "SHOW application_name",
        "SAVEPOINT a",
        "DEALLOCATE n",
    ] {
        both.same(&[
            named("n", statement),
            sync(),
            again("n"),
            query("SHOW application_name"),
            again("n"),
            insert(),
        ]);
        both.same(&[[named("n", statement), again("n")].concat(), insert(), query("DEALLOCATE ALL")]);
    }
    // One that a function has made in its place.
    let made =
        "DO $$ BEGIN EXECUTE 'DEALLOCATE n'; EXECUTE 'PREPARE n AS INSERT INTO note VALUES (5)'; END $$";
    both.same(&[
        named("n", "DISCARD ALL"),
        sync(),
        query(made),
        again("n"),
        again("n"),
        query("DEALLOCATE n"),
    ]);
}
