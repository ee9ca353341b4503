//! Gateways whose ports are TLS: what members and strangers meet there, while another member trades on.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant, SystemTime};

use pares_client::{Client, ClientError, Options, Tls};
use pares_config::{ClientCertificates, TlsSetting};
use pares_node::SystemConfig;
use pares_tls::{Authority, Connection, Lifetime, TlsFiles, TlsStream, Trust};
use pares_types::{ClientOrderId, GatewayId, MemberId, Reason, Reply, Side, Status};
use pares_wire::GATEWAYS_NAME;
use pares_wire::frame::{self, GatewayFrame, SignOn};

use crate::bad_input::{peaceful, raw, read_frame};
use crate::common::exchange::{Exchange, addresses, gateway, small};
use crate::common::process::{Up, pares};
use crate::common::{PATIENCE, eventually, limit, random};
use crate::tap::{dial, fix};

/// A system whose gateways' ports are TLS.
fn with_tls() -> SystemConfig {
    SystemConfig { tls: TlsSetting::On, ..small(1) }
}

/// The same, and members must show a certificate.
fn mutual() -> SystemConfig {
    SystemConfig { client_certificates: ClientCertificates::Required, ..with_tls() }
}

/// A connection in TLS whose handshake is over.
fn shaken(exchange: &Exchange) -> TlsStream<TcpStream> {
    shaken_at(exchange, raw(exchange.addresses()[0]))
}

fn shaken_at(exchange: &Exchange, stream: TcpStream) -> TlsStream<TcpStream> {
    let trust = Trust::load(&exchange.layout().keys().join("ca.pem")).unwrap();
    let mut stream = TlsStream::new(stream, trust.dial(GATEWAYS_NAME).unwrap());
    assert!(stream.shake_hands().unwrap());
    stream
}

/// The first bytes of a handshake that are sent by a client.
fn hello(exchange: &Exchange) -> Vec<u8> {
    let trust = Trust::load(&exchange.layout().keys().join("ca.pem")).unwrap();
    let mut bytes = Vec::new();
    trust.dial(GATEWAYS_NAME).unwrap().write_tls(&mut bytes).unwrap();
    bytes
}

#[test]
fn an_order_over_tls_through_a_fresh_pares_up() {
    let up = Up::fresh(&with_tls());
    let keys = up.layout.keys();
    assert!(up.said.contains(&keys.display().to_string()), "{}", up.said);
    let tls = Some(Tls::of_exchange(&keys.join("ca.pem")).unwrap());
    let address = addresses(&up.layout, &up.config)[0];
    let options = Options { tls, ..Options::default() };
    let mut client = Client::connect_with(address, MemberId(7), options).unwrap();
    let rests = client.submit_and_wait(&limit(1, 1, Side::Sell, 100, 2_238_200)).unwrap();
    assert_eq!(rests.status, Status::Resting);
    pares(up.layout.root(), "admin time").done();
}

#[test]
fn member_trades_with_own_certificate_only() {
    let (exchange, mut bystander, _) = peaceful(&mutual());
    let layout = exchange.layout();
    exchange.pares("certificate member-7").done();
    let good = TlsFiles::named(&layout.keys(), "member-7");
    let mut client = exchange.connect(0, 7, Some(Tls::certified(&good).unwrap())).unwrap();
    client.submit_and_wait(&limit(1, 1, Side::Sell, 100, 2_238_200)).unwrap();

    let expired = TlsFiles::named(&layout.keys(), "late");
    let yesterday = Lifetime::Until(SystemTime::now() - Duration::from_secs(86_400));
    let authority = Authority::in_dir(&layout.keys(), "pares").unwrap();
    authority.issue(&expired, &["late.pares".into()], yesterday).unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    let strange = TlsFiles::named(elsewhere.path(), "member-7");
    let other = Authority::in_dir(elsewhere.path(), "another").unwrap();
    other.issue(&strange, &["member-7.pares".into()], Lifetime::Endless).unwrap();
    let strange = TlsFiles { ca: good.ca.clone(), ..strange };

    let refused = [
        (Tls::of_exchange(&good.ca).unwrap(), "CertificateRequired"),
        (Tls::certified(&expired).unwrap(), "CertificateExpired"),
        (Tls::certified(&strange).unwrap(), "UnknownCA"),
    ];
    for (tls, why) in refused {
        let told = exchange.connect(0, 8, Some(tls)).err().expect("refused").to_string();
        assert!(told.contains(why), "{told}");
        bystander.trades();
    }
    eventually("all three are counted", || exchange.counter(gateway(0), "failed_handshakes") == 3);
    assert!(exchange.complaints().contains("TLS handshake with 127.0.0.1"), "{}", exchange.complaints());
}

#[test]
fn a_client_refuses_a_gateway_of_another_authority_or_name() {
    let (exchange, mut bystander, _) = peaceful(&with_tls());
    let elsewhere = tempfile::tempdir().unwrap();
    Authority::in_dir(elsewhere.path(), "pares").unwrap();
    let wrong_authority = Tls::of_exchange(&elsewhere.path().join("ca.pem")).unwrap();
    let right = Tls::of_exchange(&exchange.layout().keys().join("ca.pem")).unwrap();
    let wrong_name = right.clone().named("gateways.example.com");
    for tls in [wrong_authority, wrong_name] {
        let error = exchange.connect(0, 7, Some(tls)).err().expect("refused");
        assert!(matches!(error, ClientError::Handshake(_)), "{error}");
        bystander.trades();
    }
    // Any name that the certificate bears will do.
    for name in ["127.0.0.1", "localhost", "gateway-0.pares"] {
        exchange.connect(0, 7, Some(right.clone().named(name))).unwrap();
    }
    eventually("the gateway was told", || exchange.counter(gateway(0), "failed_handshakes") == 2);
}

#[test]
fn gateway_with_expired_certificate_gets_new_at_start() {
    let mut exchange = Exchange::start(&with_tls());
    exchange.stop();
    let keys = exchange.layout().keys();
    let files = TlsFiles::named(&keys, "gateway-0");
    let names = [GATEWAYS_NAME, "gateway-0.pares", "localhost", "127.0.0.1"].map(String::from);
    let yesterday = Lifetime::Until(SystemTime::now() - Duration::from_secs(86_400));
    Authority::in_dir(&keys, "pares").unwrap().issue(&files, &names, yesterday).unwrap();
    exchange.start_again();
    exchange.client(0, 7);
}

#[test]
fn a_client_without_tls_is_told_so_in_its_own_words() {
    let (exchange, mut bystander, address) = peaceful(&with_tls());
    let error = exchange.connect(0, 7, None).err().expect("refused");
    assert!(matches!(error, ClientError::Rejected(Reason::TlsRequired)), "{error}");
    let mut stream = raw(address);
    stream.write_all(&[0]).unwrap();
    let (client_order_id, reason) = (ClientOrderId(0), Reason::TlsRequired);
    let told = Some(GatewayFrame::Reply(Reply::Rejected { client_order_id, reason }));
    assert_eq!(read_frame(&mut stream), told);
    assert_eq!(read_frame(&mut stream), None);
    bystander.trades();
    assert_eq!(exchange.counter(gateway(0), "failed_handshakes"), 2);
}

#[test]
fn a_client_with_tls_at_a_port_without_is_told_what_to_look_at() {
    let (exchange, mut bystander, _) = peaceful(&small(1));
    let elsewhere = tempfile::tempdir().unwrap();
    Authority::in_dir(elsewhere.path(), "pares").unwrap();
    let tls = Tls::of_exchange(&elsewhere.path().join("ca.pem")).unwrap();
    let error = exchange.connect(0, 7, Some(tls)).err().expect("refused");
    assert!(error.to_string().contains("check that the port uses TLS"), "{error}");
    bystander.trades();
    assert_eq!(exchange.counter(gateway(0), "malformed_connections"), 1);
}

#[test]
fn garbage_in_handshake_closes_only_that_connection() {
    let (exchange, mut bystander, address) = peaceful(&with_tls());
    let hello = hello(&exchange);
    let mut random = random(5);
    for round in 0..200 {
        let mut stream = raw(address);
        let mut bytes = match round % 2 {
            0 => (0..2_000).map(|_| random.next_u64() as u8).collect(),
            _ => hello.clone(),
        };
        for _ in 0..8 {
            let at = 5 + random.below(bytes.len() as u64 - 5) as usize;
            bytes[at] ^= 1 << random.below(8);
        }
        bytes[0] = 0x16;
        // It may be closed before all of it is sent, or the damage does no harm.
        let _ = stream.write_all(&bytes);
        if round % 20 == 0 {
            bystander.trades();
        }
    }
    bystander.trades();
    eventually("most are counted", || exchange.counter(gateway(0), "failed_handshakes") > 50);
}

#[test]
fn a_handshake_without_end_is_closed() {
    let (exchange, mut bystander, address) = peaceful(&with_tls());
    let mut stream = raw(address);
    // The head of a handshake message of 64 KiB less one, and record after record of it.
    let mut bytes = vec![0x16, 3, 1, 0x40, 0, 1, 0, 0xff, 0xff];
    bytes.resize(5 + 0x4000, 0);
    while stream.write_all(&bytes).is_ok() {
        bytes[5..9].fill(0);
        bystander.trades();
    }
    eventually("it is counted", || exchange.counter(gateway(0), "failed_handshakes") == 1);
}

#[test]
fn endless_key_updates_end_only_that_connection() {
    let (exchange, mut bystander, _) = peaceful(&with_tls());
    let mut stream = shaken(&exchange);
    let mut bytes = Vec::new();
    frame::write(&mut bytes, &SignOn { member: 7.into(), ..SignOn::default() });
    stream.write_all(&bytes).unwrap();
    assert!(stream.read(&mut [0; 64]).unwrap() > 0, "it is signed on");
    let begun = Instant::now();
    loop {
        let Connection::Client(tls) = stream.tls() else { panic!("a client") };
        tls.refresh_traffic_keys().unwrap();
        if stream.flush().is_err() {
            break;
        }
        bystander.trades();
        assert!(begun.elapsed() < PATIENCE, "closed in the end");
    }
    eventually("it is counted", || exchange.counter(gateway(0), "malformed_connections") == 1);
}

#[test]
fn damaged_records_end_the_connection_and_nobody_else_notices() {
    let (exchange, mut bystander, _) = peaceful(&with_tls());
    for _ in 0..20 {
        let mut stream = shaken(&exchange);
        // A record of the right length that nobody has encrypted.
        stream.socket().write_all(&[0x17, 3, 3, 0, 64]).unwrap();
        stream.socket().write_all(&[7; 64]).unwrap();
        assert!(stream.read(&mut [0; 64]).is_err(), "told why");
        bystander.trades();
    }
    // A gateway that reads the end of the handshake and the damage at once counts it as a failed handshake.
    let counts = ["malformed_connections", "failed_handshakes"];
    let counted = || counts.iter().map(|name| exchange.counter(gateway(0), name)).sum::<u64>();
    eventually("all are counted", || counted() == 20);
}

/// A FIX engine and an OUCH client in TLS, each at its own port; without TLS there is no word.
#[test]
fn the_ports_for_fix_and_ouch_are_tls_too() {
    let config = with_tls();
    let (fix_ports, ouch) = (config.gateways.clone(), config.gateways.clone());
    let exchange = Exchange::start(&SystemConfig { fix: fix_ports, ouch, ..config });
    let paths = [exchange.layout().fix_address(GatewayId(0)), exchange.layout().ouch_address(GatewayId(0))];
    let login = format!("\0/L{:<6}{:<10}{:>10}{:>20}", "8", "PASSWORD", "1-0", 1).into_bytes();
    for (path, said, expected) in
        [(&paths[0], fix("A", 1, "98=0|108=30|141=Y|"), "35=A"), (&paths[1], login, "1-0")]
    {
        let mut plain = dial(path);
        plain.write_all(&said).unwrap();
        let mut told = Vec::new();
        let _ = plain.read_to_end(&mut told);
        assert!(told.is_empty(), "{}", told.escape_ascii());
        let mut stream = shaken_at(&exchange, dial(path));
        stream.write_all(&said).unwrap();
        let (mut heard, mut buffer) = (Vec::new(), [0; 4_096]);
        while !heard.windows(expected.len()).any(|window| window == expected.as_bytes()) {
            let read = stream.read(&mut buffer).unwrap();
            assert!(read > 0, "{}", heard.escape_ascii());
            heard.extend_from_slice(&buffer[..read]);
        }
    }
}

#[test]
fn half_handshakes_time_out_and_leave_room() {
    // Sixteen strangers at a time.
    let (exchange, mut bystander, address) = peaceful(&SystemConfig { sessions_max: 64, ..with_tls() });
    let hello = hello(&exchange);
    let mut halves: Vec<TcpStream> = Vec::new();
    for round in 0..400 {
        let mut stream = raw(address);
        let _ = stream.write_all(&hello[..hello.len() / (1 + round % 2)]);
        halves.push(stream);
        if round % 50 == 0 {
            bystander.trades();
        }
    }
    eventually("those beyond the room are closed", || {
        exchange.counter(gateway(0), "refused_connections") > 300
    });
    let begun = Instant::now();
    while exchange.counter(gateway(0), "silent_connections") == 0 {
        assert!(begun.elapsed() < PATIENCE, "the others are closed in the end");
        bystander.trades();
        std::thread::sleep(Duration::from_millis(50));
    }
    eventually("a client that completes its handshake is let in", || {
        exchange.connect(0, 7, exchange.tls()).is_ok()
    });
}
