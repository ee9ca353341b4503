//! Applications at a site.

use std::io;
use std::time::Duration;

use pares_link::{ClientId, ClientStream, Links, LinksConfig, SendError, Trust, Waker};

use crate::both_ways;
use crate::rig::{Ear, HIGH, SYSTEM, Site, Told, certificates, high, until};

both_ways! {
    an_application_and_a_site_exchange_frames
    an_application_that_does_not_read_is_closed_and_the_others_are_not
    more_applications_than_allowed_are_closed_at_once
    all_applications_together_have_a_bound
    an_id_is_not_used_again
}

/// Connects while the site is polled, since TLS needs both.
fn connect(site: &mut Site, tls: bool) -> (ClientStream, ClientId) {
    let known: Vec<Told> = site.ear.0.clone();
    let address = site.links.clients_address().unwrap().unwrap();
    let thread = std::thread::spawn(move || {
        let mut client = if tls {
            let trust = Trust::load(&certificates().join("ca.pem")).unwrap();
            ClientStream::connect_tls(address, 1 << 20, &trust, HIGH, SYSTEM).unwrap()
        } else {
            ClientStream::connect(address, 1 << 20).unwrap()
        };
        client.send(b"hello").unwrap();
        client
    });
    let mut id = None;
    until(|| {
        site.step();
        id = site.ear.0[known.len()..].iter().find_map(|told| match told {
            Told::ClientFrame(client, payload) if payload == b"hello" => Some(*client),
            _ => None,
        });
        id.is_some()
    });
    let id = id.unwrap();
    assert!(site.heard(&Told::ClientConnected(id)));
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

fn an_application_that_does_not_read_is_closed_and_the_others_are_not(tls: bool) {
    let mut site = Site::open(high(tls));
    let (mut deaf, deaf_id) = connect(&mut site, tls);
    let (mut other, other_id) = connect(&mut site, tls);
    until(|| {
        site.step();
        site.links.send_client(deaf_id, &[7; 1 << 20]) == Err(SendError::Full)
    });
    site.step_until(
        |told| matches!(told, Told::ClientGone(id, why) if *id == deaf_id && why.contains("wait to be read")),
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
    let _second = std::net::TcpStream::connect(site.links.clients_address().unwrap().unwrap()).unwrap();
    until(|| {
        site.step();
        site.links.counts().clients_crowded == 1
    });
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
    until(|| {
        site.step(); // sockets take some of it
        let (_, id) = sends.next().unwrap();
        site.links.send_client(*id, &[7; 100_000]) == Err(SendError::Full)
    });
    site.step_until(|told| matches!(told, Told::ClientGone(_, why) if why.contains("wait to be read")));
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
    let address = site.links.clients_address().unwrap().unwrap();
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
    let address = site.links.clients_address().unwrap().unwrap();
    let thread = std::thread::spawn(move || {
        let trust = Trust::load(&certificates().join("ca.pem")).unwrap();
        let mut client = ClientStream::connect_tls(address, 1 << 20, &trust, HIGH, "another").unwrap();
        client.send(b"hello").unwrap_err().to_string()
    });
    until(|| {
        site.step();
        site.failed_with("TLS: ")
    });
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
