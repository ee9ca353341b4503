//! The document that is served is the one that is published. `UPDATE_EXPECT=1` writes it anew.

#[test]
fn the_published_document_is_the_one_that_is_served() {
    let file = expect_test::expect_file!["../../../../docs/protocols/http-openapi.json"];
    file.assert_eq(&pares_api::document());
}
