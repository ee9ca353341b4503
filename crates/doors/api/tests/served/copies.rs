//! A session that copies another member receives that one's streams, and asks for nothing.

use pares_wire::frame::ClientFrame;
use serde_json::{Value, json};

use crate::client::{PATIENT, Served, next, order, orders_from};
use crate::gateway::{Gateway, own_and_other};

#[test]
fn a_copy_is_told_and_whatever_it_asks_for_reaches_no_gateway() {
    let gateway = Gateway::start();
    gateway.copy(9);
    gateway.list(&[("ABC", 1)]);
    gateway.comes_next(3);
    let served = Served::by(&[&gateway], PATIENT);
    let terms = json!({ "client_order_id": "2", "price": "5", "quantity": "1" });
    for (method, path, body) in [
        ("POST", "/v1/orders", &order(1, "ABC")),
        ("PATCH", "/v1/orders/by-name/1", &terms),
        ("DELETE", "/v1/orders/by-name/1?client_order_id=2", &Value::Null),
        ("DELETE", "/v1/orders?client_order_id=2", &Value::Null),
    ] {
        let (status, problem) = served.ask(method, path, body);
        assert_eq!((status, &problem["reason"]), (403, &json!("no_right")), "{method} {path}: {problem}");
    }
    let (_, batch) = served.ask("POST", "/v1/orders/batch", &json!({ "orders": [order(1, "ABC")] }));
    assert_eq!(batch["results"][0]["problem"]["reason"], "no_right", "{batch}");
    assert!(!gateway.heard().iter().any(|heard| matches!(heard, ClientFrame::Request(_))));

    let (status, fills) = served.get("/v1/fills");
    assert_eq!((status, &fills["next"]), (200, &json!("3")), "{fills}");
    let mut socket = served.subscribed(&orders_from(1));
    let told = [(); 3].map(|()| next(&mut socket));
    assert_eq!(told.each_ref().map(|one| &one["number"]), [&json!("1"), &json!("2"), &Value::Null]);
}

#[test]
fn stream_of_one_member_never_continues_as_another() {
    for (copied, status) in [(9, 200), (8, 401), (0, 401)] {
        let gateways = [Gateway::start(), Gateway::start()];
        gateways.iter().for_each(|gateway| gateway.copy(9));
        let served = Served::by(&[&gateways[0], &gateways[1]], PATIENT);
        assert_eq!(served.get("/v1/status").0, 200);
        gateways.iter().for_each(|gateway| gateway.copy(copied));
        let [own, _] = own_and_other(&gateways);
        own.die();
        assert_eq!(served.get("/v1/status").0, status, "told of {copied} there");
    }
}
