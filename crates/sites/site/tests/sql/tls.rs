//! Where the system has certificates, its ports for SQL ask for one too. `psql` is the client here: its library speaks TLS as most drivers do.

use std::process::Output;

use super::*;

/// What `psql` says with these settings of its connection.
fn psql(sites: &Sites, settings: &str, statement: &str) -> Output {
    let address = sites.sql_address(A0);
    let place =
        format!("host={} port={} user=postgres dbname=postgres {settings}", address.ip(), address.port());
    let output = Command::new("psql").args([&place, "-X", "-A", "-t", "-c", statement]).output();
    output.unwrap()
}

/// How `psql` shows the certificate of that name.
fn shows(sites: &Sites, name: &str) -> String {
    let file = |name: &str| sites.dir.join("tls").join(name).display().to_string();
    let (authority, certificate, key) =
        (file("ca.pem"), file(&format!("{name}.pem")), file(&format!("{name}.key.pem")));
    format!("sslmode=verify-ca sslrootcert={authority} sslcert={certificate} sslkey={key}")
}

/// Two sites with certificates, and a table of five thousand notes.
fn with_notes() -> Option<Sites> {
    let sites = Sites::start_over_with_tls(Engine::Postgres, 2, 1)?;
    let (client, operator) = (shows(&sites, "client-app"), shows(&sites, "operator-app"));
    until(|| psql(&sites, &client, "SELECT 1").status.success());
    assert_eq!(said(&psql(&sites, &client, "CREATE TABLE note (key int PRIMARY KEY)")), "CREATE TABLE\n");
    let filled = psql(&sites, &operator, "INSERT INTO note SELECT generate_series(1, 5000)");
    assert_eq!(said(&filled), "INSERT 0 5000\n");
    Some(sites)
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn with_certificates_sql_is_spoken_over_tls_by_those_who_may() {
    let Some(sites) = with_notes() else { return };
    let long = psql(
        &sites,
        &shows(&sites, "client-app"),
        "SELECT count(*), sum(length(repeat('x', key))) FROM note",
    );
    assert_eq!(said(&long), "5000|12502500\n");
    let tls = sites.dir.join("tls");
    pares_link::issue_named(&tls, common::SYSTEM, "client-gone").unwrap();
    for end in [".pem", ".key.pem"] {
        std::fs::copy(tls.join(format!("client-gone{end}")), tls.join(format!("kept{end}"))).unwrap();
    }
    let gone = shows(&sites, "kept");
    assert!(psql(&sites, &gone, "SELECT 1").status.success());
    pares_link::revoke(&tls, common::SYSTEM, "client-gone").unwrap();
    for (settings, why) in [
        (shows(&sites, "site-1-0"), "certificate of a reader"),
        (gone, "revoked"),
        ("sslmode=disable".into(), "requires TLS"),
        ("sslmode=require sslcert=/nonexistent".into(), "certificate"),
    ] {
        let output = psql(&sites, &settings, "SELECT 1");
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && error.contains(why), "{settings}: {error}");
    }
}

#[test]
fn the_certificate_of_a_reader_reads_by_sql_and_changes_nothing() {
    let Some(sites) = with_notes() else { return };
    let reader = shows(&sites, "reader-app");
    let only =
        psql(&sites, &format!("{reader} target_session_attrs=read-only"), "SHOW transaction_read_only");
    assert_eq!(said(&only), "on\n", "{only:?}");
    for statement in [
        "DELETE FROM note",
        "BEGIN READ WRITE; DELETE FROM note; COMMIT",
        "BEGIN; SET TRANSACTION READ WRITE; DELETE FROM note; COMMIT",
        "SET default_transaction_read_only = off; DELETE FROM note",
        "DO $$ BEGIN DELETE FROM note; END $$",
        "DROP TABLE note",
    ] {
        let output = psql(&sites, &reader, statement);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && error.contains("read"), "{statement}: {error}");
    }
    // Out of the transaction that reads only, by what the site itself began it with, or hidden from it; and what no other site would get.
    let hidden = "COMMIT; DELETE FROM note; COMMIT";
    for way in [
        "BEGIN READ ONLY; SAVEPOINT pares; RELEASE SAVEPOINT pares; SET TRANSACTION READ WRITE; SAVEPOINT pares; DELETE FROM note; COMMIT",
        "BEGIN; RELEASE \"pares\"; SET TRANSACTION READ WRITE; DELETE FROM note; COMMIT",
        "BEGIN; EXECUTE \"pares session\"; DELETE FROM note; COMMIT",
        &format!("SELECT t.begin atomic FROM (SELECT 1 AS begin) t; {hidden}"),
        &format!("SELECT 1 --\r; {hidden}"),
        &format!(
            "SELECT set_config('standard_conforming_strings', 'off', false); SELECT '\\' || '; {hidden}; --'"
        ),
    ] {
        let statement = format!("SELECT set_config('pares.ending', 'yes', false); {way}");
        let output = psql(&sites, &reader, &statement);
        assert!(!output.status.success(), "{statement}: {}", said(&output));
        assert_eq!(said(&psql(&sites, &reader, "SELECT count(*) FROM note")), "5000\n", "{statement}");
    }
    let xid = psql(&sites, &reader, "SELECT pg_current_xact_id()");
    assert!(!xid.status.success(), "a reader's transaction has a number of those that write");
}

#[test]
fn bytes_before_tls_never_count_as_tls() {
    let Some(sites) = Sites::start_over_with_tls(Engine::Postgres, 1, 1) else { return };
    let mut client = TcpStream::connect(sites.sql_address(A0)).unwrap();
    client.write_all(&[0, 0, 0, 8, 4, 210, 22, 47, 0, 0, 0, 8, 4, 210, 22, 47]).unwrap();
    client.set_read_timeout(Some(common::PATIENCE)).unwrap();
    let mut said = Vec::new();
    let _ = client.read_to_end(&mut said);
    assert_eq!(said, b"S");
}

#[test]
fn strangers_in_all_places_make_room_for_one_who_signs_on() {
    const ASKS_FOR_TLS: [u8; 8] = [0, 0, 0, 8, 4, 210, 22, 47];
    let Some(sites) = Sites::start_over_with_tls(Engine::Postgres, 1, 1) else { return };
    let client = shows(&sites, "client-app");
    until(|| psql(&sites, &client, "SELECT 1").status.success());
    let address = sites.sql_address(A0);
    let half_a_handshake = [&ASKS_FOR_TLS[..], &[22, 3, 1, 2, 0, 1]].concat();
    for says in [&[][..], &ASKS_FOR_TLS, &half_a_handshake] {
        // More than there is room for: some of them wait at the door, before the one who signs on.
        let strangers: Vec<TcpStream> = (0..pares_sql::CLIENTS_MAX + 20)
            .map(|_| {
                let mut stranger = TcpStream::connect(address).unwrap();
                stranger.write_all(says).unwrap();
                stranger
            })
            .collect();
        let output = psql(&sites, &client, "SELECT 1");
        assert!(output.status.success(), "{says:?}: {}", String::from_utf8_lossy(&output.stderr));
        drop(strangers);
    }
}
