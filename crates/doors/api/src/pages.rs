//! The pages: files in `pages/`, and those that all pages share (`pares-http`), listed by `build.rs`.

use axum::http::{HeaderMap, Uri};
use axum::response::Response;
use pares_http::pages::{self, PageFile};

const PAGES: &[PageFile] = include!(concat!(env!("OUT_DIR"), "/pages.rs"));

/// The page of that path.
pub(crate) async fn page(uri: Uri, headers: HeaderMap) -> Response {
    pages::page(PAGES, &uri, &headers)
}
