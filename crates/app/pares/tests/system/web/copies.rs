//! Drop copy of another member over HTTP, and over a socket.

use serde_json::json;

use super::socket::{closed, open, subscribe, up_to_live};
use super::support::{Asker, Web};
use crate::common::eventually;
use crate::common::exchange::{Exchange, small};
use crate::sign_on::done;

#[test]
fn drop_copy_session_follows_change_of_copied_member() {
    let exchange = Exchange::start(&small(1));
    for words in ["member add 7", "member add 8", "member add 9", "member copy 9 7 --session 1"] {
        done(&exchange, words);
    }
    let web = Web::start(exchange.layout().root());
    let mut trader = Asker::open(&web.address, 7);
    for (name, side) in [(1, "sell"), (2, "buy"), (3, "buy")] {
        assert_eq!(trader.limit(name, side, 10, "5").status, 201);
    }
    let mut copy = Asker::open_as(&web.address, (9, 1));
    let refused = copy.limit(1, "sell", 10, "5");
    assert_eq!((refused.status, refused.reason()), (403, "no_right".to_owned()));
    let orders = copy.ask("GET", "/v1/orders", "").json();
    assert_eq!((&orders["orders"][0]["client_order_id"], &orders["orders"][1]), (&json!("3"), &json!(null)));
    assert_eq!(copy.ask("GET", "/v1/orders/by-name/1", "").json()["state"], "ended");
    let mut socket = open(&web, &copy);
    subscribe(&mut socket, &json!({ "0": "1" }));
    let told = up_to_live(&mut socket);
    let types = ["answer", "trade", "trade", "answer", "answer"];
    assert_eq!(told.iter().map(|(_, kind)| kind).collect::<Vec<_>>(), types);
    let fills = copy.ask("GET", "/v1/fills", "").json();
    let names = [0, 1].map(|at| fills["fills"][at]["client_order_id"].as_str().unwrap().to_owned());
    assert_eq!((names.len(), fills["fills"].as_array().unwrap().len()), (2, 2), "{fills}");
    assert!(names.contains(&"1".to_owned()) && names.contains(&"2".to_owned()), "{fills}");
    let positions = copy.ask("GET", "/v1/positions", "").json();
    let one = &positions["positions"][0];
    assert_eq!((&one["bought"], &one["sold"]), (&json!("10"), &json!("10")), "{positions}");

    done(&exchange, "member copy 9 8 --session 1");
    assert_eq!(closed(&mut socket), "sign_on_again");
    eventually("the session has ended", || copy.ask("GET", "/v1/fills", "").status == 401);
}
