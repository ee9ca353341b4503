//! Values of each type are at every site what they were where they were written.

use super::*;

/// Types of columns with values as they are written; `;` stands between two.
const VALUES: &[(&str, &str)] = &[
    ("json", r#"{"b":1,  "a":[2, null], "a":3};"\u0000";null;"{}"; [1,2];1.0"#),
    ("json[]", r#"{"{\"a\":1}","null",NULL};{}"#),
    ("jsonb", r#"{"a": null};null;"null";1e400"#),
    ("jsonb[]", r#"{"null",NULL,"[1]"}"#),
    ("float4", "-0;0;NaN;-Infinity;1e-45"),
    ("float8", "-0;0.1;1e308"),
    ("float8[]", "{-0,0.5};{{-0},{NaN}}"),
    ("int[]", "{1,NULL};{};[5:6]={1,2};{{1,2},{3,4}}"),
    ("text[]", r#"{"a\"b\\",NULL,"NULL",""}"#),
    ("numeric", "1.00;NaN;-0.0"),
    ("numeric(10, 2)", "12.5"),
    ("money", "-12.34"),
    ("char(5)", "ab"),
    ("varchar(5)", " a "),
    ("\"char\"", "a"),
    ("name", "a"),
    ("bytea", r"\x00ff"),
    ("boolean", "t"),
    ("date", "infinity;0044-03-15 BC"),
    ("time", "24:00"),
    ("timetz", "01:02:03.5+05:30"),
    ("timestamp", "2026-01-01 00:00:00.000001;-infinity"),
    ("timestamptz", "2026-01-01 00:00+09"),
    ("timestamptz[]", r#"{"2026-01-01 00:00+09",infinity}"#),
    ("interval", "1 mon -2 days 03:04:05.6"),
    ("uuid", "00000000-0000-0000-0000-00000000000a"),
    ("inet", "10.0.0.1/8;::1"),
    ("macaddr8", "08:00:2b:01:02:03:04:05"),
    ("bit(3)", "101"),
    ("varbit", "1"),
    ("point", "(1,-0)"),
    ("box", "(1,1),(0,0)"),
    ("box[]", "{(1,1),(0,0)}"),
    ("tsvector", "'a':1A 'b'"),
    ("tstzrange", "[2026-01-01,)"),
    ("int4multirange", "{[1,3),[5,7)}"),
    ("pair", r#"(1,"a b")"#),
    ("pair[]", r#"{"(1,)",NULL}"#),
    ("ratio", "-0;1"),
    ("ratio[]", "{-0,1}"),
    ("object", "null;{}"),
    ("list", "[5:6]={-0,1};{}"),
];

#[test]
fn values_of_each_type_arrive_as_they_were_written() {
    let types = VALUES.iter().enumerate().map(|(at, (kind, _))| format!("v{at} {kind}"));
    let table = format!("CREATE TABLE wide (id int PRIMARY KEY, {})", types.collect::<Vec<_>>().join(", "));
    let domains = [("ratio", "float8"), ("object", "jsonb"), ("list", "float8[]")]
        .map(|(name, base)| format!("CREATE DOMAIN a_{name} AS {base}; CREATE DOMAIN {name} AS a_{name};"));
    let types = format!("CREATE TYPE pair AS (a int, b text); {}", domains.concat());
    let Some((sites, mut here, mut there)) = with(&format!("{types} {table}")) else { return };
    let mut id = 0;
    for (at, (kind, values)) in VALUES.iter().enumerate() {
        for value in values.split(';') {
            id += 1;
            let insert = format!("INSERT INTO wide (id, v{at}) VALUES ({id}, $1::text::{kind})");
            here.execute(&insert, &[&value]).unwrap_or_else(|error| panic!("{kind} {value}: {error:?}"));
            let kept = format!(
                "SELECT v{at}::text IS NOT DISTINCT FROM $1::text::{kind}::text FROM wide WHERE id = {id}"
            );
            let is_kept = |client: &mut Client| {
                client.query_opt(&kept, &[&value]).unwrap().map(|row| row.get::<_, bool>(0))
            };
            until(|| is_kept(&mut there).is_some());
            assert_eq!([is_kept(&mut here), is_kept(&mut there)], [Some(true); 2], "{kind} {value}");
        }
    }
    // A change of the table writes the items again, and another one of a row reads them.
    here.batch_execute("ALTER TABLE wide ADD COLUMN more json DEFAULT '{\"b\":1}'").unwrap();
    here.batch_execute("UPDATE wide SET id = id + 1000").unwrap();
    let all = "SELECT md5(string_agg(w::text, ' ' ORDER BY id)) FROM wide w WHERE id > 1000";
    let digest = |client: &mut Client| client.query_one(all, &[]).unwrap().get::<_, Option<String>>(0);
    until(|| digest(&mut there).is_some());
    assert_eq!(digest(&mut sites.sql(A0)), digest(&mut there));
}

#[test]
fn rows_arrive_whatever_tables_and_columns_are_called() {
    let Some((_sites, mut here, mut there)) = with("CREATE SCHEMA \"Up\"") else { return };
    for name in ["$1", "$2", "PARES", "xPARESy", "WRITER", "$pares$", "x$pares_0$y", "o'c", "{rows}", "\\"] {
        let name = format!("\"{name}\"");
        for table in [name.clone(), format!("\"Up\".{name}")] {
            here.batch_execute(&format!("CREATE TABLE {table} (id int PRIMARY KEY, {name} text)")).unwrap();
            for statement in
                [format!("INSERT INTO {table} VALUES (1, 'a')"), format!("UPDATE {table} SET {name} = 'b'")]
            {
                here.batch_execute(&statement).unwrap_or_else(|error| panic!("{statement}: {error:?}"));
            }
            let written = format!("SELECT FROM {table} WHERE {name} = 'b'");
            until(|| there.query(&written, &[]).is_ok_and(|rows| rows.len() == 1));
        }
    }
}

#[test]
fn json_inside_domains_and_rows_is_refused_when_made() {
    let types = "CREATE DOMAIN document AS json; CREATE DOMAIN letter AS document; CREATE TYPE part AS (id int, what json); CREATE TYPE whole AS (parts part[]);
        CREATE TYPE fit AS (id int, what jsonb); CREATE DOMAIN object AS jsonb CHECK (value ? 'a')";
    let Some((sites, mut here, mut there)) = with(types) else { return };
    for kind in ["document", "document[]", "letter", "letter[]", "part", "whole", "whole[]"] {
        let error = here.batch_execute(&format!("CREATE TABLE no (id int PRIMARY KEY, v {kind})"));
        let error = error.expect_err(kind);
        let why = error.as_db_error().unwrap().message();
        assert!(
            code(&error) == "0A000" && why.contains("holds json") && why.contains("jsonb"),
            "{kind}: {why}"
        );
    }
    here.batch_execute("CREATE TABLE kept (id int PRIMARY KEY, v fit, w object, x object[])").unwrap();
    here.batch_execute("INSERT INTO kept VALUES (1, '(1,\"{}\")', '{\"a\": 1}', '{}')").unwrap();
    until(|| there.query("SELECT FROM kept", &[]).is_ok_and(|rows| rows.len() == 1));
    for site in [A0, B0] {
        let extension = "SET session_replication_role = replica; CREATE EXTENSION hstore";
        sites.server(site).batch_execute(extension).unwrap();
    }
    here.batch_execute("CREATE TABLE pairs (id int PRIMARY KEY, h hstore, a hstore[])").unwrap();
    here.batch_execute("INSERT INTO pairs VALUES (1, 'a=>1, b=>NULL', ARRAY['c=>d'::hstore])").unwrap();
    until(|| {
        there
            .query("SELECT FROM pairs WHERE h -> 'a' = '1' AND a[1] -> 'c' = 'd'", &[])
            .is_ok_and(|rows| rows.len() == 1)
    });
}
