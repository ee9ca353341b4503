//! What a session may do, and how much of that it has used.

use axum::http::HeaderValue;
use pares_resources::{LineTold, Question};
use pares_types::OwnLimits;
use serde::Serialize;
use utoipa::ToSchema;

use crate::caller::{Answered, Call};
use crate::refused;

/// What the session may do; 0 is no limit.
#[derive(Serialize, ToSchema)]
pub(crate) struct Standing {
    /// The member.
    #[schema(value_type = u64)]
    member: u32,
    /// Its session.
    session: u16,
    /// The member whose orders and streams it receives; 0: its own.
    #[schema(value_type = u64)]
    copied: u32,
    /// Orders of the member that are in flight or work.
    #[schema(value_type = u64)]
    orders: u32,
    /// How many there may be.
    #[schema(value_type = u64)]
    orders_max: u32,
    /// Requests of the session that are unanswered.
    #[schema(value_type = u64)]
    in_flight: u32,
    /// How many there may be.
    in_flight_max: u16,
    /// Orders a second.
    #[schema(value_type = u64)]
    rate_max: u32,
    /// So many of them at once.
    #[schema(value_type = u64)]
    burst_max: u32,
    /// Shares of an order.
    quantity_max: String,
    /// Price units (1/10,000) times shares of an order.
    value_max: String,
    /// What the member may have bought or sold more of than the other in a day, shares.
    position_max: String,
}

/// The session's limits, and what remains of them, as `draft-ietf-httpapi-ratelimit-headers` writes them. Of the rate the gateway does not tell what remains.
fn limits(own: &OwnLimits) -> (String, String) {
    let OwnLimits { limits, orders, in_flight, in_flight_max, .. } = *own;
    let rate = (limits.rate_max > 0).then(|| {
        // A window is whole seconds.
        let window_s = limits.burst_max.max(1).div_ceil(limits.rate_max);
        format!("\"rate\";q={};w={window_s}", u64::from(limits.rate_max) * u64::from(window_s))
    });
    let orders_max = Some(limits.orders_max).filter(|most| *most > 0);
    let in_flight_max = u32::from(in_flight_max);
    let policy = [
        Some(format!("\"in-flight\";q={in_flight_max}")),
        orders_max.map(|most| format!("\"orders\";q={most}")),
        rate,
    ];
    let left = [
        Some(format!("\"in-flight\";r={}", in_flight_max.saturating_sub(in_flight))),
        orders_max.map(|most| format!("\"orders\";r={}", most.saturating_sub(orders))),
    ];
    let listed = |limits: &[Option<String>]| limits.iter().flatten().cloned().collect::<Vec<_>>().join(", ");
    (listed(&policy), listed(&left))
}

/// What the session may do.
#[utoipa::path(get, path = "/v1/status", tag = "session", responses(
    (status = 200, description = "It", body = Standing)))]
pub(crate) async fn status(call: Call) -> Answered {
    let Call { session, spoken, .. } = call;
    let LineTold::Limits(own) = session.question(Question::Limits).await? else {
        return Err(refused::no_answer_yet());
    };
    let standing = Standing {
        member: own.member.0,
        session: own.session,
        copied: session.copied,
        orders: own.orders,
        orders_max: own.limits.orders_max,
        in_flight: own.in_flight,
        in_flight_max: own.in_flight_max,
        rate_max: own.limits.rate_max,
        burst_max: own.limits.burst_max,
        quantity_max: own.limits.quantity_max.to_string(),
        value_max: own.limits.value_max.to_string(),
        position_max: own.position_max.to_string(),
    };
    let mut response = spoken.ok("status", &standing);
    let (policy, left) = limits(&own);
    for (name, text) in [("ratelimit-policy", policy), ("ratelimit", left)] {
        if let Ok(value) = HeaderValue::from_str(&text) {
            response.headers_mut().insert(name, value);
        }
    }
    Ok(response)
}
