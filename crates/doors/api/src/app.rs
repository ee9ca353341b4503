//! What all requests share.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, header};
use pares_http::connections::WebTransport;
use pares_http::problem::Problem;
use pares_resources::{InstrumentTold, LineTold, Question};
use pares_types::InstrumentId;

use crate::refused;
use crate::session::Session;
use crate::sessions::Sessions;
use crate::settings::ApiSettings;

/// So old may be what is told of an instrument.
const FRESH: Duration = Duration::from_secs(1);
/// So old may be the number of a symbol's instrument: numbers are used once, so an old one is refused and never another's.
const KNOWN: Duration = Duration::from_secs(10);
/// Symbols that are not known are not looked for more often.
const SYMBOLS_EACH: Duration = Duration::from_millis(100);
/// How often sessions are looked through.
const SWEEP_EACH: Duration = Duration::from_secs(1);

pub(crate) type Shared = Arc<App>;

/// Instruments by symbol, and when that was told.
struct Symbols {
    told: Instant,
    by_symbol: BTreeMap<String, Arc<InstrumentTold>>,
}

pub(crate) struct App {
    pub(crate) settings: ApiSettings,
    pub(crate) sessions: Sessions,
    symbols: RwLock<Option<Symbols>>,
    /// When they were asked for last, on behalf of all.
    asked: Mutex<Option<Instant>>,
    pub(crate) is_secure: bool,
    looks_at_host: bool,
}

impl App {
    pub(crate) fn new(settings: ApiSettings, transport: &WebTransport) -> Shared {
        Arc::new(Self {
            sessions: Sessions::new(settings.sessions_max),
            symbols: RwLock::default(),
            asked: Mutex::default(),
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

    /// The number of a symbol's instrument. Nobody waits for it whose symbol is known: one asks anew for all, meanwhile.
    pub(crate) async fn instrument_id(
        self: &Arc<Self>,
        session: &Arc<Session>,
        symbol: &str,
    ) -> Result<InstrumentId, Problem> {
        let Some(known) = self.known(symbol, KNOWN) else {
            return Ok(self.instrument(session, symbol).await?.status.instrument);
        };
        if !self.told_within(FRESH) && self.is_to_ask() {
            let (app, session) = (Arc::clone(self), Arc::clone(session));
            tokio::spawn(async move { app.instruments(&session).await });
        }
        Ok(known.status.instrument)
    }

    /// The instrument of that symbol, asked for by the session itself unless somebody was told of it just now: no other one's gateway is waited for.
    pub(crate) async fn instrument(
        &self,
        session: &Session,
        symbol: &str,
    ) -> Result<Arc<InstrumentTold>, Problem> {
        if let Some(known) = self.known(symbol, FRESH) {
            return Ok(known);
        }
        if !self.told_within(SYMBOLS_EACH) {
            self.instruments(session).await?;
        }
        self.known(symbol, FRESH).ok_or_else(|| refused::refused(pares_types::Reason::UnknownInstrument))
    }

    /// Whether this is the one who asks for all.
    fn is_to_ask(&self) -> bool {
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        let is_to_ask = asked.is_none_or(|asked| asked.elapsed() >= FRESH);
        if is_to_ask {
            *asked = Some(Instant::now());
        }
        is_to_ask
    }

    /// All instruments, asked for anew.
    pub(crate) async fn instruments(&self, session: &Session) -> Result<Vec<InstrumentTold>, Problem> {
        let LineTold::Instruments(instruments) = session.question(Question::Instruments).await? else {
            return Err(refused::no_answer_yet());
        };
        let by_symbol =
            instruments.iter().map(|one| (one.status.symbol.to_string(), Arc::new(one.clone()))).collect();
        let symbols = Symbols { told: Instant::now(), by_symbol };
        *self.symbols.write().unwrap_or_else(PoisonError::into_inner) = Some(symbols);
        Ok(instruments)
    }

    fn known(&self, symbol: &str, within: Duration) -> Option<Arc<InstrumentTold>> {
        let symbols = self.symbols.read().unwrap_or_else(PoisonError::into_inner);
        symbols.as_ref().filter(|symbols| symbols.told.elapsed() < within)?.by_symbol.get(symbol).cloned()
    }

    fn told_within(&self, within: Duration) -> bool {
        let symbols = self.symbols.read().unwrap_or_else(PoisonError::into_inner);
        symbols.as_ref().is_some_and(|symbols| symbols.told.elapsed() < within)
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
