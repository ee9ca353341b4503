//! Where the system has certificates, its ports for SQL ask for one too. `psql` is the client here: its library speaks TLS as most drivers do.

use std::process::Output;

use super::*;

/// What `psql` says with these settings of its connection.
fn psql(sites: &Sites, settings: &str, statement: &str) -> Output {
    let address = sites.config.place(A0).unwrap().sql.unwrap();
    let place =
        format!("host={} port={} user=postgres dbname=postgres {settings}", address.ip(), address.port());
    let output = Command::new("psql").args([&place, "-X", "-A", "-t", "-c", statement]).output();
    output.unwrap()
}

#[test]
fn with_certificates_sql_is_spoken_over_tls_by_those_who_may() {
    let dir = tempfile::tempdir().unwrap();
    let Some(sites) = Sites::start_over_with_tls(Engine::Postgres, dir.path(), 2, 1) else { return };
    let tls = dir.path().join("tls");
    let shows = |name: &str| {
        let file = |end: &str| tls.join(format!("{name}{end}")).display().to_string();
        let authority = tls.join("ca.pem").display().to_string();
        format!(
            "sslmode=verify-ca sslrootcert={authority} sslcert={} sslkey={}",
            file(".pem"),
            file(".key.pem")
        )
    };
    let client = shows("client-app");
    until(|| psql(&sites, &client, "SELECT 1").status.success());
    let said = psql(&sites, &client, "CREATE TABLE note (key int PRIMARY KEY)");
    assert_eq!(String::from_utf8_lossy(&said.stdout), "CREATE TABLE\n");
    let said = psql(&sites, &shows("operator-app"), "INSERT INTO note SELECT generate_series(1, 5000)");
    assert_eq!(String::from_utf8_lossy(&said.stdout), "INSERT 0 5000\n");
    let said = psql(&sites, &client, "SELECT count(*), sum(length(repeat('x', key))) FROM note");
    assert_eq!(String::from_utf8_lossy(&said.stdout), "5000|12502500\n");
    pares_link::issue_named(&tls, common::SYSTEM, "client-gone").unwrap();
    for end in [".pem", ".key.pem"] {
        std::fs::copy(tls.join(format!("client-gone{end}")), tls.join(format!("kept{end}"))).unwrap();
    }
    let gone = shows("kept");
    assert!(psql(&sites, &gone, "SELECT 1").status.success());
    pares_link::revoke(&tls, common::SYSTEM, "client-gone").unwrap();
    let reader = shows("reader-app");
    let said = psql(&sites, &reader, "SELECT count(*) FROM note");
    assert_eq!(String::from_utf8_lossy(&said.stdout), "5000\n");
    for statement in [
        "DELETE FROM note",
        "BEGIN READ WRITE; DELETE FROM note; COMMIT",
        "BEGIN; SET TRANSACTION READ WRITE; DELETE FROM note; COMMIT",
        "SET default_transaction_read_only = off; DELETE FROM note",
        "DO $$ BEGIN DELETE FROM note; END $$",
        "DROP TABLE note",
    ] {
        let said = psql(&sites, &reader, statement);
        let error = String::from_utf8_lossy(&said.stderr);
        assert!(!said.status.success() && !error.is_empty(), "{statement}: {error}");
    }
    let said = psql(&sites, &client, "SELECT count(*) FROM note");
    assert_eq!(String::from_utf8_lossy(&said.stdout), "5000\n");
    for (settings, why) in [
        (shows("site-1-0"), "certificate of a reader"),
        (gone, "revoked"),
        ("sslmode=disable".into(), "TLS only"),
        ("sslmode=require sslcert=/nonexistent".into(), "certificate"),
    ] {
        let said = psql(&sites, &settings, "SELECT 1");
        let error = String::from_utf8_lossy(&said.stderr);
        assert!(!said.status.success() && error.contains(why), "{settings}: {error}");
    }
}

#[test]
fn nothing_that_came_before_tls_is_taken_for_what_came_through_it() {
    let dir = tempfile::tempdir().unwrap();
    let Some(sites) = Sites::start_over_with_tls(Engine::Postgres, dir.path(), 1, 1) else { return };
    let mut client = TcpStream::connect(sites.config.place(A0).unwrap().sql.unwrap()).unwrap();
    client.write_all(&[0, 0, 0, 8, 4, 210, 22, 47, 0, 0, 0, 8, 4, 210, 22, 47]).unwrap();
    client.set_read_timeout(Some(common::PATIENCE)).unwrap();
    let mut said = Vec::new();
    let _ = client.read_to_end(&mut said);
    assert_eq!(said, b"S");
}
