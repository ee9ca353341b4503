//! The WebSocket: what happens, as it happens.
//!
//! A socket that is written to faster than it is read fills the memory. Here what is unread is bounded: who reads too slowly is cut off, and goes on from the number where he
//! stood.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade, close_code};
use axum::response::Response;
use pares_http::problem::Problem;
use pares_resources::decimal::natural;
use pares_resources::{Cursor, FollowerStanding};
use pares_types::ShardId;
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;
use tokio::sync::mpsc::Receiver;
use tokio::time::interval;

use crate::app::{Caller, Shared};
use crate::market::{BookNow, snapshot_text, step_text};
use crate::reports::{Report, report};
use crate::session::{Followed, Session};
use crate::spoken::of_json;

/// Longest message of a client, bytes.
const MESSAGE_BYTES_MAX: usize = 16 << 10;
/// Books that one socket may watch.
const BOOKS_MAX: usize = 100;
/// Shards that one socket may name.
const SHARDS_MAX: usize = 1_024;
const HEARTBEAT: Duration = Duration::from_secs(1);
/// What is spoken, for those who have to name it: a browser also says its token so.
const PROTOCOL: &str = "pares";

/// What a client says.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wish {
    /// `subscribe`.
    op: String,
    /// `orders` or `book`.
    channel: String,
    /// Of a book.
    symbol: Option<String>,
    /// Of shards, the number that comes next for the client. All shards from now on, if it is left out.
    from: Option<BTreeMap<String, String>>,
}

/// What a client is told.
#[derive(Serialize)]
#[serde(tag = "channel", rename_all = "snake_case")]
enum Told {
    Orders(Report),
    /// All of the past is told; `next` comes next.
    OrdersLive {
        shard: u16,
        next: String,
    },
    /// Of that shard nothing is told.
    OrdersNot {
        shard: u16,
        reason: &'static str,
        oldest: String,
    },
    /// There is no such book, or no market data.
    BookNot {
        symbol: String,
        reason: &'static str,
    },
    Heartbeat {
        count: u64,
    },
}

/// Why a socket ends: told to the client, unless it is gone.
struct Closing(Option<(u16, &'static str)>);

const fn closing(code: u16, reason: &'static str) -> Closing {
    Closing(Some((code, reason)))
}

/// Opens a socket.
#[utoipa::path(get, path = "/v1/socket", tag = "socket", responses(
    (status = 101, description = "A WebSocket: docs/protocols/http.md"),
    (status = "default", description = "a problem", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn socket(
    State(app): State<Shared>,
    Caller(session): Caller,
    upgrade: Result<WebSocketUpgrade, axum::extract::ws::rejection::WebSocketUpgradeRejection>,
) -> Result<Response, Problem> {
    let upgrade = upgrade.map_err(|why| Problem::bad(why.body_text()))?;
    let upgrade = upgrade.protocols([PROTOCOL]).max_message_size(MESSAGE_BYTES_MAX);
    Ok(upgrade.on_upgrade(async move |socket| {
        let mut listener = Listener {
            app,
            session,
            socket,
            followed: None,
            cursors: BTreeMap::new(),
            rung: Arc::default(),
            books: BTreeMap::new(),
        };
        if let Err(Closing(Some((code, reason)))) = listener.run().await {
            let frame = CloseFrame { code, reason: reason.into() };
            let _ = listener.socket.send(Message::Close(Some(frame))).await;
        }
    }))
}

struct Listener {
    app: Shared,
    session: Arc<Session>,
    socket: WebSocket,
    followed: Option<Receiver<Followed>>,
    cursors: BTreeMap<ShardId, Cursor>,
    /// Some book has changed.
    rung: Arc<Notify>,
    /// What was told last of each book.
    books: BTreeMap<String, Arc<BookNow>>,
}

impl Listener {
    async fn run(&mut self) -> Result<(), Closing> {
        let mut beat = interval(HEARTBEAT);
        let mut count = 0;
        loop {
            tokio::select! {
                said = self.socket.recv() => self.hear(said).await?,
                told = next_of(&mut self.followed) => self.happened(told).await?,
                () = self.rung.notified() => self.look_at_books().await?,
                _ = beat.tick() => {
                    if self.session.has_ended() {
                        return Err(closing(close_code::POLICY, "sign_on_again"));
                    }
                    count += 1;
                    self.tell(&Told::Heartbeat { count }).await?;
                }
            }
        }
    }

    async fn hear(&mut self, said: Option<Result<Message, axum::Error>>) -> Result<(), Closing> {
        let text = match said {
            Some(Ok(Message::Text(text))) => text,
            Some(Ok(Message::Ping(_) | Message::Pong(_))) => return Ok(()),
            Some(Ok(Message::Binary(_))) => return Err(closing(close_code::UNSUPPORTED, "text only")),
            Some(Ok(Message::Close(_)) | Err(_)) | None => return Err(Closing(None)),
        };
        self.session.note_used();
        let wrong = || {
            closing(
                close_code::POLICY,
                "say {\"op\":\"subscribe\",\"channel\":\"orders\"}, or \"book\" with its \"symbol\"",
            )
        };
        let wish: Wish = of_json(text.as_bytes()).map_err(|_| wrong())?;
        match (wish.op.as_str(), wish.channel.as_str()) {
            ("subscribe", "orders") if self.followed.is_none() => {
                let from = match wish.from {
                    Some(from) => numbers(&from).ok_or_else(wrong)?,
                    None => self.all_shards().await?,
                };
                self.cursors = from.iter().map(|(shard, number)| (*shard, Cursor::from(*number))).collect();
                self.followed = Some(self.session.follow(&from));
                Ok(())
            }
            ("subscribe", "book") if self.books.len() < BOOKS_MAX => {
                let symbol = wish.symbol.ok_or_else(wrong)?;
                self.begin_book(symbol).await
            }
            _ => Err(wrong()),
        }
    }

    /// Tells a book as it is; what changes from then on comes behind it.
    async fn begin_book(&mut self, symbol: String) -> Result<(), Closing> {
        let market = self.app.settings.market.clone();
        let is_watched = self.books.contains_key(&symbol);
        let is_there = is_watched || market.as_ref().is_some_and(|market| market.listen(&symbol, &self.rung));
        let Some(now) = market.filter(|_| is_there).and_then(|market| market.book(&symbol)) else {
            return self.tell(&Told::BookNot { symbol, reason: "unknown_instrument" }).await;
        };
        let text = snapshot_text(&symbol, &now.told);
        self.books.insert(symbol, now);
        self.tell_text(text).await
    }

    /// Tells what changed in books since it was told last, however much lies between.
    async fn look_at_books(&mut self) -> Result<(), Closing> {
        let Some(market) = self.app.settings.market.clone() else { return Ok(()) };
        let mut texts = Vec::new();
        for (symbol, told) in &mut self.books {
            let Some(now) = market.book(symbol).filter(|now| !Arc::ptr_eq(now, told)) else { continue };
            texts.push(match &now.step {
                Some((previous, text)) if *previous == told.told.number => text.to_string(),
                _ => step_text(symbol, &told.told, &now.told),
            });
            *told = now;
        }
        for text in texts {
            self.tell_text(text).await?;
        }
        Ok(())
    }

    async fn all_shards(&mut self) -> Result<Vec<(ShardId, u64)>, Closing> {
        let instruments = self.app.instruments(&self.session).await;
        let instruments = instruments.map_err(|_| closing(close_code::AGAIN, "no gateway answers"))?;
        let shards: BTreeMap<ShardId, u64> = instruments.iter().map(|one| (one.status.shard, 0)).collect();
        Ok(shards.into_iter().collect())
    }

    async fn happened(&mut self, told: Option<Followed>) -> Result<(), Closing> {
        let Some(told) = told else {
            let why = if self.session.has_ended() { "sign_on_again" } else { "you read too slowly" };
            return Err(closing(close_code::AGAIN, why));
        };
        match told {
            Followed::Message(shard, number, reply) => {
                let is_next = self.cursors.get_mut(&shard).is_some_and(|cursor| cursor.takes(number));
                match report(&reply).filter(|_| is_next) {
                    Some(report) => self.tell(&Told::Orders(report)).await,
                    None => Ok(()),
                }
            }
            Followed::Live(shard, next) => {
                match self.cursors.get_mut(&shard).map(|cursor| cursor.on_live(next)) {
                    Some(FollowerStanding::Live) => {
                        self.tell(&Told::OrdersLive { shard: shard.0, next: next.to_string() }).await
                    }
                    Some(FollowerStanding::Ahead) => self.tell_not(shard, "not_used_yet", next).await,
                    Some(FollowerStanding::AsBefore) | None => Ok(()),
                }
            }
            Followed::NotTold(shard, oldest, reason) if self.cursors.contains_key(&shard) => {
                self.tell_not(shard, reason.word(), oldest).await
            }
            Followed::NotTold(..) => Ok(()),
        }
    }

    async fn tell_not(&mut self, shard: ShardId, reason: &'static str, oldest: u64) -> Result<(), Closing> {
        self.cursors.remove(&shard);
        self.tell(&Told::OrdersNot { shard: shard.0, reason, oldest: oldest.to_string() }).await
    }

    async fn tell(&mut self, told: &Told) -> Result<(), Closing> {
        self.tell_text(serde_json::to_string(told).expect("what is told is plain")).await
    }

    async fn tell_text(&mut self, text: String) -> Result<(), Closing> {
        self.socket.send(Message::text(text)).await.map_err(|_| Closing(None))
    }
}

/// What comes next, or nothing for ever while nothing is followed.
async fn next_of(followed: &mut Option<Receiver<Followed>>) -> Option<Followed> {
    match followed {
        Some(followed) => followed.recv().await,
        None => std::future::pending().await,
    }
}

fn numbers(from: &BTreeMap<String, String>) -> Option<Vec<(ShardId, u64)>> {
    if from.len() > SHARDS_MAX {
        return None;
    }
    let one = |(shard, number): (&String, &String)| {
        Some((ShardId(natural(shard)?.try_into().ok()?), natural(number)?))
    };
    from.iter().map(one).collect()
}
