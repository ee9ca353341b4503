//! What comes from those who wish no good: refused, and nobody else waits.

use std::io::Write;

use serde_json::json;

use super::support::{Asker, serving};
use crate::common::exchange::small;

#[test]
fn deep_large_or_compressed_bodies_are_refused() {
    let (_exchange, web) = serving(&small(1));
    let mut asker = Asker::open(&web.address, 7);
    let deep = "[".repeat(60_000);
    let inside = format!("{{\"client_order_id\":{}", "[".repeat(60_000));
    for body in ["", "{", "null", "[]", "{}", &deep, &inside, "{\"client_order_id\":1}", "\u{feff}{}"] {
        assert_eq!(asker.ask("POST", "/v1/orders", body).reason(), "bad-form");
    }
    let order = json!({ "client_order_id": "1", "symbol": "ABC", "side": "buy", "price": "1", "quantity": "1", "more": 1 });
    assert_eq!(asker.ask("POST", "/v1/orders", &order.to_string()).reason(), "bad-form");
    asker.kind = "application/xml";
    let bomb = "<!DOCTYPE o [<!ENTITY a \"aaaaaaaaaa\"><!ENTITY b \"&a;&a;&a;&a;\">]><order><symbol>&b;</symbol></order>";
    for body in [bomb, &"<a>".repeat(20_000), "<order>", "", "<order><x/></order>", "\u{0}"] {
        let answer = asker.ask("POST", "/v1/orders", body);
        assert_eq!(answer.reason(), "bad-form");
        assert!(answer.head.contains("application/problem+xml"), "{}", answer.head);
    }
    asker.kind = "text/plain";
    assert_eq!(asker.ask("POST", "/v1/orders", "{}").status, 406);
    asker.kind = "application/json";
    let orders = asker.ask("GET", "/v1/orders", "").json();
    assert_eq!(orders["orders"].as_array().unwrap().len(), 0);
}

#[test]
fn a_body_that_is_too_long_is_refused_before_it_came() {
    let (_exchange, web) = serving(&small(1));
    let mut asker = Asker::new(&web.address);
    let head = "POST /v1/sign-on HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 999999999999\r\n\r\n";
    assert_eq!(asker.say(head.as_bytes()).reason(), "too-large");
    let mut asker = Asker::new(&web.address);
    let head = "POST /v1/sign-on HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n";
    asker.stream.get_mut().write_all(head.as_bytes()).unwrap();
    let chunk = format!("10000\r\n{}\r\n", "x".repeat(0x10000));
    // The server may hang up before all of it is written.
    let _ = asker.stream.get_mut().write_all((chunk.clone() + &chunk).as_bytes());
    assert_eq!(asker.answer().reason(), "too-large");
}

#[test]
fn requests_within_requests_are_not_heard() {
    let (_exchange, web) = serving(&small(1));
    let victim = Asker::open(&web.address, 7);
    let token = victim.token.clone().unwrap();
    let inner =
        format!("DELETE /v1/session HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\r\n");
    // Whichever of the two lengths a proxy in front believes, the other one's rest is no request here.
    for head in [
        format!("Content-Length: {}\r\nContent-Length: 0\r\n", inner.len()),
        format!("Transfer-Encoding: chunked\r\nContent-Length: {}\r\n", inner.len()),
        format!("Transfer-Encoding: x, chunked\r\nContent-Length: {}\r\n", inner.len()),
    ] {
        let bytes = format!(
            "POST /v1/sign-on HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n{head}\r\n{inner}"
        );
        let mut asker = Asker::new(&web.address);
        assert!([400, 413].contains(&asker.say(bytes.as_bytes()).status), "{head}");
        // And nothing more arrives on that connection.
        let mut rest = String::new();
        let _ = std::io::Read::read_to_string(&mut asker.stream, &mut rest);
        assert_eq!(rest, "", "{head}");
    }
    let mut victim = victim;
    assert_eq!(victim.ask("GET", "/v1/status", "").status, 200);
    // A head without end, and a host of another site.
    let mut asker = Asker::new(&web.address);
    let long = format!("GET /v1/health HTTP/1.1\r\nHost: localhost\r\nX: {}\r\n\r\n", "x".repeat(200_000));
    let _ = asker.stream.get_mut().write_all(long.as_bytes());
    assert_eq!(asker.answer().status, 431);
    let mut asker = Asker::new(&web.address);
    assert_eq!(asker.say(b"GET /v1/health HTTP/1.1\r\nHost: evil.example\r\n\r\n").reason(), "other-host");
}

#[test]
fn a_token_is_of_one_session_and_nothing_less_is_one() {
    let (_exchange, web) = serving(&small(1));
    let (mut seller, mut other) = (Asker::open(&web.address, 7), Asker::open(&web.address, 8));
    assert_eq!(seller.limit(1, "sell", 10, "5").status, 201);
    let unknown = other.ask("GET", "/v1/orders/by-name/1", "");
    assert_eq!(unknown.reason(), "unknown_order");
    assert!(unknown.json()["detail"].as_str().unwrap().contains("knows no such order"));
    let place = seller.ask("GET", "/v1/orders/by-name/1", "").json()["order_id"].as_str().unwrap().to_owned();
    assert_eq!(
        other.ask("DELETE", &format!("/v1/orders/{place}?client_order_id=1"), "").reason(),
        "unknown_order"
    );
    let token = seller.token.clone().unwrap();
    for wrong in ["", "x", &token[1..], &token.to_uppercase(), &format!("{token}0"), &"0".repeat(64)] {
        seller.token = Some(wrong.to_owned());
        assert_eq!(seller.ask("GET", "/v1/orders", "").reason(), "sign_on_again", "{wrong}");
    }
    seller.token = Some(format!("{token}\r\nAuthorization: Bearer {token}"));
    assert_eq!(seller.ask("GET", "/v1/orders", "").reason(), "sign_on_again", "two are none");
}

#[test]
fn who_dawdles_is_not_waited_for() {
    let (_exchange, web) = serving(&small(1));
    let mut slow: Vec<Asker> = (0..200).map(|_| Asker::new(&web.address)).collect();
    for asker in &mut slow {
        asker.stream.get_mut().write_all(b"POST /v1/sign-on HTTP/1.1\r\nHost: local").unwrap();
    }
    let head = "POST /v1/sign-on HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 10\r\n\r\n{";
    let mut dawdler = Asker::new(&web.address);
    dawdler.stream.get_mut().write_all(head.as_bytes()).unwrap();
    let mut asker = Asker::open(&web.address, 7);
    assert_eq!(asker.limit(1, "sell", 10, "5").status, 201);
    assert_eq!(dawdler.answer().reason(), "too-slow");
}
