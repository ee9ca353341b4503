//! Pages: files of the program, so that a server is one file.
//!
//! A server writes nothing of a page into another, and no page contains a script: a page reads what it shows from the server's interface, and the browser may run nothing else.
//! `build/list.rs` lists a crate's own files and those in `pages/`, which all pages share.

use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};

use crate::problem::Problem;

/// A file.
#[derive(Clone, Copy, Debug)]
pub struct PageFile {
    /// Its path.
    pub path: &'static str,
    /// Its `Content-Type`.
    pub kind: &'static str,
    /// Its `ETag`.
    pub tag: &'static str,
    /// Its content.
    pub bytes: &'static [u8],
}

/// The page of that path.
#[must_use]
pub fn page(pages: &'static [PageFile], uri: &Uri, headers: &HeaderMap) -> Response {
    let Some(page) = pages.iter().find(|page| page.path == uri.path()) else {
        return Problem::unknown("there is no such resource").into_response();
    };
    let told =
        [(header::CONTENT_TYPE, page.kind), (header::CACHE_CONTROL, "no-cache"), (header::ETAG, page.tag)];
    match headers.get(header::IF_NONE_MATCH) {
        Some(has) if has == page.tag => (StatusCode::NOT_MODIFIED, told).into_response(),
        _ => (told, page.bytes).into_response(),
    }
}
