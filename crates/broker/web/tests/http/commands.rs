//! Commands, and what is read of them.

use pares_broker::{AuditReplay, Verb};
use pares_web::Unavailable;
use serde_json::{Value, json};

use crate::support::{NOON_MS, Web, all_of, has};

const NONE: Value = Value::Null;

#[tokio::test]
async fn every_command_is_served_and_says_what_it_came_to() {
    let web = Web::new();
    let ann = web.somebody("ann").await;
    web.broker.set_price("ABC", 1_000);
    let (abc, hundred) = (json!({"symbol": "ABC"}), json!({"symbol": "ABC", "amount": "100.00"}));
    let at = |price: &str| json!({"symbol": "ABC", "price": price});
    let pending = json!({"kind": "pending", "shares": 10, "price": "10.00", "cost": "100.00", "until_ms": NOON_MS + 60_000});
    let settled = json!({"kind": "settled", "symbol": "ABC", "shares": 10, "amount": "100.00"});
    let cash = |cash: &str| json!({"kind": "cash", "cash": cash});
    let done = json!({"kind": "done"});
    let steps = [
        ("add", json!({"amount": "1000"}), cash("1000.00")),
        (
            "quote",
            abc.clone(),
            json!({"kind": "price", "price": "10.00", "server_ms": NOON_MS, "usable_until_ms": NOON_MS + 60_000}),
        ),
        ("buy", hundred.clone(), pending.clone()),
        ("cancel-buy", NONE, settled.clone()),
        ("buy", hundred.clone(), pending.clone()),
        ("commit-buy", json!({}), settled.clone()),
        ("sell", hundred.clone(), pending.clone()),
        ("cancel-sell", NONE, settled.clone()),
        ("sell", hundred.clone(), pending),
        ("commit-sell", NONE, settled),
        ("set-buy-amount", hundred.clone(), cash("900.00")),
        ("set-buy-trigger", at("9.00"), json!({"kind": "armed", "shares": 0})),
        ("cancel-set-buy", abc.clone(), cash("1000.00")),
        ("set-buy-amount", hundred.clone(), cash("900.00")),
        (
            "set-buy-trigger",
            at("20.00"),
            json!({"kind": "settled", "symbol": "ABC", "shares": 10, "amount": "100.00"}),
        ),
        ("set-sell-amount", hundred, done.clone()),
        ("set-sell-trigger", at("20.00"), json!({"kind": "armed", "shares": 5})),
        ("cancel-set-sell", abc, done.clone()),
        ("display-summary", NONE, done.clone()),
        ("dumplog", json!({"file": "log.xml"}), done),
    ];
    for (command, body, outcome) in &steps {
        let told = web.command(&ann, command, body.clone()).await.json();
        assert_eq!(told, json!({"command": command, "outcome": outcome}), "{command} {body}");
    }
    let tried: std::collections::BTreeSet<&str> = steps.iter().map(|(command, ..)| *command).collect();
    assert_eq!(tried.len(), Verb::ALL.len());
    assert_eq!(web.command(&ann, "steal", NONE).await.told(), (404, "no-command".into()));
}

#[tokio::test]
async fn what_a_user_has_is_shown_with_what_is_pending_and_armed() {
    let web = Web::new();
    let ann = web.somebody("ann").await;
    assert_eq!(web.get(&ann, "/account").await.told(), (404, "no-account".into()));
    web.broker.set_price("S", 1_000);
    let of = |amount: &str| json!({"symbol": "S", "amount": amount});
    let at = |price: &str| json!({"symbol": "S", "price": price});
    for (command, body) in [
        ("add", json!({"amount": "1000.00"})),
        ("buy", of("105.00")),
        ("commit-buy", NONE),
        ("buy", of("50.00")),
        ("sell", of("20.00")),
        ("set-buy-amount", of("30.00")),
        ("set-buy-trigger", at("5.00")),
        ("set-sell-amount", of("40.00")),
        ("set-sell-trigger", at("20.00")),
    ] {
        assert_eq!(web.command(&ann, command, body).await.status, 200, "{command}");
    }
    let account = web.other().get(&ann, "/account").await.json();
    assert_eq!(account["cash"], "820.00");
    assert_eq!(account["holdings"], json!([{"symbol": "S", "shares": 6}]));
    let buy = &account["buys"][0];
    has(buy, json!({"shares": 5, "amount": "50.00", "placed_ms": NOON_MS}));
    assert_eq!(buy["until_ms"], NOON_MS + 60_000);
    assert_eq!(account["sells"][0]["shares"], 2);
    assert_eq!(account["buy_triggers"], json!([{"symbol": "S", "reserve": "30.00", "price": "5.00"}]));
    let sell = json!([{"symbol": "S", "amount": "40.00", "price": "20.00", "shares": 2}]);
    assert_eq!(account["sell_triggers"], sell);
}

#[tokio::test]
async fn amounts_that_are_none_are_refused_and_stand_in_the_history() {
    let web = Web::new();
    let ann = web.somebody("ann").await;
    let thirty = format!("1{}", "0".repeat(30));
    let none = ["0", "0.00", "-1.00", "+1", "1.001", "1e3", "", " 1", "1,00", "NaN", "0x10", "１"];
    let bad = [&none[..], &[&thirty, "10000000000000.01"]].concat();
    for amount in &bad {
        let answer = web.command(&ann, "add", json!({"amount": amount})).await;
        assert_eq!(answer.told(), (422, "bad-amount".into()), "{amount:?}");
        assert!(answer.json()["detail"].to_string().contains("up to 10000000000000.00"));
        assert_eq!(answer.json()["code"], 7);
        assert_eq!(answer.headers["content-type"], "application/problem+json");
    }
    for symbol in ["", "abc", "ABCD", "A1", "A\u{0}", "..", "Ä"] {
        let told = web.command(&ann, "quote", json!({"symbol": symbol})).await.told();
        assert_eq!(told, (422, "bad-symbol".into()));
    }
    for (command, body, reason) in [
        ("add", NONE, "bad-amount"),
        ("buy", json!({"amount": "1.00"}), "bad-symbol"),
        ("add", json!({"amount": "1.00", "symbol": "A"}), "bad-symbol"),
        ("add", json!({"amount": "1.00", "price": "1.00"}), "arity"),
        ("dumplog", json!({"file": "/etc/pass wd"}), "bad-file"),
    ] {
        let told = web.command(&ann, command, body.clone()).await.told();
        assert_eq!(told, (422, reason.into()), "{command} {body}");
    }
    let entries = web.get(&ann, "/history?limit=200").await.json()["entries"].as_array().unwrap().clone();
    assert_eq!(entries.len(), bad.len() + 7 + 5);
    assert!(entries.iter().all(|entry| entry["outcome"] == "refused"));
    assert_eq!(web.get(&ann, "/account").await.status, 404);
    for body in [json!({"amount": 1}), json!({"amount": null, "more": 1}), json!([]), json!("ADD")] {
        assert_eq!(web.command(&ann, "add", body.clone()).await.status, 400, "{body}");
    }
}

#[tokio::test]
async fn idempotency_key_executes_once_at_any_front() {
    let web = Web::new();
    let (ann, bob) = (web.somebody("ann").await, web.somebody("bob").await);
    let key = |key: &str| ("idempotency-key", key.to_owned());
    let add = json!({"amount": "5.00"});
    for front in [web.clone(), web.other(), web.other()] {
        let told = front.ask("POST", "/commands/add", &[ann.bearer(), key("k1")], &add).await.json();
        assert_eq!(told["outcome"], json!({"kind": "cash", "cash": "5.00"}));
    }
    let other = json!({"amount": "6.00"});
    let answer = web.ask("POST", "/commands/add", &[ann.bearer(), key("k1")], &other).await;
    assert_eq!(answer.told(), (409, "name-taken".into()));
    let told = web.ask("POST", "/commands/add", &[bob.bearer(), key("k1")], &other).await.json();
    assert_eq!(told["outcome"]["cash"], "6.00", "another's key is another key");
    for bad in ["", "a b", &"k".repeat(65)] {
        let answer = web.ask("POST", "/commands/add", &[ann.bearer(), key(bad)], &add).await;
        assert_eq!(answer.told(), (400, "bad-key".into()), "{bad:?}");
    }
    for second in ["k1", "k2"] {
        let headers = [ann.bearer(), key("k1"), key(second)];
        let answer = web.ask("POST", "/commands/add", &headers, &add).await;
        assert_eq!(answer.told(), (400, "bad-key".into()), "a program on the way may look at the other one");
    }
    assert_eq!(web.get(&ann, "/account").await.json()["cash"], "5.00");
}

#[tokio::test]
async fn a_user_sees_nobody_elses() {
    let web = Web::new();
    let (ann, eve) = (web.somebody("ann").await, web.somebody("eve").await);
    web.command(&ann, "add", json!({"amount": "777.00"})).await;
    web.command(&eve, "add", json!({"amount": "1.00"})).await;
    for path in ["/account", "/history", "/log", "/session"] {
        let text = web.get(&eve, path).await.text;
        assert!(!text.contains("ann") && !text.contains("777.00"), "{path}: {text}");
    }
    let body = json!({"amount": "1.00", "user": "ann"});
    assert_eq!(web.command(&eve, "add", body).await.status, 400, "a command has no user but its sender");
    for path in ["/account?name=ann", "/account/ann", "/history?user=ann", "/log?user=ann"] {
        let answer = web.get(&eve, path).await;
        assert!(!answer.text.contains("777.00"), "{path}: {answer:?}");
    }
}

#[tokio::test]
async fn the_history_is_found_by_place_command_and_time() {
    let web = Web::new();
    let ann = web.somebody("ann").await;
    for count in 1..=250_u64 {
        web.pass(1_000);
        let (command, amount) = if count % 50 == 0 { ("sell", "2.00") } else { ("add", "1.00") };
        web.command(&ann, command, json!({"symbol": (command == "sell").then_some("S"), "amount": amount}))
            .await;
    }
    let pages = web.pages(&ann, "/history?limit=60", "before").await;
    let places: Vec<u64> = all_of(&pages, "entries").map(|entry| entry["place"].as_u64().unwrap()).collect();
    assert_eq!(places, (0..250).rev().collect::<Vec<_>>());
    let sells = web.get(&ann, "/history?command=sell").await.json();
    assert_eq!(sells["entries"].as_array().unwrap().len(), 5);
    assert_eq!(sells["before"], NONE);
    let (since, until) = (NOON_MS + 100_000, NOON_MS + 110_000);
    let path = format!("/history?since_ms={since}&until_ms={until}&limit=200");
    let part = [web.get(&ann, &path).await.json()];
    let places: Vec<_> = all_of(&part, "entries").map(|entry| entry["place"].as_u64()).collect();
    assert_eq!(places, (99..110).rev().map(Some).collect::<Vec<_>>());
    for bad in ["limit=0", "limit=201", "limit=x", "before=-1", "command=ADD", "since_ms=1.5", "else=1"] {
        assert_eq!(web.get(&ann, &format!("/history?{bad}")).await.status, 400, "{bad}");
    }
}

#[tokio::test]
async fn the_log_is_whole_and_adds_up() {
    let web = Web::new();
    let ann = web.somebody("ann").await;
    web.broker.set_price("S", 100);
    web.command(&ann, "add", json!({"amount": "1000.00"})).await;
    for _ in 0..60 {
        web.command(&ann, "buy", json!({"symbol": "S", "amount": "2.00"})).await;
        web.command(&ann, "commit-buy", NONE).await;
        web.command(&ann, "commit-buy", NONE).await;
    }
    let answer = web.get(&ann, "/log").await;
    assert_eq!(answer.headers["content-type"], "application/xml");
    let mut replay = AuditReplay::default();
    replay.text(&answer.text).unwrap();
    let report = replay.finish().unwrap();
    assert_eq!(answer.text.matches("<userCommand>").count(), 181);
    assert_eq!(answer.text.matches("<errorEvent>").count(), 60);
    assert_eq!(report.accounts["ann"].cash_cents, 88_000);
}

#[tokio::test]
async fn quotes_that_came_are_shown_and_none_is_asked_for() {
    let web = Web::new();
    let ann = web.somebody("ann").await;
    assert_eq!(web.get(&ann, "/quotes/S").await.told(), (404, "no-quote".into()));
    assert_eq!(web.get(&ann, "/quotes/s").await.told(), (404, "bad-symbol".into()));
    for cents in [100, 250] {
        web.pass(1_000);
        web.broker.set_price("S", cents);
    }
    web.pass(70_000);
    let quote = web.get(&ann, "/quotes/S").await.json();
    let expected = json!({"symbol": "S", "price": "2.50", "server_ms": NOON_MS + 2_000, "age_ms": 70_000});
    assert_eq!(quote, expected);
    let mut points = web.get(&ann, "/quotes/S/points").await.json();
    while points["points"].as_array().unwrap().len() < 2 {
        tokio::task::yield_now().await;
        points = web.get(&ann, "/quotes/S/points").await.json();
    }
    let point = |time_ms: u64, price: &str| json!({"time_ms": time_ms, "price": price});
    assert_eq!(points["points"], json!([point(NOON_MS + 1_000, "1.00"), point(NOON_MS + 2_000, "2.50")]));
    assert_eq!(pares_web::Broker::costs(&web.broker).hits, 0);
}

#[tokio::test]
async fn a_flood_is_told_to_wait_and_no_other_user_is() {
    let web = Web::with(|settings| settings.commands = pares_web::Allowance { burst: 5.0, per_second: 0.25 });
    let (ann, bob) = (web.somebody("ann").await, web.somebody("bob").await);
    let add = json!({"amount": "1.00"});
    let mut told = Vec::new();
    for _ in 0..7 {
        told.push(web.command(&ann, "add", add.clone()).await.status.as_u16());
    }
    assert_eq!(told, [200, 200, 200, 200, 200, 429, 429]);
    assert_eq!(web.command(&ann, "add", add.clone()).await.retry_s(), 4);
    assert_eq!(web.command(&bob, "add", add.clone()).await.status, 200);
    web.pass(4_000);
    assert_eq!(web.command(&ann, "add", add).await.json()["outcome"]["cash"], "6.00");
}

#[tokio::test]
async fn without_a_site_everything_says_so_and_nothing_of_the_inside() {
    let web = Web::new();
    let ann = web.somebody("ann").await;
    web.broker.set_away(true);
    for (method, path) in [
        ("GET", "/account"),
        ("GET", "/history"),
        ("GET", "/session"),
        ("DELETE", "/session"),
        ("POST", "/commands/add"),
        ("GET", "/log"),
        ("GET", "/supervisor/users"),
    ] {
        let answer = web.ask(method, path, &[ann.bearer()], &NONE).await;
        assert_eq!(answer.told(), (503, "unavailable".into()), "{path}");
        assert!(answer.retry_s() >= 1);
        assert!(!answer.text.contains("away"), "{answer:?}");
    }
    assert_eq!(web.sign_up("bob").await.status, 503);
    web.broker.set_away(false);
    assert_eq!(web.get(&ann, "/session").await.status, 200);
}

#[tokio::test]
async fn busy_front_says_nothing_done_and_retry_time() {
    let web = Web::new();
    let ann = web.somebody("ann").await;
    web.broker.fail(Some(Unavailable::Busy("busy".into())));
    for (method, path) in [("GET", "/account"), ("GET", "/history"), ("POST", "/commands/add")] {
        let answer = web.ask(method, path, &[ann.bearer()], &NONE).await;
        assert_eq!((answer.told(), answer.retry_s()), ((503, "busy".into()), 1), "{path}");
    }
    web.broker.fail(None);
    assert_eq!(web.get(&ann, "/session").await.status, 200);
}

#[tokio::test]
async fn a_log_that_is_not_written_is_told_from_one_that_may_not_be() {
    let web = Web::new();
    for (why, status, reason) in
        [(Unavailable::Unwritten, 503, "log-not-written"), (Unavailable::ManyFiles, 409, "too-many-files")]
    {
        let ann = web.somebody(if status == 503 { "ann" } else { "bob" }).await;
        web.broker.fail(Some(why));
        let told = web.command(&ann, "dumplog", json!({"file": "log.xml"})).await;
        assert_eq!(told.told(), (status, reason.into()), "{told:?}");
        assert_eq!(told.headers.contains_key("retry-after"), status == 503);
        web.broker.fail(None);
    }
}

#[tokio::test]
async fn a_commit_that_names_what_it_is_of_commits_nothing_else() {
    let web = Web::new();
    let ann = web.somebody("ann").await;
    web.broker.set_price("S", 1_000);
    web.command(&ann, "add", json!({"amount": "1000.00"})).await;
    let newest = async || {
        let account = web.get(&ann, "/account").await.json();
        account["buys"].as_array().unwrap().last().unwrap()["number"].clone()
    };
    web.command(&ann, "buy", json!({"symbol": "S", "amount": "20.00"})).await;
    let seen = newest().await;
    web.other().command(&ann, "buy", json!({"symbol": "S", "amount": "90.00"})).await;
    for command in ["commit-buy", "cancel-buy"] {
        let answer = web.command(&ann, command, json!({"number": seen})).await;
        assert_eq!(answer.told(), (409, "other-pending".into()), "{command}");
    }
    let told = web.command(&ann, "cancel-buy", json!({"number": newest().await})).await.json();
    assert_eq!(told["outcome"]["shares"], 9);
    let told = web.command(&ann, "commit-buy", json!({"number": seen})).await.json();
    assert_eq!(told["outcome"]["shares"], 2);
    assert_eq!(web.command(&ann, "commit-buy", json!({"number": "x"})).await.status, 400);
    let odd = web.command(&ann, "add", json!({"amount": "1.00", "number": "1"})).await;
    assert_eq!(odd.told(), (422, "arity".into()));
    let entries = web.get(&ann, "/history?command=commit-buy").await.json();
    assert_eq!(entries["entries"].as_array().unwrap().len(), 2, "a refused one stands there too");
}

#[tokio::test]
async fn without_an_account_the_quote_server_is_not_asked() {
    let web = Web::new();
    let ann = web.somebody("ann").await;
    let of = json!({"symbol": "S", "amount": "20.00"});
    for (command, body) in [("quote", json!({"symbol": "S"})), ("buy", of.clone()), ("sell", of)] {
        let answer = web.command(&ann, command, body).await;
        assert_eq!((answer.told(), &answer.json()["code"]), ((422, "no-account".into()), &json!(9)));
    }
    assert_eq!(pares_web::Broker::costs(&web.broker).hits, 0);
    web.command(&ann, "add", json!({"amount": "1.00"})).await;
    assert_eq!(web.command(&ann, "quote", json!({"symbol": "S"})).await.status, 200);
    assert_eq!(pares_web::Broker::costs(&web.broker).hits, 1);
}

#[tokio::test]
async fn fresh_quotes_of_a_user_are_so_many_and_known_ones_are_free() {
    let few = pares_web::Allowance { burst: 2.0, per_second: 0.5 };
    let web = Web::with(|settings| settings.fresh_quotes = few);
    let (ann, bob) = (web.somebody("ann").await, web.somebody("bob").await);
    for who in [&ann, &bob] {
        web.command(who, "add", json!({"amount": "1.00"})).await;
    }
    let quote = async |who, symbol: &str| web.command(who, "quote", json!({"symbol": symbol})).await;
    for symbol in ["A", "B", "A", "B", "A"] {
        assert_eq!(quote(&ann, symbol).await.status, 200);
    }
    let answer = quote(&ann, "C").await;
    assert_eq!((answer.told(), answer.retry_s()), ((429, "too-many".into()), 2));
    assert_eq!(quote(&bob, "C").await.status, 200);
    assert_eq!(quote(&ann, "C").await.status, 200, "it is known now");
    assert_eq!(pares_web::Broker::costs(&web.broker).hits, 3);
    web.pass(58_000);
    assert_eq!(quote(&ann, "A").await.status, 200, "a usable one no more: it is asked for anew");
    assert_eq!(pares_web::Broker::costs(&web.broker).hits, 4);
}

#[tokio::test]
async fn repeat_under_key_needs_no_new_quote() {
    let few = pares_web::Allowance { burst: 1.0, per_second: 0.001 };
    let web = Web::with(|settings| settings.fresh_quotes = few);
    let ann = web.somebody("ann").await;
    web.command(&ann, "add", json!({"amount": "1.00"})).await;
    let quote = async |front: &Web, symbol: &str| {
        let headers = [ann.bearer(), ("idempotency-key", "k".to_owned())];
        front.ask("POST", "/commands/quote", &headers, &json!({"symbol": symbol})).await
    };
    let first = quote(&web, "S").await.json();
    assert_eq!(first["outcome"]["kind"], "price");
    web.pass(600_000);
    for front in [&web, &web.other()] {
        assert_eq!(quote(front, "S").await.json(), first);
        assert_eq!(quote(front, "T").await.told(), (409, "name-taken".into()));
    }
    assert_eq!(pares_web::Broker::costs(&web.broker).hits, 1);
}
