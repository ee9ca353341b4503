//! Names that are used for another request.

use serde_json::{Value, json};

use crate::client::{PATIENT, Served, order};
use crate::gateway::Gateway;

#[test]
fn cancel_under_an_order_s_name_is_a_duplicate() {
    let gateway = Gateway::start();
    gateway.list(&[("ABC", 1)]);
    let served = Served::by(&[&gateway], PATIENT);
    assert_eq!(served.ask("POST", "/v1/orders", &order(1, "ABC")).0, 201);
    assert_eq!(served.ask("POST", "/v1/orders", &order(2, "ABC")).0, 201);
    let terms = json!({ "client_order_id": "1", "quantity": "1", "price": "1" });
    for (method, path, body) in [
        ("DELETE", "/v1/orders/by-name/1?client_order_id=1", Value::Null),
        ("DELETE", "/v1/orders/by-name/2?client_order_id=1", Value::Null),
        ("PATCH", "/v1/orders/by-name/2", terms),
        ("DELETE", "/v1/orders?client_order_id=1", Value::Null),
    ] {
        let (status, refused) = served.ask(method, path, &body);
        assert_eq!(
            (status, &refused["reason"]),
            (409, &json!("duplicate_request")),
            "{method} {path}: {refused}"
        );
    }
    assert_eq!(served.ask("POST", "/v1/orders", &order(1, "ABC")).0, 201, "the same again");
}

#[test]
fn cancel_by_id_under_another_cancel_s_name_is_a_duplicate() {
    let gateway = Gateway::start();
    gateway.list(&[("ABC", 1)]);
    let served = Served::by(&[&gateway], PATIENT);
    let [first, second] = [1, 2].map(|name| {
        let (status, entered) = served.ask("POST", "/v1/orders", &order(name, "ABC"));
        assert_eq!(status, 201, "{entered}");
        entered["order_id"].as_str().unwrap().to_owned()
    });
    let cancel = |id: &str| {
        let path = format!("/v1/orders/{id}?client_order_id=5");
        let (status, told) = served.ask("DELETE", &path, &Value::Null);
        (status, told["order_id"].clone(), told["reason"].clone())
    };
    let done = cancel(&first);
    assert_eq!((done.0, &done.1), (200, &json!(first)));
    assert_eq!(cancel(&second), (409, Value::Null, json!("duplicate_request")));
    let terms = json!({ "client_order_id": "5", "quantity": "1", "price": "1" });
    let (status, refused) = served.ask("PATCH", &format!("/v1/orders/{second}"), &terms);
    assert_eq!((status, &refused["reason"]), (409, &json!("duplicate_request")));
    assert_eq!(cancel(&first), done, "the same again");
}
