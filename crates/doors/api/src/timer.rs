//! The dead man's timer. It runs at the gateway, so that it goes off whatever becomes of this server.

use axum::response::Response;
use pares_http::problem::Problem;
use pares_resources::Question;
use pares_types::ClientOrderId;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::app::Caller;
use crate::spoken::{Said, Spoken};

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

/// What the timer is of.
#[derive(Serialize, ToSchema)]
pub(crate) struct CancelAfterSet {
    /// So long from now; 0: it is off.
    #[schema(value_type = u64)]
    seconds: u32,
    /// The session's guarded names begin here: orders under these are cancelled, and no others.
    guarded_from: String,
    /// The last of them.
    guarded_to: String,
}

/// Sets the session's dead man's timer: unless it is set again in time, the orders that the session guards are cancelled.
#[utoipa::path(post, path = "/v1/cancel-after", tag = "orders", request_body = CancelAfterForm, responses(
    (status = 200, description = "The gateway has it", body = CancelAfterSet)))]
pub(crate) async fn cancel_after(
    Caller(session): Caller,
    spoken: Spoken,
    Said(CancelAfterForm { seconds }): Said<CancelAfterForm>,
) -> Result<Response, Problem> {
    if seconds > SECONDS_MAX {
        return Err(Problem::bad("seconds: 0 to 86400"));
    }
    session.set_timer(seconds);
    // The gateway reads in order: what answers this question has the timer.
    session.question(Question::Limits).await?;
    let name = |number| ClientOrderId::guarded(session.number, number).0.to_string();
    let (guarded_from, guarded_to) = (name(1), name(NUMBER_MAX));
    Ok(spoken.ok("cancel_after", &CancelAfterSet { seconds, guarded_from, guarded_to }))
}
