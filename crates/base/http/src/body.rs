//! A request's body: in time, of bounded length, of a kind that is named.
//!
//! A body that is not called by its kind is refused by who reads it: a page of another site can send forms and texts without being asked, JSON it cannot.

use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::{HeaderMap, StatusCode, header};

use crate::headers::only;
use crate::problem::Problem;

/// The body, if it comes in time and is not too long.
///
/// # Errors
/// Otherwise.
pub async fn read(request: Request, bytes_max: usize, patience: Duration) -> Result<Vec<u8>, Problem> {
    let (parts, body) = request.into_parts();
    let length =
        parts.headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    if length.is_some_and(|length: u64| length > bytes_max as u64) {
        return Err(too_large(bytes_max));
    }
    in_time(body, bytes_max, patience).await
}

async fn in_time(body: Body, bytes_max: usize, patience: Duration) -> Result<Vec<u8>, Problem> {
    match tokio::time::timeout(patience, to_bytes(body, bytes_max)).await {
        Err(_) => {
            Err(Problem::of(StatusCode::REQUEST_TIMEOUT, "the body did not arrive in time")
                .reason("too-slow"))
        }
        Ok(Err(_)) => Err(too_large(bytes_max)),
        Ok(Ok(bytes)) => Ok(bytes.into()),
    }
}

fn too_large(bytes_max: usize) -> Problem {
    let detail = format!("a body may have at most {} KiB", bytes_max >> 10);
    Problem::of(StatusCode::PAYLOAD_TOO_LARGE, detail).reason("too-large")
}

/// Whether the body is called `kind`, in UTF-8, and not compressed.
#[must_use]
pub fn is_kind(headers: &HeaderMap, kind: &str) -> bool {
    let is_plain = headers.get_all(header::CONTENT_ENCODING).iter().all(|encoding| encoding == "identity");
    is_plain && only(headers, header::CONTENT_TYPE).is_some_and(|named| names(named, kind))
}

fn names(named: &str, kind: &str) -> bool {
    let mut parts = named.split(';').map(str::trim);
    let is_named = parts.next().is_some_and(|named| named.eq_ignore_ascii_case(kind));
    is_named
        && parts.all(|parameter| match parameter.split_once('=') {
            Some((name, value)) if name.trim().eq_ignore_ascii_case("charset") => {
                value.trim().trim_matches('"').eq_ignore_ascii_case("utf-8")
            }
            _ => true,
        })
}
