//! Sockets: a stream at a gateway that is behind, and frames that are too long.

use std::io::Write as _;
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use pares_wire::frame::ClientFrame;
use serde_json::{Value, json};
use tungstenite::protocol::CloseFrame;
use tungstenite::protocol::frame::coding::CloseCode;
use tungstenite::stream::MaybeTlsStream;
use tungstenite::{Message, WebSocket};

use crate::client::{PATIENT, Served, eventually, next, orders_from};
use crate::gateway::Gateway;
use crate::symbols::lists;

/// More messages than wait for one follower, and lie in the buffers of a connection.
const PAST: u64 = 150_000;

/// A gateway, at which that number comes next in the stream.
fn at(number: u64) -> Gateway {
    let gateway = Gateway::start();
    gateway.comes_next(number);
    gateway
}

fn is_resume(heard: &ClientFrame) -> bool {
    matches!(heard, ClientFrame::Resume { .. })
}

/// How the socket is closed.
fn closed(socket: &mut WebSocket<MaybeTlsStream<TcpStream>>) -> (u16, String) {
    loop {
        match socket.read().unwrap() {
            Message::Close(frame) => {
                let frame = frame.unwrap();
                return (frame.code.into(), frame.reason.to_string());
            }
            other => assert!(other.is_text(), "a heartbeat"),
        }
    }
}

#[test]
fn a_follower_whose_gateway_is_a_number_behind_waits_for_it() {
    let gateway = at(16);
    let served = Served::by(&[&gateway], PATIENT);
    let mut socket = served.subscribed(&orders_from(17));
    gateway.hears(is_resume);
    (16..18).for_each(|number| gateway.tell(number));
    let live = next(&mut socket);
    assert_eq!((&live["channel"], &live["next"]), (&json!("orders_live"), &json!("17")));
    assert_eq!(next(&mut socket)["number"], "17");
}

#[test]
fn a_number_that_never_comes_is_waited_for_and_then_refused() {
    let gateway = at(16);
    let served = Served::by(&[&gateway], Duration::from_millis(200));
    let mut socket = served.subscribed(&orders_from(17));
    let not = next(&mut socket);
    assert_eq!((&not["reason"], &not["oldest"]), (&json!("not_used_yet"), &json!("16")), "{not}");
    // It says nothing else, unless the machine is too slow to know.
    eventually("it is refused", || {
        let (status, problem) = served.get("/v1/fills?from=17");
        assert!([404, 504].contains(&status), "{problem}");
        problem["reason"] == "not_used_yet"
    });
}

#[test]
fn fills_are_read_from_a_number_that_is_on_its_way() {
    let gateway = at(16);
    let served = Served::by(&[&gateway], PATIENT);
    let (status, fills) = std::thread::scope(|scope| {
        let asking = scope.spawn(|| served.get("/v1/fills?from=17"));
        gateway.hears(is_resume);
        gateway.tell(16);
        asking.join().unwrap()
    });
    assert_eq!((status, &fills["next"], &fills["is_all"]), (200, &json!("17"), &json!(true)), "{fills}");
}

#[test]
fn a_member_who_reads_its_past_slowly_is_told_all_of_it() {
    let gateway = at(PAST);
    let served = Served::by(&[&gateway], PATIENT);
    let mut socket = served.subscribed(&orders_from(1));
    // Meanwhile the gateway sends all of it a second time, and nothing of the socket is read.
    let (status, fills) = served.get("/v1/fills?from=1");
    assert_eq!((status, &fills["next"]), (200, &json!(PAST.to_string())));
    for number in 1..PAST {
        assert_eq!(next(&mut socket)["number"], number.to_string());
    }
    assert_eq!(next(&mut socket)["channel"], "orders_live");
}

#[test]
fn page_of_other_origin_opens_no_socket_unless_named() {
    let gateway = at(16);
    let served = Served::by(&[&gateway], PATIENT);
    let opened = |headers: &[(&'static str, &str)]| served.socket_with(headers).err();
    let own = format!("http://{}", served.address);
    for origin in [own.as_str(), "https://desk.example"] {
        assert_eq!(opened(&[("origin", origin)]), None, "{origin}");
    }
    let other = ["https://evil.example", "http://desk.example", "https://Desk.Example", "null"];
    for origin in other.into_iter().chain(["http://127.0.0.1:1", &served.address.to_string()]) {
        assert_eq!(opened(&[("origin", origin)]), Some(403), "{origin}");
    }
    assert_eq!(opened(&[("origin", &own), ("origin", "https://evil.example")]), Some(403), "two are none");
    assert_eq!(opened(&[("sec-fetch-site", "cross-site")]), Some(403));
    assert_eq!(opened(&[("sec-websocket-key", "not sixteen bytes")]), Some(400));
}

#[test]
fn socket_learns_session_end_the_same_way() {
    let gateway = at(16);
    let served = Served::by(&[&gateway], PATIENT);
    let mut sockets = [served.subscribed(&orders_from(0)), served.socket()];
    assert_eq!(next(&mut sockets[0])["channel"], "orders_live");
    assert_eq!(served.ask("DELETE", "/v1/session", &Value::Null).0, 204);
    for socket in &mut sockets {
        assert_eq!(closed(socket), (1008, "sign_on_again".to_owned()));
    }
}

/// It ends a socket in the same way while that waits for an answer.
#[test]
fn session_end_during_subscribe_ends_socket() {
    let gateway = Gateway::start();
    gateway.hush();
    for wish in [
        json!({ "op": "subscribe", "channel": "orders" }),
        json!({ "op": "subscribe", "channel": "book", "symbol": "ABC" }),
    ] {
        let served = Served::with_market(&gateway, Arc::default());
        let before = lists(&gateway);
        let mut socket = served.subscribed(&wish);
        eventually("the gateway is asked", || lists(&gateway) > before);
        assert_eq!(served.ask("DELETE", "/v1/session", &Value::Null).0, 204);
        assert_eq!(closed(&mut socket), (1008, "sign_on_again".to_owned()), "{wish}");
    }
}

#[test]
fn a_frame_of_16_mib_is_refused_by_its_head() {
    let gateway = Gateway::start();
    let served = Served::by(&[&gateway], PATIENT);
    let mut socket = served.socket();
    let MaybeTlsStream::Plain(stream) = socket.get_mut() else { unreachable!("it is plain") };
    // A text, masked, and its length: nothing of it follows.
    let head = [&[0x81, 0xff][..], &(16_u64 << 20).to_be_bytes(), &[0; 4]].concat();
    stream.write_all(&head).unwrap();
    assert_eq!(closed(&mut socket), (1009, "the message is too long".to_owned()));
}

#[test]
fn a_client_that_closes_its_socket_is_answered() {
    let gateway = Gateway::start();
    let served = Served::by(&[&gateway], PATIENT);
    let mut socket = served.socket();
    let frame = CloseFrame { code: CloseCode::Normal, reason: "bye".into() };
    socket.close(Some(frame)).unwrap();
    assert_eq!(closed(&mut socket), (1000, "bye".to_owned()));
    assert!(matches!(socket.read(), Err(tungstenite::Error::ConnectionClosed)), "it is not reset");
}

#[test]
fn revoked_session_ends_with_its_sockets() {
    let gateway = at(16);
    let served = Served::by(&[&gateway], PATIENT);
    let mut socket = served.subscribed(&orders_from(0));
    assert_eq!(next(&mut socket)["channel"], "orders_live");
    gateway.revoke();
    assert_eq!(closed(&mut socket), (1008, "sign_on_again".to_owned()));
    eventually("the session has ended", || served.get("/v1/status").0 == 401);
}
