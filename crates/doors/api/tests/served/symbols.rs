//! A symbol that is listed is found at once, whatever was believed of it.

use std::sync::Arc;

use pares_types::{ClientRequest, InstrumentId, List};
use pares_wire::frame::ClientFrame;
use serde_json::{Value, json};
use tungstenite::Message;

use crate::client::{PATIENT, Served, next, order};
use crate::gateway::Gateway;

/// How often all instruments were asked for.
pub(crate) fn lists(gateway: &Gateway) -> usize {
    let is_list = |heard: &&ClientFrame| matches!(heard, ClientFrame::ListRequest(asked) if asked.list == List::Instruments && asked.instrument.is_none());
    gateway.heard().iter().filter(is_list).count()
}

#[test]
fn relisted_symbol_costs_a_name_and_no_cancel() {
    let gateway = Gateway::start();
    gateway.list(&[("ABC", 1)]);
    let served = Served::by(&[&gateway], PATIENT);
    assert_eq!(served.ask("POST", "/v1/orders", &order(1, "ABC")).0, 201);
    gateway.list(&[("ABC", 2)]);
    let (status, refused) = served.ask("POST", "/v1/orders", &order(4, "ABC"));
    let is_recorded = (&refused["reason"], &refused["position"]);
    assert_eq!((status, is_recorded), (404, (&json!("unknown_instrument"), &json!("4"))), "{refused}");
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
fn new_symbol_is_found_beside_known_one() {
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
fn wrong_symbols_query_instruments_only_once() {
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

#[test]
fn listed_symbol_without_data_differs_from_unlisted() {
    let gateway = Gateway::start();
    gateway.list(&[("TELEPHONES", 1)]);
    let served = Served::with_market(&gateway, Arc::default());
    for what in ["book", "trades", "candles", "ticker"] {
        let reason = |symbol: &str| {
            let (status, problem) = served.get(&format!("/v1/instruments/{symbol}/{what}"));
            (status, problem["reason"].as_str().unwrap().to_owned())
        };
        assert_eq!(reason("TELEPHONES"), (404, "no_market_data".into()));
        assert_eq!(reason("TELEGRAMS"), (404, "unknown_instrument".into()));
        let mut socket = served.socket();
        for (symbol, reason) in [("TELEPHONES", "no_market_data"), ("TELEGRAMS", "unknown_instrument")] {
            let wish = json!({ "op": "subscribe", "channel": what, "symbol": symbol });
            socket.send(Message::text(wish.to_string())).unwrap();
            assert_eq!(next(&mut socket)["reason"], reason);
        }
    }
}

#[test]
fn a_refusal_says_whether_its_name_is_used() {
    let gateway = Gateway::start();
    gateway.list(&[("ABC", 1)]);
    let served = Served::by(&[&gateway], PATIENT);
    gateway.refuse();
    let place = |name: u64, symbol: &str| {
        let (_, problem) = served.ask("POST", "/v1/orders", &order(name, symbol));
        ["reason", "repeat", "shard", "position"].map(|field| problem[field].clone())
    };
    let refused = |repeat: bool| [json!("book_full"), json!(repeat), json!(0), json!("5")];
    assert_eq!([place(5, "ABC"), place(5, "ABC")], [false, true].map(refused));
    let free = [json!("unknown_instrument"), Value::Null, Value::Null, Value::Null];
    assert_eq!(place(6, "XYZ"), free);
}
