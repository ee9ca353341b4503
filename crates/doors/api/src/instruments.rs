//! Instruments: their rules, and how they trade.

use axum::extract::{Path, State};
use axum::response::Response;
use pares_http::problem::Problem;
use pares_resources::InstrumentTold;
use pares_resources::decimal::price_text;
use pares_resources::order_terms::phase_word;
use serde::Serialize;
use utoipa::ToSchema;

use crate::app::{Caller, Shared};
use crate::forms::maybe_price;
use crate::spoken::Spoken;

/// An instrument.
#[derive(Serialize, ToSchema)]
pub(crate) struct InstrumentShown {
    /// Its symbol.
    symbol: String,
    /// Its number.
    #[schema(value_type = u64)]
    instrument: u32,
    /// Its shard.
    shard: u16,
    /// `closed`, `opening_call`, `continuous`, `volatility_call`, `closing_call`, `post_close`, `halted`.
    phase: &'static str,
    /// Whether it takes nothing because the matching engine failed at a request.
    is_quarantined: bool,
    /// The price of the last trade.
    #[serde(skip_serializing_if = "Option::is_none")]
    last: Option<String>,
    /// What bands and auctions refer to.
    #[serde(skip_serializing_if = "Option::is_none")]
    reference: Option<String>,
    /// The smallest step of a quantity.
    lot: String,
    /// The largest order, shares.
    quantity_max: String,
    /// The lowest legal limit.
    price_min: String,
    /// The highest legal limit.
    price_max: String,
    /// The steps of prices, the lowest prices first.
    ticks: Vec<TickShown>,
}

/// From a price on, the step.
#[derive(Serialize, ToSchema)]
pub(crate) struct TickShown {
    from: String,
    tick: String,
}

/// All instruments.
#[derive(Serialize, ToSchema)]
pub(crate) struct InstrumentsShown {
    instruments: Vec<InstrumentShown>,
}

impl From<&InstrumentTold> for InstrumentShown {
    fn from(InstrumentTold { status, ticks }: &InstrumentTold) -> Self {
        let tick = |(from, tick): &_| TickShown { from: price_text(*from), tick: price_text(*tick) };
        Self {
            symbol: status.symbol.to_string(),
            instrument: status.instrument.0,
            shard: status.shard.0,
            phase: phase_word(status.phase),
            is_quarantined: status.quarantined,
            last: maybe_price(status.last),
            reference: maybe_price(status.reference),
            lot: status.lot.to_string(),
            quantity_max: status.quantity_max.to_string(),
            price_min: price_text(status.price_min),
            price_max: price_text(status.price_max),
            ticks: ticks.iter().map(tick).collect(),
        }
    }
}

/// All instruments.
#[utoipa::path(get, path = "/v1/instruments", operation_id = "instruments", tag = "market", responses(
    (status = 200, description = "They", body = InstrumentsShown)))]
pub(crate) async fn list(
    State(app): State<Shared>,
    Caller(session): Caller,
    spoken: Spoken,
) -> Result<Response, Problem> {
    let instruments = app.instruments(&session).await?.iter().map(InstrumentShown::from).collect();
    Ok(spoken.ok("instruments", &InstrumentsShown { instruments }))
}

/// An instrument.
#[utoipa::path(get, path = "/v1/instruments/{symbol}", operation_id = "instrument", tag = "market", params(("symbol" = String, Path)), responses(
    (status = 200, description = "It, not more than a second old", body = InstrumentShown)))]
pub(crate) async fn one(
    State(app): State<Shared>,
    Path(symbol): Path<String>,
    Caller(session): Caller,
    spoken: Spoken,
) -> Result<Response, Problem> {
    let told = app.instrument(&session, &symbol).await?;
    Ok(spoken.ok("instrument", &InstrumentShown::from(&*told)))
}
