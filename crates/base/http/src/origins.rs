//! Pages of other origins: whose scripts a browser lets call this server and read its answers (CORS).
//!
//! Off as long as the operator names none. A page of a named origin is let in like a program, with a token of its own: a browser is never asked to send this server's cookie along.

use axum::extract::Request;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, header};

use crate::headers::only;

const METHODS: &str = "GET, POST, PUT, PATCH, DELETE";
/// What a script may send.
const SENT: &str = "accept, authorization, content-type, idempotency-key, if-none-match";
/// What it may read, besides what browsers show of every answer.
const SHOWN: &str = "etag, location, ratelimit, ratelimit-policy, retry-after";
/// A browser asks again after so long, s.
const AGE_S: &str = "600";

/// Whether the request comes from a page of one of these origins, each written as browsers do: `https://pares.example`.
#[must_use]
pub fn is_named(headers: &HeaderMap, origins: &[String]) -> bool {
    only(headers, header::ORIGIN).is_some_and(|origin| origins.iter().any(|named| named == origin))
}

/// Whether a page of another server sent it, by what its browser says.
#[must_use]
pub fn is_other_site(headers: &HeaderMap) -> bool {
    let text = |name: &str| headers.contains_key(name).then(|| only(headers, name).unwrap_or_default());
    let fetched = text("sec-fetch-site").is_some_and(|site| !matches!(site, "same-origin" | "none"));
    let origin = text("origin").map(|origin| origin.split_once("://").map_or(origin, |(_, host)| host));
    fetched || origin.is_some_and(|origin| Some(origin) != text("host"))
}

/// Whether a browser asks on behalf of such a page what it may send: no handler sees that.
#[must_use]
pub fn is_preflight(request: &Request, origins: &[String]) -> bool {
    request.method() == Method::OPTIONS
        && request.headers().contains_key(header::ACCESS_CONTROL_REQUEST_METHOD)
        && is_named(request.headers(), origins)
}

/// Tells browsers of an answer to `asked` which page may read it.
pub fn add_headers(answer: &mut HeaderMap, asked: Option<&HeaderValue>, origins: &[String]) {
    if origins.is_empty() {
        return;
    }
    answer.append(header::VARY, HeaderValue::from_static("origin"));
    let Some(origin) = asked else { return };
    answer.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
    let headers: [(HeaderName, &str); 4] = [
        (header::ACCESS_CONTROL_ALLOW_METHODS, METHODS),
        (header::ACCESS_CONTROL_ALLOW_HEADERS, SENT),
        (header::ACCESS_CONTROL_EXPOSE_HEADERS, SHOWN),
        (header::ACCESS_CONTROL_MAX_AGE, AGE_S),
    ];
    for (name, value) in headers {
        answer.insert(name, HeaderValue::from_static(value));
    }
}

/// The request's origin, if it is a named one.
#[must_use]
pub fn named(headers: &HeaderMap, origins: &[String]) -> Option<HeaderValue> {
    headers.get(header::ORIGIN).filter(|_| is_named(headers, origins)).cloned()
}

#[cfg(test)]
mod tests {
    use axum::body::Body;

    use super::*;

    /// What an answer to that page says, besides `Vary`.
    fn headers(origin: &str, origins: &[String]) -> (HeaderMap, bool) {
        let request = Request::builder().method("OPTIONS").uri("/").header("origin", origin);
        let request = request.header("access-control-request-method", "POST").body(Body::empty()).unwrap();
        let mut answer = HeaderMap::new();
        add_headers(&mut answer, named(request.headers(), origins).as_ref(), origins);
        (answer, is_preflight(&request, origins))
    }

    #[test]
    fn only_pages_of_named_origins_may_read_answers() {
        let origins = ["https://desk.example".to_owned()];
        let (answer, is_preflight) = headers("https://desk.example", &origins);
        assert_eq!(answer[header::ACCESS_CONTROL_ALLOW_ORIGIN], "https://desk.example");
        assert!(is_preflight && !answer.contains_key(header::ACCESS_CONTROL_ALLOW_CREDENTIALS));
        for origin in
            ["https://evil.example", "http://desk.example", "https://desk.example:8443", "null", "*"]
        {
            let (answer, is_preflight) = headers(origin, &origins);
            assert_eq!(
                (answer.len(), &answer[header::VARY], is_preflight),
                (1, &HeaderValue::from_static("origin"), false)
            );
        }
        assert_eq!(
            headers("https://desk.example", &[]),
            (HeaderMap::new(), false),
            "off, unless it is asked for"
        );
    }
}
