//! JSON and XML: the same forms in both, by `Content-Type` and `Accept`.
//!
//! An XML document may define words of its own that unfold without end, and name files to be read. Here what begins like a definition is refused before anything is read of it.

use axum::extract::{FromRequest, FromRequestParts, Query, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use pares_http::body;
use pares_http::problem::Problem;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::app::Shared;

const JSON: &str = "application/json";
const XML: &str = "application/xml";
const TEXT_XML: &str = "text/xml";
/// Longest body, bytes.
pub(crate) const BODY_BYTES_MAX: usize = 64 << 10;
/// Elements within elements: a form has a list in it at most.
const DEPTH_MAX: usize = 8;

/// What a body says.
pub(crate) struct Said<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequest<Shared> for Said<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &Shared) -> Result<Self, Problem> {
        let is_json = body::is_kind(request.headers(), JSON);
        let is_xml = [XML, TEXT_XML].iter().any(|kind| body::is_kind(request.headers(), kind));
        let bytes = body::read(request, BODY_BYTES_MAX, app.settings.patience).await?;
        let said = match (is_json, is_xml) {
            (true, _) => of_json(&bytes),
            (_, true) => of_xml(&bytes),
            _ => {
                let detail = "the body must be JSON or XML in UTF-8, uncompressed, with its Content-Type";
                return Err(Problem::of(StatusCode::UNSUPPORTED_MEDIA_TYPE, detail).reason("other-kind"));
            }
        };
        said.map(Self).map_err(|why| Problem::bad(format!("the body: {why}")))
    }
}

/// An object's fields. An array is none: serde takes its values for the fields in the order in which this program declares them, which no client knows.
pub(crate) fn of_json<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, String> {
    if !bytes.trim_ascii_start().starts_with(b"{") {
        return Err("no object".to_owned());
    }
    serde_json::from_slice(bytes).map_err(|why| why.to_string())
}

/// An element's elements.
pub(crate) fn of_xml<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, String> {
    let text = std::str::from_utf8(bytes).map_err(|_| "not UTF-8")?;
    if text.contains("<!") {
        return Err("definitions, comments and CDATA are not supported".to_owned());
    }
    is_plain(text)?;
    quick_xml::de::from_str(text).map_err(|why| why.to_string())
}

/// Whether that is one element with nothing beside it, without attributes, and not deep: what a form says, and nothing that would be read over.
fn is_plain(text: &str) -> Result<(), &'static str> {
    let (before, tags) = text.split_once('<').ok_or("no element")?;
    let (mut depth, mut roots, mut is_bare) = (0_usize, 0, before.trim().is_empty());
    for (at, tag) in tags.split('<').enumerate() {
        let (tag, behind) = tag.split_once('>').ok_or("a tag has no end")?;
        let name = tag.trim_start_matches('/').trim_end_matches('/').trim_end();
        match tag.as_bytes() {
            [b'?', ..] if at == 0 && is_declaration(tag) => {}
            _ if name.contains(|one: char| one.is_whitespace() || "?\"'=".contains(one)) => {
                return Err("attributes, instructions and encodings other than UTF-8 are not supported");
            }
            [b'/', ..] => depth = depth.checked_sub(1).ok_or("an end tag without a start tag")?,
            _ if depth >= DEPTH_MAX => return Err("elements are nested too deeply"),
            bytes => {
                roots += usize::from(depth == 0);
                depth += usize::from(!bytes.ends_with(b"/"));
            }
        }
        is_bare &= depth > 0 || behind.trim().is_empty();
    }
    if roots == 1 && is_bare { Ok(()) } else { Err("there must be exactly one root element") }
}

/// Whether it is what XML may begin with, and names no other encoding.
fn is_declaration(tag: &str) -> bool {
    let said = tag.strip_prefix("?xml").and_then(|said| said.strip_suffix('?'));
    said.is_some_and(|said| {
        let said = said.to_ascii_lowercase();
        said.starts_with(char::is_whitespace) && (!said.contains("encoding") || said.contains("utf-8"))
    })
}

/// In which of the two the answer is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spoken {
    Json,
    Xml,
}

impl FromRequestParts<Shared> for Spoken {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &Shared) -> Result<Self, Problem> {
        wanted(&parts.headers).ok_or_else(|| {
            Problem::of(StatusCode::NOT_ACCEPTABLE, "only application/json and application/xml are available")
                .reason("other-kind")
        })
    }
}

/// The one of the greatest weight, of several the first; JSON if nothing is said.
pub(crate) fn wanted(headers: &HeaderMap) -> Option<Spoken> {
    let mut best = None;
    let mut has_said = false;
    for value in headers.get_all(header::ACCEPT) {
        for range in value.to_str().ok()?.split(',').map(str::trim).filter(|range| !range.is_empty()) {
            has_said = true;
            let (kind, parameters) = range.split_once(';').unwrap_or((range, ""));
            let spoken = match kind.trim().to_ascii_lowercase().as_str() {
                JSON | "*/*" | "application/*" => Spoken::Json,
                XML | TEXT_XML => Spoken::Xml,
                _ => continue,
            };
            let thousandths = weight(parameters);
            if thousandths > best.map_or(0, |(most, _)| most) {
                best = Some((thousandths, spoken));
            }
        }
    }
    if has_said { best.map(|(_, spoken)| spoken) } else { Some(Spoken::Json) }
}

/// The weight among a range's parameters, in thousandths: three digits at most follow its point.
fn weight(parameters: &str) -> u32 {
    let named = parameters.split(';').find_map(|one| one.trim().strip_prefix("q="));
    let Some((whole, digits)) = named.map(|q| q.split_once('.').unwrap_or((q, ""))) else { return 1_000 };
    let digits: String = digits.chars().chain("000".chars()).take(3).collect();
    if whole == "1" { 1_000 } else { digits.parse().unwrap_or(0) }
}

/// The same answer; a problem in XML, if that is wanted (RFC 9457, appendix B).
pub(crate) fn problem_in(wanted: Option<Spoken>, mut response: Response) -> Response {
    let Some(problem) = response.extensions_mut().remove::<Problem>() else { return response };
    let text = (wanted == Some(Spoken::Xml)).then(|| quick_xml::se::to_string_with_root("problem", &problem));
    let Some(Ok(text)) = text else { return response };
    let text = text.replacen("<problem>", "<problem xmlns=\"urn:ietf:rfc:7807\">", 1);
    let (mut head, _) = response.into_parts();
    head.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+xml"));
    head.headers.remove(header::CONTENT_LENGTH);
    Response::from_parts(head, text.into())
}

impl Spoken {
    /// The answer.
    pub(crate) fn answer(self, status: StatusCode, root: &str, what: &impl Serialize) -> Response {
        let (kind, text) = match self {
            Self::Json => (JSON, serde_json::to_string(what).map_err(|why| why.to_string())),
            Self::Xml => (XML, quick_xml::se::to_string_with_root(root, what).map_err(|why| why.to_string())),
        };
        match text {
            Ok(text) => {
                (status, [(header::CONTENT_TYPE, HeaderValue::from_static(kind))], text).into_response()
            }
            Err(_) => {
                Problem::of(StatusCode::INTERNAL_SERVER_ERROR, "the answer cannot be written in that format")
                    .reason("not-written")
                    .into_response()
            }
        }
    }

    /// The same, for what went well.
    pub(crate) fn ok(self, root: &str, what: &impl Serialize) -> Response {
        self.answer(StatusCode::OK, root, what)
    }
}

/// What stands behind the question mark.
pub(crate) struct Queried<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequestParts<Shared> for Queried<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &Shared) -> Result<Self, Problem> {
        let Query(queried) = Query::try_from_uri(&parts.uri).map_err(|why| Problem::bad(why.body_text()))?;
        Ok(Self(queried))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepting(text: &'static str) -> Option<Spoken> {
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT, HeaderValue::from_static(text));
        wanted(&headers)
    }

    #[test]
    fn what_is_preferred_is_spoken() {
        assert_eq!(wanted(&HeaderMap::new()), Some(Spoken::Json));
        for (text, spoken) in [
            ("application/xml", Some(Spoken::Xml)),
            ("application/xml;q=0, application/json", Some(Spoken::Json)),
            ("text/html, application/xml;q=0.9, */*;q=0.1", Some(Spoken::Xml)),
            ("*/*", Some(Spoken::Json)),
            ("application/xml;q=0.5, application/json;q=0.9", Some(Spoken::Json)),
            ("application/json;q=0.05, text/xml;version=1;q=0.055", Some(Spoken::Xml)),
            ("text/html", None),
        ] {
            assert_eq!(accepting(text), spoken, "{text}");
        }
    }

    #[test]
    fn what_unfolds_or_lies_deep_is_not_read() {
        let refused = |text: &str| of_xml::<serde_json::Value>(text.as_bytes()).unwrap_err();
        let bomb = "<!DOCTYPE o [<!ENTITY a \"aaaa\"><!ENTITY b \"&a;&a;\">]><order>&b;</order>";
        assert!(refused(bomb).contains("definitions"));
        assert!(refused(&"<a>".repeat(10_000)).contains("deep"));
        for plain in ["<?xml version=\"1.0\"?> <a><b/><c>x > y</c ></a>\n", "<a/>", "<a></a>"] {
            assert_eq!(is_plain(plain), Ok(()), "{plain}");
        }
        for other in [
            "<a></a><a></a>",
            "<a/><b",
            "<a/>b",
            "b<a/>",
            "<a></a></a>",
            "<a b=\"/>\">",
            "<price currency=\"EUR\">1</price>",
            "<a><?b?></a>",
            "<?b c?><a/>",
            "<?xml-stylesheet href='c'?><a/>",
            "<?xml version='1.0'?><?xml version='1.0'?><a/>",
            "<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?><a/>",
            "",
        ] {
            assert!(is_plain(other).is_err(), "{other}");
        }
        assert!(of_json::<serde_json::Value>("[".repeat(1_000_000).as_bytes()).is_err());
        assert!(of_json::<serde_json::Value>("{\"a\":".repeat(1_000_000).as_bytes()).is_err());
    }
}
