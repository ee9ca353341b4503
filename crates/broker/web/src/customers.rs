//! What supervisors say of a customer's orders: limits, and the kill switch.
//!
//! Nobody says it of himself: who may trade more than he should must not be the one who is asked.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use pares_broker::{
    Asked, BrokerReply, Customer, CustomerLimits, OPEN_ORDERS_MAX, OrderAsked, OrderRead, PersonRight,
    Refusal, UserName, cents_of, dollars,
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::app::{App, Shared};
use crate::body::Said;
use crate::caller::Caller;
use crate::commands::not_done;
use crate::orders::read;
use crate::problem::{self, Answer, Problem};

const DAY_MS: u64 = 86_400_000;
/// So often it is said to the sites, if others are taken first.
const TRIES: u64 = 3;

/// A customer's limits. What is left out is the standard; of the loss that is none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct LimitsSaid {
    /// Shares of an order.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1)]
    shares: Option<u64>,
    /// Dollars of an order, at its limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    amount: Option<String>,
    /// Open orders, 100 at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 100)]
    open_orders: Option<u64>,
    /// Shares of one stock.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1)]
    position: Option<u64>,
    /// Dollars lost on a day on the exchange: beyond it no order is taken until the next day (UTC).
    #[serde(skip_serializing_if = "Option::is_none")]
    loss: Option<String>,
}

/// A customer's limits, and how he stands.
#[derive(Serialize, ToSchema)]
pub(crate) struct CustomerShown {
    name: String,
    /// What was set.
    set: LimitsSaid,
    /// What holds.
    in_force: LimitsSaid,
    /// The kill switch.
    is_blocked: bool,
    /// Orders that have not ended.
    open_orders: u64,
    /// What the day's trades on the exchange came to, dollars; a loss is below zero.
    result: String,
    /// What void trades left owed, dollars.
    owed: String,
}

/// A customer's limits.
#[utoipa::path(get, path = "/api/v1/supervisor/limits/{user}", params(("user" = String, Path)), responses(
    (status = 200, description = "the answer", body = CustomerShown), (status = "default", description = "a problem", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn limits(
    State(app): State<Shared>,
    Path(user): Path<String>,
    caller: Caller,
) -> Answer<Json<CustomerShown>> {
    caller.with(PersonRight::Supervisor)?;
    let user = customer(&app, &user).await?;
    let customer: Customer = read(&app, OrderRead::Customer { user: user.clone() }).await?;
    Ok(Json(shown(&user, &customer, app.now_ms())))
}

/// Sets all of a customer's limits.
#[utoipa::path(put, path = "/api/v1/supervisor/limits/{user}", request_body = LimitsSaid, params(("user" = String, Path)),
    responses((status = 204, description = "done"), (status = "default", description = "a problem", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn set_limits(
    State(app): State<Shared>,
    Path(user): Path<String>,
    caller: Caller,
    Said(said): Said<LimitsSaid>,
) -> Answer<StatusCode> {
    let (by, user) = of_another(&app, caller, &user).await?;
    let limits = limits_of(&said)?;
    done(&app, OrderAsked::Limit { user, limits, by }).await
}

/// Blocks a customer: no order is taken, and all that is open is cancelled.
#[utoipa::path(put, path = "/api/v1/supervisor/kill/{user}", params(("user" = String, Path)),
    responses((status = 204, description = "done"), (status = "default", description = "a problem", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn kill(
    State(app): State<Shared>,
    Path(user): Path<String>,
    caller: Caller,
) -> Answer<StatusCode> {
    let (by, user) = of_another(&app, caller, &user).await?;
    done(&app, OrderAsked::Block { user, is_blocked: true, by }).await
}

/// Takes a customer's orders again.
#[utoipa::path(delete, path = "/api/v1/supervisor/kill/{user}", params(("user" = String, Path)),
    responses((status = 204, description = "done"), (status = "default", description = "a problem", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn release(
    State(app): State<Shared>,
    Path(user): Path<String>,
    caller: Caller,
) -> Answer<StatusCode> {
    let (by, user) = of_another(&app, caller, &user).await?;
    done(&app, OrderAsked::Block { user, is_blocked: false, by }).await
}

/// The user of that name, who has an account.
async fn customer(app: &App, name: &str) -> Answer<UserName> {
    let nobody = || Problem::unknown("there is no account of that name").reason("no-customer");
    let user = UserName::new(name).ok_or_else(nobody)?;
    if app.has_account(&user).await? { Ok(user) } else { Err(nobody()) }
}

/// The supervisor who asks, and about whom.
async fn of_another(app: &App, caller: Caller, name: &str) -> Answer<(UserName, UserName)> {
    let by = caller.with(PersonRight::Supervisor)?.name;
    if by.as_str() == name {
        return Err(problem::refused(Refusal::OwnLimits));
    }
    Ok((by, customer(app, name).await?))
}

async fn done(app: &App, asked: OrderAsked) -> Answer<StatusCode> {
    let asked = Asked::Order { asked };
    let mut tries = 0;
    loop {
        tries += 1;
        // As nobody's: the customer's own commands may wait, and this is not to wait for them.
        match app.in_time(app.front.ask(None, None, asked.clone())).await?? {
            BrokerReply::Done => return Ok(StatusCode::NO_CONTENT),
            // Another supervisor's that came later was taken first. Done twice, it does no more than once.
            BrokerReply::Overtaken | BrokerReply::Repeated if tries < TRIES => {}
            other => return Err(not_done(&other)),
        }
    }
}

fn limits_of(said: &LimitsSaid) -> Answer<CustomerLimits> {
    let number = |count: Option<u64>, most: u64| match count {
        None => Ok(0),
        Some(count) if (1..=most).contains(&count) => Ok(count),
        Some(_) => Err(Problem::bad(format!("a limit must be 1 to {most}; an omitted one is the default"))),
    };
    let money = |text: &Option<String>| match text.as_deref().map(cents_of) {
        None => Ok(0),
        Some(Some(cents)) if cents > 0 => Ok(cents),
        Some(_) => Err(problem::refused(Refusal::BadAmount)),
    };
    Ok(CustomerLimits {
        shares_max: number(said.shares, i64::MAX as u64)?,
        cents_max: money(&said.amount)?,
        open_max: number(said.open_orders, OPEN_ORDERS_MAX)?,
        position_max: number(said.position, i64::MAX as u64)?,
        loss_max: money(&said.loss)?,
    })
}

fn shown(user: &UserName, customer: &Customer, now_ms: u64) -> CustomerShown {
    let result = if customer.day == now_ms / DAY_MS { customer.result_cents } else { 0 };
    let sign = if result < 0 { "-" } else { "" };
    CustomerShown {
        name: user.to_string(),
        set: said_of(customer.limits),
        in_force: said_of(customer.limits.in_force()),
        is_blocked: customer.is_blocked,
        open_orders: customer.open.len() as u64,
        result: format!("{sign}{}", dollars(result.unsigned_abs())),
        owed: dollars(customer.owed_cents),
    }
}

/// Those that are set: 0 is the standard, and the highest number stands for none.
fn said_of(limits: CustomerLimits) -> LimitsSaid {
    let count = |limit: u64| (limit != 0 && limit != u64::MAX).then_some(limit);
    let money = |limit| count(limit).map(dollars);
    LimitsSaid {
        shares: count(limits.shares_max),
        amount: money(limits.cents_max),
        open_orders: count(limits.open_max),
        position: count(limits.position_max),
        loss: money(limits.loss_max),
    }
}
