//! What the member has, counted from its streams.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use pares_http::problem::Problem;
use pares_resources::positions::{MemberPositions, PositionHeld};
use pares_types::{InstrumentId, ShardId};
use serde::Serialize;
use tokio::time::{Instant, timeout_at};
use utoipa::ToSchema;

use crate::caller::{Answered, Call};
use crate::followers::{Followed, ROOM};
use crate::refused;
use crate::session::Session;

/// What the member has of an instrument.
#[derive(Serialize, ToSchema)]
pub(crate) struct PositionShown {
    /// The instrument's number.
    #[schema(value_type = u64)]
    instrument: u32,
    /// Its symbol, if it is still there.
    #[serde(skip_serializing_if = "Option::is_none")]
    symbol: Option<String>,
    /// Its shard.
    shard: u16,
    /// Shares bought since the exchange began.
    bought: String,
    /// Shares sold.
    sold: String,
    /// What was bought less what was sold, as `"-40"`.
    net: String,
    /// Whether a trade was declared void that is too old to be told which side it was of: then none of the three is to be believed.
    is_unknown: bool,
}

/// How far a shard's stream is counted.
#[derive(Serialize, ToSchema)]
pub(crate) struct CountedShown {
    shard: u16,
    /// The number of the member's stream that comes next: what lies before it is counted.
    next: String,
    /// Why the shard's positions are not told: `not_kept`, the stream's beginning is not there any more.
    #[serde(skip_serializing_if = "Option::is_none")]
    not_told: Option<&'static str>,
}

/// What the member has.
#[derive(Serialize, ToSchema)]
pub(crate) struct PositionsShown {
    /// Of each instrument that it traded.
    positions: Vec<PositionShown>,
    shards: Vec<CountedShown>,
}

/// What the member bought and sold since the exchange began.
#[utoipa::path(get, path = "/v1/positions", tag = "orders", responses(
    (status = 200, description = "They", body = PositionsShown)))]
pub(crate) async fn positions(call: Call) -> Answered {
    let Call { app, session, .. } = &call;
    let until = Instant::now() + app.settings.patience;
    let instruments = app.instruments(session).await?;
    let shards: BTreeSet<ShardId> = instruments.iter().map(|one| one.status.shard).collect();
    let symbols: BTreeMap<InstrumentId, String> =
        instruments.iter().map(|one| (one.status.instrument, one.status.symbol.to_string())).collect();
    let counting = session.positions();
    let mut positions = timeout_at(until, counting.lock()).await.map_err(|_| refused::no_answer_yet())?;
    count(session, &mut positions, shards, until).await?;
    call.ok("positions", &shown(&positions, &symbols))
}

/// Counts up to the present. Messages that were counted when the time was over are not counted again.
async fn count(
    session: &Arc<Session>,
    positions: &mut MemberPositions,
    shards: BTreeSet<ShardId>,
    until: Instant,
) -> Result<(), Problem> {
    let mut followed = session.follow(&positions.go_on(shards), ROOM);
    while !positions.is_done() {
        let told = timeout_at(until, followed.recv()).await.map_err(|_| refused::no_answer_yet())?;
        match told {
            Some(Followed::Message(shard, number, reply)) => positions.on_message(shard, number, &reply),
            // A gateway that is behind has nothing more to tell.
            Some(Followed::Live(shard, _) | Followed::Ahead(shard, _)) => positions.on_live(shard),
            Some(Followed::NotTold(shard, _, reason)) => positions.on_not_told(shard, reason),
            None => return Err(refused::sign_on_again()),
        }
    }
    Ok(())
}

fn shown(positions: &MemberPositions, symbols: &BTreeMap<InstrumentId, String>) -> PositionsShown {
    let held = |(shard, instrument, held): (ShardId, InstrumentId, PositionHeld)| PositionShown {
        instrument: instrument.0,
        symbol: symbols.get(&instrument).cloned(),
        shard: shard.0,
        bought: held.bought.to_string(),
        sold: held.sold.to_string(),
        net: held.net_text(),
        is_unknown: held.is_unknown,
    };
    let counted = positions.shards().map(|(shard, counted)| CountedShown {
        shard: shard.0,
        next: counted.next.to_string(),
        not_told: counted.not_told.map(pares_types::Reason::word),
    });
    PositionsShown { positions: positions.held().map(held).collect(), shards: counted.collect() }
}
