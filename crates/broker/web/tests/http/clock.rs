//! A front whose clock is off, as the pages see it.

use pares_web::service;
use serde_json::json;

use crate::support::{PASSWORD, Web};

#[tokio::test]
async fn sign_in_at_wrong_clock_works_at_another_front() {
    let web = Web::new();
    let ann = web.somebody("ann").await;
    let mut off = web.other();
    off.router = service(web.broker.with_clock_off(), web.settings.clone());
    for name in ["ann", "nobody"] {
        assert_eq!(off.try_in(name, PASSWORD).await.told(), (503, "clock-off".into()));
    }
    let asked = json!({"password": PASSWORD, "new": "another horse"});
    let told = off.ask("POST", "/password", &[ann.bearer()], &asked).await.told();
    assert_eq!(told, (503, "clock-off".into()));
    assert_eq!(off.get(&ann, "/session").await.status, 200, "who is signed in stays so");
    web.sign_in("ann").await;
}
