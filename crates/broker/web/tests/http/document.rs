//! The document that describes the interface.

use serde_json::Value;

use crate::support::Web;

/// Whether it needs no session.
fn is_open(operation: &Value) -> bool {
    [serde_json::json!([]), serde_json::json!([{}])].contains(&operation["security"])
}

#[tokio::test]
async fn openapi_lists_every_path_and_each_is_served() {
    let web = Web::new();
    let document = web.ask("GET", "/openapi.json", &[], &Value::Null).await.json();
    assert!(document["openapi"].as_str().unwrap().starts_with("3.1"));
    let mut operations = 0;
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            operations += 1;
            for (status, response) in operation["responses"].as_object().unwrap() {
                assert!(response["description"].is_string(), "{method} {path} {status}: OpenAPI wants one");
            }
            let path = path.trim_start_matches("/api/v1").replace("{command}", "add").replace(['{', '}'], "");
            let answer = web.ask(&method.to_uppercase(), &path, &[], &Value::Null).await;
            if is_open(operation) {
                assert!(matches!(answer.status.as_u16(), 200 | 400), "{method} {path}: {answer:?}");
            } else {
                assert_eq!(answer.told(), (401, "no-session".into()), "{method} {path}");
            }
        }
    }
    assert_eq!(operations, 30);
    assert_eq!(document["servers"][0]["url"], "/", "generators of clients ask where it is");
}

/// Generators of clients make a function of each, and let one of two that are named alike be lost.
#[tokio::test]
async fn no_two_operations_of_the_broker_are_named_alike() {
    let document = Web::new().ask("GET", "/openapi.json", &[], &Value::Null).await.json();
    let paths = document["paths"].as_object().unwrap().values();
    let operations = paths.flat_map(|path| path.as_object().unwrap().values());
    let mut names = std::collections::BTreeSet::new();
    for operation in operations {
        let name = operation["operationId"].as_str().unwrap();
        assert!(names.insert(name.to_owned()), "{name}");
    }
}

#[tokio::test]
async fn openapi_lists_cookie_header_and_command_fields() {
    let web = Web::new();
    let document = web.ask("GET", "/openapi.json", &[], &Value::Null).await.json();
    let operation = |path: &str, method: &str| document["paths"][format!("/api/v1{path}")][method].clone();
    let needs_word = |operation: &Value| {
        let parameters = operation["parameters"].as_array().into_iter().flatten();
        parameters.filter(|parameter| parameter["name"] == "X-CSRF" && parameter["in"] == "header").count()
    };
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let needs = method != "get" && !is_open(operation);
            assert_eq!(needs_word(operation), usize::from(needs), "{method} {path}");
        }
    }
    for (path, method) in [("/supervisor/kill/{user}", "put"), ("/totp", "delete"), ("/password", "post")] {
        assert_eq!(needs_word(&operation(path, method)), 1, "{method} {path}");
    }
    let told = operation("/commands/{command}", "post")["description"].as_str().unwrap().to_owned();
    for command in pares_broker::Verb::ALL {
        let name = command.name().to_ascii_lowercase().replace('_', "-");
        assert!(told.contains(&format!("`{name}`")), "{name}");
    }
}
