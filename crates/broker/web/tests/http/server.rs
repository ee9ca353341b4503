//! Connections: TLS, and those who take too long.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use pares_tls::{Authority, Lifetime, TlsFiles, Trust, web_server};
use pares_web::{WebError, WebServer, WebTransport};

use serde_json::{Value, json};

use crate::support::{PASSWORD, Web};

#[tokio::test]
async fn without_a_certificate_nobody_but_this_machine_is_served() {
    let web = Web::new();
    let anywhere = SocketAddr::from(([0, 0, 0, 0], 0));
    let refused =
        WebServer::bind(anywhere, WebTransport::Loopback, web.broker.clone(), web.settings.clone()).await;
    assert!(matches!(refused.err(), Some(WebError::Plain(address)) if address == anywhere));
}

fn exchange(stream: &mut (impl Read + Write), request: &str) -> String {
    stream.write_all(request.as_bytes()).unwrap();
    let mut text = String::new();
    // A server that ends TLS by closing has said all that it had to say.
    let _ = stream.read_to_string(&mut text);
    text
}

/// What a server says to a request without TLS.
async fn asked(address: SocketAddr, request: String) -> String {
    let asks = move || exchange(&mut TcpStream::connect(address).unwrap(), &request);
    tokio::task::spawn_blocking(asks).await.unwrap()
}

fn sign_in() -> String {
    let body = format!("{{\"name\":\"ann\",\"password\":\"{}\"}}", crate::support::PASSWORD);
    let length = body.len();
    format!(
        "POST /api/v1/session HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn over_tls_the_cookie_is_for_tls_alone() {
    let dir = tempfile::tempdir().unwrap();
    let files = TlsFiles::named(dir.path(), "web");
    let authority = Authority::in_dir(dir.path(), "broker").unwrap();
    authority.issue(&files, &["localhost".to_owned()], Lifetime::Endless).unwrap();
    let tls = web_server(&files.certificate, &files.key).unwrap();
    let web = Web::new();
    web.sign_up("ann").await;
    let address = web.serve(WebTransport::Tls(tls)).await;
    let told = tokio::task::spawn_blocking(move || {
        let client = Trust::load(&files.ca).unwrap().dial("localhost").unwrap();
        exchange(&mut rustls::StreamOwned::new(client, TcpStream::connect(address).unwrap()), &sign_in())
    });
    let told = told.await.unwrap();
    assert!(told.starts_with("HTTP/1.1 200"), "{told}");
    assert!(told.contains("HttpOnly; SameSite=Strict; Secure"), "{told}");
    assert!(told.contains("strict-transport-security"), "{told}");
    assert!(!asked(address, sign_in()).await.contains("HTTP/1.1 200"));
}

#[tokio::test(flavor = "multi_thread")]
async fn behind_a_proxy_the_cookie_is_for_tls_alone_too() {
    let web = Web::new();
    web.sign_up("ann").await;
    let address = web.serve(WebTransport::BehindProxy).await;
    let told = asked(address, sign_in()).await;
    assert!(told.contains("HttpOnly; SameSite=Strict; Secure"), "{told}");
    assert!(told.contains("strict-transport-security"), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn behind_proxy_given_names_count_or_any_if_none() {
    for (given, host, status) in [
        (vec!["pares.example".to_owned()], "pares.example", 200),
        (vec!["pares.example".to_owned()], "evil.example", 421),
        (Vec::new(), "evil.example", 200),
    ] {
        let web = Web::with(|settings| settings.hosts = given);
        let address = web.serve(WebTransport::BehindProxy).await;
        let said = format!("GET /api/v1/health HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        let told = asked(address, said).await;
        assert!(told.starts_with(&format!("HTTP/1.1 {status} ")), "{host}: {told}");
        assert_eq!(told.contains("other-host"), status == 421, "{told}");
    }
}

/// Browsers ask before a script sends a token or JSON elsewhere, and show it no answer that does not name its page.
#[tokio::test]
async fn pages_of_named_origins_sign_in_and_others_do_not() {
    let desk = "https://desk.example";
    let web = Web::with(|settings| settings.origins = vec![desk.to_owned()]);
    web.sign_up("ann").await;
    let body = json!({"name": "ann", "password": PASSWORD});
    for (origin, asked, status) in [(desk, 204, 200), ("https://evil.example", 405, 403)] {
        let headers = [
            ("host", "here".to_owned()),
            ("origin", origin.to_owned()),
            ("sec-fetch-site", "cross-site".to_owned()),
        ];
        let wanted = [&headers[..], &[("access-control-request-method", "POST".to_owned())]].concat();
        let preflight = web.ask("OPTIONS", "/session", &wanted, &Value::Null).await;
        let answer = web.ask("POST", "/session", &headers, &body).await;
        assert_eq!((preflight.status.as_u16(), answer.status.as_u16()), (asked, status), "{origin}");
        for answer in [preflight, answer] {
            let told = answer.headers.get("access-control-allow-origin").map(|told| told.to_str().unwrap());
            assert_eq!(told, Some(desk).filter(|desk| *desk == origin));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn idle_connection_makes_room_when_places_are_out() {
    let web = Web::with(|settings| settings.connections_max = 1);
    let address = web.serve(WebTransport::Loopback).await;
    let tried = tokio::task::spawn_blocking(move || {
        let request = "GET /api/v1/health HTTP/1.1\r\nHost: here\r\n\r\n";
        let open = || {
            let mut stream = TcpStream::connect(address).unwrap();
            let mut first = [0; 12];
            let is_served =
                stream.write_all(request.as_bytes()).is_ok() && stream.read_exact(&mut first).is_ok();
            (is_served && &first == b"HTTP/1.1 200").then_some(stream)
        };
        let mut first = open().unwrap();
        let _second = std::iter::repeat_with(open).find_map(|stream| stream).unwrap();
        // It was ended before the other one was let in.
        first.set_nonblocking(true).unwrap();
        first.read_to_end(&mut Vec::new()).expect("it has ended");
    });
    tried.await.unwrap();
}
