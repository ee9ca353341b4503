//! Pages of other origins: whose scripts a browser lets call this server and read its answers (CORS).
//!
//! Off as long as the operator names none. A page of a named origin is let in like a program, with a token of its own: a browser is never asked to send this server's cookie along.

use std::net::Ipv6Addr;

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
/// How browsers write an origin.
const FORM: &str = "an origin is written as browsers send it: http:// or https://, the host (in ASCII and lower case), its port if it is not the usual one, and nothing behind, such as https://desk.example";

/// Whether the request comes from a page of one of these origins, each written as browsers do: `https://pares.example`.
#[must_use]
pub fn is_named(headers: &HeaderMap, origins: &[String]) -> bool {
    only(headers, header::ORIGIN).is_some_and(|origin| origins.iter().any(|named| named == origin))
}

/// Reads an origin that an operator names.
///
/// # Errors
/// If no browser writes one so: it would never be met.
pub fn checked(text: &str) -> Result<String, String> {
    let lower = text.to_ascii_lowercase();
    let plain = lower.strip_suffix('/').unwrap_or(&lower);
    let plain =
        [("https://", ":443"), ("http://", ":80")].into_iter().fold(plain, |plain, (scheme, port)| {
            if plain.starts_with(scheme) { plain.strip_suffix(port).unwrap_or(plain) } else { plain }
        });
    if !is_origin(plain) {
        return Err(FORM.to_owned());
    }
    if plain == text { Ok(lower) } else { Err(format!("browsers write this origin `{plain}`")) }
}

fn is_origin(text: &str) -> bool {
    let Some(rest) = ["https://", "http://"].iter().find_map(|scheme| text.strip_prefix(scheme)) else {
        return false;
    };
    let colon = rest.rfind(':').filter(|colon| !rest[*colon..].contains(']'));
    let (host, port) = colon.map_or((rest, None), |colon| (&rest[..colon], Some(&rest[colon + 1..])));
    // Without zeros in front.
    let is_port =
        |digits: &str| digits.parse::<u16>().is_ok_and(|port| port > 0 && port.to_string() == digits);
    let is_of_name = |byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_');
    let is_host = match host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
        Some(address) => address.parse::<Ipv6Addr>().is_ok(),
        None => !host.is_empty() && host.bytes().all(is_of_name),
    };
    is_host && port.is_none_or(is_port)
}

/// Whether a page of another server sent it, by what its browser says. A server that is reached by TLS (`is_secure`) has no pages without.
#[must_use]
pub fn is_other_site(headers: &HeaderMap, is_secure: bool) -> bool {
    let text = |name: &str| headers.contains_key(name).then(|| only(headers, name).unwrap_or_default());
    let fetched = text("sec-fetch-site").is_some_and(|site| !matches!(site, "same-origin" | "none"));
    let is_own = |origin: &str| {
        let parts = origin.split_once("://");
        parts.is_some_and(|(scheme, host)| (scheme == "https" || !is_secure) && Some(host) == text("host"))
    };
    fetched || text("origin").is_some_and(|origin| !is_own(origin))
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
    fn origins_are_named_as_browsers_send_them() {
        let rights =
            "https://desk.example http://127.0.0.1:8080 http://[::1]:8080 https://xn--bcher-kva.example:80";
        for right in rights.split(' ') {
            assert_eq!(checked(right).as_deref(), Ok(right));
        }
        let others =
            "https://Desk.Example https://desk.example/ https://desk.example:443 HTTPS://desk.example:443/";
        for other in others.split(' ') {
            let why = checked(other).unwrap_err();
            assert!(why.ends_with("`https://desk.example`"), "{other}: {why}");
        }
        let wrongs = " null * desk.example ftp://desk.example https:// https://b\u{fc}cher.example https://desk.example/a \
                      https://me@desk.example https://desk.example:0 https://desk.example:0443 https://desk.example:+1 \
                      https://desk.example:1:2 https://[::1 https://a]:1";
        for wrong in wrongs.split(' ') {
            assert_eq!(checked(wrong), Err(FORM.to_owned()), "{wrong}");
        }
    }

    #[test]
    fn own_page_has_the_scheme_of_its_server() {
        let is_other = |origin: &str, host: &str, is_secure| {
            let headers = [("origin", origin), ("host", host)];
            let headers = headers
                .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_str(value).unwrap()));
            is_other_site(&HeaderMap::from_iter(headers), is_secure)
        };
        assert!(!is_other("https://desk.example", "desk.example", true));
        assert!(!is_other("http://desk.example", "desk.example", false));
        assert!(is_other("http://desk.example", "desk.example", true));
        assert!(is_other("null", "null", false), "it has no scheme");
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
