//! What happens to a user without his asking, as it happens: a WebSocket.
//!
//! The obvious form, a list of who listens in the front that did it, tells nothing of what another front did. Here sockets follow their user's log, where all of it is, by any front; and prices
//! as this front learns them. What waits for a client is bounded: one that takes nothing is closed, and reads the history when it comes back.

use std::collections::BTreeSet;
use std::time::Duration;

use axum::extract::State;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade, close_code};
use axum::http::{HeaderMap, header};
use axum::response::Response;
use pares_broker::{StockQuote, StockSymbol, dollars};
use pares_http::origins::is_other_site;
use pares_http::websocket::{self, Closing};
use serde::{Deserialize, Serialize};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::{Instant, MissedTickBehavior, interval_at};
use utoipa::ToSchema;

use crate::app::Shared;
use crate::body::object;
use crate::caller::{Caller, find};
use crate::follow::{News, follow};
use crate::news::{self, Happened, OrderNews};
use crate::problem::{Answer, Problem};

/// The session is looked for so often.
const SESSION_EACH: Duration = Duration::from_secs(10);
/// Most stocks that a socket watches.
const WATCHED_MAX: usize = 100;
/// Longest message of a client, bytes.
const SAID_BYTES_MAX: usize = 4 << 10;

/// What a client says: of which stocks it wants prices from now on.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Watch {
    /// 100 at most.
    watch: Vec<String>,
}

/// What a client receives.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub(crate) enum Notice {
    /// A trigger has fired.
    Fired(Happened),
    /// What was pending is released.
    Lapsed(Happened),
    /// A buy or sell is committed.
    Settled(Happened),
    /// Something happened to an order on the exchange.
    Order(OrderNews),
    /// A price.
    Quote { symbol: String, price: String, server_ms: u64 },
}

/// Notices, as text messages in JSON. A client may send `{"watch": ["ABC"]}`.
#[utoipa::path(get, path = "/api/v1/notices", responses((status = 101, description = "a WebSocket", body = Notice),
    (status = "default", description = "a problem", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn notices(
    State(app): State<Shared>,
    caller: Caller,
    headers: HeaderMap,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Answer<Response> {
    // A page of another site may open sockets, and its browser sends the cookie along, and says whose page it is.
    if is_other_site(&headers, app.is_secure) || !caller.is_bearer && !headers.contains_key(header::ORIGIN) {
        return Err(Problem::forbidden("requests from other origins are refused").reason("cross-site"));
    }
    let upgrade = upgrade.map_err(|_| Problem::bad("this is a WebSocket"))?;
    let upgrade = websocket::limited(upgrade, &headers, SAID_BYTES_MAX).map_err(Problem::bad)?;
    let place = app.sockets.place(caller.name.as_str()).ok_or_else(|| Problem::too_many(10))?;
    let upgrade = upgrade.max_write_buffer_size(256 << 10);
    Ok(upgrade.on_upgrade(move |socket| async move {
        let _place = place;
        let quotes = app.front.quotes();
        let mut listener = Listener { app, caller, socket, watched: BTreeSet::new() };
        if let Err(closing) = listener.run(quotes).await {
            closing.end(&mut listener.socket).await;
        }
    }))
}

const NO_SITE: Closing = Closing::with(close_code::AGAIN, "no site answers");
const TOO_SLOW: Closing = Closing::with(close_code::AGAIN, "you read too slowly");
const FRONT_ENDS: Closing = Closing::with(close_code::AWAY, "the front ends");

struct Listener {
    app: Shared,
    caller: Caller,
    socket: WebSocket,
    watched: BTreeSet<StockSymbol>,
}

impl Listener {
    async fn run(&mut self, mut quotes: Receiver<StockQuote>) -> Result<(), Closing> {
        let following = follow(&self.app, &self.caller.name).await;
        let (_follow, mut news, next) = following.map_err(|_| NO_SITE)?;
        let mut sessions = interval_at(Instant::now() + SESSION_EACH, SESSION_EACH);
        sessions.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                said = self.socket.recv() => self.hear(said).await?,
                quote = quotes.recv() => self.price(quote).await?,
                new = news.recv() => self.happened(next, new).await?,
                _ = sessions.tick() => {
                    if find(&self.app, self.caller.session).await.map_err(|_| NO_SITE)?.is_none() {
                        return Err(Closing::with(close_code::POLICY, "the session has ended"));
                    }
                }
            }
        }
    }

    async fn hear(&mut self, said: Option<Result<Message, axum::Error>>) -> Result<(), Closing> {
        let Some(text) = websocket::text(said)? else { return Ok(()) };
        let now_ms = self.app.now_ms();
        if self.app.reads.take(self.caller.name.as_str(), now_ms).is_err() {
            return Err(Closing::with(close_code::POLICY, "too many messages"));
        }
        let wrong =
            || Closing::with(close_code::POLICY, "expected {\"watch\": [..]} with at most 100 symbols");
        self.watched = watched(&text).ok_or_else(wrong)?;
        for symbol in self.watched.clone() {
            if let Some(quote) = self.app.front.quote(symbol) {
                self.tell(&price(&quote)).await?;
            }
        }
        Ok(())
    }

    async fn price(&mut self, quote: Result<StockQuote, RecvError>) -> Result<(), Closing> {
        match quote {
            Ok(quote) if self.watched.contains(&quote.symbol) => self.tell(&price(&quote)).await,
            Ok(_) => Ok(()),
            Err(RecvError::Lagged(_)) => Err(TOO_SLOW),
            Err(RecvError::Closed) => Err(FRONT_ENDS),
        }
    }

    /// Tells of an entry of the log that stands behind what was there when the socket came.
    async fn happened(&mut self, next: u64, news: Result<News, RecvError>) -> Result<(), Closing> {
        let entry = match news {
            Ok(entry) => entry.map_err(|_| NO_SITE)?,
            Err(RecvError::Lagged(_)) => return Err(TOO_SLOW),
            Err(RecvError::Closed) => return Err(FRONT_ENDS),
        };
        if entry.place >= next {
            for notice in news::of(&entry) {
                self.tell(&notice).await?;
            }
        }
        Ok(())
    }

    async fn tell(&mut self, notice: &Notice) -> Result<(), Closing> {
        let text = serde_json::to_string(notice).expect("a notice is plain");
        self.socket.send(Message::text(text)).await.map_err(|_| Closing::BY_CLIENT)
    }
}

fn watched(text: &str) -> Option<BTreeSet<StockSymbol>> {
    let Watch { watch } = object(text.as_bytes()).ok()?;
    let symbols: Option<BTreeSet<StockSymbol>> =
        watch.iter().map(|symbol| StockSymbol::new(symbol)).collect();
    symbols.filter(|symbols| symbols.len() <= WATCHED_MAX)
}

fn price(quote: &StockQuote) -> Notice {
    Notice::Quote {
        symbol: quote.symbol.to_string(),
        price: dollars(quote.price_cents),
        server_ms: quote.server_ms,
    }
}
