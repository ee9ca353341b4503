//! What could not be written, or not be the same, at every site is refused at the first; and the sites continue.

use super::*;

/// What a statement is refused with.
fn refused(client: &mut Client, statement: &str) -> String {
    let error = client.batch_execute(statement).expect_err(statement);
    assert_eq!(code(&error), "0A000", "{statement}: {error:?}");
    error.as_db_error().unwrap().message().to_owned()
}

/// Both sites have this many rows of the table, so they still apply versions.
fn both_have(clients: [&mut Client; 2], table: &str, rows: i64) {
    for client in clients {
        let count = format!("SELECT count(*) FROM {table}");
        until(|| client.query_one(&count, &[]).is_ok_and(|row| row.get::<_, i64>(0) == rows));
    }
}

#[test]
fn rows_that_the_writer_could_not_write_are_refused_at_commit() {
    let tables = "CREATE TYPE part AS (j jsonb, f float8); CREATE TABLE js (id int PRIMARY KEY, j jsonb NOT NULL, p part, a part[]);
        CREATE TABLE note (id int PRIMARY KEY, at timestamptz NOT NULL, day date NOT NULL, CHECK (day = at::date));
        CREATE TABLE rate (id int PRIMARY KEY, f float8 CHECK (f::text = '0.3'));
        CREATE TABLE named (id int PRIMARY KEY, t regclass); CREATE SCHEMA app; CREATE TABLE app.x (id int PRIMARY KEY)";
    let Some((sites, mut here, mut there)) = with(tables) else { return };
    for statement in [
        "INSERT INTO js VALUES (1, '1', '(null,1)')",
        "INSERT INTO js VALUES (1, '1', '(1,-0)')",
        "INSERT INTO js VALUES (1, '1', NULL, '[5:5]={\"(1,1)\"}')",
        "SET timezone = 'Asia/Tokyo'; INSERT INTO note VALUES (1, '2026-11-26 03:00', '2026-11-26')",
        "SET extra_float_digits = 0; INSERT INTO rate VALUES (1, 0.1::float8 + 0.2::float8)",
    ] {
        let why = refused(&mut sites.sql(A0), statement);
        assert!(why.contains("identically at every site"), "{why}");
    }
    here.batch_execute("INSERT INTO js VALUES (2, 'null', '(1,1)', '{\"(1,1)\"}')").unwrap();
    here.batch_execute("SET search_path = app, public; INSERT INTO named VALUES (1, 'x')").unwrap();
    both_have([&mut sites.sql(A0), &mut there], "js", 1);
    both_have([&mut here, &mut there], "public.named WHERE t::oid = 'app.x'::regclass", 1);
}

#[test]
fn keys_whose_equal_values_are_spelt_differently_are_refused() {
    let tables = "CREATE TYPE mood AS ENUM ('sad', 'ok'); CREATE DOMAIN cents AS numeric(12, 2);
        CREATE TABLE fit (a cents, b mood, c varchar(9), d timestamptz, PRIMARY KEY (a, b, c, d), e uuid UNIQUE, n numeric);
        CREATE TABLE person (id bigint PRIMARY KEY); CREATE TABLE moment (at timestamp PRIMARY KEY); CREATE TABLE pet (id int PRIMARY KEY, of int REFERENCES person)";
    let Some((_sites, mut here, mut there)) = with(tables) else { return };
    for statement in [
        "CREATE TABLE no (k numeric PRIMARY KEY)",
        "CREATE TABLE no (k float8 PRIMARY KEY)",
        "CREATE TABLE no (k int PRIMARY KEY, v interval UNIQUE)",
        "CREATE TABLE no (k int PRIMARY KEY, v jsonb UNIQUE)",
        "CREATE TABLE no (k int PRIMARY KEY, of date REFERENCES moment)",
        "CREATE TABLE no (k int PRIMARY KEY, r int4range, EXCLUDE USING gist (r WITH &&))",
        "CREATE TABLE no (k int PRIMARY KEY, v int, UNIQUE NULLS NOT DISTINCT (v))",
        "CREATE UNIQUE INDEX ON fit (n)",
        "ALTER TABLE fit ADD CONSTRAINT no CHECK (n > 0) NOT VALID",
        "ALTER TYPE mood RENAME VALUE 'sad' TO 'blue'",
        "ALTER DOMAIN cents ADD CONSTRAINT no CHECK (value > 0) NOT VALID",
        "CREATE SCHEMA postgres",
        "DROP SCHEMA public CASCADE",
        "DROP SCHEMA/**/public CASCADE",
    ] {
        refused(&mut here, statement);
    }
    here.batch_execute("INSERT INTO person VALUES (1)").unwrap();
    here.batch_execute("INSERT INTO pet VALUES (1, 1)").unwrap();
    both_have([&mut here, &mut there], "pet", 1);
}

#[test]
fn watched_addition_columns_and_apply_triggers_refused() {
    let tables = "CREATE TABLE acc (id int PRIMARY KEY, bal int NOT NULL); COMMENT ON COLUMN acc.bal IS 'pares: delta';
        CREATE FUNCTION good(a acc) RETURNS bool LANGUAGE sql AS 'SELECT a.bal >= 0';
        CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL\\073 END';
        CREATE TRIGGER works AFTER INSERT ON acc FOR EACH ROW EXECUTE FUNCTION nothing()";
    let tables = tables.replace("AS 'BEGIN", "AS E'BEGIN");
    let Some((_sites, mut here, mut there)) = with(&tables) else { return };
    for statement in [
        "ALTER TABLE acc ADD CONSTRAINT g CHECK (good(acc.*))",
        "CREATE INDEX ON acc ((1000 / bal))",
        "ALTER TABLE acc ADD part int GENERATED ALWAYS AS (1000 / bal) STORED",
        "ALTER TABLE acc ENABLE ALWAYS TRIGGER works",
    ] {
        refused(&mut here, statement);
    }
    here.batch_execute("INSERT INTO acc VALUES (1, 5)").unwrap();
    here.batch_execute("UPDATE acc SET bal = bal + 1").unwrap();
    both_have([&mut here, &mut there], "acc WHERE bal = 6", 1);
}

#[test]
fn schema_change_means_same_tables_and_times_everywhere() {
    let tables = "CREATE SCHEMA app; CREATE TABLE t (id int PRIMARY KEY, x int DEFAULT 5); CREATE TABLE app.t (id int PRIMARY KEY);
        INSERT INTO t VALUES (1)";
    let Some((sites, mut here, mut there)) = with(tables) else { return };
    let mut elsewhere = sites.sql(A0);
    elsewhere.batch_execute("SET search_path = app").unwrap();
    assert!(refused(&mut elsewhere, "DROP TABLE t").contains("search_path"));
    elsewhere.batch_execute("RESET search_path").unwrap();
    for statement in [
        "ALTER TABLE t DROP COLUMN x, ADD COLUMN x timestamptz DEFAULT now()",
        "ALTER TABLE t ADD COLUMN y timestamptz DEFAULT ' now'",
        "ALTER TABLE t ADD COLUMN y timestamptz DEFAULT $x$now$x$",
        "ALTER TABLE t ADD COLUMN y timestamptz DEFAULT U&'\\006eow'",
        "ALTER TABLE t ADD COLUMN y timestamptz DEFAULT 'no'\n'w'",
        "ALTER TABLE t ADD COLUMN y date[] DEFAULT '{\"today\"}'",
        "CREATE TABLE no (id int PRIMARY KEY, at timestamp CHECK (at > $a$now$a$))",
        "CREATE DOMAIN no AS timestamptz DEFAULT 'now'",
        "CREATE FUNCTION no() RETURNS timestamptz LANGUAGE sql RETURN timestamptz 'now'",
        "CREATE VIEW no AS SELECT timestamptz 'now' AS at",
    ] {
        refused(&mut here, statement);
    }
    for statement in [
        "CREATE TYPE due AS ENUM ('today', 'later')",
        "ALTER TABLE t ADD COLUMN due due NOT NULL DEFAULT 'today'",
        "ALTER TABLE t ADD COLUMN what text NOT NULL DEFAULT 'now or never'",
        "CREATE FUNCTION at() RETURNS timestamptz LANGUAGE sql AS $$SELECT timestamptz 'now'$$",
    ] {
        here.batch_execute(statement).expect(statement);
    }
    here.batch_execute("SET timezone = 'Asia/Tokyo'").unwrap();
    here.batch_execute("ALTER TABLE t ADD COLUMN since timestamptz NOT NULL DEFAULT '2026-01-01 00:00'")
        .unwrap();
    both_have([&mut here, &mut there], "t WHERE since = '2026-01-01 00:00 UTC'", 1);
}

#[test]
fn site_dependent_row_computation_is_refused() {
    let tables = "CREATE FUNCTION small(n int) RETURNS bool LANGUAGE sql IMMUTABLE AS 'SELECT n < 100';
        CREATE FUNCTION here() RETURNS text LANGUAGE sql IMMUTABLE AS 'SELECT current_database()';
        CREATE TABLE named (id int PRIMARY KEY);
        CREATE TABLE fit (id int PRIMARY KEY, n int CHECK (abs(n) < 9), m int GENERATED ALWAYS AS (n * 2) STORED, at timestamptz CHECK (at > '2020-01-01'::date), day date, CHECK (day = at::date));
        INSERT INTO fit (id, n, at, day) VALUES (1, 2, '2026-01-01 UTC', '2026-01-01')";
    let Some((_sites, mut here, mut there)) = with(tables) else { return };
    for (check, named) in [
        ("at > clock_timestamp() - interval '20 seconds'", "clock_timestamp()"),
        ("at > now()", "now()"),
        ("at > CURRENT_TIMESTAMP", "the time"),
        ("w::date > '2020-01-01'", "a text as a time"),
        ("w = session_user", "the time, a role"),
        ("w = current_setting('app.who')", "current_setting"),
        ("small(n)", "small(integer)"),
        ("w <> current_database()", "current_database()"),
        ("tableoid > 0", "a thing of the catalogue"),
        ("n::oid <> 'named'::regclass", "a thing of the catalogue"),
        ("w::regclass IS NOT NULL", "regclass(text)"),
    ] {
        let table =
            format!("CREATE TABLE no (id int PRIMARY KEY, n int, w text, at timestamptz, CHECK ({check}))");
        let why = refused(&mut here, &table);
        assert!(why.contains("CHECK no_") && why.contains(named), "{check}: {why}");
    }
    let why = refused(&mut here, "CREATE DOMAIN no AS text CHECK (value = current_setting('app.who'))");
    assert!(why.contains("CHECK no_check of no"), "{why}");
    for (statement, named) in [
        ("ALTER TABLE named ADD o oid GENERATED ALWAYS AS (tableoid) STORED", "generated column o"),
        (
            "ALTER TABLE named ADD o oid GENERATED ALWAYS AS (('named'::regclass)::oid) STORED",
            "generated column o",
        ),
        ("ALTER TABLE named ADD o text GENERATED ALWAYS AS (here()) STORED", "here()"),
        ("CREATE INDEX by_size ON named (small(id))", "index by_size"),
        ("CREATE INDEX few ON named (id) WHERE small(id)", "small(integer)"),
    ] {
        let why = refused(&mut here, statement);
        assert!(why.contains(named), "{statement}: {why}");
    }
    both_have([&mut here, &mut there], "fit", 1);
}

#[test]
fn type_change_never_reinterprets_written_rows() {
    let tables = "CREATE TYPE pt AS (x int, y int); CREATE TABLE part (id int PRIMARY KEY, z int);
        CREATE TABLE piece (id int PRIMARY KEY, z int); CREATE DOMAIN slice AS piece; CREATE DOMAIN slices AS slice;
        CREATE TABLE whole (at timestamp PRIMARY KEY, p pt, q part, r slices[]); INSERT INTO whole VALUES ('2026-01-01', '(3,4)', '(1,2)')";
    let Some((_sites, mut here, mut there)) = with(tables) else { return };
    for statement in [
        "ALTER TYPE pt DROP ATTRIBUTE x",
        "ALTER TABLE part RENAME COLUMN z TO w",
        "ALTER TABLE part DROP COLUMN z",
        "ALTER TABLE piece RENAME COLUMN z TO w",
        "ALTER TABLE whole ALTER COLUMN at TYPE timestamptz",
    ] {
        refused(&mut here, statement);
    }
    here.batch_execute("ALTER TYPE pt ADD ATTRIBUTE w int").unwrap();
    both_have([&mut here, &mut there], "whole WHERE (p).x = 3", 1);
}

#[test]
fn misspelt_directive_comment_gets_right_spelling() {
    let tables = "CREATE TABLE acc (id int PRIMARY KEY, bal int NOT NULL)";
    let Some((_sites, mut here, mut there)) = with(tables) else { return };
    for comment in ["pares: Delta", "Pares: delta", "pares:delta", " pares: delta", "pares: delta, please"] {
        let why = refused(&mut here, &format!("COMMENT ON COLUMN acc.bal IS '{comment}'"));
        assert!(why.contains("IS 'pares: delta'"), "{comment}: {why}");
    }
    assert!(refused(&mut here, "COMMENT ON TABLE acc IS 'pares: delta'").contains("COMMENT ON COLUMN"));
    here.batch_execute("COMMENT ON TABLE acc IS 'what pares: delta is, see there'").unwrap();
    here.batch_execute("COMMENT ON COLUMN acc.bal IS 'pares: delta'").unwrap();
    here.batch_execute("INSERT INTO acc VALUES (1, 1)").unwrap();
    both_have([&mut here, &mut there], "acc", 1);
}
