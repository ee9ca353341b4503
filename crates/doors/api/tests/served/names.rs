//! Names that are used for another kind of request.

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
