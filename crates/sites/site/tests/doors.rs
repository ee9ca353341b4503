//! Who is not let in, at either port of a site, and who may not do what he asks.
#![allow(clippy::unwrap_used)] // helpers are test code, too

mod common;

use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::time::{Duration, Instant};

use common::{PATIENCE, SYSTEM, Sites, done};
use pares_link::hello::{Hello, SPEAKS, UNDERSTANDS};
use pares_link::{ClientStream, Door, Identity, TlsFiles, Trust};
use pares_site::protocol::Code;
use pares_site::{CallError, Client};
use pares_wice::{ClusterId, ClusterSet, Command, SiteId};

const A0: SiteId = SiteId::new(0, 0);
const A1: SiteId = SiteId::new(0, 1);
const B0: SiteId = SiteId::new(1, 0);

fn number(site: SiteId) -> u16 {
    u16::from_be_bytes([site.cluster.0, site.number])
}

/// What shows that certificate.
fn shown(dir: &Path, name: &str) -> Trust {
    Identity::load(&TlsFiles::named(dir, name)).unwrap().trust().unwrap()
}

/// A process that says to a site that it is A0, and shows `trust` (nothing: unencrypted). Returns when the site has closed.
fn forged(sites: &Sites, to: SiteId, trust: Option<Trust>) {
    let address = sites.config.place(to).unwrap().peers;
    let door = trust.map_or(Door::from(address), |trust| Door::with_tls(address, trust, number(to), SYSTEM));
    let mut stream = ClientStream::connect(&door, 1 << 20).unwrap();
    stream.set_timeout(Some(PATIENCE)).unwrap();
    let (speaks, understands) = (SPEAKS, UNDERSTANDS);
    let hello = Hello { speaks, understands, from: number(A0), to: number(to), system: SYSTEM, digests: &[] };
    let heard = stream.send(&hello.encode()).and_then(|()| stream.receive());
    let why = heard.expect_err("no hello comes back");
    assert_ne!(why.kind(), std::io::ErrorKind::WouldBlock, "it is closed, and not left waiting");
}

fn says(sites: &Sites, site: SiteId, what: &str) {
    let begun = Instant::now();
    loop {
        let report = sites.report(site);
        if report.refused_strangers().any(|told| told.contains(what)) {
            assert_eq!(
                report.refused_sites().count(),
                0,
                "nothing is said of a site that did nothing: {report:?}"
            );
            return;
        }
        assert!(begun.elapsed() < PATIENCE, "{what}: {report:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn forged_peer_is_refused_inside_and_outside_cluster() {
    let sites = Sites::start_with_tls(2, 2);
    let mut client = sites.client_of("client-app", 1, &[A0, A1]);
    done(client.execute(b"add alice 100", PATIENCE));
    let tls = sites.dir.join("tls");
    let other = tempfile::tempdir().unwrap();
    pares_link::issue(other.path(), SYSTEM, &[number(A0)]).unwrap();
    // It believes this system, and shows what another authority has issued in the right name.
    std::fs::copy(tls.join("ca.pem"), other.path().join("ca.pem")).unwrap();
    for to in [A1, B0] {
        forged(&sites, to, None);
        says(&sites, to, "connected without it: refused");
        forged(&sites, to, Some(Trust::load(&tls.join("ca.pem")).unwrap()));
        says(&sites, to, "peer sent no certificates");
        forged(&sites, to, Some(shown(other.path(), "site-0-0")));
        says(&sites, to, "invalid peer certificate");
        for another in ["site-1-1", "client-app", "operator-app"] {
            forged(&sites, to, None);
            says(&sites, to, "connected without it: refused");
            forged(&sites, to, Some(shown(&tls, another)));
            says(&sites, to, "does not name site-0-0.test");
        }
    }
    assert_eq!(done(client.execute(b"transfer alice bob 30", PATIENCE)), "alice has 70 left");
    for site in [A0, A1, B0] {
        assert_eq!(sites.report(site).live, [0, 1]);
    }
}

fn denied(reply: Result<Vec<u8>, CallError>, takes: &str) {
    let Err(CallError::No { code: Code::Denied, why }) = reply else { panic!("{reply:?}") };
    assert!(why.contains(takes), "{why}");
}

const LOST: Command = Command::DeclareLost(ClusterSet(1 << 1));

#[test]
fn who_may_not_is_told_so_and_nothing_changes() {
    let sites = Sites::start_with_tls(2, 1);
    let [mut client, mut reader, mut operator, mut site] =
        ["client-app", "reader-app", "operator-app", "site-1-0"].map(|name| sites.client_of(name, 1, &[A0]));
    done(client.execute(b"put a 1", PATIENCE));
    for command in [LOST, Command::Admit(ClusterId(1)), Command::Migrate(ClusterId(1))] {
        for who in [&mut client, &mut reader, &mut site] {
            denied(who.operate(command, PATIENCE), "of an operator");
        }
    }
    for who in [&mut reader, &mut site] {
        denied(who.execute(b"put a 2", PATIENCE), "of a client");
    }
    denied(site.read(b"get a", PATIENCE), "of a reader");
    for who in [&mut client, &mut reader, &mut operator] {
        assert_eq!(done(who.read(b"get a", PATIENCE)), "1");
    }
    for who in [&mut client, &mut reader, &mut site] {
        who.report(PATIENCE).unwrap();
    }
    let report = sites.report(A0);
    assert_eq!((report.live, report.certifier, report.era.1), (vec![0, 1], 0, 0), "nothing has changed");
    // Every one of them is still heard on the same connection, and who may does it.
    assert_eq!(client.repeats() + reader.repeats() + site.repeats(), 0);
    done(operator.operate(Command::Migrate(ClusterId(1)), PATIENCE));
}

#[test]
fn client_without_certificate_is_refused_with_reason() {
    let sites = Sites::start_with_tls(1, 1);
    let address = sites.address(A0);
    let trust = Trust::load(&sites.dir.join("tls/ca.pem")).unwrap();
    for (door, why) in [
        (Door::from(address), "requires TLS"),
        (Door::with_tls(address, trust, number(A0), SYSTEM), "CertificateRequired"),
    ] {
        let mut client = Client::new(1, 0, vec![door]);
        for reply in [client.operate(LOST, PATIENCE), client.execute(b"put a 1", PATIENCE)] {
            let Err(CallError::Shut(said)) = reply else { panic!("{reply:?}") };
            assert!(said.contains(why), "{said}");
        }
    }
    says(&sites, A0, "peer sent no certificates");
    let mut client = sites.client_of("client-app", 1, &[A0]);
    assert!(client.read(b"get a", PATIENCE).is_err(), "there is no such item");
}

#[test]
fn rubbish_at_both_ports_disturbs_nobody() {
    let sites = Sites::start_with_tls(1, 3);
    let mut client = sites.client_of("client-app", 1, &[A0]);
    done(client.execute(b"add alice 1000", PATIENCE));
    let place = sites.config.place(A0).unwrap().clone();
    let mut held: Vec<TcpStream> = Vec::new();
    let rubbish: [&[u8]; 6] = [
        b"",
        b"\x16\x03\x01",
        b"GET / HTTP/1.1\r\n\r\n",
        &[0xff; 70_000],
        &[0; 300],
        b"\x16\x03\x01\x40\x00junk",
    ];
    for round in 0..40usize {
        for address in [place.peers, place.clients] {
            held.push(thrown(address, rubbish[round % rubbish.len()]));
        }
        let left = format!("alice has {} left", 999 - round);
        assert_eq!(done(client.execute(b"transfer alice bob 1", PATIENCE)), left);
    }
    assert_eq!(client.repeats(), 0, "who is known is not closed for what strangers do");
    // All of those are still there, and a new client comes in.
    let mut late = sites.client_of("client-app", 2, &[A0]);
    assert_eq!(done(late.read(b"get bob", PATIENCE)), "40");
}

/// A connection that said this; it may have been closed before all was said.
fn thrown(address: SocketAddr, bytes: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    let _ = stream.write_all(bytes);
    stream
}
