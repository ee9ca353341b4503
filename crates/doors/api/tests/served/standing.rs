//! What a session may do is in the headers, as programs look for it that know no field of ours; and what a path must look like.

use serde_json::{Value, json};

use crate::client::{PATIENT, Served};
use crate::gateway::Gateway;

#[test]
fn limits_and_what_remains_of_them_are_in_the_headers() {
    let gateway = Gateway::start();
    let served = Served::by(&[&gateway], PATIENT);
    let (status, head, _) = served.ask_headed("GET", "/v1/status", &Value::Null);
    let header = |name: &str| {
        let lines = head.lines().filter_map(|line| line.split_once(": "));
        lines.filter(|(named, _)| *named == name).map(|(_, value)| value).collect::<Vec<_>>()
    };
    assert_eq!(status, 200, "{head}");
    // Ten at once and three a second: twelve in four seconds.
    let policy = "\"in-flight\";q=200, \"orders\";q=100, \"rate\";q=12;w=4";
    assert_eq!(header("ratelimit-policy"), [policy]);
    assert_eq!(header("ratelimit"), ["\"in-flight\";r=199, \"orders\";r=60"]);
}

#[test]
fn order_without_number_is_bad_request_not_unknown() {
    let gateway = Gateway::start();
    let served = Served::by(&[&gateway], PATIENT);
    let terms = json!({ "client_order_id": "2", "price": "5", "quantity": "1" });
    for (method, query, body) in
        [("GET", "", &Value::Null), ("PATCH", "", &terms), ("DELETE", "?client_order_id=2", &Value::Null)]
    {
        for (name, says) in [("abc", "/v1/orders/by-name/"), ("by-name/abc", "above 0")] {
            let (status, problem) = served.ask(method, &format!("/v1/orders/{name}{query}"), body);
            assert_eq!((status, &problem["reason"]), (400, &json!("bad-form")), "{method} {name}: {problem}");
            assert!(problem["detail"].as_str().unwrap().contains(says), "{problem}");
        }
    }
}

/// A browser shows a script no answer that does not name its page, and asks before it sends a token.
#[test]
fn pages_of_named_origins_read_answers_and_others_do_not() {
    let gateway = Gateway::start();
    let served = Served::by(&[&gateway], PATIENT);
    for (origin, asked) in [("https://desk.example", 204), ("https://evil.example", 405)] {
        let heads =
            ["OPTIONS", "GET"].map(|method| served.ask_from(origin, method, "/v1/health", &Value::Null));
        assert_eq!(heads.each_ref().map(|(status, ..)| *status), [asked, 200], "{origin}");
        for (_, head, _) in heads {
            assert_eq!(
                head.contains("access-control-allow-origin: https://desk.example"),
                asked == 204,
                "{head}"
            );
        }
    }
}
