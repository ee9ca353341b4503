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
    // Another gateway had numbered an order in flight otherwise.
    gateway.refuse_cancel(6);
    for order in [&first, "by-name/1"] {
        let told = served.ask("DELETE", &format!("/v1/orders/{order}?client_order_id=6"), &Value::Null).1;
        assert_eq!(told["reason"], "unknown_order", "{told}");
    }
}

#[test]
fn change_by_name_under_another_order_s_change_is_a_duplicate() {
    let gateway = Gateway::start();
    gateway.list(&[("ABC", 1)]);
    let served = Served::by(&[&gateway], PATIENT);
    for name in [1, 2] {
        assert_eq!(served.ask("POST", "/v1/orders", &order(name, "ABC")).0, 201);
    }
    let cancel = |name: u64| {
        served.ask("DELETE", &format!("/v1/orders/by-name/{name}?client_order_id=5"), &Value::Null)
    };
    let (status, done) = cancel(1);
    assert_eq!((status, &done["repeat"]), (200, &json!(false)), "{done}");
    for name in [2, 9] {
        let (status, refused) = cancel(name);
        assert_eq!((status, &refused["reason"]), (409, &json!("duplicate_request")), "{name}: {refused}");
    }
    let terms = json!({ "client_order_id": "5", "quantity": "1", "price": "1" });
    let (status, refused) = served.ask("PATCH", "/v1/orders/by-name/2", &terms);
    assert_eq!((status, &refused["reason"]), (409, &json!("duplicate_request")), "{refused}");
    let (status, again) = cancel(1);
    assert_eq!((status, &again["repeat"], &again["order_id"]), (200, &json!(true), &done["order_id"]));
}

#[test]
fn repeated_cancel_of_many_is_answered_to_who_asks_the_same() {
    let gateway = Gateway::start();
    gateway.list(&[("ABC", 1)]);
    let [served, other] = [(); 2].map(|()| Served::by(&[&gateway], PATIENT));
    let cancel = |served: &Served, wanted: &str| {
        let path = format!("/v1/orders?client_order_id=5{wanted}");
        let (status, told) = served.ask("DELETE", &path, &Value::Null);
        (status, told["repeat"].clone(), told["reason"].clone())
    };
    let (done, again) = ((200, json!(false), json!("none")), (200, json!(true), json!("none")));
    assert_eq!(cancel(&served, "&symbol=ABC&side=buy"), done);
    for served in [&served, &other] {
        assert_eq!(cancel(served, "&symbol=ABC&side=buy"), again);
        for wanted in ["&symbol=ABC&side=sell", "&symbol=ABC", ""] {
            assert_eq!(cancel(served, wanted), (409, Value::Null, json!("duplicate_request")), "{wanted}");
        }
    }
}

#[test]
fn operator_s_other_request_under_a_used_name_is_a_duplicate() {
    let gateway = Gateway::start();
    gateway.list(&[("ABC", 1), ("DEF", 2)]);
    let served = Served::by(&[&gateway], PATIENT);
    let ask = |path: &str, propose: bool| {
        let deed = json!({ "client_order_id": "5", "propose": propose });
        let (status, told) = served.ask("PUT", path, &deed);
        (status, told["repeat"].clone(), told["reason"].clone())
    };
    let halt = "/v1/instruments/ABC/phase/halted";
    assert_eq!(ask(halt, false), (200, json!(false), json!("none")));
    assert_eq!(ask(halt, false), (200, json!(true), json!("none")));
    let others = [
        ("/v1/instruments/ABC/phase/closed", false),
        ("/v1/instruments/DEF/phase/halted", false),
        ("/v1/members/7/block", false),
        ("/v1/four-eyes", false),
        (halt, true),
    ];
    for (path, propose) in others {
        assert_eq!(ask(path, propose), (409, Value::Null, json!("duplicate_request")), "{path}");
    }
}
