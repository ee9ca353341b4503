//! A request's body: JSON, in time, of bounded length.
//!
//! A body that is not called JSON is refused: a page of another site can send forms and texts without being asked, JSON it cannot.

use axum::extract::{FromRequest, Request};
use axum::http::StatusCode;
use pares_http::body;
use serde::de::DeserializeOwned;

use crate::app::Shared;
use crate::problem::{Answer, Problem};

/// Longest body, bytes.
pub(crate) const BODY_BYTES_MAX: usize = 16 << 10;

/// What a body says. No body at all is an empty object.
pub(crate) struct Said<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequest<Shared> for Said<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &Shared) -> Answer<Self> {
        let is_json = body::is_kind(request.headers(), "application/json");
        match body::read(request, BODY_BYTES_MAX, app.settings.patience).await?.as_slice() {
            [] => said(b"{}"),
            _ if !is_json => {
                let detail =
                    "the body must be uncompressed JSON in UTF-8, with Content-Type: application/json";
                Err(Problem::of(StatusCode::UNSUPPORTED_MEDIA_TYPE, detail).reason("not-json"))
            }
            bytes => said(bytes),
        }
    }
}

fn said<T: DeserializeOwned>(bytes: &[u8]) -> Answer<Said<T>> {
    object(bytes).map(Said).map_err(|why| Problem::bad(format!("the body: {why}")))
}

/// An object's fields. An array is none: serde takes its values for the fields in the order in which they stand in this program, which no client knows.
pub(crate) fn object<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, String> {
    if bytes.trim_ascii_start().starts_with(b"[") {
        return Err("an array instead of an object".to_owned());
    }
    serde_json::from_slice(bytes).map_err(|why| why.to_string())
}
