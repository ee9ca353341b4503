//! Orders on the exchange, and what supervisors say of them.

use pares_web::WebTransport;
use serde_json::{Value, json};

use crate::sockets::{next, open, say};
use crate::support::{Signed, Web, all_of, has};

/// A customer with 10,000 dollars.
async fn rich(web: &Web, name: &str) -> Signed {
    let who = web.somebody(name).await;
    web.command(&who, "add", json!({"amount": "10000.00"})).await;
    who
}

fn buy(shares: u64, limit: &str) -> Value {
    json!({"symbol": "ABC", "side": "buy", "shares": shares, "limit": limit})
}

async fn place(web: &Web, who: &Signed, wanted: Value) -> String {
    let placed = web.post(who, "/orders", wanted).await;
    assert_eq!(placed.status, 201, "{placed:?}");
    placed.json()["number"].as_str().unwrap().to_owned()
}

async fn order(web: &Web, who: &Signed, number: &str) -> Value {
    web.get(who, &format!("/orders/{number}")).await.json()
}

#[tokio::test]
async fn an_order_holds_its_limit_trades_and_gives_back_the_rest() {
    let web = Web::new();
    let ann = rich(&web, "ann").await;
    let number = place(&web, &ann, buy(150, "10.00")).await;
    let shown = order(&web, &ann, &number).await;
    let expected = json!({"number": number, "symbol": "ABC", "side": "buy", "shares": 150, "limit": "10.00", "life": "day", "state": "waiting",
        "left": 150, "filled": 0, "amount": "0.00", "held": "1500.00", "is_cancelling": false, "placed_ms": shown["placed_ms"]});
    assert_eq!(shown, expected);
    let account = web.get(&ann, "/account").await.json();
    has(&account, json!({"cash": "8500.00", "orders_held": "1500.00"}));
    web.broker.set_price("ABC", 900);
    web.broker.tick();
    assert_eq!(order(&web, &ann, &number).await["state"], "open");
    web.broker.tick();
    let shown = order(&web, &ann, &number).await;
    has(&shown, json!({"filled": 100, "left": 50, "amount": "1000.00"}));
    let cancelled = web.delete(&ann, &format!("/orders/{number}")).await;
    assert_eq!((cancelled.status.as_u16(), &cancelled.json()["is_cancelling"]), (200, &json!(true)));
    web.broker.tick();
    let shown = order(&web, &ann, &number).await;
    has(&shown, json!({"state": "cancelled", "reason": "requested", "left": 0}));
    assert_eq!(web.delete(&ann, &format!("/orders/{number}")).await.told(), (409, "order-ended".into()));
    let account = web.get(&ann, "/account").await.json();
    assert_eq!((&account["cash"], &account["holdings"][0]["shares"]), (&json!("9000.00"), &json!(100)));
    let history = web.get(&ann, "/history").await.json();
    let entries = all_of(std::slice::from_ref(&history), "entries");
    let words: Vec<&str> = entries.filter_map(|entry| entry["notes"][0]["text"].as_str()).collect();
    let of = |shares: u64, word: &str| format!("{shares} ABC of order {number} {word}");
    let expected = [
        format!("order not cancelled: {number}"),
        of(50, "released"),
        "a cancel was sent".into(),
        of(100, "traded"),
        of(150, "accepted"),
        of(150, "placed"),
    ];
    let known = words[..6].iter().filter(|word| expected.contains(&(**word).to_owned()));
    assert_eq!(known.count(), 6, "{words:?}");
}

#[tokio::test]
async fn waiting_order_cancels_at_once_immediate_ones_end() {
    let web = Web::new();
    let ann = rich(&web, "ann").await;
    let number = place(&web, &ann, buy(1, "10.00")).await;
    let cancelled = web.delete(&ann, &format!("/orders/{number}")).await.json();
    has(&cancelled, json!({"state": "cancelled", "is_cancelling": false}));
    let mut wanted = buy(1, "10.00");
    wanted["life"] = json!("immediate");
    let number = place(&web, &ann, wanted).await;
    web.broker.tick();
    web.broker.tick();
    assert_eq!(order(&web, &ann, &number).await["reason"], "remainder");
    assert_eq!(web.get(&ann, "/account").await.json()["cash"], "10000.00");
}

#[tokio::test]
async fn under_one_key_an_order_is_placed_once_at_whatever_server() {
    let web = Web::new();
    let ann = rich(&web, "ann").await;
    let headers = [ann.bearer(), ("idempotency-key", "mine".to_owned())];
    let mut numbers = Vec::new();
    for server in [&web, &web.other(), &web] {
        let placed = server.ask("POST", "/orders", &headers, &buy(1, "10.00")).await;
        numbers.push(placed.json()["number"].clone());
    }
    assert_eq!(numbers, vec![numbers[0].clone(); 3]);
    assert_eq!(web.get(&ann, "/orders").await.json()["orders"].as_array().unwrap().len(), 1);
    let other = web.ask("POST", "/orders", &headers, &buy(2, "10.00")).await;
    assert_eq!(other.told(), (409, "name-taken".into()));
}

#[tokio::test]
async fn order_pages_are_newest_first_and_private() {
    let web = Web::new();
    let (ann, bob) = (rich(&web, "ann").await, rich(&web, "bob").await);
    let mut placed = Vec::new();
    for count in 0..130 {
        let number = place(&web, &ann, buy(1, "1.00")).await;
        if count % 2 == 0 {
            web.delete(&ann, &format!("/orders/{number}")).await;
        }
        if count == 40 {
            let raised = web
                .put(&web.supervisor("boss").await, "/supervisor/limits/ann", json!({"open_orders": 100}))
                .await;
            assert_eq!(raised.status, 204);
        }
        placed.push(number);
    }
    let numbers = |pages: &[Value]| -> Vec<String> {
        all_of(pages, "orders").map(|order| order["number"].as_str().unwrap().to_owned()).collect()
    };
    let pages = web.pages(&ann, "/orders?limit=60", "before").await;
    placed.reverse();
    assert_eq!((numbers(&pages), pages.len()), (placed.clone(), 3));
    let open = numbers(&[web.get(&ann, "/orders?open=true").await.json()]);
    let odd: Vec<String> = placed.iter().step_by(2).cloned().collect();
    assert_eq!(open, odd, "all that have not ended");
    assert_eq!(web.get(&bob, "/orders").await.json(), json!({"orders": []}));
    assert_eq!(web.get(&bob, &format!("/orders/{}", placed[0])).await.told(), (404, "no-order".into()));
    assert_eq!(web.delete(&bob, &format!("/orders/{}", placed[0])).await.told(), (404, "no-order".into()));
    for wrong in
        ["limit=0", "limit=101", "open=true&before=5", "before=-1", "else=1", "before=9223372036854775808"]
    {
        assert_eq!(web.get(&ann, &format!("/orders?{wrong}")).await.status, 400, "{wrong}");
    }
}

#[tokio::test]
async fn impossible_orders_are_refused_without_holds() {
    let web = Web::new();
    let ann = rich(&web, "ann").await;
    let nobody = web.somebody("nobody").await;
    assert_eq!(web.post(&nobody, "/orders", buy(1, "1.00")).await.told(), (422, "no-account".into()));
    let sell = |shares: u64| json!({"symbol": "ABC", "side": "sell", "shares": shares, "limit": "1.00"});
    for (wanted, reason) in [
        (buy(0, "1.00"), "bad-order"),
        (buy(1_001, "10.00"), "insufficient-cash"),
        (sell(1), "insufficient-shares"),
        (buy(1_000_001, "0.01"), "order-too-large"),
        (buy(1, "1.001"), "bad-amount"),
        (json!({"symbol": "abc", "side": "buy", "shares": 1, "limit": "1.00"}), "bad-symbol"),
    ] {
        let refused = web.post(&ann, "/orders", wanted).await;
        assert_eq!(refused.told(), (422, reason.into()));
        assert!(refused.json()["code"].is_u64(), "{refused:?}");
    }
    for wanted in [
        json!({}),
        json!({"symbol": "ABC", "side": "hold", "shares": 1, "limit": "1.00"}),
        json!({"symbol": "ABC", "side": "buy", "shares": -1, "limit": "1.00"}),
    ] {
        assert_eq!(web.post(&ann, "/orders", wanted).await.status, 400);
    }
    assert_eq!(web.get(&ann, "/account").await.json()["cash"], "10000.00");
    assert_eq!(web.get(&ann, "/orders").await.json(), json!({"orders": []}));
    assert_eq!(web.get(&ann, "/orders/x").await.told(), (404, "no-order".into()));
}

#[tokio::test]
async fn a_supervisor_limits_and_stops_others_and_never_himself() {
    let web = Web::new();
    let (ann, boss) = (rich(&web, "ann").await, web.supervisor("boss").await);
    for path in ["limits", "kill"] {
        let answer = web.put(&ann, &format!("/supervisor/{path}/ann"), Value::Null).await;
        assert_eq!(answer.told(), (403, "no-right".into()));
        let answer = web.put(&boss, &format!("/supervisor/{path}/boss"), Value::Null).await;
        assert_eq!(answer.told(), (403, "own-limits".into()));
        let answer = web.put(&boss, &format!("/supervisor/{path}/nobody"), Value::Null).await;
        assert_eq!(answer.told(), (404, "no-customer".into()));
    }
    let limits = json!({"shares": 10, "amount": "50.00", "position": 12, "loss": "5.00"});
    assert_eq!(web.put(&boss, "/supervisor/limits/ann", limits.clone()).await.status, 204);
    let shown = web.get(&boss, "/supervisor/limits/ann").await.json();
    has(&shown, json!({"set": limits, "is_blocked": false}));
    assert_eq!(shown["in_force"]["open_orders"], 32);
    for (wanted, reason) in [(buy(11, "1.00"), "order-too-large"), (buy(10, "5.01"), "order-too-large")] {
        assert_eq!(web.post(&ann, "/orders", wanted).await.told(), (422, reason.into()));
    }
    let open = place(&web, &ann, buy(10, "5.00")).await;
    assert_eq!(web.post(&ann, "/orders", buy(3, "1.00")).await.told(), (422, "position-limit".into()));
    web.broker.tick();
    let waits = place(&web, &ann, buy(2, "5.00")).await;
    assert_eq!(web.put(&boss, "/supervisor/kill/ann", Value::Null).await.status, 204);
    assert_eq!(order(&web, &ann, &waits).await["state"], "cancelled");
    assert_eq!(order(&web, &ann, &open).await["is_cancelling"], true);
    web.broker.tick();
    assert_eq!(order(&web, &ann, &open).await["state"], "cancelled");
    assert_eq!(web.post(&ann, "/orders", buy(1, "1.00")).await.told(), (422, "blocked".into()));
    assert_eq!(web.get(&boss, "/supervisor/limits/ann").await.json()["is_blocked"], true);
    assert_eq!(web.delete(&boss, "/supervisor/kill/ann").await.status, 204);
    assert_eq!(web.put(&boss, "/supervisor/limits/ann", json!({})).await.status, 204);
    place(&web, &ann, buy(100, "10.00")).await;
    for (wrong, status) in [
        (json!({"shares": 0}), 400),
        (json!({"open_orders": 101}), 400),
        (json!({"loss": "0"}), 422),
        (json!({"x": 1}), 400),
    ] {
        assert_eq!(web.put(&boss, "/supervisor/limits/ann", wrong.clone()).await.status, status, "{wrong}");
    }
    assert!(web.get(&boss, "/supervisor/log").await.text.contains("supervised by boss: blocked"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_becomes_of_an_order_is_told_as_it_happens() {
    let web = Web::new();
    let ann = rich(&web, "ann").await;
    web.broker.set_price("ABC", 2_000);
    let socket = open(web.serve(WebTransport::Loopback).await, vec![ann.bearer()]).await.unwrap();
    // From its first notice on the socket follows the log.
    let (mut socket, quote) =
        next(say(socket, tungstenite::Message::text("{\"watch\": [\"ABC\"]}")).await).await;
    assert_eq!(quote["kind"], "quote");
    let mut told = Vec::new();
    let number = place(&web, &ann, buy(150, "10.00")).await;
    let mut expect = Vec::new();
    web.broker.tick();
    web.broker.set_price("ABC", 900);
    web.broker.tick();
    web.broker.tick();
    expect.extend([
        ("placed", 150, "10.00"),
        ("accepted", 150, "10.00"),
        ("traded", 100, "1000.00"),
        ("filled", 50, "500.00"),
    ]);
    let second = place(&web, &ann, buy(7, "1.00")).await;
    web.broker.tick();
    web.delete(&ann, &format!("/orders/{second}")).await;
    web.broker.tick();
    expect.extend([("placed", 7, "1.00"), ("accepted", 7, "1.00"), ("cancelled", 7, "1.00")]);
    while told.len() < expect.len() {
        let (same, notice) = next(socket).await;
        socket = same;
        if notice["kind"] == "order" {
            told.push(notice);
        }
    }
    for (notice, (what, shares, amount)) in told.iter().zip(expect) {
        let expected =
            json!({"what": what, "shares": shares, "amount": amount, "side": "buy", "symbol": "ABC"});
        has(notice, expected);
    }
    assert_eq!((&told[0]["number"], &told[6]["number"]), (&json!(number), &json!(second)));
    assert_eq!(told[6]["reason"], "requested");
}

#[tokio::test]
async fn the_open_orders_say_whether_a_router_was_ever_at_work() {
    let web = Web::new();
    let ann = rich(&web, "ann").await;
    place(&web, &ann, buy(1, "10.00")).await;
    assert_eq!(web.get(&ann, "/orders?open=true").await.json()["has_router"], false, "it will wait");
    web.broker.tick();
    assert_eq!(web.get(&ann, "/orders?open=true").await.json()["has_router"], true);
}

#[tokio::test]
async fn the_history_says_of_which_stock_a_commit_and_an_order_were() {
    let web = Web::new();
    let ann = rich(&web, "ann").await;
    web.broker.set_price("ABC", 900);
    web.command(&ann, "buy", json!({"symbol": "ABC", "amount": "20.00"})).await;
    web.command(&ann, "commit-buy", json!({})).await;
    place(&web, &ann, buy(1, "10.00")).await;
    let history = web.get(&ann, "/history").await.json();
    let (order, commit) = (&history["entries"][0], &history["entries"][1]);
    assert_eq!((&order["symbol"], &commit["command"]), (&json!("ABC"), &json!("commit-buy")));
    let told = (&commit["symbol"], &commit["amount"], &commit["notes"][0]["text"]);
    assert_eq!(told, (&json!("ABC"), &json!("18.00"), &json!("2 ABC")));
}
