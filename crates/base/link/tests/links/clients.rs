//! Applications at a site.

use std::io;
use std::time::Duration;

use pares_link::{
    ClientId, ClientStream, Door, Links, LinksConfig, SendError, Trust, Waker, issue, issue_named,
};

use crate::both_ways;
use crate::rig::{Ear, HIGH, SYSTEM, Site, Told, certificates, high, shown};

both_ways! {
    an_application_and_a_site_exchange_frames
    client_that_does_not_read_is_closed_others_stay
    more_applications_than_allowed_are_closed_at_once
    all_applications_together_have_a_bound
    an_id_is_not_used_again
}

/// Connects while the site is polled, since TLS needs both.
fn connect(site: &mut Site, tls: bool) -> (ClientStream, ClientId) {
    let known: Vec<Told> = site.ear.0.clone();
    let address = site.door();
    let thread = std::thread::spawn(move || {
        let door = if tls {
            Door::with_tls(address, shown(certificates(), "client-app"), HIGH, SYSTEM)
        } else {
            address.into()
        };
        let mut client = ClientStream::connect(&door, 1 << 20).unwrap();
        client.send(b"hello").unwrap();
        client
    });
    let mut id = None;
    site.until(|site| {
        id = site.ear.0[known.len()..].iter().find_map(|told| match told {
            Told::ClientFrame(client, payload) if payload == b"hello" => Some(*client),
            _ => None,
        });
        id.is_some()
    });
    let id = id.unwrap();
    assert!(site.heard(&Told::ClientConnected(id)));
    assert_eq!(site.ear.1.as_deref(), tls.then_some("client-app"), "what its certificate calls it");
    (thread.join().unwrap(), id)
}

fn an_application_and_a_site_exchange_frames(tls: bool) {
    let mut site = Site::open(high(tls));
    let (mut one, one_id) = connect(&mut site, tls);
    let (mut two, two_id) = connect(&mut site, tls);
    for i in 0..100u32 {
        site.links.send_client(one_id, &vec![1; i as usize * 300]).unwrap();
        site.links.send_client(two_id, &i.to_le_bytes()).unwrap();
    }
    site.links.flush();
    for i in 0..100u32 {
        assert_eq!(one.receive().unwrap(), vec![1; i as usize * 300]);
        assert_eq!(two.receive().unwrap(), i.to_le_bytes());
    }
    one.send(b"goodbye").unwrap();
    drop(one);
    site.step_until(|told| matches!(told, Told::ClientGone(id, _) if *id == one_id));
    assert!(site.heard(&Told::ClientFrame(one_id, b"goodbye".to_vec())), "said before it went");
    assert_eq!(site.links.send_client(one_id, b"?"), Err(SendError::NotConnected));
    site.links.send_client(two_id, b"still here").unwrap();
    site.links.flush();
    assert_eq!(two.receive().unwrap(), b"still here");
}

fn client_that_does_not_read_is_closed_others_stay(tls: bool) {
    let mut site = Site::open(high(tls));
    let (mut deaf, deaf_id) = connect(&mut site, tls);
    let (mut other, other_id) = connect(&mut site, tls);
    site.until(|site| site.links.send_client(deaf_id, &[7; 1 << 20]) == Err(SendError::Full));
    site.step_until(
        |told| matches!(told, Told::ClientGone(id, why) if *id == deaf_id && why.contains("unread")),
    );
    assert_eq!(site.links.counts().clients_slow, 1);
    site.links.send_client(other_id, b"you read").unwrap();
    site.links.flush();
    assert_eq!(other.receive().unwrap(), b"you read");
    let end = loop {
        if let Err(end) = deaf.receive() {
            break end;
        }
    };
    assert!(matches!(end.kind(), io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset), "{end}");
}

fn more_applications_than_allowed_are_closed_at_once(tls: bool) {
    let mut settings: LinksConfig = high(tls);
    settings.clients.as_mut().unwrap().count_max = 1;
    let mut site = Site::open(settings);
    let (_first, first_id) = connect(&mut site, tls);
    let _second = std::net::TcpStream::connect(site.door()).unwrap();
    site.until(|site| site.links.counts().clients_crowded == 1);
    site.links.close_client(first_id);
    site.step_until(|told| matches!(told, Told::ClientGone(..)));
    connect(&mut site, tls);
}

/// Each of them is within its own bounds.
fn all_applications_together_have_a_bound(tls: bool) {
    let mut settings: LinksConfig = high(tls);
    let clients = settings.clients.as_mut().unwrap();
    (clients.held_max, clients.backlog_max) = (4 << 20, usize::MAX);
    let mut site = Site::open(settings);
    let mut deaf: Vec<(ClientStream, ClientId)> = (0..6).map(|_| connect(&mut site, tls)).collect();
    let (mut other, other_id) = connect(&mut site, tls);
    let mut sends = deaf.iter().cycle();
    // Sockets take some of it.
    site.until(|site| {
        let (_, id) = sends.next().unwrap();
        site.links.send_client(*id, &[7; 100_000]) == Err(SendError::Full)
    });
    site.step_until(|told| matches!(told, Told::ClientGone(_, why) if why.contains("unread")));
    site.links.send_client(other_id, b"you read").unwrap();
    site.links.flush();
    assert_eq!(other.receive().unwrap(), b"you read", "who holds little is served");
    deaf.clear();
}

fn an_id_is_not_used_again(tls: bool) {
    let mut site = Site::open(high(tls));
    let (first, first_id) = connect(&mut site, tls);
    drop(first);
    site.step_until(|told| matches!(told, Told::ClientGone(..)));
    let (_second, second_id) = connect(&mut site, tls);
    assert_ne!(first_id, second_id);
    assert_eq!(site.links.send_client(first_id, b"?"), Err(SendError::NotConnected));
}

#[test]
fn halves_of_frames_have_a_bound() {
    let mut settings: LinksConfig = high(false);
    settings.clients.as_mut().unwrap().held_max = 2 << 20;
    let mut site = Site::open(settings);
    let address = site.door();
    let half = [&(1u32 << 20).to_le_bytes()[..], &[7; 900_000]].concat();
    let send = |_| {
        let half = half.clone();
        std::thread::spawn(move || {
            let mut stream = std::net::TcpStream::connect(address).unwrap();
            let _ = io::Write::write_all(&mut stream, &half);
            stream
        })
    };
    let threads: Vec<_> = (0..4).map(send).collect();
    site.step_until(|told| matches!(told, Told::ClientGone(..)));
    let (mut other, other_id) = connect(&mut site, false);
    site.links.send_client(other_id, b"you send whole frames").unwrap();
    site.links.flush();
    assert_eq!(other.receive().unwrap(), b"you send whole frames");
    drop(threads);
}

#[test]
fn an_application_is_told_of_a_site_that_is_not_of_its_system() {
    let mut site = Site::open(high(true));
    let address = site.door();
    let thread = std::thread::spawn(move || {
        let door = Door::with_tls(address, shown(certificates(), "client-app"), HIGH, "another");
        let mut client = ClientStream::connect(&door, 1 << 20).unwrap();
        client.send(b"hello").unwrap_err().to_string()
    });
    site.until(|site| site.failed_with("TLS: "));
    assert!(thread.join().unwrap().contains("not valid for name"));
}

#[test]
fn another_thread_wakes_the_poll() {
    let mut links = Links::open(high(false)).unwrap();
    let waker: Waker = links.waker();
    let thread = std::thread::spawn(move || waker.wake().unwrap());
    links.poll(Some(Duration::from_secs(3_600)), &mut Ear::default()).unwrap();
    thread.join().unwrap();
}

/// What an application receives that shows `trust` and asks something.
fn turned_away(site: &mut Site, trust: Trust) -> io::Error {
    let address = site.door();
    let thread = std::thread::spawn(move || {
        let mut client =
            ClientStream::connect(&Door::with_tls(address, trust, HIGH, SYSTEM), 1 << 20).unwrap();
        client.send(b"hello").and_then(|()| client.receive()).unwrap_err()
    });
    let before = site.links.counts().refused;
    site.until(|site| site.links.counts().refused > before);
    site.until(|_| thread.is_finished());
    assert!(!site.ear.0.iter().any(|told| matches!(told, Told::ClientConnected(_) | Told::ClientFrame(..))));
    thread.join().unwrap()
}

#[test]
fn client_without_system_certificate_gets_no_hearing() {
    let mut site = Site::open(high(true));
    let said = turned_away(&mut site, Trust::load(&certificates().join("ca.pem")).unwrap());
    assert!(
        said.kind() == io::ErrorKind::InvalidData && said.to_string().contains("CertificateRequired"),
        "{said}"
    );
    assert!(site.failed_with("peer sent no certificates"), "{:?}", site.ear.0);
    let other = tempfile::tempdir().unwrap();
    issue(other.path(), SYSTEM, &[HIGH]).unwrap();
    issue_named(other.path(), SYSTEM, "client-app").unwrap();
    // It believes the site, and shows what another authority issued.
    std::fs::copy(certificates().join("ca.pem"), other.path().join("ca.pem")).unwrap();
    let said = turned_away(&mut site, shown(other.path(), "client-app"));
    assert!(said.kind() == io::ErrorKind::InvalidData, "{said}");
    assert!(site.failed_with("invalid peer certificate"), "{:?}", site.ear.0);
}

#[test]
fn what_is_no_tls_is_answered_by_an_alert() {
    let mut site = Site::open(high(true));
    let address = site.door();
    let thread = std::thread::spawn(move || {
        let mut client = ClientStream::connect(&address.into(), 1 << 20).unwrap();
        client.send(b"hello").and_then(|()| client.receive()).unwrap_err()
    });
    site.until(|_| thread.is_finished());
    assert!(thread.join().unwrap().to_string().contains("requires TLS"));
    assert!(site.failed_with("TLS: "));
}

#[test]
fn revoked_client_is_disconnected_others_stay() {
    let dir = tempfile::tempdir().unwrap();
    issue(dir.path(), SYSTEM, &[HIGH]).unwrap();
    let mut trusts = ["client-one", "client-two"].map(|name| {
        issue_named(dir.path(), SYSTEM, name).unwrap();
        shown(dir.path(), name)
    });
    let mut settings = high(true);
    settings.identity =
        Some(pares_link::SiteIdentity::load(&pares_link::site_files(dir.path(), HIGH)).unwrap());
    let mut site = Site::open(settings);
    let address = site.door();
    let asks = |site: &mut Site, trust: &Trust| {
        let door = Door::with_tls(address, trust.clone(), HIGH, SYSTEM);
        let thread = std::thread::spawn(move || {
            let mut client = ClientStream::connect(&door, 1 << 20)?;
            client.send(b"hello").map(|()| client)
        });
        site.ear.0.clear();
        site.step_until(|told| matches!(told, Told::ClientFrame(..) | Told::Failed(..)));
        (thread.join().unwrap(), site.ear.0.iter().any(|told| matches!(told, Told::ClientFrame(..))))
    };
    let (one, heard) = asks(&mut site, &trusts[0]);
    assert!(heard);
    pares_link::revoke(dir.path(), SYSTEM, "client-one").unwrap();
    site.step_until(|told| matches!(told, Told::ClientGone(_, why) if why.contains("revoked")));
    assert!(one.unwrap().receive().is_err());
    let (_, heard) = asks(&mut site, &trusts[0]);
    assert!(!heard && site.failed_with("Revoked"), "{:?}", site.ear.0);
    assert!(asks(&mut site, &trusts[1]).1);
    // Another certificate in the same name is another certificate.
    issue_named(dir.path(), SYSTEM, "client-one").unwrap();
    trusts[0] = shown(dir.path(), "client-one");
    assert!(asks(&mut site, &trusts[0]).1);
}

#[test]
fn a_crowd_that_says_nothing_does_not_keep_an_application_out() {
    let mut site = Site::open(high(true));
    let address = site.door();
    let (mut known, known_id) = connect(&mut site, true);
    let crowd: Vec<_> = (0..100).map(|_| std::net::TcpStream::connect(address).unwrap()).collect();
    let (_late, late_id) = connect(&mut site, true);
    assert!(site.failed_with("too many connections"), "those who had their time have made room");
    assert!(site.links.counts().failed < 100, "and no more of them than it takes");
    for id in [known_id, late_id] {
        site.links.send_client(id, b"still here").unwrap();
    }
    site.links.flush();
    assert_eq!(known.receive().unwrap(), b"still here");
    drop(crowd);
}
