//! Requests that nobody's page sends.

use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::Request;
use futures_util::stream;
use pares_random::Random;
use serde_json::json;

use crate::support::{PASSWORD, Signed, Web};

fn add(who: &Signed) -> axum::http::request::Builder {
    let (name, value) = who.bearer();
    Request::post("/api/v1/commands/add").header(name, value).header("content-type", "application/json")
}

#[tokio::test]
async fn a_body_is_small_and_comes_in_time_and_is_json() {
    let web = Web::with(|settings| settings.patience = Duration::from_millis(200));
    let ann = web.somebody("ann").await;
    let huge = format!("{{\"amount\": \"{}\"}}", "1".repeat(16 << 10));
    assert_eq!(web.send(add(&ann).body(Body::from(huge.clone())).unwrap()).await.status, 413);
    let claimed = add(&ann).header("content-length", "99999999999").body(Body::from("{}")).unwrap();
    assert_eq!(web.send(claimed).await.told(), (413, "too-large".into()));
    let endless = stream::repeat_with(|| Ok::<_, std::io::Error>(Bytes::from_static(&[b' '; 1_024])));
    assert_eq!(web.send(add(&ann).body(Body::from_stream(endless)).unwrap()).await.status, 413);
    let never = stream::pending::<Result<Bytes, std::io::Error>>();
    let answer = web.send(add(&ann).body(Body::from_stream(never)).unwrap()).await.told();
    assert_eq!(answer, (408, "too-slow".into()));
    let deep = "[".repeat(10_000);
    for body in
        [&b"{"[..], b"\xff\xfe", b"{} {}", b"nul", b"{\"amount\":\"1\",\"amount\":\"2\"}", deep.as_bytes()]
    {
        let found = web.send(add(&ann).body(Body::from(body.to_vec())).unwrap()).await.status;
        assert_eq!(found, 400, "{body:?}");
    }
    for kind in [
        "text/plain",
        "application/x-www-form-urlencoded",
        "application/jsonp",
        "application/json; charset=utf-16",
    ] {
        let (name, value) = ann.bearer();
        let request = Request::post("/api/v1/commands/add").header(name, value).header("content-type", kind);
        let found = web.send(request.body(Body::from("{\"amount\":\"1\"}")).unwrap()).await.status;
        assert_eq!(found, 415, "{kind}");
    }
    let packed = add(&ann).header("content-encoding", "gzip").body(Body::from("{\"amount\":\"1\"}")).unwrap();
    assert_eq!(web.send(packed).await.status, 415);
    assert_eq!(web.get(&ann, "/account").await.status, 404, "none of it was done");
}

#[tokio::test]
async fn a_body_that_is_an_array_is_refused_at_every_path() {
    let web = Web::new();
    let (ann, sue) = (web.somebody("ann").await, web.supervisor("sue").await);
    for (method, path, body) in [
        ("POST", "/people", json!(["bob", PASSWORD])),
        ("POST", "/session", json!(["ann", PASSWORD, null])),
        ("POST", "/password", json!([PASSWORD, "another horse"])),
        ("POST", "/totp", json!([PASSWORD])),
        ("POST", "/commands/add", json!([null, "7.00", null, null, null])),
        ("POST", "/orders", json!(["ABC", "buy", 1, "1.00", null])),
        ("PUT", "/supervisor/limits/ann", json!([])),
        ("POST", "/supervisor/people/ann/rights", json!([["trader"]])),
    ] {
        let asks = if path.starts_with("/supervisor") { &sue } else { &ann };
        let answer = web.ask(method, path, &[asks.bearer()], &body).await;
        assert_eq!(answer.told(), (400, "bad-form".into()), "{method} {path}: {answer:?}");
    }
    assert_eq!(web.get(&ann, "/account").await.status, 404, "none of it was done");
}

#[tokio::test]
async fn a_name_that_is_not_this_servers_is_answered_nothing() {
    let web = Web::with(|settings| settings.hosts = vec!["pares.example".to_owned()]);
    for (host, status) in [
        ("evil.example:4700", 421),
        ("127.0.0.1:4700", 200),
        ("localhost", 200),
        ("[::1]:4700", 200),
        ("pares.example", 200),
    ] {
        let request = Request::get("/api/v1/health").header("host", host).body(Body::empty()).unwrap();
        assert_eq!(web.send(request).await.status, status, "{host}");
    }
}

#[tokio::test]
async fn a_path_that_is_no_text_is_a_problem() {
    let web = Web::new();
    let answer = web.send(Request::get("/api/v1/quotes/%ff").body(Body::empty()).unwrap()).await;
    assert_eq!(answer.status, 400);
    assert_eq!(answer.headers["content-type"], "application/problem+json");
}

#[tokio::test]
async fn every_answer_tells_browsers_to_run_nothing_of_others() {
    let web = Web::new();
    let ann = web.somebody("ann").await;
    for path in [
        "/",
        "/api/v1/account",
        "/api/v1/nothing",
        "/nothing",
        "/..%2f..%2fetc/passwd",
        "/%00",
        "/api/v1/quotes/%ff",
    ] {
        let (name, value) = ann.bearer();
        let answer = web.send(Request::get(path).header(name, value).body(Body::empty()).unwrap()).await;
        let policy = answer.headers["content-security-policy"].to_str().unwrap();
        assert!(policy.contains("default-src 'none'") && policy.contains("frame-ancestors 'none'"), "{path}");
        assert!(!policy.contains("unsafe"), "{path}");
        assert_eq!(answer.headers["x-content-type-options"], "nosniff", "{path}");
        assert!(path == "/" || answer.status.is_client_error(), "{path}: {answer:?}");
        let is_api = path.starts_with("/api");
        assert_eq!(
            answer.headers.get("cache-control").is_some_and(|told| told == "no-store"),
            is_api,
            "{path}"
        );
    }
}

#[tokio::test]
async fn a_method_that_a_path_does_not_have_is_a_problem_too() {
    let web = Web::new();
    let ann = web.somebody("ann").await;
    for (method, path) in
        [("PUT", "/people"), ("GET", "/commands/add"), ("DELETE", "/account"), ("POST", "/log")]
    {
        let answer = web.ask(method, path, &[ann.bearer()], &serde_json::Value::Null).await;
        assert_eq!(answer.told(), (405, "other-methods".into()), "{method} {path}");
        assert_eq!(answer.headers["content-type"], "application/problem+json");
    }
}

/// Good requests, each with a session, as method, path, headers and body.
fn good(who: &Signed) -> Vec<[Vec<u8>; 5]> {
    let request = |method: &str, path: &str, body: &str| {
        let cookie = format!("a=1; pares_session={}", who.token);
        [method.into(), path.into(), cookie.into(), who.csrf.clone().into(), body.into()]
    };
    vec![
        request("POST", "/api/v1/commands/buy", "{\"symbol\":\"ABC\",\"amount\":\"12.34\"}"),
        request("POST", "/api/v1/commands/dumplog", "{\"file\":\"a.xml\"}"),
        request(
            "POST",
            "/api/v1/session",
            "{\"name\":\"ann\",\"password\":\"another horse\",\"code\":\"123456\"}",
        ),
        request("POST", "/api/v1/people", "{\"name\":\"bob\",\"password\":\"correct horse\"}"),
        request("POST", "/api/v1/totp/confirm", "{\"code\":\"123456\"}"),
        request("GET", "/api/v1/history?before=5&limit=2&command=buy&since_ms=1&until_ms=2", ""),
        request("GET", "/api/v1/quotes/ABC/points", ""),
        request("GET", "/api/v1/supervisor/users?from=ann", ""),
        request("POST", "/api/v1/supervisor/people/ann/rights", "{\"rights\":[\"trader\"]}"),
    ]
}

#[tokio::test]
async fn damaged_requests_never_cause_server_errors() {
    let web = Web::new();
    let ann = web.somebody("ann").await;
    let (good, mut random) = (good(&ann), Random::new(1));
    let mut draw = |below: usize| random.index(below);
    let (mut sent, mut done) = (0, 0);
    for _ in 0..6_000 {
        let mut parts = good[draw(good.len())].clone();
        for _ in 0..draw(3) {
            let part = &mut parts[draw(5)];
            let at = draw(part.len() + 1);
            match draw(4) {
                0 => part.truncate(at),
                1 => part.insert(at, draw(256) as u8),
                2 => part.extend_from_within(at..),
                _ => part.get_mut(at).into_iter().for_each(|byte| *byte ^= 1 << draw(8)),
            }
        }
        let [method, path, cookie, csrf, body] = parts;
        let (Ok(method), Ok(path)) = (String::from_utf8(method), String::from_utf8(path)) else { continue };
        let request =
            Request::builder().method(method.as_str()).uri(path).header("content-type", "application/json");
        let request = request.header("cookie", cookie).header("x-csrf", csrf).header("host", "here");
        // What is no HTTP at all does not come so far.
        let Ok(request) = request.body(Body::from(body.clone())) else { continue };
        let answer = web.send(request).await;
        (sent, done) = (sent + 1, done + usize::from(answer.status.is_success()));
        assert!(!answer.status.is_server_error(), "{body:?}: {answer:?}");
        let is_problem =
            answer.headers.get("content-type").is_some_and(|kind| kind == "application/problem+json");
        let is_empty_head = method == "HEAD" || answer.text.is_empty();
        assert!(answer.status.is_success() || is_problem || is_empty_head, "{body:?}: {answer:?}");
    }
    assert!(sent > 4_000 && done > 500, "{done} of {sent}");
}
