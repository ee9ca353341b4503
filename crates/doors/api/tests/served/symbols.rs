//! A symbol that is listed is found at once, whatever was believed of it.

use pares_types::{ClientRequest, InstrumentId, List};
use pares_wire::frame::ClientFrame;
use serde_json::{Value, json};

use crate::client::{PATIENT, Served, order};
use crate::gateway::Gateway;

/// How often all instruments were asked for.
fn lists(gateway: &Gateway) -> usize {
    let is_list = |heard: &&ClientFrame| matches!(heard, ClientFrame::ListRequest(asked) if asked.list == List::Instruments && asked.instrument.is_none());
    gateway.heard().iter().filter(is_list).count()
}

#[test]
fn a_symbol_that_was_removed_and_listed_again_is_found_at_once() {
    let gateway = Gateway::start();
    gateway.list(&[("ABC", 1)]);
    let served = Served::by(&[&gateway], PATIENT);
    assert_eq!(served.ask("POST", "/v1/orders", &order(1, "ABC")).0, 201);
    gateway.list(&[("ABC", 2)]);
    let (status, entered) = served.ask("POST", "/v1/orders", &order(2, "ABC"));
    assert_eq!((status, &entered["instrument"]), (201, &json!(2)), "{entered}");

    gateway.list(&[("ABC", 3)]);
    let (status, cancelled) = served.ask("DELETE", "/v1/orders?client_order_id=3&symbol=ABC", &Value::Null);
    assert_eq!((status, &cancelled["instrument"]), (200, &json!(3)), "{cancelled}");

    // An order that came by another way: of an instrument that is gone a gateway knows none, and does not say so.
    gateway.list(&[("ABC", 2)]);
    let (status, listed) = served.get("/v1/orders?symbol=ABC");
    let orders = listed["orders"].as_array().unwrap();
    assert_eq!((status, orders.len(), &orders[0]["client_order_id"]), (200, 1, &json!("2")), "{listed}");
}

#[test]
fn a_symbol_that_was_just_listed_is_found_beside_one_that_is_known() {
    let gateway = Gateway::start();
    gateway.list(&[("ABC", 1)]);
    let served = Served::by(&[&gateway], PATIENT);
    assert_eq!(served.ask("POST", "/v1/orders", &order(1, "ABC")).0, 201);
    gateway.list(&[("ABC", 1), ("NEW", 2)]);
    let batch = json!({ "orders": [order(2, "NEW"), order(3, "ABC"), order(4, "NEW"), order(5, "NONE")] });
    let (_, answered) = served.ask("POST", "/v1/orders/batch", &batch);
    let results = answered["results"].as_array().unwrap();
    assert_eq!(
        results.iter().map(|one| &one["status"]).collect::<Vec<_>>(),
        [201, 201, 201, 404],
        "{answered}"
    );
    assert_eq!(results[3]["problem"]["reason"], "unknown_instrument");
    let of = |heard| match heard {
        ClientFrame::Request(ClientRequest::Enter { instrument, .. }) => Some(instrument),
        _ => None,
    };
    let entered: Vec<_> = gateway.heard().into_iter().filter_map(of).collect();
    assert_eq!(entered, [1, 2, 1, 2].map(InstrumentId), "in their order");
    assert_eq!(served.get("/v1/instruments/LATE").0, 404);
    gateway.list(&[("LATE", 3)]);
    assert_eq!(served.get("/v1/instruments/LATE").0, 200);
}

#[test]
fn however_many_symbols_a_request_names_wrongly_instruments_are_asked_for_once() {
    let gateway = Gateway::start();
    gateway.list(&[("ABC", 1)]);
    let served = Served::by(&[&gateway], PATIENT);
    assert_eq!(served.ask("POST", "/v1/orders", &order(1, "ABC")).0, 201);
    gateway.list(&[]);
    let before = lists(&gateway);
    // What was refused and what is not known.
    let orders: Vec<_> = (2..100).map(|name| order(name, ["ABC", "NONE"][name as usize % 2])).collect();
    let (status, answered) = served.ask("POST", "/v1/orders/batch", &json!({ "orders": orders }));
    let results = answered["results"].as_array().unwrap();
    assert!(status == 200 && results.iter().all(|one| one["status"] == 404), "{answered}");
    assert_eq!(lists(&gateway), before + 1);
}
