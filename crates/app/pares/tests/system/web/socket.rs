//! The member's stream over a socket, wherever it was cut.

use serde_json::{Value, json};
use tungstenite::client::IntoClientRequest as _;
use tungstenite::stream::MaybeTlsStream;
use tungstenite::{Message, WebSocket};

use super::schemas;
use super::support::{Asker, Web, serving};
use crate::common::eventually;
use crate::common::exchange::{gateway, small};

pub(super) type Socket = WebSocket<MaybeTlsStream<std::net::TcpStream>>;

/// Heartbeats, one a second, while something is waited for.
const MESSAGES_MAX: usize = 60;

pub(super) fn open(web: &Web, asker: &Asker) -> Socket {
    let mut request = format!("ws://{}/v1/socket", web.address).into_client_request().unwrap();
    let bearer = format!("Bearer {}", asker.token.as_ref().unwrap());
    request.headers_mut().insert("authorization", bearer.parse().unwrap());
    tungstenite::connect(request).unwrap().0
}

pub(super) fn subscribe(socket: &mut Socket, from: &Value) {
    let mut wish = json!({ "op": "subscribe", "channel": "orders" });
    if !from.is_null() {
        wish["from"] = from.clone();
    }
    socket.send(Message::text(wish.to_string())).unwrap();
}

/// The next message that is no heartbeat.
pub(super) fn next(socket: &mut Socket) -> Value {
    for _ in 0..MESSAGES_MAX {
        let message = socket.read().unwrap();
        let told: Value = serde_json::from_str(message.to_text().unwrap()).unwrap();
        schemas::check(&told);
        if told["channel"] != "heartbeat" {
            return told;
        }
    }
    panic!("nothing but heartbeats");
}

/// The numbers and types up to the present.
pub(super) fn up_to_live(socket: &mut Socket) -> Vec<(String, String)> {
    let mut told = Vec::new();
    loop {
        let one = next(socket);
        if one["channel"] == "orders_live" {
            return told;
        }
        let text = |name: &str| one[name].as_str().unwrap().to_owned();
        told.push((text("number"), text("type")));
    }
}

#[test]
fn a_stream_is_told_from_any_number_on_and_each_number_once() {
    let (mut exchange, web) = serving(&small(2));
    let mut asker = Asker::open(&web.address, 7);
    let mut early = open(&web, &asker);
    subscribe(&mut early, &Value::Null);
    // Of every shard: an order's comes among them.
    let instruments = asker.ask("GET", "/v1/instruments", "").json();
    let shard = |one: &Value| one["shard"].as_u64().unwrap();
    let shards: std::collections::BTreeSet<u64> =
        instruments["instruments"].as_array().unwrap().iter().map(shard).collect();
    (0..shards.len()).for_each(|_| assert_eq!(next(&mut early)["channel"], "orders_live"));

    asker.limit(1, "sell", 10, "5");
    asker.limit(2, "buy", 10, "5");
    let types = ["answer", "trade", "trade", "answer"];
    for (at, kind) in types.iter().enumerate() {
        let told = next(&mut early);
        assert_eq!((&told["number"], &told["type"]), (&json!((at + 1).to_string()), &json!(kind)));
    }
    let mut late = open(&web, &asker);
    subscribe(&mut late, &json!({ "0": "2" }));
    let told = up_to_live(&mut late);
    let expected: Vec<(String, String)> =
        (2..=4).map(|at| (at.to_string(), types[at - 1].to_owned())).collect();
    assert_eq!(told, expected);

    for dead in [0, 1] {
        exchange.supervisor().signal(gateway(dead), rustix::process::Signal::KILL).unwrap();
        eventually("the gateway is down", || !exchange.supervisor().tick().is_empty());
        let name = 3 + u64::from(dead);
        eventually("it is taken", || asker.limit(name, "sell", 10, "6").status == 201);
        for socket in [&mut early, &mut late] {
            let told = next(socket);
            assert_eq!(
                (&told["number"], &told["type"]),
                (&json!((name + 2).to_string()), &json!("answer")),
                "{told}"
            );
        }
    }
}

#[test]
fn a_number_that_is_not_used_yet_holds_nobody_up() {
    let (_exchange, web) = serving(&small(1));
    let mut asker = Asker::open(&web.address, 7);
    let mut socket = open(&web, &asker);
    subscribe(&mut socket, &json!({ "0": "1000", "99": "1" }));
    let mut told =
        [next(&mut socket), next(&mut socket)].map(|told| told["reason"].as_str().unwrap().to_owned());
    told.sort();
    assert_eq!(told, ["not_used_yet", "unknown_shard"]);
    assert_eq!(asker.limit(1, "sell", 10, "5").status, 201);
}

/// The words with which it is closed.
pub(super) fn closed(socket: &mut Socket) -> String {
    loop {
        if let Message::Close(frame) = socket.read().unwrap() {
            return frame.unwrap().reason.to_string();
        }
    }
}

#[test]
fn nonsense_ends_a_socket_and_an_ended_session_too() {
    let (_exchange, web) = serving(&small(1));
    let mut asker = Asker::open(&web.address, 7);
    for nonsense in ["", "[]", "{\"op\":\"subscribe\"}", &"[".repeat(10_000)] {
        let mut socket = open(&web, &asker);
        socket.send(Message::text(nonsense)).unwrap();
        assert!(closed(&mut socket).starts_with("expected"), "{nonsense}");
    }
    let mut socket = open(&web, &asker);
    assert_eq!(asker.ask("DELETE", "/v1/session", "").status, 204);
    assert_eq!(closed(&mut socket), "sign_on_again");
    assert_eq!(asker.ask("GET", "/v1/status", "").reason(), "sign_on_again");
}

/// A book as a client keeps it: prices and shares of each side.
#[derive(Default, PartialEq, Debug)]
struct Book([std::collections::BTreeMap<String, String>; 2]);

impl Book {
    fn take(&mut self, told: &Value) {
        for (side, name) in self.0.iter_mut().zip(["bids", "offers"]) {
            for level in told[name].as_array().unwrap() {
                let text = |name: &str| level[name].as_str().unwrap().to_owned();
                match text("quantity").as_str() {
                    "0" => drop(side.remove(&text("price"))),
                    quantity => drop(side.insert(text("price"), quantity.to_owned())),
                }
            }
        }
    }
}

#[test]
fn book_feed_sends_snapshot_then_incremental_changes() {
    let (_exchange, web) = serving(&crate::common::exchange::with_feed(small(1)));
    let mut asker = Asker::open(&web.address, 7);
    let symbol = asker.symbol();
    asker.limit(1, "buy", 10, "5");
    let path = format!("/v1/instruments/{symbol}/book");
    eventually("the book is received", || {
        let answer = asker.ask("GET", &path, "");
        answer.status == 200 && answer.json()["bids"][0]["quantity"] == "10"
    });
    let mut socket = open(&web, &asker);
    let wish = json!({ "op": "subscribe", "channel": "book", "symbol": symbol });
    socket.send(Message::text(wish.to_string())).unwrap();
    let (mut book, first) = (Book::default(), next(&mut socket));
    assert_eq!(first["type"], "snapshot");
    book.take(&first);
    let mut number = first["number"].clone();
    for (name, side, price) in [(2, "buy", "4.5"), (3, "sell", "6"), (4, "sell", "5")] {
        assert_eq!(asker.limit(name, side, 10, price).status, 201);
    }
    let done = || Book([[("4.5".into(), "10".into())].into(), [("6".into(), "10".into())].into()]);
    while book != done() {
        let told = next(&mut socket);
        assert_eq!((&told["type"], &told["previous"]), (&json!("delta"), &number), "{told}");
        number = told["number"].clone();
        book.take(&told);
    }
    let whole = asker.ask("GET", &path, "").json();
    let mut same = Book::default();
    same.take(&whole);
    assert_eq!((same, &whole["number"]), (book, &number));
    let wish = json!({ "op": "subscribe", "channel": "book", "symbol": "none" });
    socket.send(Message::text(wish.to_string())).unwrap();
    assert_eq!(next(&mut socket)["channel"], "book_not");
}
