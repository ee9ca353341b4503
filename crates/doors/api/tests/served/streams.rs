//! Sockets: a stream at a gateway that is behind, and frames that are too long.

use std::io::Write as _;
use std::time::Duration;

use pares_wire::frame::ClientFrame;
use serde_json::json;
use tungstenite::Message;
use tungstenite::stream::MaybeTlsStream;

use crate::client::{PATIENT, Served, eventually, next};
use crate::gateway::Gateway;

/// A gateway, at which that number comes next in the stream.
fn at(number: u64) -> Gateway {
    let gateway = Gateway::start();
    gateway.comes_next(number);
    gateway
}

fn is_resume(heard: &ClientFrame) -> bool {
    matches!(heard, ClientFrame::Resume { .. })
}

#[test]
fn a_follower_whose_gateway_is_a_number_behind_waits_for_it() {
    let gateway = at(16);
    let served = Served::by(&[&gateway], PATIENT);
    let mut socket = served.socket();
    let wish = json!({ "op": "subscribe", "channel": "orders", "from": { "0": "17" } });
    socket.send(Message::text(wish.to_string())).unwrap();
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
    let mut socket = served.socket();
    let wish = json!({ "op": "subscribe", "channel": "orders", "from": { "0": "17" } });
    socket.send(Message::text(wish.to_string())).unwrap();
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
fn a_frame_of_16_mib_is_refused_by_its_head() {
    let gateway = Gateway::start();
    let served = Served::by(&[&gateway], PATIENT);
    let mut socket = served.socket();
    let MaybeTlsStream::Plain(stream) = socket.get_mut() else { unreachable!("it is plain") };
    // A text, masked, and its length: nothing of it follows.
    let head = [&[0x81, 0xff][..], &(16_u64 << 20).to_be_bytes(), &[0; 4]].concat();
    stream.write_all(&head).unwrap();
    let code = loop {
        match socket.read().unwrap() {
            Message::Close(frame) => break u16::from(frame.unwrap().code),
            other => assert!(other.is_text(), "a heartbeat"),
        }
    };
    assert!([1002, 1009].contains(&code), "{code}");
}
