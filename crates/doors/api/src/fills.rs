//! The member's trades, read from its stream: from a number on, a page at a time.

use axum::response::Response;
use pares_http::problem::Problem;
use pares_resources::decimal::natural;
use pares_resources::words::BadField;
use pares_resources::{Cursor, FollowerStanding};
use pares_types::{Reason, Reply, ShardId};
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, timeout_at};
use utoipa::{IntoParams, ToSchema};

use crate::app::{Caller, Shared};
use crate::refused;
use crate::reports::{Bust, Fill};
use crate::session::{EVERY_SHARD, Followed, Session};
use crate::spoken::{Queried, Spoken};

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
    /// From where to go on.
    next: String,
    /// Whether that was all there was.
    is_all: bool,
}

/// The member's trades.
#[utoipa::path(get, path = "/v1/fills", tag = "orders", params(FillsAsked), responses(
    (status = 200, description = "They", body = Fills)))]
pub(crate) async fn fills(
    axum::extract::State(app): axum::extract::State<Shared>,
    Caller(session): Caller,
    spoken: Spoken,
    Queried(asked): Queried<FillsAsked>,
) -> Result<Response, Problem> {
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
    let until = Instant::now() + app.settings.patience;
    let fills = page(&session, ShardId(asked.shard), from, limit, until).await?;
    Ok(spoken.ok("fills", &fills))
}

async fn page(
    session: &Session,
    of: ShardId,
    from: u64,
    limit: usize,
    until: Instant,
) -> Result<Fills, Problem> {
    let mut followed = session.follow(&[(of, from)]);
    let (mut cursor, mut fills) = (Cursor::from(from), Fills::default());
    while fills.fills.len() < limit && !fills.is_all {
        let told = timeout_at(until, followed.recv()).await.map_err(|_| refused::no_answer_yet())?;
        let cut_off = || match session.has_ended() {
            true => refused::sign_on_again(),
            false => refused::refused(Reason::Overloaded),
        };
        match told.ok_or_else(cut_off)? {
            Followed::Message(shard, number, reply) if shard == of && cursor.takes(number) => match reply {
                Reply::Trade(trade) => fills.fills.push((&trade).into()),
                Reply::Busted(bust) => fills.busts.push((&bust).into()),
                _ => {}
            },
            Followed::Live(shard, next) if shard == of => match cursor.on_live(next) {
                FollowerStanding::Live => fills.is_all = true,
                FollowerStanding::AsBefore => {}
                FollowerStanding::Ahead => return Err(refused::not_used_yet(next)),
            },
            Followed::NotTold(shard, oldest, reason) if shard == of && cursor.lacks(oldest) => {
                return Err(refused::refused(reason));
            }
            _ => {}
        }
    }
    fills.next = cursor.next().unwrap_or(from).to_string();
    Ok(fills)
}
