//! Orders on the exchange.
//!
//! They are not of the sixteen commands: what the exchange does with one comes later, and by itself. So the answer to placing is its number; how it goes is in the list, and arrives as it happens.

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode};
use pares_broker::{
    Asked, BrokerRead, BrokerReply, CustomerOrderId, ORDERS_PAGE_MAX, Order, OrderAsked, OrderLife,
    OrderListed, OrderRead, OrderReply, OrderStage, OrderTerms, PersonRight, Refusal, RouterSeat,
    StockSymbol, TradeWay, UserName, cents_of, dollars,
};
use pares_types::{CancelCause, Reason};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::app::{App, Shared};
use crate::body::Said;
use crate::caller::Caller;
use crate::commands::{command_name, not_done};
use crate::problem::{self, Answer, Problem};

/// Buy or sell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Side {
    Buy,
    Sell,
}

/// How long an order stays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Life {
    /// Until the exchange's day ends.
    #[default]
    Day,
    /// What does not trade at once is cancelled.
    Immediate,
}

impl Side {
    pub(crate) fn of(way: TradeWay) -> Self {
        match way {
            TradeWay::Buy => Self::Buy,
            TradeWay::Sell => Self::Sell,
        }
    }
}

/// An order that is wanted.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct OrderWanted {
    /// 1 to 3 upper-case letters.
    symbol: String,
    side: Side,
    shares: u64,
    /// The most, or the least, for a share: dollars, two decimals at most.
    #[schema(example = "12.34")]
    limit: String,
    #[serde(default)]
    life: Life,
}

/// An order was placed: what it may cost is held.
#[derive(Serialize, ToSchema)]
pub(crate) struct OrderPlaced {
    /// As text: it may be above 2^53, which a script would round.
    number: String,
}

/// An order, as it is now. Money is dollars with two decimals.
#[derive(Serialize, ToSchema)]
pub(crate) struct OrderShown {
    /// As text: it may be above 2^53, which a script would round.
    number: String,
    symbol: String,
    side: Side,
    /// As ordered.
    shares: u64,
    /// The most, or the least, for a share.
    limit: String,
    life: Life,
    /// `waiting`, `routed`, `open`; ended: `filled`, `cancelled`, `expired`, `refused`.
    state: &'static str,
    /// Shares that may trade still.
    left: u64,
    /// Shares that have traded.
    filled: u64,
    /// What they came to.
    amount: String,
    /// Cash that is held for it.
    held: String,
    /// Of one that was cancelled, has expired or was refused: the exchange's word for why.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// A cancel is on its way: it may trade until then.
    is_cancelling: bool,
    placed_ms: u64,
}

/// Which part of the orders.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct Wanted {
    /// Those that have not ended, all of them; not together with `before`.
    open: Option<bool>,
    /// Orders before this place: what the page before said.
    #[param(maximum = 9_223_372_036_854_775_807_u64)]
    before: Option<u64>,
    /// So many, 1 to 100.
    #[param(minimum = 1, maximum = 100)]
    limit: Option<usize>,
}

/// Orders, the newest first.
#[derive(Serialize, ToSchema)]
pub(crate) struct Orders {
    orders: Vec<OrderShown>,
    /// There are more before this place.
    #[serde(skip_serializing_if = "Option::is_none")]
    before: Option<u64>,
    /// With `open`: whether a router, which sends orders to an exchange, was ever active. Without one they wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    has_router: Option<bool>,
}

/// Places an order on the exchange: what it may cost, or the shares, are held from now on.
#[utoipa::path(post, path = "/api/v1/orders", request_body = OrderWanted,
    params(("Idempotency-Key" = Option<String>, Header, description = "1 to 64 visible characters: an order is placed once per key")),
    responses((status = 201, description = "placed", body = OrderPlaced), (status = "default", description = "a problem", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn place(
    State(app): State<Shared>,
    caller: Caller,
    headers: HeaderMap,
    Said(wanted): Said<OrderWanted>,
) -> Answer<(StatusCode, Json<OrderPlaced>)> {
    let user = trader(&app, caller)?;
    let name = command_name(&headers)?;
    let asked = OrderAsked::Place { user: user.clone(), terms: terms(&wanted).map_err(problem::refused)? };
    match app.in_time(app.front.ask(Some(user), name, Asked::Order { asked })).await?? {
        BrokerReply::Order { reply: OrderReply::Placed { order } } => {
            Ok((StatusCode::CREATED, Json(OrderPlaced { number: order.to_string() })))
        }
        other => Err(not_done(&other)),
    }
}

/// The caller's orders.
#[utoipa::path(get, path = "/api/v1/orders", params(Wanted), responses(
    (status = 200, description = "the answer", body = Orders), (status = "default", description = "a problem", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn list(
    State(app): State<Shared>,
    caller: Caller,
    wanted: Result<Query<Wanted>, QueryRejection>,
) -> Answer<Json<Orders>> {
    let Query(Wanted { open, before, limit }) = wanted.map_err(|why| Problem::bad(why.body_text()))?;
    let limit = limit.unwrap_or(ORDERS_PAGE_MAX);
    if !(1..=ORDERS_PAGE_MAX).contains(&limit) {
        return Err(Problem::bad("limit is 1 to 100"));
    }
    if before.is_some_and(|place| i64::try_from(place).is_err()) {
        return Err(Problem::bad("places are below 2^63"));
    }
    let user = caller.name;
    if open != Some(true) {
        return page(&app, user, before, limit).await.map(Json);
    }
    if before.is_some() {
        return Err(Problem::bad("open orders are on one page: leave before out"));
    }
    let working: Vec<(u64, Order)> = read(&app, OrderRead::Working { user }).await?;
    let orders = working.iter().take(limit).map(|(number, order)| shown(*number, order)).collect();
    let seat: Option<RouterSeat> = read(&app, OrderRead::Router).await?;
    Ok(Json(Orders { orders, before: None, has_router: Some(seat.is_some()) }))
}

async fn page(app: &App, user: UserName, before: Option<u64>, limit: usize) -> Answer<Orders> {
    let mut listed: Vec<OrderListed> = read(app, OrderRead::Mine { user, before }).await?;
    listed.truncate(limit);
    let before = listed.last().map(|last| last.place).filter(|place| *place > 0);
    Ok(Orders {
        orders: listed.iter().map(|listed| shown(listed.number, &listed.order)).collect(),
        before,
        has_router: None,
    })
}

/// One of the caller's orders.
#[utoipa::path(get, path = "/api/v1/orders/{number}", params(("number" = String, Path, description = "as placing has answered")),
    responses((status = 200, description = "the answer", body = OrderShown), (status = "default", description = "a problem", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn one(
    State(app): State<Shared>,
    Path(number): Path<String>,
    caller: Caller,
) -> Answer<Json<OrderShown>> {
    now(&app, id(caller.name, &number)?).await
}

/// Cancels what is left of an order. One that the exchange may have is cancelled when it says so, and may trade until then: so the answer is the order as it is now.
#[utoipa::path(delete, path = "/api/v1/orders/{number}", params(("number" = String, Path, description = "as placing has answered")),
    responses((status = 200, description = "the order is cancelled, or a cancel was sent", body = OrderShown), (status = "default", description = "a problem", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn cancel(
    State(app): State<Shared>,
    Path(number): Path<String>,
    caller: Caller,
) -> Answer<Json<OrderShown>> {
    let user = trader(&app, caller)?;
    let of = id(user.clone(), &number)?;
    let asked = Asked::Order { asked: OrderAsked::Cancel { of: of.clone() } };
    match app.in_time(app.front.ask(Some(user), None, asked)).await?? {
        BrokerReply::Order { reply: OrderReply::Now { order } } => Ok(Json(shown(of.number, &order))),
        BrokerReply::Order { reply: OrderReply::Cancelling } => now(&app, of).await,
        other => Err(not_done(&other)),
    }
}

/// Who may trade, and not too often.
fn trader(app: &App, caller: Caller) -> Answer<UserName> {
    let user = caller.with(PersonRight::Trader)?.name;
    app.commands.take(user.as_str(), app.now_ms()).map_err(Problem::too_many)?;
    Ok(user)
}

fn id(user: UserName, number: &str) -> Answer<CustomerOrderId> {
    let number = number.parse().map_err(|_| problem::refused(Refusal::NoOrder))?;
    Ok(CustomerOrderId { user, number })
}

fn terms(wanted: &OrderWanted) -> Result<OrderTerms, Refusal> {
    Ok(OrderTerms {
        symbol: StockSymbol::new(&wanted.symbol).ok_or(Refusal::BadSymbol)?,
        way: match wanted.side {
            Side::Buy => TradeWay::Buy,
            Side::Sell => TradeWay::Sell,
        },
        shares: wanted.shares,
        limit_cents: cents_of(&wanted.limit).ok_or(Refusal::BadAmount)?,
        life: match wanted.life {
            Life::Day => OrderLife::Day,
            Life::Immediate => OrderLife::Immediate,
        },
    })
}

pub(crate) async fn read<T: pares_wice::codec::Coded>(app: &App, read: OrderRead) -> Answer<T> {
    Ok(app.in_time(app.front.read(BrokerRead::Order { read })).await??)
}

async fn now(app: &App, of: CustomerOrderId) -> Answer<Json<OrderShown>> {
    let number = of.number;
    let order: Option<Order> = read(app, OrderRead::One { of }).await?;
    order.map(|order| Json(shown(number, &order))).ok_or_else(|| problem::refused(Refusal::NoOrder))
}

fn shown(number: u64, order: &Order) -> OrderShown {
    let OrderTerms { symbol, way, shares, limit_cents, life } = order.terms;
    OrderShown {
        number: number.to_string(),
        symbol: symbol.to_string(),
        side: Side::of(way),
        shares,
        limit: dollars(limit_cents),
        life: match life {
            OrderLife::Day => Life::Day,
            OrderLife::Immediate => Life::Immediate,
        },
        state: state(order.state),
        left: order.left,
        filled: order.filled,
        amount: dollars(order.charge(order.value)),
        held: dollars(order.held_cents()),
        reason: why(order),
        is_cancelling: order.is_unwanted && !order.has_ended(),
        placed_ms: order.placed_ms,
    }
}

pub(crate) fn state(of: OrderStage) -> &'static str {
    match of {
        OrderStage::Waiting => "waiting",
        OrderStage::Routed => "routed",
        OrderStage::Open => "open",
        OrderStage::Filled => "filled",
        OrderStage::Cancelled => "cancelled",
        OrderStage::Expired => "expired",
        OrderStage::Refused => "refused",
    }
}

/// The exchange's word for why it ended so: `off-lot`, `day-end`.
pub(crate) fn why(order: &Order) -> Option<String> {
    let word = match order.state {
        OrderStage::Refused => Reason::of(order.why).map(Reason::word),
        OrderStage::Cancelled | OrderStage::Expired => CancelCause::of(order.why).map(CancelCause::word),
        _ => None,
    };
    word.map(|word| word.replace('_', "-"))
}
