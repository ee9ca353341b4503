//! What supervisors see, and others do not.

use serde_json::{Value, json};

use crate::support::{Signed, Web, all_of};

async fn rights(web: &Web, by: &Signed, of: &str, rights: Value) -> (u16, String) {
    web.post(by, &format!("/supervisor/people/{of}/rights"), json!({"rights": rights})).await.told()
}

#[tokio::test]
async fn only_a_supervisor_sees_everybody() {
    let web = Web::new();
    let (ann, boss) = (web.somebody("ann").await, web.supervisor("boss").await);
    web.command(&ann, "add", json!({"amount": "5.00"})).await;
    web.command(&ann, "quote", json!({"symbol": "S"})).await;
    for path in ["log", "users", "costs"] {
        assert_eq!(web.get(&ann, &format!("/supervisor/{path}")).await.told(), (403, "no-right".into()));
    }
    let users = web.get(&boss, "/supervisor/users").await.json();
    let expected = json!([
        {"name": "ann", "rights": ["trader"], "cash": "5.00"},
        {"name": "boss", "rights": ["supervisor"]},
    ]);
    assert_eq!(users, json!({"users": expected}));
    assert!(web.get(&boss, "/supervisor/log").await.text.contains("<username>ann</username>"));
    let costs = web.get(&boss, "/supervisor/costs").await.json();
    assert_eq!(costs, json!({"front_hits": 1, "front_dollars": "0.05", "front_clock_ahead_ms": 0}));
    assert_eq!(web.command(&boss, "add", json!({"amount": "5.00"})).await.told(), (403, "no-right".into()));
}

#[tokio::test]
async fn rights_of_others_change_at_once_and_ones_own_never() {
    let web = Web::new();
    let (ann, boss) = (web.somebody("ann").await, web.supervisor("boss").await);
    assert_eq!(rights(&web, &ann, "ann", json!(["supervisor"])).await, (403, "no-right".into()));
    assert_eq!(rights(&web, &boss, "boss", json!([])).await, (403, "own-rights".into()));
    assert_eq!(rights(&web, &boss, "nobody", json!([])).await, (404, "no-person".into()));
    assert_eq!(rights(&web, &boss, "ann", json!(["god"])).await.0, 400);
    assert_eq!(rights(&web, &boss, "ann", json!(["supervisor", "supervisor"])).await.0, 204);
    assert_eq!(web.get(&ann, "/session").await.json()["rights"], json!(["supervisor"]));
    assert_eq!(web.other().get(&ann, "/supervisor/users").await.status, 200);
    assert_eq!(rights(&web, &boss, "ann", json!([])).await.0, 204);
    assert_eq!(web.command(&ann, "add", json!({"amount": "1.00"})).await.status, 403);
}

#[tokio::test]
async fn many_users_come_in_pages() {
    let web = Web::new();
    let boss = web.supervisor("boss").await;
    for number in 0..230 {
        let line = format!("[1] ADD,u{number},5.00");
        let command = pares_broker::WorkloadLine::parse(line.as_bytes()).unwrap().command;
        let (user, asked) = (command.user.clone(), pares_broker::Asked::Command { command, fault: None });
        pares_web::Broker::ask(&web.broker, user, None, asked).await.unwrap();
    }
    let pages = web.pages(&boss, "/supervisor/users", "from").await;
    let names: std::collections::BTreeSet<&str> =
        all_of(&pages, "users").map(|user| user["name"].as_str().unwrap()).collect();
    assert_eq!((names.len(), pages.len()), (231, 3));
}
