//! The documents that are served are those that are published. `UPDATE_EXPECT=1` writes them again.

use std::collections::BTreeSet;

#[test]
fn the_published_documents_are_those_that_are_served() {
    expect_test::expect_file!["../../../../docs/protocols/http-openapi.json"]
        .assert_eq(&pares_api::document());
    expect_test::expect_file!["../../../../docs/protocols/http-asyncapi.json"]
        .assert_eq(&pares_api::asyncapi());
}

#[test]
fn the_document_says_where_its_server_is() {
    let document: serde_json::Value = serde_json::from_str(&pares_api::document()).unwrap();
    assert_eq!(document["servers"][0]["url"], "/");
}

/// Generators of clients make a function of each, and let one of two that are named alike be lost.
#[test]
fn no_two_operations_are_named_alike() {
    let document: serde_json::Value = serde_json::from_str(&pares_api::document()).unwrap();
    let paths = document["paths"].as_object().unwrap().values();
    let operations = paths.flat_map(|path| path.as_object().unwrap().values());
    let mut names = BTreeSet::new();
    for operation in operations {
        let name = operation["operationId"].as_str().unwrap();
        assert!(names.insert(name.to_owned()), "{name}");
    }
}
