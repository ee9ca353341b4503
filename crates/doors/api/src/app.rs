//! What all requests share.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, header};
use pares_http::connections::WebTransport;
use pares_http::problem::Problem;

use crate::refused;
use crate::session::Session;
use crate::sessions::Sessions;
use crate::settings::ApiSettings;
use crate::symbols::Symbols;

/// How often sessions are looked through.
const SWEEP_EACH: Duration = Duration::from_secs(1);

pub(crate) type Shared = Arc<App>;

pub(crate) struct App {
    pub(crate) settings: ApiSettings,
    pub(crate) sessions: Sessions,
    pub(crate) symbols: Symbols,
    pub(crate) is_secure: bool,
    looks_at_host: bool,
}

impl App {
    pub(crate) fn new(settings: ApiSettings, transport: &WebTransport) -> Shared {
        Arc::new(Self {
            sessions: Sessions::new(settings.sessions_max),
            symbols: Symbols::default(),
            is_secure: !matches!(transport, WebTransport::Loopback),
            looks_at_host: match transport {
                WebTransport::Loopback => true,
                WebTransport::Tls(_) => false,
                WebTransport::BehindProxy => !settings.hosts.is_empty(),
            },
            settings,
        })
    }

    /// Looks after sessions, until nobody has this any more.
    pub(crate) fn look_after(self: &Arc<Self>) {
        let app = Arc::downgrade(self);
        tokio::spawn(async move {
            let mut turn = tokio::time::interval(SWEEP_EACH);
            loop {
                turn.tick().await;
                let Some(app) = app.upgrade() else { break };
                app.sessions.sweep(app.settings.idle);
            }
        });
    }

    /// The names by which requests may come, if that counts.
    pub(crate) fn names(&self) -> Option<&[String]> {
        self.looks_at_host.then_some(self.settings.hosts.as_slice())
    }
}

/// The only one that is named.
fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut named = headers.get_all(name).iter();
    named.next().filter(|_| named.next().is_none())?.to_str().ok()
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = only(headers, &header::AUTHORIZATION)?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(token)
}

/// A script in a browser cannot say `Authorization` for a socket, but which protocols it speaks.
fn bearer_of_socket(headers: &HeaderMap) -> Option<&str> {
    let spoken = only(headers, &header::SEC_WEBSOCKET_PROTOCOL)?;
    spoken.split(',').find_map(|protocol| protocol.trim().strip_prefix("bearer."))
}

/// Who asks: the session of the bearer's token.
pub(crate) struct Caller(pub(crate) Arc<Session>);

impl FromRequestParts<Shared> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &Shared) -> Result<Self, Problem> {
        let token = match parts.headers.contains_key(header::AUTHORIZATION) {
            true => bearer(&parts.headers),
            false => bearer_of_socket(&parts.headers),
        };
        let session = token.and_then(|token| app.sessions.find(token.trim()));
        let session = session.ok_or_else(refused::sign_on_again)?;
        session.note_used();
        Ok(Self(session))
    }
}
