//! Who is not let in, and what is said about it.

use std::cell::RefCell;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use pares_link::hello::{Hello, SPEAKS, UNDERSTANDS};
use pares_link::{
    Agreed, Links, LinksConfig, LinksError, Peer, SiteIdentity, TlsError, frame, issue, site_files,
};
use proptest::prelude::any;
use proptest::test_runner::{Config, TestRunner};

use crate::both_ways;
use crate::rig::{
    HIGH, LOW, NOWHERE, SYSTEM, Site, Told, any_port, config, high, identity, low, pair, step_both, until,
};

both_ways! {
    site_with_differing_settings_is_refused_by_name
    rubbish_is_refused_and_costs_the_others_nothing
    half_a_hello_and_then_silence_is_dropped
    strangers_without_end_do_not_keep_a_site_out
    the_same_site_connecting_again_replaces_its_old_connection
    no_bytes_of_a_stranger_bring_a_site_down
}

fn site_with_differing_settings_is_refused_by_name(tls: bool) {
    let agreed = |value: &str| vec![Agreed { name: "certifier", value: value.into() }];
    let mut b = Site::open(LinksConfig { agreed: agreed("1"), ..high(tls) });
    let mut a = Site::open(LinksConfig { agreed: agreed("0"), ..low(b.address(), tls) });
    let named =
        |told: &Told| matches!(told, Told::Failed(_, why) if why.contains("`certifier` differs from \"1\""));
    until(|| {
        a.step();
        b.step();
        b.ear.0.iter().any(named)
    });
    assert!(!a.links.is_connected(HIGH) && !b.links.is_connected(LOW));
    drop(a);
    let mut a = Site::open(LinksConfig { agreed: agreed("1"), ..low(b.address(), tls) });
    step_both(&mut a, &mut b, |a, b| a.links.is_connected(HIGH) && b.links.is_connected(LOW));
}

/// A client that connects there and sends `bytes`.
fn stranger(address: SocketAddr, bytes: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(bytes).unwrap();
    stream.set_nonblocking(true).unwrap();
    stream
}

fn framed(payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    frame::append(&mut bytes, payload);
    bytes
}

/// The hello that site `from` of a system sends to site `to`.
fn hello(from: u16, to: u16, system: &str) -> Vec<u8> {
    framed(&Hello { speaks: SPEAKS, understands: UNDERSTANDS, from, to, system, digests: &[] }.encode())
}

/// What is refused with words that contain `text`.
fn is_refused(site: &mut Site, bytes: &[u8], text: &str) {
    let before = site.links.counts().refused;
    site.ear.0.clear();
    let _stream = stranger(site.address(), bytes);
    site.step_until(|told| matches!(told, Told::Failed(None, why) if why.contains(text)));
    assert_eq!(site.links.counts().refused, before + 1);
}

fn rubbish_is_refused_and_costs_the_others_nothing(tls: bool) {
    let (mut a, mut b) = pair(tls);
    is_refused(&mut b, b"GET / HTTP/1.1\r\n\r\n", "a frame has");
    is_refused(&mut b, &u32::MAX.to_le_bytes(), "a frame has 4294967295 bytes");
    is_refused(&mut b, &framed(b"not a hello at all"), "not a hello");
    is_refused(&mut b, &framed(b"PLNK\x09\x00 of a later version"), "version 9");
    is_refused(&mut b, &hello(LOW, HIGH, "another"), "\"another\"");
    is_refused(&mut b, &hello(LOW, LOW, SYSTEM), "wants to reach site 0");
    is_refused(
        &mut b,
        &hello(HIGH + 1, HIGH, SYSTEM),
        "it is site 257, which is not in this site's configuration",
    );
    // A hello's beginning and then TLS, or the other way round, is no better.
    let mixed = [&framed(b"PLNK")[..], &[0x16, 3, 1]].concat();
    is_refused(&mut b, &mixed, "not a hello");
    a.links.send(HIGH, b"undisturbed").unwrap();
    step_both(&mut a, &mut b, |_, b| b.frames() == [b"undisturbed"]);
}

fn half_a_hello_and_then_silence_is_dropped(tls: bool) {
    let mut settings = high(tls);
    settings.hello_max = Duration::from_millis(20);
    let mut b = Site::open(settings);
    let hello = hello(LOW, HIGH, SYSTEM);
    let half_of_tls = &[0x16, 0x03, 0x01, 0x02, 0x00][..if tls { 5 } else { 1 }];
    for part in [&hello[..0], &hello[..1], &hello[..hello.len() - 1], half_of_tls] {
        b.ear.0.clear();
        let mut stream = stranger(b.address(), part);
        b.step_until(|told| matches!(told, Told::Failed(None, why) if why.contains("no hello")));
        stream.set_nonblocking(false).unwrap();
        let ended = stream.read_to_end(&mut Vec::new());
        assert!(matches!(ended, Ok(0) | Err(_)), "closed, and nothing was said: {ended:?}");
    }
}

fn strangers_without_end_do_not_keep_a_site_out(tls: bool) {
    let mut b = Site::open(high(tls));
    let silent: Vec<TcpStream> = (0..100).map(|_| stranger(b.address(), b"")).collect();
    b.until(|b| b.links.counts().failed >= 36);
    assert!(b.failed_with("too many connections"));
    let mut a = Site::open(low(b.address(), tls));
    step_both(&mut a, &mut b, |a, b| a.links.is_connected(HIGH) && b.links.is_connected(LOW));
    drop(silent);
}

fn the_same_site_connecting_again_replaces_its_old_connection(tls: bool) {
    let (a, mut b) = pair(tls);
    // The first is still there as far as b can tell: it is not polled.
    let mut again = Site::open(low(b.address(), tls));
    step_both(&mut again, &mut b, |again, b| {
        again.links.is_connected(HIGH) && b.links.counts().connected == 2
    });
    again.links.send(HIGH, b"mine").unwrap();
    step_both(&mut again, &mut b, |_, b| b.frames() == [b"mine"]);
    let told = [
        Told::Connected(LOW),
        Told::Disconnected(LOW, "the same site connected again".to_owned()),
        Told::Connected(LOW),
        Told::Frame(LOW, b"mine".to_vec()),
    ];
    assert_eq!(b.ear.0, told);
    drop(a);
}

fn no_bytes_of_a_stranger_bring_a_site_down(tls: bool) {
    let (mut a, b) = pair(tls);
    let b = RefCell::new(b);
    // Of another system: rubbish now and then is the byte that was missing.
    let hello = hello(LOW, HIGH, "another");
    let mut runner = TestRunner::new(Config { cases: 64, failure_persistence: None, ..Config::default() });
    // Rubbish alone, after the beginning of TLS, and in place of some of a hello.
    let rubbish = (0..3usize, proptest::collection::vec(any::<u8>(), 0..300));
    let result = runner.run(&rubbish, |(kind, rubbish)| {
        let start = [&[][..], &[0x16, 0x03, 0x01], &hello[..rubbish.len().min(hello.len() - 1)]][kind];
        let b = &mut *b.borrow_mut();
        let before = b.links.counts().failed;
        drop(stranger(b.address(), &[start, &rubbish].concat()));
        b.until(|b| b.links.counts().failed > before);
        Ok(())
    });
    result.unwrap();
    let mut b = b.into_inner();
    a.links.send(HIGH, b"undisturbed").unwrap();
    step_both(&mut a, &mut b, |_, b| b.frames() == [b"undisturbed"]);
}

#[test]
fn a_site_that_must_use_tls_and_does_not_is_refused() {
    let mut b = Site::open(high(true));
    let mut a = Site::open(low(b.address(), false));
    step_both(&mut a, &mut b, |a, b| b.failed_with("connected without it: refused") && !a.ear.0.is_empty());
    assert!(matches!(&a.ear.0[0], Told::Failed(Some(HIGH), _)));
    assert_eq!(b.links.counts().connected, 0);
}

#[test]
fn tls_where_there_is_no_certificate_is_refused() {
    let mut b = Site::open(high(false));
    let mut a = Site::open(low(b.address(), true));
    step_both(&mut a, &mut b, |_, b| {
        b.failed_with("the other end uses TLS, but this site is not configured for it")
    });
    assert_eq!((a.links.counts().connected, b.links.counts().connected), (0, 0));
}

/// Site `LOW` of the same system by another authority.
fn of_another_authority() -> SiteIdentity {
    let dir = tempfile::tempdir().unwrap();
    issue(dir.path(), SYSTEM, &[LOW, HIGH]).unwrap();
    SiteIdentity::load(&site_files(dir.path(), LOW)).unwrap()
}

#[test]
fn a_certificate_of_another_authority_is_refused_by_both_ends() {
    let mut b = Site::open(high(true));
    let mut settings = low(b.address(), true);
    settings.identity = Some(of_another_authority());
    let mut a = Site::open(settings);
    step_both(&mut a, &mut b, |a, b| a.failed_with("TLS: ") && b.failed_with("TLS: "));
    assert!(a.failed_with("invalid peer certificate"), "{:?}", a.ear.0);
    assert_eq!((a.links.counts().connected, b.links.counts().connected), (0, 0));
}

/// Believes whom it dials, and shows a certificate of an authority they do not know.
#[test]
fn a_dialler_of_another_authority_is_refused_by_the_listener() {
    let mut b = Site::open(high(true));
    let dir = tempfile::tempdir().unwrap();
    issue(dir.path(), SYSTEM, &[LOW]).unwrap();
    let mut files = site_files(dir.path(), LOW);
    files.ca = crate::rig::certificates().join("ca.pem");
    let mut settings = low(b.address(), true);
    settings.identity = Some(SiteIdentity::load(&files).unwrap());
    let mut a = Site::open(settings);
    step_both(&mut a, &mut b, |a, b| {
        b.failed_with("invalid peer certificate") && a.failed_with("received fatal alert")
    });
    assert_eq!((a.links.counts().connected, b.links.counts().connected), (0, 0));
}

#[test]
fn a_listener_whose_certificate_names_another_is_refused() {
    let mut b = Site::open(config(HIGH + 1, LOW, NOWHERE, true));
    let mut a = Site::open(low(b.address(), true));
    step_both(&mut a, &mut b, |a, b| a.failed_with("not valid for name") && b.failed_with("TLS: "));
    assert_eq!(a.links.counts().connected, 0);
}

/// A site of the system that says it is another one.
#[test]
fn a_dialler_whose_certificate_names_another_is_refused() {
    let mut b = Site::open(LinksConfig {
        identity: Some(identity(HIGH + 1)),
        ..LinksConfig::new(
            HIGH + 1,
            SYSTEM,
            any_port(),
            vec![
                Peer { number: LOW, address: NOWHERE, tls: true },
                Peer { number: HIGH, address: NOWHERE, tls: true },
            ],
        )
    });
    let mut liar = liar_with_certificate_of(HIGH, LOW, HIGH + 1, b.address());
    until(|| {
        b.step();
        let _ = liar();
        b.failed_with("does not name site-0-0.pares")
    });
    assert_eq!(b.links.counts().connected, 0);
}

/// Dials by hand, with the certificate of `owner`, and says that it is `claimed`.
fn liar_with_certificate_of(
    owner: u16,
    claimed: u16,
    to: u16,
    address: SocketAddr,
) -> impl FnMut() -> std::io::Result<()> {
    use rustls::pki_types::pem::PemObject;
    use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
    let files = site_files(crate::rig::certificates(), owner);
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(&files.ca).unwrap()).unwrap();
    let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
    let settings = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_root_certificates(roots)
        .with_client_auth_cert(
            vec![CertificateDer::from_pem_file(&files.certificate).unwrap()],
            PrivateKeyDer::from_pem_file(&files.key).unwrap(),
        )
        .unwrap();
    let name = ServerName::try_from(pares_link::site_name(to, SYSTEM)).unwrap();
    let mut tls = rustls::ClientConnection::new(settings.into(), name).unwrap();
    tls.writer().write_all(&hello(claimed, to, SYSTEM)).unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_nonblocking(true).unwrap();
    move || tls.complete_io(&mut stream).map(|_| ())
}

#[test]
fn a_site_does_not_start_with_the_certificate_of_another() {
    let mut settings = high(true);
    settings.identity = Some(identity(LOW));
    assert!(matches!(Links::open(settings), Err(LinksError::Tls(TlsError::WrongName(_)))));
}

#[test]
fn a_configuration_that_contradicts_itself_is_refused() {
    let refused = |change: fn(&mut LinksConfig)| {
        let mut settings = high(false);
        change(&mut settings);
        assert!(matches!(Links::open(settings), Err(LinksError::Config(_))));
    };
    refused(|c| c.system = "not a name".to_owned());
    refused(|c| c.peers[0].number = c.number);
    refused(|c| c.peers[0].tls = true);
    refused(|c| c.backlog_max = c.frame_max);
}

/// Whatever answers at the address of a peer.
#[test]
fn garbage_answer_to_dial_is_refused_and_redialled() {
    let impostor = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut a = Site::open(low(impostor.local_addr().unwrap(), false));
    impostor.set_nonblocking(true).unwrap();
    let mut answered = 0;
    until(|| {
        a.step();
        if let Ok((mut stream, _)) = impostor.accept() {
            stream.write_all(&framed(b"I am no site")).unwrap();
            answered += 1;
        }
        answered >= 3 && a.failed_with("not a hello")
    });
}

/// Site `number` with certificates of its own copy of `dir`, as on a machine of its own.
fn own_copy(dir: &std::path::Path, number: u16) -> tempfile::TempDir {
    let own = tempfile::tempdir().unwrap();
    let files = site_files(dir, number);
    for file in [&files.ca, &files.certificate, &files.key] {
        std::fs::copy(file, own.path().join(file.file_name().unwrap())).unwrap();
    }
    own
}

#[test]
fn revoked_site_is_dropped_and_returns_recertified() {
    let dir = tempfile::tempdir().unwrap();
    issue(dir.path(), SYSTEM, &[LOW, HIGH]).unwrap();
    let (own_low, own_high) = (own_copy(dir.path(), LOW), own_copy(dir.path(), HIGH));
    let identity =
        |own: &tempfile::TempDir, number| SiteIdentity::load(&site_files(own.path(), number)).unwrap();
    let mut b = Site::open(LinksConfig { identity: Some(identity(&own_high, HIGH)), ..high(true) });
    let by_low = LinksConfig { identity: Some(identity(&own_low, LOW)), ..low(b.address(), true) };
    let mut a = Site::open(by_low.clone());
    step_both(&mut a, &mut b, |a, b| a.links.is_connected(HIGH) && b.links.is_connected(LOW));
    let list = pares_link::revoke(dir.path(), SYSTEM, "site-0-0").unwrap();
    // A list that is cut short is not believed, and what was believed before holds.
    let text = std::fs::read(&list).unwrap();
    std::fs::write(own_high.path().join("revoked.pem"), &text[..60]).unwrap();
    b.step_until(
        |told| matches!(told, Told::Failed(None, why) if why.contains("the list read before stays in use")),
    );
    assert!(b.links.is_connected(LOW));
    std::fs::write(own_high.path().join("revoked.pem"), &text).unwrap();
    step_both(&mut a, &mut b, |_, b| b.failed_with("Revoked"));
    assert!(!b.links.is_connected(LOW) && b.links.counts().connected == 1);
    drop(a);
    issue(dir.path(), SYSTEM, &[LOW]).unwrap();
    let anew = own_copy(dir.path(), LOW);
    let mut a = Site::open(LinksConfig { identity: Some(identity(&anew, LOW)), ..by_low });
    step_both(&mut a, &mut b, |a, b| a.links.is_connected(HIGH) && b.links.is_connected(LOW));
}
