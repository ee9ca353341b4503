//! The pages: files of this program (`pages/`, listed by `build.rs`), so that a server is one file.
//!
//! Nothing of a page is written into another by this server, and no script stands in a page: what a page shows it reads from the API, and the browser is told to run nothing else.

use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};

use crate::problem::Problem;

/// Each page's path, kind, tag and bytes.
const PAGES: &[(&str, &str, &str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/pages.rs"));

/// The page of that path.
pub(crate) async fn page(uri: Uri, headers: HeaderMap) -> Response {
    let Some((_, kind, tag, bytes)) = PAGES.iter().find(|(path, ..)| *path == uri.path()) else {
        return Problem::unknown("there is nothing of this name").into_response();
    };
    let told = [(header::CONTENT_TYPE, *kind), (header::CACHE_CONTROL, "no-cache"), (header::ETAG, *tag)];
    match headers.get(header::IF_NONE_MATCH) {
        Some(has) if has == tag => (StatusCode::NOT_MODIFIED, told).into_response(),
        _ => (told, *bytes).into_response(),
    }
}
