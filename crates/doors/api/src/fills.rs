//! The member's trades, read from its stream: from a number on, a page at a time.

use std::sync::Arc;

use pares_http::problem::Problem;
use pares_resources::decimal::natural;
use pares_resources::order_terms::BadField;
use pares_types::{Reason, Reply, ShardId};
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, timeout_at};
use utoipa::{IntoParams, ToSchema};

use crate::caller::{Answered, Call};
use crate::followers::{Followed, ROOM_OF_A_PAGE};
use crate::refused;
use crate::reports::{Bust, Fill};
use crate::session::{EVERY_SHARD, Session};
use crate::spoken::Queried;

/// Trades in a page.
const PAGE: usize = 100;
/// At most.
const PAGE_MAX: usize = 1_000;

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct FillsAsked {
    /// The shard; 0 if nothing is said.
    #[serde(default)]
    shard: u16,
    /// From which number of the member's stream on; from 1, which is the first, if nothing is said.
    from: Option<String>,
    /// Trades at most, 1 to 1,000; 100 if nothing is said.
    limit: Option<usize>,
}

/// Trades, and those that were declared void.
#[derive(Default, Serialize, ToSchema)]
pub(crate) struct Fills {
    fills: Vec<Fill>,
    busts: Vec<Bust>,
    /// From where to continue.
    next: String,
    /// Whether that was all there was.
    is_all: bool,
}

/// The member's trades.
#[utoipa::path(get, path = "/v1/fills", tag = "orders", params(FillsAsked), responses(
    (status = 200, description = "They", body = Fills)))]
pub(crate) async fn fills(call: Call, Queried(asked): Queried<FillsAsked>) -> Answered {
    let from = asked.from.as_deref().map_or(Some(1), natural).filter(|from| *from > 0);
    let from = from
        .ok_or_else(|| refused::bad_field(BadField { field: "from", why: "a number from 1 on, as text" }))?;
    let limit = asked.limit.unwrap_or(PAGE);
    if !(1..=PAGE_MAX).contains(&limit) {
        return Err(refused::bad_field(BadField { field: "limit", why: "1 to 1000" }));
    }
    if asked.shard == EVERY_SHARD {
        return Err(refused::refused(Reason::UnknownShard));
    }
    let until = Instant::now() + call.app.settings.patience;
    let fills = page(&call.session, ShardId(asked.shard), from, limit, until).await?;
    call.ok("fills", &fills)
}

async fn page(
    session: &Arc<Session>,
    of: ShardId,
    from: u64,
    limit: usize,
    until: Instant,
) -> Result<Fills, Problem> {
    let mut followed = session.follow(&[(of, from)], ROOM_OF_A_PAGE);
    let mut reading = Reading { next: from, ahead: None, fills: Fills::default() };
    while reading.fills.fills.len() < limit && !reading.fills.is_all {
        match timeout_at(until, followed.recv()).await {
            Ok(Some(told)) => reading.take(told)?,
            Ok(None) => return Err(refused::sign_on_again()),
            Err(_) => return Err(reading.ahead.map_or_else(refused::no_answer_yet, refused::not_used_yet)),
        }
    }
    let Reading { next, fills, .. } = reading;
    Ok(Fills { next: next.to_string(), ..fills })
}

/// A page of a shard's stream, as it is read.
struct Reading {
    /// The number that comes next of it.
    next: u64,
    /// The number that comes next in the stream, if that one comes later. A gateway may be a few numbers behind: they are waited for.
    ahead: Option<u64>,
    fills: Fills,
}

impl Reading {
    fn take(&mut self, told: Followed) -> Result<(), Problem> {
        match told {
            Followed::Message(_, number, reply) => {
                self.next = number.saturating_add(1);
                match reply {
                    Reply::Trade(trade) => self.fills.fills.push((&trade).into()),
                    Reply::Busted(bust) => self.fills.busts.push((&bust).into()),
                    _ => {}
                }
            }
            Followed::Live(..) => self.fills.is_all = true,
            Followed::Ahead(_, next) => self.ahead = Some(next),
            Followed::NotTold(_, _, reason) => return Err(refused::refused(reason)),
        }
        Ok(())
    }
}
