//! What went wrong, as `application/problem+json` (RFC 9457). It says what a client can do about it, and nothing of the inside.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use pares_broker::Refusal;
use serde::Serialize;
use utoipa::ToSchema;

use crate::broker::Unavailable;

/// A problem document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct Problem {
    /// Always `about:blank`: the status says of which kind it is.
    #[serde(rename = "type")]
    kind: &'static str,
    /// The status in words.
    title: &'static str,
    /// The status.
    status: u16,
    /// What is wrong, for people.
    detail: String,
    /// What is wrong, for programs.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// Of a refused command: its number in the table of refusals.
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<u8>,
    #[serde(skip)]
    retry_s: Option<u64>,
}

impl Problem {
    pub(crate) fn of(status: StatusCode, detail: impl Into<String>) -> Self {
        Self {
            kind: "about:blank",
            title: status.canonical_reason().unwrap_or("Error"),
            status: status.as_u16(),
            detail: detail.into(),
            reason: None,
            code: None,
            retry_s: None,
        }
    }

    pub(crate) fn reason(self, reason: &str) -> Self {
        Self { reason: Some(reason.to_owned()), ..self }
    }

    /// The same again makes sense after so long.
    pub(crate) fn retry(self, after_s: u64) -> Self {
        Self { retry_s: Some(after_s.max(1)), ..self }
    }

    pub(crate) fn bad(detail: impl Into<String>) -> Self {
        Self::of(StatusCode::BAD_REQUEST, detail).reason("bad-form")
    }

    pub(crate) fn unknown(detail: impl Into<String>) -> Self {
        Self::of(StatusCode::NOT_FOUND, detail).reason("not-found")
    }

    pub(crate) fn forbidden(detail: impl Into<String>) -> Self {
        Self::of(StatusCode::FORBIDDEN, detail)
    }

    pub(crate) fn no_session() -> Self {
        Self::of(StatusCode::UNAUTHORIZED, "sign in first").reason("no-session")
    }

    pub(crate) fn too_many(after_s: u64) -> Self {
        Self::of(StatusCode::TOO_MANY_REQUESTS, "too many requests: wait").reason("too-many").retry(after_s)
    }

    pub(crate) fn unavailable() -> Self {
        let detail = "no answer in time: it may be done or not, and the same under the same Idempotency-Key is done once";
        Self::of(StatusCode::SERVICE_UNAVAILABLE, detail).reason("unavailable").retry(1)
    }

    pub(crate) fn busy() -> Self {
        let detail =
            "too much waits at this server: nothing was done, and later, or at another one, it may be";
        Self::of(StatusCode::SERVICE_UNAVAILABLE, detail).reason("busy").retry(1)
    }

    fn many_files() -> Self {
        let detail =
            "you have as many files of logs as anybody may: name one of them, and it is written anew";
        Self::of(StatusCode::CONFLICT, detail).reason("too-many-files")
    }

    fn not_written() -> Self {
        let detail = "the command was done, but the log could not be written: the same under the same Idempotency-Key writes it";
        Self::of(StatusCode::SERVICE_UNAVAILABLE, detail).reason("log-not-written").retry(1)
    }

    /// The rules refuse it.
    pub(crate) fn refused(refusal: Refusal) -> Self {
        let status = match refusal {
            Refusal::PersonTaken | Refusal::PersonChanged | Refusal::OtherPending | Refusal::OrderEnded => {
                StatusCode::CONFLICT
            }
            Refusal::NoPerson | Refusal::NoOrder => StatusCode::NOT_FOUND,
            Refusal::NoRight | Refusal::OwnLimits => StatusCode::FORBIDDEN,
            Refusal::CodeUsed => StatusCode::UNAUTHORIZED,
            Refusal::TooManyTries => StatusCode::TOO_MANY_REQUESTS,
            Refusal::ClockOff => StatusCode::SERVICE_UNAVAILABLE,
            _ => StatusCode::UNPROCESSABLE_ENTITY,
        };
        Self {
            retry_s: (refusal == Refusal::ClockOff).then_some(10),
            code: Some(refusal as u8),
            ..Self::of(status, refusal.to_string()).reason(&reason_of(refusal))
        }
    }
}

/// `InsufficientCash` is `insufficient-cash`.
pub(crate) fn reason_of(refusal: Refusal) -> String {
    let mut words = String::new();
    for letter in format!("{refusal:?}").chars() {
        if letter.is_ascii_uppercase() && !words.is_empty() {
            words.push('-');
        }
        words.push(letter.to_ascii_lowercase());
    }
    words
}

impl From<Unavailable> for Problem {
    fn from(why: Unavailable) -> Self {
        match why {
            Unavailable::Silent(_) => Self::unavailable(),
            Unavailable::Busy(_) => Self::busy(),
            Unavailable::ManyFiles => Self::many_files(),
            Unavailable::Unwritten => Self::not_written(),
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let retry_s = self.retry_s;
        let mut response = (status, Json(self)).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if let Some(seconds) = retry_s {
            headers.insert(header::RETRY_AFTER, seconds.into());
        }
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}
