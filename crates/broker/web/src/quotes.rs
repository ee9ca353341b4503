//! What this front knows of prices. Nothing here asks the quote server, so nothing costs anything.

use axum::Json;
use axum::extract::{Path, State};
use pares_broker::{StockSymbol, dollars};
use serde::Serialize;
use utoipa::ToSchema;

use crate::app::Shared;
use crate::caller::Caller;
use crate::problem::{Answer, Problem};

/// A price that was.
#[derive(Serialize, ToSchema)]
pub(crate) struct QuoteShown {
    symbol: String,
    /// Dollars with two decimals.
    price: String,
    /// The quote server's stamp.
    server_ms: u64,
    /// How old it is by this server's clock.
    age_ms: u64,
}

/// Prices of a stock, the oldest first.
#[derive(Serialize, ToSchema)]
pub(crate) struct PointsShown {
    /// 1,000 at most.
    points: Vec<PointShown>,
}

/// A price at a time.
#[derive(Serialize, ToSchema)]
pub(crate) struct PointShown {
    time_ms: u64,
    price: String,
}

fn symbol_of(text: &str) -> Answer<StockSymbol> {
    StockSymbol::new(text)
        .ok_or_else(|| Problem::unknown("a symbol must be 1 to 3 upper-case letters").reason("bad-symbol"))
}

/// The latest quote of a stock that this front has.
#[utoipa::path(get, path = "/api/v1/quotes/{symbol}", params(("symbol" = String, Path)), responses(
    (status = 200, description = "the answer", body = QuoteShown), (status = "default", description = "a problem", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn quote(
    State(app): State<Shared>,
    Path(symbol): Path<String>,
    _: Caller,
) -> Answer<Json<QuoteShown>> {
    let found = app.front.quote(symbol_of(&symbol)?);
    let found =
        found.ok_or_else(|| Problem::unknown("no quote of this stock has arrived yet").reason("no-quote"))?;
    let (price, server_ms) = (dollars(found.price_cents), found.server_ms);
    Ok(Json(QuoteShown { symbol, price, server_ms, age_ms: app.now_ms().saturating_sub(server_ms) }))
}

/// The prices of a stock that this front has seen.
#[utoipa::path(get, path = "/api/v1/quotes/{symbol}/points", params(("symbol" = String, Path)), responses(
    (status = 200, description = "the answer", body = PointsShown), (status = "default", description = "a problem", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn points(
    State(app): State<Shared>,
    Path(symbol): Path<String>,
    _: Caller,
) -> Answer<Json<PointsShown>> {
    let points = app.points.of(symbol_of(&symbol)?).into_iter();
    let points = points.map(|(time_ms, cents)| PointShown { time_ms, price: dollars(cents) });
    Ok(Json(PointsShown { points: points.collect() }))
}
