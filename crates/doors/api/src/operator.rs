//! What the exchange itself asks for: phases, blocks, four eyes. Operators are sessions of member 0; whether one may, and whether another has proposed it, the gateway says.

use axum::extract::Path;
use axum::http::StatusCode;
use pares_http::problem::Problem;
use pares_resources::decimal::natural;
use pares_resources::deeds::{self, EXCHANGE};
use pares_resources::order_terms;
use pares_types::{Command, Entry, InstrumentId, MemberId, Registration};
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

use crate::caller::{Answered, Call};
use crate::forms::{ALL, Outcome, name};
use crate::orders::committed;
use crate::refused;
use crate::spoken::{Queried, Said};

/// How it is asked for.
#[derive(Deserialize, IntoParams, ToSchema)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct Deed {
    /// The name of this request; an operator's are of the series that has the session's number.
    #[param(pattern = "^[1-9][0-9]{0,19}$")]
    #[schema(pattern = "^[1-9][0-9]{0,19}$", example = "281474976710657")]
    client_order_id: String,
    /// Do not ask for it, but propose it to a second operator, who asks for the same within ten minutes.
    #[serde(default)]
    propose: bool,
}

/// Brings an instrument into a phase. Operators may.
#[utoipa::path(put, path = "/v1/instruments/{symbol}/phase/{phase}", tag = "operator", request_body = Deed,
    params(("symbol" = String, Path), ("phase" = String, Path, description = "`closed`, `opening_call`, `continuous`, `closing_call`, `post_close`, `halted`")), responses(
    (status = 200, description = "Committed", body = Outcome),
    (status = 202, description = "Proposed, not done", body = Outcome)))]
pub(crate) async fn phase(
    Path((symbol, phase)): Path<(String, String)>,
    call: Call,
    Said(deed): Said<Deed>,
) -> Answered {
    let phase = order_terms::phase(&phase).map_err(refused::bad_field)?;
    let instrument = call.app.instrument(&call.session, &symbol).await?.status.instrument;
    done(&call, &deed, (instrument, Command::SetPhase(phase))).await
}

/// Cancels all orders of a member and takes no more. Operators may, and each member may block itself.
#[utoipa::path(put, path = "/v1/members/{member}/block", tag = "operator", request_body = Deed,
    params(("member" = String, Path)), responses(
    (status = 200, description = "Committed; `unfinished` if orders are left: repeat under another name", body = Outcome),
    (status = 202, description = "Proposed, not done", body = Outcome)))]
pub(crate) async fn block(Path(member): Path<String>, call: Call, Said(deed): Said<Deed>) -> Answered {
    done(&call, &deed, (ALL, Command::Block { member: number(&member)? })).await
}

/// Takes orders of a blocked member again. Operators may.
#[utoipa::path(delete, path = "/v1/members/{member}/block", tag = "operator", params(("member" = String, Path), Deed), responses(
    (status = 200, description = "Committed", body = Outcome)))]
pub(crate) async fn unblock(
    Path(member): Path<String>,
    call: Call,
    Queried(deed): Queried<Deed>,
) -> Answered {
    done(&call, &deed, (ALL, Command::Unblock { member: number(&member)? })).await
}

/// From now on what can halt a market needs two operators. Operators may.
#[utoipa::path(put, path = "/v1/four-eyes", tag = "operator", request_body = Deed, responses(
    (status = 200, description = "Committed", body = Outcome)))]
pub(crate) async fn four_eyes_on(call: Call, Said(deed): Said<Deed>) -> Answered {
    done(&call, &deed, (ALL, four_eyes(true))).await
}

/// From now on one operator can halt a market. Operators may.
#[utoipa::path(delete, path = "/v1/four-eyes", tag = "operator", params(Deed), responses(
    (status = 200, description = "Committed", body = Outcome),
    (status = 202, description = "Proposed, not done", body = Outcome)))]
pub(crate) async fn four_eyes_off(call: Call, Queried(deed): Queried<Deed>) -> Answered {
    done(&call, &deed, (ALL, four_eyes(false))).await
}

fn four_eyes(is_on: bool) -> Command {
    Command::Register(Registration { member: EXCHANGE, session: 0, entry: Entry::SetFourEyes(is_on) })
}

/// Asks for it, or proposes it.
async fn done(call: &Call, deed: &Deed, command: (InstrumentId, Command)) -> Answered {
    let client_order_id = name("client_order_id", &deed.client_order_id)?;
    let request = deeds::request(client_order_id, command, deed.propose.then_some(call.session.number));
    let request = request
        .ok_or_else(|| Problem::bad("propose: this request needs no second operator: leave propose out"))?;
    let answer = committed(call.session.ask(request).await?)?;
    let status = if deed.propose { StatusCode::ACCEPTED } else { StatusCode::OK };
    call.outcome(status, &answer)
}

fn number(text: &str) -> Result<MemberId, Problem> {
    let number = natural(text).and_then(|number| u32::try_from(number).ok());
    number.map(MemberId).ok_or_else(|| Problem::bad("member must be a whole number"))
}
