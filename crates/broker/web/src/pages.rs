//! The pages: files of this program, so that a server is one file.
//!
//! Nothing of a page is written into another by this server, and no script stands in a page: what a page shows it reads from the API, and the browser is told to run nothing else.

use axum::http::{Uri, header};
use axum::response::{IntoResponse, Response};

use crate::problem::Problem;

/// A page's path, kind and bytes.
macro_rules! pages {
    ($($path:literal $kind:literal $file:literal)*) => {
        &[$(($path, $kind, include_bytes!(concat!("../pages/", $file)))),*]
    };
}

const PAGES: &[(&str, &str, &[u8])] = pages! {
    "/" "text/html; charset=utf-8" "index.html"
};

/// The page of that path.
pub(crate) async fn page(uri: Uri) -> Response {
    match PAGES.iter().find(|(path, ..)| *path == uri.path()) {
        Some((_, kind, bytes)) => {
            ([(header::CONTENT_TYPE, *kind), (header::CACHE_CONTROL, "no-cache")], *bytes).into_response()
        }
        None => Problem::unknown("there is nothing of this name").into_response(),
    }
}
