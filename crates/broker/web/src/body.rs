//! A request's body: JSON, in time, of bounded length.
//!
//! A body that is not called JSON is refused: a page of another site can send forms and texts without being asked, JSON it cannot.

use axum::body::{Body, to_bytes};
use axum::extract::{FromRequest, Request};
use axum::http::{StatusCode, header};
use serde::de::DeserializeOwned;

use crate::app::Shared;
use crate::problem::Problem;

/// Longest body, bytes.
pub(crate) const BODY_BYTES_MAX: usize = 16 << 10;

/// What a body says. No body at all is an empty object.
pub(crate) struct Said<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequest<Shared> for Said<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &Shared) -> Result<Self, Problem> {
        let (parts, body) = request.into_parts();
        let kind = parts.headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        let is_plain =
            parts.headers.get_all(header::CONTENT_ENCODING).iter().all(|encoding| encoding == "identity");
        let is_json = is_plain && kind.is_some_and(is_json);
        let length =
            parts.headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
        if length.is_some_and(|length: u64| length > BODY_BYTES_MAX as u64) {
            return Err(too_large());
        }
        let bytes = in_time(body, app).await?;
        match bytes.as_slice() {
            [] => said(b"{}"),
            _ if !is_json => {
                let detail = "the body is JSON in UTF-8, not compressed, with Content-Type: application/json";
                Err(Problem::of(StatusCode::UNSUPPORTED_MEDIA_TYPE, detail).reason("not-json"))
            }
            bytes => said(bytes),
        }
    }
}

fn is_json(kind: &str) -> bool {
    let mut parts = kind.split(';').map(str::trim);
    let is_named = parts.next().is_some_and(|kind| kind.eq_ignore_ascii_case("application/json"));
    is_named
        && parts.all(|parameter| match parameter.split_once('=') {
            Some((name, value)) if name.trim().eq_ignore_ascii_case("charset") => {
                value.trim().trim_matches('"').eq_ignore_ascii_case("utf-8")
            }
            _ => true,
        })
}

async fn in_time(body: Body, app: &Shared) -> Result<Vec<u8>, Problem> {
    let reading = tokio::time::timeout(app.settings.patience, to_bytes(body, BODY_BYTES_MAX));
    match reading.await {
        Err(_) => {
            Err(Problem::of(StatusCode::REQUEST_TIMEOUT, "the body did not come in time").reason("too-slow"))
        }
        Ok(Err(_)) => Err(too_large()),
        Ok(Ok(bytes)) => Ok(bytes.into()),
    }
}

fn too_large() -> Problem {
    Problem::of(StatusCode::PAYLOAD_TOO_LARGE, "a body is 16 KiB at most").reason("too-large")
}

fn said<T: DeserializeOwned>(bytes: &[u8]) -> Result<Said<T>, Problem> {
    object(bytes).map(Said).map_err(|why| Problem::bad(format!("the body: {why}")))
}

/// An object's fields. An array is none: serde takes its values for the fields in the order in which they stand in this program, which no client is told.
pub(crate) fn object<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, String> {
    if bytes.trim_ascii_start().starts_with(b"[") {
        return Err("an array, and no object".to_owned());
    }
    serde_json::from_slice(bytes).map_err(|why| why.to_string())
}
