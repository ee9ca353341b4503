//! The dead man's timer. It runs at the gateway, so that it goes off also when this server dies.

use std::time::Instant;

use pares_http::problem::Problem;
use pares_types::ClientOrderId;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::caller::{Answered, Call};
use crate::session::Session;
use crate::spoken::Said;

/// A day.
const SECONDS_MAX: u32 = 86_400;
/// The last number of a series.
const NUMBER_MAX: u64 = (1 << 48) - 1;

/// When the timer is to go off.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CancelAfterForm {
    /// So long from now, 1 to 86,400; 0 switches it off.
    #[schema(value_type = u64, maximum = 86_400, example = 10)]
    seconds: u32,
}

/// How the timer is set.
#[derive(Serialize, ToSchema)]
pub(crate) struct CancelAfterSet {
    /// It goes off so long from now, rounded up; 0: it is off, or has gone off.
    #[schema(value_type = u64)]
    seconds: u32,
    /// Whether a gateway says that it has it so. While none is there, the next one receives it first of all.
    is_at_gateway: bool,
    /// The session's guarded names begin here: orders under these are cancelled, and no others.
    guarded_from: String,
    /// The last of them.
    guarded_to: String,
}

impl CancelAfterSet {
    fn new(session: &Session, seconds: u32, is_at_gateway: bool) -> Self {
        let name = |number| ClientOrderId::guarded(session.number, number).0.to_string();
        Self { seconds, is_at_gateway, guarded_from: name(1), guarded_to: name(NUMBER_MAX) }
    }
}

/// Sets the session's dead man's timer: unless it is set again in time, the orders that the session guards are cancelled.
#[utoipa::path(post, path = "/v1/cancel-after", tag = "orders", request_body = CancelAfterForm, responses(
    (status = 200, description = "The gateway has it", body = CancelAfterSet)))]
pub(crate) async fn cancel_after(call: Call, Said(form): Said<CancelAfterForm>) -> Answered {
    let CancelAfterForm { seconds } = form;
    if seconds > SECONDS_MAX {
        return Err(Problem::bad("seconds: 0 to 86400"));
    }
    call.session.set_timer(seconds).await?;
    call.ok("cancel_after", &CancelAfterSet::new(&call.session, seconds, true))
}

/// How the session's dead man's timer is set.
#[utoipa::path(get, path = "/v1/cancel-after", operation_id = "cancel_after_set", tag = "orders", responses(
    (status = 200, description = "It, also if no gateway answers", body = CancelAfterSet)))]
pub(crate) async fn timer(call: Call) -> Answered {
    let (set, is_at_gateway) = call.session.timer_set().await?;
    let left_ms = set.map_or(0, |at| at.saturating_duration_since(Instant::now()).as_millis());
    let seconds = u32::try_from(left_ms.div_ceil(1_000)).unwrap_or(SECONDS_MAX);
    call.ok("cancel_after", &CancelAfterSet::new(&call.session, seconds, is_at_gateway))
}
