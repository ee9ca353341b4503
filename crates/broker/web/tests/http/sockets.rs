//! Notices.

use std::net::{SocketAddr, TcpStream};

use pares_web::WebTransport;
use serde_json::{Value, json};
use tungstenite::client::IntoClientRequest as _;
use tungstenite::http::HeaderValue;
use tungstenite::protocol::CloseFrame;
use tungstenite::protocol::frame::coding::CloseCode;
use tungstenite::{Message, WebSocket};

use crate::support::{Web, has};

pub(crate) type Socket = WebSocket<TcpStream>;

/// A socket, or the status of what was answered instead.
pub(crate) async fn open(address: SocketAddr, headers: Vec<(&'static str, String)>) -> Result<Socket, u16> {
    let dial = move || {
        let mut request = format!("ws://{address}/api/v1/notices").into_client_request().unwrap();
        for (name, value) in headers {
            request.headers_mut().insert(name, HeaderValue::from_str(&value).unwrap());
        }
        match tungstenite::client(request, TcpStream::connect(address).unwrap()) {
            Ok((socket, _)) => Ok(socket),
            Err(tungstenite::HandshakeError::Failure(tungstenite::Error::Http(answer))) => {
                Err(answer.status().as_u16())
            }
            Err(other) => panic!("{other}"),
        }
    };
    tokio::task::spawn_blocking(dial).await.unwrap()
}

/// The next message: a notice, or the code and words that it was closed with.
pub(crate) async fn next(mut socket: Socket) -> (Socket, Value) {
    let read = move || loop {
        match socket.read().unwrap() {
            Message::Text(text) => break (socket, serde_json::from_str(&text).unwrap()),
            Message::Close(frame) => {
                let frame = frame.unwrap();
                break (socket, json!([u16::from(frame.code), frame.reason.as_str()]));
            }
            _ => {}
        }
    };
    tokio::task::spawn_blocking(read).await.unwrap()
}

pub(crate) async fn say(mut socket: Socket, message: Message) -> Socket {
    tokio::task::spawn_blocking(move || {
        socket.send(message).unwrap();
        socket
    })
    .await
    .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_fires_lapses_and_is_settled_at_another_front_is_told() {
    let web = Web::new();
    let (ann, bob) = (web.somebody("ann").await, web.somebody("bob").await);
    web.broker.set_price("S", 1_000);
    web.command(&ann, "add", json!({"amount": "1000.00"})).await;
    let address = web.serve(WebTransport::Loopback).await;
    let socket = open(address, vec![ann.bearer()]).await.unwrap();
    // From its first notice on the socket follows the log.
    let socket = say(socket, Message::text("{\"watch\": [\"S\"]}")).await;
    let (socket, quote) = next(socket).await;
    assert_eq!(quote["kind"], "quote");
    let of = |amount: &str| json!({"symbol": "S", "amount": amount});
    web.command(&bob, "add", json!({"amount": "1000.00"})).await;
    web.command(&bob, "buy", of("30.00")).await;
    web.command(&bob, "commit-buy", Value::Null).await;
    web.command(&ann, "buy", of("20.00")).await;
    web.command(&ann, "commit-buy", Value::Null).await;
    let (socket, settled) = next(socket).await;
    has(&settled, json!({"kind": "settled", "way": "buy", "shares": 2}));
    web.command(&ann, "set-buy-amount", of("90.00")).await;
    web.command(&ann, "set-buy-trigger", json!({"symbol": "S", "price": "9.00"})).await;
    web.broker.set_price("S", 800);
    web.broker.tick();
    let (socket, price) = next(socket).await;
    has(&price, json!({"kind": "quote", "price": "8.00"}));
    let (socket, fired) = next(socket).await;
    has(&fired, json!({"kind": "fired", "shares": 11, "amount": "88.00"}));
    web.command(&ann, "sell", of("16.00")).await;
    web.pass(60_001);
    web.broker.tick();
    let (_, lapsed) = next(socket).await;
    has(&lapsed, json!({"kind": "lapsed", "way": "sell", "amount": "16.00"}));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_of_another_site_opens_no_socket() {
    let web = Web::new();
    let ann = web.somebody("ann").await;
    let address = web.serve(WebTransport::Loopback).await;
    let origin = |origin: String| ("origin", origin);
    let ours = format!("http://{address}");
    for headers in [vec![], vec![("cookie", "pares_session=forged".to_owned()), origin(ours.clone())]] {
        assert_eq!(open(address, headers).await.err(), Some(401));
    }
    for headers in [vec![ann.cookie()], vec![ann.cookie(), origin("http://evil.example".into())]] {
        assert_eq!(open(address, headers).await.err(), Some(403));
    }
    for more in ["Basic eA==", "x", ""] {
        let headers =
            vec![ann.cookie(), origin("http://evil.example".into()), ("authorization", more.into())];
        assert_eq!(open(address, headers).await.err(), Some(403), "{more:?}: it was let in by the cookie");
    }
    let bearer = ("authorization", format!("Bearer {}", ann.token));
    let foreign = vec![bearer.clone(), origin("http://evil.example".into())];
    assert_eq!(open(address, foreign).await.err(), Some(403), "by a bearer neither");
    let wrong_key = vec![bearer, ("sec-websocket-key", "x".into())];
    assert_eq!(open(address, wrong_key).await.err(), Some(400));
    assert!(open(address, vec![ann.cookie(), origin(ours)]).await.is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_or_expired_socket_is_closed_with_reason() {
    let web = Web::new();
    let ann = web.somebody("ann").await;
    let address = web.serve(WebTransport::Loopback).await;
    let many = format!("{{\"watch\": {}}}", json!(vec!["ABC"; 2_000]));
    let too_many: Vec<String> =
        ('A'..='Z').flat_map(|a| ('A'..='D').map(move |b| format!("{a}{b}"))).collect();
    let policy = json!([1008, "expected {\"watch\": [..]} with at most 100 symbols"]);
    for (message, closed) in [
        (Message::text("x"), policy.clone()),
        (Message::text("{\"watch\": [\"abc\"]}"), policy.clone()),
        (Message::text(json!({"watch": too_many}).to_string()), policy),
        (Message::text(many), json!([1009, "the message is too long"])),
        (Message::binary(vec![1]), json!([1003, "text only"])),
        (
            Message::Close(Some(CloseFrame { code: CloseCode::Normal, reason: "bye".into() })),
            json!([1000, "bye"]),
        ),
    ] {
        let socket = open(address, vec![ann.bearer()]).await.unwrap();
        assert_eq!(next(say(socket, message).await).await.1, closed);
    }
    let socket = open(address, vec![ann.bearer()]).await.unwrap();
    assert_eq!(web.ask("DELETE", "/session", &[ann.bearer()], &Value::Null).await.status, 204);
    assert_eq!(next(socket).await.1, json!([1008, "the session has ended"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_has_eight_sockets() {
    let web = Web::new();
    let ann = web.somebody("ann").await;
    let address = web.serve(WebTransport::Loopback).await;
    let mut sockets = Vec::new();
    for _ in 0..8 {
        sockets.push(open(address, vec![ann.bearer()]).await.unwrap());
    }
    assert_eq!(open(address, vec![ann.bearer()]).await.err(), Some(429));
}

#[tokio::test(flavor = "multi_thread")]
async fn all_sockets_of_a_user_are_told_by_one_look() {
    let web = Web::new();
    let ann = web.somebody("ann").await;
    web.broker.set_price("S", 1_000);
    web.command(&ann, "add", json!({"amount": "1000.00"})).await;
    let address = web.serve(WebTransport::Loopback).await;
    let mut sockets = Vec::new();
    for _ in 0..4 {
        let socket = open(address, vec![ann.bearer()]).await.unwrap();
        // It follows the log once it answers.
        let (socket, quote) = next(say(socket, Message::text("{\"watch\": [\"S\"]}")).await).await;
        assert_eq!(quote["kind"], "quote");
        sockets.push(socket);
        web.command(&ann, "buy", json!({"symbol": "S", "amount": "20.00"})).await;
    }
    let before = web.broker.looks();
    web.command(&ann, "commit-buy", Value::Null).await;
    for socket in sockets {
        assert_eq!(next(socket).await.1["kind"], "settled");
    }
    let looks = web.broker.looks() - before;
    assert!((1..=2).contains(&looks), "{looks}: at most one of a buy, and one of what was told");
}
