//! The WebSocket: what happens, as it happens.
//!
//! A socket that is written to faster than it is read fills the memory. Here unread messages are bounded: one who reads orders slowly receives more as he reads; one who
//! falls behind all trades that are kept is cut off, and continues from the number where he stood.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::State;
use axum::extract::ws::{Message, Utf8Bytes, WebSocket, WebSocketUpgrade, close_code};
use axum::http::{HeaderMap, StatusCode};
use futures_util::SinkExt as _;
use pares_http::origins::{is_named, is_other_site};
use pares_http::problem::Problem;
use pares_http::websocket::{self, Closing};
use pares_types::ShardId;
use serde::Serialize;
use tokio::time::interval;
use utoipa::ToSchema;

use crate::app::Shared;
use crate::caller::{Answered, Caller};
use crate::followers::{Followed, ROOM};
use crate::refused;
use crate::reports::{Report, report};
use crate::session::{Following, Session};
use crate::watching::{TooSlow, Watched, Watching};
use crate::wishes::{Wished, read};

/// Longest message of a client, bytes.
const MESSAGE_BYTES_MAX: usize = 16 << 10;
const TOO_SLOW: &str = "you read too slowly";
const HEARTBEAT: Duration = Duration::from_secs(1);
/// The protocol, for those who have to name it: a browser also says its token so.
const PROTOCOL: &str = "pares";

/// What a client receives.
#[derive(Serialize, ToSchema)]
#[serde(tag = "channel", rename_all = "snake_case")]
pub(crate) enum Told {
    /// A message of the member's stream.
    Orders(Report),
    /// All of the past is sent; `next` comes next.
    OrdersLive { shard: u16, next: String },
    /// Nothing of that shard is sent.
    OrdersNot { shard: u16, reason: &'static str, oldest: String },
    /// Each second.
    Heartbeat { count: u64 },
}

/// The same whatever it was that found it out.
const SESSION_ENDED: Closing = Closing::with(close_code::POLICY, "sign_on_again");

/// Opens a socket.
#[utoipa::path(get, path = "/v1/socket", tag = "socket", responses(
    (status = 101, description = "A WebSocket: docs/protocols/http.md")))]
pub(crate) async fn socket(
    State(app): State<Shared>,
    Caller(session): Caller,
    headers: HeaderMap,
    upgrade: Result<WebSocketUpgrade, axum::extract::ws::rejection::WebSocketUpgradeRejection>,
) -> Answered {
    // A browser opens a socket for any page, and leaves it to the server to look whose it is.
    if is_other_site(&headers, app.is_secure) && !is_named(&headers, &app.settings.origins) {
        let detail = "pages of other origins open no socket, unless the server names them (--origin)";
        return Err(Problem::of(StatusCode::FORBIDDEN, detail).reason("other_origin"));
    }
    let upgrade = upgrade.map_err(|why| Problem::bad(why.body_text()))?;
    let upgrade = websocket::limited(upgrade.protocols([PROTOCOL]), &headers, MESSAGE_BYTES_MAX);
    let upgrade = upgrade.map_err(Problem::bad)?;
    Ok(upgrade.on_upgrade(async move |socket| {
        let mut listener = Listener {
            app,
            session,
            socket,
            followed: None,
            following: BTreeSet::new(),
            ahead: BTreeMap::new(),
            watching: Watching::default(),
        };
        if let Err(closing) = listener.run().await {
            closing.end(&mut listener.socket).await;
        }
    }))
}

struct Listener {
    app: Shared,
    session: Arc<Session>,
    socket: WebSocket,
    followed: Option<Following>,
    /// The shards whose streams it receives.
    following: BTreeSet<ShardId>,
    /// Where the client asked for a number that is not used yet: how long that is waited for, and the number that comes next.
    ahead: BTreeMap<ShardId, (Instant, u64)>,
    watching: Watching,
}

impl Listener {
    async fn run(&mut self) -> Result<(), Closing> {
        let mut beat = interval(HEARTBEAT);
        let mut count = 0;
        loop {
            tokio::select! {
                said = self.socket.recv() => self.hear(said).await?,
                told = next_of(&mut self.followed) => self.happened(told).await?,
                () = self.watching.rung.notified() => self.look_at_market().await?,
                _ = beat.tick() => {
                    if self.session.has_ended() {
                        return Err(SESSION_ENDED);
                    }
                    self.session.note_used();
                    count += 1;
                    self.tell(&Told::Heartbeat { count }).await?;
                    self.give_up_ahead().await?;
                }
            }
        }
    }

    async fn hear(&mut self, said: Option<Result<Message, axum::Error>>) -> Result<(), Closing> {
        let Some(text) = websocket::text(said)? else { return Ok(()) };
        self.session.note_used();
        match read(text.as_bytes()).map_err(|why| Closing::with(close_code::POLICY, why))? {
            Wished::Orders(from) => self.follow(from).await,
            Wished::Market(watched, after) => {
                let market = self.app.settings.market.as_deref();
                let texts = match self.watching.begin(market, &watched, after.as_deref()) {
                    Some(texts) => texts,
                    None => vec![self.not_told(&watched).await?],
                };
                self.tell_texts(texts).await
            }
        }
    }

    /// The message that there are no data of that symbol, and whether it is one.
    async fn not_told(&mut self, watched: &Watched) -> Result<Utf8Bytes, Closing> {
        match self.app.instrument(&self.session, &watched.symbol).await {
            Ok(_) => Ok(watched.not("no_market_data")),
            Err(problem) if problem == refused::unknown_instrument() => Ok(watched.not("unknown_instrument")),
            Err(_) => Err(self.unanswered()),
        }
    }

    /// No gateway has answered what a wish depends on.
    fn unanswered(&self) -> Closing {
        if self.session.has_ended() {
            SESSION_ENDED
        } else {
            Closing::with(close_code::AGAIN, "no gateway answers")
        }
    }

    /// Begins to send the member's stream. A socket follows it once; again only if it follows no shard.
    async fn follow(&mut self, from: Option<Vec<(ShardId, u64)>>) -> Result<(), Closing> {
        if !self.following.is_empty() {
            return Err(Closing::with(close_code::POLICY, "orders are already subscribed"));
        }
        let from = match from {
            Some(from) => from,
            None => self.all_shards().await?,
        };
        self.following = from.iter().map(|(shard, _)| *shard).collect();
        self.followed = Some(self.session.follow(&from, ROOM));
        Ok(())
    }

    /// Tells what changed in the market, of all that the client watches, however much lies between.
    async fn look_at_market(&mut self) -> Result<(), Closing> {
        let Some(market) = &self.app.settings.market else { return Ok(()) };
        let texts =
            self.watching.look(market).map_err(|TooSlow| Closing::with(close_code::AGAIN, TOO_SLOW))?;
        self.tell_texts(texts).await
    }

    /// Tells all of it by one write.
    async fn tell_texts(&mut self, texts: Vec<Utf8Bytes>) -> Result<(), Closing> {
        let lost = |_| Closing::BY_CLIENT;
        for text in texts {
            self.socket.feed(Message::Text(text)).await.map_err(lost)?;
        }
        self.socket.flush().await.map_err(lost)
    }

    async fn all_shards(&mut self) -> Result<Vec<(ShardId, u64)>, Closing> {
        let instruments = self.app.instruments(&self.session).await.map_err(|_| self.unanswered())?;
        let shards: BTreeMap<ShardId, u64> = instruments.iter().map(|one| (one.status.shard, 0)).collect();
        Ok(shards.into_iter().collect())
    }

    async fn happened(&mut self, told: Option<Followed>) -> Result<(), Closing> {
        let told = told.ok_or(SESSION_ENDED)?;
        if !self.following.contains(&told.shard()) {
            return Ok(());
        }
        match told {
            Followed::Message(_, _, reply) => match report(&reply) {
                Some(report) => self.tell(&Told::Orders(report)).await,
                None => Ok(()),
            },
            Followed::Live(shard, next) => self.tell_live(shard, next).await,
            Followed::Ahead(shard, next) => {
                let until = Instant::now() + self.app.settings.patience;
                self.ahead.entry(shard).or_insert((until, next)).1 = next;
                Ok(())
            }
            Followed::NotTold(shard, oldest, reason) => self.tell_not(shard, reason.word(), oldest).await,
        }
    }

    async fn tell_live(&mut self, shard: ShardId, next: u64) -> Result<(), Closing> {
        self.ahead.remove(&shard);
        self.tell(&Told::OrdersLive { shard: shard.0, next: next.to_string() }).await
    }

    /// Numbers that were waited for long enough are of no message.
    async fn give_up_ahead(&mut self) -> Result<(), Closing> {
        let now = Instant::now();
        let late: Vec<_> = self.ahead.extract_if(.., |_, (until, _)| *until <= now).collect();
        for (shard, (_, next)) in late {
            self.tell_not(shard, "not_used_yet", next).await?;
        }
        Ok(())
    }

    async fn tell_not(&mut self, shard: ShardId, reason: &'static str, oldest: u64) -> Result<(), Closing> {
        self.following.remove(&shard);
        self.ahead.remove(&shard);
        self.tell(&Told::OrdersNot { shard: shard.0, reason, oldest: oldest.to_string() }).await
    }

    async fn tell(&mut self, told: &Told) -> Result<(), Closing> {
        self.tell_text(serde_json::to_string(told).expect("updates are plain")).await
    }

    async fn tell_text(&mut self, text: String) -> Result<(), Closing> {
        self.socket.send(Message::text(text)).await.map_err(|_| Closing::BY_CLIENT)
    }
}

/// What comes next, or nothing for ever while nothing is followed.
async fn next_of(followed: &mut Option<Following>) -> Option<Followed> {
    match followed {
        Some(followed) => followed.recv().await,
        None => std::future::pending().await,
    }
}
