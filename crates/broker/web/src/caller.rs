//! Who asks.
//!
//! A session's token comes in a cookie, which a browser sends by itself, or as a bearer, which it does not. So with a cookie whatever changes something must also bring the session's
//! other word, which no page of another site knows, and must not come from one.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use futures_util::FutureExt as _;
use pares_broker::{
    Asked, BrokerRead, PersonAsked, PersonRead, PersonRight, SessionDigest, SessionFound, UserName,
};
use pares_http::headers::only;
use pares_http::origins::is_other_site;
use pares_http::sharing::ConnectionUse;
use pares_table::Origin;
use ring::digest::{SHA256, digest};

use crate::app::Shared;
use crate::problem::{Answer, Problem};

/// The session's cookie.
pub(crate) const COOKIE: &str = "pares_session";
/// A session that is used is noted so often, ms.
const SEEN_EACH_MS: u64 = 60_000;
/// Longest token, bytes.
const TOKEN_BYTES_MAX: usize = 128;

/// Who asks, and may.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    pub(crate) name: UserName,
    pub(crate) rights: Vec<PersonRight>,
    pub(crate) session: SessionDigest,
    pub(crate) csrf: String,
    pub(crate) expires_ms: u64,
    /// Let in by a bearer, which no browser sends by itself.
    pub(crate) is_bearer: bool,
    /// From which network; empty of this machine.
    pub(crate) from: String,
}

/// What a token is known by: nobody who reads the items can use it.
pub(crate) fn digest_of(token: &str) -> SessionDigest {
    SessionDigest(digest(&SHA256, token.as_bytes()).as_ref().try_into().expect("SHA-256 has 32 bytes"))
}

/// The session's other word: who has the token can compute it, and nobody can compute the token from it.
pub(crate) fn csrf_of(token: &str) -> String {
    pares_keys::to_hex(&digest_of(&format!("pares csrf {token}")).0)
}

impl Caller {
    /// # Errors
    /// Without this right.
    pub(crate) fn with(self, right: PersonRight) -> Answer<Self> {
        if self.rights.contains(&right) {
            return Ok(self);
        }
        Err(Problem::forbidden(format!("this needs the right {}", right.name())).reason("no-right"))
    }
}

impl FromRequestParts<Shared> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &Shared) -> Answer<Self> {
        let bearer = bearer(&parts.headers);
        let is_bearer = bearer.is_some();
        let token = bearer.or_else(|| cookie(&parts.headers)).filter(|token| token.len() <= TOKEN_BYTES_MAX);
        let token = token.ok_or_else(Problem::no_session)?;
        let from = text_of(parts.extensions.get().copied());
        app.callers.take(&from, app.now_ms()).map_err(Problem::too_many)?;
        let session = digest_of(token);
        let found = find(app, session).await?.ok_or_else(Problem::no_session)?;
        parts.extensions.get().inspect(|used: &&ConnectionUse| used.note_signed_on());
        let csrf = csrf_of(token);
        if !is_bearer {
            check_site(parts, &csrf, app.is_secure)?;
        }
        note_seen(app, session, &found);
        let SessionFound { name, rights, expires_ms, .. } = found;
        app.reads.take(name.as_str(), app.now_ms()).map_err(Problem::too_many)?;
        Ok(Self { name, rights, session, csrf, expires_ms, is_bearer, from })
    }
}

/// Whose a session is, if it has not ended.
pub(crate) async fn find(app: &Shared, session: SessionDigest) -> Answer<Option<SessionFound>> {
    let read = PersonRead::Session { session, now_ms: app.now_ms() };
    Ok(app.in_time(app.front.read(BrokerRead::Person { read })).await??)
}

/// Has it noted now and then that a session is used. Nobody waits for that: where nothing commits, people read on. And of each session it is asked for once at a time, however often they read meanwhile.
fn note_seen(app: &Shared, session: SessionDigest, found: &SessionFound) {
    if app.now_ms() < found.seen_ms.saturating_add(SEEN_EACH_MS) || !app.noting().insert(session) {
        return;
    }
    let app = app.clone();
    let mut noting = Box::pin(async move {
        let asked = Asked::Person { asked: PersonAsked::Seen { session } };
        // If it comes to nothing, a later request has it noted.
        let _ = app.front.ask(None, None, asked).await;
        app.noting().remove(&session);
    });
    // It is asked for here and now, before anything that comes of this request.
    if (&mut noting).now_or_never().is_none() {
        tokio::spawn(noting);
    }
}

/// The token of `Authorization: Bearer`.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = only(headers, header::AUTHORIZATION)?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
}

/// The token of our cookie. Two of them are none: one may have been planted.
pub(crate) fn cookie(headers: &HeaderMap) -> Option<&str> {
    let texts = headers.get_all(header::COOKIE).iter().filter_map(|text| text.to_str().ok());
    let pairs = texts.flat_map(|text| text.split(';')).filter_map(|pair| pair.trim().split_once('='));
    let mut ours = pairs.filter(|(name, _)| *name == COOKIE).map(|(_, value)| value);
    ours.next().filter(|_| ours.next().is_none())
}

/// A request that a cookie came with: whether our own page sent it.
fn check_site(parts: &Parts, csrf: &str, is_secure: bool) -> Answer<()> {
    let refuse = |detail: &str| Err(Problem::forbidden(detail).reason("cross-site"));
    if parts.method.is_safe() {
        return Ok(());
    }
    let word = only(&parts.headers, "x-csrf").unwrap_or_default();
    // Digests, so that how long comparing takes says nothing of the word.
    if digest_of(word) != digest_of(csrf) {
        return refuse("a cookie is not enough: send the session's csrf token in X-CSRF");
    }
    if is_other_site(&parts.headers, is_secure) {
        return refuse("requests from other origins are refused");
    }
    Ok(())
}

/// From where. In tests nothing is said of it: from this machine.
pub(crate) fn text_of(origin: Option<Origin>) -> String {
    origin.flatten().map_or_else(String::new, |network| network.to_string())
}
