//! What went wrong, as `application/problem+json` (RFC 9457). It says what a client can do about it, and nothing of the inside.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;

/// A problem document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct Problem {
    /// Always `about:blank`: the status says of which kind it is.
    #[serde(rename = "type")]
    kind: &'static str,
    /// The status in words.
    title: &'static str,
    /// The status.
    status: u16,
    /// What is wrong, for people.
    #[schema(value_type = String)]
    detail: Box<str>,
    /// What is wrong, for programs.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    reason: Option<Box<str>>,
    /// Of what the rules refuse: its number in the table of refusals.
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<u8>,
    /// Of a refusal that is recorded: whether it was sent before.
    #[serde(skip_serializing_if = "Option::is_none")]
    repeat: Option<bool>,
    /// Of the same: the total order that it has a place in.
    #[serde(skip_serializing_if = "Option::is_none")]
    shard: Option<u16>,
    /// Of the same: its place there.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    position: Option<Box<str>>,
    #[serde(skip)]
    retry_s: Option<u32>,
    #[serde(skip)]
    limit: Option<&'static str>,
}

impl Problem {
    /// A problem of that status.
    pub fn of(status: StatusCode, detail: impl Into<String>) -> Self {
        Self {
            kind: "about:blank",
            title: status.canonical_reason().unwrap_or("Error"),
            status: status.as_u16(),
            detail: detail.into().into(),
            reason: None,
            code: None,
            repeat: None,
            shard: None,
            position: None,
            retry_s: None,
            limit: None,
        }
    }

    /// The same with a word for programs.
    #[must_use]
    pub fn reason(self, reason: &str) -> Self {
        Self { reason: Some(reason.into()), ..self }
    }

    /// The same with a number of the table of refusals.
    #[must_use]
    pub fn code(self, code: u8) -> Self {
        Self { code: Some(code), ..self }
    }

    /// The same, as it is recorded at that place of a shard; or, if it `repeat`s one, as it was.
    #[must_use]
    pub fn recorded(self, (shard, position): (u16, u64), repeat: bool) -> Self {
        Self { repeat: Some(repeat), shard: Some(shard), position: Some(position.to_string().into()), ..self }
    }

    /// The same again makes sense after so long.
    #[must_use]
    pub fn retry(self, after_s: u64) -> Self {
        Self { retry_s: Some(u32::try_from(after_s).unwrap_or(u32::MAX).max(1)), ..self }
    }

    /// Of that limit nothing remains.
    #[must_use]
    pub fn limit(self, limit: &'static str) -> Self {
        Self { limit: Some(limit), ..self }
    }

    /// What was sent is not of its form.
    pub fn bad(detail: impl Into<String>) -> Self {
        Self::of(StatusCode::BAD_REQUEST, detail).reason("bad-form")
    }

    /// There is no such thing.
    pub fn unknown(detail: impl Into<String>) -> Self {
        Self::of(StatusCode::NOT_FOUND, detail).reason("not-found")
    }

    /// Who asks may not.
    pub fn forbidden(detail: impl Into<String>) -> Self {
        Self::of(StatusCode::FORBIDDEN, detail)
    }

    /// The caller has not signed in.
    #[must_use]
    pub fn no_session() -> Self {
        Self::of(StatusCode::UNAUTHORIZED, "sign in first").reason("no-session")
    }

    /// Asked too often.
    #[must_use]
    pub fn too_many(after_s: u64) -> Self {
        Self::of(StatusCode::TOO_MANY_REQUESTS, "too many requests: wait").reason("too-many").retry(after_s)
    }

    /// The path has other methods.
    #[must_use]
    pub fn other_methods() -> Self {
        Self::of(StatusCode::METHOD_NOT_ALLOWED, "this method is not allowed here").reason("other-methods")
    }

    /// Its status.
    #[must_use]
    pub fn status(&self) -> u16 {
        self.status
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let (retry_s, limit) = (self.retry_s, self.limit);
        let mut response = (status, Json(&self)).into_response();
        // A server that speaks other forms too writes it again.
        response.extensions_mut().insert(self);
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if let Some(seconds) = retry_s {
            headers.insert(header::RETRY_AFTER, seconds.into());
        }
        if let Some(limit) = limit.and_then(|limit| HeaderValue::from_str(&format!("\"{limit}\";r=0")).ok()) {
            headers.insert("ratelimit", limit);
        }
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}
