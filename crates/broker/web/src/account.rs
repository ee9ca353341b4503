//! What a user has.

use axum::Json;
use axum::extract::State;
use pares_broker::{
    AccountSummary, BrokerRead, BuyTrigger, Pending, SellTrigger, StockSymbol, UserName, WINDOW_MS, dollars,
};
use serde::Serialize;
use utoipa::ToSchema;

use crate::app::Shared;
use crate::caller::Caller;
use crate::problem::{Answer, Problem};

/// An account. Money is dollars with two decimals.
#[derive(Serialize, ToSchema)]
pub(crate) struct AccountShown {
    name: String,
    /// Free cash.
    cash: String,
    /// Pending buys, the oldest first.
    buys: Vec<PendingShown>,
    /// Pending sells, the oldest first.
    sells: Vec<PendingShown>,
    /// Free shares.
    holdings: Vec<HoldingShown>,
    buy_triggers: Vec<BuyTriggerShown>,
    sell_triggers: Vec<SellTriggerShown>,
    /// Cash that orders on the exchange hold.
    orders_held: String,
    /// Shares that they hold.
    orders_held_shares: Vec<HoldingShown>,
}

/// A buy or sell that waits to be committed.
#[derive(Serialize, ToSchema)]
pub(crate) struct PendingShown {
    /// The number of its command, as text: it may be above 2^53, which a script would round.
    number: String,
    symbol: String,
    shares: u64,
    amount: String,
    placed_ms: u64,
    /// The last moment to commit it.
    until_ms: u64,
}

/// Shares of a stock.
#[derive(Serialize, ToSchema)]
pub(crate) struct HoldingShown {
    symbol: String,
    shares: u64,
}

/// A buy at a price to come.
#[derive(Serialize, ToSchema)]
pub(crate) struct BuyTriggerShown {
    symbol: String,
    reserve: String,
    /// Once it is armed.
    price: Option<String>,
}

/// A sell at a price to come.
#[derive(Serialize, ToSchema)]
pub(crate) struct SellTriggerShown {
    symbol: String,
    amount: String,
    /// Once it is armed.
    price: Option<String>,
    /// Reserved for it, once it is armed.
    shares: Option<u64>,
}

/// What the caller has.
#[utoipa::path(get, path = "/api/v1/account", responses(
    (status = 200, description = "the answer", body = AccountShown), (status = "default", description = "a problem", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn account(State(app): State<Shared>, caller: Caller) -> Answer<Json<AccountShown>> {
    let user = caller.name;
    let reading = app.front.read(BrokerRead::Summary { user: user.clone() });
    let summary: Option<AccountSummary> = app.in_time(reading).await??;
    let summary = summary.ok_or_else(|| {
        Problem::unknown("the account does not exist before the first add").reason("no-account")
    })?;
    Ok(Json(shown(&user, &summary)))
}

fn shown(user: &UserName, summary: &AccountSummary) -> AccountShown {
    AccountShown {
        name: user.to_string(),
        cash: dollars(summary.account.cash_cents),
        buys: summary.buys.iter().map(pending).collect(),
        sells: summary.sells.iter().map(pending).collect(),
        holdings: summary.shares.iter().map(holding).collect(),
        buy_triggers: summary.buy_triggers.iter().map(buy_trigger).collect(),
        sell_triggers: summary.sell_triggers.iter().map(sell_trigger).collect(),
        orders_held: dollars(summary.orders_held_cents),
        orders_held_shares: summary.orders_held_shares.iter().map(holding).collect(),
    }
}

fn holding((symbol, shares): &(StockSymbol, u64)) -> HoldingShown {
    HoldingShown { symbol: symbol.to_string(), shares: *shares }
}

fn pending(of: &Pending) -> PendingShown {
    PendingShown {
        number: of.number.to_string(),
        symbol: of.symbol.to_string(),
        shares: of.shares,
        amount: dollars(of.cents),
        placed_ms: of.placed_ms,
        until_ms: of.placed_ms.saturating_add(WINDOW_MS),
    }
}

fn buy_trigger((symbol, of): &(StockSymbol, BuyTrigger)) -> BuyTriggerShown {
    let price = of.armed.map(|armed| dollars(armed.price_cents));
    BuyTriggerShown { symbol: symbol.to_string(), reserve: dollars(of.reserve_cents), price }
}

fn sell_trigger((symbol, of): &(StockSymbol, SellTrigger)) -> SellTriggerShown {
    SellTriggerShown {
        symbol: symbol.to_string(),
        amount: dollars(of.amount_cents),
        price: of.armed.map(|armed| dollars(armed.price_cents)),
        shares: of.armed.map(|armed| armed.shares),
    }
}
