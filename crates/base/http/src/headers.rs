//! The headers of every answer: who may load it, and what browsers must not do with it. Reads headers that a request may have once only.

use axum::http::header::AsHeaderName;
use axum::http::{HeaderMap, HeaderValue, header};

const HEADERS: [(&str, &str); 6] = [
    (
        "content-security-policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; \
         base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    ),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
];

/// The value of a header that a request bears once. Programs on the way may have looked at either of two: two are none, and so is what is no text.
#[must_use]
pub fn only(headers: &HeaderMap, name: impl AsHeaderName) -> Option<&str> {
    let mut values = headers.get_all(name).iter();
    values.next().filter(|_| values.next().is_none())?.to_str().ok()
}

/// Adds it. Where callers come by TLS, browsers never come without again.
pub fn add_headers(headers: &mut HeaderMap, is_secure: bool) {
    for (name, value) in HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    if is_secure {
        headers.insert(header::STRICT_TRANSPORT_SECURITY, HeaderValue::from_static("max-age=31536000"));
    }
}

/// An answer that is nobody's but its caller's: nothing on the way keeps it.
pub fn forbid_keeping(headers: &mut HeaderMap) {
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
}
