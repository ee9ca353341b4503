//! What a member has, at whatever server; and the timer that cancels what it leaves.

use serde_json::{Value, json};

use super::support::{Asker, Web};
use crate::common::eventually;
use crate::common::exchange::{Exchange, small};

#[test]
fn position_counted_from_record_continues_at_any_server() {
    let exchange = Exchange::start(&small(2));
    let webs = [Web::start(exchange.layout().root()), Web::start(exchange.layout().root())];
    let mut sellers = [Asker::open(&webs[0].address, 7), Asker::open(&webs[1].address, 7)];
    let mut buyer = Asker::open(&webs[0].address, 8);
    let none = sellers[0].ask("GET", "/v1/positions", "").json();
    assert_eq!(none["positions"], json!([]));
    for (name, quantity, net) in [(1, 10, "-10"), (2, 30, "-40")] {
        assert_eq!(sellers[0].limit(name, "sell", quantity, "5").status, 201);
        assert_eq!(buyer.limit(name, "buy", quantity, "5").status, 201);
        // The trade is on its way to who rests.
        for seller in &mut sellers {
            eventually("it is counted", || {
                let told = seller.ask("GET", "/v1/positions", "").json();
                told["positions"][0]["net"] == net && told["positions"][0]["bought"] == "0"
            });
        }
    }
    let told = buyer.ask("GET", "/v1/positions", "").json();
    let one = &told["positions"][0];
    assert_eq!((&one["net"], &one["symbol"]), (&json!("40"), &json!(buyer.symbol())));
    let of_shard = |one: &&Value| one["shard"] == told["positions"][0]["shard"];
    let counted = told["shards"].as_array().unwrap().iter().find(of_shard).unwrap();
    assert!(counted["next"].as_str().unwrap().parse::<u64>().unwrap() > 2, "{told}");
}

#[test]
fn guarded_orders_cancelled_by_timer_or_server_death() {
    let exchange = Exchange::start(&small(1));
    let mut web = Some(Web::start(exchange.layout().root()));
    let address = web.as_ref().unwrap().address.clone();
    let set = |asker: &mut Asker, seconds: u64| {
        let told = asker.ask("POST", "/v1/cancel-after", &json!({ "seconds": seconds }).to_string());
        assert_eq!(told.status, 200, "{}", told.body);
        told.json()["guarded_from"].as_str().unwrap().parse::<u64>().unwrap()
    };
    let state = |asker: &mut Asker, name: u64| {
        let told = asker.ask("GET", &format!("/v1/orders/by-name/{name}"), "");
        told.json()["state"].as_str().unwrap_or_default().to_owned()
    };
    let (mut asker, watcher) = (Asker::open(&address, 7), Web::start(exchange.layout().root()));
    let guarded = set(&mut asker, 60);
    assert_eq!(asker.limit(1, "sell", 10, "5").status, 201);
    assert_eq!(asker.limit(guarded, "sell", 10, "5").status, 201);
    set(&mut asker, 0);
    set(&mut asker, 1);
    eventually("the timer went off", || state(&mut asker, guarded) == "ended");
    assert_eq!(state(&mut asker, 1), "working", "it is under no guarded name");

    assert_eq!(asker.limit(guarded + 1, "sell", 10, "5").status, 201);
    // Killed: nobody is left who could cancel anything.
    drop(web.take());
    // Where sign-on is open, connections that name one session are one: another one looks.
    let mut other = Asker::new(&watcher.address);
    let signed = other.ask("POST", "/v1/sign-on", r#"{"member":7,"session":5}"#).json();
    other.token = Some(signed["token"].as_str().unwrap().to_owned());
    eventually("it died with its connection", || state(&mut other, guarded + 1) == "ended");
    assert_eq!(state(&mut other, 1), "working");
    let far = other.ask("POST", "/v1/cancel-after", r#"{"seconds":86401}"#);
    assert_eq!(far.reason(), "bad-form");
}
